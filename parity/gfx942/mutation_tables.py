# SPDX-License-Identifier: Apache-2.0
"""Where the fields of an encoding stand in its words, and which opcodes are neighbours: what mutation_edits.py works from.

Source of the positions: CDNA3 ISA, chapter 12 "Microcode Formats". Every edit is decoded again and must change the named field
alone, so a wrong line here yields no mutants instead of wrong ones.
"""

from __future__ import annotations

from parity.gfx942 import opcodes

Place = tuple[int, int, int]  # word, lowest bit, width

# fmt: off
_SDWA: dict[str, Place] = {"src0": (1, 0, 8), "src0_sel": (1, 16, 3), "src1_sel": (1, 24, 3)}
_DPP: dict[str, Place] = {"src0": (1, 0, 8), "dpp_ctrl": (1, 8, 9), "bound_ctrl": (1, 19, 1), "bank_mask": (1, 24, 4),
                          "row_mask": (1, 28, 4)}
_VOP1: dict[str, Place] = {"op": (0, 9, 8), "src0": (0, 0, 9), "vdst": (0, 17, 8), "literal": (1, 0, 32)}
_VOP2: dict[str, Place] = {"op": (0, 25, 6), "src0": (0, 0, 9), "vsrc1": (0, 9, 8), "vdst": (0, 17, 8), "literal": (1, 0, 32)}
_VOPC: dict[str, Place] = {"op": (0, 17, 8), "src0": (0, 0, 9), "vsrc1": (0, 9, 8), "literal": (1, 0, 32)}
_THREE: dict[str, Place] = {"vdst": (0, 0, 8), "src0": (1, 0, 9), "src1": (1, 9, 9), "src2": (1, 18, 9), "neg": (1, 29, 3)}
_FLAT: dict[str, Place] = {"op": (0, 18, 7), "offset": (0, 0, 13), "addr": (1, 0, 8), "data": (1, 8, 8), "saddr": (1, 16, 7),
                           "vdst": (1, 24, 8)}
PLACES: dict[str, dict[str, Place]] = {
    "SOP1": {"op": (0, 8, 8), "ssrc0": (0, 0, 8), "sdst": (0, 16, 7), "literal": (1, 0, 32)},
    "SOP2": {"op": (0, 23, 7), "ssrc0": (0, 0, 8), "ssrc1": (0, 8, 8), "sdst": (0, 16, 7), "literal": (1, 0, 32)},
    "SOPC": {"op": (0, 16, 7), "ssrc0": (0, 0, 8), "ssrc1": (0, 8, 8), "literal": (1, 0, 32)},
    "SOPK": {"op": (0, 23, 5), "sdst": (0, 16, 7), "simm16": (0, 0, 16)},
    "SOPP": {"op": (0, 16, 7), "simm16": (0, 0, 16)},
    "VOP1": _VOP1, "VOP1-SDWA": _VOP1 | _SDWA | {"dst_sel": (1, 8, 3)}, "VOP1-DPP": _VOP1 | _DPP,
    "VOP2": _VOP2, "VOP2-SDWA": _VOP2 | _SDWA | {"dst_sel": (1, 8, 3)}, "VOP2-DPP": _VOP2 | _DPP,
    "VOPC": _VOPC, "VOPC-SDWA": _VOPC | _SDWA,
    "VOP3": _THREE | {"op": (0, 16, 10), "sdst": (0, 8, 7), "opsel": (0, 11, 4), "abs": (0, 8, 3)},
    "VOP3P": _THREE | {"op": (0, 16, 7), "opsel": (0, 11, 3), "opsel_hi": (1, 27, 2), "neg_hi": (0, 8, 3)},
    "VOP3P-MAI": {"op": (0, 16, 7), "vdst": (0, 0, 8), "src0": (1, 0, 9), "src1": (1, 9, 9), "src2": (1, 18, 9)},
    "SMEM": {"op": (0, 18, 8), "sbase": (0, 0, 6), "sdst": (0, 6, 7), "offset": (1, 0, 21)},
    "FLAT": _FLAT, "GLOBAL": _FLAT, "SCRATCH": _FLAT,
    "MUBUF": {"op": (0, 18, 7), "offset": (0, 0, 12), "vaddr": (1, 0, 8), "vdata": (1, 8, 8), "srsrc": (1, 16, 5),
              "soffset": (1, 24, 8)},
    "DS": {"op": (0, 17, 8), "offset0": (0, 0, 8), "offset1": (0, 8, 8), "addr": (1, 0, 8), "data0": (1, 8, 8),
           "data1": (1, 16, 8), "vdst": (1, 24, 8)},
}
# Opcode numbers of VOP3: its own, and those of the formats that it widens (ISA 12.10).
_VOP3: dict[int, str] = (dict(opcodes.VOPC) | {0x100 + code: name for code, name in opcodes.VOP2.items()}
                         | {0x140 + code: name for code, name in opcodes.VOP1.items()} | opcodes.VOP3)
TABLES: dict[str, dict[int, str]] = {
    "SOP1": opcodes.SOP1, "SOP2": opcodes.SOP2, "SOPC": opcodes.SOPC, "SOPK": opcodes.SOPK, "SOPP": opcodes.SOPP,
    "VOP1": opcodes.VOP1, "VOP2": opcodes.VOP2, "VOPC": opcodes.VOPC, "VOP3": _VOP3, "VOP3P": opcodes.VOP3P,
    "SMEM": opcodes.SMEM, "FLAT": opcodes.FLAT, "GLOBAL": opcodes.GLOBAL, "SCRATCH": opcodes.SCRATCH,
    "MUBUF": opcodes.MUBUF, "DS": opcodes.DS}
# Pieces of mnemonics that a slip turns into one another; a line works in both directions. Left out where both compute the same in
# all that kernels do with them: s_add_u32 and s_add_i32 differ in the carry alone, v_rcp_f32 and v_rcp_iflag_f32 in exceptions, or, xor
# and add not at all on disjoint bits, and x >= 0 of unsigned numbers not from x == 0.
NEIGHBOURS: tuple[tuple[str, str], ...] = (
    ("_add_", "_sub_"), ("_addc_", "_subb_"), ("_sub_", "_subrev_"), ("_add_co_", "_sub_co_"), ("_mul_", "_add_"),
    ("_mul_lo_", "_mul_hi_"), ("_mul_i32", "_mul_hi_u32"), ("_mul_hi_u32", "_mul_hi_i32"), ("_mul_u32_u24", "_mul_i32_i24"),
    ("_min_", "_max_"), ("_min3_", "_max3_"), ("_max3_", "_med3_"), ("_min_i32", "_min_u32"), ("_max_i32", "_max_u32"),
    ("_lshl_b", "_lshr_b"), ("_lshlrev_b", "_lshrrev_b"), ("_lshr_b32", "_ashr_i32"), ("_lshrrev_b32", "_ashrrev_i32"),
    ("_lshr_b64", "_ashr_i64"), ("_lshl_add_u32", "_add_lshl_u32"), ("_lshl_or_b32", "_and_or_b32"),
    ("_add3_u32", "_lshl_add_u32"), ("_xad_u32", "_add3_u32"), ("_lshl1_", "_lshl2_"),
    ("_lshl2_", "_lshl3_"), ("_lshl3_", "_lshl4_"), ("_and_b", "_or_b"), ("_and_b", "_andn2_b"), ("_xor_b", "_and_b"),
    ("_xor_b", "_xnor_b"), ("_or_b", "_orn2_b"), ("_and_saveexec", "_or_saveexec"), ("_and_saveexec", "_andn2_saveexec"),
    ("_bfe_u", "_bfe_i"), ("_mov_b32", "_not_b32"), ("_not_b32", "_brev_b32"), ("_mov_b64", "_not_b64"), ("v_mov_b32", "v_bfrev_b32"),
    ("_cmp_lt_", "_cmp_le_"), ("_cmp_lt_", "_cmp_ge_"), ("_cmp_gt_", "_cmp_ge_"), ("_cmp_gt_", "_cmp_le_"), ("_cmp_gt_", "_cmp_lt_"),
    ("_cmp_eq_", "_cmp_ne_"), ("_cmp_eq_", "_cmp_lg_"),
    ("_cmpk_lt_", "_cmpk_le_"), ("_cmpk_lt_", "_cmpk_ge_"), ("_cmpk_gt_", "_cmpk_ge_"), ("_cmpk_gt_", "_cmpk_le_"),
    ("_cmpk_eq_", "_cmpk_lg_"), ("_bitcmp0_", "_bitcmp1_"), ("cmp_lt_i", "cmp_lt_u"), ("cmp_gt_i", "cmp_gt_u"),
    ("cmp_le_i", "cmp_le_u"), ("cmp_ge_i", "cmp_ge_u"), ("cmp_lt_i64", "cmp_lt_i32"), ("cmp_ne_u16", "cmp_ne_u32"),
    ("v_fmac_f32", "v_mul_f32"), ("v_fmac_f32", "v_add_f32"), ("v_fma_f32", "v_max3_f32"), ("v_pk_fma_f32", "v_pk_mul_f32"),
    ("v_pk_fma_f32", "v_pk_add_f32"), ("v_pk_mul_f32", "v_pk_add_f32"), ("_cvt_f32_u32", "_cvt_f32_i32"),
    ("_cvt_u32_f32", "_cvt_i32_f32"), ("_f32_fp8", "_f32_bf8"), ("_add_u16", "_add_u32"), ("_movk_i32", "_addk_i32"),
    ("fp8_fp8", "fp8_bf8"), ("fp8_fp8", "bf8_fp8"), ("_dwordx2", "_dwordx4"), ("_load_dword", "_load_dwordx2"),
    ("_store_dword", "_store_short"), ("_load_dword", "_load_ushort"), ("_load_ubyte", "_load_sbyte"), ("_load_ubyte", "_load_ushort"),
    ("ds_read_b32", "ds_read_b64"), ("ds_read_b64", "ds_read_b128"), ("ds_read_b32", "ds_read_u16"), ("ds_read_u8", "ds_read_i8"),
    ("ds_read_u8", "ds_read_u16"), ("ds_read2_b", "ds_read2st64_b"), ("ds_write2_b", "ds_write2st64_b"),
    ("ds_write_b32", "ds_write_b64"), ("ds_write_b64", "ds_write_b128"), ("ds_write_b32", "ds_write_b16"),
    ("ds_write_b8", "ds_write_b16"), ("v_readlane_b32", "v_readfirstlane_b32"),
)
# Swapping the first two sources of these changes nothing.
COMMUTATIVE = (r"[sv]_(pk_)?(add|mul|and|or|xor|xnor|nand|nor|min|max|min3|max3|med3|add3|or3|addc|mad|fma|fmac|absdiff)_.*|s_mul_hi_.*"
               r"|v_mul_(lo|hi)_.*|v_add_co_u32|.*_cmpk?_(eq|ne|lg|neq|nlg|o|u)_.*|s_(nand|nor|xnor|and|or|xor)_.*|v_add_lshl_u32"
               r"|v_and_or_b32|v_xad_u32|v_mad_[ui]64_.*|v_mul_[iu]32_.*")
# Swapping any two sources of these changes nothing.
SYMMETRIC = r"v_(add3|or3|min3|max3|med3)_.*"
# fmt: on
