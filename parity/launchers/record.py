# SPDX-License-Identifier: Apache-2.0
"""The record of one wrapper call: every allocation that was alive in it, every launch it made."""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from parity.gfx942 import Allocation, Kernel, LaunchReport, launch

Dims = tuple[int, int, int]


@dataclass(frozen=True)
class LaunchRecord:
    """One launch: kernel symbol, SHA-256 of its code object, grid, block, and what was executed."""

    symbol: str
    sha256: str
    grid: Dims
    block: Dims
    report: LaunchReport


class CallRecord(TorchDispatchMode):
    """While active, remembers each tensor storage that torch touches and executes the launches it is given.

    A storage stays a valid target of the kernel only while something keeps it alive: a dangling pointer is out of bounds here.
    `failure` holds what a launch raised: host code between the wrapper and the launch is C and cannot carry a Python exception.
    """

    def __init__(self, tensors: dict[str, torch.Tensor], *, earlier: CallRecord | None = None) -> None:
        super().__init__()
        self.launches: list[LaunchRecord] = []
        self.failure: BaseException | None = None
        # what an earlier call left alive (a wrapper may keep a workspace) is still memory of the device
        self._storages: dict[int, tuple[weakref.ref[Any], str]] = dict(earlier._storages) if earlier else {}
        for name, tensor in tensors.items():
            self._remember(tensor, name)

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = function(*args, **(kwargs or {}))
        for leaves, role in ((tree_leaves(result), "result"), (tree_leaves((args, kwargs)), "operand")):
            for leaf in leaves:
                if isinstance(leaf, torch.Tensor):
                    self._remember(leaf, f"{function} {role}")
        return result

    def _remember(self, tensor: torch.Tensor, name: str) -> None:
        storage = tensor.untyped_storage()
        if storage.nbytes() and storage.data_ptr() not in self._live():
            self._storages[storage.data_ptr()] = (weakref.ref(storage), name)

    def _live(self) -> dict[int, tuple[torch.UntypedStorage, str]]:
        alive = {}
        for address, (reference, name) in self._storages.items():
            storage = reference()
            if storage is not None:
                alive[address] = (storage, name)
        return alive

    def wrote(self, tensor: torch.Tensor) -> bool:
        """Whether a launch of this call stored to the tensor's storage."""
        return any(tensor.untyped_storage().data_ptr() in launch.report.written for launch in self.launches)

    def launch(
        self, kernel: Kernel, arguments: Sequence[bytes], grid: Dims, block: Dims, *, dynamic_lds: int = 0
    ) -> None:
        """Execute one launch on the live storages. What it raises is also kept in `failure`."""
        memory: Iterable[Allocation] = [
            Allocation(name, address, storage.nbytes(), storage) for address, (storage, name) in self._live().items()
        ]
        report = launch(kernel, arguments, grid, block, memory, dynamic_lds=dynamic_lds)
        self.launches.append(LaunchRecord(kernel.name, kernel.sha256, grid, block, report))
