# SPDX-License-Identifier: Apache-2.0
"""Accesses outside every allocation: the fault names kernel, pc, workgroup, wave, lane, address and allocation."""

from __future__ import annotations

import numpy as np
import pytest

from parity.gfx942 import Allocation, ExecutionFault, launch, load
from parity.gfx942.code_object import assemble
from parity.gfx942.memory import sorted_allocations
from tests.gfx942_assembly import Source, allocations, pointer, text_of
from tests.gfx942_data import expected_registers, pattern
from tests.gfx942_state import Before, execute, halves


def fault_of(
    body: str, *, grid: tuple[int, int, int] = (1, 1, 1), block: tuple[int, int, int] = (64, 1, 1), **memory: np.ndarray
) -> ExecutionFault:
    """Run a kernel whose s[4:5] is the first array, v1 the flat work-item times 4; return its fault."""
    prologue = "s_load_dwordx2 s[4:5], s[0:1], 0x0\ns_waitcnt lgkmcnt(0)\nv_lshlrev_b32_e32 v1, 2, v0\n"
    kernel = load(assemble(text_of(Source("faulty", prologue + body, ((8, "global_buffer"),), workgroup_ids="xyz"))))
    first = next(iter(memory.values()))
    with pytest.raises(ExecutionFault) as caught:
        launch(kernel, [pointer(first)], grid, block, allocations(**memory))
    return caught.value


def test_fault_names_its_place() -> None:
    """Only workgroup (2, 1, 0), wave 1, lane 5 reaches beyond the 256 bytes."""
    body = """s_cmp_lg_u32 s2, 2
    s_cbranch_scc1 end
    s_cmp_lg_u32 s3, 1
    s_cbranch_scc1 end
    v_cmp_eq_u32 vcc, 69, v0
    v_cndmask_b32 v1, 0, v1, vcc
    global_load_dword v2, v1, s[4:5]
    end: s_nop 0"""
    q = np.zeros(64, np.uint32)
    fault = fault_of(body, grid=(3, 2, 1), block=(128, 1, 1), q=q)
    assert (fault.kind, fault.kernel, fault.workgroup, fault.wave, fault.lane) == (
        "out-of-bounds",
        "faulty",
        (2, 1, 0),
        1,
        5,
    )
    assert fault.address == q.ctypes.data + 69 * 4
    assert fault.pc == 8 + 4 + 4 + 4 * 4 + 8 + 4  # the comparison has a literal
    assert fault.instruction == "global_load_dword v2, v1, s[4:5]"
    assert str(fault) == (
        f"out-of-bounds: read of 4 bytes at offset 276 of q (256 bytes) (faulty+0x2c {fault.instruction}, workgroup (2, 1, 0), "
        f"wave 1, lane 5, address {fault.address:#x})"
    )


def test_fault_in_a_later_batch_of_workgroups_names_its_workgroup() -> None:
    """More workgroups than run together; the one at (2, 3, 4) of a 5 x 6 x 20 grid stores outside."""
    body = """v_lshlrev_b32 v1, 2, v0
    s_load_dwordx2 s[6:7], s[0:1], 0x0
    s_waitcnt lgkmcnt(0)
    s_cmp_lg_u32 s2, 2
    s_cbranch_scc1 end
    s_cmp_lg_u32 s3, 3
    s_cbranch_scc1 end
    s_cmp_lg_u32 s4, 4
    s_cbranch_scc1 end
    global_store_dword v1, v0, s[6:7] offset:-4
    end: s_nop 0"""
    source = Source("late", body, ((8, "global_buffer"),), workgroup_ids="xyz")
    out = np.zeros(64, np.uint32)
    with pytest.raises(ExecutionFault, match="write of 4 bytes at offset -4 of out") as caught:
        launch(load(assemble(text_of(source))), [pointer(out)], (5, 6, 20), (64, 1, 1), allocations(out=out))
    assert (caught.value.workgroup, caught.value.wave, caught.value.lane) == ((2, 3, 4), 0, 0)


@pytest.mark.parametrize(
    ("body", "message", "lane"),
    [
        ("global_load_dword v2, v1, s[4:5] offset:1", "read of 4 bytes at offset 253 of data", 63),
        ("global_load_dwordx4 v[2:5], v1, s[4:5]", "read of 16 bytes at offset 244 of data", 61),
        ("global_load_ubyte v2, v1, s[4:5] offset:-1", "read of 1 bytes at offset -1 of data", 0),
        ("global_store_short v1, v0, s[4:5] offset:3", "write of 2 bytes at offset 255 of data", 63),
        ("global_store_byte v1, v0, s[4:5] offset:4", "write of 1 bytes at offset 256 of data", 63),
        ("v_mov_b32 v2, 0\nv_mov_b32 v3, 0\nglobal_load_dword v2, v[2:3], off", "read of 4 bytes at offset -", 0),
        ("v_mov_b32 v2, -1\nv_mov_b32 v3, -1\nglobal_load_dword v2, v[2:3], off", "read of 4 bytes at offset", 0),
        ("s_load_dword s6, s[4:5], 0x100", "read of 4 bytes at offset 256 of data", -1),
        ("s_load_dwordx8 s[8:15], s[4:5], 0xe4", "read of 32 bytes at offset 228 of data", -1),
    ],
)
def test_out_of_bounds(body: str, message: str, lane: int) -> None:
    fault = fault_of(body, data=np.zeros(64, np.uint32))
    assert fault.kind == "out-of-bounds"
    assert message in str(fault)
    assert (fault.wave, fault.lane, fault.workgroup) == (0, lane, (0, 0, 0))


def test_a_kernel_may_not_read_between_allocations() -> None:
    whole = np.zeros(96, np.uint32)
    low, high = whole[:32], whole[64:]
    fault = fault_of("global_load_dword v2, v1, s[4:5] offset:64", low=low, high=high)
    assert "read of 4 bytes at offset 128 of low (128 bytes)" in str(fault)
    assert fault.lane == 16


def test_an_access_may_not_span_two_adjoining_allocations() -> None:
    whole = np.zeros(64, np.uint32)
    body = "v_and_b32 v1, 0x7f, v1\nglobal_load_dwordx2 v[2:3], v1, s[4:5]"
    assert "read of 8 bytes at offset 124 of low" in str(fault_of(body, low=whole[:32], high=whole[32:]))


def test_lanes_may_read_different_allocations() -> None:
    low, high = pattern(64), pattern(64)[::-1].copy()
    pairs = [halves(low, 4), halves(high, 8), halves(low, 20)]
    after = execute(
        "global_load_dword v10, v[2:3], off",
        Before(vectors={2: [p[0] for p in pairs], 3: [p[1] for p in pairs]}, execute=7),
        low=low,
        high=high,
    )
    assert after.lanes(10, 3) == [expected_registers(a, at, 4, False)[0] for a, at in ((low, 4), (high, 8), (low, 20))]


def test_the_highest_lane_wins_a_common_address() -> None:
    data = np.zeros(4, np.uint32)
    execute(
        "v_mov_b32 v3, 0\nglobal_store_dword v3, v2, s[8:9]",
        Before(vectors={2: range(64)}, scalars=halves(data)),
        data=data,
    )
    assert data.tolist() == [63, 0, 0, 0]


# -- allocations -------------------------------------------------------------------------------------------------------
def test_allocations_are_checked() -> None:
    array = np.zeros(16, np.uint32)
    with pytest.raises(ValueError, match="first and second overlap"):
        sorted_allocations(allocations(first=array[:8], second=array[7:]))
    with pytest.raises(ValueError, match="not C-contiguous"):
        Allocation.of_array("strided", array[::2])
    assert len(sorted_allocations(allocations(same=array, again=array, empty=array[:0]))) == 1


def test_allocation_at_an_odd_address() -> None:
    raw = pattern(65)
    data = raw[1:65]
    after = execute(
        "global_load_dwordx2 v[10:11], v2, s[8:9]",
        Before(vectors={2: [0, 5, 8]}, scalars=halves(data), execute=7),
        data=data,
    )
    assert after.lanes(11, 3) == [expected_registers(data, at + 4, 4, False)[0] for at in (0, 5, 8)]
