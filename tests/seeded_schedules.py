# SPDX-License-Identifier: Apache-2.0
"""Seeded bugs: what a kernel leaves in memory depends on the order of its workgroups or waves.

Kernels take (in, out, n) with eight workgroups of 256 work-items, four waves; n is 4, in[k] is k + 3, out starts as 0. `where`: the
only elements of `out` that depend on the order, as a range.
"""

from __future__ import annotations

from dataclasses import dataclass

GRID = 8
HEAD = "(__global int* in, volatile __global int* out, int n) {\n int i = ITEM + 256 * WG, w = __builtin_amdgcn_readfirstlane(ITEM >> 6), lane = ITEM & 63;\n"
HEAD += " volatile __global float* real = (volatile __global float*)out;\n"
_ATOMIC = "__scoped_atomic_%s(%s, %s, __ATOMIC_RELAXED, __MEMORY_SCOPE_DEVICE)"
_ONCE = " if (ITEM == 0) {\n %s\n }\n"  # one work-item of each workgroup
_EACH = " if (lane == 0) {\n %s\n }\n"  # one of each wave


@dataclass(frozen=True)
class Order:
    """`@` in the body stands for `faulty` or `clean`."""

    name: str
    body: str
    faulty: str
    clean: str
    where: range

    def kernel(self, variant: str) -> str:
        return HEAD + self.body.replace("@", variant) + "}"


def _add(place: str, value: str) -> str:
    return _ATOMIC % ("fetch_add", place, value)


ORDERS = [
    # between workgroups
    Order("last_group_wins", _ONCE % "out[@] = WG + 1;", "0", "WG", range(0, 1)),
    Order("last_group_wins_in_a_byte", _ONCE % "((volatile __global char*)out)[@] = WG + 1;", "5", "WG", range(1, 2)),
    Order("tiles_overlap", " out[@ * WG + ITEM] = i;\n", "200", "256", range(200, 1656)),
    Order("one_element_too_many", " out[i] = i;\n if (ITEM == 255 && @) out[i + 1] = -i;\n", "1", "0", range(256, 2048)),
    Order("wide_stores_overlap", " ((volatile __global V16*)out)[@ * WG + ITEM / 4] = (V16)(i / 4);\n", "60", "64", range(240, 2048)),
    Order("first_come", _ONCE % "if (out[@] == 0) out[@] = WG + 1;", "0", "WG", range(0, 1)),
    Order("best_index", _ONCE % "int x = in[WG & 1]; if (x >= out[@]) { out[@] = x; out[8 + @] = WG; }", "0", "WG * 256", range(8, 9)),
    Order("float_sum", _ONCE % "real[@] += 1.0f / (3 + WG);", "0", "WG", range(0, 1)),
    Order("float_atomic_sum", _ONCE % (_add("(__global float*)&out[@]", "1.0f / (3 + WG)") + ";"), "0", "WG", range(0, 1)),
    Order("product_and_sum", _ONCE % "out[@] = out[@] * 3 + WG;", "0", "WG", range(0, 1)),
    Order("flag_of_another_group", _ONCE % "out[WG] = 1; out[16 + WG] = out[@];", "WG ^ 1", "WG", range(16, 24)),
    Order("slot_by_counter", _ONCE % ("int s = " + _add("&out[64]", "1") + "; out[@] = WG;"), "s", "WG", range(0, 8)),
    Order("old_value_kept", _ONCE % ("out[WG] = " + _add("&out[@]", "WG + 1") + ";"), "64", "64 + WG", range(0, 8)),
    Order("chain_of_groups", _ONCE % "out[WG + 1] = out[WG] + in[WG] * @;", "1", "0", range(2, 9)),
    Order("last_group_sums_up", _ONCE % "out[WG] = in[WG]; int s = 0; for (int k = 0; k < WG; k++) s += @[k]; if (WG == 7) out[64] = s;", "out", "in", range(64, 65)),
    Order("in_place_neighbour", _ONCE % "in[WG] = in[@] + 1; out[WG] = in[WG];", "WG ^ 1", "WG", range(0, 8)),
    Order("list_head", _ONCE % "out[8 + WG] = out[@]; out[@] = WG + 1;", "64", "64 + WG", range(8, 65)),
    Order("winner_of_exchange", _ONCE % ("out[WG] = " + _ATOMIC % ("exchange_n", "&out[@]", "WG + 1") + ";"), "64", "64 + WG", range(0, 65)),
    # between the waves of a workgroup
    Order("last_wave_wins", _EACH % "out[@] = w;", "WG", "4 * WG + w", range(0, 8)),
    Order("last_wave_wins_everywhere", " out[64 * WG + lane @] = ITEM;\n", "", "* 0 + ITEM + 192 * WG", range(0, 512)),
    Order("waves_count", _EACH % "@;", "out[WG] = out[WG] + 1", _add("&out[WG]", "1"), range(0, 8)),
    Order("waves_set_bits", _EACH % "@;", "out[WG] |= 1 << w", _ATOMIC % ("fetch_or", "&out[WG]", "1 << w"), range(0, 8)),
    Order("waves_find_maximum", _EACH % "@;", "if (out[WG] < 9 - w) out[WG] = 9 - w", _ATOMIC % ("fetch_max", "&out[WG]", "9 - w"), range(0, 8)),
    Order("waves_float_sum", _EACH % (_add("(__global float*)&out[@]", "1.0f / (3 + w)") + ";"), "WG", "4 * WG + w", range(0, 8)),
    Order("other_waves_element", " out[i] = i;\n @\n out[i + 2048] = out[i ^ 64];\n", "", "BARRIER;", range(2048, 4096)),
    Order("flag_of_wave_0", " if (w == 0) out[WG] = 7;\n @\n if (w == 3) out[64 + WG] = out[WG];\n", "", "BARRIER;", range(64, 72)),
    Order("wave_ranks", _EACH % ("int r = " + _add("&out[512 + WG]", "1") + "; out[4 * WG + @] = w;"), "r", "w", range(0, 32)),
    Order("shifted_in_place", " int x = in[(i & ~255) + (ITEM + 64 & 255)];\n @\n in[i] = x;\n out[i] = x;\n", "", "BARRIER;", range(0, 2048)),
    Order("only_in_workgroup_5", " if (lane == 0 && WG == 5) out[@] = w;\n", "9", "9 + w", range(9, 10)),
    Order("only_waves_1_and_2", " if (lane == 0 && (w == 1 || w == 2)) out[@] = w;\n", "WG", "4 * WG + w", range(0, 8)),
]  # fmt: skip

# Every order leaves the same.
CLEAN = {
    "all_write_the_same": " out[lane] = 7 * lane;\n", "counted": " " + _add("&out[5]", "in[i]") + ";\n", "largest": " " + _ATOMIC % ("fetch_max", "&out[5]", "in[i]") + ";\n",
    "bits": " " + _ATOMIC % ("fetch_or", "&out[5]", "1 << (i & 31)") + ";\n", "all_read_one": " out[i] = in[0] + in[2047] + in[i];\n",
    "own_element_often": " for (int k = 0; k < n; k++) out[i] = out[i] * 3 + k;\n", "own_byte": " ((volatile __global char*)out)[i] = i;\n",
    "exact_float_sum": " " + _add("(__global float*)&out[5]", "(float)w") + ";\n", "flag_that_stays": " if (out[9] == 0) out[i + 64] = 1;\n",
    "same_value_often": " for (int k = 0; k < n; k++) out[k] = k * 5;\n",
}  # fmt: skip
