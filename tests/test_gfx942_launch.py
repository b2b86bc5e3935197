# SPDX-License-Identifier: Apache-2.0
"""Launches: initial registers, partial waves, batches of workgroups, set-ups that are refused."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from parity.gfx942 import Kernel, Unsupported, launch
from parity.gfx942.code_object import assemble
from parity.gfx942.launch import Dims
from tests.gfx942_assembly import Source, allocations, pointer, text_of
from tests.gfx942_on_gpu import assembled, run_kernel

OUT = ((8, "global_buffer"),)
STORE = "global_store_dword v1, v{}, s[4:5]"


def built(body: str, *, name: str = "k", arguments: tuple[tuple[int, str], ...] = OUT, workgroup_ids: str = "xyz", work_item_ids: int = 0,
          directives: str = "", lds: int = 0) -> Kernel:  # fmt: skip
    source = Source(name, body, arguments, lds, workgroup_ids, work_item_ids, directives=directives)
    return assembled(assemble(text_of(source)), name, instructions=body)


# -- initial registers -------------------------------------------------------------------------------------------------
def ids_kernel(workgroup_ids: str) -> Kernel:
    """Each workgroup of a 5 x 3 x 2 grid (or of a line) stores s2, s3, s4 at 16 bytes times its flat id."""
    flat = {
        "xyz": "s_mul_i32 s6, s4, 3\ns_add_u32 s6, s6, s3\ns_mul_i32 s6, s6, 5\ns_add_u32 s6, s6, s2",
        "x": "s_mov_b32 s6, s2",
    }
    body = f"""s_load_dwordx2 s[8:9], s[0:1], 0x0
    s_waitcnt lgkmcnt(0)
    {flat[workgroup_ids]}
    s_lshl_b32 s6, s6, 4
    v_mov_b32 v1, s6
    v_mov_b32 v2, s2
    v_mov_b32 v3, s3
    v_mov_b32 v4, s4
    global_store_dwordx3 v1, v[2:4], s[8:9]"""
    return built(body, workgroup_ids=workgroup_ids)


def test_workgroup_ids() -> None:
    out = np.full((2, 3, 5, 4), 99, np.uint32)
    run_kernel(ids_kernel("xyz"), [pointer(out)], (5, 3, 2), (64, 1, 1), allocations(out=out))
    assert [out[z, y, x, :3].tolist() for z in range(2) for y in range(3) for x in range(5)] == [
        [x, y, z] for z in range(2) for y in range(3) for x in range(5)
    ]
    assert (out[..., 3] == 99).all()


def test_only_the_enabled_workgroup_ids_take_registers() -> None:
    out = np.zeros((4, 4), np.uint32)
    # checks off: it stores s3 and s4, which nothing has written
    launch(ids_kernel("x"), [pointer(out)], (4, 1, 1), (64, 1, 1), allocations(out=out), checks=False)
    assert out.tolist() == [[x, 0, 0, 0] for x in range(4)]
    only_z = built("s_load_dwordx2 s[8:9], s[0:1], 0x0\ns_waitcnt lgkmcnt(0)\ns_lshl_b32 s6, s2, 2\nv_mov_b32 v1, s6\nv_mov_b32 v2, s2\n" + STORE.format(2).replace("s[4:5]", "s[8:9]"),
                   workgroup_ids="z")  # fmt: skip
    line = np.full(3, 7, np.uint32)
    launch(only_z, [pointer(line)], (2, 2, 3), (64, 1, 1), allocations(line=line))
    assert line.tolist() == [0, 1, 2]


@pytest.mark.parametrize(
    ("dims", "block"), [(1, (96, 1, 1)), (2, (16, 6, 1)), (3, (8, 4, 3)), (1, (24, 4, 1)), (3, (96, 1, 1))]
)
def test_work_item_ids_are_packed_into_v0(dims: int, block: Dims) -> None:
    """v0 = x | y << 10 | z << 20 as far as the descriptor enables; the flat index comes from the place of the lane."""
    body = """s_load_dwordx2 s[4:5], s[0:1], 0x0
    s_waitcnt lgkmcnt(0)
    v_mbcnt_lo_u32_b32 v1, -1, 0
    v_mbcnt_hi_u32_b32 v1, -1, v1
    v_readfirstlane_b32 s6, v0
    v_lshlrev_b32 v1, 2, v1
    s_cmp_eq_u32 s6, 0
    s_cselect_b32 s6, 0, 0x100
    v_add_u32 v1, s6, v1
    """ + STORE.format(0)  # fmt: skip
    out = np.full(128, 0xFFFFFFFF, np.uint32)
    run_kernel(built(body, work_item_ids=dims - 1), [pointer(out)], (1, 1, 1), block, allocations(out=out))
    expected = []
    for flat in range(96):
        ids = (flat % block[0], flat // block[0] % block[1], flat // (block[0] * block[1]))
        expected.append(sum(part << 10 * axis for axis, part in enumerate(ids[:dims])))
    assert expected[64] != 0  # the kernel tells its second wave by that
    assert out[:96].tolist() == expected
    assert (out[96:] == 0xFFFFFFFF).all()  # lanes 32..63 of the second wave are off


def test_lanes_beyond_the_block_are_off() -> None:
    body = f"s_load_dwordx2 s[4:5], s[0:1], 0x0\ns_waitcnt lgkmcnt(0)\nv_lshlrev_b32 v1, 2, v0\nv_mov_b32 v2, 1\n{STORE.format(2)}\ns_mov_b64 exec, -1\nv_cmp_eq_u32 vcc, 0, v0"
    out = np.zeros(64, np.uint32)
    run_kernel(built(body), [pointer(out)], (1, 1, 1), (40, 1, 1), allocations(out=out))
    assert out.tolist() == [1] * 40 + [0] * 24


# -- grids -------------------------------------------------------------------------------------------------------------
def test_grid_larger_than_one_batch() -> None:
    body = (
        "s_load_dwordx2 s[4:5], s[0:1], 0x0\ns_waitcnt lgkmcnt(0)\ns_lshl_b32 s6, s2, 7\nv_add_u32 v2, s6, v0\nv_lshlrev_b32 v1, 2, v2\nv_not_b32 v2, v2\n"
        + STORE.format(2)
    )
    groups = 2 * 256 + 3
    out = np.zeros(groups * 128, np.uint32)
    report = launch(built(body, workgroup_ids="x"), [pointer(out)], (groups, 1, 1), (128, 1, 1), allocations(out=out))
    assert (out == ~np.arange(groups * 128, dtype=np.uint32)).all()
    assert (report.waves, report.instructions) == (2 * groups, 2 * groups * 8)


def test_workgroup_of_16_waves() -> None:
    body = "s_load_dwordx2 s[4:5], s[0:1], 0x0\ns_waitcnt lgkmcnt(0)\nv_lshlrev_b32 v1, 2, v0\n" + STORE.format(0)
    out = np.zeros(1024, np.uint32)
    run_kernel(built(body), [pointer(out)], (1, 1, 1), (1024, 1, 1), allocations(out=out))
    assert out.tolist() == list(range(1024))


# -- refused -----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("grid", "block", "message"), [((0, 1, 1), (64, 1, 1), "must be positive"), ((1, 1, 1), (64, 0, 1), "must be positive"),
                                                         ((1, 1, 1), (1025, 1, 1), "more than 1024"), ((1, 1, 1), (32, 33, 1), "more than 1024")])  # fmt: skip
def test_bad_grids(grid: Dims, block: Dims, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        launch(built("s_nop 0", arguments=()), [], grid, block, [])


@pytest.mark.parametrize(
    ("directives", "message"),
    [
        (".amdhsa_float_round_mode_32 1", "FLOAT_MODE 0xf1"),
        (".amdhsa_float_denorm_mode_16_64 0", "FLOAT_MODE 0x30"),
        (".amdhsa_ieee_mode 0", "IEEE 0"),
        (".amdhsa_dx10_clamp 0", "DX10_CLAMP 0"),
        (".amdhsa_user_sgpr_dispatch_ptr 1", "user SGPRs for dispatch_ptr"),
        (".amdhsa_user_sgpr_queue_ptr 1", "user SGPRs for queue_ptr"),
        (".amdhsa_user_sgpr_dispatch_id 1", "user SGPRs for dispatch_id"),
    ],
)
def test_unusual_set_ups_are_refused(directives: str, message: str) -> None:
    with pytest.raises(Unsupported, match=message):
        launch(built("s_nop 0", arguments=(), directives=directives), [], (1, 1, 1), (64, 1, 1), [])


def test_flushed_denormals_are_seen_before_the_first_instruction() -> None:
    kernel = built("s_nop 0", arguments=())
    if not torch.set_flush_denormal(True):
        pytest.skip("this CPU cannot flush denormals")
    try:
        with pytest.raises(ValueError, match="flushes denormal floats"):
            launch(kernel, [], (1, 1, 1), (64, 1, 1), [])
    finally:
        torch.set_flush_denormal(False)
    launch(kernel, [], (1, 1, 1), (64, 1, 1), [])


def test_too_much_lds() -> None:
    with pytest.raises(ValueError, match="65536 \\+ 1 bytes of LDS"):
        launch(built("s_nop 0", arguments=(), lds=65536), [], (1, 1, 1), (64, 1, 1), [], dynamic_lds=1)
