# SPDX-License-Identifier: Apache-2.0
"""The same launch again and again from the same memory: in shuffled orders, and with approximate results moved."""

from __future__ import annotations

import ctypes
from collections.abc import Iterable, Sequence

import numpy as np

from parity.gfx942.code_object import Kernel
from parity.gfx942.faults import ExecutionFault
from parity.gfx942.launch import Dims, LaunchReport, launch, program_for
from parity.gfx942.memory import Allocation, sorted_allocations
from parity.gfx942.records import Precision


def check_schedules(
    kernel: Kernel,
    arguments: Sequence[bytes],
    grid: Dims,
    block: Dims,
    memory: Iterable[Allocation],
    *,
    dynamic_lds: int = 0,
    orders: int = 8,
) -> LaunchReport:
    """Run in order, then in `orders` shuffled orders of workgroups and waves, each time from the same memory.

    Memory ends as the run in order leaves it; its report is returned. Raises ExecutionFault "schedule-dependent", naming
    allocation and byte, when a shuffled run leaves other bits, and whatever launch() raises.
    """
    allocations = sorted_allocations(memory)
    before = _snapshot(allocations)
    report = launch(kernel, arguments, grid, block, allocations, dynamic_lds=dynamic_lds)
    after = _snapshot(allocations)
    for seed in range(orders):
        _restore(allocations, before)
        launch(kernel, arguments, grid, block, allocations, dynamic_lds=dynamic_lds, schedule=seed)
        for allocation, expected, actual in zip(allocations, after, _snapshot(allocations), strict=True):
            if not np.array_equal(expected[0], actual[0]):
                at = int(np.argmax(expected[0] != actual[0]))
                detail = f"byte {at} of {allocation.name} is {actual[0][at]:#04x} in shuffled order {seed}, {expected[0][at]:#04x} in order"
                fault = ExecutionFault(
                    "schedule-dependent", detail, address=allocation.address + at, allocation=allocation.name
                )
                fault.kernel = kernel.name
                raise fault
    _restore(allocations, after)
    return report


def launch_and_move(
    kernel: Kernel,
    arguments: Sequence[bytes],
    grid: Dims,
    block: Dims,
    memory: Iterable[Allocation],
    *,
    dynamic_lds: int = 0,
    runs: int = 4,
) -> tuple[LaunchReport, bool | None]:
    """launch(), then, if approximate instructions ran (v_rcp_f32 and the like), again with every such result moved at random by up
    to its error bound of 1 ulp.

    The second value is None when none ran, else whether memory ended otherwise in one of `runs` moved runs. False means that no
    approximate value reached an output, as in an integer division that corrects itself. Memory ends as the unmoved run leaves it.
    """
    allocations = sorted_allocations(memory)
    may = any(step.fidelity == Precision.APPROXIMATE for step in program_for(kernel).steps)
    before = _snapshot(allocations) if may else []
    report = launch(kernel, arguments, grid, block, allocations, dynamic_lds=dynamic_lds)
    if report.fidelity.approximate == 0:
        return report, None
    after, shows = _snapshot(allocations), False
    for seed in range(runs):
        _restore(allocations, before)
        launch(kernel, arguments, grid, block, allocations, dynamic_lds=dynamic_lds, nudge=seed)
        shows |= any(not np.array_equal(x[0], y[0]) for x, y in zip(after, _snapshot(allocations), strict=True))
    _restore(allocations, after)
    return report, shows


Snapshot = list[tuple[np.ndarray, np.ndarray | None]]


def _bytes(allocation: Allocation) -> np.ndarray:
    return np.ctypeslib.as_array((ctypes.c_uint8 * allocation.size).from_address(allocation.address))


def _snapshot(allocations: list[Allocation]) -> Snapshot:
    return [(_bytes(part).copy(), None if part.undefined is None else part.undefined.copy()) for part in allocations]


def _restore(allocations: list[Allocation], saved: Snapshot) -> None:
    for allocation, (data, undefined) in zip(allocations, saved, strict=True):
        _bytes(allocation)[:] = data
        if allocation.undefined is not None and undefined is not None:
            allocation.undefined[:] = undefined
