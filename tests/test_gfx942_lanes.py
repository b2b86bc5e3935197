# SPDX-License-Identifier: Apache-2.0
"""Scalar operands of vector instructions, EXEC, moves between lanes, DPP."""

from __future__ import annotations

import pytest

from tests.gfx942_state import UNTOUCHED, Before, execute


def test_scalar_register_and_scc_sources() -> None:
    after = execute("v_add_u32_e32 v10, s8, v2\nv_mov_b32 v11, src_scc\nv_lshl_add_u64 v[12:13], s[8:9], 1, v[2:3]",
                    Before(vectors={2: [1] * 64, 3: [0] * 64}, scalars=[5, 7], scc=1))  # fmt: skip
    assert (after.lanes(10, 2), after.lanes(11, 2), after.lanes(12, 2), after.lanes(13, 2)) == (
        [6, 6],
        [1, 1],
        [11, 11],
        [14, 14],
    )


def test_packed_scalar_pair_source() -> None:
    body = "v_pk_mul_f32 v[10:11], v[2:3], s[8:9]\nv_pk_mul_f32 v[12:13], v[2:3], s[8:9] op_sel_hi:[1,0]"
    after = execute(body, Before(vectors={2: [0x40000000], 3: [0x40400000]}, scalars=[0x40A00000, 0x40E00000]))
    assert [after.lanes(n, 1)[0] for n in (10, 11, 12, 13)] == [0x41200000, 0x41A80000, 0x41200000, 0x41700000]


def test_inactive_lanes_keep_their_registers_and_lose_their_compare_bits() -> None:
    odd = 0xAAAAAAAAAAAAAAAA
    after = execute("v_mov_b32 v10, 7\nv_cmp_eq_u32 vcc, 0, v2\nv_cmp_eq_u32 s[16:17], 0, v2\nv_add_co_u32 v11, s[18:19], -1, v3\nv_mov_b64 v[12:13], 3",
                    Before(execute=odd, vcc=0xFFFFFFFFFFFFFFFF, vectors={3: [1] * 64}))  # fmt: skip
    assert after.lanes(10) == [7 if lane % 2 else UNTOUCHED + 10 for lane in range(64)]
    assert after.lanes(11) == [0 if lane % 2 else UNTOUCHED + 11 for lane in range(64)]
    assert after.lanes(13) == [0 if lane % 2 else UNTOUCHED + 13 for lane in range(64)]
    assert (after.vcc, after.s[16] | after.s[17] << 32, after.s[18] | after.s[19] << 32, after.execute) == (
        odd,
        odd,
        odd,
        odd,
    )


def test_cmpx_clears_exec_in_lanes_already_off() -> None:
    after = execute("v_cmpx_lt_u32 vcc, 3, v2\nv_mov_b32 v10, 1", Before(execute=0xF0F0, vectors={2: range(64)}))
    assert after.execute == after.vcc == 0xF0F0
    after = execute("v_cmpx_lt_u32 s[16:17], 5, v2\nv_mov_b32 v10, 1", Before(execute=0xF0F0, vectors={2: range(64)}))
    assert (after.execute, after.s[16], after.vcc) == (0xF0C0, 0xF0C0, 0)
    assert [lane for lane in range(64) if after.v[10][lane] == 1] == [6, 7, 12, 13, 14, 15]


def test_readfirstlane_takes_the_lowest_active_lane_and_lane_0_when_none_is() -> None:
    values = [100 + lane for lane in range(64)]
    body = "v_readfirstlane_b32 s16, v2"
    assert execute(body, Before(vectors={2: values})).s[16] == 100
    assert execute(body, Before(vectors={2: values}, execute=0xFFF0)).s[16] == 104
    assert execute(body, Before(vectors={2: values}, execute=1 << 63)).s[16] == 163
    assert execute(body, Before(vectors={2: values}, execute=0)).s[16] == 100


def test_readlane_ignores_exec_and_takes_the_lane_modulo_64() -> None:
    values = [100 + lane for lane in range(64)]
    after = execute("v_readlane_b32 s16, v2, 5\nv_readlane_b32 s17, v2, s8\ns_mov_b32 m0, 63\nv_readlane_b32 s18, v2, m0",
                    Before(vectors={2: values}, scalars=[64 + 9], execute=1))  # fmt: skip
    assert (after.s[16], after.s[17], after.s[18]) == (105, 109, 163)


def test_mbcnt_counts_mask_bits_below_the_lane() -> None:
    body = "v_mbcnt_lo_u32_b32 v10, -1, 0\nv_mbcnt_hi_u32_b32 v11, -1, v10\nv_mbcnt_lo_u32_b32 v12, s8, v2\nv_mbcnt_hi_u32_b32 v13, s8, 5"
    after = execute(body, Before(scalars=[0x80000005], vectors={2: [1000] * 64}))
    assert after.lanes(10) == [min(lane, 32) for lane in range(64)]
    assert after.lanes(11) == list(range(64))
    assert after.lanes(12) == [1000 + (lane > 0) + (lane > 2) + (lane > 31) for lane in range(64)]
    assert after.lanes(13) == [5 + (lane > 32) + (lane > 34) for lane in range(64)]


# -- DPP ---------------------------------------------------------------------------------------------------------------
OUTSIDE = -1
DPP_PATTERNS = {
    "quad_perm:[3,1,0,2]": [lane // 4 * 4 + [3, 1, 0, 2][lane % 4] for lane in range(64)],
    "row_shl:1": [lane + 1 if lane % 16 < 15 else OUTSIDE for lane in range(64)],
    "row_shr:3": [lane - 3 if lane % 16 >= 3 else OUTSIDE for lane in range(64)],
    "row_ror:1": [
        lane // 16 * 16 + (15, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14)[lane % 16] for lane in range(64)
    ],
    "row_ror:12": [
        lane // 16 * 16 + (4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 0, 1, 2, 3)[lane % 16] for lane in range(64)
    ],
    "row_mirror": [lane // 16 * 16 + 15 - lane % 16 for lane in range(64)],
    "row_half_mirror": [lane // 8 * 8 + 7 - lane % 8 for lane in range(64)],
    "row_bcast:15": [OUTSIDE] * 16 + [15] * 16 + [31] * 16 + [47] * 16,
    "row_bcast:31": [OUTSIDE] * 32 + [31] * 32,
}


@pytest.mark.parametrize("pattern", list(DPP_PATTERNS))
def test_dpp_patterns(pattern: str) -> None:
    values = [1000 + lane for lane in range(64)]
    body = f"v_mov_b32_dpp v10, v2 {pattern} row_mask:0xf bank_mask:0xf\nv_mov_b32_dpp v11, v2 {pattern} row_mask:0xf bank_mask:0xf bound_ctrl:0"
    after = execute(body, Before(vectors={2: values}))
    source = DPP_PATTERNS[pattern]
    assert after.lanes(10) == [UNTOUCHED + 10 if lane == OUTSIDE else 1000 + lane for lane in source]
    assert after.lanes(11) == [0 if lane == OUTSIDE else 1000 + lane for lane in source]


def test_dpp_row_and_bank_masks_switch_writes_off() -> None:
    after = execute(
        "v_mov_b32_dpp v10, v2 row_mirror row_mask:0xa bank_mask:0x3 bound_ctrl:0", Before(vectors={2: range(64)})
    )
    written = [lane // 16 in (1, 3) and lane % 16 < 8 for lane in range(64)]
    assert after.lanes(10) == [
        lane // 16 * 16 + 15 - lane % 16 if on else UNTOUCHED + 10 for lane, on in enumerate(written)
    ]


def test_dpp_inactive_source_lane_counts_as_outside() -> None:
    body = "v_mov_b32_dpp v10, v2 quad_perm:[1,0,3,2] row_mask:0xf bank_mask:0xf\nv_mov_b32_dpp v11, v2 quad_perm:[1,0,3,2] row_mask:0xf bank_mask:0xf bound_ctrl:0"
    after = execute(body, Before(vectors={2: [1000 + lane for lane in range(64)]}, execute=0b0111))
    assert after.lanes(10, 4) == [1001, 1000, UNTOUCHED + 10, UNTOUCHED + 10]
    assert after.lanes(11, 4) == [1001, 1000, 0, UNTOUCHED + 11]


def test_dpp_with_arithmetic_and_modifiers() -> None:
    body = "v_mov_b32 v10, v4\ns_nop 1\nv_fmac_f32_dpp v10, v2, v3 row_shl:1 row_mask:0xf bank_mask:0xf\nv_add_f32_dpp v11, -v2, |v3| row_ror:1 row_mask:0xf bank_mask:0xf"
    after = execute(
        body, Before(vectors={2: [0x3F800000, 0x40000000] * 32, 3: [0xC0400000] * 64, 4: [0x3F800000] * 64})
    )
    assert after.lanes(10, 2) == [0xC0A00000, 0xC0000000]  # 1 + 2 * -3, 1 + 1 * -3
    assert after.lanes(11, 2) == [0x3F800000, 0x40000000]  # -2 + 3, -1 + 3
