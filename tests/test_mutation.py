# SPDX-License-Identifier: Apache-2.0
"""Mutants of small hand-made code: each kind changes what it says and nothing else, in the same number of bytes."""

from __future__ import annotations

import json
from collections import Counter
from itertools import islice

import numpy as np
import pytest

from parity.gfx942 import ExecutionFault, Kernel, Unsupported, launch, load
from parity.gfx942.decode import Instruction, decode, decode_one
from parity.gfx942.mutation import Code, Mutation, code_of, draw, mutants_at, mutants_of, mutated, probe
from parity.gfx942.mutation_edits import KINDS, edits, neighbours
from parity.gfx942.mutation_tables import COMMUTATIVE, NEIGHBOURS, PLACES, TABLES
from tests.gfx942_assembly import Source, allocations, machine_code, pointer, text_of

# Writes its lane's number plus 2 to the second buffer, through LDS, a barrier and a lane swap.
BODY = """
s_load_dwordx4 s[4:7], s[0:1], 0x0
v_lshlrev_b32_e32 v1, 2, v0
v_add_u32_e32 v2, 2, v0
ds_write_b32 v1, v2
s_waitcnt lgkmcnt(0)
s_barrier
ds_read_b32 v4, v1
s_waitcnt lgkmcnt(0)
v_mov_b32_dpp v4, v4 row_mirror row_mask:0xf bank_mask:0xf
s_cmp_eq_u32 s2, 0
s_cbranch_scc0 over
global_store_dword v1, v4, s[6:7]
over:
"""


@pytest.fixture(scope="module")
def kernel() -> Kernel:
    return load(text_of(Source("small", BODY, lds=512)))


def run(kernel: Kernel) -> np.ndarray:
    """What the kernel leaves in its second buffer, 128 dwords, from two waves."""
    given, result = np.zeros(128, np.uint32), np.zeros(128, np.uint32)
    memory = allocations(given=given, result=result)
    launch(kernel, [pointer(given), pointer(result)], (1, 1, 1), (128, 1, 1), memory, step_limit=10_000)
    return result


def one(kernel: Kernel, old: str, new: str) -> Mutation:
    """The mutant of an instruction that reads so afterwards."""
    found = [part for part in mutants_of(code_of(kernel)) if part.old == old and part.new == new]
    assert len(found) == 1, [part.new for part in mutants_of(code_of(kernel)) if part.old == old]
    return found[0]


def decoded(lines: str) -> list[Instruction]:
    return decode(machine_code([*lines.splitlines(), "s_endpgm"]))


@pytest.mark.parametrize(
    ("kind", "old", "new"),
    [
        ("operand", "v_add_u32_e32 v2, 2, v0", "v_add_u32_e32 v2, 2, v1"),
        ("operand", "v_add_u32_e32 v2, 2, v0", "v_add_u32_e32 v3, 2, v0"),
        ("operand", "global_store_dword v1, v4, s[6:7]", "global_store_dword v1, v4, s[4:5]"),
        ("opcode", "v_add_u32_e32 v2, 2, v0", "v_sub_u32_e32 v2, 2, v0"),
        ("opcode", "v_lshlrev_b32_e32 v1, 2, v0", "v_lshrrev_b32_e32 v1, 2, v0"),
        ("opcode", "s_cmp_eq_u32 s2, 0", "s_cmp_lg_u32 s2, 0"),
        ("opcode", "ds_read_b32 v4, v1", "ds_read_b64 v[4:5], v1"),
        ("immediate", "v_add_u32_e32 v2, 2, v0", "v_add_u32_e32 v2, 3, v0"),
        ("immediate", "ds_read_b32 v4, v1", "ds_read_b32 v4, v1 offset:4"),
        ("immediate", "global_store_dword v1, v4, s[6:7]", "global_store_dword v1, v4, s[6:7] offset:16"),
        ("wait", "s_waitcnt lgkmcnt(0)", "s_nop 0"),
        ("wait", "s_waitcnt lgkmcnt(0)", "s_waitcnt lgkmcnt(1)"),
        ("barrier", "s_barrier", "s_nop 0"),
        ("lanes", "v_mov_b32_dpp v4, v4 row_mirror row_mask:0xf bank_mask:0xf",
         "v_mov_b32_dpp v4, v4 row_half_mirror row_mask:0xf bank_mask:0xf"),
        ("lanes", "v_mov_b32_dpp v4, v4 row_mirror row_mask:0xf bank_mask:0xf",
         "v_mov_b32_dpp v4, v4 row_mirror row_mask:0x7 bank_mask:0xf"),
        ("drop", "v_add_u32_e32 v2, 2, v0", "s_nop 0"),
        ("drop", "ds_read_b32 v4, v1", "s_nop 0; s_nop 0"),
        ("branch", "s_cbranch_scc0 2", "s_cbranch_scc1 2"),
        ("branch", "s_cbranch_scc0 2", "s_branch 2"),
        ("branch", "s_cbranch_scc0 2", "s_nop 0"),
    ],
)  # fmt: skip
def test_each_kind_changes_what_it_says(kernel: Kernel, kind: str, old: str, new: str) -> None:
    found = [part for part in mutants_of(code_of(kernel)) if (part.kind, part.old, part.new) == (kind, old, new)]
    assert found
    for part in found:
        assert len(part.new_code) == len(part.old_code)
        assert kernel.text[part.pc :].startswith(bytes.fromhex(part.old_code))


def test_every_mutant_of_a_field_differs_in_that_field_alone(kernel: Kernel) -> None:
    checked = 0
    for instruction in code_of(kernel).instructions:
        for edit in edits(instruction):
            if not edit.field or not any(part.note == edit.note for part in mutants_at(code_of(kernel), instruction)):
                continue
            after = decode_one(b"".join(word.to_bytes(4, "little") for word in edit.words), 0)
            differ = {name for name in after.fields if after.fields[name] != instruction.fields[name]}
            if edit.field == "op":
                assert after.name != instruction.name
                assert not differ
            else:
                assert after.name == instruction.name
                assert differ == set(edit.field.split())
            checked += 1
    assert checked > 60


def test_swapped_sources_are_drawn_where_the_order_counts_alone() -> None:
    code = decoded("""v_sub_f32_e32 v1, v2, v3
v_add_f32_e32 v1, v2, v3
v_cndmask_b32_e64 v1, v2, v3, s[4:5]
v_mfma_f32_16x16x32_fp8_fp8 v[4:7], v[8:9], v[10:11], v[4:7]
v_fma_f32 v1, v2, v3, v4
v_add3_u32 v1, v2, v3, v4
s_sub_i32 s4, s5, s6
s_and_b32 s4, s5, s6
v_cmp_lt_i32_e64 s[4:5], v2, v3
v_cmp_eq_u32_e64 s[4:5], v2, v3""")
    swapped = {part.name: [edit.note for edit in edits(part) if "swapped" in edit.note] for part in code[:-1]}
    assert swapped == {
        "v_sub_f32": ["src0 and vsrc1 swapped"], "v_add_f32": [],
        "v_cndmask_b32": ["src0 and src1 swapped", "src1 and src2 swapped"],
        "v_mfma_f32_16x16x32_fp8_fp8": ["src0 and src1 swapped", "src1 and src2 swapped"],
        "v_fma_f32": ["src1 and src2 swapped"], "v_add3_u32": [], "s_sub_i32": ["ssrc0 and ssrc1 swapped"], "s_and_b32": [],
        "v_cmp_lt_i32": ["src0 and src1 swapped", "src1 and src2 swapped"], "v_cmp_eq_u32": ["src1 and src2 swapped"],
    }  # fmt: skip


def test_what_only_times_has_no_mutants() -> None:
    code = decoded(
        "s_setprio 1\ns_nop 0\ns_sleep 1\nbuffer_inv sc1\ns_waitcnt vmcnt(63) lgkmcnt(15)\ns_cbranch_execz 0"
    )
    notes = {part.name: [edit.note for edit in edits(part)] for part in code}
    assert notes.pop("s_cbranch_execz") == ["condition turned round", "always taken"]
    assert set(map(tuple, notes.values())) == {()}


def test_wait_states_and_counters_are_relaxed() -> None:
    code = decoded("s_nop 4\ns_waitcnt vmcnt(17) lgkmcnt(3)")
    assert [edit.note for edit in edits(code[0])] == ["4 wait states fewer", "1 wait states fewer"]
    assert [edit.note for edit in edits(code[1])] == [
        "dropped", "vmcnt 17 relaxed to 18", "vmcnt 17 relaxed to 63", "lgkmcnt 3 relaxed to 4", "lgkmcnt 3 relaxed to 15"]  # fmt: skip
    values = [decode_one(edit.words[0].to_bytes(4, "little"), 0).fields["simm16"] for edit in edits(code[1])][1:]
    assert values == [0x4372, 0xC37F, 0x4471, 0x4F71]


def test_unused_fields_and_what_no_assembler_writes_are_no_mutants(kernel: Kernel) -> None:
    mutants = list(mutants_of(code_of(kernel)))
    assert not [part for part in mutants if part.old.startswith("s_load") and "s[1:2]" in part.new]  # unaligned
    assert not [
        part for part in mutants if "[" in part.new.replace("v[", "").replace("s[", "")
    ]  # bytes for want of a text
    read = [part for part in mutants if part.old == "ds_read_b32 v4, v1" and part.kind == "operand"]
    assert {part.note.split()[0] for part in read} == {"vdst", "addr"}  # data0 and data1 are not read


def test_the_tables_say_what_exists() -> None:
    names = {name for table in TABLES.values() for name in table.values()}
    for left, right in NEIGHBOURS:
        works = [
            name for name in names for other in neighbours(name) if left in name and other in names and right in other
        ]
        assert works, (left, right)
    for table in PLACES.values():
        assert all(low + width <= 32 and word < 2 for word, low, width in table.values())
    assert COMMUTATIVE.count("(") == COMMUTATIVE.count(")")


def test_drawing_is_even_over_kinds_without_repetition_and_repeatable(kernel: Kernel) -> None:
    code = code_of(kernel)
    everything = {(part.pc, part.new_code) for part in mutants_of(code)}
    drawn = list(draw([code], 7))
    assert {(part.pc, part.new_code) for part in drawn} == everything
    assert len(drawn) == len(everything)
    assert drawn == list(draw([code], 7))
    assert drawn[:20] != list(islice(draw([code], 8), 20))
    early = Counter(part.kind for part in drawn[:24])
    assert set(early) == set(KINDS)
    assert max(early.values()) <= 9


def test_code_survives_json(kernel: Kernel) -> None:
    code = code_of(kernel)
    assert Code.from_json(json.loads(json.dumps(code.to_json()))) == code


def test_a_mutant_runs_and_its_probe_stops_where_it_stands(kernel: Kernel) -> None:
    lanes = np.arange(128)
    expected = lanes // 16 * 16 + 15 - lanes % 16 + 2
    assert (run(kernel) == expected).all()
    changed = mutated(kernel, one(kernel, "v_add_u32_e32 v2, 2, v0", "v_add_u32_e32 v2, 3, v0"))
    assert (run(changed) == expected + 1).all()
    assert changed.sha256 != kernel.sha256
    stop = probe(one(kernel, "s_barrier", "s_nop 0"))
    with pytest.raises(Unsupported, match="SOPP opcode 23"):
        run(mutated(kernel, stop))
    never = one(kernel, "s_cbranch_scc0 2", "s_branch 2")
    assert (run(mutated(kernel, never)) == 0).all()
    skipped = probe(one(kernel, "global_store_dword v1, v4, s[6:7]", "s_nop 0; s_nop 0"))
    both = mutated(mutated(kernel, never), Mutation(**{**vars(skipped), "sha256": mutated(kernel, never).sha256}))
    assert (run(both) == 0).all()


def test_a_dropped_wait_and_barrier_are_seen_by_the_executor(kernel: Kernel) -> None:
    barrier = mutated(kernel, one(kernel, "s_barrier", "s_nop 0"))
    assert (run(barrier) == run(kernel)).all()  # each lane reads its own word: the barrier is there for nothing
    waits = [part for part in mutants_of(code_of(kernel)) if part.kind == "wait" and part.new == "s_nop 0"]
    assert (run(mutated(kernel, waits[0])) == run(kernel)).all()  # LDS serves one wave in order
    with pytest.raises(ExecutionFault, match="missing s_waitcnt"):
        run(mutated(kernel, waits[1]))


def test_a_mutation_of_other_code_is_refused(kernel: Kernel) -> None:
    mutation = one(kernel, "s_barrier", "s_nop 0")
    for changes in ({"sha256": "0" * 64}, {"symbol": "large"}, {"pc": 0}, {"new_code": "000080bf000080bf"}):
        with pytest.raises(ValueError, match="is not a mutation of small"):
            mutated(kernel, Mutation(**{**vars(mutation), **changes}))
