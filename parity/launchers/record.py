# SPDX-License-Identifier: Apache-2.0
"""The record of one wrapper call: every allocation that was alive in it, every launch it made."""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from parity.gfx942 import Allocation, Kernel, LaunchReport, examine

Dims = tuple[int, int, int]
# Operators that give memory which nobody has written yet.
_EMPTY = {f"aten::{name}" for name in ("empty", "empty_strided", "empty_like", "new_empty", "new_empty_strided")}


@dataclass(frozen=True)
class LaunchRecord:
    """One launch: kernel symbol, SHA-256 of its code object, grid, block, what was executed, and whether an approximate value
    (v_rcp_f32 and the like) reached memory: None when there was none, else found by moving each by its error bound. `stream`: the handle it was launched on."""

    symbol: str
    sha256: str
    grid: Dims
    block: Dims
    report: LaunchReport
    approximation_shows: bool | None = None
    stream: int = 0


@dataclass(frozen=True)
class _Storage:
    reference: weakref.ref[Any]
    allocation: Allocation


class CallRecord(TorchDispatchMode):
    """While active, remembers each tensor storage that torch touches and executes the launches it is given.

    A storage stays a valid target of the kernel only while something keeps it alive: a dangling pointer is out of bounds here.
    What torch.empty and its like gave counts as unwritten until torch or a kernel writes to it.
    `failure` holds what a launch raised: host code between the wrapper and the launch is C and cannot carry a Python exception.
    """

    def __init__(self, tensors: dict[str, torch.Tensor], *, earlier: CallRecord | None = None) -> None:
        super().__init__()
        self.launches: list[LaunchRecord] = []
        self.failure: BaseException | None = None
        # what an earlier call left alive (a wrapper may keep a workspace) is still memory of the device
        self._storages: dict[int, _Storage] = dict(earlier._storages) if earlier else {}
        self._seeds: int = earlier._seeds if earlier else 0
        for name, tensor in tensors.items():
            self._remember(tensor, name)

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = function(*args, **(kwargs or {}))
        empty = function._schema.name in _EMPTY
        for leaf in tree_leaves((args, kwargs)):
            if isinstance(leaf, torch.Tensor):
                self._remember(leaf, f"{function} operand")
        for leaf in tree_leaves(result):
            if isinstance(leaf, torch.Tensor):
                self._remember(leaf, f"{function} result", initialised=not empty)
        if not empty:
            self._note_writes(function, args, kwargs or {})
        return result

    def _note_writes(self, function: Any, args: Any, kwargs: dict[str, Any]) -> None:
        """Storages that an operator writes to (in place, or through out=) count as written, as a whole."""
        for position, argument in enumerate(function._schema.arguments):
            if argument.alias_info is not None and argument.alias_info.is_write:
                given = kwargs.get(argument.name, args[position] if position < len(args) else None)
                for leaf in tree_leaves(given):
                    known = self._known(leaf) if isinstance(leaf, torch.Tensor) else None
                    if known is not None and known.undefined is not None:
                        known.undefined[:] = 0

    def _remember(self, tensor: torch.Tensor, name: str, *, initialised: bool = True) -> None:
        storage = tensor.untyped_storage()
        # a storage without memory (device "meta") has size and no address
        if storage.nbytes() and storage.data_ptr() and storage.data_ptr() not in self._live():
            allocation = Allocation(name, storage.data_ptr(), storage.nbytes(), initialised=initialised)
            self._storages[storage.data_ptr()] = _Storage(weakref.ref(storage), allocation)

    def _live(self) -> dict[int, Allocation]:
        """Allocations whose storage is alive and has not been resized, by address."""
        alive = {}
        for address, known in self._storages.items():
            storage = known.reference()
            if storage is not None and storage.data_ptr() == address and storage.nbytes() == known.allocation.size:
                alive[address] = known.allocation
        return alive

    def _known(self, tensor: torch.Tensor) -> Allocation | None:
        return self._live().get(tensor.untyped_storage().data_ptr())

    def wrote(self, tensor: torch.Tensor) -> bool:
        """Whether a launch of this call stored to the tensor's storage."""
        return any(tensor.untyped_storage().data_ptr() in launch.report.written for launch in self.launches)

    def unwritten(self, tensor: torch.Tensor) -> int:
        """How many elements of a tensor (4 bytes each) have bytes that nobody wrote."""
        mask = self.unwritten_mask(tensor)
        return 0 if mask is None else int(mask.count_nonzero())

    def unwritten_mask(self, tensor: torch.Tensor) -> torch.Tensor | None:
        """bool like the tensor: which elements (4 bytes each) have bytes that nobody wrote; None where that is not known."""
        known = self._known(tensor)
        if known is None or known.undefined is None or tensor.element_size() != 4:
            return None
        undefined = torch.from_numpy(known.undefined[: known.size // 4 * 4]).view(torch.int32)
        return undefined.as_strided(tensor.size(), tensor.stride(), tensor.storage_offset()) != 0

    def launch(
        self,
        kernel: Kernel,
        arguments: Sequence[bytes],
        grid: Dims,
        block: Dims,
        *,
        dynamic_lds: int = 0,
        stream: int | None = None,
    ) -> None:
        """Execute one launch on the live storages. Raises what launch() does; launchers keep it in `failure`."""
        # Held until the launch is over: what only a cycle of an earlier error's frames keeps alive can be collected in the middle of it,
        # and its memory be in other use (the engine's own, say) when a repetition restores it.
        held = [known.reference() for known in self._storages.values()]
        memory = list(self._live().values())
        seed = self._seeds = self._seeds + 1  # another shuffled order for every launch
        found = examine(kernel, arguments, grid, block, memory, dynamic_lds=dynamic_lds, schedules=[seed])
        record = LaunchRecord(
            kernel.name, kernel.sha256, grid, block, found.report, found.approximation_shows, stream or 0
        )
        self.launches.append(record)
        del held
