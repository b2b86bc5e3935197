# SPDX-License-Identifier: Apache-2.0
"""Control flow: branches, loops, EXEC, waves that part and meet again, barriers, the end of the program."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from parity.gfx942 import ExecutionFault, Fidelity, Kernel, LaunchReport, Unsupported, launch
from parity.gfx942.code_object import assemble
from tests.gfx942_assembly import Source, allocations, pointer, text_of
from tests.gfx942_on_gpu import assembled, run_kernel
from tests.gfx942_state import UNTOUCHED, Before, execute, kernels, run

BRANCHES = {  # branch: registers with which it is taken, and not taken
    "s_branch": (Before(), None),
    "s_cbranch_scc0": (Before(scc=0), Before(scc=1)),
    "s_cbranch_scc1": (Before(scc=1), Before(scc=0)),
    "s_cbranch_vccz": (Before(vcc=0), Before(vcc=1 << 63)),
    "s_cbranch_vccnz": (Before(vcc=1 << 32), Before(vcc=0)),
    "s_cbranch_execz": (Before(execute=0), Before(execute=1 << 40)),
    "s_cbranch_execnz": (Before(execute=2), Before(execute=0)),
}


def test_branches_taken_and_not() -> None:
    bodies = {
        name: f"s_mov_b32 s16, 1\n{name} {name}_end\ns_mov_b32 s16, 2\n{name}_end:\ns_mov_b32 s17, 3"
        for name in BRANCHES
    }
    for name, kernel in kernels(bodies).items():
        taken, not_taken = BRANCHES[name]
        results = run(kernel, [taken] if not_taken is None else [taken, not_taken, taken])
        assert [after.s[16] for after in results] == [1, 2, 1][: len(results)], name
        assert {after.s[17] for after in results} == {3}, name


def test_backward_branch_loops_until_its_own_count() -> None:
    """Three waves in one loop with 1, 5 and 3 turns: they part and meet behind it."""
    body = "s_mov_b32 s16, 0\nloop:\ns_add_u32 s16, s16, s9\ns_sub_u32 s8, s8, 1\ns_cmp_lg_u32 s8, 0\ns_cbranch_scc1 loop\ns_mov_b32 s17, 7"
    results = run(kernels({"k": body})["k"], [Before(scalars=[turns, 10]) for turns in (1, 5, 3)])
    assert [(after.s[16], after.s[17]) for after in results] == [(10, 7), (50, 7), (30, 7)]


def test_nested_loops_with_unlike_counts() -> None:
    body = """s_mov_b32 s16, 0
    outer: s_mov_b32 s18, s9
    inner: s_add_u32 s16, s16, 1
    s_sub_u32 s18, s18, 1
    s_cmp_lg_u32 s18, 0
    s_cbranch_scc1 inner
    s_sub_u32 s8, s8, 1
    s_cmp_lg_u32 s8, 0
    s_cbranch_scc1 outer"""
    counts = [(1, 1), (3, 4), (2, 7), (5, 1)]
    results = run(kernels({"k": body})["k"], [Before(scalars=pair) for pair in counts])
    assert [after.s[16] for after in results] == [outer * inner for outer, inner in counts]


def test_waves_on_unlike_paths_meet_again() -> None:
    """A three-way branch: each wave sees its own path only, and all see what follows."""
    body = """s_cmp_eq_u32 s8, 0
    s_cbranch_scc1 zero
    s_cmp_eq_u32 s8, 1
    s_cbranch_scc1 one
    s_mov_b32 s16, 0x222
    v_mov_b32 v10, 2
    s_branch join
    one: s_mov_b32 s16, 0x111
    v_mov_b32 v10, 1
    s_branch join
    zero: s_mov_b32 s16, 0
    v_mov_b32 v11, 9
    join: s_add_u32 s17, s16, 1
    v_add_u32 v12, v10, v10"""
    order = [2, 0, 1, 1, 0, 2, 2]
    results = run(kernels({"k": body})["k"], [Before(scalars=[way]) for way in order])
    assert [after.s[16] for after in results] == [[0, 0x111, 0x222][way] for way in order]
    assert [after.s[17] for after in results] == [[1, 0x112, 0x223][way] for way in order]
    for way, after in zip(order, results, strict=True):
        assert after.lanes(10) == [[UNTOUCHED + 10, 1, 2][way]] * 64
        assert after.lanes(11) == [9 if way == 0 else UNTOUCHED + 11] * 64
        assert after.lanes(12) == [(2 * [UNTOUCHED + 10, 1, 2][way]) & 0xFFFFFFFF] * 64


def test_lanes_on_unlike_paths() -> None:
    """if (v2 < 3) v10 = 1 else v10 = 2, as a compiler writes it."""
    body = """v_cmp_gt_u32 vcc, 3, v2
    s_and_saveexec_b64 s[16:17], vcc
    s_xor_b64 s[16:17], exec, s[16:17]
    s_cbranch_execz otherwise
    v_mov_b32 v10, 1
    otherwise: s_andn2_saveexec_b64 s[16:17], s[16:17]
    s_cbranch_execz join
    v_mov_b32 v10, 2
    join: s_or_b64 exec, exec, s[16:17]
    v_mov_b32 v11, v10"""
    results = run(kernels({"k": body})["k"], [Before(vectors={2: range(first, first + 64)}) for first in (0, 3)])
    assert results[0].lanes(10) == results[0].lanes(11) == [1] * 3 + [2] * 61
    assert results[1].lanes(10) == results[1].lanes(11) == [2] * 64
    assert [after.execute for after in results] == [0xFFFFFFFFFFFFFFFF] * 2


def test_exec_written_by_halves() -> None:
    after = execute(
        "s_mov_b32 exec_lo, 0xf\ns_mov_b32 exec_hi, 0\nv_mov_b32 v10, 1\ns_mov_b32 exec_hi, 1\nv_mov_b32 v11, 2"
    )
    assert after.lanes(10) == [1] * 4 + [UNTOUCHED + 10] * 60
    assert [lane for lane in range(64) if after.v[11][lane] == 2] == [0, 1, 2, 3, 32]


def test_waits_and_hints_change_nothing() -> None:
    after = execute(
        "s_nop 7\ns_waitcnt vmcnt(0) lgkmcnt(0)\ns_setprio 3\ns_sleep 1\nv_nop\nbuffer_inv sc1\nbuffer_wbl2 sc1\nv_mov_b32 v10, 1"
    )
    assert after.lanes(10, 1) == [1]


# -- barriers ----------------------------------------------------------------------------------------------------------
def groups_kernel(body: str, lds: int) -> Kernel:
    text = f"s_load_dwordx2 s[4:5], s[0:1], 0x0\ns_waitcnt lgkmcnt(0)\n{body}"
    code = assemble(text_of(Source("k", text, ((8, "global_buffer"),), lds=lds)))
    return assembled(code, "k", instructions=body)


def run_groups(body: str, out: np.ndarray, *, groups: int, block: int, lds: int = 0, checks: bool = True) -> None:
    """On either device."""
    grid, size = (groups, 1, 1), (block, 1, 1)
    run_kernel(groups_kernel(body, lds), [pointer(out)], grid, size, allocations(out=out), checks=checks)


def launch_groups(body: str, out: np.ndarray, *, groups: int, block: int, **options: Any) -> LaunchReport:
    """In the executor: for reports and faults."""
    grid, size = (groups, 1, 1), (block, 1, 1)
    return launch(groups_kernel(body, 0), [pointer(out)], grid, size, allocations(out=out), **options)


def test_barrier_orders_lds_between_waves() -> None:
    """Work-item i writes LDS[i], waits, reads its mirror image, which another wave wrote; two workgroups, own LDS each."""
    body = """s_mul_i32 s6, s2, 1000
    v_lshlrev_b32 v1, 2, v0
    v_add_u32 v2, s6, v0
    ds_write_b32 v1, v2
    s_waitcnt lgkmcnt(0)
    s_barrier
    v_sub_u32 v3, 0x3fc, v1
    ds_read_b32 v4, v3
    s_waitcnt lgkmcnt(0)
    s_lshl_b32 s7, s2, 10
    v_add_u32 v5, s7, v1
    global_store_dword v5, v4, s[4:5]"""
    out = np.zeros(2 * 256, np.uint32)
    run_groups(body, out, groups=2, block=256, lds=1024)
    assert out.tolist() == [group * 1000 + 255 - item for group in range(2) for item in range(256)]


def test_a_wave_before_the_barrier_is_waited_for() -> None:
    """Wave 1 takes the long way to the barrier; wave 0 must not pass it early, and an ended wave holds nobody up (checks off:
    with them its end is a fault)."""
    body = """v_readfirstlane_b32 s6, v0
    s_cmp_eq_u32 s6, 128
    s_cbranch_scc1 out
    s_cmp_eq_u32 s6, 0
    s_cbranch_scc1 wait
    s_movk_i32 s7, 9
    spin: s_sub_u32 s7, s7, 1
    s_cmp_lg_u32 s7, 0
    s_cbranch_scc1 spin
    v_mov_b32 v1, 0
    v_mov_b32 v2, 77
    ds_write_b32 v1, v2
    s_waitcnt lgkmcnt(0)
    wait: s_barrier
    v_mov_b32 v1, 0
    ds_read_b32 v3, v1
    v_lshlrev_b32 v4, 2, v0
    s_waitcnt lgkmcnt(0)
    global_store_dword v4, v3, s[4:5]
    out: s_nop 0"""
    out = np.zeros(192, np.uint32)
    run_groups(body, out, groups=1, block=192, lds=64, checks=False)
    assert out.tolist() == [77] * 128 + [0] * 64


def test_barriers_in_a_loop() -> None:
    """Each turn passes a value one work-item on, through LDS and across waves; 8 turns move it 8 items."""
    body = """s_movk_i32 s7, 8
    v_lshlrev_b32 v1, 2, v0
    v_mov_b32 v2, v0
    v_add_u32 v5, 4, v1
    v_and_b32 v5, 0x1ff, v5
    turn: ds_write_b32 v1, v2
    s_waitcnt lgkmcnt(0)
    s_barrier
    ds_read_b32 v2, v5
    s_waitcnt lgkmcnt(0)
    s_barrier
    s_sub_u32 s7, s7, 1
    s_cmp_lg_u32 s7, 0
    s_cbranch_scc1 turn
    global_store_dword v1, v2, s[4:5]"""
    out = np.zeros(128, np.uint32)
    run_groups(body, out, groups=1, block=128, lds=512)
    assert out.tolist() == [(item + 8) % 128 for item in range(128)]


def test_counts_of_wave_instructions() -> None:
    report = launch_groups("s_nop 0\nv_mov_b32 v1, 0", np.zeros(1, np.uint32), groups=3, block=128)
    assert (report.instructions, report.waves, report.mfma, report.fidelity) == (6 * 5, 6, 0, Fidelity(6 * 5, 0, 0))


# -- programs that do not end well -----------------------------------------------------------------------------------
def test_step_limit() -> None:
    with pytest.raises(ExecutionFault, match="step limit: no end after 1000 instructions of a wave") as caught:
        launch_groups("forever: s_nop 0\ns_branch forever", np.zeros(1, np.uint32), groups=3, block=64, step_limit=1000)
    assert (caught.value.kernel, caught.value.workgroup, caught.value.wave) == ("k", (0, 0, 0), 0)
    assert 8 <= caught.value.pc <= 16


def test_step_limit_of_waves_that_part() -> None:
    body = "s_mov_b32 s6, 0\nforever: s_xor_b32 s6, s6, s2\ns_cmp_eq_u32 s6, 0\ns_cbranch_scc1 forever\ns_nop 0\ns_branch forever"
    with pytest.raises(ExecutionFault, match="step limit"):
        launch_groups(body, np.zeros(1, np.uint32), groups=2, block=64, step_limit=500)


def test_branch_out_of_the_code_is_refused() -> None:
    with pytest.raises(Unsupported, match="leaves the code"):
        launch_groups("s_branch 0x7fff", np.zeros(1, np.uint32), groups=1, block=64)
    with pytest.raises(Unsupported, match="leaves the code"):
        launch_groups("s_branch 0x8000", np.zeros(1, np.uint32), groups=1, block=64)


def test_unknown_instruction_counts_only_where_it_is_reached() -> None:
    out = np.zeros(1, np.uint32)
    launch_groups("s_branch over\ns_memtime s[6:7]\nover: s_nop 0", out, groups=1, block=64)
    with pytest.raises(Unsupported, match="s_memtime"):
        launch_groups("s_memtime s[6:7]", out, groups=1, block=64)
