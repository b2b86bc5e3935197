# SPDX-License-Identifier: Apache-2.0
"""All one-instruction edits of a decoded instruction, by kind. An edit is new words of the same length; none is judged here.

operand     a register one off, another source, two sources swapped, a sign flipped
opcode      the mnemonic of a slip: add for sub, max for min, le for lt, a wider load
immediate   an inline constant or an offset one off, a bit of a literal flipped
wait        s_waitcnt without effect or with one counter relaxed, wait states fewer
barrier     s_barrier without effect
lanes       another DPP or swizzle pattern, another half or byte selected
drop        an instruction without effect
branch      a condition turned round, always or never taken
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from parity.gfx942.decode import LITERAL, Instruction
from parity.gfx942.mutation_tables import COMMUTATIVE, NEIGHBOURS, PLACES, SYMMETRIC, TABLES, Place

KINDS = ("operand", "opcode", "immediate", "wait", "barrier", "lanes", "drop", "branch")
NOP = 0xBF800000  # s_nop 0
BRANCH = 0xBF820000  # s_branch +0
_SOURCES = ("src0", "src1", "src2", "ssrc0", "ssrc1", "vsrc1", "soffset")
_REGISTERS = ("vdst", "sdst", "sbase", "addr", "data", "data0", "data1", "saddr", "vaddr", "vdata", "srsrc")
_OFFSETS = ("offset", "offset0", "offset1")
# No effect on what is computed: they time, hint or keep caches (program.py steps over them).
_IDLE = (
    "s_nop",
    "s_setprio",
    "s_sleep",
    "v_nop",
    "s_icache_inv",
    "s_dcache_wb",
    "buffer_wbl2",
    "buffer_inv",
    "s_endpgm",
)
_OPPOSITE = {
    "s_cbranch_scc0": "s_cbranch_scc1",
    "s_cbranch_vccz": "s_cbranch_vccnz",
    "s_cbranch_execz": "s_cbranch_execnz",
}
_OPPOSITE |= {after: before for before, after in _OPPOSITE.items()}


@dataclass(frozen=True)
class Edit:
    """`field`: the field that differs ("op" for the mnemonic, "" for a whole instruction); note: what was done, in words."""

    kind: str
    field: str
    note: str
    words: tuple[int, ...]


def edits(instruction: Instruction) -> Iterator[Edit]:
    """Every edit of the instruction, in an order that depends on it alone. Some cannot be executed; mutation.py finds out."""
    if instruction.name == "s_barrier":
        yield Edit("barrier", "", "dropped", (NOP,))
    elif instruction.name in ("s_waitcnt", "s_nop"):
        yield from _waits(instruction)
    elif "branch" in instruction.name:
        yield from _branches(instruction)
    elif instruction.name not in _IDLE:
        yield from _operands(instruction)
        yield from _swaps(instruction)
        yield from _opcodes(instruction)
        yield from _immediates(instruction)
        yield from _lanes(instruction)
        yield Edit("drop", "", "dropped", (NOP,) * len(instruction.words))


def places(instruction: Instruction) -> dict[str, Place]:
    """Where the fields of this instruction stand. KeyError for a format without a table."""
    return PLACES[instruction.format]


def with_field(instruction: Instruction, field: str, value: int) -> tuple[int, ...]:
    """The instruction's words with one field replaced; the value is cut to the field's width."""
    word, low, width = places(instruction)[field]
    mask = (1 << width) - 1
    words = list(instruction.words)
    words[word] = words[word] & ~(mask << low) | (value & mask) << low
    return tuple(words)


def _put(instruction: Instruction, kind: str, field: str, value: int, note: str) -> Iterator[Edit]:
    words = with_field(instruction, field, value)
    if words != instruction.words:
        yield Edit(kind, field, note, words)


def _present(instruction: Instruction, names: tuple[str, ...]) -> list[str]:
    return [name for name in names if name in instruction.fields and name in places(instruction)]


def _operands(instruction: Instruction) -> Iterator[Edit]:
    """Registers one off (two, for aligned pairs), another source in the place of one, signs."""
    for field in _present(instruction, _REGISTERS + _SOURCES):
        code = instruction.fields[field]
        constant = 128 <= code <= LITERAL and field in _SOURCES and field != "vsrc1"
        if constant or (field in ("sdst", "saddr") and code == 0x7F):
            continue
        for step in (1, -1, 2, -2):
            yield from _put(instruction, "operand", field, code + step, f"{field} {step:+d}")
    present = _present(instruction, _SOURCES)
    for field in present:
        for other in present:
            if places(instruction)[field][2] == places(instruction)[other][2] and instruction.fields[other] != LITERAL:
                yield from _put(instruction, "operand", field, instruction.fields[other], f"{other} for {field}")
    for field in _present(instruction, ("neg", "abs", "neg_hi")):
        for index in range(3):
            yield from _put(
                instruction, "operand", field, instruction.fields[field] ^ 1 << index, f"{field} of source {index}"
            )


def _swaps(instruction: Instruction) -> Iterator[Edit]:
    """Two sources exchanged, where their order counts."""
    commutes = re.fullmatch(COMMUTATIVE, instruction.name) is not None
    pairs = [] if commutes else [("src0", "src1"), ("ssrc0", "ssrc1")]
    pairs += [] if re.fullmatch(SYMMETRIC, instruction.name) else [("src1", "src2")]
    for left, right in pairs:
        if len(_present(instruction, (left, right))) == 2:
            exchanged = replace(instruction, words=with_field(instruction, left, instruction.fields[right]))
            words = with_field(exchanged, right, instruction.fields[left])
            if words != instruction.words:
                yield Edit("operand", f"{left} {right}", f"{left} and {right} swapped", words)
    if not commutes and len(_present(instruction, ("src0", "vsrc1"))) == 2 and instruction.fields["src0"] >= 256:
        exchanged = replace(instruction, words=with_field(instruction, "src0", instruction.fields["vsrc1"] + 256))
        words = with_field(exchanged, "vsrc1", instruction.fields["src0"] - 256)
        if words != instruction.words:
            yield Edit("operand", "src0 vsrc1", "src0 and vsrc1 swapped", words)


def neighbours(name: str) -> list[str]:
    """Mnemonics that differ from `name` by one line of the table; not all exist."""
    found = []
    for left, right in NEIGHBOURS:
        for before, after in ((left, right), (right, left)):
            if before in name:
                found.append(name.replace(before, after, 1))
    return found


def _opcodes(instruction: Instruction) -> Iterator[Edit]:
    codes = {name: code for code, name in TABLES[instruction.format.partition("-")[0]].items()}
    for name in neighbours(instruction.name):
        if name in codes:
            yield from _put(instruction, "opcode", "op", codes[name], f"{name} for {instruction.name}")


def _immediates(instruction: Instruction) -> Iterator[Edit]:
    """Inline constants and offsets one off, bits of literals and of 16-bit immediates."""
    for field in _present(instruction, _SOURCES):
        code = instruction.fields[field]
        if field != "vsrc1" and (128 <= code <= 208 or 240 <= code <= 248):
            # the integer next to an operand's 0 is its smallest subnormal where it is a float: 0.5, 1.0 and -1.0 instead
            number = instruction.name.endswith("_f32") and code <= 208
            for other in (240, 242, 243) if number else (code + 1, code - 1):
                yield from _put(instruction, "immediate", field, other, f"constant of code {code} to {other}")
    for field, width in (("literal", 32), ("simm16", 16)):
        if field in instruction.fields:
            value = instruction.fields[field]
            for step in (1, -1):
                yield from _put(instruction, "immediate", field, value + step, f"{field} {step:+d}")
            for bit in range(1, width):
                yield from _put(instruction, "immediate", field, value ^ 1 << bit, f"{field} bit {bit}")
    lanes = "permute" in instruction.name  # its offset is of lanes of 4 bytes, 64 of them: 256 is none
    for field in _present(instruction, ("offset0",) if lanes else _OFFSETS):
        for step in (4, -4, 16, -16) if lanes else (1, -1, 4, -4, 16, -16):
            value = instruction.fields[field] + step
            if 0 <= value < 1 << places(instruction)[field][2]:
                yield from _put(instruction, "immediate", field, value, f"{field} {step:+d}")


def _waits(instruction: Instruction) -> Iterator[Edit]:
    """simm16 of s_waitcnt: vmcnt in bits 3:0 and 15:14, lgkmcnt in 11:8; all ones wait for nothing (ISA, "S_WAITCNT")."""
    value = instruction.fields["simm16"]
    if instruction.name == "s_nop":
        for states in sorted({0, value - 1}):
            if 0 <= states < value:
                yield from _put(instruction, "wait", "simm16", states, f"{value - states} wait states fewer")
        return
    vm, lgkm = (value & 15) | value >> 14 << 4, value >> 8 & 15
    if (vm, lgkm) != (63, 15):
        yield Edit("wait", "", "dropped", (NOP,))
    for count in sorted({vm + 1, 63}) if vm < 63 else ():
        changed = value & ~0xC00F | (count & 15) | count >> 4 << 14
        yield from _put(instruction, "wait", "simm16", changed, f"vmcnt {vm} relaxed to {count}")
    for count in sorted({lgkm + 1, 15}) if lgkm < 15 else ():
        yield from _put(
            instruction, "wait", "simm16", value & ~0xF00 | count << 8, f"lgkmcnt {lgkm} relaxed to {count}"
        )


def _branches(instruction: Instruction) -> Iterator[Edit]:
    """A jump over code that EXEC=0 makes empty only saves time: never taking it is no fault and no mutant."""
    name, distance = instruction.name, instruction.fields["simm16"]
    if name in _OPPOSITE:
        codes = {known: code for code, known in TABLES["SOPP"].items()}
        yield from _put(instruction, "branch", "op", codes[_OPPOSITE[name]], "condition turned round")
        yield Edit("branch", "op", "always taken", (BRANCH | distance,))
    if name != "s_cbranch_execz":
        yield Edit("branch", "", "never taken", (NOP,))


def _lanes(instruction: Instruction) -> Iterator[Edit]:
    """Which lane, half or byte is read or written."""
    control = instruction.fields.get("dpp_ctrl")  # absent but in DPP
    if control is not None:
        for other in sorted({control ^ 1, control ^ 2, control + 1, control - 1, control ^ 0x10, control ^ 0x30}):
            if 0 <= other < 1 << 9:
                yield from _put(instruction, "lanes", "dpp_ctrl", other, f"dpp_ctrl {control:#x} to {other:#x}")
    if instruction.name == "ds_swizzle_b32":
        for bit in range(16):
            field, value = f"offset{bit // 8}", instruction.fields[f"offset{bit // 8}"]
            yield from _put(instruction, "lanes", field, value ^ 1 << bit % 8, f"pattern bit {bit}")
    for field in _present(instruction, ("bound_ctrl", "bank_mask", "row_mask", "opsel", "opsel_hi")):
        for bit in range(places(instruction)[field][2]):
            yield from _put(instruction, "lanes", field, instruction.fields[field] ^ 1 << bit, f"{field} bit {bit}")
    for field in _present(instruction, ("src0_sel", "src1_sel", "dst_sel")):
        for select in range(7):
            yield from _put(instruction, "lanes", field, select, f"{field} {instruction.fields[field]} to {select}")
