# SPDX-License-Identifier: Apache-2.0
"""Mutants of machine code: a kernel in which one instruction is another one of the same length that the executor knows.

    code = code_of(kernel)                      # what mutants are drawn from; also as JSON
    for mutation in mutants_of(code): ...       # every one of them, in a fixed order
    launch(mutated(kernel, mutation), ...)      # the changed kernel

Excluded from the start, because nothing can tell them from the original: edits that translate to the same step of the engine
(fields that the instruction does not read), and swapped sources of instructions whose order of sources does not count.
"""

from __future__ import annotations

import hashlib
import random
import struct
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from parity.gfx942.code_object import Kernel
from parity.gfx942.decode import Instruction, decode_one
from parity.gfx942.faults import Unsupported
from parity.gfx942.launch import program_for
from parity.gfx942.mutation_edits import KINDS, Edit, edits
from parity.gfx942.operands import Kernel as Registers
from parity.gfx942.program import step_of
from parity.gfx942.text import assembly

_REFUSED = 0xBF970000  # s_cbranch_cdbgsys: a debugger's, in no kernel and not in opcodes.py
_TRIES = 200  # draws in a row that give nothing new before a variant and kind count as exhausted


@dataclass(frozen=True)
class Mutation:
    """One changed instruction. sha256, symbol: of the kernel that it applies to; pc: in bytes, in its .text; old and new: assembly;
    old_code, new_code: hex, of the same length; line: "file:line", "" if unknown."""

    sha256: str
    symbol: str
    pc: int
    kind: str
    note: str
    old: str
    new: str
    old_code: str
    new_code: str
    line: str = ""

    def __str__(self) -> str:
        return f"+{self.pc:#x} {self.old} -> {self.new}"


@dataclass(frozen=True)
class Code:
    """What mutants are drawn from: the instructions that can be reached in one kernel, and its registers."""

    sha256: str
    symbol: str
    instructions: tuple[Instruction, ...]
    vgprs: int
    accum_offset: int
    lines: dict[int, str]

    def to_json(self) -> dict[str, Any]:
        """All fields as JSON values; `from_json` restores the equal Code."""
        return asdict(self) | {"lines": sorted(self.lines.items())}

    @staticmethod
    def from_json(record: dict[str, Any]) -> Code:
        """KeyError or TypeError for a record that to_json did not make."""
        found = tuple(Instruction(**(part | {"words": tuple(part["words"])})) for part in record["instructions"])
        return Code(**(record | {"instructions": found, "lines": {pc: line for pc, line in record["lines"]}}))


def code_of(kernel: Kernel) -> Code:
    """The instructions of a kernel in the order of their addresses, without those that the executor refuses."""
    program = program_for(kernel)
    known = [
        part for number, part in enumerate(program.instructions) if part is not None and number not in program.refused
    ]
    ordered = tuple(sorted(known, key=lambda instruction: instruction.pc))
    lines = {part.pc: kernel.lines[part.pc] for part in ordered if part.pc in kernel.lines}
    return Code(kernel.sha256, kernel.name, ordered, kernel.vgprs, kernel.accum_offset, lines)


def mutated(kernel: Kernel, mutation: Mutation) -> Kernel:
    """The kernel with one instruction changed, under a hash that is no code object's. ValueError where the mutation is of other code."""
    old, new = bytes.fromhex(mutation.old_code), bytes.fromhex(mutation.new_code)
    there = kernel.text[mutation.pc : mutation.pc + len(old)]
    if (kernel.sha256, kernel.name, there) != (mutation.sha256, mutation.symbol, old) or len(new) != len(old):
        raise ValueError(f"{mutation} is not a mutation of {kernel.name} {kernel.sha256[:8]}")
    text = kernel.text[: mutation.pc] + new + kernel.text[mutation.pc + len(old) :]
    digest = hashlib.sha256(f"mutant of {kernel.sha256} {mutation}".encode() + text).hexdigest()
    return replace(kernel, text=text, sha256=digest)


def probe(mutation: Mutation) -> Mutation:
    """In the place of the changed instruction one that the executor refuses: a launch that reaches it ends in Unsupported."""
    refused = struct.pack("<I", _REFUSED).hex() + mutation.new_code[8:]
    return replace(mutation, kind="probe", new="(refused)", new_code=refused)


def mutants_at(code: Code, instruction: Instruction) -> list[Mutation]:
    """Every mutant of one instruction that the executor can tell from it."""
    made = (_mutation(code, instruction, edit) for edit in edits(instruction))
    return list(
        {part.new_code: part for part in made if part is not None}.values()
    )  # two kinds may come to the same bytes


def _mutation(code: Code, instruction: Instruction, edit: Edit) -> Mutation | None:
    """The mutant of an edit; None where no assembler would write it, where the executor does not know it, or where it is the same to it."""
    after = _edited(instruction, edit)
    texts, steps = [_text(part) for part in after], [_step(code, part) for part in after]
    if not after or "" in texts or None in steps or steps == [_step(code, instruction)]:
        return None
    return Mutation(
        code.sha256, code.symbol, instruction.pc, edit.kind, edit.note, _text(instruction) or str(instruction), "; ".join(texts),
        _bytes(instruction.words).hex(), _bytes(edit.words).hex(), code.lines.get(instruction.pc, ""))  # fmt: skip


def mutants_of(code: Code) -> Iterator[Mutation]:
    """All mutants of a kernel, in the order of their addresses."""
    for instruction in code.instructions:
        yield from mutants_at(code, instruction)


def draw(codes: Sequence[Code], seed: int) -> Iterator[Mutation]:
    """Mutants of several kernels without repetition: each time a kernel, a kind of edit, an instruction that has such an edit, and one of
    these, all with equal chances, so that rare instructions (barriers, waits) count as much as the many that move data. Ends when
    nothing new is found any more. The same codes and seed give the same mutants."""
    chance, seen = random.Random(seed), set()
    known = [_by_kind(code) for code in codes]
    left = {number: list(kinds) for number, kinds in enumerate(known) if kinds}
    while left:
        number = chance.choice(list(left))
        kind = chance.choice(left[number])
        for _ in range(_TRIES):
            instruction, some = chance.choice(known[number][kind])
            edit = chance.choice(some)
            key = (number, instruction.pc, edit.words)
            mutation = None if key in seen else _mutation(codes[number], instruction, edit)
            seen.add(key)
            if mutation is not None:
                yield mutation
                break
        else:
            left[number].remove(kind)
            left = {number: kinds for number, kinds in left.items() if kinds}


def _by_kind(code: Code) -> dict[str, list[tuple[Instruction, list[Edit]]]]:
    """kind -> the instructions that have edits of it, with these."""
    kinds: dict[str, list[tuple[Instruction, list[Edit]]]] = {}
    for instruction in code.instructions:
        found = list(edits(instruction))
        for kind in KINDS:
            some = [edit for edit in found if edit.kind == kind]
            if some:
                kinds.setdefault(kind, []).append((instruction, some))
    return kinds


def _bytes(words: Sequence[int]) -> bytes:
    return struct.pack(f"<{len(words)}I", *words)


def _edited(instruction: Instruction, edit: Edit) -> list[Instruction]:
    """The instructions of the new words; [] where they are none, or where more than the named field changed."""
    data, found, at = _bytes(edit.words), [], 0
    try:
        while at < len(data):
            part = decode_one(data, at)
            at += part.size
            found.append(replace(part, pc=instruction.pc + part.pc))
    except Unsupported:
        return []
    if at != len(data) or (edit.field and (len(found) != 1 or not _only(instruction, found[0], edit))):
        return []
    return found


def _only(before: Instruction, after: Instruction, edit: Edit) -> bool:
    changed = set(edit.field.split())
    names = before.fields.keys() | after.fields.keys()
    differ = {name for name in names if before.fields.get(name) != after.fields.get(name)}
    same_name = before.name == after.name
    return before.format == after.format and (
        not differ and not same_name if changed == {"op"} else same_name and differ == changed
    )


def _step(code: Code, instruction: Instruction) -> bytes | None:
    """The engine's step with its lane pattern: equal bytes compute the same. None where the executor has no step for it."""
    registers = Registers(code.vgprs, code.accum_offset)
    try:
        step = bytes(step_of(instruction, registers))
    except Unsupported:
        return None
    return step + b"".join(pattern.tobytes() for pattern in registers.patterns)


def _text(instruction: Instruction) -> str:
    """Assembly text, "" where the assembler has none for these bytes."""
    try:
        return assembly(instruction)
    except Unsupported:
        return ""
