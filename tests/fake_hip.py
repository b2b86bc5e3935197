# SPDX-License-Identifier: Apache-2.0
"""A libamdhip64.so made of fake_hip.c and the executor: what it is asked to launch runs on the memory registered with it."""

from __future__ import annotations

import ctypes
import platform
import re
from pathlib import Path
from typing import Any

import numpy as np

from parity.gfx942 import Allocation, ExecutorError, launch, load, native

_LAUNCH = ctypes.CFUNCTYPE(
    ctypes.c_int, ctypes.c_char_p, ctypes.c_void_p, ctypes.POINTER(ctypes.c_uint), ctypes.c_void_p, ctypes.c_size_t,
    ctypes.POINTER(ctypes.c_size_t), ctypes.POINTER(ctypes.c_size_t), ctypes.c_uint, ctypes.c_uint,
)  # fmt: skip


def build(folder: Path) -> Path:
    """The shared library, compiled into `folder`."""
    source, compiled, built = Path(__file__).with_name("fake_hip.c"), folder / "fake_hip.o", folder / "libamdhip64.so"
    flags = [
        f"--target={platform.machine()}-linux-gnu",
        "-O1",
        "-fPIC",
        "-ffreestanding",
        "-fno-builtin",
        "-Wall",
        "-Werror",
    ]
    native.zig_tool("clang", *flags, "-c", str(source), "-o", str(compiled))
    native.zig_tool("ld.lld", "-shared", str(compiled), "-o", str(built))
    return built


class FakeHip:
    """The library at `path`, loaded a second time to steer it. `kernargs`: the packed arguments of each launch."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.kernargs: list[bytes] = []
        self._library = ctypes.CDLL(str(path))
        self._callback = _LAUNCH(self._launch)  # kept: C has its address
        self._library.fake_reset(self._callback)

    @property
    def calls(self) -> list[str]:
        """Names of the functions called, in order."""
        log = ctypes.c_char.in_dll(self._library, "fake_log")
        return ctypes.string_at(ctypes.addressof(log)).decode().split()

    @property
    def registered(self) -> int:
        """Registrations that nobody has undone."""
        return int(self._library.fake_registered())

    def fail(self, function: str) -> None:
        (ctypes.c_char * 64).in_dll(self._library, "fake_failing").value = function.encode()

    def shift(self, distance: int) -> None:
        """The GPU sees all host memory that many bytes further on."""
        ctypes.c_size_t.in_dll(self._library, "fake_shift").value = distance

    def _launch(
        self,
        name: bytes,
        image: int,
        dims: Any,
        kernarg: int,
        size: int,
        addresses: Any,
        sizes: Any,
        count: int,
        lds: int,
    ) -> int:
        kernel = load(code_object_at(image), name.decode())
        packed = ctypes.string_at(kernarg, size)
        self.kernargs.append(packed)
        arguments = [packed[part.offset : part.offset + part.size] for part in kernel.arguments if not part.hidden]
        memory = [Allocation(f"registered {number}", addresses[number], sizes[number]) for number in range(count)]
        occupied = []
        while True:
            try:
                grid, block = tuple(dims[0:3]), tuple(dims[3:6])
                launch(kernel, arguments, grid, block, memory, checks=False, dynamic_lds=lds)  # nor does a GPU check
                return 0
            except ExecutorError:
                return 1
            except ValueError as error:
                # Whole pages are registered, and the executor's own copy of the arguments may have come to lie on one of them.
                if not re.search("allocations (kernarg and|.* and kernarg) overlap", str(error)):
                    return 2
                occupied.append(np.zeros(max(kernel.kernarg_bytes, 8) + 256, np.uint8))  # the next one lies elsewhere


def code_object_at(address: int) -> bytes:
    """The whole ELF file whose first byte is there: lld puts the table of sections last."""
    header = ctypes.string_at(address, 64)
    table, entry, count = (int.from_bytes(header[a:b], "little") for a, b in ((40, 48), (58, 60), (60, 62)))
    return ctypes.string_at(address, table + entry * count)
