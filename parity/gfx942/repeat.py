# SPDX-License-Identifier: Apache-2.0
"""The same launch again and again from the same memory: in shuffled orders, and with approximate results moved."""

from __future__ import annotations

import ctypes
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from parity.gfx942.code_object import Kernel
from parity.gfx942.faults import ExecutionFault
from parity.gfx942.launch import Dims, LaunchReport, launch
from parity.gfx942.memory import Allocation, sorted_allocations

Snapshot = list[tuple[np.ndarray, np.ndarray | None]]


@dataclass(frozen=True)
class Examined:
    """report: of the run in order. approximation_shows: whether memory ended otherwise when each approximate result (v_rcp_f32 and
    the like) was moved by up to its error bound of 1 ulp; None when none ran. False means that no approximate value reached an
    output, as in an integer division that corrects itself."""

    report: LaunchReport
    approximation_shows: bool | None


def examine(
    kernel: Kernel,
    arguments: Sequence[bytes],
    grid: Dims,
    block: Dims,
    memory: Iterable[Allocation],
    *,
    dynamic_lds: int = 0,
    schedules: Sequence[int] = (0,),
    moves: int = 4,
) -> Examined:
    """Run in order, then once in the shuffled order of each seed in `schedules`, then, if approximate instructions ran, `moves` times
    with their results moved; each time from the same memory, which ends as the run in order leaves it.

    Raises ExecutionFault "schedule-dependent", naming allocation and byte, when a shuffled run leaves other bits, and whatever
    launch() raises.
    """
    allocations = sorted_allocations(memory)
    before = _snapshot(allocations)
    report = launch(kernel, arguments, grid, block, allocations, dynamic_lds=dynamic_lds)
    after = _snapshot(allocations)
    for seed in schedules:
        _restore(allocations, before)
        launch(kernel, arguments, grid, block, allocations, dynamic_lds=dynamic_lds, schedule=seed)
        _compare(kernel, allocations, after, seed)
    shows: bool | None = None
    for seed in range(moves if report.fidelity.approximate else 0):
        _restore(allocations, before)
        launch(kernel, arguments, grid, block, allocations, dynamic_lds=dynamic_lds, nudge=seed)
        moved = any(not np.array_equal(x[0], y[0]) for x, y in zip(after, _snapshot(allocations), strict=True))
        shows = bool(shows) or moved
    _restore(allocations, after)
    return Examined(report, shows)


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
    """examine() with `orders` shuffled orders and nothing moved; the report of the run in order."""
    seeds = range(orders)
    return examine(kernel, arguments, grid, block, memory, dynamic_lds=dynamic_lds, schedules=seeds, moves=0).report


def _compare(kernel: Kernel, allocations: list[Allocation], after: Snapshot, seed: int) -> None:
    for allocation, expected, actual in zip(allocations, after, _snapshot(allocations), strict=True):
        if not np.array_equal(expected[0], actual[0]):
            at = int(np.argmax(expected[0] != actual[0]))
            detail = f"byte {at} of {allocation.name} is {actual[0][at]:#04x} in shuffled order {seed}, {expected[0][at]:#04x} in order"
            fault = ExecutionFault(
                "schedule-dependent", detail, address=allocation.address + at, allocation=allocation.name
            )
            fault.kernel = kernel.name
            raise fault


def _bytes(allocation: Allocation) -> np.ndarray:
    return np.ctypeslib.as_array((ctypes.c_uint8 * allocation.size).from_address(allocation.address))


def _snapshot(allocations: list[Allocation]) -> Snapshot:
    return [(_bytes(part).copy(), None if part.undefined is None else part.undefined.copy()) for part in allocations]


def _restore(allocations: list[Allocation], saved: Snapshot) -> None:
    for allocation, (data, undefined) in zip(allocations, saved, strict=True):
        _bytes(allocation)[:] = data
        if allocation.undefined is not None and undefined is not None:
            allocation.undefined[:] = undefined
