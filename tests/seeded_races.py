# SPDX-License-Identifier: Apache-2.0
"""Seeded bugs: two waves of a workgroup touch the same byte of LDS without a barrier between.

Kernels take (in, out, n) with 256 work-items, four waves, in each of two workgroups; n is 4. Waves run one after the other up to
their barrier, so the later access is that of the higher wave. Where no earlier wave reads bytes that nobody wrote yet, the race
is the first fault; kernels fill the tile first where that needs it.
"""

from __future__ import annotations

from tests.seeded import Bug
from tests.seeded_assembly import Edit, Mutant, Pair

HEAD = "(__global int* in, __global int* out, int n) {\n int i = ITEM + 256 * WG, w = ITEM >> 6, lane = ITEM & 63;\n"
# volatile: without a barrier clang may move an element's read before another element's write
_TILE = " volatile __local int t[256];\n"
_FILL = _TILE + " t[ITEM] = in[i];\n BARRIER;\n"  # every byte written, and a barrier
_ADD = "__scoped_atomic_fetch_add(%s, 1, __ATOMIC_RELAXED, __MEMORY_SCOPE_WRKGRP)"


def _both(name: str, body: str, faulty: str, clean: str, *, lane: int = 0, wave: int = 1, workgroup: int = 0) -> Bug:
    faulty, clean = (HEAD + body.replace("@", text) + "}" for text in (faulty, clean))
    return Bug(name, "LDS race", faulty, clean, lane, wave, workgroup, block=256)


def _barrier(name: str, body: str, **place: int) -> Bug:
    """`@` is nothing or a barrier."""
    return _both(name, body, "", "BARRIER;", **place)


BUGS = [
    # write, then read
    _barrier("left_neighbour", _TILE + " t[ITEM] = in[i];\n @\n out[i] = t[ITEM - (ITEM > 0)]; // BUG\n"),
    _barrier("first_wave_of_tile", _TILE + " t[ITEM] = in[i];\n @\n out[i] = t[lane]; // BUG\n"),
    _barrier("two_to_the_left", _TILE + " t[ITEM] = in[i];\n @\n out[i] = ITEM < 66 ? 0 : t[ITEM - 66]; // BUG\n", lane=2),
    _barrier("broadcast", _TILE + " if (ITEM == 0) t[0] = in[i];\n @\n out[i] = t[0]; // BUG\n"),
    _barrier("partial_sums", " __local int p[4];\n if (lane == 5) p[w] = in[i];\n @\n if (ITEM == 255)\n  out[i] = p[0] + p[1] + p[2] + p[3]; // BUG\n", lane=63, wave=3),
    _barrier("waves_2_and_3", _TILE + " t[ITEM] = in[i];\n @\n out[i] = t[w == 3 ? ITEM - 64 : ITEM ^ 1]; // BUG\n", wave=3),
    _barrier("one_lane_of_wave_3", _TILE + " t[ITEM] = in[i];\n @\n out[i] = t[ITEM == 209 ? 130 : ITEM ^ 1]; // BUG\n", lane=17, wave=3),
    _both("workgroup_1", _TILE + " t[ITEM] = in[i];\n if (@) { BARRIER; }\n out[i] = t[ITEM - (ITEM > 0)]; // BUG\n", "WG == 0", "WG < 2", workgroup=1),
    _barrier("wide_read", " __local V16 t[64];\n if (w == 0) ((__local int*)t)[4 * lane + 3] = in[i];\n else ((__local int*)t)[4 * lane + w - 1] = in[i];\n @\n"
             " if (w == 3) ((__global V16*)out)[lane] = t[lane]; // BUG\n", wave=3),
    _barrier("byte_of_a_dword", _TILE + " t[ITEM] = in[i];\n @\n out[i] = ((__local char*)t)[ITEM < 64 ? 4 * ITEM : 4 * ITEM - 253]; // BUG\n"),
    # read, then write
    _barrier("shift_in_place", _FILL + " int x = t[(ITEM + 64) & 255];\n @\n t[ITEM] = x; // BUG\n BARRIER;\n out[i] = t[255 - ITEM];\n"),
    _barrier("transposed_write", _FILL + " int x = t[(ITEM & 15) * 16 + (ITEM >> 4)]; // BUG\n @\n t[ITEM] = x;\n BARRIER;\n out[i] = t[255 - ITEM];\n"),
    _barrier("reversed_in_place", _FILL + " int x = ITEM < 128 ? t[255 - ITEM] : 3;\n @\n t[ITEM] = x; // BUG\n BARRIER;\n out[i] = t[ITEM];\n", wave=2),
    # write, then write
    _both("same_index", _TILE + " t[@] = in[i]; // BUG\n BARRIER;\n out[i] = t[lane];\n", "lane", "ITEM"),
    _both("byte_neighbours", " __local char t[256];\n t[4 * lane + @] = in[i]; // BUG\n BARRIER;\n out[i] = t[ITEM];\n", "(w & 1)", "w", wave=2),
    _both("half_over_byte", " __local int t[64];\n if (w == 0) ((__local char*)t)[4 * lane + 1] = 1;\n if (w == 1) ((__local short*)t)[2 * lane + @] = 0x203; // BUG\n"
          " BARRIER;\n if (w == 0) out[i] = ((__local char*)t)[4 * lane + 1];\n", "0", "1"),
    _both("wide_over_dword", " __local int t[512];\n if (w == 0) ((__local V16*)t)[lane] = (V16)(ITEM + 1);\n if (w == 1) t[4 * lane + 2 + @] = in[i]; // BUG\n"
          " BARRIER;\n out[i] = t[lane];\n", "0", "254"),
    _both("one_element_too_many", " __local int t[260];\n int c = @;\n for (int k = 0; k < c; k++) t[64 * w + lane + k] = 2 * in[i] + k; // BUG\n BARRIER;\n out[i] = t[ITEM];\n", "2", "1"),
    # loops
    _both("last_turn_only", _TILE + " int s = 0;\n for (int k = 0; k < n; k++) {\n  t[ITEM] = in[i] + k;\n  if (k < @) { BARRIER; }\n  s += t[ITEM - (ITEM > 0)]; // BUG\n"
          "  BARRIER;\n }\n out[i] = s;\n", "n - 1", "n"),
    _both("one_buffer_for_two", " __local int t[512];\n int s = 0;\n for (int k = 0; k < n; k++) {\n  int b = @;\n  t[b + ITEM] = in[i] + k;\n  BARRIER;\n"
          "  s += t[b + 255 - ITEM]; // BUG\n }\n out[i] = s;\n", "0", "(k & 1) * 256", wave=2),
    _barrier("tree_without_barrier", _FILL + " for (int s = 128; s > 0; s >>= 1) {\n  if (ITEM < s)\n   t[ITEM] += t[ITEM + s]; // BUG\n  @\n }\n if (ITEM == 0) out[i] = t[0];\n"),
    _both("tree_below_128", _FILL + " for (int s = 128; s > 0; s >>= 1) {\n  if (ITEM < s)\n   t[ITEM] += t[ITEM + s]; // BUG\n  if (s < @) { BARRIER; }\n }\n"
          " if (ITEM == 0) out[i] = t[0];\n", "128", "129"),
    _barrier("running_sum", _FILL + " for (int k = 1; k < 256; k *= 2) {\n  int x = ITEM < k ? 0 : t[ITEM - k]; // BUG\n  @\n  t[ITEM] += x;\n  BARRIER;\n }\n out[i] = t[ITEM];\n"),
    # atomics: not among themselves, but with everything else
    _barrier("bins_not_cleared_yet", " __local int t[64];\n if (w == 0) t[lane] = 0;\n @\n " + _ADD % "&t[lane]" + "; // BUG\n BARRIER;\n out[i] = t[lane];\n"),
    _barrier("counter_read_by_last_wave", " __local int t[1];\n if (ITEM == 0) t[0] = 0;\n BARRIER;\n if (lane == 0) " + _ADD % "t" + ";\n @\n if (ITEM == 192)\n"
             "  out[i] = t[0]; // BUG\n", wave=3),
    _barrier("counter_cleared_early", " __local int t[1];\n if (ITEM == 0) t[0] = 0;\n BARRIER;\n if (lane == 3) " + _ADD % "t" + ";\n @\n if (ITEM == 67)\n"
             "  t[0] = 0; // BUG\n BARRIER;\n out[i] = t[0];\n", lane=3),
    _barrier("cleared_by_all_set_by_one", " volatile __local int t[1];\n t[0] = 0;\n @\n if (w == 3)\n  t[0] = n; // BUG\n BARRIER;\n out[i] = t[0];\n", wave=3),
]  # fmt: skip

# Nothing to report: what looks like a race and is none.
HARMLESS = {
    "four_waves_four_bytes": " __local char t[256];\n t[4 * lane + w] = in[i];\n int x = t[4 * lane + w];\n out[i] = x;\n",
    "own_bytes_again": _TILE + " t[ITEM] = 1;\n t[ITEM] = t[ITEM ^ 3] + in[i];\n out[i] = t[ITEM ^ 5];\n",
    "buffers_of_their_own": _TILE + "\n for (int k = 0; k < n; k++) {\n  t[64 * w + lane] = k + in[i];\n  out[i] = t[64 * w + 63 - lane];\n }\n",
    "all_read_one": _FILL + " out[i] = t[0] + t[255] + t[lane];\n",
    "the_same_value": _TILE + " t[lane] = lane;\n BARRIER;\n out[i] = t[lane ^ 1];\n",  # Triton stores replicated values so
    # lanes of one store at one address, other values a lane: the last lane of each wave leaves the same
    "last_lane_of_each_wave": _TILE + " t[ITEM & 3] = lane < 60 ? lane * 7 : (lane & 3);\n BARRIER;\n out[i] = t[ITEM & 3];\n",
    "atomics_together": " __local int t[64];\n if (w == 0) t[lane] = 0;\n BARRIER;\n " + _ADD % "&t[lane]" + ";\n BARRIER;\n out[i] = t[lane];\n",
    "two_barriers_ago": _FILL + " BARRIER;\n int x = t[255 - ITEM];\n BARRIER;\n t[ITEM] = x;\n out[i] = t[ITEM];\n",
    "one_wave_for_all": _TILE + " if (w == 2) for (int k = 0; k < 4; k++) t[64 * k + lane] = k;\n BARRIER;\n out[i] = t[ITEM];\n",
}  # fmt: skip

# Compiled kernels, of whose assembly one instruction goes.
BASES = {
    "reversed": HEAD + _FILL + " out[i] = t[255 - ITEM];\n BARRIER;\n t[ITEM ^ 64] = in[i] + 1;\n BARRIER;\n out[i] += t[255 - ITEM];\n}",
    "summed": HEAD + _FILL + " for (int s = 128; s > 0; s >>= 1) {\n  if (ITEM < s) t[ITEM] += t[ITEM + s];\n  BARRIER;\n }\n out[i] = t[0];\n}",
    "buffered": HEAD + " __local int t[512];\n int s = 0;\n for (int k = 0; k < n; k++) {\n  t[(k & 1) * 256 + ITEM] = in[i] + k;\n  BARRIER;\n"
    "  s += t[(k & 1) * 256 + (ITEM & 127)];\n }\n out[i] = s;\n}",
}  # fmt: skip
_LOST = "s_barrier"
MUTANTS = [
    Mutant("reversed_without_second", "reversed", (Edit(_LOST, "", 1),), ("ds_read", 0), lane=0, wave=2, workgroup=0),
    Mutant("reversed_without_third", "reversed", (Edit(_LOST, "", 2),), ("ds_write", 1), lane=0, wave=2, workgroup=0),
    Mutant("summed_without_second", "summed", (Edit(_LOST, "", 1),), ("ds_write", 1), lane=0, wave=1, workgroup=0),
    Mutant("summed_without_last", "summed", (Edit(_LOST, "", -1),), ("ds_read", -1), lane=0, wave=1, workgroup=0),
    Mutant("buffered_without", "buffered", (Edit(_LOST, ""),), ("ds_read", 0), lane=0, wave=2, workgroup=0),
    Mutant(
        "buffered_in_one", "buffered", (Edit("0x400", "s_mov_b32 s2, 0"),), ("ds_read", 0), lane=0, wave=2, workgroup=0
    ),
]
# From 64 elements on, the tree lies in wave 0: its barriers may go.
HARMLESS_MUTANTS = [
    Mutant(f"summed_without_{nth}", "summed", (Edit(_LOST, "", nth),), ("ds_read_b32", 0)) for nth in (2, 4, 7)
]

# Each wave has 64 x 4 bytes at v1 = 4 x work-item, or 64 x 8 at v2.
_WIDE = "v_lshlrev_b32 v2, 3, v0\nv_mov_b32 v8, v0\nv_mov_b32 v9, v0\n"
_WAIT = "\ns_waitcnt lgkmcnt(0)\n@\n"
PAIRS = [
    Pair("read2_second", "ds_write_b32 v1, v0 offset:256" + _WAIT + "BUG ds_read2_b32 v[4:5], v1 offset0:64 offset1:0", "", "s_barrier", 0, 1),
    Pair("read2_first", "ds_write_b32 v1, v0 offset:256" + _WAIT + "BUG ds_read2_b32 v[4:5], v1 offset0:0 offset1:64", "", "s_barrier", 0, 1),
    Pair("read2_b64", _WIDE + "ds_write_b64 v2, v[8:9] offset:512" + _WAIT + "BUG ds_read2_b64 v[4:7], v2 offset0:64 offset1:63", "", "s_barrier", 0, 1),
    Pair("read2st64", _WIDE + "ds_write_b64 v2, v[8:9] offset:512" + _WAIT + "BUG ds_read2st64_b64 v[4:7], v2 offset0:1 offset1:0", "", "s_barrier", 0, 1),
    Pair("write2", "BUG ds_write2_b32 v1, v0, v0 offset0:0 offset1:@", "64", "0", 0, 1),
    Pair("write2_b64", _WIDE + "BUG ds_write2_b64 v2, v[8:9], v[8:9] offset0:0 offset1:@", "63", "0", 0, 1),
    Pair("write2st64", "BUG ds_write2st64_b32 v1, v0, v0 offset0:0 offset1:@", "2", "4", 0, 2),
    Pair("read_b96", "v_mul_u32_u24 v2, 12, v0\nds_write_b32 v2, v0 offset:8" + _WAIT + "v_add_u32 v2, -12, v2\nv_max_i32 v2, 0, v2\nBUG ds_read_b96 v[4:6], v2", "", "s_barrier", 0, 1),
    Pair("read_byte_d16", "ds_write_b32 v1, v0" + _WAIT + "v_max_u32 v2, 1, v1\nv_add_u32 v2, -1, v2\nv_mov_b32 v4, 0\nBUG ds_read_u8_d16_hi v4, v2", "", "s_barrier", 0, 1),
    Pair("write_byte_d16", "ds_write_b32 v1, v0" + _WAIT + "v_max_u32 v2, 1, v1\nv_add_u32 v2, -1, v2\nv_mov_b32 v4, -1\nBUG ds_write_b8_d16_hi v2, v4", "", "s_barrier", 0, 1),
    Pair("returning_atomic", "v_and_b32 v2, 0xff, v1\ns_mov_b64 s[8:9], exec\nv_cmpx_gt_u32 vcc, 64, v0\nds_write_b32 v2, v0\ns_mov_b64 exec, s[8:9]" + _WAIT
         + "BUG ds_add_rtn_u32 v4, v2, v0", "", "s_barrier", 0, 1),
    Pair("through_flat", "s_mov_b64 s[8:9], src_shared_base\nv_mov_b32 v5, s9\nv_mov_b32 v4, v1\nflat_store_dword v[4:5], v0\ns_waitcnt vmcnt(0) lgkmcnt(0)\n@\nv_and_b32 v4, 0xff, v1\n"
         "BUG flat_load_dword v6, v[4:5]", "", "s_barrier", 0, 1),
]  # fmt: skip
