# SPDX-License-Identifier: Apache-2.0
"""Inputs: determinism, windows, distributions, the byte patterns promised, and the file format."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest
import torch

from parity.cases import Case, quick_cases
from parity.fp8 import Encoding, decode
from parity.inputs import Inputs, build_inputs, nan_bytes, require_finite

CASE = Case("causal", 5, 40, 32, 128, Encoding.FN, Encoding.FNUZ, "gaussian", 0, 2048, "a small one to vary")


def built(**change: object) -> Inputs:
    return build_inputs(dataclasses.replace(CASE, **change))  # type: ignore[arg-type]


def windows(window: str, m: int, n: int) -> list[tuple[int, int]]:
    inputs = built(window=window, m=m, n=n)
    return list(zip(inputs.starts.tolist(), inputs.ends.tolist(), strict=True))


def test_same_case_same_bytes_other_case_other_bytes() -> None:
    digests = [built().sha256, built().sha256, built(seed=1).sha256, built(window="full").sha256]
    assert digests[0] == digests[1] and len(set(digests)) == 3
    first, other = built(), built(window="full")
    assert not torch.equal(first.q, other.q)  # the id seeds, so no two cases share their tensors


@pytest.mark.parametrize("name", ["q", "kv", "kv_scales", "weights", "starts", "ends"])
def test_digest_sees_one_changed_value(name: str) -> None:
    inputs = built()
    changed = getattr(inputs, name).clone()
    changed.view(-1)[3] += 1
    assert dataclasses.replace(inputs, **{name: changed}).sha256 != inputs.sha256
    assert dataclasses.replace(inputs, q_encoding=Encoding.FNUZ).sha256 != inputs.sha256


def test_causal_windows() -> None:
    assert windows("causal", 3, 10) == [(0, 8), (0, 9), (0, 10)]
    assert windows("causal", 5, 3) == [(0, -1), (0, 0), (0, 1), (0, 2), (0, 3)]


def test_packed_windows_start_at_their_request() -> None:
    spans = windows("packed", 13, 300)
    bases = sorted({start for start, _ in spans})
    assert len(bases) == 3 and bases[0] == 0 and all(base % 64 for base in bases[1:])
    assert spans[-1][1] == 300
    for base, following in zip(bases, [*bases[1:], 300], strict=True):
        ends = [end for start, end in spans if start == base]
        assert ends == list(range(following - len(ends) + 1, following + 1))  # causal, up to the next request
    assert len({start for start, _ in windows("packed", 2, 2)}) == 2


def test_context_parallel_windows_jump() -> None:
    ends = [end for _, end in windows("context-parallel", 6, 200)]
    assert ends == [26, 200, 27, 199, 28, 198]


def test_misaligned_windows() -> None:
    spans = windows("misaligned", 9, 300)
    assert [start for start, _ in spans] == [1, 63, 64, 65, 127, 128, 129, 1, 63]
    assert all(start < end <= 300 for start, end in spans) and {end for _, end in spans[::2]} == {300}
    assert all((start < 20 and end == 20) or end > start for start, end in windows("misaligned", 9, 20))


def test_empty_windows_hold_every_pattern() -> None:
    n = 130
    spans = windows("empty", 9, n)
    assert any(start == end for start, end in spans)
    assert any(0 <= end < start for start, end in spans)
    assert any(end < 0 for _, end in spans)
    assert any(start >= n for start, _ in spans)
    assert any(start < n < end for start, end in spans)
    assert sum(0 <= start < end <= n for start, end in spans) >= 3
    assert windows("full", 2, 7) == [(0, 7), (0, 7)]


@pytest.mark.parametrize("case", quick_cases(), ids=lambda case: case.id)
def test_quick_inputs_keep_the_precondition_and_contain_minus_zero(case: Case) -> None:
    inputs = build_inputs(case)
    require_finite(inputs)
    for bytes, encoding in ((inputs.q, case.q_encoding), (inputs.kv, case.kv_encoding)):
        assert int((bytes == 0x80).sum()) >= 20 if encoding is Encoding.FN else not (bytes == 0x80).any()
        assert float(decode(bytes, encoding).abs().max()) == encoding.max
    assert (inputs.kv_scales > 0).all() and (inputs.weights < 0).any() and (inputs.weights > 0).any()


def test_gaussian_vectors_fill_the_range() -> None:
    inputs = built(kv_encoding=Encoding.FN)
    largest = decode(inputs.kv, Encoding.FN).abs().amax(dim=1)
    assert (largest == 448.0).double().mean() > 0.9  # a planted zero may have hit the largest of a vector
    dequantised = decode(inputs.kv, Encoding.FN) * inputs.kv_scales[:, None]
    assert 0.9 < float(dequantised.std()) < 1.1


def test_scales_differ_at_every_token() -> None:
    scales = built(distribution="scales", n=2000).kv_scales
    assert len(set(scales.tolist())) == 2000
    assert 1e-3 < float(scales.min()) < 2e-3 and 5 < float(scales.max()) < 10


def test_outlier_channels_stand_out() -> None:
    inputs = built(distribution="outlier", n=400)
    values = decode(inputs.kv, inputs.kv_encoding) * inputs.kv_scales[:, None]
    spread = values.std(dim=0).sort(descending=True).values
    assert spread[2] > 10 * spread[3]


def test_bytes_use_every_finite_byte() -> None:
    inputs = built(distribution="bytes", n=400)
    assert [len(set(bytes.flatten().tolist())) for bytes in (inputs.q, inputs.kv)] == [254, 255]


def test_nan_bytes_are_counted_and_refused() -> None:
    inputs = built()
    assert nan_bytes(inputs) == 0
    inputs.q[0, 0, :2] = torch.tensor([0x7F, 0xFF], dtype=torch.uint8)
    inputs.kv[3, 5] = 0x80
    assert nan_bytes(inputs) == 3
    with pytest.raises(ValueError, match="3 NaN bytes"):
        require_finite(inputs)
    scales = built()
    scales.kv_scales[2] = torch.inf
    with pytest.raises(ValueError, match="kv_scales"):
        require_finite(scales)


def test_save_and_load(tmp_path: Path) -> None:
    inputs = built()
    inputs.save(tmp_path / "case.bin")
    loaded = Inputs.load(tmp_path / "case.bin")
    assert loaded.sha256 == inputs.sha256 and loaded.kv_encoding is Encoding.FNUZ


def test_load_refuses_wrong_files(tmp_path: Path) -> None:
    path = tmp_path / "case.npz"
    built().save(path)
    good = dict(np.load(path))
    faults = {
        "dtype": good | {"starts": good["starts"].astype(np.int64)},
        "shape": good | {"weights": good["weights"][:, :-1]},
        "rank": good | {"kv": good["kv"][None]},
        "kind": good | {"q": good["q"].astype("U1")},
        "encoding": good | {"q_encoding": np.array("e5m2")},
        "unknown": good | {"extra": good["q"]},
        "missing": {name: array for name, array in good.items() if name != "ends"},
    }
    for arrays in faults.values():
        np.savez(path, **arrays)
        with pytest.raises(ValueError):
            Inputs.load(path)
    for content in (b"", b"not a zip", b"PK\x03\x04 cut short"):
        path.write_bytes(content)
        with pytest.raises(ValueError):
            Inputs.load(path)
