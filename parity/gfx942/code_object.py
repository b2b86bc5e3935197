# SPDX-License-Identifier: Apache-2.0
"""gfx942 code objects: ELF in, one kernel with its descriptor and argument layout out.

Source: LLVM "User Guide for AMDGPU Backend", sections "Code Object Metadata" (V5) and "Kernel Descriptor". ELF and
msgpack are read by pyelftools and msgpack; the 64-byte descriptor is read here.
"""

from __future__ import annotations

import hashlib
import io
import re
import struct
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import msgpack
from elftools.common.exceptions import ELFError
from elftools.construct.core import ConstructError
from elftools.elf.elffile import ELFFile

from parity.gfx942 import native
from parity.gfx942.faults import BadCodeObject
from parity.gfx942.lines import line_table

# What pyelftools, msgpack and the reading below raise on bytes that are no such file.
_MALFORMED = (
    ELFError,
    ConstructError,
    AssertionError,
    ArithmeticError,
    MemoryError,
    RecursionError,
    struct.error,
    KeyError,
    IndexError,
    TypeError,
    AttributeError,
    ValueError,
    OverflowError,
    msgpack.exceptions.UnpackException,
)
# Directives that read other files, and those that could build such a directive out of pieces.
_REFUSED_DIRECTIVES = re.compile(r"\.(incbin|include|macro|altmacro|irpc?)\b")
ASSEMBLER_SECONDS = 20.0  # the largest kernels take 0.1
_QUOTE = re.compile(r'(?<!\\)"')
KERNARG_LIMIT = 65536  # bytes; compilers stop at 4 KiB
USER_SGPR_LIMIT = 16  # LLVM AMDGPU guide, "Initial Kernel Execution State"
EF_AMDGPU_MACH_GFX942 = 0x4C  # low byte of e_flags (LLVM AMDGPU guide, "ELF Header")


@dataclass(frozen=True)
class Argument:
    """One kernel argument: `offset` and `size` in the kernarg segment (bytes), `kind` as in the metadata's .value_kind."""

    offset: int
    size: int
    kind: str

    @property
    def hidden(self) -> bool:
        return self.kind.startswith("hidden_")


@dataclass(frozen=True)
class Kernel:
    """One kernel of a code object, ready to launch.

    text: the bytes of .text; entry: where it starts, in bytes. vgprs counts both halves of the unified register file,
    accum_offset says where the AGPRs begin in it. user_sgprs lists what the hardware puts into the first SGPRs, and
    work_item_dims how many coordinates of the work-item into v0.
    """

    name: str
    text: bytes
    entry: int
    vgprs: int
    accum_offset: int
    lds_bytes: int
    scratch_bytes: int
    kernarg_bytes: int
    arguments: tuple[Argument, ...]
    user_sgprs: tuple[tuple[str, int], ...]
    preload_sgprs: int
    preload_offset: int
    workgroup_id: tuple[bool, bool, bool]
    work_item_dims: int
    float_mode: int
    ieee_mode: bool
    dx10_clamp: bool
    sha256: str
    lines: Mapping[int, str] = field(default_factory=dict, repr=False, compare=False)  # pc in .text: source line


def load(source: bytes | str | Path, name: str | None = None) -> Kernel:
    """Kernel `name` (or the only one) of a code object: its bytes, or the path of the file, or assembly text.

    A str that contains a line break is assembly text and is assembled by ziglang's clang. Raises BadCodeObject when the
    input is no gfx942 code object or has no such kernel.
    """
    if isinstance(source, str) and "\n" in source:
        data = assemble(source)
    elif isinstance(source, bytes):
        data = source
    else:
        try:
            data = Path(source).read_bytes()
        except OSError as error:
            raise BadCodeObject(f"cannot read {source}: {error.strerror}") from error
    try:
        return _read(data, name)
    except _MALFORMED as error:
        raise BadCodeObject(
            f"not a gfx942 code object with kernel metadata: {type(error).__name__}: {error}"
        ) from error


def assemble(text: str) -> bytes:
    """Assembly text of gfx942 to a code object. Raises BadCodeObject with the assembler's message (line and column).

    Directives that read other files are refused: the text is data, not a build script.
    """
    for number, line in enumerate(text.splitlines(), 1):
        refused = _REFUSED_DIRECTIVES.search(line)
        if refused:
            raise BadCodeObject(f"line {number}: {refused[0]} is not allowed")
        if len(_QUOTE.findall(line.partition(";")[0].partition("//")[0])) % 2:
            raise BadCodeObject(f"line {number}: a string that does not end")  # clang would not end either
    with tempfile.TemporaryDirectory() as folder:
        source, built, linked = (Path(folder) / part for part in ("kernel.s", "kernel.o", "kernel.hsaco"))
        source.write_bytes(text.encode("utf-8", "replace"))
        try:
            native.zig_tool(
                "clang",
                "--target=amdgcn-amd-amdhsa",
                "-mcpu=gfx942",
                "-c",
                str(source),
                "-o",
                str(built),
                timeout=ASSEMBLER_SECONDS,
            )
            native.zig_tool("ld.lld", "-shared", str(built), "-o", str(linked))
        except subprocess.CalledProcessError as error:
            raise BadCodeObject(error.stderr.replace(str(source), "line").strip()) from error
        return linked.read_bytes()


def _read(data: bytes, name: str | None) -> Kernel:
    elf = ELFFile(io.BytesIO(data))
    if elf["e_machine"] != "EM_AMDGPU" or elf["e_flags"] & 0xFF != EF_AMDGPU_MACH_GFX942:
        raise BadCodeObject(f"machine {elf['e_machine']}, flags {elf['e_flags']:#x}: not gfx942")
    entry = _choose(_metadata(elf)["amdhsa.kernels"], name)
    if entry[".wavefront_size"] != 64:
        raise BadCodeObject(f"{entry['.name']}: wavefront size {entry['.wavefront_size']}; gfx942 has 64")
    descriptor_address = _symbol(elf, entry[".symbol"])
    descriptor = _bytes_at(elf, descriptor_address, 64)
    text = _section(elf, ".text")
    arguments = tuple(Argument(part[".offset"], part[".size"], part[".value_kind"]) for part in entry.get(".args", []))
    (entry_offset,) = struct.unpack_from("<q", descriptor, 16)
    rsrc3, rsrc1, rsrc2 = struct.unpack_from("<III", descriptor, 44)
    properties, preload = struct.unpack_from("<HH", descriptor, 56)
    start = descriptor_address + entry_offset - text["sh_addr"]
    kernel = Kernel(
        name=entry[".name"], text=text.data(), entry=start,
        vgprs=((rsrc1 & 0x3F) + 1) * 8,  # granules of 8 (gfx90a and later)
        accum_offset=min(((rsrc3 & 0x3F) + 1) * 4, ((rsrc1 & 0x3F) + 1) * 8),
        lds_bytes=struct.unpack_from("<I", descriptor, 0)[0], scratch_bytes=struct.unpack_from("<I", descriptor, 4)[0],
        kernarg_bytes=entry[".kernarg_segment_size"], arguments=arguments, user_sgprs=_user_sgprs(properties),
        preload_sgprs=preload & 0x7F, preload_offset=preload >> 7,
        workgroup_id=(bool(rsrc2 >> 7 & 1), bool(rsrc2 >> 8 & 1), bool(rsrc2 >> 9 & 1)),
        work_item_dims=(rsrc2 >> 11 & 3) + 1, float_mode=rsrc1 >> 12 & 0xFF, ieee_mode=bool(rsrc1 >> 23 & 1),
        dx10_clamp=bool(rsrc1 >> 21 & 1), sha256=hashlib.sha256(data).hexdigest(),
        lines=_lines(data),
    )  # fmt: skip
    _check(kernel)
    return kernel


@lru_cache(maxsize=8)
def _lines(data: bytes) -> dict[int, str]:
    """Lines of a whole file, which may hold many kernels."""
    return line_table(ELFFile(io.BytesIO(data)))


def _check(kernel: Kernel) -> None:
    """What no compiler writes and a launch could not survive. Raises BadCodeObject."""
    if not isinstance(kernel.name, str):
        raise BadCodeObject(f"a kernel named {kernel.name!r}")
    if not isinstance(kernel.kernarg_bytes, int) or not 0 <= kernel.kernarg_bytes <= KERNARG_LIMIT:
        raise BadCodeObject(f"{kernel.name}: kernarg segment of {kernel.kernarg_bytes!r} bytes")
    for argument in kernel.arguments:
        if not (isinstance(argument.offset, int) and isinstance(argument.size, int) and isinstance(argument.kind, str)):
            raise BadCodeObject(f"{kernel.name}: {argument}")
        if argument.offset < 0 or argument.size < 0 or argument.offset + argument.size > max(kernel.kernarg_bytes, 8):
            raise BadCodeObject(
                f"{kernel.name}: {argument} lies outside the {kernel.kernarg_bytes} bytes of the kernarg segment"
            )
    scalars = sum(width for _, width in kernel.user_sgprs) + kernel.preload_sgprs
    if scalars > USER_SGPR_LIMIT or 4 * (kernel.preload_offset + kernel.preload_sgprs) > max(kernel.kernarg_bytes, 8):
        raise BadCodeObject(
            f"{kernel.name}: {scalars} user SGPRs, {kernel.preload_sgprs} of them from dword {kernel.preload_offset} of the kernarg segment"
        )
    if not 0 <= kernel.entry < len(kernel.text):
        raise BadCodeObject(f"{kernel.name}: entry {kernel.entry:#x} outside the code (0..{len(kernel.text):#x})")


def _user_sgprs(properties: int) -> tuple[tuple[str, int], ...]:
    """(name, SGPR count) of each user SGPR group that the descriptor enables, in hardware order."""
    groups = [("private_segment_buffer", 4), ("dispatch_ptr", 2), ("queue_ptr", 2), ("kernarg_segment_ptr", 2),
              ("dispatch_id", 2), ("flat_scratch_init", 2), ("private_segment_size", 1)]  # fmt: skip
    return tuple(group for bit, group in enumerate(groups) if properties >> bit & 1)


def _metadata(elf: ELFFile) -> dict[str, Any]:
    """The NT_AMDGPU_METADATA note (type 32), decoded."""
    for segment in elf.iter_segments("PT_NOTE"):
        for note in segment.iter_notes():
            if note["n_name"] == "AMDGPU" and note["n_type"] in (32, "NT_AMDGPU_METADATA"):
                description = note["n_desc"]
                raw = description.encode("latin-1") if isinstance(description, str) else description
                decoded: dict[str, Any] = msgpack.unpackb(raw)
                return decoded
    raise BadCodeObject("no AMDGPU metadata note")


def _choose(kernels: list[dict[str, Any]], name: str | None) -> dict[str, Any]:
    names = [kernel[".name"] for kernel in kernels]
    if name is None and len(kernels) == 1:
        return kernels[0]
    if name not in names:
        raise BadCodeObject(f"no kernel {name!r}; the code object has {', '.join(names) or 'none'}")
    return kernels[names.index(name)]


def _symbol(elf: ELFFile, name: str) -> int:
    symbols = _section(elf, ".dynsym").get_symbol_by_name(name)
    if not symbols:
        raise BadCodeObject(f"no symbol {name}")
    return int(symbols[0]["st_value"])


def _section(elf: ELFFile, name: str) -> Any:
    section = elf.get_section_by_name(name)
    if section is None:
        raise BadCodeObject(f"no section {name}")
    return section


def _bytes_at(elf: ELFFile, address: int, size: int) -> bytes:
    for section in elf.iter_sections():
        start = section["sh_addr"]
        if section["sh_type"] == "SHT_PROGBITS" and start <= address and address + size <= start + section["sh_size"]:
            offset = address - start
            return bytes(section.data()[offset : offset + size])
    raise BadCodeObject(f"address {address:#x} lies in no section")
