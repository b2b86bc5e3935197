# SPDX-License-Identifier: Apache-2.0
"""Clean kernels that touch undefined bits: masked, shifted out, not chosen, overwritten, in lanes that are off. None may be reported."""

from __future__ import annotations

from tests.seeded_undefined import HEAD

# Where a dword `x` lies of which only one part was ever written; @ is the statement that writes it through the pointer b.
_HOMES = {
    "global": " __global {0}* b = (__global {0}*)(work + i);\n b[{1}] = in[i];\n BARRIER;\n int x = *(volatile __global int*)b;\n",
    "lds": " __local int t[128];\n volatile __local {0}* b = (volatile __local {0}*)(t + ITEM);\n b[{1}] = in[i];\n BARRIER;\n int x = *(volatile __local int*)b;\n",
    "scratch": " volatile union {{ {0} b[4 / sizeof({0})]; int w; }} u;\n u.b[{1}] = in[i];\n int x = u.w;\n",
}  # fmt: skip
_LOW_BYTE = {
    "masked": "out[i] = x & 0xff;", "sign_extended": "out[i] = (char)x;", "shifted_out": "out[i] = x << 24;", "masked_after_a_sum": "out[i] = (x + 7) & 0xff;",
    "masked_after_a_product": "out[i] = (x * 5) & 0x3f;", "stored_narrow": "((__global char*)out)[i] = x;", "one_bit_decides": "out[i] = x & 1 ? i : n;", "field": "out[i] = (x >> 3) & 31;",
    "to_float": "((__global float*)out)[i] = (float)(x & 0xff) * 2.0f;", "from_fp8": "((__global float*)out)[i] = __builtin_amdgcn_cvt_f32_fp8(x, 0);", "permuted": "out[i] = __builtin_amdgcn_perm(x, n, 0x0c0c0c04);",
    "ones_over_it": "out[i] = x | ~0xff;", "branch": "if ((x & 0xff) > 9) out[i] = 1;", "equal": "out[i] = (x & 0xff) == 9 ? 3 : 4;", "address": "out[i] = in[x & 0x7f];", "other_lane": "out[i] = __builtin_amdgcn_ds_bpermute(4 * (ITEM ^ 1), x) & 0xff;",
    "dpp": "out[i] = __builtin_amdgcn_update_dpp(0, x, 0xb1, 15, 15, 1) & 0xff;", "not_chosen": "out[i] = in[i] < 0 ? x : i;", "not_stored": "if (in[i] > 1000) out[i] = x;", "byte_back_to_lds": "__local char l[128]; l[ITEM] = x; BARRIER; out[i] = l[ITEM ^ 1];",
    "low_byte_of_64_bits": "((__global long*)out)[i & 127] = ((unsigned long)(unsigned)x << 56) >> 3;", "lane_of_the_wave": "out[i] = in[__builtin_amdgcn_readlane(x, 5) & 0x7f];", "exclusive_or": "out[i] = (x ^ i ^ 0x5a5a) & 0xff;", "selected_then_masked": "out[i] = (i & 1 ? x : n) & 15;",
}  # fmt: skip
_UPPER_HALF = {
    "shifted": "out[i] = (unsigned)x >> 16;", "sign": "out[i] = x >> 31;", "stored_half": "((__global short*)out)[i] = x >> 16;", "masked": "out[i] = (x & 0xffff0000) + n;", "top_bits": "out[i] = ((unsigned)x >> 20) & 255;",
    "copied_sign": "((__global float*)out)[i] = __builtin_copysignf(1.5f, __builtin_bit_cast(float, x));", "top_byte_to_float": "((__global float*)out)[i] = (float)((unsigned)x >> 24);", "permuted": "out[i] = __builtin_amdgcn_perm(x, n, 0x0c0c0706);",
    "address": "out[i] = in[(unsigned)x >> 25];", "ones_below": "out[i] = x | 0xffff;", "equal": "out[i] = (unsigned)x >> 16 == 9 ? 3 : 4;", "rotated_and_masked": "out[i] = ((x << 16) | ((unsigned)x >> 16)) & 0xffff;", "aligned": "out[i] = (unsigned)__builtin_amdgcn_alignbyte(0, x, 2);",
    "half_of_a_vector": "short __attribute__((ext_vector_type(2))) v = __builtin_bit_cast(short __attribute__((ext_vector_type(2))), x); v += (short)3; ((__global short*)out)[i] = v.y;",
}  # fmt: skip
# Written by hand: v20 is written in lanes below 40 of each wave (or as said), v21 has a defined lower half only.
_LANES = "v_and_b32 v5, 63, v0\nv_mov_b32 v3, 0\ns_mov_b64 s[20:21], exec\nv_cmp_gt_u32 vcc, 40, v5\ns_and_b64 exec, exec, vcc\nv_mov_b32 v20, 1\ns_mov_b64 s[22:23], exec\ns_mov_b64 exec, s[20:21]\n"
_HALF = "v_mov_b32_sdwa v21, v0 dst_sel:WORD_0 dst_unused:UNUSED_PRESERVE src0_sel:DWORD\n"
_OUT = "global_store_dword v1, v3, s[6:7]\n"
CODE = {
    "lanes_off_again": _LANES + "s_mov_b64 exec, s[22:23]\nglobal_store_dword v1, v20, s[6:7]", "lanes_not_chosen": _LANES + "v_cndmask_b32 v3, 0, v20, s[22:23]\n" + _OUT,
    "lane_that_was_written": _LANES + "v_readlane_b32 s24, v20, 39\nv_mov_b32 v3, s24\n" + _OUT, "first_lane": _LANES + "v_readfirstlane_b32 s24, v20\nv_mov_b32 v3, s24\n" + _OUT,
    "compared_in_written_lanes": _LANES + "s_mov_b64 exec, s[22:23]\nv_cmp_lt_u32 vcc, 0, v20\ns_cbranch_vccz L1\nL1: s_mov_b64 exec, s[20:21]\nv_mov_b32 v3, vcc_hi\n" + _OUT,
    "address_in_written_lanes": _LANES + "s_mov_b64 exec, s[22:23]\nglobal_load_dword v3, v20, s[4:5]\ns_waitcnt vmcnt(0)\ns_mov_b64 exec, s[20:21]\n" + _OUT,
    "masked_lane_by_lane": _LANES + "v_cndmask_b32 v6, 0, -1, s[22:23]\nv_and_b32 v3, v20, v6\n" + _OUT, "ones_lane_by_lane": _LANES + "v_cndmask_b32 v6, -1, 0, s[22:23]\nv_or_b32 v3, v20, v6\n" + _OUT,
    "overwritten": _LANES + "v_mov_b32 v20, 2\nglobal_store_dword v1, v20, s[6:7]", "from_written_lanes": _LANES + "v_mov_b32 v6, 12\nds_bpermute_b32 v3, v6, v20\ns_waitcnt lgkmcnt(0)\n" + _OUT,
    "votes_of_written_lanes": _LANES + "v_cmp_lt_u32 vcc, 0, v20\ns_and_b64 vcc, vcc, s[22:23]\ns_cbranch_vccz L1\nL1: v_mov_b32 v3, vcc_hi\n" + _OUT,
    # a defined bit decides, whatever the others are
    "vote_that_is_certain": _LANES + "v_cmp_lt_u32 vcc, 0, v20\ns_cbranch_vccnz L1\nL1: s_nop 0", "saved_to_scratch": _LANES + "scratch_store_dword off, v20, off\nv_mov_b32 v20, 0\ns_waitcnt vmcnt(0)\nscratch_load_dword v20, off, off\ns_waitcnt vmcnt(0)\ns_mov_b64 exec, s[22:23]\nglobal_store_dword v1, v20, s[6:7]",
    "lds_never_read": "ds_write_b32 v1, v30\ns_waitcnt lgkmcnt(0)", "exchanged_and_overwritten": _LANES + "v_swap_b32 v3, v20\nglobal_store_dword v1, v20, s[6:7]",
    "half_stored": _HALF + "global_store_short v1, v21, s[6:7]", "half_shifted": _HALF + "v_lshlrev_b32 v3, 16, v21\n" + _OUT, "half_chosen_by_sdwa": _HALF + "v_add_u32_sdwa v3, v0, v21 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:DWORD src1_sel:WORD_0\n" + _OUT,
    "half_as_byte": _HALF + "v_cvt_f32_ubyte1 v3, v21\n" + _OUT, "half_inserted": _HALF + "v_mov_b32 v6, 0xffff\nv_bfi_b32 v3, v6, v21, v0\n" + _OUT, "half_extracted": _HALF + "v_bfe_i32 v3, v21, 4, 12\n" + _OUT, "half_as_16_bits": _HALF + "v_add_u16 v3, v21, v0\n" + _OUT,
    "half_and_a_defined_one": _HALF + "v_perm_b32 v3, v0, v21, v0\nv_mov_b32 v6, 0x05040100\nv_perm_b32 v3, v0, v21, v6\n" + _OUT, "half_through_lds": _HALF + "ds_write_b16 v1, v21\ns_waitcnt lgkmcnt(0)\nds_read_u16 v3, v1\ns_waitcnt lgkmcnt(0)\n" + _OUT,
    "both_halves_written_in_turn": _HALF + "v_mov_b32_sdwa v21, v0 dst_sel:WORD_1 dst_unused:UNUSED_PRESERVE src0_sel:DWORD\nglobal_store_dword v1, v21, s[6:7]",
    "dpp_reads_lanes_that_are_off": _LANES + "s_mov_b64 exec, s[22:23]\nv_mov_b32_dpp v3, v20 row_shr:1 row_mask:0xf bank_mask:0xf bound_ctrl:0\ns_mov_b64 exec, s[20:21]\n" + _OUT,
    "first_lane_that_is_on": "v_mov_b32 v3, 0\ns_mov_b64 s[20:21], exec\ns_mov_b64 exec, -2\nv_mov_b32 v20, 1\nv_readfirstlane_b32 s24, v20\ns_mov_b64 exec, s[20:21]\nv_mov_b32 v3, s24\n" + _OUT,
    "dpp_of_an_edge_lane": "v_mov_b32 v3, 0\ns_mov_b64 s[20:21], exec\ns_mov_b64 exec, 1\nv_mov_b32_dpp v3, v30 row_shr:1 row_mask:0xf bank_mask:0xf bound_ctrl:0\ns_mov_b64 exec, s[20:21]\n" + _OUT,
    "sum_below_undefined_bits": _HALF + "v_add_u32 v3, v21, v21\nv_mul_lo_u32 v3, v3, v21\nglobal_store_short v1, v3, s[6:7]",
    # row 3 of A was never written: rows 0 to 2 of the product are whole
    "other_rows_of_a_matrix": "v_and_b32 v5, 15, v0\nv_cmp_ne_u32 vcc, 3, v5\ns_and_saveexec_b64 s[20:21], vcc\nv_mov_b32 v20, 0\nv_mov_b32 v21, 0\ns_mov_b64 exec, s[20:21]\nv_mov_b32 v22, 0\nv_mov_b32 v23, 0\ns_nop 4\n"
                              "v_mfma_f32_16x16x32_fp8_fp8 v[24:27], v[20:21], v[22:23], 0\ns_nop 7\nv_lshlrev_b32 v1, 2, v1\nv_and_b32 v1, 0x3ff, v1\nv_and_b32 v1, -16, v1\nglobal_store_dwordx3 v1, v[24:26], s[6:7]",
}  # fmt: skip


def _cases(part: str, written: tuple[str, int], uses: dict[str, str]) -> dict[str, str]:
    """Each use with one of the three homes in turn."""
    homes = list(_HOMES)
    return {
        f"{part}_{homes[k % 3]}_{name}": HEAD + _HOMES[homes[k % 3]].format(*written) + f" {use}\n}}"
        for k, (name, use) in enumerate(uses.items())
    }


HARMLESS = (
    _cases("low_byte", ("char", 0), _LOW_BYTE)
    | _cases("upper_half", ("short", 1), _UPPER_HALF)
    | {f"code_{name}": text for name, text in CODE.items()}
)

# Clean, too, but reported at the moment: clang decides on defined bits by instructions whose whole result counts as undefined if
# any bit of an operand is (v_cmp, s_cmp, v_or3_b32, v_lshl_or_b32, packed 16-bit shifts).
_COMPARED = {
    "sign_decides": "if (x < 0) out[i] = 1;", "top_byte_decides": "if ((unsigned)x >> 24 > 5) out[i] = 1;", "top_byte_chooses": "out[i] = (unsigned)x >> 24 > 5 ? 3 : 7;", "top_half_in_range": "out[i] = (unsigned)x >> 16 < 100 ? 3 : 7;",
    "sign_of_a_float": "out[i] = __builtin_signbit(__builtin_bit_cast(float, x)) ? 3 : 7;", "three_ored": "out[i] = x | 0xffff | (i << 28);", "sign_of_the_wave": "if (__builtin_amdgcn_readlane(x, 5) < 0) out[i] = 1;",
}  # fmt: skip
_SHIFTED_HALVES = (" typedef unsigned short H2 __attribute__((ext_vector_type(2)));\n __global char* b = (__global char*)(work + i);\n b[1] = in[i]; b[3] = n;\n BARRIER;\n"
                   " H2 v = *(volatile __global H2*)b;\n v = v >> (unsigned short)8;\n *(__global H2*)&out[i] = v;\n}")  # fmt: skip
# Compared, shifted and joined: the defined bits decide.
HARMLESS |= _cases("upper_half", ("short", 1), _COMPARED) | {
    "code_half_shifted_below_ones": _HALF
    + "v_mov_b32 v6, 0xffff\nv_lshl_or_b32 v3, v21, 16, v6\nv_mov_b32 v6, -1\nv_lshl_or_b32 v3, v21, 3, v6\n"
    + _OUT,
    "bytes_of_halves_shifted_out": HEAD + _SHIFTED_HALVES,
}
