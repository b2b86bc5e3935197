# SPDX-License-Identifier: Apache-2.0
"""Opcode numbers of gfx942, one table an encoding format.

Source: AMD Instinct MI300 (CDNA3) Instruction Set Architecture, chapter 12 (the microcode formats give each opcode's
field). Every entry is checked in tests/test_gfx942_decode.py: clang assembles the mnemonic and the decoder must name it.
A number that is not here is refused by name of its format and value: it is better to stop than to guess.

VOP1, VOP2 and VOPC opcodes have a second, 64-bit encoding inside VOP3: VOPC at 0, VOP2 at 0x100, VOP1 at 0x140.
"""

from __future__ import annotations

# A table reads better packed.
# fmt: off

SOP1: dict[int, str] = {
    0: "s_mov_b32", 1: "s_mov_b64", 2: "s_cmov_b32", 3: "s_cmov_b64", 4: "s_not_b32", 5: "s_not_b64",
    6: "s_wqm_b32", 7: "s_wqm_b64", 8: "s_brev_b32", 9: "s_brev_b64", 10: "s_bcnt0_i32_b32", 11: "s_bcnt0_i32_b64",
    12: "s_bcnt1_i32_b32", 13: "s_bcnt1_i32_b64", 14: "s_ff0_i32_b32", 15: "s_ff0_i32_b64", 16: "s_ff1_i32_b32",
    17: "s_ff1_i32_b64", 18: "s_flbit_i32_b32", 19: "s_flbit_i32_b64", 20: "s_flbit_i32", 21: "s_flbit_i32_i64",
    22: "s_sext_i32_i8", 23: "s_sext_i32_i16", 24: "s_bitset0_b32", 25: "s_bitset0_b64", 26: "s_bitset1_b32",
    27: "s_bitset1_b64", 28: "s_getpc_b64", 29: "s_setpc_b64", 30: "s_swappc_b64", 32: "s_and_saveexec_b64",
    33: "s_or_saveexec_b64", 34: "s_xor_saveexec_b64", 35: "s_andn2_saveexec_b64", 36: "s_orn2_saveexec_b64",
    37: "s_nand_saveexec_b64", 38: "s_nor_saveexec_b64", 39: "s_xnor_saveexec_b64", 48: "s_abs_i32",
    51: "s_andn1_saveexec_b64", 52: "s_orn1_saveexec_b64", 53: "s_andn1_wrexec_b64", 54: "s_andn2_wrexec_b64",
}

SOP2: dict[int, str] = {
    0: "s_add_u32", 1: "s_sub_u32", 2: "s_add_i32", 3: "s_sub_i32", 4: "s_addc_u32", 5: "s_subb_u32",
    6: "s_min_i32", 7: "s_min_u32", 8: "s_max_i32", 9: "s_max_u32", 10: "s_cselect_b32", 11: "s_cselect_b64",
    12: "s_and_b32", 13: "s_and_b64", 14: "s_or_b32", 15: "s_or_b64", 16: "s_xor_b32", 17: "s_xor_b64",
    18: "s_andn2_b32", 19: "s_andn2_b64", 20: "s_orn2_b32", 21: "s_orn2_b64", 22: "s_nand_b32", 23: "s_nand_b64",
    24: "s_nor_b32", 25: "s_nor_b64", 26: "s_xnor_b32", 27: "s_xnor_b64", 28: "s_lshl_b32", 29: "s_lshl_b64",
    30: "s_lshr_b32", 31: "s_lshr_b64", 32: "s_ashr_i32", 33: "s_ashr_i64", 34: "s_bfm_b32", 35: "s_bfm_b64",
    36: "s_mul_i32", 37: "s_bfe_u32", 38: "s_bfe_i32", 39: "s_bfe_u64", 40: "s_bfe_i64", 42: "s_absdiff_i32",
    44: "s_mul_hi_u32", 45: "s_mul_hi_i32", 46: "s_lshl1_add_u32", 47: "s_lshl2_add_u32", 48: "s_lshl3_add_u32",
    49: "s_lshl4_add_u32", 50: "s_pack_ll_b32_b16", 51: "s_pack_lh_b32_b16", 52: "s_pack_hh_b32_b16",
}

SOPC: dict[int, str] = {
    0: "s_cmp_eq_i32", 1: "s_cmp_lg_i32", 2: "s_cmp_gt_i32", 3: "s_cmp_ge_i32", 4: "s_cmp_lt_i32",
    5: "s_cmp_le_i32", 6: "s_cmp_eq_u32", 7: "s_cmp_lg_u32", 8: "s_cmp_gt_u32", 9: "s_cmp_ge_u32",
    10: "s_cmp_lt_u32", 11: "s_cmp_le_u32", 12: "s_bitcmp0_b32", 13: "s_bitcmp1_b32", 14: "s_bitcmp0_b64",
    15: "s_bitcmp1_b64", 18: "s_cmp_eq_u64", 19: "s_cmp_lg_u64",
}

SOPK: dict[int, str] = {
    0: "s_movk_i32", 1: "s_cmovk_i32", 2: "s_cmpk_eq_i32", 3: "s_cmpk_lg_i32", 4: "s_cmpk_gt_i32",
    5: "s_cmpk_ge_i32", 6: "s_cmpk_lt_i32", 7: "s_cmpk_le_i32", 8: "s_cmpk_eq_u32", 9: "s_cmpk_lg_u32",
    10: "s_cmpk_gt_u32", 11: "s_cmpk_ge_u32", 12: "s_cmpk_lt_u32", 13: "s_cmpk_le_u32", 14: "s_addk_i32",
    15: "s_mulk_i32", 17: "s_getreg_b32", 18: "s_setreg_b32",
}

SOPP: dict[int, str] = {
    0: "s_nop", 1: "s_endpgm", 2: "s_branch", 3: "s_wakeup", 4: "s_cbranch_scc0", 5: "s_cbranch_scc1",
    6: "s_cbranch_vccz", 7: "s_cbranch_vccnz", 8: "s_cbranch_execz", 9: "s_cbranch_execnz", 10: "s_barrier",
    12: "s_waitcnt", 13: "s_sethalt", 14: "s_sleep", 15: "s_setprio", 16: "s_sendmsg", 18: "s_trap",
    19: "s_icache_inv", 22: "s_ttracedata", 27: "s_endpgm_saved", 28: "s_set_gpr_idx_off",
}

SMEM: dict[int, str] = {
    0: "s_load_dword", 1: "s_load_dwordx2", 2: "s_load_dwordx4", 3: "s_load_dwordx8", 4: "s_load_dwordx16",
    8: "s_buffer_load_dword", 9: "s_buffer_load_dwordx2", 10: "s_buffer_load_dwordx4", 11: "s_buffer_load_dwordx8",
    12: "s_buffer_load_dwordx16", 32: "s_dcache_inv", 33: "s_dcache_wb", 36: "s_memtime", 37: "s_memrealtime",
}

VOP1: dict[int, str] = {
    0: "v_nop", 1: "v_mov_b32", 2: "v_readfirstlane_b32", 3: "v_cvt_i32_f64", 4: "v_cvt_f64_i32",
    5: "v_cvt_f32_i32", 6: "v_cvt_f32_u32", 7: "v_cvt_u32_f32", 8: "v_cvt_i32_f32", 10: "v_cvt_f16_f32",
    11: "v_cvt_f32_f16", 12: "v_cvt_rpi_i32_f32", 13: "v_cvt_flr_i32_f32", 15: "v_cvt_f32_f64", 16: "v_cvt_f64_f32",
    17: "v_cvt_f32_ubyte0", 18: "v_cvt_f32_ubyte1", 19: "v_cvt_f32_ubyte2", 20: "v_cvt_f32_ubyte3",
    21: "v_cvt_u32_f64", 22: "v_cvt_f64_u32", 27: "v_fract_f32", 28: "v_trunc_f32", 29: "v_ceil_f32",
    30: "v_rndne_f32", 31: "v_floor_f32", 32: "v_exp_f32", 33: "v_log_f32", 34: "v_rcp_f32", 35: "v_rcp_iflag_f32",
    36: "v_rsq_f32", 39: "v_sqrt_f32", 41: "v_sin_f32", 42: "v_cos_f32", 43: "v_not_b32", 44: "v_bfrev_b32",
    45: "v_ffbh_u32", 46: "v_ffbl_b32", 47: "v_ffbh_i32", 51: "v_frexp_exp_i32_f32", 52: "v_frexp_mant_f32",
    56: "v_mov_b64", 79: "v_sat_pk_u8_i16", 81: "v_swap_b32", 82: "v_accvgpr_mov_b32", 84: "v_cvt_f32_fp8",
    85: "v_cvt_f32_bf8", 86: "v_cvt_pk_f32_fp8", 87: "v_cvt_pk_f32_bf8",
}

VOP2: dict[int, str] = {
    0: "v_cndmask_b32", 1: "v_add_f32", 2: "v_sub_f32", 3: "v_subrev_f32", 4: "v_fmac_f64", 5: "v_mul_f32",
    6: "v_mul_i32_i24", 7: "v_mul_hi_i32_i24", 8: "v_mul_u32_u24", 9: "v_mul_hi_u32_u24", 10: "v_min_f32",
    11: "v_max_f32", 12: "v_min_i32", 13: "v_max_i32", 14: "v_min_u32", 15: "v_max_u32", 16: "v_lshrrev_b32",
    17: "v_ashrrev_i32", 18: "v_lshlrev_b32", 19: "v_and_b32", 20: "v_or_b32", 21: "v_xor_b32", 23: "v_fmamk_f32",
    24: "v_fmaak_f32", 25: "v_add_co_u32", 26: "v_sub_co_u32", 27: "v_subrev_co_u32", 28: "v_addc_co_u32",
    29: "v_subb_co_u32", 30: "v_subbrev_co_u32", 31: "v_add_f16", 32: "v_sub_f16", 33: "v_subrev_f16",
    34: "v_mul_f16", 38: "v_add_u16", 39: "v_sub_u16", 40: "v_subrev_u16", 41: "v_mul_lo_u16", 42: "v_lshlrev_b16",
    43: "v_lshrrev_b16", 44: "v_ashrrev_i16", 45: "v_max_f16", 46: "v_min_f16", 47: "v_max_u16", 48: "v_max_i16",
    49: "v_min_u16", 50: "v_min_i16", 52: "v_add_u32", 53: "v_sub_u32", 54: "v_subrev_u32", 59: "v_fmac_f32",
    60: "v_pk_fmac_f16", 61: "v_xnor_b32",
}

VOPC: dict[int, str] = {
    16: "v_cmp_class_f32", 17: "v_cmpx_class_f32", 64: "v_cmp_f_f32", 65: "v_cmp_lt_f32", 66: "v_cmp_eq_f32", 67: "v_cmp_le_f32",
    68: "v_cmp_gt_f32", 69: "v_cmp_lg_f32", 70: "v_cmp_ge_f32", 71: "v_cmp_o_f32", 72: "v_cmp_u_f32",
    73: "v_cmp_nge_f32", 74: "v_cmp_nlg_f32", 75: "v_cmp_ngt_f32", 76: "v_cmp_nle_f32", 77: "v_cmp_neq_f32",
    78: "v_cmp_nlt_f32", 79: "v_cmp_tru_f32", 80: "v_cmpx_f_f32", 81: "v_cmpx_lt_f32", 82: "v_cmpx_eq_f32",
    83: "v_cmpx_le_f32", 84: "v_cmpx_gt_f32", 85: "v_cmpx_lg_f32", 86: "v_cmpx_ge_f32", 87: "v_cmpx_o_f32",
    88: "v_cmpx_u_f32", 89: "v_cmpx_nge_f32", 90: "v_cmpx_nlg_f32", 91: "v_cmpx_ngt_f32", 92: "v_cmpx_nle_f32",
    93: "v_cmpx_neq_f32", 94: "v_cmpx_nlt_f32", 95: "v_cmpx_tru_f32", 160: "v_cmp_f_i16", 161: "v_cmp_lt_i16",
    162: "v_cmp_eq_i16", 163: "v_cmp_le_i16", 164: "v_cmp_gt_i16", 165: "v_cmp_ne_i16", 166: "v_cmp_ge_i16",
    167: "v_cmp_t_i16", 168: "v_cmp_f_u16", 169: "v_cmp_lt_u16", 170: "v_cmp_eq_u16", 171: "v_cmp_le_u16",
    172: "v_cmp_gt_u16", 173: "v_cmp_ne_u16", 174: "v_cmp_ge_u16", 175: "v_cmp_t_u16", 176: "v_cmpx_f_i16",
    177: "v_cmpx_lt_i16", 178: "v_cmpx_eq_i16", 179: "v_cmpx_le_i16", 180: "v_cmpx_gt_i16", 181: "v_cmpx_ne_i16",
    182: "v_cmpx_ge_i16", 183: "v_cmpx_t_i16", 184: "v_cmpx_f_u16", 185: "v_cmpx_lt_u16", 186: "v_cmpx_eq_u16",
    187: "v_cmpx_le_u16", 188: "v_cmpx_gt_u16", 189: "v_cmpx_ne_u16", 190: "v_cmpx_ge_u16", 191: "v_cmpx_t_u16",
    192: "v_cmp_f_i32", 193: "v_cmp_lt_i32", 194: "v_cmp_eq_i32", 195: "v_cmp_le_i32", 196: "v_cmp_gt_i32",
    197: "v_cmp_ne_i32", 198: "v_cmp_ge_i32", 199: "v_cmp_t_i32", 200: "v_cmp_f_u32", 201: "v_cmp_lt_u32",
    202: "v_cmp_eq_u32", 203: "v_cmp_le_u32", 204: "v_cmp_gt_u32", 205: "v_cmp_ne_u32", 206: "v_cmp_ge_u32",
    207: "v_cmp_t_u32", 208: "v_cmpx_f_i32", 209: "v_cmpx_lt_i32", 210: "v_cmpx_eq_i32", 211: "v_cmpx_le_i32",
    212: "v_cmpx_gt_i32", 213: "v_cmpx_ne_i32", 214: "v_cmpx_ge_i32", 215: "v_cmpx_t_i32", 216: "v_cmpx_f_u32",
    217: "v_cmpx_lt_u32", 218: "v_cmpx_eq_u32", 219: "v_cmpx_le_u32", 220: "v_cmpx_gt_u32", 221: "v_cmpx_ne_u32",
    222: "v_cmpx_ge_u32", 223: "v_cmpx_t_u32", 224: "v_cmp_f_i64", 225: "v_cmp_lt_i64", 226: "v_cmp_eq_i64",
    227: "v_cmp_le_i64", 228: "v_cmp_gt_i64", 229: "v_cmp_ne_i64", 230: "v_cmp_ge_i64", 231: "v_cmp_t_i64",
    232: "v_cmp_f_u64", 233: "v_cmp_lt_u64", 234: "v_cmp_eq_u64", 235: "v_cmp_le_u64", 236: "v_cmp_gt_u64",
    237: "v_cmp_ne_u64", 238: "v_cmp_ge_u64", 239: "v_cmp_t_u64", 240: "v_cmpx_f_i64", 241: "v_cmpx_lt_i64",
    242: "v_cmpx_eq_i64", 243: "v_cmpx_le_i64", 244: "v_cmpx_gt_i64", 245: "v_cmpx_ne_i64", 246: "v_cmpx_ge_i64",
    247: "v_cmpx_t_i64", 248: "v_cmpx_f_u64", 249: "v_cmpx_lt_u64", 250: "v_cmpx_eq_u64", 251: "v_cmpx_le_u64",
    252: "v_cmpx_gt_u64", 253: "v_cmpx_ne_u64", 254: "v_cmpx_ge_u64", 255: "v_cmpx_t_u64",
}

VOP3: dict[int, str] = {
    450: "v_mad_i32_i24", 451: "v_mad_u32_u24", 452: "v_cubeid_f32", 456: "v_bfe_u32", 457: "v_bfe_i32",
    458: "v_bfi_b32", 459: "v_fma_f32", 460: "v_fma_f64", 461: "v_lerp_u8", 462: "v_alignbit_b32",
    463: "v_alignbyte_b32", 464: "v_min3_f32", 465: "v_min3_i32", 466: "v_min3_u32", 467: "v_max3_f32",
    468: "v_max3_i32", 469: "v_max3_u32", 470: "v_med3_f32", 471: "v_med3_i32", 472: "v_med3_u32", 473: "v_sad_u8",
    476: "v_sad_u32", 477: "v_cvt_pk_u8_f32", 478: "v_div_fixup_f32", 480: "v_div_scale_f32", 482: "v_div_fmas_f32",
    488: "v_mad_u64_u32", 489: "v_mad_i64_i32", 493: "v_perm_b32", 497: "v_mad_u32_u16", 498: "v_mad_i32_i16",
    499: "v_xad_u32", 509: "v_lshl_add_u32", 510: "v_add_lshl_u32", 511: "v_add3_u32", 512: "v_lshl_or_b32",
    513: "v_and_or_b32", 514: "v_or3_b32", 516: "v_mad_u16", 517: "v_mad_i16", 520: "v_lshl_add_u64",
    640: "v_add_f64", 641: "v_mul_f64", 645: "v_mul_lo_u32", 646: "v_mul_hi_u32", 647: "v_mul_hi_i32",
    648: "v_ldexp_f32", 649: "v_readlane_b32", 650: "v_writelane_b32", 651: "v_bcnt_u32_b32",
    652: "v_mbcnt_lo_u32_b32", 653: "v_mbcnt_hi_u32_b32", 655: "v_lshlrev_b64", 656: "v_lshrrev_b64",
    657: "v_ashrrev_i64", 659: "v_bfm_b32", 660: "v_cvt_pknorm_i16_f32", 662: "v_cvt_pkrtz_f16_f32",
    663: "v_cvt_pk_u16_u32", 664: "v_cvt_pk_i16_i32", 668: "v_add_i32", 669: "v_sub_i32", 672: "v_pack_b32_f16",
    674: "v_cvt_pk_fp8_f32", 675: "v_cvt_pk_bf8_f32", 676: "v_cvt_sr_fp8_f32", 677: "v_cvt_sr_bf8_f32",
}

VOP3P: dict[int, str] = {
    0: "v_pk_mad_i16", 1: "v_pk_mul_lo_u16", 2: "v_pk_add_i16", 3: "v_pk_sub_i16", 4: "v_pk_lshlrev_b16",
    5: "v_pk_lshrrev_b16", 6: "v_pk_ashrrev_i16", 7: "v_pk_max_i16", 8: "v_pk_min_i16", 9: "v_pk_mad_u16",
    10: "v_pk_add_u16", 11: "v_pk_sub_u16", 12: "v_pk_max_u16", 13: "v_pk_min_u16", 14: "v_pk_fma_f16",
    15: "v_pk_add_f16", 16: "v_pk_mul_f16", 17: "v_pk_min_f16", 18: "v_pk_max_f16", 32: "v_fma_mix_f32",
    40: "v_dot4_i32_i8", 48: "v_pk_fma_f32", 49: "v_pk_mul_f32", 50: "v_pk_add_f32", 51: "v_pk_mov_b32",
    62: "v_mfma_f32_16x16x8_xf32", 68: "v_mfma_f32_32x32x2_f32", 69: "v_mfma_f32_16x16x4_f32",
    76: "v_mfma_f32_32x32x8_f16", 77: "v_mfma_f32_16x16x16_f16", 87: "v_mfma_i32_16x16x32_i8",
    88: "v_accvgpr_read_b32", 89: "v_accvgpr_write_b32", 96: "v_mfma_f32_32x32x8_bf16",
    97: "v_mfma_f32_16x16x16_bf16", 112: "v_mfma_f32_16x16x32_bf8_bf8", 113: "v_mfma_f32_16x16x32_bf8_fp8",
    114: "v_mfma_f32_16x16x32_fp8_bf8", 115: "v_mfma_f32_16x16x32_fp8_fp8", 116: "v_mfma_f32_32x32x16_bf8_bf8",
    117: "v_mfma_f32_32x32x16_bf8_fp8", 118: "v_mfma_f32_32x32x16_fp8_bf8", 119: "v_mfma_f32_32x32x16_fp8_fp8",
}

DS: dict[int, str] = {
    0: "ds_add_u32", 1: "ds_sub_u32", 3: "ds_inc_u32", 4: "ds_dec_u32", 5: "ds_min_i32", 6: "ds_max_i32",
    7: "ds_min_u32", 8: "ds_max_u32", 9: "ds_and_b32", 10: "ds_or_b32", 11: "ds_xor_b32", 13: "ds_write_b32",
    14: "ds_write2_b32", 15: "ds_write2st64_b32", 16: "ds_cmpst_b32", 21: "ds_add_f32", 30: "ds_write_b8",
    31: "ds_write_b16", 32: "ds_add_rtn_u32", 33: "ds_sub_rtn_u32", 35: "ds_inc_rtn_u32", 36: "ds_dec_rtn_u32",
    37: "ds_min_rtn_i32", 38: "ds_max_rtn_i32", 39: "ds_min_rtn_u32", 40: "ds_max_rtn_u32", 41: "ds_and_rtn_b32",
    42: "ds_or_rtn_b32", 43: "ds_xor_rtn_b32", 45: "ds_wrxchg_rtn_b32", 48: "ds_cmpst_rtn_b32",
    53: "ds_add_rtn_f32", 54: "ds_read_b32", 55: "ds_read2_b32", 56: "ds_read2st64_b32", 57: "ds_read_i8",
    58: "ds_read_u8", 59: "ds_read_i16", 60: "ds_read_u16", 61: "ds_swizzle_b32", 62: "ds_permute_b32",
    63: "ds_bpermute_b32", 77: "ds_write_b64", 78: "ds_write2_b64", 79: "ds_write2st64_b64",
    84: "ds_write_b8_d16_hi", 85: "ds_write_b16_d16_hi", 86: "ds_read_u8_d16", 87: "ds_read_u8_d16_hi",
    88: "ds_read_i8_d16", 89: "ds_read_i8_d16_hi", 90: "ds_read_u16_d16", 91: "ds_read_u16_d16_hi",
    118: "ds_read_b64", 119: "ds_read2_b64", 120: "ds_read2st64_b64", 222: "ds_write_b96", 223: "ds_write_b128",
    254: "ds_read_b96", 255: "ds_read_b128",
}

MUBUF: dict[int, str] = {
    16: "buffer_load_ubyte", 17: "buffer_load_sbyte", 18: "buffer_load_ushort", 19: "buffer_load_sshort",
    20: "buffer_load_dword", 21: "buffer_load_dwordx2", 22: "buffer_load_dwordx3", 23: "buffer_load_dwordx4",
    24: "buffer_store_byte", 25: "buffer_store_byte_d16_hi", 26: "buffer_store_short",
    27: "buffer_store_short_d16_hi", 28: "buffer_store_dword", 29: "buffer_store_dwordx2",
    30: "buffer_store_dwordx3", 31: "buffer_store_dwordx4", 32: "buffer_load_ubyte_d16",
    33: "buffer_load_ubyte_d16_hi", 34: "buffer_load_sbyte_d16", 35: "buffer_load_sbyte_d16_hi",
    36: "buffer_load_short_d16", 37: "buffer_load_short_d16_hi", 40: "buffer_wbl2", 41: "buffer_inv",
    64: "buffer_atomic_swap", 65: "buffer_atomic_cmpswap", 66: "buffer_atomic_add", 67: "buffer_atomic_sub",
    68: "buffer_atomic_smin", 69: "buffer_atomic_umin", 70: "buffer_atomic_smax", 71: "buffer_atomic_umax",
    72: "buffer_atomic_and", 73: "buffer_atomic_or", 74: "buffer_atomic_xor", 75: "buffer_atomic_inc",
    76: "buffer_atomic_dec", 77: "buffer_atomic_add_f32", 96: "buffer_atomic_swap_x2",
    97: "buffer_atomic_cmpswap_x2", 98: "buffer_atomic_add_x2", 99: "buffer_atomic_sub_x2",
    100: "buffer_atomic_smin_x2", 101: "buffer_atomic_umin_x2", 102: "buffer_atomic_smax_x2",
    103: "buffer_atomic_umax_x2", 104: "buffer_atomic_and_x2", 105: "buffer_atomic_or_x2",
    106: "buffer_atomic_xor_x2", 107: "buffer_atomic_inc_x2", 108: "buffer_atomic_dec_x2",
}

FLAT: dict[int, str] = {
    16: "flat_load_ubyte", 17: "flat_load_sbyte", 18: "flat_load_ushort", 19: "flat_load_sshort",
    20: "flat_load_dword", 21: "flat_load_dwordx2", 22: "flat_load_dwordx3", 23: "flat_load_dwordx4",
    24: "flat_store_byte", 25: "flat_store_byte_d16_hi", 26: "flat_store_short", 27: "flat_store_short_d16_hi",
    28: "flat_store_dword", 29: "flat_store_dwordx2", 30: "flat_store_dwordx3", 31: "flat_store_dwordx4",
    32: "flat_load_ubyte_d16", 33: "flat_load_ubyte_d16_hi", 34: "flat_load_sbyte_d16",
    35: "flat_load_sbyte_d16_hi", 36: "flat_load_short_d16", 37: "flat_load_short_d16_hi", 64: "flat_atomic_swap",
    65: "flat_atomic_cmpswap", 66: "flat_atomic_add", 67: "flat_atomic_sub", 68: "flat_atomic_smin",
    69: "flat_atomic_umin", 70: "flat_atomic_smax", 71: "flat_atomic_umax", 72: "flat_atomic_and",
    73: "flat_atomic_or", 74: "flat_atomic_xor", 75: "flat_atomic_inc", 76: "flat_atomic_dec",
    77: "flat_atomic_add_f32", 96: "flat_atomic_swap_x2", 97: "flat_atomic_cmpswap_x2", 98: "flat_atomic_add_x2",
    99: "flat_atomic_sub_x2", 100: "flat_atomic_smin_x2", 101: "flat_atomic_umin_x2", 102: "flat_atomic_smax_x2",
    103: "flat_atomic_umax_x2", 104: "flat_atomic_and_x2", 105: "flat_atomic_or_x2", 106: "flat_atomic_xor_x2",
    107: "flat_atomic_inc_x2", 108: "flat_atomic_dec_x2",
}

SCRATCH: dict[int, str] = {
    16: "scratch_load_ubyte", 17: "scratch_load_sbyte", 18: "scratch_load_ushort", 19: "scratch_load_sshort",
    20: "scratch_load_dword", 21: "scratch_load_dwordx2", 22: "scratch_load_dwordx3", 23: "scratch_load_dwordx4",
    24: "scratch_store_byte", 25: "scratch_store_byte_d16_hi", 26: "scratch_store_short",
    27: "scratch_store_short_d16_hi", 28: "scratch_store_dword", 29: "scratch_store_dwordx2",
    30: "scratch_store_dwordx3", 31: "scratch_store_dwordx4", 32: "scratch_load_ubyte_d16",
    33: "scratch_load_ubyte_d16_hi", 34: "scratch_load_sbyte_d16", 35: "scratch_load_sbyte_d16_hi",
    36: "scratch_load_short_d16", 37: "scratch_load_short_d16_hi",
}

GLOBAL: dict[int, str] = {
    16: "global_load_ubyte", 17: "global_load_sbyte", 18: "global_load_ushort", 19: "global_load_sshort",
    20: "global_load_dword", 21: "global_load_dwordx2", 22: "global_load_dwordx3", 23: "global_load_dwordx4",
    24: "global_store_byte", 25: "global_store_byte_d16_hi", 26: "global_store_short",
    27: "global_store_short_d16_hi", 28: "global_store_dword", 29: "global_store_dwordx2",
    30: "global_store_dwordx3", 31: "global_store_dwordx4", 32: "global_load_ubyte_d16",
    33: "global_load_ubyte_d16_hi", 34: "global_load_sbyte_d16", 35: "global_load_sbyte_d16_hi",
    36: "global_load_short_d16", 37: "global_load_short_d16_hi", 64: "global_atomic_swap",
    65: "global_atomic_cmpswap", 66: "global_atomic_add", 67: "global_atomic_sub", 68: "global_atomic_smin",
    69: "global_atomic_umin", 70: "global_atomic_smax", 71: "global_atomic_umax", 72: "global_atomic_and",
    73: "global_atomic_or", 74: "global_atomic_xor", 75: "global_atomic_inc", 76: "global_atomic_dec",
    77: "global_atomic_add_f32", 96: "global_atomic_swap_x2", 97: "global_atomic_cmpswap_x2",
    98: "global_atomic_add_x2", 99: "global_atomic_sub_x2", 100: "global_atomic_smin_x2",
    101: "global_atomic_umin_x2", 102: "global_atomic_smax_x2", 103: "global_atomic_umax_x2",
    104: "global_atomic_and_x2", 105: "global_atomic_or_x2", 106: "global_atomic_xor_x2",
    107: "global_atomic_inc_x2", 108: "global_atomic_dec_x2",
}
