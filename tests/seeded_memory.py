# SPDX-License-Identifier: Apache-2.0
"""Seeded bugs of memory, in OpenCL C: accesses out of bounds (global, buffer, LDS, scratch) and uses of what nobody wrote.

Every kernel takes (in, out, n); the arrays have exactly one element for each of the 2 x 128 work-items, n is 256.
"""

from __future__ import annotations

from tests.seeded import WIDTHS, Bug

ITEMS = 256
MISSING = 145  # element that nobody wrote in the uninitialised cases: workgroup 1, wave 0, lane 17
_HERE = {"lane": MISSING - 128, "wave": 0, "workgroup": 1}
_PARAMETERS = "(__global V{w}* in, __global V{w}* out, int n) {{\n int i = ITEM + 128 * WG;\n"


def _both(name: str, kind: str, template: str, faulty: str, clean: str, **place: int) -> Bug:
    """`@` in the template is the faulty or the clean expression; the line with it carries the mark."""
    return Bug(name, kind, template.replace("@", faulty), template.replace("@", clean), **place)


FIRST = {"lane": 0, "wave": 0, "workgroup": 0}
LAST = {"lane": 63, "wave": 1, "workgroup": 1}


def out_of_bounds() -> list[Bug]:
    bugs = []
    for w in WIDTHS:
        head = _PARAMETERS.format(w=w)
        for name, index, place in (("before", "i - 1", FIRST), ("after", "i + 1", LAST)):
            bugs.append(
                _both(f"load{w}_{name}", "out-of-bounds", head + " out[i] = in[@]; // BUG\n}", index, "i", **place)
            )
            bugs.append(
                _both(
                    f"store{w}_{name}",
                    "out-of-bounds",
                    head + f" V{w} x = in[i];\n out[@] = x; // BUG\n}}",
                    index,
                    "i",
                    **place,
                )
            )
    head = _PARAMETERS.format(w=4)
    bugs += [
        _both("one_lane_far_away", "out-of-bounds", head + " out[i] = in[@]; // BUG\n}", "i == 70 ? i + 100000 : i", "i", lane=6, wave=1, workgroup=0),
        _both("last_turn_of_a_loop", "out-of-bounds", head + " int s = 0;\n for (int k = i; k < n + @; k += 64)\n  s += in[k]; // BUG\n out[i] = s;\n}", "64", "0",
              lane=0, wave=0, workgroup=0),
        _both("masked_lanes_count_not", "out-of-bounds", head + " if (i < n - @)\n  out[i] = in[i + 1]; // BUG\n}", "0", "1", **LAST),
    ]  # fmt: skip
    return bugs


def out_of_bounds_buffer() -> list[Bug]:
    """The descriptor says how many bytes there are; hardware would drop the access without a word."""
    bugs = []
    for w, kind in ((1, "b8"), (2, "b16"), (4, "b32"), (8, "b64"), (16, "b128")):
        raw = {1: "unsigned char", 2: "unsigned short", 4: "unsigned", 8: "V2U", 16: "V4U"}[w]
        head = (_PARAMETERS.format(w=w) + " typedef unsigned V2U __attribute__((ext_vector_type(2))); typedef unsigned V4U __attribute__((ext_vector_type(4)));\n"
                f" __amdgpu_buffer_rsrc_t r = __builtin_amdgcn_make_buffer_rsrc(in, 0, {w} * n, 0x27000);\n")  # fmt: skip
        store = f"{{ {raw} x = ({raw})1; __builtin_amdgcn_raw_buffer_store_{kind}(x, r, #, 0); }} // BUG\n}}"
        load = f" *(__global {raw}*)&out[i] = __builtin_amdgcn_raw_buffer_load_{kind}(r, #, 0); // BUG\n}}"
        for name, offsets, clean in (
            ("voffset", f"{w} * i + {w}, 0", f"{w} * i, 0"),
            ("soffset", f"{w} * i, n * {w} - 127 * {w} - 128 * {w} * WG", f"{w} * i, 0"),
        ):
            place = LAST if name == "voffset" else {"lane": 63, "wave": 1}
            bugs.append(
                _both(
                    f"buffer_load{w}_{name}",
                    "out-of-bounds buffer",
                    head + load.replace("#", "@"),
                    offsets,
                    clean,
                    **place,
                )
            )
            bugs.append(
                _both(
                    f"buffer_store{w}_{name}",
                    "out-of-bounds buffer",
                    head + " " + store.replace("#", "@"),
                    offsets,
                    clean,
                    **place,
                )
            )
    return bugs


def out_of_bounds_lds() -> list[Bug]:
    bugs = []
    for w in WIDTHS:
        head = _PARAMETERS.format(w=w) + f" __local V{w} l[128];\n"
        fill = " l[ITEM] = in[i];\n BARRIER;\n"
        for name, index, place in (
            ("before", "ITEM - 1", {"lane": 0, "wave": 0, "workgroup": 0}),
            ("after", "ITEM + 1", {"lane": 63, "wave": 1, "workgroup": 0}),
        ):
            bugs.append(
                _both(
                    f"lds_load{w}_{name}",
                    "out-of-bounds LDS",
                    head + fill + " out[i] = l[@]; // BUG\n}",
                    index,
                    "ITEM ^ 1",
                    **place,
                )
            )
            bugs.append(
                _both(
                    f"lds_store{w}_{name}",
                    "out-of-bounds LDS",
                    head + f" V{w} x = in[i];\n l[@] = x; // BUG\n BARRIER;\n out[i] = l[ITEM];\n}}",
                    index,
                    "ITEM",
                    **place,
                )
            )
    return bugs


def out_of_bounds_scratch() -> list[Bug]:
    bugs = []
    for w in WIDTHS:
        head = _PARAMETERS.format(w=w) + f" volatile V{w} a[16];\n for (int j = 0; j < 16; j++) a[j] = in[i];\n"
        for lane in (5, 63):
            place = {"lane": lane, "wave": 0, "workgroup": 0}
            far = f"i == {lane} ? 4000 : (i & 15)"
            bugs.append(
                _both(
                    f"scratch_load{w}_{lane}",
                    "out-of-bounds scratch",
                    head + " int k = @;\n out[i] = a[k]; // BUG\n}",
                    far,
                    "i & 15",
                    **place,
                )
            )
            bugs.append(
                _both(
                    f"scratch_store{w}_{lane}",
                    "out-of-bounds scratch",
                    head + f" int k = @;\n V{w} x = in[i];\n a[k] = x; // BUG\n out[i] = a[3];\n}}",
                    far,
                    "i & 15",
                    **place,
                )
            )
    return bugs


# -- what nobody wrote -----------------------------------------------------------------------------------------------------
# X is the value with undefined bits; each row uses it once, on the marked line.
USES = {
    "stored": " out[i] = X; // BUG\n", "plus": " int y = X + 5;\n out[i] = y; // BUG\n", "times": " int y = X * 3;\n out[i] = y; // BUG\n",
    "shifted": " int y = X << 3;\n out[i] = y; // BUG\n", "xor": " int y = X ^ i;\n out[i] = y; // BUG\n", "negated": " int y = ~X;\n out[i] = y; // BUG\n",
    "signed_byte": " int y = (signed char)X;\n out[i] = y; // BUG\n", "high_half": " int y = (unsigned)X >> 16;\n out[i] = y; // BUG\n",
    "maximum": " int x = X; int y = x > 7 ? x : 7;\n out[i] = y; // BUG\n", "chosen": " int x = X; int y = (i & 1) ? x : i;\n out[i] = y; // BUG\n",
    "float": " float f = (float)X; f = f * 2.0f + 1.0f;\n out[i] = (int)f; // BUG\n", "byte_store": " int x = X;\n ((__global char*)out)[4 * i] = (char)x; // BUG\n",
    "half_store": " int x = X;\n ((__global short*)out)[2 * i] = (short)(x >> 8); // BUG\n", "wide": " long y = (long)X * 7;\n ((__global long*)out)[i >> 1] = y; // BUG\n",
    "load_address": " int x = X;\n out[i] = in[(x & 3)]; // BUG\n", "store_address": " int x = X;\n out[(x & 3)] = 1; // BUG\n",
    "lane_branch": " int x = X;\n if (x > 3) // BUG\n  out[i] = 1;\n", "loop_sum": " int s = 0, x = X;\n for (int k = 0; k < n; k += 64) s += x ^ k;\n out[i] = s; // BUG\n",
    "loop_count": " int x = X;\n int s = 0;\n for (int k = 0; k < (x & 7); k++) // BUG\n  s += in[(k + i) & 127];\n out[i] = s;\n",
    "packed_bytes": " int y = __builtin_amdgcn_perm(X, i, 0x07060302);\n out[i] = y; // BUG\n",
    "through_lds": " __local int l[128];\n l[ITEM] = X;\n BARRIER;\n int y = l[ITEM];\n out[i] = y; // BUG\n",
    "through_scratch": " volatile int a[4];\n a[i & 3] = X;\n int y = a[i & 3];\n out[i] = y; // BUG\n",
}  # fmt: skip
_HEAD = "(__global int* in, __global int* out, int n) {\n int i = ITEM + 128 * WG;\n"
# Uses of which the undefined bits are no part, or that are not taken: none may be reported.
HARMLESS = {
    "masked_away": " int x = X;\n out[i] = i == 145 ? 3 : x;\n", "multiplied_bits_cut": " int x = X;\n if (i != 145) out[i] = x;\n",
    "never_used": " int x = X;\n __asm__ volatile(\"; uses %0\" :: \"v\"(x));\n out[i] = 4;\n", "moved": " int x = X;\n int y = __builtin_amdgcn_ds_bpermute(4 * ((ITEM + 1) & 63), x);\n if (((ITEM + 1) & 63) != 17 || WG == 0 || ITEM > 63) out[i] = y;\n",
    "and_zero": " int x = X;\n int m = i == 145 ? 0 : -1;\n __asm__ volatile(\"v_and_b32 %0, %1, %2\" : \"=v\"(x) : \"v\"(x), \"v\"(m));\n out[i] = x;\n",
    "or_ones": " int x = X;\n int m = i == 145 ? -1 : 0;\n __asm__ volatile(\"v_or_b32 %0, %1, %2\" : \"=v\"(x) : \"v\"(x), \"v\"(m));\n out[i] = x;\n",
    "shifted_out": " unsigned x = X; unsigned k = i == 145 ? 31 : 0;\n __asm__ volatile(\"v_lshrrev_b32 %0, %1, %0\\n v_lshrrev_b32 %0, 1, %0\" : \"+v\"(x) : \"v\"(k));\n if (i != 145) out[i] = x;\n else out[i] = 0;\n",
}  # fmt: skip


def uninitialised_global() -> list[Bug]:
    """Element MISSING of `in` counts as unwritten in the faulty run (the test's doing)."""
    return [Bug(f"global_{name}", "uninitialised", _HEAD + use.replace("X", "in[i]") + "}", _HEAD + use.replace("X", "in[i]") + "}", **_HERE)
            for name, use in USES.items()]  # fmt: skip


def uninitialised_lds() -> list[Bug]:
    """One work-item does not store its element."""
    fill = _HEAD + " __local int t[128];\n if (@) t[ITEM] = in[i];\n BARRIER;\n"
    return [
        _both(f"lds_{name}", "uninitialised", fill + use.replace("X", "t[ITEM]") + "}", f"i != {MISSING}", "1", **_HERE)
        for name, use in USES.items()
    ]


def uninitialised_register() -> list[Bug]:
    """v200 is never written; the clean form writes it first. All lanes are concerned, the first one is named."""
    read = ' int r;\n __asm__ volatile("@v_mov_b32 %0, v200" : "=v"(r) : : "v200");\n'
    uses = {name: use for name, use in USES.items() if name != "packed_bytes"}
    return [_both(f"register_{name}", "uninitialised", _HEAD + read + use.replace("X", "r") + "}", "", r"v_mov_b32 v200, 1\n ",
                  wave=0, workgroup=0, lane=1 if name == "chosen" else 0) for name, use in uses.items()]  # fmt: skip


def uninitialised_scratch() -> list[Bug]:
    fill = (
        _HEAD
        + " volatile int cells[8];\n for (int j = 0; j < 8; j++) if (j != 5 || @) cells[j] = in[i] + j;\n int cell = i == 145 ? 5 : (i & 3);\n int x0 = cells[cell];\n"
    )
    return [
        _both(f"scratch_{name}", "uninitialised", fill + use.replace("X", "x0") + "}", "i != 145", "1", **_HERE)
        for name, use in USES.items()
    ]


CLASSES = {
    "out-of-bounds": out_of_bounds(), "out-of-bounds buffer": out_of_bounds_buffer(), "out-of-bounds LDS": out_of_bounds_lds(),
    "out-of-bounds scratch": out_of_bounds_scratch(), "uninitialised global": uninitialised_global(), "uninitialised LDS": uninitialised_lds(),
    "uninitialised register": uninitialised_register(), "uninitialised scratch": uninitialised_scratch(),
}  # fmt: skip
