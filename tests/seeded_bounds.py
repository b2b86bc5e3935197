# SPDX-License-Identifier: Apache-2.0
"""Seeded bugs: accesses outside global memory and outside what a buffer descriptor covers, by form of address, width and lane.

256 work-items in 2 workgroups of 2 waves unless a row says otherwise; each array has one element for each of them.
"""

from __future__ import annotations

from tests.seeded_places import Seeded, Shape

ONE = (1, 0, 0)


def head(width: int) -> str:
    return f"(__global V{width}* in, __global V{width}* out, __global V{width}* work, int n) {{\n int i = ITEM + 128 * WG;\n"


def _in(width: int, body: str) -> str:
    return head(width) + body + "\n}"


def _global(name: str, width: int, body: str, faulty: str, clean: str, at: str, lane: int, wave: int, workgroup: tuple[int, int, int], allocation: str,
            offset: int, *, shape: Shape | None = None) -> Seeded:  # fmt: skip
    access = "write" if "_store" in at else "read"
    return Seeded(f"global_{name}", "out-of-bounds", _in(width, body), faulty, clean, at, lane, wave, workgroup, offset, allocation,
                  shape=shape or Shape(256 * width), detail=access)  # fmt: skip


L, S = "global_load_", "global_store_"
GLOBAL = [
    # -- one lane, far away or just outside. saddr with a 32-bit offset register or a pair of registers, as clang chooses
    _global("load1_far_before", 1, " char x = in[@]; // BUG\n out[i] = x;", "i == 130 ? i - 5000 : i", "i", L + "ubyte|" + L + "sbyte", 2, 0, ONE, "in", -4870),
    _global("load2_middle_lane", 2, " short x = in[@]; // BUG\n out[i] = x;", "i == 77 ? 256 : i", "i", L + "u?s?short", 13, 1, (0, 0, 0), "in", 512),
    _global("load4_last_lane_of_first_wave", 4, " int x = in[@]; // BUG\n out[i] = x;", "i == 63 ? -1 : i", "i", L + "dword ", 63, 0, (0, 0, 0), "in", -4),
    _global("load8_first_lane_of_last_wave", 8, " long x = in[@]; // BUG\n out[i] = x;", "i == 192 ? 300 : i", "i", L + "dwordx2", 0, 1, ONE, "in", 2400),
    _global("load16_two_lanes_the_lower_counts", 16, " V16 x = in[@]; // BUG\n out[i] = x;", "i == 40 || i == 44 ? i + 256 : i", "i", L + "dwordx4", 40, 0, (0, 0, 0), "in", 4736),
    _global("store1_far_after", 1, " char x = in[i];\n out[@] = x; // BUG", "i == 255 ? 70000 : i", "i", S + "byte", 63, 1, ONE, "out", 70000),
    _global("store2_before", 2, " short x = in[i];\n out[@] = x; // BUG", "i == 100 ? -3 : i", "i", S + "short", 36, 1, (0, 0, 0), "out", -6),
    _global("store4_wave_by_wave", 4, " int x = in[i];\n out[@] = x; // BUG", "i + (i >> 6) * 48", "i", S + "dword ", 32, 0, ONE, "out", 1024),
    # -- straddling an end: part of the access lies inside
    _global("load16_straddles_the_end", 16, " V16 x = *(__global V16*)((__global char*)in + 16 * i + @); // BUG\n out[i] = x;", "4", "0", L + "dwordx4", 63, 1, ONE, "in", 4084),
    _global("load8_straddles_the_start", 8, " long x = *(__global long*)((__global char*)in + 8 * i - @); // BUG\n out[i] = x;", "4", "0", L + "dwordx2", 0, 0, (0, 0, 0), "in", -4),
    _global("load4_straddles_the_end_by_a_byte", 4, " int x = *(__global int*)((__global char*)in + 4 * i + @); // BUG\n out[i] = x;", "1", "0", L + "dword ", 63, 1, ONE, "in", 1021),
    _global("store16_straddles_the_end", 16, " V16 x = in[i];\n *(__global V16*)((__global char*)out + 16 * i + @) = x; // BUG", "8", "0", S + "dwordx4", 63, 1, ONE, "out", 4088),
    _global("store8_straddles_the_start", 8, " long x = in[i];\n *(__global long*)((__global char*)out + 8 * i - @) = x; // BUG", "7", "0", S + "dwordx2", 0, 0, (0, 0, 0), "out", -7),
    # -- forms of address
    _global("immediate_offset", 4, " int k = i * @;\n int x = in[k + 255]; // BUG\n out[i] = x;", "1", "0", L + "dword ", 1, 0, (0, 0, 0), "in", 1024),
    _global("negative_immediate_offset", 4, " int k = (i & 127) * 2;\n if (k >= @) out[i] = in[k - 20]; // BUG", "8", "20", L + "dword ", 4, 0, (0, 0, 0), "in", -48),
    _global("pointer_by_lane", 4, " __global int* p = i & 1 ? in : out;\n int x = p[i + @]; // BUG\n work[i] = x;", "2", "0", L + "dword ", 62, 1, ONE, "out", 1024),
    _global("unsigned_underflow", 4, " unsigned k = i + @;\n int x = in[k]; // BUG\n out[i] = x;", "- 3u", "0u", L + "dword ", 0, 0, (0, 0, 0), "in", 4 * (2**32 - 3)),
    _global("index_of_64_bits", 4, " long k = i == 200 ? (long)i << @ : i;\n int x = in[k]; // BUG\n out[i] = x;", "32", "0", L + "dword ", 8, 1, ONE, "in", 800 << 32),
    _global("index_from_memory", 4, " int k = in[i] + @;\n int x = in[k]; // BUG\n out[i] = x;", "19", "0", L + "dword ", 45, 1, ONE, "in", 1024),
    _global("generic_pointer", 4, " __local int l[128];\n l[ITEM] = 1;\n int* p = i & 1 ? (int*)&l[ITEM] : (int*)(in + i + @);\n int x = *p; // BUG\n out[i] = x;", "4", "0", "flat_load_dword", 60, 1, ONE, "in", 1024),
    # -- one address for the whole wave (scalar loads)
    _global("scalar_load", 4, " int x = in[n - @]; // BUG\n out[i] = x;", "0", "1", "s_load_dword ", -1, 0, (0, 0, 0), "in", 1024),
    _global("scalar_load_of_one_workgroup", 4, " int x = in[WG * (n - @) + 64]; // BUG\n out[i] = x;", "63", "128", "s_load_dword ", -1, 0, ONE, "in", 1028),
    _global("scalar_load16_straddles_the_end", 4, " V16 x = *(__global V16*)(in + n - @); // BUG\n out[i] = x.x + x.y + x.z + x.w;", "2", "4", "s_load_dwordx4", -1, 0, (0, 0, 0), "in", 1016),
    # -- loops, branches, partial waves, grids
    _global("inclusive_bound_of_a_loop", 4, " int s = 0;\n for (int k = 0; k < n + @; k += 2)\n  s += in[k + (i & 1)]; // BUG\n out[i] = s;", "1", "0", L + "dword ", 0, 0, (0, 0, 0), "in", 1024),
    _global("loop_of_one_wave_goes_too_far", 4, " int s = 0;\n for (int k = i; k < n + (i >= 192 ? @ : 0); k += 64)\n  s += in[k]; // BUG\n out[i] = s;", "20", "0", L + "dword ", 0, 1, ONE, "in", 1024),
    _global("masked_lanes", 4, " int x = in[i];\n if (i & 1)\n  out[i + @] = x; // BUG", "4", "0", S + "dword ", 61, 1, ONE, "out", 1028),
    _global("the_other_branch", 4, " int x = in[i];\n if (i % 3 == 0)\n  out[i] = x * x;\n else\n  out[i * @ + 1] = x + 7; // BUG", "2", "1 - 1", S + "dword ", 0, 0, ONE, "out", 4 * 257),
    _global("bound_in_the_wrong_unit", 2, " int k = 2 * i;\n if (k < @) {\n  short x = in[k]; // BUG\n  out[i] = x;\n }", "2 * n", "n", L + "u?s?short", 0, 0, ONE, "in", 512),
    _global("partial_wave", 4, " int k = ITEM + 100 * WG;\n int x = in[k + @]; // BUG\n out[k] = x;", "60", "0", L + "dword ", 32, 1, ONE, "in", 1024, shape=Shape(block=(100, 1, 1))),
    _global("one_workgroup_of_twelve", 4, " int y = __builtin_amdgcn_workgroup_id_y(), z = __builtin_amdgcn_workgroup_id_z();\n int k = ITEM + (WG == 1 && y == 2 && z == 1 ? @ : 0);\n int x = in[k]; // BUG\n out[ITEM] = x;",
            "180", "0", L + "dword ", 12, 1, (1, 2, 1), "in", 1024, shape=Shape(grid=(2, 3, 2))),
    _global("block_of_two_dimensions", 4, " int y = __builtin_amdgcn_workitem_id_y();\n int k = ITEM * @ + y * 16;\n int x = in[k]; // BUG\n out[k & 255] = x;", "17", "1", L + "dword ", 31, 0, (0, 0, 0), "in", 4 * 271,
            shape=Shape(block=(16, 8, 1))),
    # -- 16 bits of a register's upper half
    _global("store_of_an_upper_half", 4, " int x = in[i];\n ((__global short*)out)[2 * i + @] = x >> 16; // BUG", "6", "1", S + "short", 61, 1, ONE, "out", 1024),
]  # fmt: skip


def _buffer(name: str, width: int, body: str, faulty: str, clean: str, at: str, lane: int, wave: int, workgroup: tuple[int, int, int], offset: int, *, records: str | None = None) -> Seeded:  # fmt: skip
    """The descriptor covers `records` bytes of `in`; unless said otherwise half of the array, so that memory beyond is there."""
    rsrc = f" __amdgpu_buffer_rsrc_t r = __builtin_amdgcn_make_buffer_rsrc(in, 0, {records or 128 * width}, 0x27000);\n"
    access = "write" if "_store" in at else "read"
    return Seeded(f"buffer_{name}", "out-of-bounds buffer", _in(width, _VECTORS + rsrc + body), faulty, clean, at, lane, wave, workgroup, offset,
                  shape=Shape(256 * width), detail=f"{access} .* descriptor says")  # fmt: skip


_VECTORS = " typedef unsigned U2 __attribute__((ext_vector_type(2))); typedef unsigned U3 __attribute__((ext_vector_type(3))); typedef unsigned U4 __attribute__((ext_vector_type(4)));\n"
_GET, _PUT = "__builtin_amdgcn_raw_buffer_load_", "__builtin_amdgcn_raw_buffer_store_"
BL, BS = "buffer_load_", "buffer_store_"
BUFFER = [
    # -- the offset in a register, in the instruction, in a scalar
    _buffer("load1_other_workgroup", 1, f" char x = {_GET}b8(r, ITEM + @, 0, 0); // BUG\n out[i] = x;", "128 * WG", "0", BL + "ubyte|" + BL + "sbyte", 0, 0, ONE, 128),
    _buffer("load2_last_lane", 2, f" short x = {_GET}b16(r, 2 * ITEM + @, 0, 0); // BUG\n out[i] = x;", "2", "0", BL + "u?s?short", 63, 1, (0, 0, 0), 256),
    _buffer("load4_middle_lane", 4, f" int x = {_GET}b32(r, 4 * (ITEM == 9 ? @ : ITEM), 0, 0); // BUG\n out[i] = x;", "128", "127", BL + "dword ", 9, 0, (0, 0, 0), 512),
    _buffer("load8_far_away", 8, f" U2 x = {_GET}b64(r, 8 * (i == 170 ? @ : ITEM), 0, 0); // BUG\n *(__global U2*)&out[i] = x;", "100000", "0", BL + "dwordx2", 42, 0, ONE, 800000),
    _buffer("load12_straddles_the_end", 16, f" U3 x = {_GET}b96(r, 16 * ITEM + @, 0, 0); // BUG\n out[i].x = x.x + x.y + x.z;", "8", "4", BL + "dwordx3", 63, 1, (0, 0, 0), 2040),
    _buffer("load16_straddles_the_end", 16, f" U4 x = {_GET}b128(r, 16 * ITEM + @, 0, 0); // BUG\n *(__global U4*)&out[i] = x;", "12", "0", BL + "dwordx4", 63, 1, (0, 0, 0), 2044),
    _buffer("store1_last_lane", 1, f" {_PUT}b8((char)i, r, ITEM + @, 0, 0); // BUG", "1", "0", BS + "byte", 63, 1, (0, 0, 0), 128),
    _buffer("store2_straddles_the_end", 2, f" {_PUT}b16((short)i, r, 2 * ITEM + @, 0, 0); // BUG", "1", "0", BS + "short", 63, 1, (0, 0, 0), 255),
    _buffer("store4_odd_lanes", 4, f" if (ITEM & 1)\n  {_PUT}b32(i, r, 4 * ITEM + @, 0, 0); // BUG", "12", "0", BS + "dword ", 61, 1, (0, 0, 0), 512),
    _buffer("store8_one_lane", 8, f" U2 x = i;\n {_PUT}b64(x, r, 8 * (i == 64 ? @ : ITEM), 0, 0); // BUG", "999", "3", BS + "dwordx2", 0, 1, (0, 0, 0), 7992),
    _buffer("store16_second_wave", 16, f" U4 x = i;\n {_PUT}b128(x, r, 16 * (ITEM + (ITEM >> 6) * @), 0, 0); // BUG", "40", "0", BS + "dwordx4", 24, 1, (0, 0, 0), 2048),
    _buffer("immediate_offset", 4, f" int x = {_GET}b32(r, 4 * (ITEM & @) + 400, 0, 0); // BUG\n out[i] = x;", "31", "15", BL + "dword .* offset:400", 28, 0, (0, 0, 0), 512),
    _buffer("immediate_offset_alone", 4, f" int x = {_GET}b32(r, @, 0, 0); // BUG\n out[i] = x;", "512", "508", BL + "dword ", 0, 0, (0, 0, 0), 512),
    _buffer("scalar_offset", 4, f" int x = {_GET}b32(r, 4 * ITEM, WG * @, 0); // BUG\n out[i] = x;", "8", "0", BL + "dword ", 62, 1, ONE, 512),
    _buffer("scalar_offset_of_a_store", 4, f" {_PUT}b32(i, r, 4 * (ITEM & 63), 256 + WG * @, 0); // BUG", "4", "0", BS + "dword ", 63, 0, ONE, 512),
    _buffer("all_three_offsets", 4, f" int x = {_GET}b32(r, 4 * (ITEM / @) + 16, n - 252, 0); // BUG\n out[i] = x;", "1", "2", BL + "dword ", 59, 1, (0, 0, 0), 512),
    # -- the descriptor: nothing, too little, of the wrong unit
    _buffer("of_no_bytes", 4, f" int x = {_GET}b32(r, 4 * ITEM, 0, 0); // BUG\n out[i] = x;", "0", "1024", BL + "dword ", 0, 0, (0, 0, 0), 0, records="@"),
    _buffer("elements_for_bytes", 4, f" int x = {_GET}b32(r, 4 * i, 0, 0); // BUG\n out[i] = x;", "n", "4 * n", BL + "dword ", 0, 1, (0, 0, 0), 256, records="@"),
    _buffer("size_of_another_type", 8, f" U2 x = {_GET}b64(r, 8 * i, 0, 0); // BUG\n *(__global U2*)&out[i] = x;", "4 * n", "8 * n", BL + "dwordx2", 0, 0, ONE, 1024, records="@"),
    _buffer("one_byte_short", 4, f" int x = {_GET}b32(r, 4 * i, 0, 0); // BUG\n out[i] = x;", "1023", "1024", BL + "dword ", 63, 1, ONE, 1020, records="@"),
    _buffer("rows_for_a_tile", 4, f" {_PUT}b32(i, r, 4 * i, 0, 0); // BUG", "(n - 5) * 4", "n * 4", BS + "dword ", 59, 1, ONE, 1004, records="@"),
    # -- control
    _buffer("loop", 4, f" int s = 0;\n for (int k = 0; k < @; k++)\n  s += {_GET}b32(r, 4 * (ITEM & 15) + 64 * k, 0, 0); // BUG\n out[i] = s;", "9", "8", BL + "dword ", 0, 0, (0, 0, 0), 512),
    _buffer("last_turn_of_a_stride", 4, f" int s = 0;\n for (int k = ITEM; k < n / 2 + @; k += 64)\n  s += {_GET}b32(r, 4 * k, 0, 0); // BUG\n out[i] = s;", "10", "0", BL + "dword ", 0, 0, (0, 0, 0), 512),
    _buffer("guard_off_by_one", 4, f" int k = 2 * ITEM;\n if (k <= @)\n  out[i] = {_GET}b32(r, 4 * k, 0, 0); // BUG", "128", "127", BL + "dword ", 0, 1, (0, 0, 0), 512),
    # An offset that no tensor has masks a lane; one bit less does not.
    _buffer("mask_too_small", 4, f" int x = {_GET}b32(r, ITEM < 100 ? 4 * ITEM : @, 0, 0); // BUG\n out[i] = x;", "0x7ffffffc", "0x7fffffff", BL + "dword ", 36, 1, (0, 0, 0), 0x7FFFFFFC),
]  # fmt: skip

# In bounds, though barely, or only in lanes that are masked off; and masked lanes of buffers, which read 0.
HARMLESS = {
    "guarded_lanes": _in(4, " if (i + 200 < n) out[i + 200] = in[i + 200];"),
    "guarded_in_a_loop": _in(4, " int s = 0;\n for (int k = i; k < n; k += 60) s += in[k];\n out[i] = s;"),
    "other_branch_reads_far": _in(4, " int x = 5;\n if (in[i] > 1000) x = in[i + 100000];\n out[i] = x;"),
    "last_byte": _in(4, " ((__global char*)out)[4 * n - 1 - i] = ((__global char*)in)[4 * n - 1 - i];"),
    "last_16_bytes_unaligned": _in(4, " V16 x = *(__global V16*)((__global char*)in + 1008 - (i & 3)); *(__global V16*)&out[i & 252] = x;"),
    "no_lane_at_all": _in(4, " if (in[i] < 0) in[i + 4096] = 3;"),
    "select_of_index": _in(4, " int k = i + 128; k = k < n ? k : n - 1; out[i] = in[k];"),
    "buffer_masked_by_7fffffff": _in(4, f" __amdgpu_buffer_rsrc_t r = __builtin_amdgcn_make_buffer_rsrc(in, 0, 1024, 0x27000);\n out[i] = {_GET}b32(r, i < 7 ? 4 * i : 0x7fffffff, 0, 0);"),
    "buffer_masked_by_80000000": _in(4, f" __amdgpu_buffer_rsrc_t r = __builtin_amdgcn_make_buffer_rsrc(in, 0, 1024, 0x27000);\n out[i] = {_GET}b32(r, i & 1 ? 4 * i : 0x80000000, 0, 0);"),
    "buffer_masked_by_minus_1": _in(4, f" __amdgpu_buffer_rsrc_t r = __builtin_amdgcn_make_buffer_rsrc(in, 0, 1024, 0x27000);\n {_PUT}b32(i, r, i > 250 ? 4 * i : -1, 0, 0);"),
    "buffer_last_byte": _in(4, f" __amdgpu_buffer_rsrc_t r = __builtin_amdgcn_make_buffer_rsrc(in, 0, 1023, 0x27000);\n ((__global char*)out)[i] = {_GET}b8(r, 1022 - i, 0, 0);"),
    "buffer_guarded": _in(4, f" __amdgpu_buffer_rsrc_t r = __builtin_amdgcn_make_buffer_rsrc(in, 0, 512, 0x27000);\n if (i < 128) out[i] = {_GET}b32(r, 4 * i, 0, 0);"),
}  # fmt: skip
CLASSES = {"out-of-bounds": GLOBAL, "out-of-bounds buffer": BUFFER}
