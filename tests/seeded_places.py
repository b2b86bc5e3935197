# SPDX-License-Identifier: Apache-2.0
"""Seeded bugs with every detail of the fault spelled out: instruction, lane, wave, workgroup, allocation, offset.

A kernel takes (in, out, work, n): three arrays of the same size that lie a megabyte apart, so that an access beyond one of them
hits none of the others; nobody has written `work`. Where the fault must be found is read from the line program by pyelftools, or
from the ELF symbol table for assembly, never from the executor.
"""

from __future__ import annotations

import io
import itertools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pytest
from elftools.elf.elffile import ELFFile

from parity.gfx942 import Allocation, ExecutionFault, Kernel, launch
from tests.gfx942_assembly import Source, text_of
from tests.seeded import FILE, compile_assembly, compile_opencl, kernels_of

MEGABYTE = 1 << 20
BATCH = 50  # kernels a code object: load() reads all of its symbols and lines for each kernel
ARGUMENTS = ((8, "global_buffer"),) * 3 + ((4, "by_value"),)
# What assembly starts from: s[4:5], s[6:7], s[12:13] point to in, out, work; v1 is 4 x work-item; s2 is the workgroup.
PROLOGUE = "s_load_dwordx4 s[4:7], s[0:1], 0x0\ns_load_dwordx2 s[12:13], s[0:1], 0x10\nv_lshlrev_b32_e32 v1, 2, v0\ns_waitcnt lgkmcnt(0)\n"


@dataclass(frozen=True)
class Shape:
    """Of a launch; size: bytes an array."""

    size: int = 1024
    block: tuple[int, int, int] = (128, 1, 1)
    grid: tuple[int, int, int] = (2, 1, 1)


@dataclass(frozen=True)
class Seeded:
    """`@` in `text` is `faulty` or `clean`. OpenCL: parameters and block, the faulty line marked `// BUG`. Assembly (of one
    kernel, from PROLOGUE on): the faulty line starts with `BUG `. at: the instruction's text matches this pattern. lane -1: the
    whole wave. offset: bytes from the start of `allocation`, or in LDS or scratch; None where the kind has no address.
    detail: pattern in the fault's words."""

    name: str
    kind: str
    text: str
    faulty: str
    clean: str
    at: str
    lane: int
    wave: int
    workgroup: tuple[int, int, int] = (0, 0, 0)
    offset: int | None = None
    allocation: str = ""
    shape: Shape = Shape()
    detail: str = ""
    lds: int = 4096  # assembly only
    scratch: int = 64  # assembly only

    @property
    def is_assembly(self) -> bool:
        return not self.text.startswith("(")

    def forms(self) -> dict[str, str]:
        return {f"{self.name}_{form}": self.text.replace("@", getattr(self, form)) for form in ("faulty", "clean")}


@dataclass(frozen=True)
class Built:
    """Kernels by name, and the pcs (bytes from the start of .text) at which each must be blamed."""

    kernels: dict[str, Kernel]
    places: dict[str, frozenset[int]]


def pcs_of_lines(code: bytes) -> dict[int, frozenset[int]]:
    """Every pc of .text by the number of its source line."""
    elf = ELFFile(io.BytesIO(code))
    start = elf.get_section_by_name(".text")["sh_addr"]
    found: dict[int, set[int]] = {}
    dwarf = elf.get_dwarf_info()
    for unit in dwarf.iter_CUs():
        states = [entry.state for entry in dwarf.line_program_for_CU(unit).get_entries() if entry.state is not None]
        for state, following in itertools.pairwise(states):
            if not state.end_sequence:
                found.setdefault(state.line, set()).update(range(state.address - start, following.address - start, 4))
    return {line: frozenset(pcs) for line, pcs in found.items()}


def assembly_source(name: str, text: str, *, lds: int = 4096, scratch: int = 64) -> Source:
    """Labels of the text are written L1, L2 ..."""
    body = re.sub(r"^\s*BUG ", f"bug_{name}: ", PROLOGUE + text, flags=re.M)
    return Source(name, re.sub(r"\bL(\d)\b", rf"{name}_L\1", body), ARGUMENTS, lds=lds, vgprs=128, accum_offset=96,
                  directives=f".amdhsa_private_segment_fixed_size {scratch}\n.amdhsa_enable_private_segment 1")  # fmt: skip


def build(seeded: Sequence[Seeded], clean: Mapping[str, str] | None = None) -> Built:
    """Kernels `name`_faulty and `name`_clean of each; `clean`: further texts by name."""
    bodies: dict[str, str] = {}
    sources: list[Source] = []
    for bug in seeded:
        if bug.is_assembly:
            sources += [
                assembly_source(name, text, lds=bug.lds, scratch=bug.scratch) for name, text in bug.forms().items()
            ]
        else:
            bodies |= bug.forms()
    for name, text in (clean or {}).items():
        if text.startswith("("):
            bodies[name] = text
        else:
            sources.append(assembly_source(name, text))
    kernels: dict[str, Kernel] = {}
    places: dict[str, frozenset[int]] = {}
    names = list(bodies)
    for some in (names[first : first + BATCH] for first in range(0, len(names), BATCH)):
        code, marks = compile_opencl({name: bodies[name] for name in some})
        kernels |= kernels_of(code, some)
        lines = pcs_of_lines(code)
        places |= {name: lines[mark] for name, mark in marks.items() if mark in lines}  # a clean line may vanish
    for group in (sources[first : first + BATCH] for first in range(0, len(sources), BATCH)):
        code, symbols = compile_assembly(text_of(*group))
        kernels |= kernels_of(code, [source.name for source in group])
        places |= {name.removeprefix("bug_"): frozenset([pc]) for name, pc in symbols.items()}
    return Built(kernels, places)


@dataclass(frozen=True)
class Memory:
    """The three arrays in one mapping, in the order in, out, work."""

    whole: np.ndarray
    size: int

    @property
    def arrays(self) -> list[np.ndarray]:
        return [self.whole[k * MEGABYTE : k * MEGABYTE + self.size] for k in (1, 2, 3)]

    def allocations(self) -> list[Allocation]:
        names = {"in": True, "out": True, "work": False}
        return [Allocation.of_array(name, array, initialised=known)
                for (name, known), array in zip(names.items(), self.arrays, strict=True)]  # fmt: skip


def new_memory(size: int) -> Memory:
    memory = Memory(np.zeros(4 * MEGABYTE, np.uint8), size)
    memory.arrays[0].view(np.uint32)[:] = np.arange(size // 4)
    return memory


def run(kernel: Kernel, memory: Memory, *, shape: Shape = Shape(), schedule: int | None = None) -> None:
    """n is 256."""
    pointers = [int(array.ctypes.data).to_bytes(8, "little") for array in memory.arrays]
    launch(
        kernel,
        [*pointers, (256).to_bytes(4, "little")],
        shape.grid,
        shape.block,
        memory.allocations(),
        step_limit=100_000,
        schedule=schedule,
    )


def check_clean(name: str, built: Built, *, shape: Shape = Shape()) -> None:
    """Nothing is reported, in order or in another order of workgroups and waves."""
    for schedule in (None, 1):
        run(built.kernels[name], new_memory(shape.size), shape=shape, schedule=schedule)


def check_seen(seeded: Seeded, built: Built) -> None:
    name, memory = f"{seeded.name}_faulty", new_memory(seeded.shape.size)
    with pytest.raises(ExecutionFault) as caught:
        run(built.kernels[name], memory, shape=seeded.shape)
    assert_seen(caught.value, seeded, built.kernels[name], built.places[name], memory)


def assert_seen(fault: ExecutionFault, seeded: Seeded, kernel: Kernel, pcs: frozenset[int], memory: Memory) -> None:
    """Every detail of the fault is as the table says."""
    assert fault.kind == seeded.kind, str(fault)
    assert fault.pc + kernel.entry in pcs, f"pcs {sorted(hex(pc - kernel.entry) for pc in pcs)} expected: {fault}"
    assert re.match(seeded.at, fault.instruction), f"{seeded.at} expected: {fault}"
    assert (fault.lane, fault.wave) == (seeded.lane, seeded.wave), (
        f"lane {seeded.lane}, wave {seeded.wave} expected: {fault}"
    )
    assert fault.workgroup == seeded.workgroup, f"workgroup {seeded.workgroup} expected: {fault}"
    assert fault.kernel == kernel.name and (seeded.is_assembly or fault.line.startswith(f"{FILE}:")), str(fault)
    assert re.search(seeded.detail, fault.detail), f"{seeded.detail!r} expected: {fault}"
    if seeded.offset is not None:
        starts = dict(zip(("in", "out", "work"), (array.ctypes.data for array in memory.arrays), strict=True))
        expected = starts[seeded.allocation] + seeded.offset if seeded.allocation else seeded.offset
        assert fault.address == expected, f"address {expected:#x} expected: {fault}"
        # farther off than a megabyte the nearest allocation may be one that is not ours
        assert abs(seeded.offset) > MEGABYTE or fault.allocation == seeded.allocation, str(fault)
