# SPDX-License-Identifier: Apache-2.0
"""How an arm's process calls a wrapper on its device, and what may go wrong there that is no exception of the wrapper's own."""

from __future__ import annotations

import contextlib
import os
import types
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch

from parity.devices import gpu_error
from parity.kernels.arguments import ROW_ALIGN
from parity.launchers.record import STREAM, CallRecord
from parity.loading import Wrapper

Result = tuple[torch.Tensor, list[dict[str, Any]]]

OTHER_STREAM = 0x6EA  # what a caller gives as `stream=`, in the executor


class NoLaunch(Exception):
    """A wrapper that answers without its kernel proves nothing about the kernel, however right the answer."""


class Unwritten(Exception):
    """Part of the logits is what the memory happened to hold."""


class KernelFault(Exception):
    """A GPU kernel touched memory that is not its own, or the like."""


class DeviceLost(Exception):
    """The GPU does not answer any more. Says nothing about the kernel."""


def of_runtime(error: RuntimeError) -> Exception:
    """What a RuntimeError of torch means: a fault of the kernel, a lost GPU, or (any other) itself."""
    line = gpu_error(error)
    if not line:
        return error
    faults = ("illegal memory access", "illegal address", "misaligned address", "illegal instruction", "launch failure")
    return KernelFault(line) if any(fault in line for fault in faults) else DeviceLost(line)


@dataclass(frozen=True)
class Seen:
    """What one call gave: the result, the stream of each launch ([] where launches are not seen), and bool [M,N], which elements
    nobody wrote (None where that is not seen)."""

    logits: Any
    streams: list[int]
    unwritten: torch.Tensor | None


class ExecutorDevice:
    """Runs wrappers on CPU tensors; their launches go to the gfx942 executor."""

    where, gfx = "executor", "gfx942"

    def __init__(self, kernel: str) -> None:
        self._call: Any = None
        self.torch_device = "cpu"
        self.mutation: Any = None  # a parity.gfx942.mutation.Mutation of what the next calls launch
        if kernel == "triton":
            from parity.launchers import triton_

            triton_.install(lambda: self._call)
        else:
            from parity.launchers import flydsl_

            os.environ["ROCM_PATH"] = str(flydsl_.linker_folder(Path(os.environ["PARITY_ARM_FOLDER"])))
            flydsl_.install(lambda: self._call)
        torch.cuda.current_stream = lambda device=None: types.SimpleNamespace(cuda_stream=STREAM)  # type: ignore
        torch.cuda.device = lambda device: contextlib.nullcontext()  # type: ignore

    def run(self, wrapper: Wrapper, tensors: dict[str, torch.Tensor], options: dict[str, Any]) -> Result:
        """Logits and launches of one call. Raises NoLaunch unless a launch wrote to the memory that is returned."""
        logits = self._called(wrapper, tensors, tuple(tensors.values()), options)
        if not self._call.launches:
            raise NoLaunch(
                "the wrapper returned logits and launched no kernel: a fallback, or a launch that went elsewhere"
            )
        if not self._call.wrote(logits):
            raise NoLaunch("the wrapper launched a kernel, but returned logits in memory that no launch wrote")
        unwritten = self._call.unwritten(logits)
        if unwritten:
            raise Unwritten(f"{unwritten:,} of {logits.numel():,} logits were never written")
        return logits, [asdict(launch) for launch in self._call.launches]

    def observe(
        self, wrapper: Wrapper, tensors: dict[str, torch.Tensor], arguments: tuple[Any, ...], options: dict[str, Any]
    ) -> Seen:
        """One call, legal or not, of which nothing is demanded; `tensors` are those among its arguments."""
        logits = self._called(wrapper, tensors, arguments, options)
        mask = self._call.unwritten_mask(logits) if isinstance(logits, torch.Tensor) else None
        return Seen(logits, [launch.stream for launch in self._call.launches], mask)

    def other_stream(self) -> Any:
        """A stream that is not the current one."""
        return types.SimpleNamespace(cuda_stream=OTHER_STREAM)

    def _called(
        self, wrapper: Wrapper, tensors: dict[str, torch.Tensor], arguments: tuple[Any, ...], options: dict[str, Any]
    ) -> torch.Tensor:
        self._call = CallRecord(tensors, earlier=self._call, mutation=self.mutation)
        with self._call:
            logits = wrapper(*arguments, **options)
        failure, self._call.failure = self._call.failure, None
        if failure is not None:
            try:
                raise failure
            finally:
                del failure  # else its traceback and this frame hold each other, and with them all tensors of the call
        return logits

    def code(self) -> list[dict[str, Any]]:
        """Of each kernel that the last call launched, what mutants are drawn from (parity.gfx942.mutation.Code)."""
        from parity.gfx942.mutation import code_of

        return [code_of(kernel).to_json() for kernel in self._call.kernels.values()]


class GpuDevice:
    """Runs wrappers on the first visible GPU (its number was chosen before this process began). It sees no launches.

    A gfx942 GPU through ROCm, or for the Triton kernel a CUDA GPU.
    """

    def __init__(self, kind: str) -> None:
        properties = torch.cuda.get_device_properties(0)
        self.gfx = (
            properties.gcnArchName.partition(":")[0] if kind == "gpu" else f"sm_{properties.major}{properties.minor}"
        )
        self.where = f"{kind} {self.gfx} ({properties.name})"
        self.torch_device = "cuda:0"

    def run(self, wrapper: Wrapper, tensors: dict[str, torch.Tensor], options: dict[str, Any]) -> Result:
        """Logits, on the GPU, and no launches. Raises KernelFault or DeviceLost for what the runtime says of the GPU."""
        try:
            moved = [tensor.to("cuda:0") for tensor in tensors.values()]
            self._poison(moved)
            logits = wrapper(*moved, **options)
            torch.cuda.synchronize()
            for tensor, on_gpu in zip(tensors.values(), moved, strict=True):
                tensor.view(torch.uint8).copy_(
                    on_gpu.view(torch.uint8)
                )  # so that a modified input shows, as on the executor
        except RuntimeError as error:
            raise of_runtime(error) from error
        return logits, []

    def observe(
        self, wrapper: Wrapper, tensors: dict[str, torch.Tensor], arguments: tuple[Any, ...], options: dict[str, Any]
    ) -> Seen:
        """One call, legal or not, on tensors that are on the GPU already."""
        try:
            logits = wrapper(*arguments, **options)
            torch.cuda.synchronize()
        except RuntimeError as error:
            raise of_runtime(error) from error
        return Seen(logits, [], None)

    def other_stream(self) -> Any:
        """A stream that is not the current one, after all work that the current one has."""
        torch.cuda.synchronize()
        return torch.cuda.Stream()

    def _poison(self, moved: list[torch.Tensor]) -> None:
        """Leave NaN in the memory that the wrapper's torch.empty will get: torch gives a freed block to the next tensor of its size."""
        rows, columns = moved[0].shape[0], -(-moved[1].shape[0] // ROW_ALIGN) * ROW_ALIGN
        torch.full((rows, columns), float("nan"), device="cuda:0")
