# SPDX-License-Identifier: Apache-2.0
"""Seeded bugs in assembly: registers that nobody wrote, whole or in part, as no compiler would let us say.

s[4:5], s[6:7] point to in and out, v1 is 4 x work-item, s2 the workgroup (tests/seeded_places.py). Without `@` a register is written.
"""

from __future__ import annotations

from tests.seeded_places import Seeded

STORE = "BUG global_store_dword v1, v3, s[6:7]\n"
_NEVER = "a register that was never written"
ST = "global_store_dword "


def _code(
    name: str,
    text: str,
    clean: str,
    *,
    faulty: str = "s_nop 0",
    at: str = ST,
    lane: int = 0,
    wave: int = 0,
    detail: str = _NEVER,
) -> Seeded:
    return Seeded(f"register_{name}", "uninitialised", text, faulty, clean, at, lane, wave, detail=detail)


_SAVED = "s_mov_b64 s[20:21], exec\nv_cmp_gt_u32 vcc, @, v0\ns_and_b64 exec, exec, vcc\n"
_BACK = "s_mov_b64 exec, s[20:21]\n"
_MATRIX = "v_mfma_f32_16x16x32_fp8_fp8 v[24:27], v[4:5], v[6:7], v[20:23]\ns_nop 6\nBUG global_store_dwordx4 v1, v[24:27], s[6:7]\n"
_SET = "".join(f"v_mov_b32 v{n}, 0\n" for n in (4, 6, 7, 20, 21, 23))
_DESCRIPTOR = "s_mov_b64 s[20:21], s[4:5]\ns_mov_b32 s23, 0x27000\n"
CODE = [
    # -- whole registers
    _code("vector", "@\nBUG global_store_dword v1, v20, s[6:7]", "v_mov_b32 v20, 1"),
    _code("accumulator", "@\ns_nop 1\nv_accvgpr_read_b32 v3, a5\n" + STORE, "v_accvgpr_write_b32 a5, 1"),
    _code("accumulator_stored", "@\ns_nop 1\nBUG global_store_dword v1, a7, s[6:7]", "v_accvgpr_write_b32 a7, 1"),
    _code("scalar", "@\nv_mov_b32 v3, s30\n" + STORE, "s_mov_b32 s30, 4"),
    _code("workgroup_id_not_asked_for", "v_mov_b32 v3, @\n" + STORE, "s2", faulty="s3"),
    _code("argument_behind_the_last", "s_load_dword s20, s[0:1], @\ns_waitcnt lgkmcnt(0)\nv_mov_b32 v3, s20\n" + STORE, "0x18", faulty="0x1c", detail="nobody wrote, read at .* s_load_dword "),
    _code("third_of_four_dwords", "v_mov_b32 v20, 0\nv_mov_b32 v21, 0\n@\nv_mov_b32 v23, 0\nv_and_b32 v1, 0x1ff, v1\nBUG global_store_dwordx4 v1, v[20:23], s[6:7]", "v_mov_b32 v22, 0", at="global_store_dwordx4"),
    _code("exchanged", "v_mov_b32 v3, 1\n@\nv_swap_b32 v3, v20\n" + STORE, "v_mov_b32 v20, 2"),
    _code("upper_of_a_packed_pair", "v_mov_b32 v20, 0\n@\nv_pk_add_f32 v[24:25], v[20:21], v[20:21]\nBUG global_store_dwordx2 v1, v[24:25], s[6:7]", "v_mov_b32 v21, 0", at="global_store_dwordx2"),
    _code("data_of_an_atomic", "@\nBUG global_atomic_add v1, v20, s[6:7]", "v_mov_b32 v20, 1", at="global_atomic_add"),
    # -- some lanes, some bits
    _code("lanes_that_were_off", _SAVED + "v_mov_b32 v3, 1\n" + _BACK + STORE, "128", faulty="40", lane=40),
    _code("lanes_that_were_off_in_the_second_wave", _SAVED + "v_mov_b32 v3, 1\n" + _BACK + STORE, "128", faulty="101", lane=37, wave=1),
    _code("all_lanes_but_one", "@\nv_writelane_b32 v3, s2, 0\n" + STORE, "v_mov_b32 v3, 0", lane=1),
    _code("lane_read_before_it_was_written", _SAVED + "v_mov_b32 v20, 1\n" + _BACK + "v_readlane_b32 s22, v20, 33\nv_mov_b32 v3, s22\n" + STORE, "128", faulty="33"),
    _code("first_lane_off_while_written", "s_mov_b64 s[20:21], exec\ns_mov_b64 exec, @\nv_mov_b32 v20, 1\n" + _BACK + "v_readfirstlane_b32 s22, v20\nv_mov_b32 v3, s22\n" + STORE, "-1", faulty="-2"),
    _code("dpp_keeps_the_old_first_lane", "v_mov_b32_dpp v3, v0 row_shr:1 row_mask:0xf bank_mask:0xf @\n" + STORE, "bound_ctrl:0", faulty=""),
    _code("dpp_leaves_a_row_out", "v_mov_b32_dpp v3, v0 quad_perm:[1,0,3,2] row_mask:@ bank_mask:0xf\n" + STORE, "0xf", faulty="0x7", lane=48),
    _code("dpp_leaves_a_bank_out", "v_mov_b32_dpp v3, v0 quad_perm:[1,0,3,2] row_mask:0xf bank_mask:@\n" + STORE, "0xf", faulty="0xb", lane=8),
    _code("other_half_of_an_sdwa_result", "v_mov_b32_sdwa v3, v0 dst_sel:WORD_0 dst_unused:@ src0_sel:DWORD\n" + STORE, "UNUSED_PAD", faulty="UNUSED_PRESERVE"),
    _code("other_half_of_a_load", "global_load_@ v3, v1, s[4:5]\ns_waitcnt vmcnt(0)\n" + STORE, "ushort", faulty="short_d16", detail=""),
    _code("other_half_of_a_conversion", "@\nv_cvt_pk_fp8_f32 v3, v0, v0 op_sel:[0,0,1]\n" + STORE, "v_mov_b32 v3, 0"),
    # -- in a sum, a product, a condition
    _code("sum_never_begun", "@\nv_fmac_f32 v3, v0, v0\n" + STORE, "v_mov_b32 v3, 0"),
    _code("sum_of_a_loop_never_begun", "@\ns_mov_b32 s20, 3\nL1: v_add_u32 v3, v3, v0\ns_sub_u32 s20, s20, 1\ns_cmp_lg_u32 s20, 0\ns_cbranch_scc1 L1\n" + STORE, "v_mov_b32 v3, 0"),
    _code("addend_of_a_matrix", _SET + "v_mov_b32 v5, 0\n@\ns_nop 2\n" + _MATRIX, "v_mov_b32 v22, 0", at="global_store_dwordx4"),
    _code("half_of_a_matrix_operand", _SET + "v_mov_b32 v22, 0\n@\ns_nop 2\n" + _MATRIX, "v_mov_b32 v5, 0", at="global_store_dwordx4"),
    _code("carry_in", "@\nv_addc_co_u32 v3, vcc, v0, v0, vcc\n" + STORE, "s_mov_b64 vcc, 0"),
    # lane 0 has 0 either way
    _code("condition_of_a_select", "@\nv_cndmask_b32 v3, 0, v1, vcc\n" + STORE, "s_mov_b64 vcc, 0", lane=1),
    _code("condition_of_a_scalar_select", "@\ns_cselect_b32 s20, s2, s4\nv_mov_b32 v3, s20\n" + STORE, "s_cmp_eq_u32 s2, 0"),
    _code("choice_of_bytes", "@\nv_perm_b32 v3, v0, v1, v20\n" + STORE, "v_mov_b32 v20, 0"),
    _code("shift_amount", "@\nv_lshlrev_b32 v3, v20, v0\n" + STORE, "v_mov_b32 v20, 0"),
    _code("source_lane", "@\nds_bpermute_b32 v3, v20, v0\ns_waitcnt lgkmcnt(0)\n" + STORE, "v_mov_b32 v20, 0"),
    # -- bits that only depend on undefined ones
    _code("sum_above_undefined_bits", "v_mov_b32_sdwa v20, v0 dst_sel:WORD_1 dst_unused:@ src0_sel:DWORD\nv_add_u32 v3, v20, v0\nBUG global_store_short_d16_hi v1, v3, s[6:7]", "UNUSED_PAD", faulty="UNUSED_PRESERVE", at="global_store_short_d16_hi"),
    _code("copies_of_an_undefined_sign", "v_mov_b32_sdwa v20, v0 dst_sel:WORD_0 dst_unused:@ src0_sel:DWORD\nv_ashrrev_i32 v3, 16, v20\nBUG global_store_short_d16_hi v1, v3, s[6:7]", "UNUSED_PAD", faulty="UNUSED_PRESERVE", at="global_store_short_d16_hi"),
    _code("product_above_undefined_bits", "v_mov_b32_sdwa v20, v0 dst_sel:WORD_1 dst_unused:@ src0_sel:DWORD\nv_mul_lo_u32 v3, v20, v0\nBUG global_store_byte_d16_hi v1, v3, s[6:7]", "UNUSED_PAD", faulty="UNUSED_PRESERVE", at="global_store_byte_d16_hi"),
    # -- addresses
    _code("upper_half_of_an_address", "v_mov_b32 v4, s4\n@\nBUG global_load_dword v3, v[4:5], off\ns_waitcnt vmcnt(0)", "v_mov_b32 v5, s5", at="global_load_dword"),
    _code("offset_of_a_load", "@\nBUG global_load_dword v3, v20, s[4:5]\ns_waitcnt vmcnt(0)", "v_mov_b32 v20, 0", at="global_load_dword"),
    _code("scalar_base", "s_mov_b32 s30, s4\n@\nBUG global_load_dword v3, v1, s[30:31]\ns_waitcnt vmcnt(0)", "s_mov_b32 s31, s5", at="global_load_dword", lane=-1),
    _code("scalar_base_of_a_scalar_load", "s_mov_b32 s31, s5\n@\nBUG s_load_dword s20, s[30:31], 0x0\ns_waitcnt lgkmcnt(0)", "s_mov_b32 s30, s4", at="s_load_dword", lane=-1),
    _code("size_in_a_descriptor", _DESCRIPTOR + "@\nBUG buffer_load_dword v3, v1, s[20:23], 0 offen\ns_waitcnt vmcnt(0)", "s_movk_i32 s22, 0x400", at="buffer_load_dword", lane=-1),
    _code("offset_of_a_descriptor", _DESCRIPTOR + "s_movk_i32 s22, 0x400\n@\nBUG buffer_load_dword v3, v1, s[20:23], s30 offen\ns_waitcnt vmcnt(0)", "s_mov_b32 s30, 0", at="buffer_load_dword", lane=-1),
    _code("lds_address", "ds_write_b32 v1, v0\ns_waitcnt lgkmcnt(0)\ns_barrier\n@\nBUG ds_read_b32 v3, v20\ns_waitcnt lgkmcnt(0)", "v_mov_b32 v20, 0", at="ds_read_b32"),
    _code("scratch_offset", "@\nBUG scratch_store_dword off, v0, s30\ns_waitcnt vmcnt(0)", "s_mov_b32 s30, 0", at="scratch_store_dword", lane=-1),
    _code("lane_number_in_a_scalar", "@\nBUG v_readlane_b32 s22, v0, s30", "s_mov_b32 s30, 0", at="v_readlane_b32", lane=-1),
    # -- control
    _code("branch_on_vcc", "@\nBUG s_cbranch_vccnz L1\nL1: s_nop 0", "s_mov_b64 vcc, 0", at="s_cbranch_vccnz"),
    _code("branch_on_scc", "@\nBUG s_cbranch_scc0 L1\nL1: s_nop 0", "s_cmp_eq_u32 s2, 0", at="s_cbranch_scc0", lane=-1),
    _code("count_of_a_loop", "@\nL1: s_sub_u32 s30, s30, 1\ns_cmp_lg_u32 s30, 0\nBUG s_cbranch_scc1 L1", "s_mov_b32 s30, 2", at="s_cbranch_scc1", lane=-1),
    _code("exec", "@\nBUG s_mov_b64 exec, s[30:31]", "s_mov_b64 s[30:31], exec", at="s_mov_b64 exec"),
    _code("exec_from_vcc", "@\nBUG s_and_saveexec_b64 s[20:21], vcc", "s_mov_b64 vcc, exec", at="s_and_saveexec_b64"),
    _code("exec_from_a_comparison", "@\nBUG v_cmpx_gt_u32 vcc, 9, v20", "v_mov_b32 v20, 1", at="v_cmpx_gt_u32"),
]  # fmt: skip
