# SPDX-License-Identifier: Apache-2.0
"""The reference against logits worked by hand, a scalar loop, and planted faults."""

from __future__ import annotations

import dataclasses

import pytest
import torch

from parity.cases import Case
from parity.fp8 import Encoding, encode
from parity.inputs import Inputs, build_inputs
from parity.reference import dequantise, head_sums, reference_logits

INF = float("inf")


def tiny(
    *, starts: list[int], ends: list[int], encoding: Encoding = Encoding.FNUZ, scales: tuple[float, ...] = (1, 0.5, 4)
) -> Inputs:
    """Two rows, two heads of dimension 2, three keys.

    q[0] = [[1, 2], [-1, 0.5]]     q[1] = [[0.5, -2], [3, 1]]
    kv = [[2, 1], [-1, 3], [0, -4]]     weights = [[1, -2], [4, 0.5]]     scales = [1, 0.5, 4]
    """
    q = torch.tensor([[[1.0, 2.0], [-1.0, 0.5]], [[0.5, -2.0], [3.0, 1.0]]])
    kv = torch.tensor([[2.0, 1.0], [-1.0, 3.0], [0.0, -4.0]])
    return Inputs(
        encode(q, encoding),
        encode(kv, encoding),
        torch.tensor(scales),
        torch.tensor([[1.0, -2.0], [4.0, 0.5]]),
        torch.tensor(starts, dtype=torch.int32),
        torch.tensor(ends, dtype=torch.int32),
        encoding,
        encoding,
    )


# Row 0, head 0: <q,kv> = 2+2, -1+6, -8           = 4, 5, -8       relu * scale: 4, 2.5, 0     weight  1:  4,  2.5, 0
# Row 0, head 1:          -2+0.5, 1+1.5, -2       = -1.5, 2.5, -2                0, 1.25, 0    weight -2:  0, -2.5, 0
# Row 1, head 0:          1-2, -0.5-6, 8          = -1, -6.5, 8                  0, 0, 32      weight  4:  0, 0, 128
# Row 1, head 1:          6+1, -3+3, -4           = 7, 0, -4                     7, 0, 0       weight 0.5: 3.5, 0, 0
BY_HAND = [[4.0, 0.0, 0.0], [3.5, 0.0, 128.0]]


@pytest.mark.parametrize("encoding", list(Encoding))
def test_logits_worked_by_hand(encoding: Encoding) -> None:
    logits = reference_logits(tiny(starts=[0, 0], ends=[3, 3], encoding=encoding))
    assert logits.dtype == torch.float64 and logits.tolist() == BY_HAND


def test_windows_by_hand() -> None:
    # Row 0 keeps column 1 only, row 1 keeps columns 0 to 2 from bounds that stick out on both sides.
    logits = reference_logits(tiny(starts=[1, -5], ends=[2, 9]))
    assert logits.tolist() == [[-INF, 0.0, -INF], BY_HAND[1]]
    # Both rows empty: an end before the start, and a start past the last key.
    logits = reference_logits(tiny(starts=[2, 3], ends=[1, 8]))
    assert logits.tolist() == [[-INF] * 3] * 2


def test_negative_scale_comes_before_the_relu() -> None:
    # Row 0, key 0 at scale -2: heads give relu(4 * -2) = 0 and relu(-1.5 * -2) = 3, times weight -2.
    logits = reference_logits(tiny(starts=[0, 0], ends=[1, 1], scales=(-2.0, 1.0, 1.0)))
    assert logits[:, 0].tolist() == [-6.0, 8.0]  # row 1: relu(-1 * -2) * 4 = 8, relu(7 * -2) = 0


def test_all_negative_scores_give_exact_zeros() -> None:
    inputs = tiny(starts=[0, 0], ends=[3, 3])
    inputs.kv[:] = encode(torch.tensor([[-1.0, -1.0]]), Encoding.FNUZ)
    inputs.q[:] = encode(torch.ones(2, 2, 2), Encoding.FNUZ)
    assert reference_logits(inputs).tolist() == [[0.0] * 3] * 2


CASE = Case("misaligned", 5, 150, 16, 32, Encoding.FN, Encoding.FNUZ, "scales", 3, 2048, "small enough for a loop")


def by_scalar_loop(inputs: Inputs) -> torch.Tensor:
    """Independent of parity.fp8: torch's own dtypes decode, Python adds."""
    q = inputs.q.view(torch.float8_e4m3fn).double()
    kv = inputs.kv.view(torch.float8_e4m3fnuz).double()
    logits = torch.full((len(q), len(kv)), -INF, dtype=torch.float64)
    for m in range(len(q)):
        for n in range(max(int(inputs.starts[m]), 0), min(int(inputs.ends[m]), len(kv))):
            heads = (q[m] * kv[n]).sum(dim=1) * float(inputs.kv_scales[n])
            logits[m, n] = sum(max(float(s), 0.0) * float(w) for s, w in zip(heads, inputs.weights[m], strict=True))
    return logits


@pytest.mark.parametrize("tile", [(1, 1), (1, 7), (3, 64), (64, 4096)])
def test_agrees_with_a_scalar_loop_in_any_tiles(tile: tuple[int, int]) -> None:
    inputs = build_inputs(CASE)
    expected = by_scalar_loop(inputs)
    exact, rows = dequantise(inputs), CASE.m
    middle = rows // 2
    for blocks in ([slice(0, rows)], [slice(0, middle), slice(middle, rows)]):
        actual = torch.cat([head_sums(exact, block, tile=tile).logits for block in blocks])
        assert torch.equal(torch.isneginf(actual), torch.isneginf(expected))
        inside = torch.isfinite(expected)
        assert torch.allclose(actual[inside], expected[inside], rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("fault", ["neighbour-scale", "start-off-by-one", "neighbour-key", "dropped-head"])
def test_scalar_loop_would_notice(fault: str) -> None:
    """Planted faults in what the reference is given move it away from the loop."""
    inputs = build_inputs(CASE)
    changes: dict[str, dict[str, torch.Tensor]] = {
        "neighbour-scale": {"kv_scales": inputs.kv_scales.roll(1)},
        "start-off-by-one": {"starts": inputs.starts + 1},
        "neighbour-key": {"kv": inputs.kv.roll(1, dims=0)},
        "dropped-head": {"weights": inputs.weights * (torch.arange(16) != 5)},
    }
    actual = reference_logits(dataclasses.replace(inputs, **changes[fault]))  # type: ignore[arg-type]
    assert not torch.allclose(actual, by_scalar_loop(inputs), rtol=1e-6, atol=1e-6)


def test_refuses_nan_bytes() -> None:
    inputs = tiny(starts=[0, 0], ends=[3, 3])
    inputs.kv[1, 1] = 0x80
    with pytest.raises(ValueError, match="NaN bytes"):
        reference_logits(inputs)
