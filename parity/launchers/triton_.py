# SPDX-License-Identifier: Apache-2.0
"""A Triton driver whose device is the gfx942 executor.

Triton's extension point for backends: `triton.runtime.driver.set_active(driver)`. Compilation is Triton's own AMD backend for
GPUTarget("hip", "gfx942", 64); `load_binary` receives the linked code object, `Launcher` the grid and the bound arguments.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

import torch
import triton
from triton.backends.compiler import GPUTarget
from triton.backends.driver import DriverBase

from parity.gfx942 import Kernel, Unsupported, load
from parity.launchers.record import STREAM, CallRecord

MI300X_COMPUTE_UNITS = 304  # AMD Instinct MI300X data sheet; only grid heuristics of wrappers look at it
_INTEGER = {
    "i1": "<b",
    "i8": "<b",
    "i16": "<h",
    "i32": "<i",
    "i64": "<q",
    "u1": "<B",
    "u8": "<B",
    "u16": "<H",
    "u32": "<I",
    "u64": "<Q",
}
_FLOAT = {"fp32": "<f", "f32": "<f", "fp64": "<d"}


def install(current: Callable[[], CallRecord]) -> None:
    """Make the executor Triton's active device; launches go to the CallRecord that `current()` gives."""
    triton.runtime.driver.set_active(ExecutorDriver(current))


class Utilities:
    """What the JIT asks of a device: load a code object, describe the device."""

    def __init__(self) -> None:
        self.kernels: list[Kernel] = []

    def load_binary(self, name: str, binary: bytes, shared: int, device: int) -> tuple[None, int, int, int, int]:
        """(module, function handle, registers, spills, largest workgroup). The handle indexes `kernels`."""
        kernel = load(binary, name)
        self.kernels.append(kernel)
        return None, len(self.kernels) - 1, kernel.vgprs, 0, 1024

    def unload_module(self, module: None) -> None:
        """Nothing to free: the code object is a bytes object."""

    def get_device_properties(self, device: int) -> dict[str, Any]:
        return {
            "max_shared_mem": 65536,
            "warpSize": 64,
            "multiprocessor_count": MI300X_COMPUTE_UNITS,
            "arch": "gfx942",
            "max_num_regs": 65536,
        }


class ExecutorDriver(DriverBase):
    """See the module's docstring. `launcher_cls` is called by the JIT with (source, metadata) for each compiled kernel."""

    def __init__(self, current: Callable[[], CallRecord]) -> None:
        super().__init__()
        self.utils = Utilities()
        self.launcher_cls = lambda source, metadata: Launcher(source, metadata, self.utils, current)

    @classmethod
    def is_active(cls) -> bool:
        return True

    def map_python_to_cpp_type(self, ty: str) -> str:
        return ty

    def get_current_target(self) -> GPUTarget:
        return GPUTarget("hip", "gfx942", 64)

    def get_current_device(self) -> int:
        return 0

    def set_current_device(self, device: int) -> None:
        """There is one executor."""

    def get_current_stream(self, device: int | None = None) -> int:
        return STREAM

    def get_active_torch_device(self) -> torch.device:
        return torch.device("cpu")

    def get_benchmarker(self) -> Any:
        raise Unsupported("the executor has no clock: autotuning and benchmarks need a GPU")


class Launcher:
    """Packs bound arguments as Triton's HIP launcher would: pointers and scalars of the signature, then two scratch pointers."""

    def __init__(self, source: Any, metadata: Any, utilities: Utilities, current: Callable[[], CallRecord]) -> None:
        self._types = [kind for kind in source.signature.values() if kind != "constexpr"]
        self._constant = [kind == "constexpr" for kind in source.signature.values()]
        self._metadata, self._utilities, self._current = metadata, utilities, current

    def __call__(self, grid_x: int, grid_y: int, grid_z: int, stream: int, function: int, packed: Any, launch_metadata: Any,
                 enter_hook: Any, exit_hook: Any, *arguments: Any) -> None:  # fmt: skip
        if 0 in (grid_x, grid_y, grid_z):
            return  # Triton's own HIP launcher (driver.c) launches nothing then
        values = [value for value, constant in zip(arguments, self._constant, strict=True) if not constant]
        kernel = self._utilities.kernels[function]
        data = [_pack(kind, value) for kind, value in zip(self._types, values, strict=True)]
        scratch = sum(not argument.hidden for argument in kernel.arguments) - len(data)
        data += [bytes(8)] * scratch  # global and profile scratch; a kernel that uses them faults at address 0
        block = (self._metadata.num_warps * 64, 1, 1)
        extra = max(0, self._metadata.shared - kernel.lds_bytes)
        self._current().launch(kernel, data, (grid_x, grid_y, grid_z), block, dynamic_lds=extra, stream=stream)


def _pack(kind: str, value: Any) -> bytes:
    if kind.startswith("*"):
        address = value if isinstance(value, int) else value.data_ptr()
        return struct.pack("<Q", address)
    if kind in _INTEGER:
        return struct.pack(_INTEGER[kind], int(value))
    if kind in _FLOAT:
        return struct.pack(_FLOAT[kind], float(value))
    raise Unsupported(f"Triton argument type {kind}")
