# SPDX-License-Identifier: Apache-2.0
"""Seeded bugs of order within a wave, in assembly: waits that are missing or too lenient, matrix results used too early.

`bug` labels the instruction at which the fault must be found. The clean twin has the wait that the faulty form lacks.
"""

from __future__ import annotations

from tests.gfx942_assembly import Source, text_of
from tests.seeded import Bug

PROLOGUE = "\n".join([
    "s_load_dwordx4 s[4:7], s[0:1], 0x0", "s_waitcnt lgkmcnt(0)", "v_lshlrev_b32 v1, 2, v0", "s_mov_b64 s[8:9], s[4:5]", "s_mov_b32 s10, 0x1000",
    "s_mov_b32 s11, 0x27000", "v_mov_b32 v20, s4", "v_mov_b32 v21, s5", *(f"v_mov_b32 v{n}, 0" for n in (*range(2, 8), *range(22, 70))),
    *(f"v_accvgpr_write_b32 a{n}, 0" for n in range(20)), "ds_write_b32 v1, v2", "s_waitcnt lgkmcnt(0)", "s_nop 4",
])  # fmt: skip
BUFFER = 4096  # bytes of each of the two arrays
WAVE = {"wave": 0, "workgroup": 0}


def assembly_of(forms: dict[str, str]) -> str:
    """All kernels in one file. Labels get the kernel's name, because they are the file's."""
    sources = [Source(name, f"{PROLOGUE}\n{body.replace('$', name)}", lds=4096, vgprs=128, accum_offset=96, directives=".amdhsa_private_segment_fixed_size 64")
               for name, body in forms.items()]  # fmt: skip
    return text_of(*sources)


def _form(name: str, kind: str, before: str, wait: str, after: str, lenient: str = "", **place: int) -> Bug:
    """`after` begins with the instruction that must not come so early."""
    return Bug(name, kind, f"{before}\n{lenient}\nbug_$: {after}", f"{before}\n{wait}\n{after}", **(WAVE | place))


# -- waits -----------------------------------------------------------------------------------------------------------------
# v30 (and beyond) is being loaded
LOADS = {
    "global": ("global_load_dword v30, v1, s[4:5]", "vmcnt(0)"), "global_x4": ("global_load_dwordx4 v[28:31], v2, s[4:5]", "vmcnt(0)"),
    "buffer": ("buffer_load_dword v30, v1, s[8:11], 0 offen", "vmcnt(0)"), "flat": ("flat_load_dword v30, v[20:21]", "vmcnt(0) lgkmcnt(0)"),
    "lds": ("ds_read_b32 v30, v1", "lgkmcnt(0)"), "lds_pair": ("ds_read2_b32 v[30:31], v1 offset1:1", "lgkmcnt(0)"),
    "permuted": ("ds_bpermute_b32 v30, v1, v2", "lgkmcnt(0)"), "atomic": ("global_atomic_add v30, v1, v2, s[4:5] sc0", "vmcnt(0)"),
    "byte": ("global_load_ubyte v30, v1, s[4:5]", "vmcnt(0)"), "scratch": ("scratch_store_dword off, v2, s2\ns_waitcnt vmcnt(0)\nscratch_load_dword v30, off, s2", "vmcnt(0)"),
}  # fmt: skip
USES = {
    "computed": "v_add_u32 v32, v30, v2", "overwritten": "v_mov_b32 v30, 0", "stored": "global_store_dword v1, v30, s[6:7]",
    "address": "global_load_dword v32, v30, s[4:5]", "compared": "v_cmp_eq_u32 vcc, v30, v2", "matrix": "v_mfma_f32_16x16x32_fp8_fp8 v[40:43], v[30:31], v[2:3], 0",
    "read_lane": "v_readfirstlane_b32 s20, v30", "lds_data": "ds_write_b32 v1, v30",
}  # fmt: skip


def missing_waits() -> list[Bug]:
    kind = "missing s_waitcnt"
    bugs = [_form(f"wait_{load}_{use}", kind, before, f"s_waitcnt {counters}", after, lane=0)
            for load, (before, counters) in LOADS.items() for use, after in USES.items() if (load, use) != ("lds", "lds_data")]  # fmt: skip
    two = "global_load_dword v30, v1, s[4:5]\nglobal_load_dword v31, v1, s[4:5]"
    scalar = "s_load_dword s20, s[4:5], 0x0"
    more = [
        ("second_of_two", two, "s_waitcnt vmcnt(0)", "v_add_u32 v32, v31, v2", "s_waitcnt vmcnt(1)", 0),
        ("store_counts_too", two + "\nglobal_store_dword v1, v2, s[6:7]", "s_waitcnt vmcnt(1)", "v_add_u32 v32, v31, v2", "s_waitcnt vmcnt(2)", 0),
        ("wrong_counter", "global_load_dword v30, v1, s[4:5]", "s_waitcnt vmcnt(0)", "v_add_u32 v32, v30, v2", "s_waitcnt lgkmcnt(0)", 0),
        ("lds_second", "ds_read_b32 v30, v1\nds_read_b32 v31, v1", "s_waitcnt lgkmcnt(0)", "v_add_u32 v32, v31, v2", "s_waitcnt lgkmcnt(1)", 0),
        ("lds_before_scalar", "ds_read_b32 v30, v1\ns_load_dword s20, s[4:5], 0x0", "s_waitcnt lgkmcnt(0)", "v_mov_b32 v32, s20", "s_waitcnt lgkmcnt(1)", -1),
        ("scalar_to_vector", scalar, "s_waitcnt lgkmcnt(0)", "v_mov_b32 v32, s20", "", -1),
        ("scalar_to_scalar", scalar, "s_waitcnt lgkmcnt(0)", "s_add_u32 s21, s20, 1", "", -1),
        ("scalar_overwritten", scalar, "s_waitcnt lgkmcnt(0)", "s_mov_b32 s20, 0", "", -1),
        ("scalar_address", "s_load_dwordx2 s[20:21], s[0:1], 0x0", "s_waitcnt lgkmcnt(0)", "global_load_dword v32, v1, s[20:21]", "", -1),
        ("scalars_answer_in_any_order", scalar + "\ns_load_dword s22, s[4:5], 0x4", "s_waitcnt lgkmcnt(0)", "s_add_u32 s21, s20, 1", "s_waitcnt lgkmcnt(1)", -1),
        ("one_branch_waits", "global_load_dword v30, v1, s[4:5]\ns_cmp_eq_u32 s2, 0\ns_cbranch_scc1 over_$\ns_waitcnt vmcnt(0)\nover_$:", "s_waitcnt vmcnt(0)", "v_add_u32 v32, v30, v2", "", 0),
        ("carried_by_a_loop", "s_mov_b32 s20, 2\nturn_$: global_load_dword v30, v1, s[4:5]\ns_sub_u32 s20, s20, 1\ns_cmp_lg_u32 s20, 0\ns_cbranch_scc1 turn_$", "s_waitcnt vmcnt(0)",
         "v_add_u32 v32, v30, v2", "", 0),
        ("condition", "s_load_dwordx2 vcc, s[4:5], 0x0", "s_waitcnt lgkmcnt(0)", "s_cbranch_vccnz out_$\nout_$: s_nop 0", "", -1),
    ]  # fmt: skip
    return bugs + [
        _form(f"wait_{name}", kind, before, wait, after, lenient, lane=lane)
        for name, before, wait, after, lenient, lane in more
    ]


# What needs no wait: stores read their data when they are issued, and answers of one counter come in order.
NO_WAIT_NEEDED = {
    "store_data_overwritten": "global_store_dword v1, v2, s[6:7]\nv_mov_b32 v2, 1", "lds_data_overwritten": "ds_write_b32 v1, v2\nv_mov_b32 v2, 1",
    "first_of_two": "global_load_dword v30, v1, s[4:5]\nglobal_load_dword v31, v1, s[4:5]\ns_waitcnt vmcnt(1)\nv_add_u32 v32, v30, v2\ns_waitcnt vmcnt(0)",
    "loaded_twice": "global_load_dword v30, v1, s[4:5]\nglobal_load_dword v30, v1, s[4:5]\ns_waitcnt vmcnt(0)\nv_add_u32 v32, v30, v2",
    "first_of_two_from_lds": "ds_read_b32 v30, v1\nds_read_b32 v31, v1\ns_waitcnt lgkmcnt(1)\nv_add_u32 v32, v30, v2\ns_waitcnt lgkmcnt(0)",
    "other_registers": "global_load_dword v30, v1, s[4:5]\nv_add_u32 v32, v31, v2\ns_waitcnt vmcnt(0)",
}  # fmt: skip

# -- matrix results --------------------------------------------------------------------------------------------------------
SMALL, LARGE = "v_mfma_f32_16x16x32_fp8_fp8", "v_mfma_f32_32x32x16_fp8_bf8"


def filler(states: int, *, instructions: bool) -> str:
    """Exactly that many wait states: s_nop, or instructions that have nothing to do with it."""
    if states == 0:
        return ""
    return "\n".join(["v_mov_b32 v69, v1"] * states) if instructions else f"s_nop {states - 1}"


def matrix_hazards() -> list[Bug]:
    cases: list[tuple[str, str, str, int]] = []
    for passes, form, last in ((4, SMALL, 43), (8, LARGE, 55)):
        product = f"{form} v[40:{last}], v[2:3], v[4:5], v[40:{last}]"
        other_c = f"{form} v[40:{last}], v[2:3], v[4:5], {'v[56:59]' if passes == 4 else 'v[24:39]'}"
        in_agprs = f"{form} a[0:{last - 40}], v[2:3], v[4:5], a[0:{last - 40}]"
        cases += [(f"{name}_{passes}", producer, consumer, need) for name, producer, consumer, need in (
            ("computed", product, "v_add_f32 v30, v41, v2", passes + 3), ("overwritten", product, "v_mov_b32 v42, 0", passes + 3),
            ("stored", product, "global_store_dword v1, v40, s[6:7]", passes + 3), ("buffer_stored", product, "buffer_store_dword v43, v1, s[8:11], 0 offen", passes + 3),
            ("to_lds", product, "ds_write_b32 v1, v40", passes + 3), ("loaded_over", product, "ds_read_b32 v41, v1", passes + 3),
            ("as_a", product, f"{SMALL} v[60:63], v[40:41], v[4:5], 0", passes + 3), ("as_b", product, f"{SMALL} v[60:63], v[2:3], v[42:43], 0", passes + 3),
            ("as_part_of_c", product, f"{SMALL} v[60:63], v[2:3], v[4:5], v[42:45]", passes + 1), ("addend_overwritten", other_c, f"v_mov_b32 v{57 if passes == 4 else 37}, 0", passes - 1),
            ("to_scalar", product, "v_readfirstlane_b32 s20, v40", passes + 3), ("packed", product, "v_pk_add_f32 v[30:31], v[40:41], v[2:3]", passes + 3),
            ("from_agpr", in_agprs, "v_accvgpr_read_b32 v30, a1", passes + 3), ("compared", product, "v_cmp_lt_f32 vcc, v43, v2", passes + 3),
        )]  # fmt: skip
    cases += [
        ("written_a", "v_mov_b32 v2, 0", f"{SMALL} v[60:63], v[2:3], v[4:5], 0", 2), ("written_b", "v_mov_b32 v5, 0", f"{SMALL} v[60:63], v[2:3], v[4:5], 0", 2),
        ("written_c", "v_mov_b32 v61, 0", f"{SMALL} v[60:63], v[2:3], v[4:5], v[60:63]", 2), ("written_exec", "v_cmpx_eq_u32 vcc, v2, v2", f"{SMALL} v[60:63], v[2:3], v[4:5], 0", 4),
    ]  # fmt: skip
    bugs = []
    for number, (name, producer, consumer, need) in enumerate(cases):
        plain = bool(number % 2)
        bugs.append(
            _form(
                f"hazard_{name}",
                "MFMA hazard",
                producer,
                filler(need, instructions=plain),
                consumer,
                filler(need - 1, instructions=plain),
                lane=-1,
            )
        )
    product = f"{SMALL} v[40:43], v[2:3], v[4:5], 0"
    across = f"{product}\ns_branch over_$\nover_$:"  # the branch is one state
    around = f"s_mov_b32 s20, 2\nturn_$: {product}\ns_sub_u32 s20, s20, 1\ns_cmp_lg_u32 s20, 0\ns_cbranch_scc1 turn_$"  # three states
    bugs.append(
        _form("hazard_across_a_branch", "MFMA hazard", across, "s_nop 5", "v_add_f32 v30, v41, v2", "s_nop 4", lane=-1)
    )
    bugs.append(
        _form("hazard_behind_a_loop", "MFMA hazard", around, "s_nop 3", "v_add_f32 v30, v41, v2", "s_nop 2", lane=-1)
    )
    return bugs


# An accumulation in place is ordered by the hardware, and so are two products that write the same registers.
NO_HAZARD = {
    "accumulation": f"{SMALL} v[40:43], v[2:3], v[4:5], v[40:43]\n{SMALL} v[40:43], v[2:3], v[4:5], v[40:43]\ns_nop 6",
    "accumulation_32": f"{LARGE} v[40:55], v[2:3], v[4:5], v[40:55]\n{LARGE} v[40:55], v[2:3], v[4:5], v[40:55]\ns_nop 10",
    "other_results": f"{SMALL} v[40:43], v[2:3], v[4:5], 0\nv_add_f32 v30, v44, v2\n{SMALL} v[44:47], v[2:3], v[4:5], 0\ns_nop 6",
    "operands_overwritten": f"{SMALL} v[40:43], v[2:3], v[4:5], 0\nv_mov_b32 v2, 0\nv_mov_b32 v4, 0\ns_nop 6",
}  # fmt: skip
CLASSES = {"missing s_waitcnt": missing_waits(), "MFMA hazard": matrix_hazards()}
