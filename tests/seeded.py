# SPDX-License-Identifier: Apache-2.0
"""Seeded bugs: small kernels made by clang, each in a faulty and a clean form, with what the executor must say of the faulty one.

Where the fault must be found is known without the executor: from the DWARF line of a source line marked `// BUG`, or from the
symbol `bug` that stands before an instruction of assembly.
"""

from __future__ import annotations

import io
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from elftools.elf.elffile import ELFFile

from parity.gfx942 import Allocation, ExecutionFault, Kernel, load, native
from parity.gfx942.code_object import assemble

FILE = "bugs.cl"
HEADER = """
#define WG __builtin_amdgcn_workgroup_id_x()
#define ITEM __builtin_amdgcn_workitem_id_x()
#define BARRIER __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup"); __builtin_amdgcn_s_barrier(); __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup")
typedef char V1; typedef short V2; typedef int V4; typedef long V8; typedef int V16 __attribute__((ext_vector_type(4)));
typedef float F4 __attribute__((ext_vector_type(4)));
"""
WIDTHS = (1, 2, 4, 8, 16)  # V1 .. V16


@dataclass(frozen=True)
class Bug:
    """One faulty kernel and its clean twin. lane, wave, workgroup: None where the bug does not decide them."""

    name: str
    kind: str
    faulty: str
    clean: str
    lane: int | None = None
    wave: int | None = None
    workgroup: int | None = None
    block: int = 128
    grid: int = 2


def compile_opencl(bodies: dict[str, str]) -> tuple[bytes, dict[str, int]]:
    """(code object, line of the `// BUG` mark by kernel name). Each body is a kernel's parameters and block: "(...) {...}"."""
    text = HEADER + "\n".join(f"__kernel void {name}{body}" for name, body in bodies.items()) + "\n"
    marks, current = {}, ""
    for number, line in enumerate(text.split("\n"), 1):
        if line.startswith("__kernel void "):
            current = line.removeprefix("__kernel void ").partition("(")[0]
        if "// BUG" in line:
            assert current not in marks, f"{current}: two marks"
            marks[current] = number
    with tempfile.TemporaryDirectory() as folder:
        source, built, linked = (Path(folder) / part for part in (FILE, "bugs.o", "bugs.hsaco"))
        source.write_text(text)
        native.zig_tool("clang", "--target=amdgcn-amd-amdhsa", "-mcpu=gfx942", "-mcode-object-version=5", "-x", "cl", "-cl-std=CL2.0", "-cl-no-stdinc", "-nogpulib",
                        "-O2", "-g", "-w", "-c", str(source), "-o", str(built))  # fmt: skip
        native.zig_tool("ld.lld", "-shared", str(built), "-o", str(linked))
        return linked.read_bytes(), marks


def compile_assembly(text: str) -> tuple[bytes, dict[str, int]]:
    """(code object, address of each symbol that starts with `bug` in bytes from the start of .text)."""
    code = assemble(text)
    elf = ELFFile(io.BytesIO(code))
    start = elf.get_section_by_name(".text")["sh_addr"]
    symbols = elf.get_section_by_name(".symtab").iter_symbols()
    return code, {part.name: part["st_value"] - start for part in symbols if part.name.startswith("bug")}


def partly_written(name: str, array: np.ndarray, missing: slice) -> Allocation:
    """An allocation whose elements `missing` nobody wrote."""
    allocation = Allocation.of_array(name, array, initialised=False)
    assert allocation.undefined is not None
    undefined = np.zeros_like(array).view(np.uint8).reshape(array.size, array.itemsize)
    undefined[missing] = 0xFF
    allocation.undefined[:] = undefined.ravel()
    return allocation


def assert_place(
    fault: ExecutionFault, bug: Bug, kernel: Kernel, *, line: int | None = None, pc: int | None = None
) -> None:
    """The fault is of the right kind, at the right instruction, lane, wave and workgroup."""
    assert fault.kind == bug.kind, str(fault)
    if line is not None:
        assert fault.line == f"{FILE}:{line}", f"line {line} expected: {fault}"
        assert kernel.lines[fault.pc + kernel.entry] == fault.line
    if pc is not None:
        assert fault.pc + kernel.entry == pc, f"pc {pc - kernel.entry:#x} expected: {fault}"
    for name, expected in (("lane", bug.lane), ("wave", bug.wave)):
        assert expected is None or getattr(fault, name) == expected, f"{name} {expected} expected: {fault}"
    assert bug.workgroup is None or fault.workgroup == (bug.workgroup, 0, 0), str(fault)
    assert fault.kernel == kernel.name


def kernels_of(code: bytes, names: list[str]) -> dict[str, Kernel]:
    return {name: load(code, name) for name in names}
