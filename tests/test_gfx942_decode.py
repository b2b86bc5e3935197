# SPDX-License-Identifier: Apache-2.0
"""Machine code to fields: clang assembles a line, the decoder must give back its mnemonic and every field.

Every entry of opcodes.py stands in one template of gfx942_templates.py (test_every_opcode_has_a_template); the numbers expected
there and here are those of the text.
"""

from __future__ import annotations

import pytest

from parity.gfx942 import opcodes
from parity.gfx942.decode import Instruction, decode_one
from tests.gfx942_assembly import machine_code
from tests.gfx942_templates import (
    DS_FIELDS,
    FLAT_FIELDS,
    MAI_FIELDS,
    MUBUF_FIELDS,
    PACKED_FIELDS,
    SMEM_FIELDS,
    TABLES,
    TEMPLATES,
    VECTOR,
    VOP3_FIELDS,
    VOP3B_FIELDS,
    Fields,
    V,
)

_NO_E32 = {
    "v_fmamk_f32",
    "v_fmaak_f32",
    "v_accvgpr_mov_b32",
    "v_readfirstlane_b32",
    "v_nop",
}  # only one encoding, no suffix
_NO_E64 = _NO_E32 | {"v_swap_b32", "v_pk_fmac_f16"}


def _lines(format_name: str) -> list[tuple[str, str, Fields]]:
    """(line, mnemonic, fields) of every template of a format."""
    result = []
    for operands, fields, names in TEMPLATES[format_name]:
        for name in names.split():
            suffix = "_e32" if format_name in ("VOP1", "VOP2", "VOPC") and name not in _NO_E32 else ""
            result.append((f"{name}{suffix} {operands}", name, fields))
    return result


def _decoded(lines: list[str]) -> list[Instruction]:
    text = machine_code(lines)
    instructions, pc = [], 0
    while pc < len(text) and len(instructions) < len(lines):
        instructions.append(decode_one(text, pc))
        pc += instructions[-1].size
    return instructions


def one(line: str) -> Instruction:
    return _decoded([line])[0]


def test_every_opcode_has_a_template() -> None:
    for format_name, table in TABLES.items():
        assert {name for _, name, _ in _lines(format_name)} == set(table.values()), format_name
    packed = {name for format_name in ("VOP3P", "VOP3P-MAI") for _, name, _ in _lines(format_name)}
    assert packed == set(opcodes.VOP3P.values())


def test_each_opcode_number_has_its_own_name() -> None:
    for table in [*TABLES.values(), opcodes.VOP3P]:
        assert len(set(table.values())) == len(table)


def test_each_opcode_decodes_to_its_mnemonic_and_fields() -> None:
    expected = [
        (line, format_name, name, fields) for format_name in TEMPLATES for line, name, fields in _lines(format_name)
    ]
    actual = _decoded([line for line, *_ in expected])
    assert len(actual) == len(expected)
    wrong = [f"{line}: {found} {found.fields}" for (line, format_name, name, fields), found in zip(expected, actual, strict=True)
             if (found.format, found.name, found.fields) != (format_name, name, fields)]  # fmt: skip
    assert not wrong


def _as_e64(format_name: str, fields: Fields) -> Fields:
    """Fields of the 64-bit encoding of a VOP1, VOP2 or VOPC line; the compare writes s[14:15]."""
    wide = VOP3_FIELDS | {"src0": fields["src0"], "src1": V + fields["vsrc1"] if format_name != "VOP1" else 0}
    return wide | {"vdst": 14 if format_name == "VOPC" else fields["vdst"]}


def test_e64_forms_of_vop1_vop2_vopc() -> None:
    expected = []
    for format_name in ("VOP1", "VOP2", "VOPC"):
        for operands, fields, names in VECTOR[format_name]:
            if ", vcc" in operands and format_name == "VOP2":
                continue  # carries and selections: below
            for name in set(names.split()) - _NO_E64:
                expected.append(
                    (f"{name}_e64 {operands.replace('vcc', 's[14:15]')}", name, _as_e64(format_name, fields))
                )
    actual = _decoded([line for line, *_ in expected])
    assert [(found.format, found.name, found.fields) for found in actual] == [
        ("VOP3", name, wide) for _, name, wide in expected
    ]


@pytest.mark.parametrize("name", ["v_add_co_u32", "v_sub_co_u32", "v_subrev_co_u32"])
def test_e64_carry_out(name: str) -> None:
    found = one(f"{name}_e64 v6, s[10:11], v7, v9")
    assert (found.name, found.fields) == (name, VOP3B_FIELDS | {"src2": 0})


@pytest.mark.parametrize("name", ["v_addc_co_u32", "v_subb_co_u32", "v_subbrev_co_u32"])
def test_e64_carry_in_and_out(name: str) -> None:
    found = one(f"{name}_e64 v6, s[10:11], v7, v9, s[12:13]")
    assert (found.name, found.fields) == (name, VOP3B_FIELDS | {"src2": 12})


def test_e64_selection_takes_its_mask_from_src2() -> None:
    assert one("v_cndmask_b32_e64 v5, v7, v9, s[12:13]").fields == VOP3_FIELDS | {"src2": 12}


def test_vop3_modifiers() -> None:
    found = one("v_fma_f32 v5, -v7, |v9|, -|v11| clamp mul:4")
    assert found.fields == VOP3_FIELDS | {"src2": V + 11, "neg": 0b101, "abs": 0b110, "clamp": 1, "omod": 2}
    assert one("v_mad_u16 v5, v7, v9, v11 op_sel:[1,0,1,1]").fields == VOP3_FIELDS | {"src2": V + 11, "opsel": 0b1101}


def test_vop3p_modifiers() -> None:
    found = one(
        "v_pk_fma_f32 v[6:7], v[8:9], v[10:11], v[12:13] op_sel:[1,0,1] op_sel_hi:[0,1,0] neg_lo:[1,1,0] neg_hi:[0,1,1]"
    )
    assert found.fields == PACKED_FIELDS | {
        "src2": V + 12,
        "opsel": 0b101,
        "opsel_hi": 0b010,
        "neg": 0b011,
        "neg_hi": 0b110,
    }


def test_mai_modifiers_and_accumulation_registers() -> None:
    found = one("v_mfma_f32_16x16x4_f32 a[4:7], a8, v10, a[12:15] cbsz:2 abid:3 blgp:5")
    expected = {
        "vdst": 4,
        "src0": V + 8,
        "src1": V + 10,
        "src2": V + 12,
        "acc": 0b01,
        "acc_cd": 1,
        "cbsz": 2,
        "abid": 3,
        "blgp": 5,
    }
    assert found.fields == MAI_FIELDS | expected
    found = one("v_mfma_f32_16x16x32_fp8_fp8 v[4:7], v[8:9], a[10:11], 0")
    assert found.fields == MAI_FIELDS | {"vdst": 4, "src0": V + 8, "src1": V + 10, "src2": 128, "acc": 0b10}


def test_sdwa_fields() -> None:
    line = "v_add_f32_sdwa v5, -v7, |v9| dst_sel:WORD_1 dst_unused:UNUSED_PRESERVE src0_sel:BYTE_2 src1_sel:WORD_0"
    found = one(line)
    assert (found.format, found.name, found.size) == ("VOP2-SDWA", "v_add_f32", 8)
    expected = {
        "vdst": 5,
        "src0": 7,
        "vsrc1": 9,
        "dst_sel": 5,
        "dst_unused": 2,
        "src0_sel": 2,
        "src1_sel": 4,
        "src0_neg": 1,
        "src1_abs": 1,
    }
    zero = {"src0_sext", "src0_abs", "s0", "src1_sext", "src1_neg", "s1", "clamp", "omod"}
    assert found.fields == expected | dict.fromkeys(zero, 0)
    scalar = one("v_cmp_eq_u32_sdwa s[14:15], s7, sext(v9) src0_sel:DWORD src1_sel:BYTE_1")
    assert (scalar.format, scalar.name) == ("VOPC-SDWA", "v_cmp_eq_u32")
    wanted = {
        "src0": 7,
        "s0": 1,
        "vsrc1": 9,
        "s1": 0,
        "src0_sel": 6,
        "src1_sel": 1,
        "src1_sext": 1,
        "sd": 1,
        "sdst": 14,
    }
    assert {name: scalar.fields[name] for name in wanted} == wanted


def test_sdwa_second_source_may_be_scalar() -> None:
    found = one("v_add_u32_sdwa v5, v7, s9 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:BYTE_3 src1_sel:WORD_1")
    wanted = {"src0": 7, "s0": 0, "vsrc1": 9, "s1": 1, "src0_sel": 3, "src1_sel": 5}
    assert {name: found.fields[name] for name in wanted} == wanted


def test_dpp_fields() -> None:
    found = one("v_add_f32_dpp v5, -v7, |v9| row_ror:3 row_mask:0xa bank_mask:0x5 bound_ctrl:0")
    assert (found.format, found.name, found.size) == ("VOP2-DPP", "v_add_f32", 8)
    expected = {"vdst": 5, "src0": 7, "vsrc1": 9, "dpp_ctrl": 0x123, "row_mask": 10, "bank_mask": 5, "bound_ctrl": 1, "src0_neg": 1,
                "src0_abs": 0, "src1_neg": 0, "src1_abs": 1}  # fmt: skip
    assert found.fields == expected
    assert (
        one("v_mov_b32_dpp v5, v7 quad_perm:[3,1,0,2] row_mask:0xf bank_mask:0xf").fields["dpp_ctrl"] == 0b10_00_01_11
    )


@pytest.mark.parametrize("line", ["s_mov_b32 s5, 0x12345678", "s_add_u32 s5, s7, 0x12345678", "s_cmp_eq_u32 0x12345678, s9",
                                  "v_mov_b32 v5, 0x12345678", "v_add_f32 v5, 0x12345678, v9", "v_cmp_lt_u32 vcc, 0x12345678, v9"])  # fmt: skip
def test_literal(line: str) -> None:
    found = one(line)
    assert (found.size, found.fields["literal"], found.words[1]) == (8, 0x12345678, 0x12345678)


def test_inline_constants_and_special_registers() -> None:
    codes = {"0": 128, "64": 192, "-1": 193, "-16": 208, "0.5": 240, "-0.5": 241, "1.0": 242, "-1.0": 243, "2.0": 244, "-2.0": 245,
             "4.0": 246, "-4.0": 247, "0.15915494": 248, "vcc_lo": 106, "vcc_hi": 107, "m0": 124, "exec_lo": 126, "exec_hi": 127,
             "src_scc": 253, "s0": 0, "s101": 101}  # fmt: skip
    found = _decoded([f"v_mov_b32 v5, {operand}" for operand in codes])
    assert [instruction.fields["src0"] for instruction in found] == list(codes.values())


def test_smem_offset_forms() -> None:
    assert one("s_load_dword s5, s[8:9], -8").fields == SMEM_FIELDS | {"sdst": 5, "offset": 0x1FFFF8}
    assert one("s_load_dword s5, s[8:9], s7").fields == SMEM_FIELDS | {"sdst": 5, "imm": 0, "offset": 7}
    assert one("s_load_dword s5, s[8:9], s7 offset:0x10").fields == SMEM_FIELDS | {
        "sdst": 5,
        "soffset_en": 1,
        "soffset": 7,
    }
    assert one("s_load_dword s5, s[8:9], 0x10 glc").fields == SMEM_FIELDS | {"sdst": 5, "glc": 1}


def test_cache_bits_and_scalar_base() -> None:
    found = one("global_load_dword v4, v8, s[14:15] offset:4095 sc0 nt sc1")
    assert found.fields == FLAT_FIELDS | {"vdst": 4, "saddr": 14, "offset": 4095, "sc0": 1, "nt": 1, "sc1": 1}
    found = one("buffer_load_dword v4, v7, s[8:11], 0 idxen sc0 nt sc1")
    assert found.fields == MUBUF_FIELDS | {"vdata": 4, "vaddr": 7, "idxen": 1, "sc0": 1, "nt": 1, "sc1": 1}
    assert one("global_load_dword a4, v[8:9], off").fields == FLAT_FIELDS | {"vdst": 4, "acc": 1}
    assert one("ds_read_b32 a5, v7").fields == DS_FIELDS | {"vdst": 5, "acc": 1}


def test_str_names_encoding_and_bytes() -> None:
    assert (
        str(one("v_mov_b32_dpp v5, v7 row_mirror row_mask:0xf bank_mask:0xf"))
        == "v_mov_b32_dpp [VOP1-DPP 7e0a02fa ff014007]"
    )
