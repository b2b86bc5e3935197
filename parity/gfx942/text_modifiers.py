# SPDX-License-Identifier: Apache-2.0
"""What follows an instruction's operands (offsets, cache bits, clamp, op_sel, lane patterns).

Source: LLVM "Syntax of AMDGPU Instruction Modifiers"; CDNA3 ISA chapter 12.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from parity.gfx942.faults import Unsupported
from parity.gfx942.text_fields import Fields

_SELECTS = ("BYTE_0", "BYTE_1", "BYTE_2", "BYTE_3", "WORD_0", "WORD_1", "DWORD")
_UNUSED = ("UNUSED_PAD", "UNUSED_SEXT", "UNUSED_PRESERVE")
_OMOD = ("", "mul:2", "mul:4", "div:2")
_DPP = {0x130: "wave_shl:1", 0x134: "wave_rol:1", 0x138: "wave_shr:1", 0x13C: "wave_ror:1", 0x140: "row_mirror", 0x141: "row_half_mirror",
        0x142: "row_bcast:15", 0x143: "row_bcast:31"}  # fmt: skip
_DPP_ROWS = {0x10: "row_shl", 0x11: "row_shr", 0x12: "row_ror"}  # by 1 to 15 lanes
# Integer instructions that clamp, and those with floats that do not.
_CLAMPS = re.compile(r"v_mad_[iu](32|64)_[iu](16|24|32)|v_mad_[iu]16|v_sad_.*|v_(add|sub)_i32|v_mul_[iu]32_[iu]24|v_(add|sub|subrev)_u(16|32)"
                     r"|v_(add|sub|subrev|addc|subb|subbrev)_co_u32|v_align(bit|byte)_b32")  # fmt: skip
_NEVER_CLAMPS = re.compile(r"v_cvt_(pk|sr)_(fp8|bf8)_f32|v_cndmask_b32|v_cmpx?_class_f32")
# VOP3 instructions with op_sel, and those without one of the encodings.
_HALVES = re.compile(
    r"v_align(bit|byte)_b32|v_mad_(u32_u16|i32_i16|u16|i16)|v_pack_b32_f16|v_cvt_(pk|sr)_(fp8|bf8)_f32"
)
_NO_E64 = re.compile(r"v_(swap_b32|readfirstlane_b32|accvgpr_mov_b32|fmamk_f32|fmaak_f32)")
_NO_DPP = re.compile(_NO_E64.pattern + r"|v_nop|v_cmpx?_.*")
_NO_SDWA = re.compile(_NO_E64.pattern + r"|v_nop|v_fmac_f32|v_pk_fmac_f16|.*[bfiu]64.*")


def check_form(fields: Fields) -> None:
    """Raise Unsupported where the assembler has no such encoding of the instruction."""
    kind = fields.format.partition("-")[2] or fields.format
    if kind == "MAI" and "accvgpr" in fields.name:
        fields.expect(cbsz=0, abid=8, acc_cd=0, acc=3, blgp=0)  # clang sets what VOP3P's op_sel_hi has by default
    forms = {"SDWA": _NO_SDWA, "DPP": _NO_DPP, "VOP3": _NO_E64}
    if kind in forms and forms[kind].fullmatch(fields.name):
        raise Unsupported(f"it has no {kind} encoding")
    if fields.name == "global_atomic_add_f32" and fields.peek("acc") and fields.peek("sc0"):
        raise Unsupported("it returns nothing in AGPRs")
    if kind == "DPP" and fields.peek("dpp_ctrl") >> 4 != 0x15 and any(word.endswith("64") for word in fields.words):
        raise Unsupported("64-bit operands with a lane pattern other than row_newbcast")


def modifiers(fields: Fields) -> list[str]:
    """All modifiers of an instruction, in the assembler's order. Takes their fields."""
    family, _, kind = fields.format.partition("-")
    by_format: dict[str, Callable[[Fields], list[str]]] = {
        "SDWA": _sdwa, "DPP": _dpp, "MAI": _mai, "VOP3": _vop3, "VOP3P": _packed, "SMEM": _smem, "DS": _ds, "FLAT": _flat,
        "GLOBAL": _flat, "SCRATCH": _flat, "MUBUF": _mubuf}  # fmt: skip
    return by_format[kind or family](fields) if (kind or family) in by_format else []


def _flags(fields: Fields, *names: str) -> list[str]:
    return [name for name in names if fields.take(name)]


def _number(fields: Fields, field: str, bits: int = 0) -> list[str]:
    """`field:value` unless 0; signed when `bits` gives the sign's place."""
    value = fields.take(field)
    return [f"{field}:{value - (1 << bits) if bits and value >> (bits - 1) else value}"] if value else []


def _array(name: str, value: int, count: int) -> str:
    return f"{name}:[{','.join(str(value >> index & 1) for index in range(count))}]"


def _sources(fields: Fields) -> int:
    return sum(word.startswith(("src", "vsrc")) for word in fields.words)


def _omod(fields: Fields) -> list[str]:
    """A float result, and VOP3's conversions to integers."""
    to_integer = fields.format == "VOP3" and re.fullmatch(r"v_cvt_[iu]32_f(32|64)", fields.name)
    return [_OMOD[fields.take("omod")]] if to_integer or fields.words[0].startswith("vdst:f") else []


def _clamp(fields: Fields) -> list[str]:
    floats = any(word.partition(":")[2].startswith("f") for word in fields.words) and not _NEVER_CLAMPS.fullmatch(
        fields.name
    )
    return _flags(fields, "clamp") if floats or _CLAMPS.fullmatch(fields.name) else []


def _vop3(fields: Fields) -> list[str]:
    found = []
    if fields.peek("opsel") and _HALVES.fullmatch(fields.name):
        # One bit a source, then the destination's, which is the fourth. v_cvt_sr takes its byte from the third and fourth.
        places = range(4) if "_sr_" in fields.name else [*range(_sources(fields)), 3]
        found = [f"op_sel:[{','.join(str(fields.take_bit('opsel', place)) for place in places)}]"]
    return found + _clamp(fields) + _omod(fields) if fields.words else []


def _packed(fields: Fields) -> list[str]:
    count, whole = _sources(fields), 0 if fields.name == "v_fma_mix_f32" else 7
    opsel, opsel_hi, neg, neg_hi = (fields.take(field) for field in ("opsel", "opsel_hi", "neg", "neg_hi"))
    found = [_array(name, value, count) for name, value, default in (("op_sel", opsel, 0), ("op_sel_hi", opsel_hi, whole),
             ("neg_lo", neg, 0), ("neg_hi", neg_hi, 0)) if value != default]  # fmt: skip
    if fields.name.startswith("v_dot") and (opsel, opsel_hi) != (0, 7):
        raise Unsupported(f"opsel={opsel}, opsel_hi={opsel_hi}")
    for name, value, default in (
        ("opsel", opsel, 0),
        ("opsel_hi", opsel_hi, whole),
        ("neg", neg, 0),
        ("neg_hi", neg_hi, 0),
    ):
        if value >> count != default >> count:
            raise Unsupported(f"{name}={value} with {count} sources")
    return found + _flags(fields, "clamp")


def _mai(fields: Fields) -> list[str]:
    if not fields.has("acc_cd"):
        return []
    fields.take("acc_cd")
    _overlap(fields)
    return [text for name in ("cbsz", "abid", "blgp") for text in _number(fields, name)]


def _overlap(fields: Fields) -> None:
    """The assembler refuses a D of 16 registers that overlaps C and is not C."""
    first, addend = fields.peek("vdst"), fields.peek("src2") - 256
    if "512" in fields.words[0] and addend >= 0 and 0 < abs(first - addend) < 16:
        raise Unsupported("vdst overlaps src2")


def _sdwa(fields: Fields) -> list[str]:
    found = []
    if re.fullmatch("v_cvt(_pk)?_f32_(fp8|bf8)", fields.name):
        found += _clamp(fields) + _omod(fields)
        fields.expect(dst_sel=6, dst_unused=0)
    elif fields.has("dst_sel"):
        found += _clamp(fields) + _omod(fields)
        found += [
            f"dst_sel:{_choice(fields, 'dst_sel', _SELECTS)}",
            f"dst_unused:{_choice(fields, 'dst_unused', _UNUSED)}",
        ]
    for index in range(_sources(fields)):
        found.append(f"src{index}_sel:{_choice(fields, f'src{index}_sel', _SELECTS)}")
    return found


def _choice(fields: Fields, field: str, names: tuple[str, ...]) -> str:
    value = fields.take(field)
    if value >= len(names):
        raise Unsupported(f"{field}={value}")
    return names[value]


def _dpp(fields: Fields) -> list[str]:
    rows, banks = fields.take("row_mask"), fields.take("bank_mask")
    bound = ["bound_ctrl:0"] if fields.take("bound_ctrl") else []
    return [_lanes(fields.take("dpp_ctrl")), f"row_mask:{rows:#x}", f"bank_mask:{banks:#x}", *bound]


def _lanes(control: int) -> str:
    if control < 0x100:
        return f"quad_perm:[{','.join(str(control >> 2 * lane & 3) for lane in range(4))}]"
    if control in _DPP:
        return _DPP[control]
    if control >> 4 in _DPP_ROWS and control & 15:
        return f"{_DPP_ROWS[control >> 4]}:{control & 15}"
    if control >> 4 == 0x15:
        return f"row_newbcast:{control & 15}"
    raise Unsupported(f"dpp_ctrl={control:#x}")


def _smem(fields: Fields) -> list[str]:
    if "dcache" in fields.name or "time" in fields.name:
        return []
    return _flags(fields, "glc")


def _ds(fields: Fields) -> list[str]:
    _data_acc(fields)
    if re.match("ds_(read|write)2", fields.name):
        found = _number(fields, "offset0") + _number(fields, "offset1")
    else:
        offset = fields.take("offset0") | fields.take("offset1") << 8
        found = [f"offset:{offset}"] if offset else []
    return found


def _flat(fields: Fields) -> list[str]:
    _data_acc(fields)
    if fields.format == "FLAT" and fields.peek("offset") >= 4096:
        raise Unsupported(f"offset={fields.peek('offset')}")
    return _number(fields, "offset", 13) + _flags(fields, "sc0", "nt", "sc1")


def _mubuf(fields: Fields) -> list[str]:
    if not fields.words:  # cache instructions
        return _flags(fields, "sc0", "sc1")
    lds = re.fullmatch(r"buffer_load_([us]byte|[us]short|dword)", fields.name)
    if not (lds and fields.peek("lds")):
        _data_acc(fields)
    found = _flags(fields, "idxen", "offen") + _number(fields, "offset") + _flags(fields, "sc0", "nt", "sc1")
    return found + _flags(fields, "lds") if lds else found


def _data_acc(fields: Fields) -> None:
    """`acc` says that the data registers, which the operands have shown by now, are AGPRs."""
    fields.take("acc")
