# SPDX-License-Identifier: Apache-2.0
"""Seeded bugs: a register is used, or overwritten, while a load still fills it; LDS is read before another wave's store left.

Most are clang's code with an s_waitcnt deleted or its count raised; what clang itself would not write is assembly. seeded_timing.py
has each kind of load before each kind of use; here are the counts, the branches and loops, and the mixes of counters.
"""

from __future__ import annotations

from tests.seeded_assembly import Edit, Mutant, Pair, Swap

HEAD = "(__global int* in, __global int* out, int n) {\n int i = ITEM + 256 * WG, lane = ITEM & 63;\n"
BASES = {
    "four": HEAD + " int a = in[i] * 3 ^ in[i + 512], b = in[i + 1024] * 5 ^ in[i + 1536];\n out[i] = a + b;\n}",
    "gathered": HEAD + " out[in[in[i] & 511] & 511] = i;\n}",
    "exchanged": HEAD + " __local int t[512];\n t[ITEM] = in[i];\n t[ITEM + 256] = in[i + 512] + 1;\n BARRIER;\n out[i] = t[255 ^ ITEM] * 7 + t[511 ^ ITEM];\n}",
    "looped": HEAD + " int s = 0;\n for (int k = 0; k < n; k++) s = (s ^ in[i + 256 * k]) * 3;\n out[i] = s;\n}",
    "prefetched": HEAD + " int s = 0, x = in[i];\n for (int k = 1; k < n; k++) { int next = in[i + 256 * k]; s = (s ^ x) * 3; x = next; }\n out[i] = s ^ x;\n}",
    "scalars": HEAD + " int a = in[WG], b = in[WG + n];\n out[i] = a * in[i] + b;\n}",
    "products": "(__global long* in, __global F4* out, int n) {\n F4 c = {0, 0, 0, 0};\n for (int k = 0; k < n; k++)\n"
    "  c = __builtin_amdgcn_mfma_f32_16x16x32_fp8_fp8(in[ITEM + 128 * k], in[ITEM + 128 * k + 64], c, 0, 0, 0);\n out[ITEM] = c;\n}",
    "one_side": HEAD + " int x = in[i];\n if (n > 3) x = in[i + 256] + 1;\n out[i] = x * 3;\n}",
    "permuted": HEAD + " int x = in[i];\n int y = __builtin_amdgcn_ds_bpermute(4 * lane ^ 60, x);\n out[i] = x * y;\n}",
    "counted": HEAD + " int x = __scoped_atomic_fetch_add(&out[i], in[i], __ATOMIC_RELAXED, __MEMORY_SCOPE_DEVICE);\n out[i + 512] = x + 1;\n}",
    "wide": "(__global V16* in, __global V16* out, int n) {\n V16 x = in[ITEM], y = in[ITEM + 64];\n out[ITEM] = x * 3;\n out[ITEM + 64] = y + x;\n}",
    "buffers": HEAD + " __amdgpu_buffer_rsrc_t r = __builtin_amdgcn_make_buffer_rsrc(in, 0, 16384, 0x27000);\n"
    " int a = __builtin_amdgcn_raw_buffer_load_b32(r, 4 * i, 0, 0), b = __builtin_amdgcn_raw_buffer_load_b32(r, 4 * i, 2048, 0);\n out[i] = a * 3 + b;\n}",
    "either": HEAD + " __local int t[256];\n t[ITEM] = i;\n BARRIER;\n int* p = n > 3 ? (int*)&t[255 ^ ITEM] : (int*)&in[i]; int* q = n > 3 ? (int*)&in[i] : (int*)&t[ITEM];\n"
    " out[i] = *p * 3 + *q;\n}",
}  # fmt: skip

VM, LGKM = "s_waitcnt.*vmcnt", "s_waitcnt.*lgkmcnt"
_FIRST = {"lane": 0, "wave": 0, "workgroup": 0}
_ALL = {"lane": -1, "wave": 0, "workgroup": 0}


def _wait(
    name: str,
    counter: str,
    to: str,
    at: tuple[str, int],
    nth: int = 0,
    *,
    more: tuple[Edit, ...] = (),
    lanes: dict[str, int] = _FIRST,
) -> Mutant:
    """The nth s_waitcnt of a counter becomes `to`. The kernel's name comes first, then a dot in the name."""
    base, _, what = name.partition(".")
    return Mutant(f"{base}_{what}", base, (*more, Edit(counter, to, nth)), at, **lanes)


MUTANTS = [
    _wait("four.no_arguments", LGKM, "", ("v_lshl_add_u64", 0), lanes=_ALL),
    _wait("four.none_of_four", VM, "", ("v_lshl_add_u32", 0)),
    _wait("four.4_for_3", VM, "s_waitcnt vmcnt(4)", ("v_lshl_add_u32", 0)),
    _wait("four.none_of_three", VM, "", ("v_xor_b32", 0), 1),
    _wait("four.3_for_2", VM, "s_waitcnt vmcnt(3)", ("v_xor_b32", 0), 1),
    _wait("four.none_of_two", VM, "", ("v_lshl_add_u32", 1), 2),
    _wait("four.2_for_1", VM, "s_waitcnt vmcnt(2)", ("v_lshl_add_u32", 1), 2),
    _wait("four.none_of_one", VM, "", ("v_xad_u32", 0), 3),
    _wait("four.1_for_0", VM, "s_waitcnt vmcnt(1)", ("v_xad_u32", 0), 3),
    _wait("four.wrong_counter", VM, "s_waitcnt lgkmcnt(0)", ("v_lshl_add_u32", 0)),
    Mutant("four_loads_swapped", "four", (Swap("global_load", 0, "global_load", 1),), ("v_lshl_add_u32", 0), **_FIRST),
    Mutant("four_wait_moved_down", "four", (Swap(VM, 1, "v_xor_b32", 0),), ("v_xor_b32", 0), **_FIRST),
    _wait("gathered.index", VM, "", ("v_and_b32", 0)),
    _wait("gathered.second_index", VM, "", ("v_and_b32", 1), 1),
    _wait("gathered.as_address", VM, "", ("global_load", 1), more=(Edit("v_and_b32", ""), Edit("v_lshlrev_b32", ""))),
    _wait("gathered.as_store_address", VM, "", ("global_store", 0), -1, more=(Edit("v_and_b32", "", -1), Edit("v_lshlrev_b32", "", -1))),
    _wait("exchanged.global", VM, "", ("v_add_u32", 0)),
    _wait("exchanged.1_for_0", VM, "s_waitcnt vmcnt(1)", ("v_add_u32", 0)),
    _wait("exchanged.store_data", VM, "", ("ds_write", 0), more=(Edit("v_add_u32", ""),)),
    _wait("exchanged.store_before_barrier", LGKM, "", ("ds_read", 0), 1),
    _wait("exchanged.2_before_barrier", LGKM, "s_waitcnt lgkmcnt(2)", ("ds_read", 0), 1),
    _wait("exchanged.both_answers", LGKM, "", ("v_mad_u64_u32", 0), 2),
    _wait("exchanged.second_answer", LGKM, "s_waitcnt lgkmcnt(1)", ("v_mad_u64_u32", 0), 2),
    _wait("looped.argument", LGKM, "", ("s_cmp", 0), lanes=_ALL),
    _wait("looped.1_argument_left", LGKM, "s_waitcnt lgkmcnt(1)", ("s_cmp", 0), lanes=_ALL),
    _wait("looped.element", VM, "", ("v_xor_b32", 0)),
    _wait("prefetched.carried", VM, "", ("v_xor_b32", 0)),
    _wait("prefetched.after_the_loop", VM, "", ("v_xor_b32", 1), 1),
    Mutant("prefetched_waits_before_loop", "prefetched", (Edit(VM, ""), Edit("s_cmp_lt", "s_waitcnt vmcnt(0)\ns_cmp_lt_i32 s3, 2")), ("v_xor_b32", 0), **_FIRST),
    _wait("scalars.scalar", "s_waitcnt vmcnt.*lgkmcnt", "s_waitcnt vmcnt(0)", ("v_mul_lo", 0), lanes=_ALL),
    _wait("scalars.one_of_two_scalars", "s_waitcnt vmcnt.*lgkmcnt", "s_waitcnt vmcnt(0) lgkmcnt(1)", ("v_mul_lo", 0), lanes=_ALL),
    _wait("scalars.vector", "s_waitcnt vmcnt.*lgkmcnt", "s_waitcnt lgkmcnt(0)", ("v_mul_lo", 0)),
    _wait("products.operands", VM, "", ("v_mfma", 0)),
    _wait("products.second_operand", VM, "s_waitcnt vmcnt(1)", ("v_mfma", 0)),
    _wait("one_side.with_wait", VM, "", ("v_add_u32", 0)),
    _wait("one_side.without", VM, "", ("v_lshl_add_u32", 0), 1, more=(Edit("s_cmp_lt", "s_cmp_gt_i32 s3, 3"),)),
    _wait("permuted.data", VM, "", ("ds_bpermute", 0)),
    _wait("permuted.result", LGKM, "", ("v_mul_lo", 0), 1),
    _wait("counted.addend", VM, "", ("global_atomic", 0)),
    _wait("counted.result", VM, "", ("v_add_u32", 0), 1),
    _wait("wide.first", VM, "", ("v_lshl_add_u32", 0)),
    _wait("wide.second", VM, "", ("v_add_u32", 0), 1),
    Mutant("wide_register_reused", "wide", (Edit("s_waitcnt vmcnt.1", "s_waitcnt vmcnt(1)\nv_mov_b32 v5, 0"),), ("v_mov_b32 v5", 0), **_FIRST),
    _wait("buffers.both", VM, "", ("v_mad_u64_u32", 0)),
    _wait("buffers.second", VM, "s_waitcnt vmcnt(1)", ("v_mad_u64_u32", 0)),
    _wait("either.only_vmcnt", VM, "s_waitcnt vmcnt(0)", ("v_mad_u64_u32", 0)),
    _wait("either.only_lgkmcnt", VM, "s_waitcnt lgkmcnt(0)", ("v_mad_u64_u32", 0)),
    # FLAT may be answered by LDS or by memory: the first of two is there only when both counters are 0 (ISA, "FLAT")
    _wait("either.first_of_two", VM, "s_waitcnt vmcnt(1) lgkmcnt(1)\nv_mov_b32 v1, v1", ("v_mov_b32 v1, v1", 0)),
]  # fmt: skip
# The path that lacks the wait is not taken with n = 4.
HARMLESS_MUTANTS = [
    Mutant("prefetched_other_path", "prefetched", (Edit(VM, "", 2),), ("global_store", 0)),
    Mutant("one_side_other_path", "one_side", (Edit(VM, "", 1),), ("global_store", 0)),
]

_LOAD = "global_load_dword v2, v1, s[4:5]\n"
_FULL = "s_waitcnt vmcnt(0) lgkmcnt(0)"
PAIRS = [
    Pair("lds_over_global", _LOAD + "@\nBUG ds_read_b32 v2, v1", "", "s_waitcnt vmcnt(0)", 0, 0),
    Pair("global_over_lds", "ds_read_b32 v2, v1\n@\nBUG " + _LOAD, "", "s_waitcnt lgkmcnt(0)", 0, 0),
    Pair("last_of_four", "v_and_b32 v1, 0xff, v1\nglobal_load_dwordx4 v[4:7], v1, s[4:5]\n@\nBUG v_mov_b32 v9, v7", "", _FULL, 0, 0),
    Pair("result_into_load", _LOAD + "@\nBUG v_pk_mul_f32 v[2:3], v[8:9], v[8:9]", "", _FULL, 0, 0),
    Pair("product_into_load", "v_mov_b32 v8, 0\nv_mov_b32 v9, 0\ns_nop 1\n" + _LOAD + "@\nBUG v_mfma_f32_16x16x32_fp8_fp8 v[0:3], v[8:9], v[8:9], 0", "", _FULL, 0, 0),
    Pair("addend", "v_mov_b32 v8, 0\nv_mov_b32 v9, 0\nglobal_load_dwordx4 v[4:7], v1, s[4:5]\ns_nop 1\n@\nBUG v_mfma_f32_16x16x32_fp8_fp8 v[12:15], v[8:9], v[8:9], v[4:7]", "", _FULL, 0, 0),
    Pair("one_lane_written", _LOAD + "@\nBUG v_writelane_b32 v2, s2, 3", "", _FULL, 0, 0),
    Pair("one_lane_read", _LOAD + "@\nBUG v_readlane_b32 s8, v2, 3", "", _FULL, 0, 0),
    Pair("masked", "s_mov_b32 exec_lo, 0xfffffe00\n" + _LOAD + "@\nBUG v_mov_b32 v3, v2", "", _FULL, 9, 0),
    Pair("into_agpr", "global_load_dword a2, v1, s[4:5]\n@\nBUG v_accvgpr_read_b32 v3, a2", "", _FULL, 0, 0),
    Pair("from_agpr", "global_load_dword a2, v1, s[4:5]\n@\nBUG global_store_dword v1, a2, s[6:7]", "", _FULL, 0, 0),
    Pair("third_wave_only", "v_readfirstlane_b32 s8, v0\n" + _LOAD + "s_cmp_eq_u32 s8, 0x80\ns_cbranch_scc1 L1\ns_waitcnt vmcnt(0)\nL1: @\nBUG v_mov_b32 v3, v2", "", _FULL, 0, 2),
    Pair("store_counts", _LOAD + "global_store_dword v1, v1, s[6:7]\ns_waitcnt vmcnt(@)\nBUG v_mov_b32 v3, v2", "2", "1", 0, 0),
    Pair("atomic_without_result_counts", _LOAD + "global_atomic_add v1, v1, s[6:7]\ns_waitcnt vmcnt(@)\nBUG v_mov_b32 v3, v2", "2", "1", 0, 0),
    Pair("lds_store_counts", "ds_write_b32 v1, v1\nds_read_b32 v2, v1\nds_write_b32 v1, v1\ns_waitcnt lgkmcnt(@)\nBUG v_mov_b32 v3, v2", "2", "1", 0, 0),
    Pair("lds_then_scalar", "ds_read_b32 v2, v1\ns_load_dword s8, s[4:5], 0x0\ns_waitcnt lgkmcnt(@)\nBUG v_mov_b32 v3, v2", "1", "0", 0, 0),
    Pair("scalar_then_lds", "s_load_dword s8, s[4:5], 0x0\nds_read_b32 v2, v1\nds_read_b32 v3, v1\ns_waitcnt lgkmcnt(@)\nBUG v_mov_b32 v4, v2", "2", "1", 0, 0),
    Pair("scalar_with_lds", "s_load_dword s8, s[4:5], 0x0\nds_read_b32 v2, v1\nds_read_b32 v3, v1\ns_waitcnt lgkmcnt(@)\nBUG s_mov_b32 s9, s8", "1", "0", -1, 0),
    Pair("scalar_pair", "s_load_dwordx4 s[8:11], s[4:5], 0x0\n@\nBUG v_mov_b32 v4, s11", "", _FULL, -1, 0),
    Pair("scalar_over_scalar", "s_load_dword s8, s[4:5], 0x0\n@\nBUG s_load_dword s8, s[4:5], 0x4", "", _FULL, -1, 0),
    Pair("scalar_as_scalar_address", "s_load_dwordx2 s[8:9], s[0:1], 0x0\n@\nBUG s_load_dword s10, s[8:9], 0x4", "", _FULL, -1, 0),
    Pair("scalar_as_offset", "s_load_dword s8, s[0:1], 0x10\n@\nBUG s_load_dword s10, s[4:5], s8", "", _FULL, -1, 0),
    Pair("descriptor", "s_mov_b32 s9, s5\ns_mov_b32 s11, 0x27000\ns_mov_b32 s10, 0x1000\ns_load_dword s8, s[0:1], 0x0\n@\nBUG buffer_load_dword v2, v1, s[8:11], 0 offen", "", _FULL, -1, 0),
    Pair("vcc_by_select", "s_load_dwordx2 vcc, s[4:5], 0x0\n@\nBUG v_cndmask_b32_e32 v3, v1, v0, vcc", "", _FULL, -1, 0),
    Pair("vcc_by_carry", "s_load_dwordx2 vcc, s[4:5], 0x0\n@\nBUG v_addc_co_u32_e32 v3, vcc, v1, v0, vcc", "", _FULL, -1, 0),
    Pair("atomic_on_lds", "ds_write_b32 v1, v1\nds_add_rtn_u32 v2, v1, v1\n@\nBUG v_mov_b32 v3, v2", "s_waitcnt lgkmcnt(1)", "s_waitcnt lgkmcnt(0)", 0, 0),
    Pair("swizzled", "ds_swizzle_b32 v2, v1 offset:swizzle(SWAP,1)\n@\nBUG v_mov_b32 v3, v2", "", _FULL, 0, 0),
    # another wave's store, still in its queue when that wave passed the barrier
    Pair("store_behind_answers", "ds_write_b32 v1, v0\nds_read_b32 v2, v1\ns_waitcnt lgkmcnt(@)\ns_barrier\nv_xor_b32 v3, 0x3fc, v1\nBUG ds_read_b32 v4, v3", "2", "1", 0, 0),
    Pair("store_over_store", "ds_write_b32 v1, v0\n@\ns_barrier\nv_xor_b32 v3, 0x3fc, v1\nBUG ds_write_b32 v3, v1", "", _FULL, 0, 0),
    Pair("atomic_before_barrier", "ds_write_b32 v1, v0\ns_waitcnt lgkmcnt(0)\nds_add_u32 v1, v0\n@\ns_barrier\nv_xor_b32 v3, 0x3fc, v1\nBUG ds_read_b32 v4, v3", "", _FULL, 0, 0),
]  # fmt: skip

# Nothing to wait for.
CLEAN = {
    "store_data_overwritten": "global_store_dword v1, v0, s[6:7]\nv_mov_b32 v0, 1\nbuffer_wbl2 sc1",
    "store_address_overwritten": "ds_write_b32 v1, v0\nv_mov_b32 v1, 0\nglobal_store_dword v1, v0, s[6:7]\nv_mov_b32 v1, v0",
    "load_address_overwritten": _LOAD + "v_mov_b32 v1, 0\ns_mov_b64 s[4:5], 0",
    "loaded_twice": _LOAD + _LOAD + "s_waitcnt vmcnt(0)\nv_mov_b32 v3, v2",
    "scalar_store_of_other": "s_load_dword s8, s[4:5], 0x0\ns_mov_b32 s9, 0\nv_mov_b32 v3, s9",
    "ends_while_loading": _LOAD + "ds_read_b32 v3, v1\ns_load_dword s8, s[4:5], 0x0",
    "barrier_while_loading": _LOAD + "s_barrier\ns_waitcnt vmcnt(0)\nv_mov_b32 v3, v2",
    "own_lds_in_order": "ds_write_b32 v1, v0\nds_read_b32 v2, v1\nds_write_b32 v1, v0\ns_waitcnt lgkmcnt(1)\nv_mov_b32 v3, v2",
    "seventy_loads": _LOAD + "global_load_dword v3, v1, s[4:5]\n" * 69 + "s_waitcnt vmcnt(63)\nv_mov_b32 v4, v2",
}  # fmt: skip
