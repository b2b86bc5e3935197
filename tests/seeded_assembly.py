# SPDX-License-Identifier: Apache-2.0
"""Seeded bugs in assembly: what clang or Triton made with one instruction deleted, changed or moved, and hand-written pairs.

Compiled kernels become Sources again (gfx942_assembly.py), so that hundreds of variants go through one call of the assembler. The
instruction that must be blamed carries a symbol; its address comes from the ELF symbol table, not from the executor.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest

from parity.gfx942 import ExecutionFault, Kernel, launch, native
from tests.gfx942_assembly import Source, allocations, pointer, text_of
from tests.seeded import HEADER, Bug, assert_place, compile_assembly, compile_opencl, kernels_of

_FLAGS = ("--target=amdgcn-amd-amdhsa", "-mcpu=gfx942", "-mcode-object-version=5", "-x", "cl", "-cl-std=CL2.0", "-cl-no-stdinc", "-nogpulib",
          "-O2", "-w", "-S")  # fmt: skip
BATCH = 40  # kernels a code object: load() reads all its symbols for each kernel
POINTERS = ((8, "global_buffer"), (8, "global_buffer"), (4, "by_value"))
# What a hand-written body starts from: s[4:5] and s[6:7] point to the arrays in and out, v1 is 4 x work-item, s2 the workgroup.
PROLOGUE = "s_load_dwordx4 s[4:7], s[0:1], 0x0\nv_lshlrev_b32_e32 v1, 2, v0\ns_waitcnt lgkmcnt(0)\n"


@dataclass(frozen=True)
class Edit:
    """Change the nth line (from 0; negative: from the end) that matches `find`: `to` replaces it, "" deletes it."""

    find: str
    to: str
    nth: int = 0


@dataclass(frozen=True)
class Swap:
    """Exchange two lines, each the nth that matches."""

    find: str
    nth: int
    other: str
    other_nth: int


@dataclass(frozen=True)
class Mutant:
    """A compiled kernel with `edits`; `at`: (pattern, nth) of the line to blame, after the edits. None: what does not matter."""

    name: str
    base: str
    edits: tuple[Edit | Swap, ...]
    at: tuple[str, int]
    lane: int | None = None
    wave: int | None = None
    workgroup: int | None = None


@dataclass(frozen=True)
class Pair:
    """A hand-written kernel: `@` in `body` stands for `faulty` or `clean`, and the line to blame starts with `BUG `."""

    name: str
    body: str
    faulty: str
    clean: str
    lane: int | None = None
    wave: int | None = None
    workgroup: int | None = None


def compiled(bodies: dict[str, str]) -> dict[str, Source]:
    """OpenCL kernels "(parameters) {...}" by name, through clang to Sources; parameters must be two pointers and an int."""
    text = HEADER + "\n".join(f"__kernel void {name}{body}" for name, body in bodies.items()) + "\n"
    with tempfile.TemporaryDirectory() as folder:
        source, made = Path(folder) / "bugs.cl", Path(folder) / "bugs.s"
        source.write_text(text)
        native.zig_tool("clang", *_FLAGS, str(source), "-o", str(made))
        assembly = made.read_text()
    return {name: source_of(assembly, name) for name in bodies}


def source_of(
    assembly: str, name: str, *, arguments: tuple[tuple[int, str], ...] = POINTERS, dynamic_lds: int = 0
) -> Source:
    """One kernel of a compiler's assembly. Its local labels get its name, so that kernels can stand in one file."""
    code = re.search(rf"^{name}:.*?\n(.*?)^\s*s_endpgm", assembly, re.M | re.S)
    fields = re.search(rf"^\s*\.amdhsa_kernel {name}\n(.*?)\.end_amdhsa_kernel", assembly, re.M | re.S)
    assert code and fields, f"no kernel {name}"
    values = {key: int(value) for key, value in re.findall(r"\.amdhsa_(\w+) (\d+)", fields[1])}
    preload = values["user_sgpr_kernarg_preload_length"]
    assert values["private_segment_fixed_size"] == 0 and values["user_sgpr_count"] == 2 + preload, name
    lines = [line.partition(";")[0].strip() for line in code[1].splitlines()]
    kept = [
        line
        for line in lines
        if line and (not line.startswith(".") or line.endswith(":") or line.startswith(".p2align"))
    ]
    body = re.sub(r"\.L([A-Za-z_0-9]+)", rf".L{name}_\1", "\n".join(kept))
    ids = "".join(axis for axis in "xyz" if values[f"system_sgpr_workgroup_id_{axis}"])
    return Source(name, body, arguments, lds=values["group_segment_fixed_size"] + dynamic_lds, workgroup_ids=ids,
                  work_item_ids=values["system_vgpr_workitem_id"], vgprs=max(values["next_free_vgpr"], values["accum_offset"]),
                  accum_offset=values["accum_offset"],
                  directives=f".amdhsa_user_sgpr_kernarg_preload_length {preload}\n" if preload else "")  # fmt: skip


def mutated(mutant: Mutant, bases: dict[str, Source]) -> Source:
    base = bases[mutant.base]
    lines = base.body.splitlines()
    for edit in mutant.edits:
        first = _find(lines, edit.find, edit.nth)
        if isinstance(edit, Swap):
            second = _find(lines, edit.other, edit.other_nth)
            lines[first], lines[second] = lines[second], lines[first]
        else:
            lines[first : first + 1] = edit.to.splitlines()
    at = _find(lines, *mutant.at)
    lines[at] = f"bug_{mutant.name}: {lines[at]}"
    body = "\n".join(lines).replace(f".L{base.name}_", f".L{mutant.name}_")
    return replace(base, name=mutant.name, body=body)


def _find(lines: Sequence[str], pattern: str, nth: int) -> int:
    found = [number for number, line in enumerate(lines) if re.search(pattern, line)]
    assert -len(found) <= nth < len(found), f"{len(found)} lines match {pattern}, not {nth}:\n" + "\n".join(lines)
    return found[nth]


def plain(name: str, body: str, *, lds: int = 4096) -> Source:
    """A hand-written kernel without a fault."""
    return Source(
        name, PROLOGUE + re.sub(r"\bL(\d)\b", rf"{name}_L\1", body), POINTERS, lds=lds, vgprs=128, accum_offset=64
    )


def handwritten(pair: Pair, *, lds: int = 4096) -> tuple[Source, Source]:
    """(faulty, clean): kernels `name` and `name`_clean. Labels of a body are written `L1:`, `L2:`."""
    sources = []
    for name, variant in ((pair.name, pair.faulty), (f"{pair.name}_clean", pair.clean)):
        body = PROLOGUE + pair.body.replace("@", variant)
        assert len(re.findall(r"^\s*BUG ", body, re.M)) == 1, f"{name}: one line to blame"
        body = re.sub(r"\bL(\d)\b", rf"{name}_L\1", re.sub(r"^\s*BUG ", f"bug_{name}: ", body, flags=re.M))
        sources.append(Source(name, body, POINTERS, lds=lds, vgprs=128, accum_offset=64))
    return sources[0], sources[1]


@dataclass(frozen=True)
class Built:
    """Kernels by name (a clean twin is `name`_clean) and where each must be blamed: a DWARF line or a pc in .text."""

    kernels: dict[str, Kernel]
    lines: dict[str, int]
    places: dict[str, int]


def build(
    *,
    bugs: Sequence[Bug] = (),
    clean: Mapping[str, str] | None = None,
    bases: Mapping[str, str] | None = None,
    sources: Sequence[Source] = (),
    mutants: Sequence[Mutant] = (),
    pairs: Sequence[Pair] = (),
) -> Built:
    """A few calls of the compiler for a whole class of bugs. sources: kernels beside `bases` to mutate."""
    bodies = (
        {bug.name: bug.faulty for bug in bugs} | {f"{bug.name}_clean": bug.clean for bug in bugs} | dict(clean or {})
    )
    kernels: dict[str, Kernel] = {}
    lines: dict[str, int] = {}
    places: dict[str, int] = {}
    if bodies:
        code, lines = compile_opencl(bodies)
        kernels = kernels_of(code, list(bodies))
    made = (compiled(dict(bases)) if bases else {}) | {source.name: source for source in sources}
    made |= {mutant.name: mutated(mutant, made) for mutant in mutants}
    made |= {source.name: source for pair in pairs for source in handwritten(pair)}
    for start in range(0, len(made), BATCH):
        some = list(made.values())[start : start + BATCH]
        code, symbols = compile_assembly(text_of(*some))
        kernels |= kernels_of(code, [source.name for source in some])
        places |= {name.removeprefix("bug_"): pc for name, pc in symbols.items()}
    return Built(kernels, lines, places)


def run(kernel: Kernel, *, block: int = 256, step_limit: int = 100_000, schedule: int | None = None) -> None:
    """Launch two workgroups on `in` (3, 4, 5 ...) and `out` (zeros), 4096 dwords each, and n = 4."""
    given, out = np.arange(3, 4099, dtype=np.int32), np.zeros(4096, np.int32)
    arguments = [pointer(given), pointer(out), (4).to_bytes(4, "little")]
    memory = allocations(given=given, out=out)
    launch(kernel, arguments, (2, 1, 1), (block, 1, 1), memory, step_limit=step_limit, schedule=schedule)


def check_clean(name: str, built: Built, **size: int) -> None:
    """Nothing is reported in any order of workgroups and waves."""
    for schedule in (None, 1, 2):
        run(built.kernels[f"{name}_clean" if f"{name}_clean" in built.kernels else name], **size, schedule=schedule)


def check_seen(bug: Bug | Mutant | Pair, kind: str, built: Built, **size: int) -> ExecutionFault:
    kernel = built.kernels[bug.name]
    with pytest.raises(ExecutionFault) as caught:
        run(kernel, **size)
    fault = caught.value
    expected = Bug(bug.name, kind, "", "", bug.lane, bug.wave, bug.workgroup)
    assert_place(fault, expected, kernel, line=built.lines.get(bug.name), pc=built.places.get(bug.name))
    return fault
