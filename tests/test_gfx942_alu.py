# SPDX-License-Identifier: Apache-2.0
"""Vector ALU: one instruction, literal operands, literal result, worked by hand from the CDNA3 ISA (chapter 12).

A row is one lane: values of v2, v3, ... (hex), a colon, values of v10, v11, ...; `vcc=` is the lane's bit of VCC before or after.
`nan` stands for any NaN. fp32 for readers: 3f800000 1, bf800000 -1, 40000000 2, 00800000 smallest normal, 33800000 2^-24.
"""

from __future__ import annotations

import pytest

from parity.gfx942 import Kernel, Unsupported, native
from tests import test_gfx942_numbers, test_gfx942_numbers_formats, test_gfx942_numbers_registers
from tests.gfx942_state import Before, execute, kernels, run

FMA_ROWS = """3f800800 3f800800 bf801000 : 33800000; 39800001 397ffffe 3f800001 : 3f800001; 00000001 3f800000 00000001 : 00000002;
    7f800000 00000000 3f800000 : nan; bf800000 3f800000 3f800000 : 00000000; 80000000 3f800000 80000000 : 80000000;
    7f7fffff 40000000 ff800000 : ff800000; 7f7fffff 40000000 ff7fffff : 7f7fffff; 3f800000 3f800000 7fc00000 : nan;
    00800000 33800000 00000000 : 00000000; 00800000 34000000 00000001 : 00000002"""
ELSEWHERE = (
    test_gfx942_numbers.MNEMONICS | test_gfx942_numbers_formats.MNEMONICS | test_gfx942_numbers_registers.MNEMONICS
)
# instruction: rows
LANES: dict[str, str] = {
    # -- moves and bits
    "v_mov_b32 v10, v2": "deadbeef : deadbeef; 7f800001 : 7f800001",
    "v_mov_b64 v[10:11], v[2:3]": "12345678 9abcdef0 : 12345678 9abcdef0",
    "v_not_b32 v10, v2": "00000000 : ffffffff; 12345678 : edcba987",
    "v_bfrev_b32 v10, v2": "00000001 : 80000000; 12345678 : 1e6a2c48; f0000000 : 0000000f",
    "v_and_b32 v10, v2, v3": "ff00ff00 12345678 : 12005600",
    "v_or_b32 v10, v2, v3": "ff00ff00 12345678 : ff34ff78",
    "v_xor_b32 v10, v2, v3": "ff00ff00 12345678 : ed34a978",
    "v_xnor_b32 v10, v2, v3": "0f0f0f0f 00ff00ff : f00ff00f",
    "v_cndmask_b32 v10, v2, v3, vcc": "1 2 vcc=0 : 1; 1 2 vcc=1 : 2",
    "v_lshrrev_b32 v10, v2, v3": "1 80000000 : 40000000; 21 80000000 : 40000000; 20 12345678 : 12345678; 1f ffffffff : 1",
    "v_ashrrev_i32 v10, v2, v3": "3f 80000000 : ffffffff; 4 80000000 : f8000000; 20 80000001 : 80000001; 4 70000000 : 07000000",
    "v_lshlrev_b32 v10, v2, v3": "20 1 : 1; 1f 3 : 80000000; 4 12345678 : 23456780",
    "v_lshlrev_b16 v10, v2, v3": "11 ffffc001 : 00008002; 10 12345678 : 00005678; f 3 : 00008000",
    "v_lshrrev_b16 v10, v2, v3": "11 ffff8000 : 00004000; f 12348000 : 1; ffff0010 1234abcd : 0000abcd",
    "v_lshlrev_b64 v[10:11], v2, v[4:5]": "41 0 80000001 0 : 2 1; 20 0 12345678 0 : 0 12345678; 3f 0 3 0 : 0 80000000",
    "v_lshrrev_b64 v[10:11], v2, v[4:5]": "1 0 0 1 : 80000000 0; 3f 0 0 80000000 : 1 0; 40 0 7 8 : 7 8",
    "v_ashrrev_i64 v[10:11], v2, v[4:5]": "3f 0 0 80000000 : ffffffff ffffffff; 1 0 0 80000001 : 80000000 c0000000; 40 0 7 8 : 7 8",
    "v_bfe_u32 v10, v2, v3, v4": """deadbeef 8 8 : be; deadbeef 0 0 : 0; deadbeef 18 10 : de; deadbeef 28 8 : be; deadbeef 0 20 : 0;
        deadbeef 0 1f : 5eadbeef; deadbeef 1f 1 : 1""",
    "v_bfe_i32 v10, v2, v3, v4": """deadbeef 8 8 : ffffffbe; deadbeef 18 8 : ffffffde; deadbeef 0 0 : 0; deadbeef 1c 8 : fffffffd;
        deadbeef 0 1f : deadbeef; 00000001 0 1 : ffffffff; 0000007f 0 8 : 7f; deadbeef 20 20 : 0; 7eadbeef 18 10 : 7e""",
    "v_bfi_b32 v10, v2, v3, v4": "ff00ff00 12345678 9abcdef0 : 12bc56f0",
    "v_alignbit_b32 v10, v2, v3, v4": """12345678 9abcdef0 8 : 789abcde; 12345678 9abcdef0 20 : 9abcdef0; 12345678 9abcdef0 1f : 2468acf1""",
    "v_perm_b32 v10, v2, v3, v4": """8899aabb 44556677 00010203 : 77665544; 8899aabb 44556677 07060504 : 8899aabb;
        8899aabb 44556677 0c0d0eff : 00ffffff; 8899aabb 44556677 08090a0b : 0000ffff; 0099aa00 c4558677 08090a0b : ffffff00;
        8899aabb 44556677 0c050c01 : 00aa0066""",
    "v_xad_u32 v10, v2, v3, v4": "ffffffff 0f0f0f0f 10 : f0f0f100; ffffffff 0 1 : 0",
    "v_and_or_b32 v10, v2, v3, v4": "ff00ff00 12345678 000000ff : 120056ff",
    "v_or3_b32 v10, v2, v3, v4": "1 2 4 : 7; 80000000 0 1 : 80000001",
    "v_lshl_or_b32 v10, v2, v3, v4": "1 3f 1 : 80000001; 3 20 4 : 7",
    # -- integers
    "v_add_u32 v10, v2, v3": "ffffffff 2 : 1; 7fffffff 1 : 80000000",
    "v_sub_u32 v10, v2, v3": "1 2 : ffffffff; 80000000 1 : 7fffffff",
    "v_subrev_u32 v10, v2, v3": "1 2 : 1; 2 1 : ffffffff",
    "v_min_i32 v10, v2, v3": "80000000 7fffffff : 80000000; ffffffff 0 : ffffffff; 2 1 : 1",
    "v_max_i32 v10, v2, v3": "80000000 7fffffff : 7fffffff; ffffffff 0 : 0; 2 1 : 2",
    "v_min_u32 v10, v2, v3": "80000000 7fffffff : 7fffffff; ffffffff 0 : 0",
    "v_max_u32 v10, v2, v3": "80000000 7fffffff : 80000000; ffffffff 0 : ffffffff",
    "v_mul_u32_u24 v10, v2, v3": "00ffffff 00ffffff : fe000001; ff000003 fe000002 : 6",
    "v_mad_u32_u24 v10, v2, v3, v4": "ff000002 ff000003 1 : 7; 00ffffff 00ffffff ffffffff : fe000000",
    "v_mul_lo_u32 v10, v2, v3": "ffffffff ffffffff : 1; 00010000 00010000 : 0; 12345678 10 : 23456780",
    "v_mul_hi_u32 v10, v2, v3": "ffffffff ffffffff : fffffffe; 00010000 00010000 : 1; 2 7fffffff : 0",
    "v_lshl_add_u32 v10, v2, v3, v4": "80000001 21 ffffffff : 1; 3 4 2 : 32",
    "v_add_lshl_u32 v10, v2, v3, v4": "ffffffff 2 24 : 10; 1 2 1f : 80000000",
    "v_add3_u32 v10, v2, v3, v4": "ffffffff ffffffff 3 : 1",
    "v_lshl_add_u64 v[10:11], v[2:3], v6, v[4:5]": """80000000 1 80000000 0 1 : 80000000 3; ffffffff ffffffff 1 0 0 : 0 0;
        1 0 0 0 4 : 10 0; ffffffff 0 1 0 0 : 0 1; 1 0 5 0 8 : 6 0""",
    "v_mad_u64_u32 v[10:11], vcc, v2, v3, v[4:5]": """ffffffff ffffffff ffffffff ffffffff : 00000000 fffffffe vcc=1; 2 3 1 0 : 7 0 vcc=0;
        ffffffff ffffffff 0 0 : 1 fffffffe vcc=0; 1 1 ffffffff ffffffff : 0 0 vcc=1""",
    "v_add_co_u32 v10, vcc, v2, v3": "ffffffff 1 : 0 vcc=1; fffffffe 1 : ffffffff vcc=0; ffffffff ffffffff : fffffffe vcc=1",
    "v_sub_co_u32 v10, vcc, v2, v3": "1 2 : ffffffff vcc=1; 2 1 : 1 vcc=0; 5 5 : 0 vcc=0",
    "v_subrev_co_u32 v10, vcc, v2, v3": "2 1 : ffffffff vcc=1; 1 2 : 1 vcc=0; 5 5 : 0 vcc=0",
    "v_addc_co_u32 v10, vcc, v2, v3, vcc": """ffffffff 0 vcc=1 : 0 vcc=1; ffffffff ffffffff vcc=1 : ffffffff vcc=1; 1 2 vcc=0 : 3 vcc=0;
        1 2 vcc=1 : 4 vcc=0""",
    "v_subb_co_u32 v10, vcc, v2, v3, vcc": """0 ffffffff vcc=1 : 0 vcc=1; 5 5 vcc=1 : ffffffff vcc=1; 5 4 vcc=1 : 0 vcc=0;
        5 5 vcc=0 : 0 vcc=0""",
    "v_subbrev_co_u32 v10, vcc, v2, v3, vcc": "4 5 vcc=1 : 0 vcc=0; 5 5 vcc=1 : ffffffff vcc=1; ffffffff 0 vcc=1 : 0 vcc=1",
    # -- conversions
    "v_cvt_f32_u32 v10, v2": "ffffffff : 4f800000; 01000001 : 4b800000; 01000003 : 4b800002; 80000000 : 4f000000; 0 : 0",
    "v_cvt_f32_i32 v10, v2": "ffffffff : bf800000; 80000000 : cf000000; 7fffffff : 4f000000; fefffffd : cb800002; 0 : 0",
    "v_cvt_u32_f32 v10, v2": """bf800000 : 0; bf000000 : 0; 4f800000 : ffffffff; 4f7fffff : ffffff00; 7fc00000 : 0; 7f800000 : ffffffff;
        ff800000 : 0; 3fffffff : 1; 00000001 : 0; 4f000000 : 80000000; 7f7fffff : ffffffff""",
    "v_cvt_i32_f32 v10, v2": """bfc00000 : ffffffff; 4f000000 : 7fffffff; cf000000 : 80000000; cf000001 : 80000000; 4effffff : 7fffff80;
        7fc00000 : 0; 7f800000 : 7fffffff; ff800000 : 80000000; 3fffffff : 1; bf7fffff : 0""",
    "v_cvt_f32_ubyte0 v10, v2": "fedcba98 : 43180000; ffffff00 : 0",
    "v_cvt_f32_ubyte1 v10, v2": "fedcba98 : 433a0000; ffff00ff : 0",
    "v_cvt_f32_ubyte2 v10, v2": "fedcba98 : 435c0000; ff00ffff : 0",
    "v_cvt_f32_ubyte3 v10, v2": "fedcba98 : 437e0000; 00ffffff : 0",
    "v_rcp_f32 v10, v2": "40000000 : 3f000000; c0000000 : bf000000; 0 : 7f800000; 80000000 : ff800000; 7f800000 : 0; ff800000 : 80000000; 7fc00000 : nan",
    "v_rcp_iflag_f32 v10, v2": "40000000 : 3f000000; 0 : 7f800000; 7fc00000 : nan; 4b800000 : 33800000",
    # -- fp32
    "v_add_f32 v10, v2, v3": """3f800000 33800000 : 3f800000; 3f800000 33800001 : 3f800001; 3f800001 33800000 : 3f800002;
        00000001 00000001 : 00000002; 00800000 80000001 : 007fffff; 7f800000 ff800000 : nan; 80000000 80000000 : 80000000;
        00000000 80000000 : 0; 3f800000 bf800000 : 0; 7f7fffff 7f7fffff : 7f800000; 7f7fffff 73000000 : 7f800000;
        7f7fffff 72ffffff : 7f7fffff; 7fc00000 3f800000 : nan""",
    "v_sub_f32 v10, v2, v3": "80000000 00000000 : 80000000; 40400000 3f800000 : 40000000; 00800000 00000001 : 007fffff; 7f800000 7f800000 : nan",
    "v_subrev_f32 v10, v2, v3": "3f800000 40400000 : 40000000; 40400000 3f800000 : c0000000",
    "v_mul_f32 v10, v2, v3": """3fc00000 3fc00000 : 40100000; 3f800001 3f800001 : 3f800002; 00800000 3f000000 : 00400000;
        00000001 3f000000 : 0; 00000003 3f000000 : 00000002; 0 7f800000 : nan; 80000000 3f800000 : 80000000;
        7f7fffff 40000000 : 7f800000; 80000000 bf800000 : 0""",
    "v_min_f32 v10, v2, v3": """7fc00000 3f800000 : 3f800000; 3f800000 7fc00000 : 3f800000; 7fc00000 ffc00000 : nan; 80000000 0 : 80000000;
        0 80000000 : 80000000; 3f800000 0 : 0; 0 bf800000 : bf800000; 3f800000 40000000 : 3f800000; 3f800000 ff800000 : ff800000; 1 2 : 1; 80000001 1 : 80000001;
        7f800001 3f800000 : nan; 3f800000 ff800001 : nan""",
    "v_max_f32 v10, v2, v3": """7fc00000 3f800000 : 3f800000; bf800000 7fc00000 : bf800000; 7fc00000 ffc00000 : nan; 80000000 0 : 0;
        0 80000000 : 0; 3f800000 0 : 3f800000; 0 bf800000 : 0; 3f800000 40000000 : 40000000; 80000000 80000000 : 80000000; 7fc00000 00000000 : 0; 1 2 : 2;
        7f800001 3f800000 : nan; 3f800000 ff800001 : nan; 7fc00000 80000000 : 80000000""",
    "v_fma_f32 v10, v2, v3, v4": FMA_ROWS,
    "v_mov_b32 v10, v4\nv_fmac_f32 v10, v2, v3": FMA_ROWS,
    "v_mul_f32 v11, v2, v3\nv_add_f32 v10, v11, v4": "3f800800 3f800800 bf801000 : 0",  # two roundings, unlike the fused ones
    "v_fmamk_f32 v10, v2, 0x3f800800, v3": "3f800800 bf801000 : 33800000; 40000000 3f800000 : 40400800",
    "v_fmaak_f32 v10, v2, v3, 0xbf801000": "3f800800 3f800800 : 33800000; 40000000 40000000 : 403ff800",
    # -- two fp32 at once
    "v_pk_fma_f32 v[10:11], v[2:3], v[4:5], v[6:7]": "3f800800 40000000 3f800800 40400000 bf801000 3f800000 : 33800000 40e00000",
    "v_pk_mul_f32 v[10:11], v[2:3], v[4:5]": "3fc00000 40000000 3fc00000 40400000 : 40100000 40c00000; 0 00000001 7f800000 3f000000 : nan 0",
    "v_pk_add_f32 v[10:11], v[2:3], v[4:5]": "3f800000 3f800001 33800000 33800000 : 3f800000 3f800002",
    "v_pk_mul_f32 v[10:11], v[2:3], v[4:5] op_sel:[1,0] op_sel_hi:[0,1]": "40000000 40400000 40a00000 40e00000 : 41700000 41600000",
    "v_pk_mul_f32 v[10:11], v[2:3], v[4:5] op_sel_hi:[1,0]": "40000000 40400000 40a00000 40e00000 : 41200000 41700000",
    "v_pk_add_f32 v[10:11], v[2:3], v[4:5] neg_lo:[0,1] neg_hi:[1,0]": "40000000 40400000 3f800000 3f800000 : 3f800000 c0000000",
    "v_pk_fma_f32 v[10:11], v[2:3], v[4:5], v[6:7] neg_lo:[0,0,1]": "40000000 40000000 40000000 40000000 3f800000 3f800000 : 40400000 40a00000",
    "v_mov_b64 v[10:11], v[2:3]\nv_pk_mul_f32 v[10:11], v[10:11], v[10:11] op_sel:[0,1] op_sel_hi:[1,0]": "40000000 40400000 : 40c00000 40c00000",
    "v_pk_mov_b32 v[10:11], v[2:3], v[4:5] op_sel:[1,0]": "1 2 3 4 : 2 3",
    "v_pk_mov_b32 v[10:11], v[2:3], v[4:5] op_sel:[0,1]": "1 2 3 4 : 1 4",
    "v_mov_b64 v[10:11], v[2:3]\nv_pk_mov_b32 v[10:11], v[10:11], v[10:11] op_sel:[1,0]": "1 2 : 2 1",
    # -- the same through the 64-bit encoding, with its modifiers
    "v_add_f32_e64 v10, -v2, |v3|": "3f800000 c0000000 : 3f800000; 00000000 80000000 : 0; bf800000 bf800000 : 40000000",
    "v_fma_f32 v10, -|v2|, v3, -v4": "bf800000 40000000 3f800000 : c0400000",
    "v_add_f32_e64 v10, v2, v3 clamp": "3f800000 3f800000 : 3f800000; bf800000 0 : 0; 3e800000 3e800000 : 3f000000; 7fc00000 0 : 0; 80000000 80000000 : 0",
    "v_cndmask_b32_e64 v10, v2, v3, vcc": "1 2 vcc=0 : 1; 1 2 vcc=1 : 2",
    "v_fmac_f32_e64 v10, -v2, v3": "00000000 3f800000 : . ",
    "v_max_f32_e64 v10, v2, 0": "bf800000 : 0; 80000000 : 0; 7fc00000 : 0; 3f800000 : 3f800000",
    "v_lshlrev_b32_e64 v10, 1, v2": "40000000 : 80000000",
    "v_mul_f32_e64 v10, 0.5, -4.0": "0 : c0000000",
    "v_add_u32_e64 v10, -16, v2": "10 : 0",
    "v_mul_f32_e32 v10, 0.15915494, v2": "3f800000 : 3e22f983",
    "v_add_u32 v10, 0x12345678, v2": "1 : 12345679",
    "v_lshlrev_b64 v[10:11], 4, -2": "0 : ffffffe0 ffffffff",
    "v_mov_b64 v[10:11], 7": "0 : 7 0",
    # -- SDWA: bytes and words of sources, parts of destinations
    "v_add_u32_sdwa v10, v2, v3 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:BYTE_1 src1_sel:WORD_1": "0000fe00 12340000 : 00001332",
    "v_add_u32_sdwa v10, sext(v2), v3 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:BYTE_3 src1_sel:DWORD": "fe000000 1 : ffffffff",
    "v_add_u32_sdwa v10, sext(v2), v3 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_0 src1_sel:BYTE_0": "1234fffe ff000001 : ffffffff",
    "v_or_b32_sdwa v10, v2, v3 dst_sel:BYTE_2 dst_unused:UNUSED_PAD src0_sel:BYTE_2 src1_sel:BYTE_0": "00120000 00000001 : 00130000",
    "v_mov_b32 v10, -1\nv_or_b32_sdwa v10, v2, v3 dst_sel:WORD_1 dst_unused:UNUSED_PRESERVE src0_sel:DWORD src1_sel:DWORD": "12340000 00000001 : 0001ffff",
    "s_movk_i32 s16, 0x1234\nv_add_u32_sdwa v10, v2, s16 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:BYTE_3 src1_sel:BYTE_1": "01ffffff 0 : 13",
    "v_cmp_eq_u32_sdwa vcc, v2, v3 src0_sel:BYTE_1 src1_sel:BYTE_0": "0000aa00 000000aa : vcc=1; 0000ab00 000000aa : vcc=0",
    "v_mul_f32_sdwa v10, -v2, |v3| dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:DWORD src1_sel:DWORD": "3f800000 c0000000 : c0000000",
}  # fmt: skip
LANES["v_mov_b32 v10, v4\nv_fmac_f32_e64 v10, -v2, |v3|"] = "3f800800 bf800800 3f801000 : b3800000"
del LANES["v_fmac_f32_e64 v10, -v2, v3"]

F32_PAIRS = {"3f800000 40000000": "lt", "bf800000 3f800000": "lt", "ff800000 7f7fffff": "lt", "00000001 00000002": "lt",
             "40000000 40000000": "eq", "80000000 00000000": "eq", "7f800000 7f800000": "eq", "40000000 3f800000": "gt",
             "7f800000 ff800000": "gt", "00000001 00000000": "gt", "7fc00000 3f800000": "un", "3f800000 7fc00000": "un",
             "7fc00000 7fc00000": "un", "7f800001 00000000": "un"}  # fmt: skip
F32_TRUE = {"f": "", "lt": "lt", "eq": "eq", "le": "lt eq", "gt": "gt", "lg": "lt gt", "ge": "gt eq", "o": "lt eq gt", "u": "un",
            "nge": "lt un", "nlg": "eq un", "ngt": "lt eq un", "nle": "gt un", "neq": "lt gt un", "nlt": "eq gt un",
            "tru": "lt eq gt un"}  # fmt: skip
# operands: (signed relation, unsigned relation)
PAIRS_32 = {"1 2": ("lt", "lt"), "80000000 7fffffff": ("lt", "gt"), "ffffffff ffffffff": ("eq", "eq"), "ffffffff 0": ("lt", "gt"),
            "7fffffff 80000000": ("gt", "lt"), "2 1": ("gt", "gt")}  # fmt: skip
PAIRS_16 = {"ffff0001 00000002": ("lt", "lt"), "8000 7fff": ("lt", "gt"), "1234ffff ffff": ("eq", "eq"), "ffff 0": ("lt", "gt"),
            "10000 20000": ("eq", "eq"), "2 ffff0001": ("gt", "gt")}  # fmt: skip
PAIRS_64 = {"2 1 1 2": ("lt", "lt"), "0 80000000 0 7fffffff": ("lt", "gt"), "5 6 5 6": ("eq", "eq"), "ffffffff ffffffff 0 0": ("lt", "gt"),
            "1 5 0 5": ("gt", "gt"), "0 5 80000000 5": ("lt", "lt"), "5 6 5 7": ("lt", "lt")}  # fmt: skip
INT_TRUE = {"f": "", "lt": "lt", "eq": "eq", "le": "lt eq", "gt": "gt", "ne": "lt gt", "ge": "gt eq", "t": "lt eq gt"}


def _compare_rows() -> dict[str, str]:
    rows = {}
    for stem in ("v_cmp", "v_cmpx"):
        for condition, true in F32_TRUE.items():
            lanes = [f"{pair} : vcc={int(relation in true.split())}" for pair, relation in F32_PAIRS.items()]
            rows[f"{stem}_{condition}_f32 vcc, v2, v3"] = "; ".join(lanes)
        for condition, true in INT_TRUE.items():
            for bits, pairs, operands in (
                (16, PAIRS_16, "v2, v3"),
                (32, PAIRS_32, "v2, v3"),
                (64, PAIRS_64, "v[2:3], v[4:5]"),
            ):
                for index, letter in enumerate("iu"):
                    lanes = [
                        f"{pair} : vcc={int(relations[index] in true.split())}" for pair, relations in pairs.items()
                    ]
                    rows[f"{stem}_{condition}_{letter}{bits} vcc, {operands}"] = "; ".join(lanes)
    return rows


COMPARES = _compare_rows()
ROWS = LANES | COMPARES


@pytest.fixture(scope="module")
def built() -> dict[str, Kernel]:
    names = {f"k{number}": body for number, body in enumerate(ROWS)}
    return {names[name]: kernel for name, kernel in kernels(names).items()}


def parse(row: str) -> tuple[list[str], list[str]]:
    left, right = row.split(":")
    return left.split(), right.split()


def before_of(rows: list[tuple[list[str], list[str]]]) -> Before:
    columns: dict[int, list[int]] = {}
    vcc = 0
    for lane, (given, _) in enumerate(rows):
        vcc |= int("vcc=1" in given) << lane
        for number, value in enumerate(token for token in given if not token.startswith("vcc")):
            columns.setdefault(2 + number, []).append(int(value, 16))
    return Before(vectors=columns, vcc=vcc)


def is_nan(value: int) -> bool:
    return value & 0x7FFFFFFF > 0x7F800000


@pytest.mark.parametrize("body", list(ROWS), ids=lambda body: body.replace("\n", "; "))
def test_lanes(body: str, built: dict[str, Kernel]) -> None:
    rows = [parse(row) for row in ROWS[body].split(";")]
    after = run(built[body], [before_of(rows)])[0]
    for lane, (given, expected) in enumerate(rows):
        for number, token in enumerate(expected):
            if token.startswith("vcc="):
                assert after.vcc >> lane & 1 == int(token[4:]), f"lane {lane} {given}: VCC"
                if body.startswith("v_cmpx"):
                    assert after.execute >> lane & 1 == int(token[4:]), f"lane {lane} {given}: EXEC"
                continue
            actual = int(after.v[10 + number][lane])
            right = is_nan(actual) if token == "nan" else actual == int(token, 16)
            assert right, f"lane {lane} {given}: v{10 + number} is {actual:08x}, expected {token}"


def test_every_instruction_with_semantics_has_rows() -> None:
    tested = {
        line.split()[0].removesuffix("_e32").removesuffix("_e64").removesuffix("_sdwa")
        for body in ROWS
        for line in body.split("\n")
    }
    assert {name for name, entry in native.semantics().items() if entry.kind != "D"} - ELSEWHERE <= tested


def test_reciprocals_are_counted_as_approximate(built: dict[str, Kernel]) -> None:
    assert run(built["v_rcp_f32 v10, v2"], [Before()])[0].report.fidelity.approximate == 1
    assert run(built["v_rcp_iflag_f32 v10, v2"], [Before(), Before()])[0].report.fidelity.approximate == 2
    assert run(built["v_add_f32 v10, v2, v3"], [Before()])[0].report.fidelity.approximate == 0


# -- refused -----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("v_add_f32_e64 v10, v2, v3 mul:2", "modifier omod=1"),
        ("v_mul_u32_u24_e64 v10, v2, v3 clamp", "clamp on an integer result"),
        ("v_add_co_u32_e64 v10, vcc, v2, v3 clamp", "modifier clamp=1"),
        ("v_cndmask_b32_e64 v10, -v2, v3, vcc", "abs or neg on an integer source"),
        ("v_cndmask_b32_e64 v10, v2, |v3|, vcc", "abs or neg on an integer source"),
        ("v_mov_b32_dpp v10, v2 wave_shl:1 row_mask:0xf bank_mask:0xf", "dpp_ctrl 0x130"),
        (".long 0x7d9406fa, 0xff014002", "v_cmp_eq_u32_dpp .*: DPP in a comparison"),  # clang refuses to assemble it
        ("v_add_co_u32_dpp v10, vcc, v2, v3 row_mirror row_mask:0xf bank_mask:0xf", "encoding of a carry"),
        (
            "v_add_u32_sdwa v10, v2, v3 dst_sel:BYTE_1 dst_unused:UNUSED_SEXT src0_sel:DWORD src1_sel:DWORD",
            "dst_unused=1",
        ),
        ("v_add_f32_sdwa v10, v2, v3 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_1 src1_sel:DWORD", "SDWA"),
        ("v_add_f32_sdwa v10, v2, v3 dst_sel:WORD_1 dst_unused:UNUSED_PAD src0_sel:DWORD src1_sel:DWORD", "SDWA"),
        (
            "v_add_f32_sdwa v10, v2, v3 clamp dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:DWORD src1_sel:DWORD",
            "modifier clamp=1",
        ),
        ("v_pk_mul_f32 v[10:11], v[2:3], 2.0", "constant in a packed operand"),
        ("v_pk_mul_f32 v[10:11], v[2:3], v[4:5] clamp", "modifier clamp=1"),
        ("v_pk_fma_f16 v10, v2, v3, v4", "no semantics"),
        ("v_sin_f32 v10, v2", "no semantics"),
        ("v_lshrrev_b16 v10, 1.0, v2", "floating-point inline constant in a 16-bit operand"),
        ("v_lshlrev_b64 v[10:11], 4, 1.0", "floating-point inline constant in a 64-bit integer operand"),
        ("v_mov_b32 v10, src_vccz", "scalar operand 251"),
        ("v_mov_b32 v10, src_shared_base", "scalar operand 235"),
        ("v_mov_b32 v10, v32", "v32 is beyond the registers"),
        ("v_mov_b64 v[10:11], v[32:33]", "beyond the registers"),
        (".long 0xd1cb000a, 0x040e04ff", "literal"),  # v_fma_f32 with source code 255: no literal follows on gfx942
        (".long 0xd13b000a, 0x80020702", "neg"),  # v_fmac_f32_e64 with neg on its missing third source
    ],
)
def test_refused(body: str, message: str) -> None:
    with pytest.raises(Unsupported, match=message):
        execute(body)
