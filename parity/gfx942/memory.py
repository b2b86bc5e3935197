# SPDX-License-Identifier: Apache-2.0
"""Global memory: the list of allocations a kernel may touch, and nothing else.

Addresses are the host addresses of the buffers given, so that pointers which a launcher packed into the kernel's arguments
need no translation. Every access of every active lane must lie wholly inside one allocation.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from parity.gfx942.faults import ExecutionFault


@dataclass(frozen=True)
class Allocation:
    """`size` bytes at host address `address`; `owner` keeps the buffer alive; `name` appears in faults."""

    name: str
    address: int
    size: int
    owner: object = None

    @classmethod
    def of_array(cls, name: str, array: np.ndarray) -> Allocation:
        """The allocation of a C-contiguous numpy array."""
        if not array.flags.c_contiguous:
            raise ValueError(f"{name}: the array is not C-contiguous")
        return cls(name, array.ctypes.data, array.nbytes, array)


class Memory:
    """A set of disjoint allocations. Empty ones are dropped; overlapping ones raise ValueError."""

    def __init__(self, allocations: Iterable[Allocation]) -> None:
        unique = {(part.address, part.size): part for part in allocations if part.size}
        self.allocations = sorted(unique.values(), key=lambda part: part.address)
        for lower, upper in zip(self.allocations, self.allocations[1:], strict=False):
            if lower.address + lower.size > upper.address:
                raise ValueError(f"allocations {lower.name} and {upper.name} overlap")
        self.written: set[int] = set()  # addresses of the allocations that a store reached
        self._starts = np.array([part.address for part in self.allocations], np.uint64)
        self._sizes = np.array([part.size for part in self.allocations], np.int64)
        self._bytes = [_view(part) for part in self.allocations]
        # The dword view starts at the first aligned address; torch and numpy align their buffers, so offset 0 in practice.
        self._words = [raw[: raw.size & ~3].view(np.uint32) if part.address % 4 == 0 else None
                       for part, raw in zip(self.allocations, self._bytes, strict=True)]  # fmt: skip

    def read(self, addresses: np.ndarray, size: int) -> np.ndarray:
        """uint8 [n, size] at uint64 addresses [n]. Raises ExecutionFault whose `lane` is the index of the first bad one."""
        result = np.empty((addresses.size, size), np.uint8)
        for index, chosen, offsets in self._locate(addresses, size, "read"):
            words = self._words[index]
            if words is not None and size % 4 == 0 and not (offsets & 3).any():
                result.view(np.uint32)[chosen] = words[(offsets >> 2)[:, None] + np.arange(size // 4)]
            else:
                result[chosen] = self._bytes[index][offsets[:, None] + np.arange(size)]
        return result

    def write(self, addresses: np.ndarray, data: np.ndarray) -> None:
        """Store uint8 [n, size] at uint64 addresses [n]. Where lanes write the same byte, the highest lane's stays."""
        size = data.shape[1]
        for index, chosen, offsets in self._locate(addresses, size, "write"):
            self.written.add(self.allocations[index].address)
            words = self._words[index]
            if words is not None and size % 4 == 0 and not (offsets & 3).any():
                words[(offsets >> 2)[:, None] + np.arange(size // 4)] = np.ascontiguousarray(data[chosen]).view(
                    np.uint32
                )
            else:
                self._bytes[index][offsets[:, None] + np.arange(size)] = data[chosen]

    def _locate(self, addresses: np.ndarray, size: int, verb: str) -> list[tuple[int, slice | np.ndarray, np.ndarray]]:
        """(allocation index, which addresses, byte offsets) groups that cover all addresses, or a fault."""
        if addresses.size == 0:
            return []
        if not self.allocations:
            raise ExecutionFault("out-of-bounds", f"{verb} of {size} bytes, but the kernel has no memory", lane=0)
        owners = np.searchsorted(self._starts, addresses, side="right") - 1
        offsets = (addresses - self._starts[owners]).astype(np.int64)  # owners -1 wraps and is caught below
        bad = (owners < 0) | (offsets < 0) | (offsets + size > self._sizes[owners])
        if bad.any():
            first = int(np.argmax(bad))
            address = int(addresses[first])
            raise ExecutionFault("out-of-bounds", self._describe(address, size, verb), lane=first, address=address)
        if (owners == owners[0]).all():
            return [(int(owners[0]), slice(None), offsets)]
        groups = [(int(owner), np.flatnonzero(owners == owner)) for owner in np.unique(owners)]
        return [(owner, chosen, offsets[chosen]) for owner, chosen in groups]

    def _describe(self, address: int, size: int, verb: str) -> str:
        nearest = min(
            self.allocations, key=lambda part: max(part.address - address, address + size - part.address - part.size)
        )
        return f"{verb} of {size} bytes at offset {address - nearest.address} of {nearest.name} ({nearest.size} bytes)"


def _view(allocation: Allocation) -> np.ndarray:
    buffer = (ctypes.c_uint8 * allocation.size).from_address(allocation.address)
    return np.ctypeslib.as_array(buffer)
