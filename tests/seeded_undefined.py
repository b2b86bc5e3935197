# SPDX-License-Identifier: Apache-2.0
"""Seeded bugs in OpenCL C: a value that one work-item did not write, in global memory, LDS, scratch or a register, and what is done
with it before it shows. tests/seeded_undefined_code.py has those that clang cannot express.

256 work-items in 2 workgroups of 2 waves; `x` is the value with undefined bits. The arrays have 256 dwords.
"""

from __future__ import annotations

from dataclasses import dataclass

from tests.seeded_places import Seeded

HEAD = "(__global int* in, __global int* out, __global int* work, int n) {\n int i = ITEM + 128 * WG;\n"


@dataclass(frozen=True)
class Origin:
    """Where `x` comes from; work-item 64 * (2 * workgroup + wave) + lane gets nothing when @ is 0."""

    name: str
    text: str
    lane: int
    wave: int
    workgroup: int
    detail: str


# A register that clang thinks written: every lane writes it but the one whose number stands in %2.
_REGISTER = (' int x, not = @ ? -1 : 150;\n __asm__ volatile("v_cmp_ne_u32 vcc, %1, %2\\n s_and_saveexec_b64 s[20:21], vcc\\n v_mov_b32 v200, %1\\n '
             's_mov_b64 exec, s[20:21]\\n v_mov_b32 %0, v200" : "=&v"(x) : "v"(i), "v"(not) : "v200", "s20", "s21", "vcc");\n')  # fmt: skip
_LDS = " __local int t[128];\n if (i != 62 || @) t[ITEM ^ 1] = in[i] + 3;\n BARRIER;\n"
ORIGINS = (
    Origin("global", " if (i != 200 || @) work[i ^ 1] = in[i] + 3;\n BARRIER;\n int x = work[i];\n", 9, 1, 1, "nobody wrote, read at .* global_load_dword"),
    Origin("lds", _LDS + " int x = t[ITEM];\n", 63, 0, 0, "nobody wrote .*read at .* ds_read_b32"),
    Origin("register", _REGISTER, 22, 0, 1, "a register that was never written"),
    Origin("scratch", " volatile int c[8];\n for (int j = 0; j < 8; j++) if (j != 6 || i != 64 || @) c[j] = in[i] + j;\n int x = c[6];\n", 0, 1, 0, "nobody wrote, read at .* scratch_load"),
)  # fmt: skip

OWN, PAIR, WAVE, FIRST, LATER, MATRIX_ROW = (
    "own",
    "pair",
    "wave",
    "first",
    "later",
    "matrix row",
)  # whose lane the fault names


def lane_of(whose: str, own: int) -> int:
    """PAIR: the lane beside it. LATER: four lanes on. MATRIX_ROW: the first lane that holds row own % 16 of a 16 x 16 result."""
    return {OWN: own, PAIR: own ^ 1, WAVE: -1, FIRST: 0, LATER: (own + 4) % 64, MATRIX_ROW: own % 16 // 4 * 16}[whose]


@dataclass(frozen=True)
class Use:
    """What is done with x; LANE stands for the number of its lane. through: x passed memory, which is then the origin told."""

    name: str
    text: str
    at: str = "global_store_dword "
    whose: str = OWN
    through: bool = False


def _value(name: str, expression: str) -> Use:
    return Use(name, f" int y = {expression};\n out[i] = y; // BUG\n")


def _float(name: str, expression: str) -> Use:
    return Use(name, f" float y = {expression};\n ((__global float*)out)[i] = y; // BUG\n")


_RSRC = " __amdgpu_buffer_rsrc_t r = __builtin_amdgcn_make_buffer_rsrc(in, 0, 1024, 0x27000);\n"
_LOADED = "__builtin_amdgcn_raw_buffer_load_b32"
_BRANCH = "s_and_saveexec_b64|v_cmpx|s_cbranch_vcc|s_and_b64 exec|s_andn2_b64 exec"
_MFMA = "__builtin_amdgcn_mfma_f32_16x16x32_fp8_fp8"
USES = (
    # -- shifts, logic, bytes, bits
    _value("bits_of_a_product", "(x * 3) & 0xff00"), _value("logical_shift", "(unsigned)x >> 5"), _value("sign_spread", "x >> 31"),
    _value("rotated", "(x << 7) | ((unsigned)x >> 25)"), _value("byte_swapped", "__builtin_bswap32(x)"), _value("reversed", "__builtin_bitreverse32(x)"),
    _value("population", "__builtin_popcount(x)"), _value("leading_zeros", "__builtin_clz(x | 1)"), _value("one_bit", "x & 0x10000"), _value("field", "(x >> 9) & 31"),
    _value("one_byte_chosen", "__builtin_amdgcn_perm(x, n, 0x0c0c0c05)"), _value("aligned", "__builtin_amdgcn_alignbyte(x, n, 1)"),
    Use("third_byte", " ((__global char*)out)[i] = x >> 16; // BUG\n", "global_store_byte"), Use("upper_half", " ((__global short*)out)[i] = x >> 16; // BUG\n", "global_store_short"),
    # -- integers
    _value("absolute", "__builtin_abs(x)"), _value("clamped", "x < 5 ? 5 : x > 90 ? 90 : x"), _value("condition", "x & 4 ? i : n"), _value("high_product", "(long)x * i >> 32"),
    _value("carry", "((unsigned long)(unsigned)x + (unsigned)-in[7]) >> 32"), _value("differences_of_bytes", "__builtin_amdgcn_sad_u8(x, n, i)"),
    Use("half_of_64_bits", " long y = ((long)x << 20) ^ i;\n ((__global long*)out)[i >> 1] = y; // BUG\n", "global_store_dwordx2"),
    Use("third_of_four", " V16 y = {i, n, x, i};\n ((__global V16*)out)[i >> 2] = y; // BUG\n", "global_store_dwordx4"),
    # -- floats
    _float("condition_of_floats", "(float)x < 3.5f ? 1.5f : 2.5f"), _float("fused", "__builtin_fmaf((float)x, 2.0f, 1.0f)"), _float("copied_sign", "__builtin_copysignf(1.5f, __builtin_bit_cast(float, x))"),
    _value("to_fp8", "__builtin_amdgcn_cvt_pk_fp8_f32((float)x, 1.0f, 0, 0)"), _float("from_fp8", "__builtin_amdgcn_cvt_f32_fp8(x, 2)"), _float("reciprocal", "__builtin_amdgcn_rcpf((float)x)"),
    # -- to other lanes
    Use("lanes_swapped_by_dpp", " int y = __builtin_amdgcn_update_dpp(0, x, 0xb1, 15, 15, 1);\n out[i] = y; // BUG\n", whose=PAIR),
    Use("lanes_turned_by_permutation", " int y = __builtin_amdgcn_ds_bpermute(4 * ((ITEM + 60) & 63), x);\n out[i] = y; // BUG\n", whose=LATER),
    Use("lanes_swapped_by_swizzle", " int y = __builtin_amdgcn_ds_swizzle(x, 0x041f);\n out[i] = y; // BUG\n", whose=PAIR),
    Use("lanes_swapped_in_lds", " __local int l[128];\n l[ITEM] = x;\n BARRIER;\n int y = l[ITEM ^ 1];\n out[i] = y; // BUG\n", whose=PAIR, through=True),
    Use("byte_through_lds", " __local char l[128];\n l[ITEM] = x;\n BARRIER;\n int y = l[ITEM];\n out[i] = y; // BUG\n", through=True),
    Use("read_lane", " int y = __builtin_amdgcn_readlane(x, LANE);\n out[i] = y; // BUG\n", whose=FIRST),
    Use("vote", " unsigned long y = __builtin_amdgcn_ballot_w64(x > 7);\n ((__global long*)out)[i >> 1] = y; // BUG\n", "global_store_dwordx2", FIRST),
    Use("matrix_operand", f" F4 d = {{0, 0, 0, 0}};\n d = {_MFMA}((long)i << 32 | (unsigned)x, 77, d, 0, 0, 0);\n ((__global F4*)out)[ITEM & 63] = d; // BUG\n", "global_store_dwordx4", MATRIX_ROW),
    Use("matrix_addend", f" F4 d = {{0, 0, x, 0}};\n d = {_MFMA}(i, 77, d, 0, 0, 0);\n ((__global F4*)out)[ITEM & 63] = d; // BUG\n", "global_store_dwordx4"),
    # -- addresses
    Use("load_address", " out[i] = in[x & 127]; // BUG\n", "global_load_dword "), Use("store_address", " out[x & 127] = 4; // BUG\n"),
    Use("lds_address", " __local int l[128];\n l[ITEM] = n;\n BARRIER;\n int y = l[x & 127]; // BUG\n out[i] = y;\n", "ds_read_b32"),
    Use("scratch_address", " volatile int a[4];\n for (int j = 0; j < 4; j++) a[j] = j;\n int y = a[x & 3]; // BUG\n out[i] = y;\n", "scratch_load_dword "),
    Use("buffer_offset", _RSRC + f" int y = {_LOADED}(r, x & 127, 0, 0); // BUG\n out[i] = y;\n", "buffer_load_dword "),
    Use("scalar_buffer_offset", _RSRC + f" int y = {_LOADED}(r, 4 * ITEM, __builtin_amdgcn_readlane(x, LANE) & 4, 0); // BUG\n out[i] = y;\n", "buffer_load_dword ", WAVE),
    Use("address_of_the_wave", " int k = __builtin_amdgcn_readlane(x, LANE) & 127;\n int y = ((__constant int*)(unsigned long)in)[k]; // BUG\n out[i] = y;\n", "s_load_dword ", WAVE),
    # -- control
    Use("branch", " if (x > 3) // BUG\n  out[i] = 9;\n", _BRANCH), Use("branch_of_the_wave", " if (__builtin_amdgcn_readlane(x, LANE) > 3) // BUG\n  out[i] = 9;\n", "s_cbranch", WAVE),
    Use("lane_number", " int k = __builtin_amdgcn_readlane(x, LANE) & 63;\n int y = __builtin_amdgcn_readlane(i, k); // BUG\n out[i] = y;\n", "v_readlane_b32", WAVE),
    Use("carried_by_a_loop", " int s = x;\n for (int k = 0; k < in[7]; k++)\n  s = s * 5 + in[k];\n out[i] = s; // BUG\n"),
)  # fmt: skip


def _seeded(use: Use, origin: Origin) -> Seeded:
    text = HEAD + origin.text + use.text.replace("LANE", str(origin.lane)) + "}"
    return Seeded(f"{origin.name}_{use.name}", "uninitialised", text, "0", "1", use.at, lane_of(use.whose, origin.lane), origin.wave, (origin.workgroup, 0, 0),
                  detail="nobody wrote" if use.through else origin.detail)  # fmt: skip


def _own(name: str, text: str, faulty: str, clean: str, lane: int, wave: int, workgroup: int, at: str = "global_store_dword ", **more: object) -> Seeded:  # fmt: skip
    return Seeded(name, "uninitialised", HEAD + text + "}", faulty, clean, at, lane, wave, (workgroup, 0, 0), **more)  # type: ignore[arg-type]


_STORE = " out[i] = x; // BUG\n"
_COUNT = "__scoped_atomic_fetch_add(%s, 1, __ATOMIC_RELAXED, __MEMORY_SCOPE_WRKGRP)"
# What goes wrong in kernels with each kind of memory.
GLOBAL = (
    _own("global_never_written", " int x = @[i];\n" + _STORE, "work", "in", 0, 0, 0),
    _own("global_read_before_the_write", " if (@) work[i] = n;\n BARRIER;\n int x = *(volatile __global int*)&work[i];\n work[i] = 1;\n" + _STORE, "WG == 0", "1", 0, 0, 1),
    _own("global_of_the_next_workgroup", " work[i] = n;\n BARRIER;\n int x = work[(i + @) & 255];\n" + _STORE, "128", "0", 0, 0, 0),
    _own("global_last_byte_of_a_word", " __global char* b = (__global char*)work + 4 * i;\n b[0] = 1; b[1] = 2; b[2] = 3;\n if (i != 37 || @) b[3] = 4;\n BARRIER;\n int x = *(volatile __global int*)b;\n" + _STORE, "0", "1", 37, 0, 0),
    _own("global_third_of_four", " __global V16* v = (__global V16*)work;\n if (ITEM < 32) {\n  int k = ITEM + 32 * WG; work[4 * k] = 1; work[4 * k + 1] = 2; work[4 * k + 3] = 4;\n  if (k != 40 || @) work[4 * k + 2] = 3;\n }\n BARRIER;\n"
         " if (ITEM < 32) ((__global V16*)out)[i & 63] = *(volatile __global V16*)&v[ITEM + 32 * WG]; // BUG\n", "0", "1", 8, 0, 1, "global_store_dwordx4"),
    _own("global_rows_that_a_guard_left_out", " if (i < n - @) work[i] = in[i];\n BARRIER;\n int x = work[i ^ 63];\n" + _STORE, "16", "0", 0, 1, 1),
)  # fmt: skip
LDS = (
    _own("lds_never_written", " __local int l[128];\n if (@) l[ITEM] = n;\n BARRIER;\n int x = l[ITEM ^ 5];\n" + _STORE, "n == 0", "1", 0, 0, 0),
    _own("lds_of_the_workgroup_before", " __local int l[128];\n if (WG == 0 || @) l[ITEM] = n;\n BARRIER;\n int x = l[ITEM ^ 5];\n" + _STORE, "0", "1", 0, 0, 1),
    _own("lds_halo", " __local int l[130];\n l[ITEM + 1] = n;\n if (ITEM == 0 && @) l[0] = 0;\n if (ITEM == 127) l[129] = 0;\n BARRIER;\n int x = l[ITEM] + l[ITEM + 2];\n" + _STORE, "0", "1", 0, 0, 0),
    _own("lds_other_buffer", " __local int l[2][128];\n l[0][ITEM] = n;\n if (@) l[1][ITEM] = i;\n BARRIER;\n int x = l[WG][ITEM ^ 3];\n" + _STORE, "0", "1", 0, 0, 1),
    _own("lds_counter_not_zeroed", " __local int l[128];\n if (ITEM != 90 || @) l[ITEM] = 0;\n BARRIER;\n " + _COUNT % "&l[ITEM ^ 2]" + ";\n BARRIER;\n int x = l[ITEM];\n" + _STORE, "0", "1", 26, 1, 0),
    _own("lds_second_byte_of_a_word", " __local char l[512];\n l[4 * ITEM] = 1; l[4 * ITEM + 2] = 3; l[4 * ITEM + 3] = 4;\n if (i != 161 || @) l[4 * ITEM + 1] = 2;\n BARRIER;\n int x = ((__local int*)l)[ITEM ^ 1];\n" + _STORE, "0", "1", 32, 0, 1),
    _own("lds_upper_half_of_64_bits", " __local int l[256];\n l[2 * ITEM] = 1;\n if (i != 5 || @) l[2 * ITEM + 1] = 2;\n BARRIER;\n long x = ((__local long*)l)[ITEM ^ 4];\n ((__global long*)out)[i >> 1] = x; // BUG\n", "0", "1", 1, 0, 0, "global_store_dwordx2"),
)  # fmt: skip
SCRATCH = (
    _own("scratch_never_written", " volatile int a[8];\n if (i < @) a[i & 7] = n;\n int x = a[i & 7];\n" + _STORE, "70", "256", 6, 1, 0),
    _own("scratch_array_partly_filled", " volatile int a[8];\n for (int j = 0; j < @; j++) a[j] = n;\n int x = a[i & 7];\n" + _STORE, "n / 36", "8", 7, 0, 0),
    _own("scratch_pop_without_push", " volatile int a[8];\n int top = 0;\n if (i != 222 || @) a[top++] = 1; else top = 1;\n int x = a[--top];\n" + _STORE, "0", "1", 30, 1, 1),
    _own("scratch_last_byte_of_a_word", " volatile union { char b[4]; int w; } u;\n u.b[0] = 1; u.b[1] = 2; u.b[2] = 3;\n if (i != 99 || @) u.b[3] = i;\n int x = u.w;\n" + _STORE, "0", "1", 35, 1, 0),
    _own("scratch_half_of_64_bits", " volatile union { int h[2]; long w; } u;\n u.h[1] = n;\n if (i != 190 || @) u.h[0] = i;\n long x = u.w;\n ((__global long*)out)[i >> 1] = x; // BUG\n", "0", "1", 62, 0, 1, "global_store_dwordx2"),
)  # fmt: skip
REGISTER: tuple[Seeded, ...] = ()
_EXTRA = {"global": GLOBAL, "lds": LDS, "register": REGISTER, "scratch": SCRATCH}


def cases(name: str) -> list[Seeded]:
    """Those of one origin. Each use stands with two origins in turn: what follows a load does not depend on where it came from."""
    number = [origin.name for origin in ORIGINS].index(name)
    return [_seeded(use, ORIGINS[number]) for k, use in enumerate(USES) if (number - k) % 4 < 2] + list(_EXTRA[name])
