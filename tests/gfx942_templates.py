# SPDX-License-Identifier: Apache-2.0
"""One line of assembly for every opcode of the decoder, with the fields that its machine code must have.

Each operand has its own register number, so that a field read from another's bits shows.
"""

from __future__ import annotations

from parity.gfx942 import opcodes

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
_F32_CONDITIONS = ["f", "lt", "eq", "le", "gt", "lg", "ge", "o", "u", "nge", "nlg", "ngt", "nle", "neq", "nlt", "tru"]
_INT_CONDITIONS = ["f", "lt", "eq", "le", "gt", "ne", "ge", "t"]


def _compares(*types: str) -> str:
    return " ".join(f"{stem}_{condition}_{kind}" for stem in ("v_cmp", "v_cmpx") for kind in types
                    for condition in (_F32_CONDITIONS if kind == "f32" else _INT_CONDITIONS))  # fmt: skip


def _mfma(shape: str) -> str:
    return " ".join(f"v_mfma_f32_{shape}_{left}_{right}" for left in ("fp8", "bf8") for right in ("fp8", "bf8"))


SMEM_FIELDS: Fields = {
    "sbase": 4,
    "sdst": 0,
    "soffset_en": 0,
    "nv": 0,
    "glc": 0,
    "imm": 1,
    "offset": 0x10,
    "soffset": 0,
}
VOP3_FIELDS: Fields = {
    "vdst": 5,
    "abs": 0,
    "opsel": 0,
    "clamp": 0,
    "src0": V + 7,
    "src1": V + 9,
    "src2": 0,
    "omod": 0,
    "neg": 0,
}
VOP3B_FIELDS: Fields = {"vdst": 6, "sdst": 10, "clamp": 0, "abs": 0, "opsel": 0, "src0": V + 7, "src1": V + 9, "src2": V + 12,
                  "omod": 0, "neg": 0}  # fmt: skip
PACKED_FIELDS: Fields = {
    "vdst": 6,
    "neg_hi": 0,
    "opsel": 0,
    "clamp": 0,
    "src0": V + 8,
    "src1": V + 10,
    "src2": 0,
    "opsel_hi": 7,
    "neg": 0,
}
MAI_FIELDS: Fields = {
    "vdst": 0,
    "cbsz": 0,
    "abid": 0,
    "acc_cd": 0,
    "src0": 0,
    "src1": 0,
    "src2": 0,
    "acc": 0,
    "blgp": 0,
}
DS_FIELDS: Fields = {"offset0": 0, "offset1": 0, "gds": 0, "acc": 0, "addr": 7, "data0": 0, "data1": 0, "vdst": 0}
FLAT_FIELDS: Fields = {
    "offset": 0,
    "sve": 0,
    "sc0": 0,
    "nt": 0,
    "sc1": 0,
    "addr": 8,
    "data": 0,
    "saddr": 0x7F,
    "acc": 0,
    "vdst": 0,
}
MUBUF_FIELDS: Fields = {"offset": 0, "offen": 0, "idxen": 0, "sc0": 0, "sc1": 0, "lds": 0, "nt": 0, "vaddr": 0, "vdata": 0, "srsrc": 2,
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
        ("vcc, v7, v9", {"src0": V + 7, "vsrc1": 9}, _compares("f32", "i16", "u16", "i32", "u32") + " v_cmp_class_f32 v_cmpx_class_f32"),
        ("vcc, v[8:9], v[10:11]", {"src0": V + 8, "vsrc1": 10}, _compares("i64", "u64")),
    ],
    "VOP3": [
        ("v5, v7, v9, v11", VOP3_FIELDS | {"src2": V + 11}, _VOP3_3),
        ("v5, v7, v9", VOP3_FIELDS, _VOP3_2),
        ("v[6:7], v[8:9], v[10:11], v[12:13]", VOP3_FIELDS | {"vdst": 6, "src0": V + 8, "src1": V + 10, "src2": V + 12}, "v_fma_f64"),
        ("v[6:7], v[8:9], v[10:11]", VOP3_FIELDS | {"vdst": 6, "src0": V + 8, "src1": V + 10}, "v_add_f64 v_mul_f64"),
        ("v[6:7], v[8:9], v11, v[12:13]", VOP3_FIELDS | {"vdst": 6, "src0": V + 8, "src1": V + 11, "src2": V + 12}, "v_lshl_add_u64"),
        ("v[6:7], v9, v[10:11]", VOP3_FIELDS | {"vdst": 6, "src0": V + 9, "src1": V + 10}, "v_lshlrev_b64 v_lshrrev_b64 v_ashrrev_i64"),
        ("s5, v7, s9", VOP3_FIELDS | {"src1": 9}, "v_readlane_b32"),
        ("v5, s7, 9", VOP3_FIELDS | {"vdst": 5, "src0": 7, "src1": 128 + 9}, "v_writelane_b32"),
        ("v5, vcc, v7, v9, v12", VOP3B_FIELDS | {"vdst": 5, "sdst": VCC}, "v_div_scale_f32"),
        ("v[6:7], s[10:11], v7, v9, v[12:13]", VOP3B_FIELDS, "v_mad_u64_u32 v_mad_i64_i32"),
    ],
    "VOP3P": [
        ("v6, v8, v10, v12", PACKED_FIELDS | {"src2": V + 12}, "v_pk_mad_i16 v_pk_mad_u16 v_pk_fma_f16"),
        ("v6, v8, v10, v12", PACKED_FIELDS | {"src2": V + 12, "opsel_hi": 0}, "v_fma_mix_f32"),
        ("v6, v8, v10, v12", PACKED_FIELDS | {"src2": V + 12}, "v_dot4_i32_i8"),
        ("v6, v8, v10", PACKED_FIELDS, _PK_2),
        ("v[6:7], v[8:9], v[10:11], v[12:13]", PACKED_FIELDS | {"src2": V + 12}, "v_pk_fma_f32"),
        ("v[6:7], v[8:9], v[10:11]", PACKED_FIELDS, "v_pk_mul_f32 v_pk_add_f32 v_pk_mov_b32"),
        # a matrix instruction whose opcode lies in the packed half: the executor has no semantics for it
        ("v[4:7], v[8:9], v[10:11], v[12:15]", PACKED_FIELDS | {"vdst": 4, "src2": V + 12, "opsel_hi": 0}, "v_mfma_f32_16x16x8_xf32"),
    ],
    "VOP3P-MAI": [
        # clang sets bit 14 and both `acc` bits in these two, as VOP3P's op_sel_hi has them by default
        ("v5, a7", MAI_FIELDS | {"vdst": 5, "src0": V + 7, "abid": 8, "acc": 3}, "v_accvgpr_read_b32"),
        ("a5, v7", MAI_FIELDS | {"vdst": 5, "src0": V + 7, "abid": 8, "acc": 3}, "v_accvgpr_write_b32"),
        ("v[4:7], v[8:9], v[10:11], v[12:15]", MAI_FIELDS | {"vdst": 4, "src0": V + 8, "src1": V + 10, "src2": V + 12},
         _mfma("16x16x32") + """ v_mfma_f32_16x16x16_f16 v_mfma_f32_16x16x16_bf16 v_mfma_i32_16x16x32_i8"""),
        ("v[0:15], v[16:17], v[18:19], v[20:35]", MAI_FIELDS | {"src0": V + 16, "src1": V + 18, "src2": V + 20},
         _mfma("32x32x16") + " v_mfma_f32_32x32x8_f16 v_mfma_f32_32x32x8_bf16"),
        ("v[4:7], v8, v10, v[12:15]", MAI_FIELDS | {"vdst": 4, "src0": V + 8, "src1": V + 10, "src2": V + 12}, "v_mfma_f32_16x16x4_f32"),
        ("v[0:15], v16, v18, v[20:35]", MAI_FIELDS | {"src0": V + 16, "src1": V + 18, "src2": V + 20}, "v_mfma_f32_32x32x2_f32"),
    ],
}  # fmt: skip


def _by_width(pattern: str, fields: Fields, stem: str, register: str, narrow: str) -> list[Template]:
    """Templates of loads or stores: `narrow` kinds take v4, wide ones v[4:n]."""
    templates: list[Template] = [
        (pattern.format("v4"), fields | {register: 4}, " ".join(stem + kind for kind in narrow.split()))
    ]
    for words, kind in ((1, "dword"), (2, "dwordx2"), (3, "dwordx3"), (4, "dwordx4")):
        data = "v4" if words == 1 else f"v[4:{3 + words}]"
        templates.append((pattern.format(data), fields | {register: 4}, stem + kind))
    return templates


_LOADS = "ubyte sbyte ushort sshort ubyte_d16 ubyte_d16_hi sbyte_d16 sbyte_d16_hi short_d16 short_d16_hi"
_STORES = "byte byte_d16_hi short short_d16_hi"
_ATOMICS = ["swap", "add", "sub", "smin", "umin", "smax", "umax", "and", "or", "xor", "inc", "dec"]
_DS_ATOMICS = [
    "add_u32",
    "sub_u32",
    "inc_u32",
    "dec_u32",
    "min_i32",
    "max_i32",
    "min_u32",
    "max_u32",
    "and_b32",
    "or_b32",
    "xor_b32",
]


def _atomics(pattern: str, fields: Fields, stem: str, register: str) -> list[Template]:
    """One dword in v4, two in v[4:5]; cmpswap has twice as many."""
    names = [f"{stem}atomic_{name}" for name in _ATOMICS]
    return [
        (pattern.format("v4"), fields | {register: 4}, f"{' '.join(names)} {stem}atomic_add_f32"),
        (pattern.format("v[4:5]"), fields | {register: 4}, f"{'_x2 '.join(names)}_x2 {stem}atomic_cmpswap"),
        (pattern.format("v[4:7]"), fields | {register: 4}, f"{stem}atomic_cmpswap_x2"),
    ]


MEMORY: dict[str, list[Template]] = {
    "SMEM": [
        ("s5, s[8:9], 0x10", SMEM_FIELDS | {"sdst": 5}, "s_load_dword"),
        ("s[6:7], s[8:9], 0x10", SMEM_FIELDS | {"sdst": 6}, "s_load_dwordx2"),
        ("s[12:15], s[8:9], 0x10", SMEM_FIELDS | {"sdst": 12}, "s_load_dwordx4"),
        ("s[12:19], s[8:9], 0x10", SMEM_FIELDS | {"sdst": 12}, "s_load_dwordx8"),
        ("s[12:27], s[8:9], 0x10", SMEM_FIELDS | {"sdst": 12}, "s_load_dwordx16"),
        ("s5, s[8:11], 0x10", SMEM_FIELDS | {"sdst": 5}, "s_buffer_load_dword"),
        ("s[6:7], s[8:11], 0x10", SMEM_FIELDS | {"sdst": 6}, "s_buffer_load_dwordx2"),
        ("s[12:15], s[8:11], 0x10", SMEM_FIELDS | {"sdst": 12}, "s_buffer_load_dwordx4"),
        ("s[12:19], s[8:11], 0x10", SMEM_FIELDS | {"sdst": 12}, "s_buffer_load_dwordx8"),
        ("s[12:27], s[8:11], 0x10", SMEM_FIELDS | {"sdst": 12}, "s_buffer_load_dwordx16"),
        ("s[6:7]", SMEM_FIELDS | {"sbase": 0, "sdst": 6, "imm": 0, "offset": 0}, "s_memtime s_memrealtime"),
        ("", SMEM_FIELDS | {"sbase": 0, "imm": 0, "offset": 0}, "s_dcache_inv s_dcache_wb"),
    ],
    "DS": [
        ("v5, v7 offset:0x1234", DS_FIELDS | {"vdst": 5, "offset0": 0x34, "offset1": 0x12},
         """ds_read_b32 ds_read_u8 ds_read_i8 ds_read_u16 ds_read_i16 ds_read_u8_d16 ds_read_u8_d16_hi ds_read_u16_d16
         ds_read_u16_d16_hi ds_read_i8_d16 ds_read_i8_d16_hi ds_swizzle_b32"""),
        ("v[4:5], v7 offset:0x1234", DS_FIELDS | {"vdst": 4, "offset0": 0x34, "offset1": 0x12}, "ds_read_b64"),
        ("v[4:6], v7 offset:0x1234", DS_FIELDS | {"vdst": 4, "offset0": 0x34, "offset1": 0x12}, "ds_read_b96"),
        ("v[4:7], v7 offset:0x1234", DS_FIELDS | {"vdst": 4, "offset0": 0x34, "offset1": 0x12}, "ds_read_b128"),
        ("v[4:5], v7 offset0:3 offset1:6", DS_FIELDS | {"vdst": 4, "offset0": 3, "offset1": 6}, "ds_read2_b32 ds_read2st64_b32"),
        ("v[4:7], v7 offset0:3 offset1:6", DS_FIELDS | {"vdst": 4, "offset0": 3, "offset1": 6}, "ds_read2_b64 ds_read2st64_b64"),
        ("v7, v9 offset:0x1234", DS_FIELDS | {"data0": 9, "offset0": 0x34, "offset1": 0x12},
         "ds_write_b32 ds_write_b8 ds_write_b16 ds_write_b8_d16_hi ds_write_b16_d16_hi ds_add_f32 "
         + " ".join(f"ds_{name}" for name in _DS_ATOMICS)),
        ("v7, v[8:9] offset:0x1234", DS_FIELDS | {"data0": 8, "offset0": 0x34, "offset1": 0x12}, "ds_write_b64"),
        ("v7, v[8:10] offset:0x1234", DS_FIELDS | {"data0": 8, "offset0": 0x34, "offset1": 0x12}, "ds_write_b96"),
        ("v7, v[8:11] offset:0x1234", DS_FIELDS | {"data0": 8, "offset0": 0x34, "offset1": 0x12}, "ds_write_b128"),
        ("v7, v9, v11 offset0:3 offset1:6", DS_FIELDS | {"data0": 9, "data1": 11, "offset0": 3, "offset1": 6}, "ds_write2_b32 ds_write2st64_b32"),
        ("v7, v[8:9], v[10:11] offset0:3 offset1:6", DS_FIELDS | {"data0": 8, "data1": 10, "offset0": 3, "offset1": 6},
         "ds_write2_b64 ds_write2st64_b64"),
        ("v5, v7, v9 offset:0x1234", DS_FIELDS | {"vdst": 5, "data0": 9, "offset0": 0x34, "offset1": 0x12},
         "ds_bpermute_b32 ds_permute_b32 ds_wrxchg_rtn_b32 ds_add_rtn_f32 " + " ".join(f"ds_{name.replace('_', '_rtn_')}" for name in _DS_ATOMICS)),
        ("v7, v9, v11 offset:0x1234", DS_FIELDS | {"data0": 9, "data1": 11, "offset0": 0x34, "offset1": 0x12}, "ds_cmpst_b32"),
        ("v5, v7, v9, v11 offset:0x1234", DS_FIELDS | {"vdst": 5, "data0": 9, "data1": 11, "offset0": 0x34, "offset1": 0x12}, "ds_cmpst_rtn_b32"),
    ],
    "GLOBAL": [
        *_by_width("{}, v[8:9], off offset:-24", FLAT_FIELDS | {"offset": 0x2000 - 24}, "global_load_", "vdst", _LOADS),
        *_by_width("v[8:9], {}, off offset:-24", FLAT_FIELDS | {"offset": 0x2000 - 24}, "global_store_", "data", _STORES),
        *_atomics("v[8:9], {}, off", FLAT_FIELDS, "global_", "data"),
    ],
    "FLAT": [
        *_by_width("{}, v[8:9] offset:24", FLAT_FIELDS | {"offset": 24, "saddr": 0}, "flat_load_", "vdst", _LOADS),
        *_by_width("v[8:9], {} offset:24", FLAT_FIELDS | {"offset": 24, "saddr": 0}, "flat_store_", "data", _STORES),
        *_atomics("v[8:9], {}", FLAT_FIELDS | {"saddr": 0}, "flat_", "data"),
    ],
    "SCRATCH": [
        *_by_width("{}, v8, off", FLAT_FIELDS | {"sve": 1}, "scratch_load_", "vdst", _LOADS),
        *_by_width("v8, {}, off", FLAT_FIELDS | {"sve": 1}, "scratch_store_", "data", _STORES),
    ],
    "MUBUF": [
        *_by_width("{}, v7, s[8:11], s13 offen offset:291", MUBUF_FIELDS | {"offen": 1, "vaddr": 7, "offset": 291, "soffset": 13},
                   "buffer_load_", "vdata", _LOADS),
        *_by_width("{}, v7, s[8:11], s13 offen offset:291", MUBUF_FIELDS | {"offen": 1, "vaddr": 7, "offset": 291, "soffset": 13},
                   "buffer_store_", "vdata", _STORES),
        *_atomics("{}, off, s[8:11], 0", MUBUF_FIELDS, "buffer_", "vdata"),
        ("sc1", MUBUF_FIELDS | {"sc1": 1, "srsrc": 0, "soffset": 0}, "buffer_wbl2 buffer_inv"),
    ],
}  # fmt: skip
TEMPLATES = SOP | VECTOR | MEMORY
TABLES = {"SOP2": opcodes.SOP2, "SOP1": opcodes.SOP1, "SOPC": opcodes.SOPC, "SOPK": opcodes.SOPK, "SOPP": opcodes.SOPP,
          "SMEM": opcodes.SMEM, "VOP1": opcodes.VOP1, "VOP2": opcodes.VOP2, "VOPC": opcodes.VOPC, "VOP3": opcodes.VOP3,
          "DS": opcodes.DS, "MUBUF": opcodes.MUBUF, "FLAT": opcodes.FLAT, "SCRATCH": opcodes.SCRATCH,
          "GLOBAL": opcodes.GLOBAL}  # fmt: skip
