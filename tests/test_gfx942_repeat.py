# SPDX-License-Identifier: Apache-2.0
"""A launch repeated: approximate results moved by their error bound, shuffled orders, memory left as the run in order leaves it."""

from __future__ import annotations

import numpy as np
import pytest

from parity.gfx942 import Allocation, ExecutionFault, Kernel, examine, launch
from tests.gfx942_assembly import pointer
from tests.seeded import compile_opencl, kernels_of

BODIES = {
    "divided": "(__global unsigned* in, __global unsigned* out) { int i = ITEM + 64 * WG; out[i] = in[i] / in[i + 128]; }",
    "reciprocal": "(__global float* in, __global float* out) { int i = ITEM + 64 * WG; out[i] = __builtin_amdgcn_rcpf(in[i]); }",
    "rounded_away": "(__global float* in, __global int* out) { int i = ITEM + 64 * WG; out[i] = (int)(__builtin_amdgcn_rcpf(in[i]) * 0.25f); }",
    "exact": "(__global unsigned* in, __global unsigned* out) { int i = ITEM + 64 * WG; out[i] = in[i] * 3; }",
    "last_one_wins": "(__global unsigned* in, __global unsigned* out) { out[ITEM] = WG; }",
}


@pytest.fixture(scope="module")
def built() -> dict[str, Kernel]:
    code, _ = compile_opencl(BODIES)
    return kernels_of(code, list(BODIES))


def arrays(kind: str) -> tuple[np.ndarray, np.ndarray]:
    generator = np.random.default_rng(4)
    if kind == "divided":
        return generator.integers(1, 2**32, 256, dtype=np.uint32) >> generator.integers(
            0, 20, 256, dtype=np.uint32
        ) | 1, np.zeros(128, np.uint32)
    return generator.uniform(1, 9, 256).astype(np.float32), np.zeros(128, np.uint32)


@pytest.mark.parametrize(
    ("name", "shows"), [("divided", False), ("reciprocal", True), ("rounded_away", False), ("exact", None)]
)
def test_whether_an_approximate_value_reaches_an_output(
    name: str, shows: bool | None, built: dict[str, Kernel]
) -> None:
    given, out = arrays(name)
    memory = [Allocation.of_array("given", given), Allocation.of_array("out", out, initialised=False)]
    found = examine(built[name], [pointer(given), pointer(out)], (2, 1, 1), (64, 1, 1), memory)
    assert found.approximation_shows is shows
    assert (found.report.fidelity.approximate > 0) == (shows is not None)
    if name == "divided":
        assert out.tolist() == (given[:128] // given[128:]).tolist()
    expected = out.copy()
    launch(
        built[name],
        [pointer(given), pointer(out)],
        (2, 1, 1),
        (64, 1, 1),
        [Allocation.of_array("given", given), Allocation.of_array("out", out)],
    )
    assert out.tobytes() == expected.tobytes()  # what was left is the unmoved run's
    assert memory[1].undefined is not None
    assert not memory[1].undefined.any()


def test_moved_results_stay_within_one_ulp(built: dict[str, Kernel]) -> None:
    given, out = arrays("reciprocal")
    seen = set()
    for seed in range(8):
        launch(built["reciprocal"], [pointer(given), pointer(out)], (2, 1, 1), (64, 1, 1),
               [Allocation.of_array("given", given), Allocation.of_array("out", out)], nudge=seed)  # fmt: skip
        nearest = (np.float32(1) / given[:128]).view(np.int32).astype(np.int64)
        moves = out.view(np.int32).astype(np.int64) - nearest
        assert set(np.unique(moves)) <= {-1, 0, 1}
        seen.add(moves.tobytes())
    assert len(seen) == 8  # every seed moves otherwise


def test_an_order_that_shows_is_a_fault_and_the_seed_decides_the_order(built: dict[str, Kernel]) -> None:
    given, out = arrays("exact")
    memory = [Allocation.of_array("given", given), Allocation.of_array("out", out)]
    with pytest.raises(
        ExecutionFault, match=r"schedule-dependent: byte \d+ of out is 0x.. in shuffled order \d+"
    ) as caught:
        examine(
            built["last_one_wins"], [pointer(given), pointer(out)], (9, 1, 1), (64, 1, 1), memory, schedules=range(6)
        )
    assert (caught.value.kind, caught.value.allocation, caught.value.kernel) == (
        "schedule-dependent",
        "out",
        "last_one_wins",
    )
    results = []
    for seed in (1, 1, 2):
        launch(built["last_one_wins"], [pointer(given), pointer(out)], (9, 1, 1), (64, 1, 1), memory, schedule=seed)
        results.append(out[:64].tolist())
    assert results[0] == results[1]
    assert results[0] != results[2]
