# SPDX-License-Identifier: Apache-2.0
"""Launches the tests' kernels on a GPU, through HIP's module interface, or in the executor where no GPU was chosen.

The tests put host addresses into memory and into registers, so their arrays stay where they are: their pages are registered,
and a GPU that sees them at another address is refused. Signatures: HIP API reference, "Module management", "Execution control",
"Memory management" (rocm.docs.amd.com/projects/HIP); constants: include/hip/hip_runtime_api.h of ROCm/hip.

Atomics on such memory cross PCIe. MI300 makes a load, an operation and a store of those that PCIe lacks; to the wave that looks the
same (ROCm, "AMD GPU atomics operation support"). On MI200 they would do nothing.
"""

from __future__ import annotations

import ctypes
import mmap
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, fields
from functools import cached_property
from types import TracebackType

from parity.gfx942 import Allocation, Kernel, LaunchReport, launch, load

LIBRARY = "libamdhip64.so"
# hip_runtime_api.h: HIP_LAUNCH_PARAM_BUFFER_POINTER, _BUFFER_SIZE, _END (CUDA's _END is 0), hipHostRegisterMapped
BUFFER_POINTER, BUFFER_SIZE, END, REGISTER_MAPPED = 1, 2, 3, 2
_POINTER, _OUT, _INT, _UNSIGNED = ctypes.c_void_p, ctypes.POINTER(ctypes.c_void_p), ctypes.c_int, ctypes.c_uint
SIGNATURES: dict[str, list[type]] = {  # each returns hipError_t, 0 is hipSuccess
    "hipSetDevice": [_INT],
    "hipDeviceGetName": [ctypes.c_char_p, _INT, _INT],  # name, its space, device
    "hipRuntimeGetVersion": [ctypes.POINTER(_INT)],
    "hipHostRegister": [_POINTER, ctypes.c_size_t, _UNSIGNED],  # address, bytes, flags
    "hipHostGetDevicePointer": [_OUT, _POINTER, _UNSIGNED],  # result, host address, flags (0)
    "hipHostUnregister": [_POINTER],
    "hipModuleLoadData": [_OUT, ctypes.c_char_p],  # module, code object
    "hipModuleGetFunction": [_OUT, _POINTER, ctypes.c_char_p],  # function, module, name
    # function, grid in workgroups x y z, block in work-items x y z, dynamic LDS, stream, kernelParams, extra
    "hipModuleLaunchKernel": [_POINTER, *[_UNSIGNED] * 7, _POINTER, _OUT, _OUT],
    "hipDeviceSynchronize": [],
    "hipModuleUnload": [_POINTER],
}
Dims = tuple[int, int, int]


class GpuError(Exception):
    """A call of HIP failed, or there is no HIP. The text names the call and HIP's own description."""


@dataclass(frozen=True, kw_only=True)
class Assembled(Kernel):
    """A kernel with the code object that it came from: HIP takes that whole. instructions: the text under test, for the record."""

    code: bytes = field(repr=False)
    instructions: str = field(repr=False)


def assembled(code: bytes, name: str, *, instructions: str = "") -> Assembled:
    """load(code, name), ready for a GPU too."""
    kernel = load(code, name)
    parts = {part.name: getattr(kernel, part.name) for part in fields(Kernel)}
    return Assembled(**parts, code=code, instructions=instructions)


@dataclass
class Gpu:
    """GPU number `index` of those that HIP sees. `launched`: (name, sha256 of the code object, instructions) of each launch so far."""

    index: int
    library: str = LIBRARY
    launched: list[tuple[str, str, str]] = field(default_factory=list)

    @cached_property
    def hip(self) -> ctypes.CDLL:
        """HIP's runtime. Loaded at the first launch, so that only tests that need it fail without it."""
        try:
            hip = ctypes.CDLL(self.library)
            for name, arguments in SIGNATURES.items():
                getattr(hip, name).argtypes = arguments
            hip.hipGetErrorString.argtypes, hip.hipGetErrorString.restype = [_INT], ctypes.c_char_p
        except (OSError, AttributeError) as error:
            raise GpuError(
                f"cannot use {self.library}: {error} (is ROCm installed, its lib/ in LD_LIBRARY_PATH?)"
            ) from None
        return hip

    @cached_property
    def name(self) -> str:
        text = ctypes.create_string_buffer(256)
        self.call("hipDeviceGetName", text, len(text), self.index)
        return text.value.decode()

    @cached_property
    def runtime(self) -> int:
        """Version of HIP's runtime, as it counts: 60443483 is 6.4.43483."""
        version = ctypes.c_int()
        self.call("hipRuntimeGetVersion", ctypes.byref(version))
        return version.value

    def call(self, function: str, *arguments: object) -> None:
        error = getattr(self.hip, function)(*arguments)
        if error:
            raise GpuError(f"{function}: {self.hip.hipGetErrorString(error).decode()} (hipError_t {error})")

    def launch(
        self,
        kernel: Assembled,
        arguments: Sequence[bytes],
        grid: Dims,
        block: Dims,
        memory: Iterable[Allocation],
        *,
        dynamic_lds: int = 0,
    ) -> None:
        """Run `kernel` and wait. Arguments as of parity.gfx942.launch. Raises GpuError; memory is given back in any case."""
        self.launched.append((kernel.name, kernel.sha256, kernel.instructions))
        self.call("hipSetDevice", self.index)
        with _Held(self) as held:
            for address, size in pages_of(memory):
                self.call("hipHostRegister", address, size, REGISTER_MAPPED)
                held.add("hipHostUnregister", address)
                self._same_address(address)
            module, function = ctypes.c_void_p(), ctypes.c_void_p()
            self.call("hipModuleLoadData", ctypes.byref(module), kernel.code)
            held.add("hipModuleUnload", module.value)
            self.call("hipModuleGetFunction", ctypes.byref(function), module, kernel.name.encode())
            packed = packed_arguments(kernel, arguments)
            buffer, size = ctypes.create_string_buffer(packed, len(packed)), ctypes.c_size_t(len(packed))
            extra = (ctypes.c_void_p * 5)(
                BUFFER_POINTER, ctypes.addressof(buffer), BUFFER_SIZE, ctypes.addressof(size), END
            )
            self.call("hipModuleLaunchKernel", function, *grid, *block, dynamic_lds, None, None, extra)
            self.call("hipDeviceSynchronize")

    def _same_address(self, address: int) -> None:
        seen = ctypes.c_void_p()
        self.call("hipHostGetDevicePointer", ctypes.byref(seen), address, 0)
        if seen.value != address:
            raise GpuError(f"hipHostGetDevicePointer: host address {address:#x} is {seen.value or 0:#x} on the GPU; the tests need them equal "
                           "(a Linux kernel and driver with HMM; HSA_XNACK=1 may help)")  # fmt: skip


class _Held:
    """What must be given back. After a failure the answers do not count: what failed first is what is told."""

    def __init__(self, gpu: Gpu) -> None:
        self._gpu = gpu
        self._held: list[tuple[str, int | None]] = []

    def add(self, function: str, handle: int | None) -> None:
        self._held.append((function, handle))

    def __enter__(self) -> _Held:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        failures = []
        for function, handle in reversed(self._held):
            try:
                self._gpu.call(function, handle)
            except GpuError as failure:
                failures.append(failure)
        if failures and kind is None:
            raise failures[0]


def pages_of(memory: Iterable[Allocation]) -> list[tuple[int, int]]:
    """(address, bytes) of the whole pages under the allocations, joined where they touch: a page is mapped once, not for each array."""
    page = mmap.PAGESIZE
    ranges: list[tuple[int, int]] = []
    for part in sorted((part for part in memory if part.size), key=lambda part: part.address):
        start, end = part.address // page * page, -(-(part.address + part.size) // page) * page
        if ranges and start <= ranges[-1][0] + ranges[-1][1]:
            start = ranges[-1][0]
            end = max(end, sum(ranges.pop()))
        ranges.append((start, end - start))
    return ranges


def packed_arguments(kernel: Kernel, arguments: Sequence[bytes]) -> bytes:
    """The explicit part of the kernarg segment; HIP adds the hidden one."""
    explicit = [argument for argument in kernel.arguments if not argument.hidden]
    packed = bytearray(max((argument.offset + argument.size for argument in explicit), default=0))
    for argument, data in zip(explicit, arguments, strict=True):
        packed[argument.offset : argument.offset + argument.size] = data[: argument.size]
    return bytes(packed)


# -- the choice ----------------------------------------------------------------------------------------------------------
_CHOSEN: ContextVar[Gpu | None] = ContextVar("gpu", default=None)


@contextmanager
def on_gpu(gpu: Gpu | None) -> Iterator[None]:
    """Within it, run_kernel goes to this GPU; None: to the executor."""
    token = _CHOSEN.set(gpu)
    try:
        yield
    finally:
        _CHOSEN.reset(token)


def run_kernel(
    kernel: Kernel,
    arguments: Sequence[bytes],
    grid: Dims,
    block: Dims,
    memory: Sequence[Allocation],
    *,
    checks: bool = True,
    dynamic_lds: int = 0,
) -> LaunchReport | None:
    """On the chosen GPU (no report then), else in the executor."""
    gpu = _CHOSEN.get()
    if gpu is None:
        return launch(kernel, arguments, grid, block, memory, checks=checks, dynamic_lds=dynamic_lds)
    if not isinstance(kernel, Assembled):
        raise TypeError(f"{kernel.name} has no code object with it: use assembled()")
    gpu.launch(kernel, arguments, grid, block, memory, dynamic_lds=dynamic_lds)
    return None
