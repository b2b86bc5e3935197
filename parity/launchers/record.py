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
from parity.gfx942.mutation import Mutation, mutated

Dims = tuple[int, int, int]
STREAM = 0x5EA  # the current stream in the executor: a handle that is nobody's, so that a launch elsewhere shows
# Operators that give memory which nobody has written yet.
_EMPTY = {f"aten::{name}" for name in ("empty", "empty_strided", "empty_like", "new_empty", "new_empty_strided")}


@dataclass(frozen=True)
class LaunchRecord:
    """One launch: kernel symbol, SHA-256 of its code object, grid, block, what was executed, and whether an approximate value
    (v_rcp_f32 and the like) reached memory: None when there was none, else found by moving each by its error bound. `stream`: the handle it was launched on.
    `mutation`: None; or the one changed instruction of a mutant, whose sha256 is then no code object's: no evidence about the kernel."""

    symbol: str
    sha256: str
    grid: Dims
    block: Dims
    report: LaunchReport
    approximation_shows: bool | None = None
    stream: int = 0
    mutation: str | None = None


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

    def __init__(
        self, tensors: dict[str, torch.Tensor], *, earlier: CallRecord | None = None, mutation: Mutation | None = None
    ) -> None:
        super().__init__()
        self._mutation = mutation
        self.kernels: dict[tuple[str, str], Kernel] = {}  # launched, by SHA-256 and symbol, as they were given
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
        if storage.nbytes() and storage.data_ptr() and storage.data_ptr() not in self.live():
            allocation = Allocation(name, storage.data_ptr(), storage.nbytes(), initialised=initialised)
            self._storages[storage.data_ptr()] = _Storage(weakref.ref(storage), allocation)

    def live(self) -> dict[int, tuple[Any, Allocation]]:
        """Storage and allocation, by address, of those whose storage is alive and has not been resized. Whoever touches the memory keeps
        the storages meanwhile: what only a cycle of references holds goes whenever Python collects it."""
        alive = {}
        for address, known in self._storages.items():
            storage = known.reference()
            if storage is not None and storage.data_ptr() == address and storage.nbytes() == known.allocation.size:
                alive[address] = (storage, known.allocation)
        return alive

    def _known(self, tensor: torch.Tensor) -> Allocation | None:
        found = self.live().get(tensor.untyped_storage().data_ptr())
        return None if found is None else found[1]

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
        """Execute one launch on the live storages, of the mutant where the kernel is the one that `mutation` applies to. Raises what
        launch() does; launchers keep it in `failure`."""
        self.kernels[kernel.sha256, kernel.name] = kernel
        note = None
        if self._mutation and (kernel.sha256, kernel.name) == (self._mutation.sha256, self._mutation.symbol):
            kernel, note = mutated(kernel, self._mutation), str(self._mutation)
        # What is listed must outlive the launch: tensors in a cycle that waits for the garbage collector are alive, and it may come.
        alive = self.live()
        memory = [allocation for _, allocation in alive.values()]
        seed = self._seeds = self._seeds + 1  # another shuffled order for every launch
        found = examine(kernel, arguments, grid, block, memory, dynamic_lds=dynamic_lds, schedules=[seed])
        record = LaunchRecord(
            kernel.name, kernel.sha256, grid, block, found.report, found.approximation_shows, stream or 0, note
        )
        self.launches.append(record)
