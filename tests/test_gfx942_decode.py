# SPDX-License-Identifier: Apache-2.0
"""Machine code to fields: clang assembles a line, the decoder must give back its mnemonic and every field.

Each operand of a template has its own register number, so that a field read from another's bits shows. Every entry of
opcodes.py stands in one template (test_every_opcode_has_a_template); the numbers expected here are those of the text.
"""

from __future__ import annotations

import struct

import pytest
from gfx942_assembly import machine_code

from parity.gfx942 import Unsupported, opcodes
from parity.gfx942.decode import Instruction, decode, decode_one

V = 256  # code of v0 in a 9-bit source
VCC = 106

Fields = dict[str, int]
# (operand text, expected fields, mnemonics)
Template = tuple[str, Fields, str]

_SOP2_32 = """s_add_u32 s_sub_u32 s_add_i32 s_sub_i32 s_addc_u32 s_subb_u32 s_min_i32 s_min_u32 s_max_i32 s_max_u32
    s_cselect_b32 s_and_b32 s_or_b32 s_xor_b32 s_andn2_b32 s_orn2_b32 s_nand_b32 s_nor_b32 s_xnor_b32 s_lshl_b32 s_lshr_b32
    s_ashr_i32 s_bfm_b32 s_mul_i32 s_bfe_u32 s_bfe_i32 s_absdiff_i32 s_mul_hi_u32 s_mul_hi_i32 s_lshl1_add_u32
    s_lshl2_add_u32 s_lshl3_add_u32 s_lshl4_add_u32 s_pack_ll_b32_b16 s_pack_lh_b32_b16 s_pack_hh_b32_b16"""
_SOP2_64 = """s_cselect_b64 s_and_b64 s_or_b64 s_xor_b64 s_andn2_b64 s_orn2_b64 s_nand_b64 s_nor_b64 s_xnor_b64"""
_SOP1_32 = """s_mov_b32 s_cmov_b32 s_not_b32 s_wqm_b32 s_brev_b32 s_bcnt0_i32_b32 s_bcnt1_i32_b32 s_ff0_i32_b32 s_ff1_i32_b32
    s_flbit_i32_b32 s_flbit_i32 s_sext_i32_i8 s_sext_i32_i16 s_bitset0_b32 s_bitset1_b32 s_abs_i32"""
_SOP1_64 = """s_mov_b64 s_cmov_b64 s_not_b64 s_wqm_b64 s_brev_b64 s_swappc_b64 s_and_saveexec_b64 s_or_saveexec_b64
    s_xor_saveexec_b64 s_andn2_saveexec_b64 s_orn2_saveexec_b64 s_nand_saveexec_b64 s_nor_saveexec_b64 s_xnor_saveexec_b64
    s_andn1_saveexec_b64 s_orn1_saveexec_b64 s_andn1_wrexec_b64 s_andn2_wrexec_b64"""
_SOPK = """s_movk_i32 s_cmovk_i32 s_cmpk_eq_i32 s_cmpk_lg_i32 s_cmpk_gt_i32 s_cmpk_ge_i32 s_cmpk_lt_i32 s_cmpk_le_i32
    s_cmpk_eq_u32 s_cmpk_lg_u32 s_cmpk_gt_u32 s_cmpk_ge_u32 s_cmpk_lt_u32 s_cmpk_le_u32 s_addk_i32 s_mulk_i32"""
_VOP1_32 = """v_mov_b32 v_cvt_f32_i32 v_cvt_f32_u32 v_cvt_u32_f32 v_cvt_i32_f32 v_cvt_f16_f32 v_cvt_f32_f16 v_cvt_rpi_i32_f32
    v_cvt_flr_i32_f32 v_cvt_f32_ubyte0 v_cvt_f32_ubyte1 v_cvt_f32_ubyte2 v_cvt_f32_ubyte3 v_fract_f32 v_trunc_f32 v_ceil_f32
    v_rndne_f32 v_floor_f32 v_exp_f32 v_log_f32 v_rcp_f32 v_rcp_iflag_f32 v_rsq_f32 v_sqrt_f32 v_sin_f32 v_cos_f32 v_not_b32
    v_bfrev_b32 v_ffbh_u32 v_ffbl_b32 v_ffbh_i32 v_frexp_exp_i32_f32 v_frexp_mant_f32 v_sat_pk_u8_i16 v_cvt_f32_fp8
    v_cvt_f32_bf8"""
_VOP2_32 = """v_add_f32 v_sub_f32 v_subrev_f32 v_mul_f32 v_mul_i32_i24 v_mul_hi_i32_i24 v_mul_u32_u24 v_mul_hi_u32_u24 v_min_f32
    v_max_f32 v_min_i32 v_max_i32 v_min_u32 v_max_u32 v_lshrrev_b32 v_ashrrev_i32 v_lshlrev_b32 v_and_b32 v_or_b32 v_xor_b32
    v_xnor_b32 v_add_f16 v_sub_f16 v_subrev_f16 v_mul_f16 v_add_u16 v_sub_u16 v_subrev_u16 v_mul_lo_u16 v_lshlrev_b16
    v_lshrrev_b16 v_ashrrev_i16 v_max_f16 v_min_f16 v_max_u16 v_max_i16 v_min_u16 v_min_i16 v_add_u32 v_sub_u32 v_subrev_u32
    v_fmac_f32 v_pk_fmac_f16"""
_VOP3_3 = """v_mad_i32_i24 v_mad_u32_u24 v_cubeid_f32 v_bfe_u32 v_bfe_i32 v_bfi_b32 v_fma_f32 v_lerp_u8 v_alignbit_b32 v_alignbyte_b32
    v_min3_f32 v_min3_i32 v_min3_u32 v_max3_f32 v_max3_i32 v_max3_u32 v_med3_f32 v_med3_i32 v_med3_u32 v_sad_u8 v_sad_u32
    v_cvt_pk_u8_f32 v_div_fixup_f32 v_div_fmas_f32 v_perm_b32 v_mad_u32_u16 v_mad_i32_i16 v_xad_u32 v_lshl_add_u32 v_add_lshl_u32
    v_add3_u32 v_lshl_or_b32 v_and_or_b32 v_or3_b32 v_mad_u16 v_mad_i16"""
_VOP3_2 = """v_mul_lo_u32 v_mul_hi_u32 v_mul_hi_i32 v_ldexp_f32 v_bcnt_u32_b32 v_mbcnt_lo_u32_b32 v_mbcnt_hi_u32_b32 v_bfm_b32
    v_cvt_pknorm_i16_f32 v_cvt_pkrtz_f16_f32 v_cvt_pk_u16_u32 v_cvt_pk_i16_i32 v_add_i32 v_sub_i32 v_pack_b32_f16 v_cvt_pk_fp8_f32
    v_cvt_pk_bf8_f32 v_cvt_sr_fp8_f32 v_cvt_sr_bf8_f32"""
_PK_2 = """v_pk_mul_lo_u16 v_pk_add_i16 v_pk_sub_i16 v_pk_lshlrev_b16 v_pk_lshrrev_b16 v_pk_ashrrev_i16 v_pk_max_i16 v_pk_min_i16
    v_pk_add_u16 v_pk_sub_u16 v_pk_max_u16 v_pk_min_u16 v_pk_add_f16 v_pk_mul_f16 v_pk_min_f16 v_pk_max_f16"""
_F32_CONDITIONS = "f lt eq le gt lg ge o u nge nlg ngt nle neq nlt tru".split()
_INT_CONDITIONS = "f lt eq le gt ne ge t".split()


def _compares(*types: str) -> str:
    return " ".join(f"{stem}_{condition}_{kind}" for stem in ("v_cmp", "v_cmpx") for kind in types
                    for condition in (_F32_CONDITIONS if kind == "f32" else _INT_CONDITIONS))  # fmt: skip


def _mfma(shape: str) -> str:
    return " ".join(f"v_mfma_f32_{shape}_{left}_{right}" for left in ("fp8", "bf8") for right in ("fp8", "bf8"))


_SMEM: Fields = {"sbase": 4, "sdst": 0, "soffset_en": 0, "nv": 0, "glc": 0, "imm": 1, "offset": 0x10, "soffset": 0}
_VOP3: Fields = {"vdst": 5, "abs": 0, "opsel": 0, "clamp": 0, "src0": V + 7, "src1": V + 9, "src2": 0, "omod": 0, "neg": 0}
_VOP3B: Fields = {"vdst": 6, "sdst": 10, "clamp": 0, "abs": 0, "opsel": 0, "src0": V + 7, "src1": V + 9, "src2": V + 12,
                  "omod": 0, "neg": 0}  # fmt: skip
_PK: Fields = {"vdst": 6, "neg_hi": 0, "opsel": 0, "clamp": 0, "src0": V + 8, "src1": V + 10, "src2": 0, "opsel_hi": 7, "neg": 0}
_MAI: Fields = {"vdst": 0, "cbsz": 0, "abid": 0, "acc_cd": 0, "src0": 0, "src1": 0, "src2": 0, "acc": 0, "blgp": 0}
_DS: Fields = {"offset0": 0, "offset1": 0, "gds": 0, "acc": 0, "addr": 7, "data0": 0, "data1": 0, "vdst": 0}
_FLAT: Fields = {"offset": 0, "sve": 0, "sc0": 0, "nt": 0, "sc1": 0, "addr": 8, "data": 0, "saddr": 0x7F, "acc": 0, "vdst": 0}
_MUBUF: Fields = {"offset": 0, "offen": 0, "idxen": 0, "sc0": 0, "sc1": 0, "lds": 0, "nt": 0, "vaddr": 0, "vdata": 0, "srsrc": 2,
                  "acc": 0, "soffset": 128}  # fmt: skip

SOP: dict[str, list[Template]] = {
    "SOP2": [
        ("s5, s7, s9", {"sdst": 5, "ssrc0": 7, "ssrc1": 9}, _SOP2_32),
        ("s[6:7], s[10:11], s[14:15]", {"sdst": 6, "ssrc0": 10, "ssrc1": 14}, _SOP2_64),
        ("s[6:7], s[10:11], s9", {"sdst": 6, "ssrc0": 10, "ssrc1": 9}, "s_lshl_b64 s_lshr_b64 s_ashr_i64 s_bfe_u64 s_bfe_i64"),
        ("s[6:7], s9, s11", {"sdst": 6, "ssrc0": 9, "ssrc1": 11}, "s_bfm_b64"),
    ],
    "SOP1": [
        ("s5, s7", {"ssrc0": 7, "sdst": 5}, _SOP1_32),
        ("s[6:7], s[10:11]", {"ssrc0": 10, "sdst": 6}, _SOP1_64),
        ("s5, s[10:11]", {"ssrc0": 10, "sdst": 5},
         "s_bcnt0_i32_b64 s_bcnt1_i32_b64 s_ff0_i32_b64 s_ff1_i32_b64 s_flbit_i32_b64 s_flbit_i32_i64"),
        ("s[6:7], s9", {"ssrc0": 9, "sdst": 6}, "s_bitset0_b64 s_bitset1_b64"),
        ("s[6:7]", {"ssrc0": 0, "sdst": 6}, "s_getpc_b64"),
        ("s[10:11]", {"ssrc0": 10, "sdst": 0}, "s_setpc_b64"),
    ],
    "SOPC": [
        ("s7, s9", {"ssrc0": 7, "ssrc1": 9},
         """s_cmp_eq_i32 s_cmp_lg_i32 s_cmp_gt_i32 s_cmp_ge_i32 s_cmp_lt_i32 s_cmp_le_i32 s_cmp_eq_u32 s_cmp_lg_u32 s_cmp_gt_u32
         s_cmp_ge_u32 s_cmp_lt_u32 s_cmp_le_u32 s_bitcmp0_b32 s_bitcmp1_b32"""),
        ("s[10:11], s9", {"ssrc0": 10, "ssrc1": 9}, "s_bitcmp0_b64 s_bitcmp1_b64"),
        ("s[10:11], s[14:15]", {"ssrc0": 10, "ssrc1": 14}, "s_cmp_eq_u64 s_cmp_lg_u64"),
    ],
    "SOPK": [
        ("s5, 0x1234", {"simm16": 0x1234, "sdst": 5}, _SOPK),
        ("s5, hwreg(HW_REG_MODE, 3, 5)", {"simm16": 1 | 3 << 6 | 4 << 11, "sdst": 5}, "s_getreg_b32"),
        ("hwreg(HW_REG_MODE, 3, 5), s5", {"simm16": 1 | 3 << 6 | 4 << 11, "sdst": 5}, "s_setreg_b32"),
    ],
    "SOPP": [
        ("5", {"simm16": 5}, """s_nop s_branch s_cbranch_scc0 s_cbranch_scc1 s_cbranch_vccz s_cbranch_vccnz s_cbranch_execz
         s_cbranch_execnz s_waitcnt s_sethalt s_sleep s_setprio s_trap"""),
        ("sendmsg(MSG_INTERRUPT)", {"simm16": 1}, "s_sendmsg"),
        ("", {"simm16": 0}, "s_endpgm s_barrier s_wakeup s_icache_inv s_ttracedata s_endpgm_saved s_set_gpr_idx_off"),
    ],
}  # fmt: skip
VECTOR: dict[str, list[Template]] = {
    "VOP1": [
        ("v5, v7", {"src0": V + 7, "vdst": 5}, _VOP1_32 + " v_swap_b32"),
        ("", {"src0": 0, "vdst": 0}, "v_nop"),
        ("s5, v7", {"src0": V + 7, "vdst": 5}, "v_readfirstlane_b32"),
        ("a5, a7", {"src0": V + 7, "vdst": 5}, "v_accvgpr_mov_b32"),
        ("v[6:7], v[10:11]", {"src0": V + 10, "vdst": 6}, "v_mov_b64"),
        ("v[6:7], v9", {"src0": V + 9, "vdst": 6}, "v_cvt_pk_f32_fp8 v_cvt_pk_f32_bf8 v_cvt_f64_i32 v_cvt_f64_f32 v_cvt_f64_u32"),
        ("v5, v[10:11]", {"src0": V + 10, "vdst": 5}, "v_cvt_i32_f64 v_cvt_f32_f64 v_cvt_u32_f64"),
    ],
    "VOP2": [
        ("v5, v7, v9", {"src0": V + 7, "vsrc1": 9, "vdst": 5}, _VOP2_32),
        ("v5, v7, v9, vcc", {"src0": V + 7, "vsrc1": 9, "vdst": 5}, "v_cndmask_b32"),
        ("v[6:7], v[8:9], v[10:11]", {"src0": V + 8, "vsrc1": 10, "vdst": 6}, "v_fmac_f64"),
        ("v5, vcc, v7, v9", {"src0": V + 7, "vsrc1": 9, "vdst": 5}, "v_add_co_u32 v_sub_co_u32 v_subrev_co_u32"),
        ("v5, vcc, v7, v9, vcc", {"src0": V + 7, "vsrc1": 9, "vdst": 5}, "v_addc_co_u32 v_subb_co_u32 v_subbrev_co_u32"),
        ("v5, v7, 0x11121314, v9", {"src0": V + 7, "vsrc1": 9, "vdst": 5, "literal": 0x11121314}, "v_fmamk_f32"),
        ("v5, v7, v9, 0x11121314", {"src0": V + 7, "vsrc1": 9, "vdst": 5, "literal": 0x11121314}, "v_fmaak_f32"),
    ],
    "VOPC": [
        ("vcc, v7, v9", {"src0": V + 7, "vsrc1": 9}, _compares("f32", "i16", "u16", "i32", "u32") + " v_cmp_class_f32"),
        ("vcc, v[8:9], v[10:11]", {"src0": V + 8, "vsrc1": 10}, _compares("i64", "u64")),
    ],
    "VOP3": [
        ("v5, v7, v9, v11", _VOP3 | {"src2": V + 11}, _VOP3_3),
        ("v5, v7, v9", _VOP3, _VOP3_2),
        ("v[6:7], v[8:9], v[10:11], v[12:13]", _VOP3 | {"vdst": 6, "src0": V + 8, "src1": V + 10, "src2": V + 12}, "v_fma_f64"),
        ("v[6:7], v[8:9], v[10:11]", _VOP3 | {"vdst": 6, "src0": V + 8, "src1": V + 10}, "v_add_f64 v_mul_f64"),
        ("v[6:7], v[8:9], v11, v[12:13]", _VOP3 | {"vdst": 6, "src0": V + 8, "src1": V + 11, "src2": V + 12}, "v_lshl_add_u64"),
        ("v[6:7], v9, v[10:11]", _VOP3 | {"vdst": 6, "src0": V + 9, "src1": V + 10}, "v_lshlrev_b64 v_lshrrev_b64 v_ashrrev_i64"),
        ("s5, v7, s9", _VOP3 | {"src1": 9}, "v_readlane_b32"),
        ("v5, vcc, v7, v9, v12", _VOP3B | {"vdst": 5, "sdst": VCC}, "v_div_scale_f32"),
        ("v[6:7], s[10:11], v7, v9, v[12:13]", _VOP3B, "v_mad_u64_u32 v_mad_i64_i32"),
    ],
    "VOP3P": [
        ("v6, v8, v10, v12", _PK | {"src2": V + 12}, "v_pk_mad_i16 v_pk_mad_u16 v_pk_fma_f16"),
        ("v6, v8, v10, v12", _PK | {"src2": V + 12, "opsel_hi": 0}, "v_fma_mix_f32"),
        ("v6, v8, v10, v12", _PK | {"src2": V + 12}, "v_dot4_i32_i8"),
        ("v6, v8, v10", _PK, _PK_2),
        ("v[6:7], v[8:9], v[10:11], v[12:13]", _PK | {"src2": V + 12}, "v_pk_fma_f32"),
        ("v[6:7], v[8:9], v[10:11]", _PK, "v_pk_mul_f32 v_pk_add_f32 v_pk_mov_b32"),
        # a matrix instruction whose opcode lies in the packed half: the executor has no semantics for it
        ("v[4:7], v[8:9], v[10:11], v[12:15]", _PK | {"vdst": 4, "src2": V + 12, "opsel_hi": 0}, "v_mfma_f32_16x16x8_xf32"),
    ],
    "VOP3P-MAI": [
        # clang sets bit 14 and both `acc` bits in these two, as VOP3P's op_sel_hi has them by default
        ("v5, a7", _MAI | {"vdst": 5, "src0": V + 7, "abid": 8, "acc": 3}, "v_accvgpr_read_b32"),
        ("a5, v7", _MAI | {"vdst": 5, "src0": V + 7, "abid": 8, "acc": 3}, "v_accvgpr_write_b32"),
        ("v[4:7], v[8:9], v[10:11], v[12:15]", _MAI | {"vdst": 4, "src0": V + 8, "src1": V + 10, "src2": V + 12},
         _mfma("16x16x32") + """ v_mfma_f32_16x16x16_f16 v_mfma_f32_16x16x16_bf16 v_mfma_i32_16x16x32_i8"""),
        ("v[0:15], v[16:17], v[18:19], v[20:35]", _MAI | {"src0": V + 16, "src1": V + 18, "src2": V + 20},
         _mfma("32x32x16") + " v_mfma_f32_32x32x8_f16 v_mfma_f32_32x32x8_bf16"),
        ("v[4:7], v8, v10, v[12:15]", _MAI | {"vdst": 4, "src0": V + 8, "src1": V + 10, "src2": V + 12}, "v_mfma_f32_16x16x4_f32"),
        ("v[0:15], v16, v18, v[20:35]", _MAI | {"src0": V + 16, "src1": V + 18, "src2": V + 20}, "v_mfma_f32_32x32x2_f32"),
    ],
}  # fmt: skip


def _by_width(pattern: str, fields: Fields, stem: str, register: str, narrow: str) -> list[Template]:
    """Templates of loads or stores: `narrow` kinds take v4, wide ones v[4:n]."""
    templates: list[Template] = [(pattern.format("v4"), fields | {register: 4}, " ".join(stem + kind for kind in narrow.split()))]
    for words, kind in ((1, "dword"), (2, "dwordx2"), (3, "dwordx3"), (4, "dwordx4")):
        data = "v4" if words == 1 else f"v[4:{3 + words}]"
        templates.append((pattern.format(data), fields | {register: 4}, stem + kind))
    return templates


_LOADS = "ubyte sbyte ushort sshort ubyte_d16 ubyte_d16_hi short_d16 short_d16_hi"
_STORES = "byte byte_d16_hi short short_d16_hi"
MEMORY: dict[str, list[Template]] = {
    "SMEM": [
        ("s5, s[8:9], 0x10", _SMEM | {"sdst": 5}, "s_load_dword"),
        ("s[6:7], s[8:9], 0x10", _SMEM | {"sdst": 6}, "s_load_dwordx2"),
        ("s[12:15], s[8:9], 0x10", _SMEM | {"sdst": 12}, "s_load_dwordx4"),
        ("s[12:19], s[8:9], 0x10", _SMEM | {"sdst": 12}, "s_load_dwordx8"),
        ("s[12:27], s[8:9], 0x10", _SMEM | {"sdst": 12}, "s_load_dwordx16"),
        ("s5, s[8:11], 0x10", _SMEM | {"sdst": 5}, "s_buffer_load_dword"),
        ("s[6:7], s[8:11], 0x10", _SMEM | {"sdst": 6}, "s_buffer_load_dwordx2"),
        ("s[12:15], s[8:11], 0x10", _SMEM | {"sdst": 12}, "s_buffer_load_dwordx4"),
        ("s[12:19], s[8:11], 0x10", _SMEM | {"sdst": 12}, "s_buffer_load_dwordx8"),
        ("s[6:7]", _SMEM | {"sbase": 0, "sdst": 6, "imm": 0, "offset": 0}, "s_memtime s_memrealtime"),
        ("", _SMEM | {"sbase": 0, "imm": 0, "offset": 0}, "s_dcache_inv s_dcache_wb"),
    ],
    "DS": [
        ("v5, v7 offset:0x1234", _DS | {"vdst": 5, "offset0": 0x34, "offset1": 0x12},
         """ds_read_b32 ds_read_u8 ds_read_i8 ds_read_u16 ds_read_i16 ds_read_u8_d16 ds_read_u8_d16_hi ds_read_u16_d16
         ds_read_u16_d16_hi ds_swizzle_b32"""),
        ("v[4:5], v7 offset:0x1234", _DS | {"vdst": 4, "offset0": 0x34, "offset1": 0x12}, "ds_read_b64"),
        ("v[4:6], v7 offset:0x1234", _DS | {"vdst": 4, "offset0": 0x34, "offset1": 0x12}, "ds_read_b96"),
        ("v[4:7], v7 offset:0x1234", _DS | {"vdst": 4, "offset0": 0x34, "offset1": 0x12}, "ds_read_b128"),
        ("v[4:5], v7 offset0:3 offset1:6", _DS | {"vdst": 4, "offset0": 3, "offset1": 6}, "ds_read2_b32 ds_read2st64_b32"),
        ("v[4:7], v7 offset0:3 offset1:6", _DS | {"vdst": 4, "offset0": 3, "offset1": 6}, "ds_read2_b64 ds_read2st64_b64"),
        ("v7, v9 offset:0x1234", _DS | {"data0": 9, "offset0": 0x34, "offset1": 0x12},
         "ds_write_b32 ds_write_b8 ds_write_b16 ds_write_b8_d16_hi ds_write_b16_d16_hi ds_add_u32 ds_add_f32"),
        ("v7, v[8:9] offset:0x1234", _DS | {"data0": 8, "offset0": 0x34, "offset1": 0x12}, "ds_write_b64"),
        ("v7, v[8:10] offset:0x1234", _DS | {"data0": 8, "offset0": 0x34, "offset1": 0x12}, "ds_write_b96"),
        ("v7, v[8:11] offset:0x1234", _DS | {"data0": 8, "offset0": 0x34, "offset1": 0x12}, "ds_write_b128"),
        ("v7, v9, v11 offset0:3 offset1:6", _DS | {"data0": 9, "data1": 11, "offset0": 3, "offset1": 6}, "ds_write2_b32 ds_write2st64_b32"),
        ("v7, v[8:9], v[10:11] offset0:3 offset1:6", _DS | {"data0": 8, "data1": 10, "offset0": 3, "offset1": 6},
         "ds_write2_b64 ds_write2st64_b64"),
        ("v5, v7, v9 offset:0x1234", _DS | {"vdst": 5, "data0": 9, "offset0": 0x34, "offset1": 0x12},
         "ds_bpermute_b32 ds_permute_b32 ds_add_rtn_u32"),
    ],
    "GLOBAL": [
        *_by_width("{}, v[8:9], off offset:-24", _FLAT | {"offset": 0x2000 - 24}, "global_load_", "vdst", _LOADS),
        *_by_width("v[8:9], {}, off offset:-24", _FLAT | {"offset": 0x2000 - 24}, "global_store_", "data", _STORES),
        ("v[8:9], v4, off", _FLAT | {"data": 4}, "global_atomic_add global_atomic_add_f32"),
    ],
    "FLAT": [
        *_by_width("{}, v[8:9] offset:24", _FLAT | {"offset": 24, "saddr": 0}, "flat_load_", "vdst", _LOADS),
        *_by_width("v[8:9], {} offset:24", _FLAT | {"offset": 24, "saddr": 0}, "flat_store_", "data", _STORES),
        ("v[8:9], v4", _FLAT | {"data": 4, "saddr": 0}, "flat_atomic_add flat_atomic_add_f32"),
    ],
    "SCRATCH": [
        ("v4, v8, off", _FLAT | {"vdst": 4, "sve": 1}, "scratch_load_dword scratch_load_ubyte"),
        ("v[4:5], v8, off", _FLAT | {"vdst": 4, "sve": 1}, "scratch_load_dwordx2"),
        ("v[4:7], v8, off", _FLAT | {"vdst": 4, "sve": 1}, "scratch_load_dwordx4"),
        ("v8, v4, off", _FLAT | {"data": 4, "sve": 1}, "scratch_store_dword"),
        ("v8, v[4:5], off", _FLAT | {"data": 4, "sve": 1}, "scratch_store_dwordx2"),
        ("v8, v[4:7], off", _FLAT | {"data": 4, "sve": 1}, "scratch_store_dwordx4"),
    ],
    "MUBUF": [
        *_by_width("{}, v7, s[8:11], s13 offen offset:291", _MUBUF | {"offen": 1, "vaddr": 7, "offset": 291, "soffset": 13},
                   "buffer_load_", "vdata", _LOADS),
        *_by_width("{}, v7, s[8:11], s13 offen offset:291", _MUBUF | {"offen": 1, "vaddr": 7, "offset": 291, "soffset": 13},
                   "buffer_store_", "vdata", _STORES),
        ("v4, off, s[8:11], 0", _MUBUF | {"vdata": 4}, "buffer_atomic_add buffer_atomic_add_f32"),
        ("sc1", _MUBUF | {"sc1": 1, "srsrc": 0, "soffset": 0}, "buffer_wbl2 buffer_inv"),
    ],
}  # fmt: skip
TEMPLATES = SOP | VECTOR | MEMORY
TABLES = {"SOP2": opcodes.SOP2, "SOP1": opcodes.SOP1, "SOPC": opcodes.SOPC, "SOPK": opcodes.SOPK, "SOPP": opcodes.SOPP,
          "SMEM": opcodes.SMEM, "VOP1": opcodes.VOP1, "VOP2": opcodes.VOP2, "VOPC": opcodes.VOPC, "VOP3": opcodes.VOP3,
          "DS": opcodes.DS, "MUBUF": opcodes.MUBUF, "FLAT": opcodes.FLAT, "SCRATCH": opcodes.SCRATCH,
          "GLOBAL": opcodes.GLOBAL}  # fmt: skip
_NO_E32 = {"v_fmamk_f32", "v_fmaak_f32", "v_accvgpr_mov_b32", "v_readfirstlane_b32", "v_nop"}  # only one encoding, no suffix
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
    expected = [(line, format_name, name, fields) for format_name in TEMPLATES for line, name, fields in _lines(format_name)]
    actual = _decoded([line for line, *_ in expected])
    assert len(actual) == len(expected)
    wrong = [f"{line}: {found} {found.fields}" for (line, format_name, name, fields), found in zip(expected, actual, strict=True)
             if (found.format, found.name, found.fields) != (format_name, name, fields)]  # fmt: skip
    assert not wrong


def _as_e64(format_name: str, fields: Fields) -> Fields:
    """Fields of the 64-bit encoding of a VOP1, VOP2 or VOPC line; the compare writes s[14:15]."""
    wide = _VOP3 | {"src0": fields["src0"], "src1": V + fields["vsrc1"] if format_name != "VOP1" else 0}
    return wide | {"vdst": 14 if format_name == "VOPC" else fields["vdst"]}


def test_e64_forms_of_vop1_vop2_vopc() -> None:
    expected = []
    for format_name in ("VOP1", "VOP2", "VOPC"):
        for operands, fields, names in VECTOR[format_name]:
            if ", vcc" in operands and format_name == "VOP2":
                continue  # carries and selections: below
            for name in set(names.split()) - _NO_E64:
                expected.append((f"{name}_e64 {operands.replace('vcc', 's[14:15]')}", name, _as_e64(format_name, fields)))
    actual = _decoded([line for line, *_ in expected])
    assert [(found.format, found.name, found.fields) for found in actual] == [("VOP3", name, wide) for _, name, wide in expected]


@pytest.mark.parametrize("name", ["v_add_co_u32", "v_sub_co_u32", "v_subrev_co_u32"])
def test_e64_carry_out(name: str) -> None:
    found = one(f"{name}_e64 v6, s[10:11], v7, v9")
    assert (found.name, found.fields) == (name, _VOP3B | {"src2": 0})


@pytest.mark.parametrize("name", ["v_addc_co_u32", "v_subb_co_u32", "v_subbrev_co_u32"])
def test_e64_carry_in_and_out(name: str) -> None:
    found = one(f"{name}_e64 v6, s[10:11], v7, v9, s[12:13]")
    assert (found.name, found.fields) == (name, _VOP3B | {"src2": 12})


def test_e64_selection_takes_its_mask_from_src2() -> None:
    assert one("v_cndmask_b32_e64 v5, v7, v9, s[12:13]").fields == _VOP3 | {"src2": 12}


def test_vop3_modifiers() -> None:
    found = one("v_fma_f32 v5, -v7, |v9|, -|v11| clamp mul:4")
    assert found.fields == _VOP3 | {"src2": V + 11, "neg": 0b101, "abs": 0b110, "clamp": 1, "omod": 2}
    assert one("v_mad_u16 v5, v7, v9, v11 op_sel:[1,0,1,1]").fields == _VOP3 | {"src2": V + 11, "opsel": 0b1101}


def test_vop3p_modifiers() -> None:
    found = one("v_pk_fma_f32 v[6:7], v[8:9], v[10:11], v[12:13] op_sel:[1,0,1] op_sel_hi:[0,1,0] neg_lo:[1,1,0] neg_hi:[0,1,1]")
    assert found.fields == _PK | {"src2": V + 12, "opsel": 0b101, "opsel_hi": 0b010, "neg": 0b011, "neg_hi": 0b110}


def test_mai_modifiers_and_accumulation_registers() -> None:
    found = one("v_mfma_f32_16x16x4_f32 a[4:7], a8, v10, a[12:15] cbsz:2 abid:3 blgp:5")
    expected = {"vdst": 4, "src0": V + 8, "src1": V + 10, "src2": V + 12, "acc": 0b01, "acc_cd": 1, "cbsz": 2, "abid": 3, "blgp": 5}
    assert found.fields == _MAI | expected
    found = one("v_mfma_f32_16x16x32_fp8_fp8 v[4:7], v[8:9], a[10:11], 0")
    assert found.fields == _MAI | {"vdst": 4, "src0": V + 8, "src1": V + 10, "src2": 128, "acc": 0b10}


def test_sdwa_fields() -> None:
    line = "v_add_f32_sdwa v5, -v7, |v9| dst_sel:WORD_1 dst_unused:UNUSED_PRESERVE src0_sel:BYTE_2 src1_sel:WORD_0"
    found = one(line)
    assert (found.format, found.name, found.size) == ("VOP2-SDWA", "v_add_f32", 8)
    expected = {"vdst": 5, "src0": 7, "vsrc1": 9, "dst_sel": 5, "dst_unused": 2, "src0_sel": 2, "src1_sel": 4, "src0_neg": 1, "src1_abs": 1}
    zero = {"src0_sext", "src0_abs", "s0", "src1_sext", "src1_neg", "s1", "clamp", "omod"}
    assert found.fields == expected | dict.fromkeys(zero, 0)
    scalar = one("v_cmp_eq_u32_sdwa s[14:15], s7, sext(v9) src0_sel:DWORD src1_sel:BYTE_1")
    assert (scalar.format, scalar.name) == ("VOPC-SDWA", "v_cmp_eq_u32")
    wanted = {"src0": 7, "s0": 1, "vsrc1": 9, "s1": 0, "src0_sel": 6, "src1_sel": 1, "src1_sext": 1, "sd": 1, "sdst": 14}
    assert {name: scalar.fields[name] for name in wanted} == wanted


def test_dpp_fields() -> None:
    found = one("v_add_f32_dpp v5, -v7, |v9| row_ror:3 row_mask:0xa bank_mask:0x5 bound_ctrl:0")
    assert (found.format, found.name, found.size) == ("VOP2-DPP", "v_add_f32", 8)
    expected = {"vdst": 5, "src0": 7, "vsrc1": 9, "dpp_ctrl": 0x123, "row_mask": 10, "bank_mask": 5, "bound_ctrl": 1, "src0_neg": 1,
                "src0_abs": 0, "src1_neg": 0, "src1_abs": 1}  # fmt: skip
    assert found.fields == expected
    assert one("v_mov_b32_dpp v5, v7 quad_perm:[3,1,0,2] row_mask:0xf bank_mask:0xf").fields["dpp_ctrl"] == 0b10_00_01_11


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
    assert one("s_load_dword s5, s[8:9], -8").fields == _SMEM | {"sdst": 5, "offset": 0x1FFFF8}
    assert one("s_load_dword s5, s[8:9], s7").fields == _SMEM | {"sdst": 5, "imm": 0, "offset": 7}
    assert one("s_load_dword s5, s[8:9], s7 offset:0x10").fields == _SMEM | {"sdst": 5, "soffset_en": 1, "soffset": 7}
    assert one("s_load_dword s5, s[8:9], 0x10 glc").fields == _SMEM | {"sdst": 5, "glc": 1}


def test_cache_bits_and_scalar_base() -> None:
    found = one("global_load_dword v4, v8, s[14:15] offset:4095 sc0 nt sc1")
    assert found.fields == _FLAT | {"vdst": 4, "saddr": 14, "offset": 4095, "sc0": 1, "nt": 1, "sc1": 1}
    found = one("buffer_load_dword v4, v7, s[8:11], 0 idxen sc0 nt sc1")
    assert found.fields == _MUBUF | {"vdata": 4, "vaddr": 7, "idxen": 1, "sc0": 1, "nt": 1, "sc1": 1}
    assert one("global_load_dword a4, v[8:9], off").fields == _FLAT | {"vdst": 4, "acc": 1}
    assert one("ds_read_b32 a5, v7").fields == _DS | {"vdst": 5, "acc": 1}


# -- refused -----------------------------------------------------------------------------------------------------------
def bits(*words: int) -> bytes:
    return struct.pack(f"<{len(words)}I", *words)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((0xBF8B0000,), r"SOPP opcode 11 \(bf8b0000 at pc 0x0\)"),
        ((0xBE803F00,), r"SOP1 opcode 63 \(be803f00"),
        ((0xBF7F0000,), r"SOPC opcode 127"),
        ((0xBFFF0000,), r"SOPP opcode 127"),
        ((0x7E00FE00,), r"VOP1 opcode 127"),
        ((0x2C000000,), r"VOP2 opcode 22"),
        ((0x7C000000,), r"VOPC opcode 0 "),
        ((0xD3A70000, 0), r"VOP3P opcode 39"),
        ((0xD3FF0000, 0), r"VOP3P-MAI opcode 127"),
        ((0xD1C00000, 0), r"VOP3 opcode 448"),
        ((0xD0000000, 0), r"VOP3\(VOPC\) opcode 0 "),
        ((0xD1160000, 0), r"VOP3\(VOP2\) opcode 22"),
        ((0xD1BF0000, 0), r"VOP3\(VOP1\) opcode 127"),
        ((0xC3FC0000, 0), r"SMEM opcode 255"),
        ((0xD8FE0000, 0), r"DS opcode 127"),
        ((0xE1FC0000, 0), r"MUBUF opcode 127"),
        ((0xDDFC0000, 0), r"FLAT opcode 127"),
        ((0xDDFC4000, 0), r"SCRATCH opcode 127"),
        ((0xDDFC8000, 0), r"GLOBAL opcode 127"),
        ((0xDC50C000, 0), r"reserved FLAT segment"),
        ((0xE8000000, 0), r"no format of gfx942 matches e8000000"),  # MTBUF
        ((0xF0000000, 0), r"no format of gfx942 matches f0000000"),  # images
    ],
)
def test_unknown_opcode_is_refused_with_its_bytes(words: tuple[int, ...], message: str) -> None:
    with pytest.raises(Unsupported, match=message):
        decode_one(bits(*words), 0)


@pytest.mark.parametrize(
    ("line", "word", "bit"),
    [
        ("s_load_dword s5, s[8:9], 0x10", 0, 13),
        ("s_load_dword s5, s[8:9], 0x10", 1, 21),
        ("s_load_dword s5, s[8:9], 0x10", 1, 24),
        ("buffer_load_dword v4, off, s[8:11], 0", 0, 25),
        ("buffer_load_dword v4, off, s[8:11], 0", 1, 21),
        ("v_mov_b32_dpp v5, v7 row_mirror row_mask:0xf bank_mask:0xf", 1, 17),
        ("v_mov_b32_dpp v5, v7 row_mirror row_mask:0xf bank_mask:0xf", 1, 18),
        ("v_mov_b32_sdwa v5, v7 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:DWORD", 1, 22),
        ("v_add_f32_sdwa v5, v7, v9 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:DWORD src1_sel:DWORD", 1, 30),
    ],
)
def test_reserved_bits_are_refused(line: str, word: int, bit: int) -> None:
    words = list(struct.unpack("<2I", machine_code([line])[:8]))
    decode_one(bits(*words), 0)
    words[word] |= 1 << bit
    with pytest.raises(Unsupported, match="reserved"):
        decode_one(bits(*words), 0)


@pytest.mark.parametrize("line", ["s_mov_b32 s5, 0x12345678", "v_mov_b32 v5, 0x12345678", "s_load_dword s5, s[8:9], 0x10",
                                  "v_fma_f32 v5, v7, v9, v11", "v_pk_mul_f32 v[6:7], v[8:9], v[10:11]", "ds_read_b32 v5, v7",
                                  "global_load_dword v4, v[8:9], off", "buffer_load_dword v4, off, s[8:11], 0",
                                  "v_mov_b32_dpp v5, v7 row_mirror row_mask:0xf bank_mask:0xf", "v_fmamk_f32 v5, v7, 0x11121314, v9",
                                  "v_mov_b32_sdwa v5, v7 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:BYTE_0"])  # fmt: skip
def test_truncated_text_is_refused(line: str) -> None:
    code = machine_code([line])[:8]
    for length in (0, 2, 4, 7):
        with pytest.raises(Unsupported, match="leaves the code"):
            decode_one(code[:length], 0)


def test_pc_outside_the_text_is_refused() -> None:
    with pytest.raises(Unsupported, match="pc 0x8 leaves the code"):
        decode_one(bits(0xBF810000, 0), 8)
    with pytest.raises(Unsupported, match="leaves the code"):
        decode_one(bits(0xBF810000), -4)


def test_a_literal_in_vop3_is_refused_where_it_is_used() -> None:
    """gfx942 has no literals in 64-bit encodings: code 255 there must not be taken for one."""
    found = decode_one(bits(0xD1CB0005, 0x042612FF), 0)
    assert found.name == "v_fma_f32"
    assert "literal" not in found.fields


def test_a_decoded_text_ends_at_padding() -> None:
    code = machine_code(["s_nop 0", "s_endpgm"])
    assert [found.name for found in decode(code[:8] + bits(0xE8000000))] == ["s_nop", "s_endpgm"]
    with pytest.raises(Unsupported, match="e8000000 at pc 0x4"):
        decode(code[:4] + bits(0xE8000000))


def test_str_names_encoding_and_bytes() -> None:
    assert str(one("v_mov_b32_dpp v5, v7 row_mirror row_mask:0xf bank_mask:0xf")) == "v_mov_b32_dpp [VOP1-DPP 7e0a02fa ff014007]"
