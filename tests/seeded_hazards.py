# SPDX-License-Identifier: Apache-2.0
"""Seeded bugs: too few wait states between a matrix instruction and its neighbours, which hardware does not check.

P is the number of passes: 4 for 16x16x32, 8 for 32x32x16. A wait state is an instruction between; s_nop N counts N + 1. The rules
are LLVM's (GCNHazardRecognizer, gfx940), and clang's own s_nops confirm them: with one state fewer each kernel must be refused.
"""

from __future__ import annotations

from collections.abc import Iterator

from tests.seeded_assembly import Edit, Mutant, Pair, Swap

HEAD = "(__global long* in, __global F4* out, int n) {\n typedef float F16 __attribute__((ext_vector_type(16)));\n long a = in[ITEM], b = in[ITEM + 64];\n F4 zero = {0, 0, 0, 0};\n"


def _16(left: str, right: str, addend: str) -> str:
    return f"__builtin_amdgcn_mfma_f32_16x16x32_fp8_fp8({left}, {right}, {addend}, 0, 0, 0)"


def _32(left: str, right: str, addend: str) -> str:
    return f"__builtin_amdgcn_mfma_f32_32x32x16_fp8_fp8({left}, {right}, {addend}, 0, 0, 0)"


_C = f" F4 c = {_16('a', 'b', 'zero')};\n"
_LARGE = f" F16 c = 0;\n c = {_32('a', 'b', 'c')};\n"
BASES = {
    "stored": f" out[ITEM] = {_16('a', 'b', 'zero')};\n}}",
    "scaled": _C + " out[ITEM] = c * 3.0f;\n}",
    "chained": _C + f" c = {_16('b', 'a', 'c')};\n out[ITEM] = c;\n}}",
    "looped": f" F4 c = zero;\n for (int k = 0; k < n; k++) c = {_16('in[ITEM + 64 * k]', 'b', 'c')};\n out[ITEM] = c;\n}}",
    "as_a": _C + f" long* p = (long*)&c;\n out[ITEM] = {_16('p[0]', 'b', 'zero')};\n}}",
    "as_b": _C + f" long* p = (long*)&c;\n out[ITEM] = {_16('b', 'p[1]', 'zero')};\n}}",
    "computed_a": f" out[ITEM] = {_16('a * 3', 'b ^ a', 'zero')};\n}}",
    "computed_c": f" F4 c = {{(float)ITEM, 1, 2, 3}};\n out[ITEM] = {_16('a', 'b', 'c')};\n}}",
    "to_lds": f" __local F4 t[256];\n t[ITEM] = {_16('a', 'b', 'zero')};\n BARRIER;\n out[ITEM] = t[ITEM ^ 1];\n}}",
    "large": _LARGE + " ((__global F16*)out)[ITEM] = c * 2.0f;\n}",
    "large_chain": _LARGE + f" c = {_32('b', 'a', 'c')};\n ((__global F16*)out)[ITEM] = c;\n}}",
    "large_parts": _LARGE + f" F4 d = c.s4567; d = {_16('a', 'b', 'd')};\n out[ITEM] = d;\n out[ITEM + 64] = c.s0123;\n}}",
    "summed": _C + " ((__global float*)out)[ITEM] = c.x + c.y + c.z + c.w;\n}",
}  # fmt: skip
BASES = {name: HEAD + body for name, body in BASES.items()}


def _nop(base: str, old: int, new: int | None, at: tuple[str, int], nth: int = 0) -> Mutant:
    """The nth `s_nop old` becomes `s_nop new`, or goes."""
    name = f"{base}_nop_{old}_{'gone' if new is None else new}" + (f"_{nth}" if nth else "")
    return Mutant(
        name,
        base,
        (Edit(f"^s_nop {old}$", "" if new is None else f"s_nop {new}", nth),),
        at,
        lane=-1,
        wave=0,
        workgroup=0,
    )


def _edited(name: str, base: str, edits: tuple[Edit | Swap, ...], at: tuple[str, int]) -> Mutant:
    return Mutant(name, base, edits, at, lane=-1, wave=0, workgroup=0)


MUTANTS = [
    _nop("stored", 6, 5, ("global_store", 0)), _nop("stored", 6, None, ("global_store", 0)), _nop("scaled", 6, 5, ("v_pk_mul", 0)),
    _nop("chained", 6, 5, ("global_store", 0)), _nop("looped", 3, 2, ("global_store", 0)), _nop("looped", 3, None, ("global_store", 0)),
    _nop("as_a", 6, 5, ("v_mfma", 1)), _nop("as_a", 6, 5, ("global_store", 0), 1), _nop("as_b", 6, 5, ("v_mfma", 1)),
    _nop("computed_a", 1, 0, ("v_mfma", 0)), _nop("computed_a", 1, None, ("v_mfma", 0)), _nop("computed_a", 6, 5, ("global_store", 0)),
    _nop("to_lds", 6, 5, ("ds_write", 0)), _nop("large", 10, 9, ("v_pk_add", 0)), _nop("large", 10, 6, ("v_pk_add", 0)),
    _nop("large_chain", 10, 9, ("global_store", 0)), _nop("large_parts", 8, 7, ("v_mfma", 1)), _nop("large_parts", 6, 5, ("global_store", 0)),
    _nop("summed", 6, 5, ("v_add_f32", 0)),
    _edited("computed_a_late", "computed_a", (Swap("^s_nop 1$", 0, "v_xor", 1),), ("v_mfma", 0)),
    _edited("computed_c_late", "computed_c", (Swap("v_mov_b32_e32 v3", 0, "v_lshlrev_b32_e32 v0", 0),), ("v_mfma", 0)),
    _edited("chained_in_part", "chained", (Edit("v_mfma", "v_mfma_f32_16x16x32_fp8_fp8 v[2:5], v[8:9], v[6:7], v[4:7]", 1),), ("v_mfma", 1)),
    _edited("large_chain_in_part", "large_chain", (Edit("v_mfma", "v_mfma_f32_16x16x32_fp8_fp8 v[2:5], v[20:21], v[18:19], v[6:9]", 1),), ("v_mfma", 1)),
    _edited("looped_reads_the_last", "looped", (Edit("^.L.*:", "s_nop 0\nlooped_again: v_max_f32 v5, v5, v5"), Edit("s_cbranch_scc1", "s_cbranch_scc1 looped_again", 1)),
            ("v_max_f32", 0)),
    _edited("looped_clears_addend", "looped", (Edit("s_waitcnt vmcnt", "s_waitcnt vmcnt(0)\nv_mov_b32 v5, 0"),), ("v_mfma", 0)),
]  # fmt: skip

# -- rule by rule --------------------------------------------------------------------------------------------------------------
# A and B in v[2:3], v[4:5]; D in v[8:11] or v[8:23], or the same AGPRs; another C in v[24:39].
SETUP = "\n".join([*(f"v_mov_b32 v{n}, 0" for n in range(2, 48)), *(f"v_accvgpr_write_b32 a{n}, 0" for n in range(24)), "v_mov_b32 v60, s4",
                   "v_mov_b32 v61, s5", "s_mov_b64 s[8:9], s[4:5]", "s_mov_b32 s10, 0x1000", "s_mov_b32 s11, 0x27000", "s_nop 3", ""])  # fmt: skip


def _gap(states: int, style: int) -> str:
    """Exactly that many wait states in one of several styles."""
    if states == 0:
        return ""
    rest = states - 1
    one = [
        "v_mov_b32 v62, v1",
        "s_mov_b32 s20, 0",
        "s_waitcnt vmcnt(0)",
        "global_store_dword v1, v1, s[6:7]",
        "ds_write_b32 v1, v1",
        "s_branch L1\nL1: ",
    ][style % 6]
    if style % 3 == 0:
        return f"s_nop {rest}"
    if "L1" in one:
        return one + (f"s_nop {rest - 1}" if rest else "")
    return "\n".join([one] * states) if style % 3 == 1 else one + (f"\ns_nop {rest - 1}" if rest else "")


def _rules() -> Iterator[tuple[str, str, str, int]]:
    """(name, first instruction, second instruction, wait states needed)."""
    for size, passes, d in (("16x16x32", 4, 11), ("32x32x16", 8, 23)):
        form, small = f"v_mfma_f32_{size}_", "v_mfma_f32_16x16x32_fp8_fp8"
        made, in_agprs = f"{form}fp8_fp8 v[8:{d}], v[2:3], v[4:5], 0", f"{form}bf8_fp8 a[8:{d}], v[2:3], v[4:5], 0"
        other_c = f"{form}fp8_bf8 v[8:{d}], v[2:3], v[4:5], v[24:{d + 16}]"
        own_c = f"{form}bf8_bf8 v[8:{d}], v[2:3], v[4:5], v[8:{d}]"
        reads = {
            "last_register": f"v_add_f32 v50, v{d}, v1", "sdwa": "v_add_u32_sdwa v50, v9, v1 dst_sel:DWORD src0_sel:BYTE_0 src1_sel:DWORD", "dpp": "v_mov_b32_dpp v50, v8 quad_perm:[0,0,0,0]",
            "packed": f"v_pk_fma_f32 v[50:51], v[2:3], v[4:5], v[{d - 1}:{d}]", "to_fp8": "v_cvt_pk_fp8_f32 v50, v8, v9", "to_agpr": "v_accvgpr_write_b32 a2, v9",
            "lane": "v_readlane_b32 s20, v10, 5", "stored_wide": f"global_store_dwordx4 v1, v[{d - 3}:{d}], s[6:7]", "flat_store": "flat_store_dword v[60:61], v9",
            "buffer_store": f"buffer_store_dwordx2 v[{d - 1}:{d}], v1, s[8:11], 0 offen", "lds_store": f"ds_write_b64 v1, v[{d - 1}:{d}]", "lds_address": "ds_read_b32 v50, v11",
            "global_address": "global_load_dword v50, v9, s[4:5]", "lds_exchange": "ds_bpermute_b32 v50, v1, v9", "atomic_data": "global_atomic_add v1, v8, s[6:7]",
        }  # fmt: skip
        overwrites = {
            "move": f"v_mov_b32 v{d}, 0", "packed": "v_pk_mul_f32 v[10:11], v[2:3], v[4:5]", "from_agpr": "v_accvgpr_read_b32 v9, a2", "write_lane": "v_writelane_b32 v8, s2, 1",
            "global_load": "global_load_dwordx2 v[8:9], v1, s[4:5]", "buffer_load": f"buffer_load_dword v{d}, v1, s[8:11], 0 offen", "lds_load": "ds_read_b32 v10, v1",
        }  # fmt: skip
        yield from ((f"read_{name}", made, text, passes + 3) for name, text in reads.items())
        yield from ((f"overwrite_{name}", made, text, passes + 3) for name, text in overwrites.items())
        yield "as_a", made, f"{form}fp8_fp8 v[24:{d + 16}], v[{d - 1}:{d}], v[4:5], 0", passes + 3
        yield "as_b", made, f"{form}fp8_fp8 v[24:{d + 16}], v[2:3], v[8:9], 0", passes + 3
        yield "as_a_of_other_size", made, f"{small} v[40:43], v[8:9], v[4:5], 0", passes + 3
        yield "as_part_of_c", made, f"{small} v[40:43], v[2:3], v[4:5], v[{d - 1}:{d + 2}]", passes + 1
        yield "accumulated_then_stored", own_c, f"global_store_dword v1, v{d}, s[6:7]", passes + 3
        yield "agpr_read", in_agprs, f"v_accvgpr_read_b32 v50, a{d}", passes + 3
        yield "agpr_stored", in_agprs, "global_store_dword v1, a9, s[6:7]", passes + 3
        yield "agpr_overwritten", in_agprs, "v_accvgpr_write_b32 a8, v2", passes + 3
        yield "agpr_loaded", in_agprs, "ds_read_b32 a10, v1", passes + 3
        yield "agpr_as_b", in_agprs, f"{small} v[40:43], v[2:3], a[8:9], 0", passes + 3
        yield "agpr_as_part_of_c", in_agprs, f"{small} a[0:3], v[2:3], v[4:5], a[{d - 1}:{d + 2}]", passes + 1
        yield "addend_overwritten", other_c, f"v_mov_b32 v{d + 16}, 0", passes - 1
        yield "addend_loaded", other_c, "global_load_dword v24, v1, s[4:5]", passes - 1
        yield "written_a", "v_mov_b32 v3, 0", made, 2
        yield "written_b", "v_pk_mul_f32 v[4:5], v[6:7], v[6:7]", made, 2
        yield "written_c", f"v_mov_b32 v{d + 16}, 0", other_c, 2
        yield "written_agpr_c", "v_accvgpr_write_b32 a9, v2", f"{form}fp8_fp8 a[8:{d}], v[2:3], v[4:5], a[8:{d}]", 2
        yield "written_exec", "v_cmpx_eq_u32_e64 vcc, v2, v2", made, 4
    yield (
        "c_of_smaller_size",
        "v_mfma_f32_32x32x16_fp8_fp8 v[8:23], v[2:3], v[4:5], 0",
        "v_mfma_f32_16x16x32_fp8_fp8 v[8:11], v[2:3], v[4:5], v[8:11]",
        9,
    )
    yield (
        "c_of_larger_size",
        "v_mfma_f32_16x16x32_fp8_fp8 v[8:11], v[2:3], v[4:5], 0",
        "v_mfma_f32_32x32x16_fp8_fp8 v[8:23], v[2:3], v[4:5], v[8:23]",
        5,
    )


def _pairs() -> Iterator[Pair]:
    for number, (name, first, second, need) in enumerate(_rules()):
        size = "16" if "16x16" in first + second and "32x32" not in first + second else "32"
        short, enough = _gap(need - 1, number), _gap(need, number)
        yield Pair(f"{name}_{size}", f"{SETUP}{first}\n@\nBUG {second}\n", short, enough, lane=-1, wave=0)
    product = "v_mfma_f32_16x16x32_fp8_fp8 v[8:11], v[2:3], v[4:5], 0"
    taken = f"{SETUP}{product}\ns_cmp_eq_u32 s2, 0\ns_cbranch_scc1 L1\ns_nop 15\nL1: @\nBUG v_mov_b32 v50, v8\n"
    yield Pair("taken_branch", taken, "s_nop 3", "s_nop 4", -1, 0, 0)
    yield Pair(
        "only_workgroup_1", taken.replace("s_cmp_eq_u32 s2, 0", "s_cmp_eq_u32 s2, 1"), "s_nop 3", "s_nop 4", -1, 0, 1
    )
    around = "s_mov_b32 s20, 3\nL1: @\nBUG v_max_f32 v9, v9, v9\ns_nop 1\nv_mfma_f32_16x16x32_fp8_fp8 v[8:11], v[2:3], v[4:5], v[8:11]\ns_sub_u32 s20, s20, 1\ns_cmp_lg_u32 s20, 0\ns_cbranch_scc1 L1\n"
    yield Pair("back_edge", SETUP + around, "s_nop 2", "s_nop 3", -1, 0, 0)
    yield Pair(
        "first_of_two_products",
        f"{SETUP}{product}\nv_mfma_f32_32x32x16_fp8_fp8 v[24:39], v[2:3], v[4:5], 0\n@\nBUG v_mov_b32 v50, v8\n",
        "s_nop 4",
        "s_nop 5",
        -1,
        0,
        0,
    )


PAIRS = list(_pairs())
_P = "v_mfma_f32_16x16x32_fp8_fp8 v[8:11], v[2:3], v[4:5], "
_L = "v_mfma_f32_32x32x16_fp8_fp8 v[8:23], v[2:3], v[4:5], "
# No rule asks for a state here.
CLEAN = {
    "accumulate": f"{_P}0\n{_P}v[8:11]\n{_P}v[8:11]", "accumulate_large": f"{_L}0\n{_L}v[8:23]\n{_L}v[8:23]", "written_again": f"{_P}0\n{_P}0",
    "operands_overwritten": f"{_P}0\nv_mov_b32 v2, 0\nds_read_b32 v4, v1", "others_read": f"{_L}0\nv_mov_b32 v50, v24\nglobal_store_dword v1, v7, s[6:7]\nv_mov_b32 v7, 0",
    "read_by_nobody": f"{_P}0\ns_nop 0", "scalar_exec": f"s_mov_b64 exec, -1\n{_P}0", "scalar_after": f"{_P}0\ns_mov_b32 s8, 0\ns_add_u32 s8, s8, 1",
    "compare_to_vcc": f"v_cmp_eq_u32 vcc, v2, v2\n{_P}0", "same_agprs": "v_mfma_f32_16x16x32_fp8_fp8 a[8:11], v[2:3], v[4:5], a[8:11]\nv_mov_b32 v50, v8",
    "loaded_operand": f"ds_read_b64 v[2:3], v0\ns_waitcnt lgkmcnt(0)\n{_P}0",
}  # fmt: skip
CLEAN = {
    name: SETUP
    + ("v_lshlrev_b32 v0, 3, v0\ns_nop 0\nds_write_b64 v0, v[6:7]\n" if name == "loaded_operand" else "")
    + body
    for name, body in CLEAN.items()
}
