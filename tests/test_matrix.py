# SPDX-License-Identifier: Apache-2.0
"""The cases of each depth: what they cover, what they cost, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from parity.cases import PROFILES, Case
from parity.devices import DEPTHS, Device
from parity.distributions import DISTRIBUTIONS
from parity.fp8 import Encoding
from parity.inputs import build_inputs
from parity.matrix import captured_case, case_of, cases_of, chosen_cases, quick_cases, runs_on
from parity.windows import WINDOWS

EXECUTOR, GPU, CUDA = Device("executor"), Device("gpu", 0), Device("cuda", 0)
PAIRS = {(q, kv) for q in Encoding for kv in Encoding}
DRAWN = set(DISTRIBUTIONS) - {"captured"}


def mfma_count(case: Case) -> int:
    """16x16x32 MFMA instructions that a kernel needs for the columns that the case's rows see."""
    inputs = build_inputs(case)
    seen = (inputs.ends.clamp(0, case.n) - inputs.starts.clamp(0, case.n)).clamp(min=0)
    return int((seen / 16).ceil().sum()) * (case.heads // 16) * (case.head_dim // 32)


def test_a_deeper_depth_holds_the_shallower_and_ids_are_unique() -> None:
    quick, full, release = (cases_of(depth) for depth in DEPTHS)
    assert quick == quick_cases() == full[: len(quick)] and full == release[: len(full)]
    assert len(quick) < len(full) < len(release)
    assert len({case.id for case in release}) == len(release)
    assert all(len(case.reason) > 20 for case in release)
    with pytest.raises(ValueError, match="depth is one of quick, full, release"):
        cases_of("thorough")


def test_quick_covers_every_axis() -> None:
    cases = quick_cases()
    assert {(c.heads, c.q_encoding, c.kv_encoding) for c in cases} >= {(h, *pair) for h in (32, 64) for pair in PAIRS}
    assert {case.window for case in cases} == set(WINDOWS) - {"captured"}
    assert {case.distribution for case in cases} == DRAWN
    assert {case.heads for case in cases} == {16, 32, 64, 128} and {case.head_dim for case in cases} == {64, 128}
    assert any(case.n > case.index_topk == 512 for case in cases)
    assert any(case.n > case.index_topk == 2048 for case in cases)
    assert any(case.n > 4096 for case in cases) and any(case.m > 1024 for case in cases)
    assert sum(case.m % 2 for case in cases) >= 3


def test_full_covers_every_axis_with_every_pair() -> None:
    cases = cases_of("full")
    for name, values in (
        ("window", set(WINDOWS) - {"captured"}),
        ("distribution", DRAWN),
        ("heads", {16, 32, 64, 128}),
    ):
        seen = {(getattr(case, name), case.q_encoding, case.kv_encoding) for case in cases}
        assert seen >= {(value, *pair) for value in values for pair in PAIRS}, name
    assert {(case.heads, case.head_dim) for case in cases} == {(h, d) for h in (16, 32, 64, 128) for d in (64, 128)}


@pytest.mark.parametrize("n", [63, 64, 65, 127, 128, 129, 255, 256, 257, 4095, 4096, 4097, 8191, 8192, 8193, 131072])
def test_full_has_each_edge_of_n(n: int) -> None:
    assert any(case.n == n for case in cases_of("full"))


@pytest.mark.parametrize("m", [1, 33, 1024, 1025, 2047, 2048, 2049, 2431, 2433])
def test_full_has_each_edge_of_m(m: int) -> None:
    assert any(case.m == m for case in cases_of("full"))


def test_release_has_whole_chunks_and_results_beyond_31_bits() -> None:
    cases = [case for case in cases_of("release") if case not in cases_of("full")]
    chunks = {(c.heads, c.q_encoding, c.kv_encoding) for c in cases if (c.m, c.n) == (2048, 131072)}
    assert chunks == {(heads, *pair) for heads in (32, 64) for pair in PAIRS}
    assert any(2**31 < 4 * case.m * case.n < 2**32 for case in cases)
    assert len({case.m > 16384 for case in cases if case.m * case.n > 2**31}) == 2  # by rows, and by columns


def test_what_the_executor_is_given_stays_affordable() -> None:
    """1.5 M MFMA/s measured; a case runs six times through each kernel, some orders shuffled."""
    assert sum(mfma_count(case) for case in quick_cases()) < 400_000
    assert max(case.m * case.n for case in cases_of("full")) <= 2**25  # 128 MB of logits


@pytest.mark.parametrize(
    "line",
    ["glm-5 full 2x3 fn.fn", "glm-9 full 2x3 fn.fn gaussian", "glm-5 full 2x3 fn.e5m2 gaussian", "h48-d64 full 2x3 fn.fn gaussian",
     "glm-5 wide 2x3 fn.fn gaussian", "glm-5 full 0x3 fn.fn gaussian"],
)  # fmt: skip
def test_lines_that_are_no_case(line: str) -> None:
    with pytest.raises(ValueError):
        case_of(line, "a line that is wrong")


def test_a_profile_brings_its_sizes() -> None:
    for profile in PROFILES.values():
        case = case_of(f"{profile.name} full 2x3 fn.fnuz gaussian", "sizes of a model")
        assert (case.heads, case.head_dim, case.index_topk) == (profile.heads, profile.head_dim, profile.index_topk)
    assert case_of("h16-d64 full 2x3 fn.fnuz gaussian", "other sizes").index_topk == 2048


def test_cuda_runs_fn_alone_and_the_executor_no_release() -> None:
    runnable = [case for case in quick_cases() if runs_on(case, CUDA)]
    assert runnable and all(case.q_encoding is case.kv_encoding is Encoding.FN for case in runnable)
    assert all(runs_on(case, device) for case in quick_cases() for device in (EXECUTOR, GPU))
    with pytest.raises(ValueError, match="release is for GPUs"):
        chosen_cases("release", [], EXECUTOR)
    assert chosen_cases("release", [], GPU) == cases_of("release")


def captured_file(path: Path, **options: int) -> Path:
    build_inputs(case_of("glm-5 packed 5x70 fn.fnuz gaussian", "to be captured")).save(path, **options)
    return path


def test_captured_inputs_become_a_case(tmp_path: Path) -> None:
    path = captured_file(tmp_path / "step 7.safetensors", index_topk=16)
    *others, case = chosen_cases("quick", [path], EXECUTOR)
    assert tuple(others) == quick_cases() and case == captured_case(path)
    assert (case.m, case.n, case.heads, case.head_dim, case.topk) == (5, 70, 32, 128, 16)
    built = build_inputs(case)
    assert built.sha256 == build_inputs(case_of("glm-5 packed 5x70 fn.fnuz gaussian", "to be captured")).sha256
    assert case.seed == int(built.sha256[:8], 16)


def test_captured_files_are_checked(tmp_path: Path) -> None:
    path = captured_file(tmp_path / "captured", index_topk=16)
    with pytest.raises(ValueError, match="same inputs twice"):
        chosen_cases("quick", [path, path], EXECUTOR)
    case = captured_case(path)
    build_inputs(case_of("glm-5 packed 5x70 fn.fnuz gaussian", "other", seed=3)).save(path, index_topk=16)
    with pytest.raises(ValueError, match="has changed since"):
        build_inputs(case)
    with pytest.raises(ValueError, match="index_topk must be a positive integer, not ''"):
        captured_case(captured_file(tmp_path / "without"))
    with pytest.raises(OSError, match="missing"):
        captured_case(tmp_path / "missing")


def test_seeds_repeat_every_case_with_other_inputs() -> None:
    cases = chosen_cases("quick", [], EXECUTOR, seeds=3)
    assert cases[: len(quick_cases())] == quick_cases() and len(cases) == 3 * len(quick_cases())
    assert {case.seed for case in cases} == {0, 1, 2}
    with pytest.raises(ValueError, match="--seeds=0: at least 1"):
        chosen_cases("quick", [], EXECUTOR, seeds=0)
