# SPDX-License-Identifier: Apache-2.0
"""A decoded instruction as the text from which LLVM's assembler makes the same bytes.

Every field must find its place in the text, or be what the assembler writes there unasked; else the instruction has no text and
Unsupported says which field. tests/test_gfx942_text.py assembles the texts again.
"""

from __future__ import annotations

import re
from dataclasses import replace

from parity.gfx942 import text_operands as operands
from parity.gfx942.decode import Instruction
from parity.gfx942.faults import Unsupported
from parity.gfx942.text_fields import Fields
from parity.gfx942.text_immediates import IMMEDIATES
from parity.gfx942.text_layouts import layout, narrow_format
from parity.gfx942.text_modifiers import check_form, modifiers

# No suffix: their only encoding, or the only one that the assembler names.
_BARE = {"v_fmamk_f32", "v_fmaak_f32", "v_accvgpr_mov_b32", "v_readfirstlane_b32", "v_nop"}
_DATA = ("vdst", "vdata", "data", "data0", "data1")


def assembly(instruction: Instruction) -> str:
    """The text of `instruction`, with its encoding's suffix. Raises Unsupported where there is none."""
    try:
        return _text(_matrix(instruction))
    except Unsupported as error:
        raise Unsupported(f"{instruction} has no assembly text: {error}") from error


def _matrix(instruction: Instruction) -> Instruction:
    """A matrix instruction among VOP3P's packed opcodes (xf32) with the fields that its bits have."""
    if not (instruction.format == "VOP3P" and instruction.name.startswith("v_mfma")):
        return instruction
    old = instruction.fields
    fields = {"vdst": old["vdst"], "cbsz": old["neg_hi"], "abid": old["opsel"] | old["opsel_hi"] >> 2 << 3, "acc_cd": old["clamp"],
              "src0": old["src0"], "src1": old["src1"], "src2": old["src2"], "acc": old["opsel_hi"] & 3, "blgp": old["neg"]}  # fmt: skip
    return replace(instruction, format="VOP3P-MAI", fields=fields)


def _text(instruction: Instruction) -> str:
    words = layout(instruction.name, instruction.format)
    if instruction.format == "VOPC-SDWA":
        words = ["sdst:sd", *words[1:]]
    fields = Fields(instruction, words)
    check_form(fields)
    parts = [part for part in (_operand(fields, word) for word in words) if part]
    if (words[3:] and words[-1] == "vcc") or instruction.name == "v_div_fmas_f32":
        fields.reads_scalar("vcc")
    after = modifiers(fields)
    fields.finish()
    return " ".join(part for part in (instruction.name + _suffix(instruction), ", ".join(parts), *after) if part)


def _suffix(instruction: Instruction) -> str:
    family, _, kind = instruction.format.partition("-")
    if kind in ("SDWA", "DPP"):
        return "_" + kind.lower()
    if family == "VOP3" and narrow_format(instruction.name):
        return "_e64"
    return "_e32" if family in ("VOP1", "VOP2", "VOPC") and instruction.name not in _BARE else ""


def _operand(fields: Fields, word: str) -> str:
    field, _, kind = word.partition(":")
    if not kind:
        return word
    if kind in IMMEDIATES:
        return IMMEDIATES[kind](fields, field)
    if kind in ("global", "scratch", "index", "off", "sd"):
        return _address(fields, field, kind)
    if re.fullmatch(r"src\d|vsrc1", field):
        return _source(fields, field, kind)
    if kind[0] == "r" and not fields.peek("sc0"):
        return ""  # an atomic that returns nothing has no destination
    if field == "vdata" and fields.peek("lds"):
        return ""  # a load into LDS has none either
    code, count = fields.take(field), max(1, int(kind[1:]) // 32)
    if field in ("sbase", "srsrc"):
        return operands.scalar(code * (2 if field == "sbase" else 4), count)
    if field == "sdst" or kind[0] == "s":
        if (fields.format == "SMEM" and code >= 124) or (kind == "s32" and code == 124):
            raise Unsupported(f"{field}={code}")  # no loads into M0 and EXEC, no lanes into M0
        return operands.scalar(code, count)
    if field.startswith("ssrc") or field == "soffset":
        return operands.scalar_source(code, kind, fields.literal)
    return operands.vector(code, count, acc=kind[0] == "a" or _accumulates(fields, field))


def _accumulates(fields: Fields, field: str) -> bool:
    if fields.format == "VOP3P-MAI":
        return fields.has("acc_cd") and bool(fields.peek("acc_cd"))
    return field in _DATA and fields.has("acc") and bool(fields.peek("acc"))


def _source(fields: Fields, field: str, kind: str) -> str:
    """src0, src1, src2, vsrc1 of a vector instruction, with its modifiers."""
    code, index, count = fields.take(field), int(field[-1]), max(1, int(kind[1:]) // 32)
    extended = fields.format.partition("-")[2]
    # SDWA and DPP have a VGPR everywhere, SDWA a scalar register where its bit says so.
    if (field == "vsrc1" or extended in ("SDWA", "DPP")) and not fields.take_bit(f"s{index}", 0):
        code += 256
    if code >= 256:
        if kind[0] in "sl":
            raise Unsupported(f"{field} is no scalar register")
        acc = _accumulates(fields, field) if index == 2 else bool(fields.take_bit("acc", index))
        return _modified(fields, operands.vector(code - 256, count, acc=acc or kind[0] == "a"), index, kind)
    if kind[0] in "va" or (kind[0] == "c" and not operands.constant(code, 32)):
        raise Unsupported(f"{field} is no vector register")
    if extended == "SDWA" and code == 248 and kind in ("i16", "u16"):
        raise Unsupported(f"{field}=248, no constant of a 16-bit integer there")
    only_registers = kind[0] == "s" or (kind[0] == "l" and not operands.constant(code, 32))
    text = operands.scalar(code, count) if only_registers else operands.scalar_source(code, kind, fields.literal)
    if not operands.constant(code, 32) and not (kind[0] == "l" and text == "m0"):
        fields.reads_scalar("a literal" if code == 255 else text)
    return _modified(fields, text, index, kind)


def _modified(fields: Fields, text: str, index: int, kind: str) -> str:
    """The source with neg, abs and sext where the format has them and the type takes them."""
    extended = fields.format.partition("-")[2]
    if extended in ("SDWA", "DPP"):
        names = (f"src{index}_neg", f"src{index}_abs") if kind[0] == "f" else ("", "")
        bits, sext = (0, 0), "" if kind[0] in "fp" else f"src{index}_sext"
    elif fields.name == "v_fma_mix_f32":
        names, bits, sext = ("neg", "neg_hi"), (index, index), ""
    elif kind[0] == "f" and fields.format == "VOP3":
        names, bits, sext = ("neg", "abs"), (index, index), ""
    else:
        return text
    neg, absolute = (fields.take_bit(name, bit) for name, bit in zip(names, bits, strict=True))
    return operands.modified(text, neg=neg, absolute=absolute, sext=fields.take_bit(sext, 0))


def _address(fields: Fields, field: str, kind: str) -> str:
    """Operands whose form depends on other fields."""
    code = fields.take(field)
    if kind == "off":
        if code == 126:
            raise Unsupported("EXEC as an address")
        return "off" if code == 0x7F else operands.scalar(code, 1 if fields.format == "SCRATCH" else 2)
    if kind == "global":
        return operands.vector(code, 2 if fields.peek("saddr") == 0x7F else 1)
    if kind == "sd":
        if (not fields.take("sd") and code) or code == 106:  # the assembler has sd=0 for VCC
            raise Unsupported(f"sdst={code} with sd={fields.peek('sd')}")
        return operands.scalar(code, 2) if fields.peek("sd") else "vcc"
    count = fields.take("sve") if kind == "scratch" else fields.peek("offen") + fields.peek("idxen")
    if count == 0 and code:
        raise Unsupported(f"{field} is set but not used")
    return operands.vector(code, count) if count else "off"
