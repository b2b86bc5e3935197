# SPDX-License-Identifier: Apache-2.0
"""FlyDSL's runtime functions, answered by the executor.

FlyDSL compiles host code too: it calls mgpuModuleLoad, mgpuModuleGetFunction and mgpuLaunchKernel of libfly_jit_runtime.so, which
call HIP. Here the same compiled host code is linked against the functions below (ExecutionEngine.raw_register_runtime), so that the
packing of arguments and the grid are FlyDSL's own.
"""

from __future__ import annotations

import ctypes
import stat
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from flydsl.compiler import jit_executor, jit_function

from parity.gfx942 import BadCodeObject, ExecutorError, Kernel, load
from parity.launchers.record import CallRecord

Pointer, Size, Index = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int64
MODULE, FUNCTION = 0x1000, 0x2000  # handles are these plus an index: never null, never mistaken for one another


def install(current: Callable[[], CallRecord]) -> None:
    """Make the executor FlyDSL's device in this process; launches go to the CallRecord that `current()` gives."""
    runtime = Runtime(current)

    class Engine(jit_executor.ExecutionEngine):  # type: ignore[misc]
        """FlyDSL's ExecutionEngine, linked with `runtime` instead of the HIP runtime library."""

        def __init__(self, module: Any, *arguments: Any, **options: Any) -> None:
            libraries = options.get("shared_libs") or []
            options["shared_libs"] = [path for path in libraries if "libfly_jit_runtime" not in path]
            super().__init__(module, *arguments, **options)
            for name, function in runtime.functions.items():
                self.raw_register_runtime(name, ctypes.cast(function, Pointer))

    jit_executor.ExecutionEngine = Engine
    # FlyDSL 0.4 and later compile without launching when a tensor is not on a GPU; here host memory is the device's memory.
    if hasattr(jit_function, "_is_compile_placeholder"):
        jit_function._is_compile_placeholder = lambda value, *, allow_null_pointers=False: False


def linker_folder(folder: Path) -> Path:
    """A ROCM_PATH for FlyDSL's last pass, which runs llvm/bin/ld.lld: a script that calls ziglang's. Returns `folder`."""
    script = folder / "llvm" / "bin" / "ld.lld"
    script.parent.mkdir(parents=True, exist_ok=True)
    script.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m ziglang ld.lld "$@"\n')
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    return folder


class Runtime:
    """The mgpu* functions as C callbacks. A callback cannot raise through C, so its error is kept in the CallRecord."""

    def __init__(self, current: Callable[[], CallRecord]) -> None:
        self._current = current
        self._modules: list[bytes] = []
        self._functions: list[Kernel] = []
        prototypes: dict[str, tuple[Callable[..., Any], Any, tuple[Any, ...]]] = {
            "mgpuModuleLoad": (self._module_load, Pointer, (Pointer, Size)),
            "mgpuModuleUnload": (lambda module: None, None, (Pointer,)),
            "mgpuModuleGetFunction": (self._get_function, Pointer, (Pointer, Pointer)),
            "mgpuLaunchKernel": (
                self._launch,
                None,
                (Pointer, *[Index] * 6, ctypes.c_int32, Pointer, Pointer, Pointer, Size),
            ),
            "mgpuStreamCreate": (lambda: None, Pointer, ()),
            "mgpuStreamSynchronize": (lambda stream: None, None, (Pointer,)),
            "mgpuStreamDestroy": (lambda stream: None, None, (Pointer,)),
        }
        self.functions = {
            name: ctypes.CFUNCTYPE(result, *types)(call) for name, (call, result, types) in prototypes.items()
        }

    def _module_load(self, data: int, size: int) -> int:
        self._modules.append(ctypes.string_at(data, size))
        return MODULE + len(self._modules) - 1

    def _get_function(self, module: int, name: int) -> int:
        try:
            self._functions.append(load(self._modules[module - MODULE], ctypes.string_at(name).decode()))
        except BadCodeObject as error:
            self._current().failure = error
            return 0
        return FUNCTION + len(self._functions) - 1

    def _launch(self, function: int | None, grid_x: int, grid_y: int, grid_z: int, block_x: int, block_y: int, block_z: int,
                shared: int, stream: int | None, parameters: int, extra: int | None, count: int) -> None:  # fmt: skip
        record = self._current()
        if record.failure is not None or not function:
            return
        kernel = self._functions[function - FUNCTION]
        explicit = [argument for argument in kernel.arguments if not argument.hidden]
        pointers = (ctypes.c_void_p * len(explicit)).from_address(parameters)
        data = [ctypes.string_at(pointer, argument.size) for pointer, argument in zip(pointers, explicit, strict=True)]
        try:
            record.launch(
                kernel, data, (grid_x, grid_y, grid_z), (block_x, block_y, block_z), dynamic_lds=shared, stream=stream
            )
        except (ExecutorError, ValueError) as error:
            record.failure = error
