# SPDX-License-Identifier: Apache-2.0
"""Seeded bugs: accesses outside the workgroup's LDS and outside a work-item's scratch, in OpenCL C and in assembly.

256 work-items in 2 workgroups of 2 waves. LDS tiles have one element for each of the 128 work-items of a workgroup. Private arrays
have 16 elements and start at scratch offset 0; clang's frame has at least 4 bytes and one element more (68 bytes for 16 dwords), and only
what lies beyond that is out of bounds. Offsets are in bytes; a negative index wraps at 32 bits.
"""

from __future__ import annotations

from tests.seeded_bounds import ONE, head
from tests.seeded_places import Seeded, Shape

ZERO = (0, 0, 0)
WRAPPED = 1 << 32


def _lds(name: str, width: int, body: str, faulty: str, clean: str, at: str, lane: int, wave: int, workgroup: tuple[int, int, int], offset: int, *, fill: bool = True) -> Seeded:  # fmt: skip
    tile = f" __local V{width} l[128];\n" + (" l[ITEM] = in[i];\n BARRIER;\n" if fill else "")
    access = "write" if "write" in at else "read"
    return Seeded(f"lds_{name}", "out-of-bounds LDS", head(width) + tile + body + "\n}", faulty, clean, at, lane, wave, workgroup, offset,
                  shape=Shape(256 * width), detail=f"{access} .* the workgroup has {128 * width} bytes")  # fmt: skip


def _lds_code(
    name: str, text: str, faulty: str, clean: str, at: str, lane: int, wave: int, offset: int, *, lds: int = 512
) -> Seeded:
    """v2 is 4 x lane; the workgroup's bytes are all written, by each wave on its own."""
    fill = "v_and_b32 v2, 0xfc, v1\nv_mov_b32 v3, 0\nv_mov_b32 v4, 0\nv_mov_b32 v5, 0\nds_write_b32 v1, v3\ns_waitcnt lgkmcnt(0)\ns_barrier\n"
    return Seeded(
        f"lds_{name}",
        "out-of-bounds LDS",
        fill + text,
        faulty,
        clean,
        at,
        lane,
        wave,
        ZERO,
        offset,
        lds=lds,
        detail=f"has {lds} bytes",
    )


LDS = [
    # -- before, after, far, straddling; every width
    _lds("load1_before", 1, " char x = l[ITEM - @]; // BUG\n out[i] = x;", "(ITEM == 0)", "0", "ds_read_[ui]8", 0, 0, ZERO, WRAPPED - 1),
    _lds("load2_middle_lane", 2, " short x = l[ITEM == 90 ? @ : ITEM]; // BUG\n out[i] = x;", "128", "127", "ds_read_[ui]16", 26, 1, ZERO, 256),
    _lds("load4_far_away", 4, " int x = l[i == 160 ? @ : ITEM]; // BUG\n out[i] = x;", "4000", "0", "ds_read_b32", 32, 0, ONE, 16000),
    _lds("load8_last_lane", 8, " long x = l[ITEM + (i == 255 ? @ : 0)]; // BUG\n out[i] = x;", "1", "-127", "ds_read_b64", 63, 1, ONE, 1024),
    _lds("load16_straddles_the_end", 16, " V16 x = *(__local V16*)((__local char*)l + 16 * ITEM + @); // BUG\n out[i] = x;", "4", "0", "ds_read2_b32", 63, 1, ZERO, 2048),
    _lds("load8_straddles_the_end", 8, " long x = *(__local long*)((__local char*)l + 8 * ITEM + @); // BUG\n out[i] = x;", "4", "0", "ds_read2_b32", 63, 1, ZERO, 1024),
    _lds("store1_after", 1, " char x = in[i];\n l[ITEM + @] = x; // BUG\n BARRIER;\n out[i] = l[ITEM ^ 1];", "(ITEM > 100) * 30", "0", "ds_write_b8", 37, 1, ZERO, 131, fill=False),
    _lds("store2_before", 2, " short x = in[i];\n l[ITEM - (i == 192 ? @ : 0)] = x; // BUG\n BARRIER;\n out[i] = l[ITEM];", "65", "0", "ds_write_b16", 0, 1, ONE, WRAPPED - 2, fill=False),
    _lds("store4_other_workgroup", 4, " int x = in[i];\n l[@] = x; // BUG\n BARRIER;\n out[i] = l[ITEM];", "i", "ITEM", "ds_write_b32", 0, 0, ONE, 512, fill=False),
    _lds("store8_first_lane_of_second_wave", 8, " long x = in[i];\n l[ITEM + (ITEM >> 6) * @] = x; // BUG\n BARRIER;\n out[i] = l[ITEM & 63];", "64", "0", "ds_write_b64", 0, 1, ZERO, 1024, fill=False),
    _lds("store16_straddles_the_end", 16, " V16 x = in[i];\n *(__local V16*)((__local char*)l + 16 * ITEM + @) = x; // BUG\n BARRIER;\n out[i] = l[64];", "4", "0", "ds_write2_b32", 63, 1, ZERO, 2048, fill=False),
    # -- index from memory, in a loop, with masked lanes, transposed
    _lds("index_from_memory", 4, " int k = in[ITEM] + @;\n int x = l[k]; // BUG\n out[i] = x;", "50", "0", "ds_read_b32", 14, 1, ZERO, 512),
    _lds("inclusive_bound_of_a_loop", 4, " int s = 0;\n for (int k = 0; k < 128 + @; k += 8)\n  s += l[k + (ITEM & 7)]; // BUG\n out[i] = s;", "1", "0", "ds_read", 0, 0, ZERO, 512),
    _lds("masked_lanes", 4, " if ((ITEM & 7) == 3)\n  out[i] = l[ITEM + @]; // BUG", "20", "0", "ds_read_b32", 51, 1, ZERO, 540),
    _lds("transposed_with_the_wrong_stride", 4, " int x = l[(ITEM & 7) * @ + (ITEM >> 3)]; // BUG\n out[i] = x;", "17", "16", "ds_read_b32", 15 + 56 - 64 + 8, 1, ZERO, 4 * (7 * 17 + 9), ),
    _lds("halo_of_a_tile", 4, " int x = l[ITEM]; if (ITEM > @) x += l[ITEM + 2]; // BUG\n out[i] = x;", "63", "127", "ds_read_b32", 62, 1, ZERO, 512),
    _lds("generic_pointer", 4, " int* p = ITEM & 1 ? (int*)&l[ITEM + @] : (int*)(in + i);\n int x = *p; // BUG\n out[i] = x;", "2", "0", "flat_load_dword", 63, 1, ZERO, 516),
    # -- two elements an instruction
    _lds("second_of_a_pair", 4, " int x = l[ITEM] + l[ITEM + @]; // BUG\n out[i] = x;", "1", "0 * n", "ds_read2?_b32", 63, 1, ZERO, 512),
    _lds("second_of_a_pair_of_rows", 4, " int k = ITEM >> @;\n int x = l[k] + l[k + 64]; // BUG\n out[i] = x;", "0", "1", "ds_read2st64_b32", 0, 1, ZERO, 512),
    # -- assembly: immediate offsets, halves, triples, atomics
    _lds_code("immediate_offset", "BUG ds_read_b32 v3, v2 offset:@\ns_waitcnt lgkmcnt(0)", "260", "256", "ds_read_b32", 63, 0, 512),
    _lds_code("immediate_offset_far_away", "BUG ds_write_b32 v2, v3 offset:@\ns_waitcnt lgkmcnt(0)", "65532", "0", "ds_write_b32", 0, 0, 65532),
    _lds_code("second_of_a_written_pair", "BUG ds_write2_b32 v2, v3, v4 offset0:0 offset1:@\ns_waitcnt lgkmcnt(0)", "100", "63", "ds_write2_b32", 28, 0, 512),
    _lds_code("first_of_a_written_pair", "v_cmp_gt_u32 vcc, @, v0\ns_and_saveexec_b64 s[20:21], vcc\nBUG ds_write2_b64 v2, v[2:3], v[4:5] offset0:60 offset1:0\ns_waitcnt lgkmcnt(0)", "12", "7", "ds_write2_b64", 7, 0, 508),
    _lds_code("byte_of_an_upper_half", "BUG ds_write_b8_d16_hi v2, v3 offset:@\ns_waitcnt lgkmcnt(0)", "281", "259", "ds_write_b8_d16_hi", 58, 0, 513),
    _lds_code("into_an_upper_half", "BUG ds_read_u16_d16_hi v3, v2 offset:@\ns_waitcnt lgkmcnt(0)", "259", "258", "ds_read_u16_d16_hi", 63, 0, 511),
    _lds_code("8_bytes_straddle_the_end", "BUG ds_read_b64 v[4:5], v2 offset:@\ns_waitcnt lgkmcnt(0)", "256", "252", "ds_read_b64", 63, 0, 508),
    _lds_code("16_bytes_straddle_the_end", "v_cmp_gt_u32 vcc, 64, v0\ns_and_saveexec_b64 s[20:21], vcc\nBUG ds_write_b128 v2, v[2:5] offset:@\ns_waitcnt lgkmcnt(0)", "248", "244", "ds_write_b128", 63, 0, 500),
    _lds_code("three_dwords", "BUG ds_read_b96 v[4:6], v2 offset:@\ns_waitcnt lgkmcnt(0)", "252", "248", "ds_read_b96", 63, 0, 504),
    _lds_code("one_byte_outside", "v_mov_b32 v6, @\nBUG ds_read_u8 v3, v6\ns_waitcnt lgkmcnt(0)", "0x200", "0x1ff", "ds_read_u8", 0, 0, 512),
    _lds_code("atomic", "BUG ds_add_u32 v2, v3 offset:@\ns_waitcnt lgkmcnt(0)", "320", "0", "ds_add_u32", 48, 0, 512),
    _lds_code("first_byte_outside", "v_mov_b32 v6, @\nBUG ds_read_b32 v3, v6\ns_waitcnt lgkmcnt(0)", "0x200", "0x1fc", "ds_read_b32", 0, 0, 512),
]  # fmt: skip


def _scratch(name: str, width: int, body: str, faulty: str, clean: str, at: str, lane: int, wave: int, workgroup: tuple[int, int, int], offset: int, *, length: int = 16) -> Seeded:  # fmt: skip
    array = f" volatile V{width} a[{length}];\n for (int j = 0; j < {length}; j++) a[j] = in[i];\n"
    access = "write" if "store" in at else "read"
    return Seeded(f"scratch_{name}", "out-of-bounds scratch", head(width) + array + body + "\n}", faulty, clean, at, lane, wave, workgroup, offset,
                  shape=Shape(256 * width), detail=f"{access} .* a work-item has ")  # fmt: skip


def _scratch_code(name: str, text: str, faulty: str, clean: str, at: str, lane: int, wave: int, offset: int, *, scratch: int = 64, workgroup: tuple[int, int, int] = ZERO) -> Seeded:  # fmt: skip
    """v2 is the lane's number; the first 16 dwords are written."""
    fill = (
        "v_and_b32 v2, 63, v0\nv_mov_b32 v3, 0\nv_mov_b32 v4, 0\nv_mov_b32 v5, 0\nv_mov_b32 v6, 0\nv_mov_b32 v7, 0\n"
        + "".join(f"scratch_store_dwordx4 off, v[4:7], off offset:{at}\n" for at in (0, 16, 32, 48))
    )
    return Seeded(f"scratch_{name}", "out-of-bounds scratch", fill + "s_waitcnt vmcnt(0)\n" + text, faulty, clean, at, lane, wave, workgroup, offset,
                  scratch=scratch, detail=f"a work-item has {scratch} bytes")  # fmt: skip


SL, SS = "scratch_load_", "scratch_store_"
SCRATCH = [
    # -- one lane far away or just outside; every width
    _scratch("load1_far_away", 1, " char x = a[i == 140 ? @ : i & 15]; // BUG\n out[i] = x;", "3000", "3", SL + "[us]byte", 12, 0, ONE, 3000),
    _scratch("load2_last_lane_of_second_wave", 2, " short x = a[i == 127 ? @ : i & 15]; // BUG\n out[i] = x;", "500", "0", SL + "[us]short", 63, 1, ZERO, 1000),
    _scratch("load4_just_outside", 4, " int x = a[i == 66 ? @ : i & 15]; // BUG\n out[i] = x;", "17", "15", SL + "dword ", 2, 1, ZERO, 68),
    _scratch("load8_just_outside", 8, " long x = a[i == 255 ? @ : i & 15]; // BUG\n out[i] = x;", "17", "15", SL + "dwordx2", 63, 1, ONE, 136),
    _scratch("load16_just_outside", 16, " V16 x = a[i == 130 ? @ : i & 15]; // BUG\n out[i] = x;", "17", "15", SL + "dwordx4", 2, 0, ONE, 272),
    _scratch("store1_just_outside", 1, " char x = in[i];\n a[i == 31 ? @ : i & 15] = x; // BUG\n out[i] = a[3];", "20", "0", SS + "byte", 31, 0, ZERO, 20),
    _scratch("store2_far_away", 2, " short x = in[i];\n a[i == 193 ? @ : i & 15] = x; // BUG\n out[i] = a[3];", "777", "7", SS + "short", 1, 1, ONE, 1554),
    _scratch("store4_first_lane", 4, " int x = in[i];\n a[i & 15 | @] = x; // BUG\n out[i] = a[3];", "(WG << 5)", "0", SS + "dword ", 0, 0, ONE, 128),
    _scratch("store8_middle_lane", 8, " long x = in[i];\n a[i == 95 ? @ : i & 15] = x; // BUG\n out[i] = a[3];", "90", "9", SS + "dwordx2", 31, 1, ZERO, 720),
    _scratch("store16_straddles_the_end", 16, " V16 x = in[i];\n *(volatile __private V16*)((volatile __private char*)a + 16 * (i & 15) + @) = x; // BUG\n out[i] = a[3];", "20", "0", SS + "dwordx4|" + SS + "dword ", 15, 0, ZERO, 260),
    _scratch("load8_straddles_the_end", 8, " long x = *(volatile __private long*)((volatile __private char*)a + 8 * (i & 15) + @); // BUG\n out[i] = x;", "12", "0", SL + "dwordx2", 15, 0, ZERO, 132),
    _scratch("generic_pointer", 4, " volatile int* p = i & 1 ? (volatile int*)&a[(i & 15) + @] : (volatile int*)(in + i);\n int x = *p; // BUG\n out[i] = x;", "8", "0", "flat_load_dword ", 9, 0, ZERO, 68),
    # -- index from memory, in a loop, with masked lanes
    _scratch("index_from_memory", 4, " int k = in[i] - @;\n int x = a[k < 12 ? k & 15 : k]; // BUG\n out[i] = x;", "180", "255", SL + "dword ", 5, 1, ONE, 68),
    _scratch("inclusive_bound_of_a_loop", 4, " int s = 0, end = n / 16 + @;\n for (int k = i & 1; k < end; k++)\n  s += a[k]; // BUG\n out[i] = s;", "2", "0", SL + "dword ", 1, 0, ZERO, 68),
    _scratch("masked_lanes", 4, " if (i % 7 == 6)\n  a[(i & 15) + @] = n; // BUG\n out[i] = a[3];", "9", "0", SS + "dword ", 13, 0, ZERO, 88),
    _scratch("one_index_for_the_wave", 4, " int x = a[WG * @]; // BUG\n out[i] = x;", "20", "15", SL + "dword ", 0, 0, ONE, 80),
    _scratch("stack_that_grows", 4, " int top = 0;\n for (int k = 0; k < (i == 70 ? @ : 9); k++)\n  a[top++] = k; // BUG\n out[i] = a[top - 1];", "20", "16", SS + "dword ", 6, 1, ZERO, 68),
    # -- assembly: each form of address
    _scratch_code("immediate_alone", "BUG scratch_load_dword v3, off, off offset:@\ns_waitcnt vmcnt(0)", "64", "60", SL + "dword ", 0, 0, 64),
    _scratch_code("negative_immediate", "v_lshlrev_b32 v2, 2, v2\nv_and_b32 v2, 60, v2\nBUG scratch_load_dword v3, v2, off offset:@\ns_waitcnt vmcnt(0)", "-4", "0", SL + "dword ", 0, 0, 2**64 - 4),
    _scratch_code("scalar_offset", "s_mul_i32 s20, s2, @\nBUG scratch_store_dword off, v3, s20\ns_waitcnt vmcnt(0)", "64", "60", SS + "dword ", 0, 0, 64, workgroup=ONE),
    _scratch_code("vector_offset", "v_lshlrev_b32 v2, @, v2\nBUG scratch_store_byte v2, v3, off\ns_waitcnt vmcnt(0)", "2", "0", SS + "byte", 16, 0, 64),
    _scratch_code("scalar_and_vector_offset", "s_movk_i32 s20, @\nv_and_b32 v2, 15, v2\nBUG scratch_load_ushort v3, v2, s20 offset:2\ns_waitcnt vmcnt(0)", "52", "40", SL + "ushort", 9, 0, 63),
    _scratch_code("three_dwords", "v_and_b32 v2, @, v2\nBUG scratch_load_dwordx3 v[4:6], v2, off offset:32\ns_waitcnt vmcnt(0)", "63", "16", SL + "dwordx3", 21, 0, 53),
    _scratch_code("into_an_upper_half", "v_lshrrev_b32 v2, @, v2\nBUG scratch_load_short_d16_hi v3, v2, off\ns_waitcnt vmcnt(0)", "0", "1", SL + "short_d16_hi", 63, 0, 63),
    _scratch_code("lanes_of_the_upper_half", "v_cmp_lt_u32 vcc, @, v2\ns_and_saveexec_b64 s[20:21], vcc\nBUG scratch_load_dwordx4 v[4:7], v2, off offset:1\ns_waitcnt vmcnt(0)", "49", "63", SL + "dwordx4", 50, 0, 51),
]  # fmt: skip

# What stays inside, and lanes that are off.
HARMLESS = {
    "lds_last_byte": head(1) + " __local char l[128];\n l[127 - ITEM] = in[i];\n BARRIER;\n out[i] = l[127 - (ITEM ^ 3)];\n}",
    "lds_guarded_halo": head(4) + " __local int l[128];\n l[ITEM] = in[i];\n BARRIER;\n int s = l[ITEM];\n if (ITEM > 0) s += l[ITEM - 1];\n if (ITEM < 127) s += l[ITEM + 1];\n out[i] = s;\n}",
    "lds_no_lane": head(4) + " __local int l[128];\n l[ITEM] = in[i];\n BARRIER;\n int s = l[ITEM];\n if (s > 100000) s = l[s];\n out[i] = s;\n}",
    "lds_wrapped_base": head(4) + " __local int l[128];\n l[ITEM] = in[i];\n BARRIER;\n int k = 200 - (int)ITEM;\n int x = l[(k < 127 ? k : 100) & 127];\n out[i] = x;\n}",
    "scratch_last_byte": head(1) + " volatile char a[16];\n for (int j = 0; j < 16; j++) a[15 - j] = in[i] + j;\n out[i] = a[15 - (i & 15)];\n}",
    "scratch_guarded": head(4) + " volatile int a[16];\n for (int j = 0; j < 16; j++) a[j] = in[i];\n int k = i;\n if (k < 16) out[i] = a[k];\n}",
}  # fmt: skip
CLASSES = {"out-of-bounds LDS": LDS, "out-of-bounds scratch": SCRATCH}
