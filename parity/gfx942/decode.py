# SPDX-License-Identifier: Apache-2.0
"""Machine code to instructions: one function a microcode format.

Source: AMD Instinct MI300 (CDNA3) ISA, chapter 12 "Microcode Formats". The decoder keeps every field of the format in
`Instruction.fields` and refuses what it does not know: an opcode that is not in opcodes.py, or a reserved bit that is set.
It gives no meaning to a field; the semantics do, and they refuse modifiers they do not implement.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass

from parity.gfx942 import opcodes
from parity.gfx942.faults import Unsupported

_TABLES = {
    "SOP1": opcodes.SOP1, "SOP2": opcodes.SOP2, "SOPC": opcodes.SOPC, "SOPK": opcodes.SOPK, "SOPP": opcodes.SOPP,
    "VOP1": opcodes.VOP1, "VOP2": opcodes.VOP2, "VOPC": opcodes.VOPC, "VOP3P": opcodes.VOP3P, "VOP3P-MAI": opcodes.VOP3P,
    "SMEM": opcodes.SMEM, "FLAT": opcodes.FLAT, "SCRATCH": opcodes.SCRATCH, "GLOBAL": opcodes.GLOBAL,
    "MUBUF": opcodes.MUBUF, "DS": opcodes.DS}  # fmt: skip
LITERAL, SDWA, DPP = 255, 249, 250  # source codes that announce one more dword (ISA 12.1, table of operand codes)


@dataclass(frozen=True)
class Instruction:
    """One instruction. `pc` and `size` in bytes; `name` without encoding suffix; `fields` as in the ISA's tables."""

    pc: int
    size: int
    format: str
    name: str
    fields: dict[str, int]
    words: tuple[int, ...]

    def __str__(self) -> str:
        suffix = {"SDWA": "_sdwa", "DPP": "_dpp"}.get(self.format.partition("-")[2], "")
        code = " ".join(f"{word:08x}" for word in self.words)
        return f"{self.name}{suffix} [{self.format} {code}]"


def decode(text: bytes, start: int = 0) -> list[Instruction]:
    """All instructions of `text` (bytes of a .text section) from byte `start` to its end.

    Stops quietly at what follows an s_endpgm and is no instruction: padding. Otherwise raises Unsupported as decode_one does.
    """
    instructions: list[Instruction] = []
    pc = start
    while pc < len(text):
        try:
            instructions.append(decode_one(text, pc))
        except Unsupported:
            if instructions and instructions[-1].name == "s_endpgm":
                return instructions
            raise
        pc += instructions[-1].size
    return instructions


def decode_one(text: bytes, pc: int) -> Instruction:
    """The instruction at byte `pc`. Raises Unsupported with the bytes when it is not known."""
    word = _word(text, pc)
    for prefix, bits, reader in _FORMATS:
        if word >> (32 - bits) == prefix:
            return reader(text, pc, word)
    raise Unsupported(f"no format of gfx942 matches {word:08x} at pc {pc:#x}")


def _word(text: bytes, pc: int) -> int:
    if pc < 0 or pc + 4 > len(text):
        raise Unsupported(f"pc {pc:#x} leaves the code (0..{len(text):#x})")
    return int(struct.unpack_from("<I", text, pc)[0])


def _bits(value: int, **fields: tuple[int, int]) -> dict[str, int]:
    """Split `value` into named fields given as (lowest bit, width)."""
    return {name: (value >> low) & ((1 << width) - 1) for name, (low, width) in fields.items()}


def _name(table: dict[int, str], format_name: str, opcode: int, pc: int, word: int) -> str:
    name = table.get(opcode)
    if name is None:
        raise Unsupported(f"{format_name} opcode {opcode} ({word:08x} at pc {pc:#x}) is not in the executor's table")
    return name


def _scalar(text: bytes, pc: int, word: int, format_name: str, fields: dict[str, int]) -> Instruction:
    """SOP1, SOP2, SOPC, SOPK, SOPP: one dword, plus one for a literal source."""
    words: tuple[int, ...] = (word,)
    if LITERAL in (fields.get("ssrc0"), fields.get("ssrc1")):
        words += (_word(text, pc + 4),)
        fields["literal"] = words[1]
    name = _name(_TABLES[format_name], format_name, fields.pop("op"), pc, word)
    return Instruction(pc, 4 * len(words), format_name, name, fields, words)


def _sop1(text: bytes, pc: int, word: int) -> Instruction:
    return _scalar(text, pc, word, "SOP1", _bits(word, ssrc0=(0, 8), op=(8, 8), sdst=(16, 7)))


def _sop2(text: bytes, pc: int, word: int) -> Instruction:
    return _scalar(text, pc, word, "SOP2", _bits(word, ssrc0=(0, 8), ssrc1=(8, 8), sdst=(16, 7), op=(23, 7)))


def _sopc(text: bytes, pc: int, word: int) -> Instruction:
    return _scalar(text, pc, word, "SOPC", _bits(word, ssrc0=(0, 8), ssrc1=(8, 8), op=(16, 7)))


def _sopk(text: bytes, pc: int, word: int) -> Instruction:
    return _scalar(text, pc, word, "SOPK", _bits(word, simm16=(0, 16), sdst=(16, 7), op=(23, 5)))


def _sopp(text: bytes, pc: int, word: int) -> Instruction:
    return _scalar(text, pc, word, "SOPP", _bits(word, simm16=(0, 16), op=(16, 7)))


def _wide(text: bytes, pc: int, word: int, format_name: str, fields: dict[str, int]) -> Instruction:
    """Formats of two dwords."""
    high = _word(text, pc + 4)
    name = _name(_TABLES[format_name], format_name, fields.pop("op"), pc, word)
    return Instruction(pc, 8, format_name, name, _unreserved(fields, name, pc, word, high), (word, high))


def _unreserved(fields: dict[str, int], name: str, pc: int, word: int, high: int) -> dict[str, int]:
    """`fields` without those named `zero*`: these are reserved and must be 0."""
    for reserved in [key for key in fields if key.startswith("zero")]:
        if fields.pop(reserved):
            raise Unsupported(f"{name}: reserved bits are set in {word:08x} {high:08x} at pc {pc:#x}")
    return fields


def _smem(text: bytes, pc: int, word: int) -> Instruction:
    fields = _bits(word, sbase=(0, 6), sdst=(6, 7), zero=(13, 1), soffset_en=(14, 1), nv=(15, 1), glc=(16, 1),
                   imm=(17, 1), op=(18, 8))  # fmt: skip
    fields |= _bits(_word(text, pc + 4), offset=(0, 21), zero2=(21, 4), soffset=(25, 7))
    return _wide(text, pc, word, "SMEM", fields)


def _vop3(text: bytes, pc: int, word: int) -> Instruction:
    high = _word(text, pc + 4)
    opcode = (word >> 16) & 0x3FF
    name = _vop3_name(opcode, pc, word)
    if name in _VOP3B:
        fields = _bits(word, vdst=(0, 8), sdst=(8, 7), clamp=(15, 1)) | {"abs": 0, "opsel": 0}
    else:
        fields = _bits(word, vdst=(0, 8), abs=(8, 3), opsel=(11, 4), clamp=(15, 1))
    fields |= _bits(high, src0=(0, 9), src1=(9, 9), src2=(18, 9), omod=(27, 2), neg=(29, 3))
    return Instruction(pc, 8, "VOP3", name, fields, (word, high))


# VOP3B: those with a scalar destination beside the vector one (ISA 12.10).
_VOP3B = {"v_add_co_u32", "v_sub_co_u32", "v_subrev_co_u32", "v_addc_co_u32", "v_subb_co_u32", "v_subbrev_co_u32",
          "v_div_scale_f32", "v_mad_u64_u32", "v_mad_i64_i32"}  # fmt: skip
# Where the other formats' opcodes begin and end in VOP3's.
_INNER = (("VOPC", opcodes.VOPC, 0, 0x100), ("VOP2", opcodes.VOP2, 0x100, 0x140), ("VOP1", opcodes.VOP1, 0x140, 0x1C0))


def _vop3_name(opcode: int, pc: int, word: int) -> str:
    for family, table, start, end in _INNER:
        if start <= opcode < end:
            return _name(table, f"VOP3({family})", opcode - start, pc, word)
    return _name(opcodes.VOP3, "VOP3", opcode, pc, word)


def _vop3p(text: bytes, pc: int, word: int) -> Instruction:
    opcode = (word >> 16) & 0x7F
    if opcode >= 0x40:  # the matrix (MAI) half of VOP3P has other fields in the same bits (ISA 12.11)
        fields = _bits(word, vdst=(0, 8), cbsz=(8, 3), abid=(11, 4), acc_cd=(15, 1), op=(16, 7))
        fields |= _bits(_word(text, pc + 4), src0=(0, 9), src1=(9, 9), src2=(18, 9), acc=(27, 2), blgp=(29, 3))
        return _wide(text, pc, word, "VOP3P-MAI", fields)
    fields = _bits(word, vdst=(0, 8), neg_hi=(8, 3), opsel=(11, 3), opsel_hi2=(14, 1), clamp=(15, 1), op=(16, 7))
    fields |= _bits(_word(text, pc + 4), src0=(0, 9), src1=(9, 9), src2=(18, 9), opsel_hi=(27, 2), neg=(29, 3))
    fields["opsel_hi"] |= fields.pop("opsel_hi2") << 2
    return _wide(text, pc, word, "VOP3P", fields)


def _vector(text: bytes, pc: int, word: int, format_name: str, fields: dict[str, int]) -> Instruction:
    """VOP1, VOP2, VOPC: one dword, plus one for a literal, an SDWA or a DPP word, or the constant of v_fmamk/v_fmaak."""
    name = _name(_TABLES[format_name], format_name, fields.pop("op"), pc, word)
    if fields["src0"] == LITERAL or name in ("v_fmamk_f32", "v_fmaak_f32"):
        extra = _word(text, pc + 4)
        fields["literal"] = extra
        return Instruction(pc, 8, format_name, name, fields, (word, extra))
    if fields["src0"] in (SDWA, DPP):
        extra = _word(text, pc + 4)
        kind = "SDWA" if fields["src0"] == SDWA else "DPP"
        more = _sdwa_word(extra, format_name) if kind == "SDWA" else _dpp_word(extra)
        fields |= _unreserved(more, name, pc, word, extra)
        return Instruction(pc, 8, f"{format_name}-{kind}", name, fields, (word, extra))
    return Instruction(pc, 4, format_name, name, fields, (word,))


def _sdwa_word(extra: int, format_name: str) -> dict[str, int]:
    fields = _bits(extra, src0=(0, 8), src0_sel=(16, 3), src0_sext=(19, 1), src0_neg=(20, 1), src0_abs=(21, 1), zero=(22, 1),
                   s0=(23, 1), src1_sel=(24, 3), src1_sext=(27, 1), src1_neg=(28, 1), src1_abs=(29, 1), zero2=(30, 1), s1=(31, 1))  # fmt: skip
    if format_name == "VOPC":
        return fields | _bits(extra, sdst=(8, 7), sd=(15, 1))
    return fields | _bits(extra, dst_sel=(8, 3), dst_unused=(11, 2), clamp=(13, 1), omod=(14, 2))


def _dpp_word(extra: int) -> dict[str, int]:
    return _bits(extra, src0=(0, 8), dpp_ctrl=(8, 9), zero=(17, 2), bound_ctrl=(19, 1), src0_neg=(20, 1), src0_abs=(21, 1),
                 src1_neg=(22, 1), src1_abs=(23, 1), bank_mask=(24, 4), row_mask=(28, 4))  # fmt: skip


def _vop1(text: bytes, pc: int, word: int) -> Instruction:
    return _vector(text, pc, word, "VOP1", _bits(word, src0=(0, 9), op=(9, 8), vdst=(17, 8)))


def _vop2(text: bytes, pc: int, word: int) -> Instruction:
    return _vector(text, pc, word, "VOP2", _bits(word, src0=(0, 9), vsrc1=(9, 8), vdst=(17, 8), op=(25, 6)))


def _vopc(text: bytes, pc: int, word: int) -> Instruction:
    return _vector(text, pc, word, "VOPC", _bits(word, src0=(0, 9), vsrc1=(9, 8), op=(17, 8)))


def _ds(text: bytes, pc: int, word: int) -> Instruction:
    fields = _bits(word, offset0=(0, 8), offset1=(8, 8), gds=(16, 1), op=(17, 8), acc=(25, 1))
    fields |= _bits(_word(text, pc + 4), addr=(0, 8), data0=(8, 8), data1=(16, 8), vdst=(24, 8))
    return _wide(text, pc, word, "DS", fields)


def _flat(text: bytes, pc: int, word: int) -> Instruction:
    fields = _bits(word, offset=(0, 13), sve=(13, 1), seg=(14, 2), sc0=(16, 1), nt=(17, 1), op=(18, 7), sc1=(25, 1))
    fields |= _bits(_word(text, pc + 4), addr=(0, 8), data=(8, 8), saddr=(16, 7), acc=(23, 1), vdst=(24, 8))
    segment = fields.pop("seg")
    if segment == 3:
        raise Unsupported(f"reserved FLAT segment in {word:08x} at pc {pc:#x}")
    format_name = ("FLAT", "SCRATCH", "GLOBAL")[segment]
    return _wide(text, pc, word, format_name, fields)


def _mubuf(text: bytes, pc: int, word: int) -> Instruction:
    fields = _bits(word, offset=(0, 12), offen=(12, 1), idxen=(13, 1), sc0=(14, 1), sc1=(15, 1), lds=(16, 1), nt=(17, 1),
                   op=(18, 7), zero=(25, 1))  # fmt: skip
    fields |= _bits(_word(text, pc + 4), vaddr=(0, 8), vdata=(8, 8), srsrc=(16, 5), zero2=(21, 2), acc=(23, 1),
                    soffset=(24, 8))  # fmt: skip
    return _wide(text, pc, word, "MUBUF", fields)


# (prefix, its width in bits, reader). Longer prefixes first: SOP1/SOPC/SOPP lie inside SOP2's space, VOP1/VOPC in VOP2's.
_FORMATS: list[tuple[int, int, Callable[[bytes, int, int], Instruction]]] = [
    (0b101111101, 9, _sop1), (0b101111110, 9, _sopc), (0b101111111, 9, _sopp), (0b110100111, 9, _vop3p),
    (0b0111110, 7, _vopc), (0b0111111, 7, _vop1), (0b110000, 6, _smem), (0b110100, 6, _vop3), (0b110110, 6, _ds),
    (0b110111, 6, _flat), (0b111000, 6, _mubuf), (0b1011, 4, _sopk), (0b10, 2, _sop2), (0b0, 1, _vop2),
]  # fmt: skip
