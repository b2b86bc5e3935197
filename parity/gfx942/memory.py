# SPDX-License-Identifier: Apache-2.0
"""Global memory: the list of allocations a kernel may touch, and nothing else.

Addresses are the host addresses of the buffers given, so that pointers which a launcher packed into the kernel's arguments
need no translation. Every access of every active lane must lie wholly inside one allocation.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from parity.gfx942.records import Region


@dataclass(frozen=True)
class Allocation:
    """`size` bytes at host address `address`; `owner` keeps the buffer alive; `name` appears in faults.

    initialised=False: nobody has written these bytes yet. What stores write counts as written from then on, also in later
    launches with the same Allocation; a kernel that uses another byte of it is at fault.
    """

    name: str
    address: int
    size: int
    owner: object = None
    initialised: bool = True
    # one mask byte per byte: bits that nobody wrote
    undefined: np.ndarray | None = field(init=False, repr=False, compare=False, default=None)

    def __post_init__(self) -> None:
        if not self.initialised:
            object.__setattr__(self, "undefined", np.full(self.size, 0xFF, np.uint8))

    @classmethod
    def of_array(cls, name: str, array: np.ndarray, *, initialised: bool = True) -> Allocation:
        """The allocation of a C-contiguous numpy array."""
        if not array.flags.c_contiguous:
            raise ValueError(f"{name}: the array is not C-contiguous")
        return cls(name, array.ctypes.data, array.nbytes, array, initialised)


def sorted_allocations(allocations: Iterable[Allocation]) -> list[Allocation]:
    """By address, without empty and repeated ones. Raises ValueError when two overlap."""
    unique = {(part.address, part.size): part for part in allocations if part.size}
    ordered = sorted(unique.values(), key=lambda part: part.address)
    for lower, upper in pairwise(ordered):
        if lower.address + lower.size > upper.address:
            raise ValueError(f"allocations {lower.name} and {upper.name} overlap")
    return ordered


def region_of(allocation: Allocation) -> Region:
    """The engine's view of an allocation."""
    undefined = None if allocation.undefined is None else allocation.undefined.ctypes.data
    return Region(allocation.address, allocation.size, allocation.address, undefined, 0)


def nearest(allocations: list[Allocation], address: int, size: int) -> Allocation | None:
    """The allocation that an access misses by the fewest bytes."""
    if not allocations:
        return None
    return min(allocations, key=lambda part: max(part.address - address, address + size - part.address - part.size))
