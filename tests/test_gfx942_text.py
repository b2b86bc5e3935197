# SPDX-License-Identifier: Apache-2.0
"""Instructions to text: what clang assembles from the text must be the instruction's bytes.

The bytes come from every template of gfx942_templates.py, in each encoding, with every single bit flipped and with random operand
codes; what has no text must be refused. Thousands of lines go into one assembler call.
"""

from __future__ import annotations

import random
import struct
from collections.abc import Iterator, Sequence
from functools import cache

import pytest

from parity.gfx942 import Unsupported, opcodes
from parity.gfx942.decode import DPP, SDWA, Instruction, decode_one
from parity.gfx942.text import assembly
from parity.gfx942.text_layouts import layout
from tests.gfx942_assembly import machine_code
from tests.gfx942_templates import TABLES, TEMPLATES, VECTOR

# As the assembler's manual and llvm-objdump write them.
TEXTS = """s_add_u32 s5, s7, 0x12345678
s_mov_b64 s[6:7], -1
s_mov_b32 m0, lit(0x5)
s_lshl_b64 vcc, exec, 3
s_cmp_lg_u64 s[10:11], 0
s_movk_i32 s5, 0xffff
s_getreg_b32 s5, hwreg(HW_REG_MODE, 4, 2)
s_setreg_b32 hwreg(HW_REG_STATUS), s5
s_waitcnt vmcnt(0)
s_waitcnt vmcnt(37) lgkmcnt(0)
s_waitcnt vmcnt(63) expcnt(7) lgkmcnt(15)
s_cbranch_execz 65533
s_endpgm
s_load_dwordx4 s[12:15], s[8:9], -0x8
s_load_dword s5, s[8:9], s7 offset:0x10 glc
s_buffer_load_dwordx2 s[6:7], s[8:11], s3
v_add_u32_e32 v1, v2, v3
v_add_f32_e32 v1, 0.15915494, v3
v_add_f32_e64 v1, neg(1.0), |v3| clamp div:2
v_cndmask_b32_e32 v1, 0, v3, vcc
v_addc_co_u32_e64 v1, s[4:5], v2, v3, s[6:7]
v_cmp_gt_f32_e64 s[4:5], -|v2|, s7
v_fma_f32 v5, -v7, |v9|, -|v11| clamp mul:4
v_fmamk_f32 v5, v7, lit(0x3f800000), v9
v_mad_u16 v5, v7, v9, v11 op_sel:[1,0,1,1]
v_cvt_pk_fp8_f32 v5, v7, v9 op_sel:[0,0,1]
v_readlane_b32 s5, v7, 63
v_lshlrev_b64 v[6:7], 3, v[8:9]
v_mad_u64_u32 v[6:7], s[10:11], v7, s9, v[12:13]
v_pk_fma_f32 v[6:7], v[8:9], s[10:11], v[12:13] op_sel:[1,0,1] op_sel_hi:[0,1,0] neg_lo:[1,1,0] neg_hi:[0,1,1]
v_pk_add_f16 v1, v2, v3 op_sel_hi:[1,0]
v_fma_mix_f32 v6, -v8, |v10|, 1.0 op_sel_hi:[1,0,0]
v_mfma_f32_16x16x32_fp8_fp8 v[0:3], v[0:1], v[18:19], 0
v_mfma_f32_32x32x16_fp8_bf8 a[0:15], a[16:17], v[18:19], a[0:15]
v_mfma_f32_16x16x8_xf32 v[4:7], a[8:9], v[10:11], v[12:15] cbsz:1 abid:9 blgp:5
v_accvgpr_write_b32 a5, 1.0
v_mov_b32_dpp v5, v7 quad_perm:[3,1,0,2] row_mask:0xf bank_mask:0xf
v_add_f32_dpp v5, -v7, |v9| row_ror:3 row_mask:0xa bank_mask:0x5 bound_ctrl:0
v_mov_b64_dpp v[6:7], v[8:9] row_newbcast:5 row_mask:0xf bank_mask:0xf
v_add_f32_sdwa v5, -v7, |s9| mul:2 dst_sel:WORD_1 dst_unused:UNUSED_PRESERVE src0_sel:BYTE_2 src1_sel:WORD_0
v_cmp_eq_u32_sdwa s[14:15], s7, sext(v9) src0_sel:DWORD src1_sel:BYTE_1
v_cvt_f32_fp8_sdwa v5, v7 src0_sel:BYTE_3
ds_read2st64_b64 v[4:7], v7 offset0:3 offset1:6
ds_write_b128 v7, a[8:11] offset:65520
ds_cmpst_rtn_b32 v5, v7, v9, v11
global_load_dwordx4 v[2:5], v[20:21], off offset:16
global_store_dwordx2 v2, v[4:5], s[6:7] offset:-4096 sc0 nt sc1
global_atomic_cmpswap_x2 v[2:3], v[20:21], v[4:7], off sc0
flat_load_ubyte_d16_hi v4, v[8:9] offset:4095
scratch_store_dword off, v4, s5 offset:8
scratch_load_dword a4, off, off
buffer_load_dwordx3 v[4:6], v[8:9], s[8:11], s13 idxen offen offset:291 sc1
buffer_load_dword v7, s[8:11], 0 offen lds
buffer_inv sc0 sc1""".splitlines()


def _instructions(code: bytes) -> Iterator[Instruction]:
    pc = 0
    while pc < len(code):
        yield decode_one(code, pc)
        pc += decode_one(code, pc).size


def _bytes(instruction: Instruction) -> bytes:
    return struct.pack(f"<{len(instruction.words)}I", *instruction.words)


def _assert_round_trip(instructions: Sequence[Instruction]) -> None:
    texts = [assembly(instruction) for instruction in instructions]
    code, pc = machine_code(texts), 0
    for instruction, text in zip(instructions, texts, strict=True):
        wanted = _bytes(instruction)
        assert code[pc : pc + len(wanted)].hex(" ", 4) == wanted.hex(" ", 4), text
        pc += len(wanted)
    assert pc == len(code)


def _with_text(codes: Iterator[bytes]) -> list[Instruction]:
    """What decodes and has a text, of codes with a literal behind them."""
    found = []
    for code in codes:
        try:
            instruction = decode_one(code, 0)
            assembly(instruction)
        except Unsupported:
            continue
        found.append(instruction)
    return found


@cache
def _templates() -> tuple[Instruction, ...]:
    """One instruction for every opcode, and the 64-bit forms of VOP1, VOP2 and VOPC."""
    lines = [
        f"{name} {text}" for templates in TEMPLATES.values() for text, _, names in templates for name in names.split()
    ]
    no_e64 = ("v_swap_b32", "v_readfirstlane_b32", "v_accvgpr_mov_b32", "v_fmamk_f32", "v_fmaak_f32")
    lines += [f"{name}_e64 {text.replace('vcc', 's[14:15]')}" for family in ("VOP1", "VOP2", "VOPC")
              for text, _, names in VECTOR[family] for name in names.split() if name not in no_e64]  # fmt: skip
    found = tuple(_instructions(machine_code(lines)))
    assert len(found) == len(lines)
    return found


@cache
def _lane_forms() -> tuple[Instruction, ...]:
    """SDWA and DPP forms of VOP1, VOP2 and VOPC, where the assembler has them."""
    codes = []
    for instruction in _templates():
        if instruction.format not in ("VOP1", "VOP2", "VOPC"):
            continue
        word, source = instruction.words[0] & ~0x1FF, instruction.words[0] & 0xFF
        selects = {"VOP1": 0x00060600, "VOP2": 0x06060600, "VOPC": 0x06060000}[instruction.format]
        codes += [
            struct.pack("<2I", word | SDWA, selects | source),
            struct.pack("<2I", word | DPP, 0xFF015300 | source),
        ]
    return tuple(_with_text(iter(codes)))


def test_every_opcode_has_a_text_that_assembles_to_its_bytes() -> None:
    _assert_round_trip(_templates())
    expected = {name for table in [*TABLES.values(), opcodes.VOP3P] for name in table.values()}
    assert {
        assembly(instruction).split()[0].removesuffix("_e32").removesuffix("_e64") for instruction in _templates()
    } == expected


def test_lane_forms() -> None:
    forms = _lane_forms()
    _assert_round_trip(forms)
    assert {(form.format, form.name) for form in forms} >= {("VOP1-SDWA", "v_cvt_f32_ubyte0"), ("VOP2-SDWA", "v_cndmask_b32"),
            ("VOPC-SDWA", "v_cmp_lt_i16"), ("VOP1-DPP", "v_mov_b64"), ("VOP2-DPP", "v_fmac_f64")}  # fmt: skip


def test_texts_worked_by_hand() -> None:
    code = machine_code(TEXTS)
    assert [assembly(instruction) for instruction in _instructions(code)] == TEXTS


def test_every_bit_flipped_has_the_right_text_or_none() -> None:
    bases = [_bytes(instruction) for instruction in (*_templates(), *_lane_forms())]
    flipped = ((int.from_bytes(base, "little") ^ 1 << bit).to_bytes(len(base), "little") + b"\x78\x56\x34\x12"
               for base in bases for bit in range(8 * len(base)))  # fmt: skip
    found = _with_text(flipped)
    assert len(found) > 40_000
    _assert_round_trip(found)


# Codes at the borders of the operand table, and literals that the assembler could shorten to an inline constant.
_CODES = (0, 101, 102, 104, 106, 107, 108, 124, 125, 126, 127, 128,
          129, 193, 208, 209, 235, 239, 240, 243, 248, 251, 253, 254, 255)  # fmt: skip
_LITERALS = (0, 1, 64, 65, 0xFFFFFFFF, 0xFFFFFFF0, 0xFFFFFFEF, 0x3F800000, 0x3E22F983, 0x80000000, 0x12345678, 0x3C00, 0xFFFF,
             0xFFFF8000, 0x3118, 0x3FC45F30)  # fmt: skip


def _varied(base: bytes, generator: random.Random) -> bytes:
    """Operand codes, a byte or a bit replaced, then a literal."""
    value, bits = int.from_bytes(base, "little"), 8 * len(base)
    for _ in range(generator.choice((1, 1, 2, 3))):
        kind, place = generator.randrange(4), generator.choice((0, 8) if bits == 32 else (0, 8, 32, 41, 50))
        if kind == 0:
            value ^= 1 << generator.randrange(bits)
        elif kind == 1:
            value ^= generator.getrandbits(8) << place
        else:
            value = value & ~((0x1FF if kind == 3 else 0xFF) << place) | generator.choice(_CODES) << place
    return (value % (1 << bits)).to_bytes(len(base), "little") + struct.pack("<I", generator.choice(_LITERALS))


def test_random_operands_have_the_right_text_or_none() -> None:
    generator = random.Random(942)
    bases = [_bytes(instruction) for instruction in (*_templates(), *_lane_forms())]
    found = _with_text(_varied(base, generator) for base in bases for _ in range(12))
    assert len(found) > 6_000
    _assert_round_trip(found)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((0xD1CB0005, 0x042612FF), "v_fma_f32 .* a literal in an encoding that has none"),
        ((0xD1CB0005, 0x04241207), "s7 and s9 are two scalar sources"),
        ((0xD1340101, 0x00020702), "v_add_u32 .* abs=1"),
        ((0xD13B2001, 0x00020702), "v_fmac_f32 .* opsel=4"),
        ((0x4C020EFF, 0x12345678), "literal 0x12345678 for 16 bits"),
        ((0x8006667D, 0), "operand code 125 is no group of 1 scalar registers"),
        ((0xBE860105, 0), "operand code 5 is no group of 2 scalar registers"),
        ((0xBF8A0001, 0), "s_barrier .* simm16=1"),
        ((0x320206F9, 0x16060602), "v_add_co_u32_sdwa .* src1_neg=1"),
        ((0x7E0A02F9, 0x00060707), "v_mov_b32_sdwa .* dst_sel=7"),
        ((0x7E0A02FA, 0xFF014407), "dpp_ctrl=0x144"),
        ((0x7E0A70FA, 0xFF010002), "64-bit operands with a lane pattern other than row_newbcast"),
        ((0x7C8412FA, 0xFF00E407), "v_cmp_eq_f32_dpp .* no DPP encoding"),
        ((0xD86D0000, 0x05000007), "ds_read_b32 .* gds=1"),
        ((0xDC508000, 0x057F0001), "no group of 2 vector registers begins at 1"),
        ((0xDC508000, 0x057E0002), "EXEC as an address"),
        ((0xE0504000, 0x80020407), "vaddr is set but not used"),
        ((0xD3F70004, 0x04320807), "src0 is no vector register"),
        ((0xD3F70004, 0x04421904), "vdst overlaps src2"),
        ((0xD3D84005, 0x08000107), "v_accvgpr_read_b32 .* acc=1, where the assembler writes 3"),
    ],
)
def test_no_text_is_refused_with_the_reason(words: tuple[int, int], message: str) -> None:
    with pytest.raises(Unsupported, match=message):
        assembly(decode_one(struct.pack("<2I", *words), 0))


def test_an_opcode_without_layout_is_refused() -> None:
    with pytest.raises(Unsupported, match="s_new_load has no operand layout"):
        layout("s_new_load", "SMEM")
