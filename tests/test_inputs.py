# SPDX-License-Identifier: Apache-2.0
"""Inputs: determinism, windows, distributions, the byte patterns promised, and the file format."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import save_file

from parity.cases import Case
from parity.fp8 import Encoding, decode
from parity.inputs import Inputs, build_inputs, nan_bytes, require_finite
from parity.matrix import quick_cases
from parity.reference import reference_logits

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
        planted = case.distribution not in ("position", "saturated", "subnormal")
        assert int((bytes == 0x80).sum()) >= 20 if planted and encoding is Encoding.FN else not (bytes == 0x80).any()
        largest = float(decode(bytes, encoding).abs().max())
        assert largest == encoding.max or case.distribution in ("position", "subnormal")
    assert (inputs.kv_scales > 0).all() and (inputs.weights < 0).any() and (inputs.weights > 0).any()


def test_gaussian_vectors_fill_the_range() -> None:
    inputs = built(kv_encoding=Encoding.FN)
    largest = decode(inputs.kv, Encoding.FN).abs().amax(dim=1)
    assert (largest == 448.0).double().mean() > 0.85  # a planted byte may have hit the largest of a vector
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
    path = tmp_path / "case.safetensors"
    built().save(path)
    with safe_open(path, framework="pt") as file:
        facts, good = file.metadata(), {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (no mapping)
    faults = {
        "dtype": good | {"starts": good["starts"].long()},
        "shape": good | {"weights": good["weights"][:, :-1].contiguous()},
        "rank": good | {"kv": good["kv"][None]},
        "unknown": good | {"extra": good["q"].clone()},
        "missing": {name: tensor for name, tensor in good.items() if name != "ends"},
    }
    for tensors in faults.values():
        save_file(tensors, path, facts)
        with pytest.raises(ValueError, match=r"must be|holds tensors"):
            Inputs.load(path)
    without = {name: fact for name, fact in facts.items() if name != "kv_encoding"}
    for wrong in (
        None,
        facts | {"format": "logits-parity inputs 2"},
        facts | {"q_encoding": "e5m2"},
        facts | {"x": "y"},
        without,
    ):
        save_file(good, path, wrong)
        with pytest.raises(ValueError, match=r"metadata|not a valid Encoding"):
            Inputs.load(path)
    for content in (b"", b"not a tensor file", b"\xff" * 100):
        path.write_bytes(content)
        with pytest.raises(ValueError, match="not a safetensors file"):
            Inputs.load(path)
    with pytest.raises(OSError, match="No such file"):
        Inputs.load(tmp_path / "missing")


def test_bytes_at_the_edges_of_the_fn_patch_come_to_every_channel() -> None:
    inputs = built(n=1000, kv_encoding=Encoding.FN)
    for byte in (0x80, 0x81, 0x82, 0x84, 0x88, 0x90, 0xA0, 0xC0):
        assert (inputs.kv == byte).any(dim=0).all(), hex(byte)


def test_negative_rows_have_no_positive_product() -> None:
    inputs = built(distribution="negative")
    products = torch.einsum("mhd,nd->mhn", decode(inputs.q, Encoding.FN), decode(inputs.kv, Encoding.FNUZ))
    positive = (products > 0).flatten(1).any(dim=1).tolist()
    assert positive == [False, True, False, True, False]
    assert (products[0] < 0).any()


def test_near_ties_hold_few_keys_and_scales_a_few_ulps_apart() -> None:
    inputs = built(distribution="near-ties", n=400, window="full")
    keys = {tuple(key) for key in inputs.kv.tolist()}
    assert 2 <= len(keys) <= 8
    same = inputs.kv_scales[(inputs.kv == inputs.kv[0]).all(dim=1)]
    assert len(set(same.tolist())) > 8 and float(same.max() / same.min()) < 1 + 2.0**-18


@pytest.mark.parametrize("encoding", Encoding)
def test_saturated_and_subnormal_bytes(encoding: Encoding) -> None:
    saturated = decode(built(distribution="saturated", q_encoding=encoding).q, encoding)
    assert set(saturated.flatten().tolist()) == {encoding.max, -encoding.max}
    subnormal = decode(built(distribution="subnormal", q_encoding=encoding).q, encoding).abs()
    least = 2.0 ** (encoding.smallest_exponent - 3)
    assert set(subnormal.flatten().tolist()) == {least * step for step in range(1, 8)}


@pytest.mark.parametrize(("m", "n"), [(5, 40), (70, 9), (2, 70000)])
def test_position_says_row_and_token(m: int, n: int) -> None:
    inputs = built(distribution="position", m=m, n=n, window="full")
    number, row = torch.arange(1, n + 1).double(), torch.arange(m).double() % 63 + 1
    assert torch.equal(reference_logits(inputs), number[None] + row[:, None] / 64)


def test_position_needs_room() -> None:
    with pytest.raises(ValueError, match="fewer than 262144 tokens"):
        built(distribution="position", n=8**6)


def test_edges_and_narrow_windows() -> None:
    spans = windows("edges", 110, 520)
    assert {start for start, _ in spans} == {0, 1, 63, 64, 65, 127, 128, 129, 255, 256, 257}
    assert {end - start for start, end in spans} == {1, 63, 64, 65, 127, 128, 129, 255, 256, 257}
    narrow = windows("narrow", 131, 5000)
    assert {end - start for start, end in narrow} == set(range(1, 131))
    assert narrow[0][0] == 0 and narrow[-1][1] == 5000 and all(start >= 0 and end <= 5000 for start, end in narrow)
    assert windows("narrow", 1, 7) == [(0, 1)]
