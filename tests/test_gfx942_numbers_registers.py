# SPDX-License-Identifier: Apache-2.0
"""Halves of registers (d16), accumulators as operands, exchanges of lanes, DPP with its masks. Source: CDNA3 ISA chapters 4, 6, 10, 11."""

from __future__ import annotations

import numpy as np
import pytest

from parity.gfx942 import ExecutionFault
from tests.gfx942_data import WORD3, expected_registers, pattern
from tests.gfx942_scratch import scratch_kernel
from tests.gfx942_state import UNTOUCHED, Before, execute, halves, run

LANES = range(64)
VALUES = [1000 + lane for lane in LANES]
# kind: (bytes, signed, upper half)
D16_LOADS = {"ubyte_d16": (1, False, False), "ubyte_d16_hi": (1, False, True), "sbyte_d16": (1, True, False), "sbyte_d16_hi": (1, True, True),
             "short_d16": (2, False, False), "short_d16_hi": (2, False, True)}  # fmt: skip
DS_D16 = {
    "u8_d16": "ubyte_d16",
    "u8_d16_hi": "ubyte_d16_hi",
    "i8_d16": "sbyte_d16",
    "i8_d16_hi": "sbyte_d16_hi",
    "u16_d16": "short_d16",
    "u16_d16_hi": "short_d16_hi",
}
MNEMONICS = {"v_accvgpr_mov_b32"}  # of vector.def
WAYS = {"global": "v2, s[8:9] offset:1", "flat": "v[4:5] offset:1", "buffer": "v2, s[12:15], 0 offen offset:1"}


def addressed(data: np.ndarray, offsets: list[int]) -> Before:
    """v2: offsets, v[4:5]: addresses, v6: 0xa1b2c3d4; s[8:9]: base, s[12:15]: buffer."""
    pairs = [halves(data, offset) for offset in offsets]
    vectors = {2: offsets, 4: [low for low, _ in pairs], 5: [high for _, high in pairs], 6: [0xA1B2C3D4] * len(offsets)}
    return Before(vectors, [*halves(data), 0, 0, *halves(data), data.nbytes, WORD3], execute=(1 << len(offsets)) - 1)


def merged(old: int, value: int, upper: bool) -> int:
    return old & 0xFFFF | (value & 0xFFFF) << 16 if upper else old & 0xFFFF0000 | value & 0xFFFF


def half_of(register: int, upper: bool) -> int:
    return register >> 16 if upper else register & 0xFFFF


# -- d16: one half of the register is loaded or stored. What a load leaves in the other is open: MI300X has SRAM ECC, with which it need not stay
# (LLVM: d16PreservesUnusedBits). So the rows compare the half that is loaded, and run with checks off: the epilogue stores both.
@pytest.mark.parametrize("way", list(WAYS))
def test_d16_loads(way: str) -> None:
    data, offsets = pattern(64), [0, 1, 5, 30]
    body = "\n".join(f"{way}_load_{kind} v{10 + n}, {WAYS[way]}" for n, kind in enumerate(D16_LOADS))
    after = execute(body, addressed(data, offsets), checks=False, data=data)
    for n, (kind, (size, signed, upper)) in enumerate(D16_LOADS.items()):
        values = [expected_registers(data, offset + 1, size, signed)[0] for offset in offsets]
        assert [half_of(value, upper) for value in after.lanes(10 + n, 4)] == [value & 0xFFFF for value in values], kind
        assert after.v[10 + n][4] == UNTOUCHED + 10 + n


def test_d16_loads_from_lds_and_scratch() -> None:
    for space in ("ds", "scratch"):
        store = "ds_write_b32 v2, v3" if space == "ds" else "scratch_store_dword v2, v3, off"
        names = list(DS_D16 if space == "ds" else D16_LOADS)
        loads = [
            f"ds_read_{name} v{10 + n}, v2 offset:1"
            if space == "ds"
            else f"scratch_load_{name} v{10 + n}, v2, off offset:1"
            for n, name in enumerate(names)
        ]
        kernel = scratch_kernel("\n".join([store, "s_waitcnt vmcnt(0) lgkmcnt(0)", *loads]), scratch=16, lds=64)
        after = run(kernel, [Before({2: [8], 3: [0x92837465]}, execute=1)], checks=False)[0]
        loaded = [
            half_of(int(after.v[10 + n][0]), bool(n % 2)) for n in range(6)
        ]  # the names alternate between the halves
        assert loaded == [0x74] * 4 + [0x8374] * 2, space


def test_d16_sign_extension_stops_at_the_half() -> None:
    data = np.array([0x80], np.uint8)
    after = execute(
        "global_load_sbyte_d16 v10, v2, s[8:9]\nglobal_load_sbyte_d16_hi v11, v2, s[8:9]",
        addressed(data, [0]),
        checks=False,
        data=data,
    )
    assert (after.v[10][0] & 0xFFFF, after.v[11][0] >> 16) == (0xFF80, 0xFF80)


def test_the_other_half_is_not_to_be_used() -> None:
    """With checks off the executor leaves it, as a chip without ECC; with checks on, what a load left there is undefined."""
    data = np.array([0x80], np.uint8)
    body = "global_load_sbyte_d16 v10, v2, s[8:9]\nglobal_load_sbyte_d16_hi v11, v2, s[8:9]"
    after = execute(body, addressed(data, [0]), checks=False, data=data)
    assert (after.v[10][0], after.v[11][0]) == (
        merged(UNTOUCHED + 10, 0xFF80, False),
        merged(UNTOUCHED + 11, 0xFF80, True),
    )
    with pytest.raises(ExecutionFault, match="uninitialised"):
        execute(body, addressed(data, [0]), data=data)


def test_d16_buffer_load_of_a_masked_lane_gives_0() -> None:
    """A lane beyond num_records reads 0 (ISA, "Range checking")."""
    data = pattern(64)
    body = "buffer_load_short_d16 v10, v2, s[12:15], 0 offen\nbuffer_load_short_d16_hi v11, v2, s[12:15], 0 offen\nbuffer_load_dword v12, v2, s[12:15], 0 offen"
    before = Before({2: [0, 0x80000000]}, [0, 0, 0, 0, *halves(data), data.nbytes, WORD3], execute=3)
    after = execute(body, before, checks=False, data=data)
    assert (after.v[12][1], after.v[10][1] & 0xFFFF, after.v[11][1] >> 16) == (0, 0, 0)


@pytest.mark.parametrize("way", list(WAYS))
@pytest.mark.parametrize(
    ("kind", "stored"), [("byte_d16_hi", "b2"), ("short_d16_hi", "b2a1"), ("byte", "d4"), ("short", "d4c3")]
)
def test_stores_of_either_half(way: str, kind: str, stored: str) -> None:
    data, expected = pattern(64), pattern(64)
    place = {"global": "v2, v6, s[8:9]", "flat": "v[4:5], v6", "buffer": "v6, v2, s[12:15], 0 offen"}[way]
    execute(f"{way}_store_{kind} {place}", addressed(data, [3, 20]), data=data)
    for offset in (3, 20):
        expected[offset : offset + len(stored) // 2] = list(bytes.fromhex(stored))
    assert data.tobytes() == expected.tobytes()


def test_stores_of_the_upper_half_to_lds_and_scratch() -> None:
    body = """v_mov_b32 v20, 0
    ds_write_b32 v2, v20
    ds_write_b16_d16_hi v2, v6
    ds_read_b32 v10, v2
    ds_write_b8_d16_hi v2, v6 offset:3
    ds_read_b32 v11, v2
    scratch_store_dword v2, v20, off
    scratch_store_short_d16_hi v2, v6, off offset:1
    scratch_store_byte_d16_hi v2, v6, off
    s_waitcnt vmcnt(0)
    scratch_load_dword v12, v2, off"""
    after = run(scratch_kernel(body, scratch=16, lds=64), [Before({2: [8], 6: [0xA1B2C3D4]}, execute=1)])[0]
    assert [after.v[n][0] for n in (10, 11, 12)] == [0xA1B2, 0xB200A1B2, 0x00A1B2B2]


# -- accumulators ----------------------------------------------------------------------------------------------------------------
def test_accumulators_as_data_of_memory_instructions() -> None:
    data = pattern(256)
    body = """global_load_dwordx2 a[2:3], v2, s[8:9]
    s_waitcnt vmcnt(0)
    ds_write_b64 v2, a[2:3]
    s_waitcnt lgkmcnt(0)
    ds_read_b64 v[10:11], v2
    buffer_store_dword a3, v2, s[12:15], 0 offen offset:128
    global_store_dwordx2 v2, a[2:3], s[8:9] offset:64
    s_waitcnt vmcnt(0) lgkmcnt(0)
    ds_read_b32 a4, v2 offset:4
    buffer_load_dword a5, v2, s[12:15], 0 offen offset:64
    flat_load_ushort a6, v[4:5]
    global_load_short_d16_hi a2, v2, s[8:9]
    s_waitcnt vmcnt(0) lgkmcnt(0)
    v_accvgpr_read_b32 v12, a4
    v_accvgpr_read_b32 v13, a5
    v_accvgpr_read_b32 v14, a6
    v_accvgpr_read_b32 v15, a2"""
    after = execute(body, addressed(data, [0, 8]), lds=64, checks=False, data=data)
    low, high = ([expected_registers(pattern(256), at, 8, False)[n] for at in (0, 8)] for n in (0, 1))
    assert (after.lanes(10, 2), after.lanes(11, 2)) == (low, high)
    assert (after.lanes(12, 2), after.lanes(13, 2)) == (high, low)
    assert after.lanes(14, 2) == [value & 0xFFFF for value in low]
    assert [half_of(value, True) for value in after.lanes(15, 2)] == [value & 0xFFFF for value in low]
    assert data[64:80].tobytes() == pattern(256)[:16].tobytes()
    assert (data[128:132].tobytes(), data[136:140].tobytes()) == (
        pattern(256)[4:8].tobytes(),
        pattern(256)[12:16].tobytes(),
    )


def test_accumulators_as_data_of_atomics() -> None:
    data = np.array([5, 6], np.uint32)
    body = "v_accvgpr_write_b32 a0, v2\ns_nop 1\nglobal_atomic_add a1, v2, a0, s[8:9] sc0\ns_waitcnt vmcnt(0)\nv_accvgpr_read_b32 v10, a1"
    after = execute(body, addressed(data, [0, 4]), data=data)
    assert (data.tolist(), after.lanes(10, 2)) == ([5, 10], [5, 6])


def test_accumulator_moves_act_in_active_lanes() -> None:
    body = "v_accvgpr_write_b32 a0, v2\nv_accvgpr_write_b32 a1, 7\ns_nop 1\ns_mov_b64 exec, 0xf0\nv_accvgpr_mov_b32 a1, a0\ns_mov_b64 exec, -1\ns_nop 4\nv_accvgpr_read_b32 v10, a1"
    after = execute(body, Before({2: VALUES}))
    assert after.lanes(10) == [1000 + lane if 4 <= lane < 8 else 7 for lane in LANES]


# -- lanes -----------------------------------------------------------------------------------------------------------------------
def test_writelane_ignores_exec_and_takes_the_lane_modulo_64() -> None:
    body = "v_writelane_b32 v10, s8, 5\nv_writelane_b32 v11, 7, s9\ns_mov_b32 m0, 63\nv_writelane_b32 v12, s8, m0\nv_writelane_b32 v13, vcc_hi, 0"
    after = execute(body, Before(scalars=[0xABCD, 64 + 9], execute=1, vcc=0x1234 << 32))
    expected = {10: (5, 0xABCD), 11: (9, 7), 12: (63, 0xABCD), 13: (0, 0x1234)}
    for register, (written, value) in expected.items():
        assert after.lanes(register) == [value if lane == written else UNTOUCHED + register for lane in LANES]


def test_swap_acts_in_active_lanes() -> None:
    after = execute(
        "v_mov_b32 v11, v2\ns_mov_b64 exec, 0xff00\nv_swap_b32 v10, v11\nv_swap_b32 v12, v12", Before({2: VALUES})
    )
    on = [8 <= lane < 16 for lane in LANES]
    assert after.lanes(10) == [1000 + lane if on[lane] else UNTOUCHED + 10 for lane in LANES]
    assert after.lanes(11) == [UNTOUCHED + 10 if on[lane] else 1000 + lane for lane in LANES]
    assert after.lanes(12) == [UNTOUCHED + 12] * 64


def test_permute_pushes_and_the_highest_lane_wins() -> None:
    body = "ds_permute_b32 v10, v3, v2\nds_permute_b32 v11, v3, v2 offset:4\nds_permute_b32 v12, v4, v2"
    targets = [(lane + 3) % 64 for lane in LANES]
    after = execute(
        body,
        Before(
            {2: VALUES, 3: [4 * n + 256 * (n % 3) + n % 4 for n in targets], 4: [4 * (lane // 8) for lane in LANES]}
        ),
    )
    assert after.lanes(10) == [1000 + (lane - 3) % 64 for lane in LANES]
    assert after.lanes(11) == [1000 + (lane - 4) % 64 for lane in LANES]
    assert after.lanes(12) == [1000 + 8 * lane + 7 if lane < 8 else 0 for lane in LANES]


def test_permute_of_active_lanes_only() -> None:
    after = execute("ds_permute_b32 v10, v3, v2", Before({2: VALUES, 3: [4, 12, 0, 8]}, execute=0b0011))
    assert after.lanes(10, 4) == [0, 1000, UNTOUCHED + 10, UNTOUCHED + 10]


# -- DPP -------------------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("lane_of_row", [0, 5, 15])
def test_row_newbcast(lane_of_row: int) -> None:
    body = f"v_mov_b32_dpp v10, v2 row_newbcast:{lane_of_row} row_mask:0xf bank_mask:0xf\nv_add_u32_dpp v11, v2, v3 row_newbcast:{lane_of_row} row_mask:0x6 bank_mask:0x9"
    after = execute(body, Before({2: VALUES, 3: [7] * 64}))
    source = [1000 + lane // 16 * 16 + lane_of_row for lane in LANES]
    assert after.lanes(10) == source
    on = [lane // 16 in (1, 2) and lane % 16 // 4 in (0, 3) for lane in LANES]
    assert after.lanes(11) == [value + 7 if on[lane] else UNTOUCHED + 11 for lane, value in enumerate(source)]


def test_reduction_with_row_bcast() -> None:
    """The usual sum: rows first, then row_bcast:15 into rows 1 and 3, row_bcast:31 into rows 2 and 3; lane 63 has all."""
    steps = [f"row_shr:{n} row_mask:0xf bank_mask:0xf bound_ctrl:0" for n in (1, 2, 4, 8)]
    steps += ["row_bcast:15 row_mask:0xa bank_mask:0xf", "row_bcast:31 row_mask:0xc bank_mask:0xf"]
    body = "v_mov_b32 v10, v2\n" + "\n".join(f"s_nop 1\nv_add_u32_dpp v10, v10, v10 {step}" for step in steps)
    after = execute(body, Before({2: [lane * lane for lane in LANES]}))
    assert after.lanes(10) == [sum(n * n for n in range(lane + 1)) for lane in LANES]


@pytest.mark.parametrize("bound", [False, True])
def test_masked_off_lanes_keep_their_old_value_whatever_bound_control_says(bound: bool) -> None:
    body = f"v_mov_b32_dpp v10, v2 row_shr:1 row_mask:0x5 bank_mask:0x3{' bound_ctrl:0' if bound else ''}"
    after = execute(body, Before({2: VALUES}))
    outside = 0 if bound else UNTOUCHED + 10
    on = [lane // 16 in (0, 2) and lane % 16 < 8 for lane in LANES]
    assert after.lanes(10) == [
        (1000 + lane - 1 if lane % 16 else outside) if on[lane] else UNTOUCHED + 10 for lane in LANES
    ]
