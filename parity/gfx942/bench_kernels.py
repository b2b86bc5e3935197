# SPDX-License-Identifier: Apache-2.0
"""Assembly of the benchmark's kernels. Each takes one pointer and ends after a loop of TURNS turns."""

from __future__ import annotations

TURNS = 200
_START = ["s_load_dwordx2 s[4:5], s[0:1], 0x0", "s_waitcnt lgkmcnt(0)", *(f"v_mov_b32 v{n}, {n}" for n in range(1, 72)),
          f"s_movk_i32 s6, {TURNS}", "s_mov_b32 s7, 1", "s_mov_b64 s[8:9], 0", "s_mov_b64 s[10:11], 0", "turn:"]  # fmt: skip
_TURN = ["s_sub_u32 s6, s6, 1", "s_cmp_lg_u32 s6, 0", "s_cbranch_scc1 turn"]

# What a Triton or FlyDSL kernel's address and epilogue code looks like: integer, float, packed, compare, select, lanes, scalar.
_MIX = """v_add_u32 v10, v10, v0
v_lshl_add_u32 v11, v10, 2, v1
v_fma_f32 v12, v13, v14, v12
v_mul_f32 v15, v12, v13
v_max_f32 v16, v15, v12
v_pk_fma_f32 v[20:21], v[22:23], v[24:25], v[20:21]
v_and_b32 v17, 63, v11
v_cmp_gt_i32 vcc, v17, v10
v_cndmask_b32 v18, v17, v11, vcc
v_lshlrev_b64 v[26:27], 3, v[28:29]
v_mov_b32_dpp v30, v18 row_shr:1 row_mask:0xf bank_mask:0xf
v_add_co_u32 v31, vcc, v18, v17
v_perm_b32 v32, v31, v18, v17
v_bfe_u32 v33, v32, 4, 8
s_add_u32 s8, s8, s7
s_lshl_b32 s10, s8, 2
s_and_b32 s11, s10, 0xff
v_cvt_f32_ubyte1 v34, v32
v_xor_b32 v35, v33, v17
v_add3_u32 v36, v35, v33, v11"""
ALU = "\n".join([*_START, _MIX, *_TURN])
MATRIX = {
    "16x16x32": "\n".join([*_START, *(f"v_mfma_f32_16x16x32_fp8_fp8 v[{n}:{n + 3}], v[2:3], v[4:5], v[{n}:{n + 3}]" for n in (8, 12, 16, 20)), *_TURN]),
    "32x32x16": "\n".join([*_START, *(f"v_mfma_f32_32x32x16_fp8_fp8 v[{n}:{n + 15}], v[2:3], v[4:5], v[{n}:{n + 15}]" for n in (8, 24, 40)), *_TURN]),
}  # fmt: skip
TOUCH = "s_load_dwordx2 s[4:5], s[0:1], 0x0\nv_and_b32 v1, 0xff, v0\nv_lshlrev_b32 v1, 2, v1\ns_waitcnt lgkmcnt(0)\nglobal_store_dword v1, v0, s[4:5]"


def assembly_of(body: str) -> str:
    """A whole assembly file with one kernel, `bench`."""
    return f""".amdgcn_target "amdgcn-amd-amdhsa--gfx942"
.amdhsa_code_object_version 5
.text
.globl bench
.p2align 8
.type bench,@function
bench:
{body}
s_endpgm
.section .rodata,"a",@progbits
.p2align 6
.amdhsa_kernel bench
.amdhsa_next_free_vgpr 72
.amdhsa_next_free_sgpr 32
.amdhsa_accum_offset 72
.amdhsa_kernarg_size 8
.amdhsa_user_sgpr_kernarg_segment_ptr 1
.amdhsa_float_denorm_mode_32 3
.end_amdhsa_kernel
.amdgpu_metadata
---
amdhsa.version: [1, 2]
amdhsa.kernels:
  - .name: bench
    .symbol: bench.kd
    .wavefront_size: 64
    .kernarg_segment_size: 8
    .kernarg_segment_align: 8
    .group_segment_fixed_size: 0
    .private_segment_fixed_size: 0
    .max_flat_workgroup_size: 256
    .sgpr_count: 32
    .vgpr_count: 72
    .args:
      - .offset: 0
        .size: 8
        .value_kind: global_buffer
        .address_space: global
...
.end_amdgpu_metadata
"""
