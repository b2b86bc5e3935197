# SPDX-License-Identifier: Apache-2.0
"""Seeded bugs: waves of a workgroup that do not all take the same s_barrier with all their lanes, and kernels that never end.

Kernels take (in, out, n) with 256 work-items, four waves, in each of two workgroups; n is 4, in[k] is k + 3, out starts as 0. A
barrier that not all reach is blamed on the lowest wave that waits there; one reached with lanes switched off on the lowest lane.
"""

from __future__ import annotations

from tests.seeded import Bug
from tests.seeded_assembly import Edit, Mutant, Pair

HEAD = "(__global int* in, __global int* out, int n) {\n int i = ITEM + 256 * WG, w = __builtin_amdgcn_readfirstlane(ITEM >> 6), lane = ITEM & 63;\n volatile __local int t[256];\n"
_ADD = "__scoped_atomic_fetch_add(%s, 1, __ATOMIC_RELAXED, __MEMORY_SCOPE_DEVICE)"
_END = " out[i] = t[255 - ITEM];\n"
DIVERGENCE, LIMIT = "barrier divergence", "step limit"


def _bug(name: str, body: str, faulty: str, clean: str, *, lane: int = -1, wave: int = 0, workgroup: int = 0) -> Bug:
    faulty, clean = (HEAD + body.replace("@", text) + "}" for text in (faulty, clean))
    return Bug(name, DIVERGENCE, faulty, clean, lane, wave, workgroup, block=256)


_FILL = " t[ITEM] = in[i];\n"
BARRIERS = [
    # whole waves are missing
    _bug("wave_3_leaves", _FILL + " if (@) return;\n BARRIER; // BUG\n" + _END, "w == 3", "n == 3"),
    _bug("wave_0_leaves", _FILL + " if (@) return;\n BARRIER; // BUG\n" + _END, "w == 0", "n == 3", wave=1),
    _bug("only_wave_2_takes_it", _FILL + " if (@)\n  { BARRIER; } // BUG\n out[i] = t[ITEM];\n", "w == 2", "n == 4", wave=2),
    _bug("tail_of_the_data", _FILL + " if (i >= @) return;\n BARRIER; // BUG\n out[i] = t[ITEM ^ 1];\n", "448", "512", workgroup=1),
    _bug("element_decides", _FILL + " if (in[64 * w] @) return;\n BARRIER; // BUG\n" + _END, "== 131", "== 1"),
    _bug("other_barrier", _FILL + " if (@)\n  { BARRIER; out[i] = 1; } // BUG\n else\n  { BARRIER; out[i] = t[ITEM] * 3; }\n", "w < 2", "n > 2"),
    _bug("three_branches", _FILL + " if (w == 0 && @)\n  { BARRIER; out[i] = 1; } // BUG\n else if (w == 1 && @) { BARRIER; out[i] = t[ITEM] * 3; }\n else if (n < 9) { BARRIER; out[i] = 4 * t[ITEM]; }\n",
         "1", "n == 0"),
    _bug("turns_by_wave", " int s = 0;\n for (int k = 0; k < @; k++) {\n  t[ITEM] = k;\n  BARRIER; // BUG\n  s += t[ITEM];\n }\n out[i] = s;\n", "w + 1", "n + 1", wave=1),
    _bug("one_turn_less_in_wave_3", " int s = 0;\n for (int k = 0; k < @; k++) {\n  t[ITEM] = k;\n  BARRIER; // BUG\n  s += t[ITEM];\n }\n out[i] = s;\n", "n - (w == 3)", "n"),
    _bug("skips_the_last_turn", " int s = 0;\n for (int k = 0; k < n; k++) {\n  t[ITEM] = k;\n  if (@)\n   { BARRIER; } // BUG\n  s += t[ITEM];\n }\n out[i] = s;\n", "k < n - 1 || w != 1", "k < n - 1 || n != 1"),
    _bug("leaves_the_loop", " int s = 0;\n for (int k = 0; k < n; k++) {\n  t[ITEM] = k;\n  if (@) break;\n  BARRIER; // BUG\n  s += t[ITEM];\n }\n out[i] = s;\n", "k == 2 && w == 1", "k == 2 && n == 1"),
    _bug("one_barrier_more", _FILL + " if (@) { BARRIER; }\n out[i] = t[ITEM];\n BARRIER; // BUG\n out[i] += 1;\n", "w == 1", "n == 4", wave=0),
    _bug("only_in_workgroup_1", _FILL + " if (WG == 1 && @) return;\n BARRIER; // BUG\n" + _END, "w == 2", "n == 2", workgroup=1),
    # lanes are missing
    _bug("half_a_wave", _FILL + " if (ITEM < @)\n  { BARRIER; } // BUG\n out[i] = t[ITEM];\n", "32", "256", lane=32),
    _bug("odd_lanes", _FILL + " if (@)\n  { BARRIER; } // BUG\n out[i] = t[ITEM];\n", "ITEM & 1", "n & 4", lane=0),
    _bug("lanes_leave", _FILL + " if (@) return;\n BARRIER; // BUG\n" + _END, "w == 2 && lane > 40", "w == 4 && lane > 40", lane=41, wave=2),
    _bug("tail_of_lanes", _FILL + " if (i < @) {\n  BARRIER; // BUG\n  out[i] = t[ITEM ^ 1];\n }\n", "500", "512", lane=52, wave=3, workgroup=1),
    _bug("turns_by_lane", " int s = 0;\n for (int k = 0; k <= @; k++) {\n  t[ITEM] = k;\n  BARRIER; // BUG\n  s += t[ITEM];\n }\n out[i] = s;\n", "(lane & 3)", "(n & 3)", lane=0),
    _bug("loaded_condition", _FILL + " if (in[i] @)\n  { BARRIER; } // BUG\n out[i] = t[ITEM];\n", "!= 137", "> 2", lane=6, wave=2),
    _bug("inner_branch", _FILL + " if (w < 5) {\n  if (lane != @)\n   { BARRIER; } // BUG\n  out[i] = t[ITEM];\n }\n", "63", "64", lane=63),
    _bug("short_circuit", _FILL + " if (lane > 3 @)\n  { BARRIER; } // BUG\n out[i] = t[ITEM];\n", "&& n == 4", "|| n == 4", lane=0),
]  # fmt: skip

BARRIER_PAIRS = [
    Pair("ends_in_a_branch", "v_readfirstlane_b32 s8, v0\ns_cmp_eq_u32 s8, @\ns_cbranch_scc1 L1\nBUG s_barrier\nL1: s_nop 0", "128", "100", -1, 0),
    Pair("two_barriers", "v_readfirstlane_b32 s8, v0\ns_cmp_lt_u32 s8, @\ns_cbranch_scc1 L1\ns_barrier\ns_branch L2\nL1:\nBUG s_barrier\nL2: s_nop 0", "128", "256", -1, 0),
    Pair("exec_not_restored", "v_cmp_gt_u32 vcc, 100, v0\ns_and_saveexec_b64 s[8:9], vcc\nv_mov_b32 v2, 0\n@\nBUG s_barrier", "", "s_mov_b64 exec, s[8:9]", 36, 1),
    Pair("exec_empty", "v_cmp_gt_u32 vcc, 64, v0\ns_and_saveexec_b64 s[8:9], vcc\n@\nBUG s_barrier", "", "s_mov_b64 exec, s[8:9]", 0, 1),
    Pair("exec_by_lane", "v_cmpx_ne_u32 vcc, @, v0\nBUG s_barrier", "200", "0x300", 8, 3),
]  # fmt: skip

BASES = {
    "shared": HEAD
    + _FILL
    + " if (ITEM < 100) t[ITEM] = 1;\n BARRIER;\n if (w == 1) out[i] = t[255 - ITEM];\n BARRIER;\n if (lane < n) out[i] += t[0];\n}",
    "turns": HEAD
    + " int s = 0;\n for (int k = 0; k < n; k++) {\n  if (lane > k) t[ITEM] = k;\n  BARRIER;\n  s += k;\n }\n out[i] = s;\n}",
}
BARRIER_MUTANTS = [
    Mutant("shared_not_restored", "shared", (Edit("s_or_b64 exec", ""),), ("s_barrier", 0), 36, 1, 0),
    Mutant("turns_not_restored", "turns", (Edit("s_or_b64 exec", ""),), ("s_barrier", 0), 0, 0, 0),
]

# Nothing to report; "partly_filled" is launched with 100 work-items, the others with 256.
CLEAN = {
    "partly_filled": "s_barrier\nv_mov_b32 v2, 0\ns_barrier",
    "partly_filled_all_lanes_on": "s_mov_b64 exec, -1\nv_mov_b32 v2, 0\ns_barrier",
    "all_end_early": "s_cmp_lt_u32 s2, 9\ns_cbranch_scc1 L1\ns_barrier\nL1: s_nop 0",
    "one_wave_works": "s_barrier\nv_readfirstlane_b32 s8, v0\ns_cmp_lg_u32 s8, 64\ns_cbranch_scc1 L1\nglobal_store_dword v1, v0, s[6:7]\nL1: s_barrier",
    "masked_between": "v_cmp_gt_u32 vcc, 3, v0\ns_and_saveexec_b64 s[8:9], vcc\nv_mov_b32 v2, 0\ns_mov_b64 exec, s[8:9]\ns_barrier",
    "each_wave_its_work": "v_readfirstlane_b32 s8, v0\nL1: s_cmp_ge_u32 s8, 0x100\ns_cbranch_scc1 L2\ns_add_u32 s8, s8, 1\ns_branch L1\nL2: s_barrier",
}  # fmt: skip


def _limit(name: str, body: str, faulty: str, clean: str, *, wave: int = 0, workgroup: int = 0, lane: int = -1) -> Bug:
    faulty, clean = (HEAD + body.replace("@", text) + "}" for text in (faulty, clean))
    return Bug(name, LIMIT, faulty, clean, lane, wave, workgroup, block=256)


# The whole loop stands on the marked line.
_V = " volatile __global int* flag = out;\n"
ENDLESS = [
    _limit("flag_in_memory", _V + " @\n while (flag[0] == 0) { } // BUG\n", "", "flag[0] = 1;"),
    _limit("flag_of_workgroup_1", _V + " if (WG == 1 || @) flag[600] = 5;\n while (flag[600] != 5) { } // BUG\n", "0", "1"),
    _limit("flag_in_lds", " if (ITEM == 0) t[0] = @;\n BARRIER;\n while (t[0] != 1) { } // BUG\n out[i] = 1;\n", "0", "1"),
    _limit("flag_behind_a_barrier", _V + " if (w == 0) { if (@) { BARRIER; } flag[600 + WG] = 1; }\n while (flag[600 + WG] != 1) { } // BUG\n out[i] = 1;\n", "n == 4", "n == 0", wave=1),
    _limit("one_wave_too_many", _V + " if (lane == 0) " + _ADD % "&out[600 + WG]" + ";\n while (flag[600 + WG] != @) { } // BUG\n out[i + 1] = 1;\n", "5", "4"),
    _limit("steps_over_the_end", _V + " for (int k = 0; k != n + @; k += 2) flag[i] = k; // BUG\n", "1", "0"),
    _limit("unsigned_below_zero", _V + " for (unsigned k = n; k >= @; k--) flag[i] = k; // BUG\n", "(n == 4 ? 0u : 1u)", "1"),
    _limit("float_never_equal", _V + " for (float f = n - 4; f != 1.0f; f += @) flag[i] = 1; // BUG\n", "0.1f", "0.125f"),
    _limit("no_progress", _V + " for (int k = 0; k < n; k += flag[k]) @; // BUG\n", "flag[600] = 1", "flag[k] = 1"),
    _limit("halves_forever", _V + " int low = 0, high = n;\n while (low < high) { int m = (low + high) / 2; if (in[m] < 6) low = m + @; else high = m; flag[i] = m; } // BUG\n", "0", "1"),
    _limit("differences", _V + " int x = n, y = n * 3 - @;\n while (x != y) { if (x > y) x -= y; else y -= x; flag[i] = x; } // BUG\n", "12", "4"),
    _limit("list_with_a_cycle", _V + " int p = 1;\n while (p < 500) { p = in[p] @; flag[i] = p; } // BUG\n", "& 7 | 1", ""),
    # a lane that never leaves
    _limit("one_lane_stays", _V + " for (int x = lane; x > 0; x -= (lane == @ ? 0 : 1)) flag[i] = x; // BUG\n", "17", "64"),
    _limit("lane_goes_past_zero", _V + " for (unsigned x = ITEM + 256; x != 0 && flag[600] == 0; x -= @) flag[i] = x; // BUG\n", "(w == 3 && lane == 63 ? 0 : 2 - (x & 1))", "2 - (x & 1)", wave=3),
    _limit("lock_within_a_wave", _V + " int got = @;\n while (!got) { int e = 0; if (__scoped_atomic_compare_exchange_n(&out[600], &e, 1, 0, 0, 0, __MEMORY_SCOPE_DEVICE)) got = 1; } // BUG\n"
           " flag[600] = 0;\n", "0", "lane != 0"),
    _limit("only_wave_2_of_workgroup_1", _V + " while (WG == 1 && w == @ && flag[0] == 0) { } // BUG\n out[i + 1] = 1;\n", "2", "4", wave=2, workgroup=1),
    _limit("barrier_in_it", _V + " for (int k = 0; k < n; k += flag[@ ? 601 : k]) { flag[k] = 1; BARRIER; } // BUG\n", "1", "0"),
]  # fmt: skip

# Assembly: the whole loop is the instruction at `bug`.
ENDLESS_PAIRS = [
    Pair("to_itself", "BUG @", "s_branch bug_to_itself", "s_nop 0", -1, 0, 0),
    Pair("scc_stays", "s_cmp_eq_u32 s2, s2\nBUG @", "s_cbranch_scc1 bug_scc_stays", "s_nop 0", -1, 0, 0),
    Pair("vcc_stays", "s_mov_b64 vcc, 5\nBUG @", "s_cbranch_vccnz bug_vcc_stays", "s_nop 0", -1, 0, 0),
    Pair("exec_stays", "BUG @", "s_cbranch_execnz bug_exec_stays", "s_nop 0", -1, 0, 0),
    Pair("exec_stays_empty", "s_mov_b64 exec, 0\nBUG @", "s_cbranch_execz bug_exec_stays_empty", "s_nop 0", -1, 0, 0),
    Pair("only_wave_3", "v_readfirstlane_b32 s8, v0\ns_cmp_eq_u32 s8, 0xc0\nBUG @", "s_cbranch_scc1 bug_only_wave_3", "s_nop 0", -1, 3, 0),
    Pair("only_workgroup_1", "s_cmp_eq_u32 s2, 1\nBUG @", "s_cbranch_scc1 bug_only_workgroup_1", "s_nop 0", -1, 0, 1),
]  # fmt: skip
