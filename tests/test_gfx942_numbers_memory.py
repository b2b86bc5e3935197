# SPDX-License-Identifier: Apache-2.0
"""Atomics, FLAT, scratch, d16 halves, accumulators as data, scalar buffers. Source: CDNA3 ISA chapters 7 to 11."""

from __future__ import annotations

import numpy as np
import pytest

from parity.gfx942 import ExecutionFault, Kernel, Unsupported
from parity.gfx942.records import ATOMICS
from tests.gfx942_data import WORD3, expected_registers, pattern, vector
from tests.gfx942_scratch import scratch_kernel
from tests.gfx942_state import UNTOUCHED, Before, execute, halves, kernels, run

# operation: rows of "memory data : memory after"; cmpswap: "memory new compare : memory after"
ROWS_32 = {
    "swap": "1 2 : 2", "add": "ffffffff 2 : 1; 5 6 : b", "sub": "1 2 : ffffffff; 6 5 : 1",
    "smin": "80000000 7fffffff : 80000000; 5 ffffffff : ffffffff; 3 4 : 3", "umin": "80000000 7fffffff : 7fffffff; 5 ffffffff : 5",
    "smax": "80000000 7fffffff : 7fffffff; 5 ffffffff : 5; 3 4 : 4", "umax": "80000000 7fffffff : 80000000; 5 ffffffff : ffffffff",
    "and": "ff00ff00 12345678 : 12005600", "or": "ff00ff00 12345678 : ff34ff78", "xor": "ff00ff00 12345678 : ed34a978",
    "inc": "4 5 : 5; 5 5 : 0; 6 5 : 0; 0 0 : 0; fffffffe ffffffff : ffffffff",
    "dec": "5 5 : 4; 6 5 : 5; 9 5 : 5; 0 5 : 5; ffffffff ffffffff : fffffffe; 1 1 : 0",
    "cmpswap": "1 2 1 : 2; 1 2 3 : 1; 0 ffffffff 0 : ffffffff",
    "add_f32": "3f800000 40000000 : 40400000; 3f800000 33800000 : 3f800000; 1 1 : 2; 80000000 80000000 : 80000000",
}  # fmt: skip
ROWS_64 = {
    "swap": "100000002 300000004 : 300000004", "add": "ffffffff 1 : 100000000; ffffffffffffffff 2 : 1", "sub": "100000000 1 : ffffffff; 1 2 : ffffffffffffffff",
    "smin": "8000000000000000 7fffffff00000000 : 8000000000000000; 5 ffffffffffffffff : ffffffffffffffff; 1ffffffff 200000000 : 1ffffffff",
    "umin": "8000000000000000 7fffffff00000000 : 7fffffff00000000; 5 ffffffffffffffff : 5", "smax": "8000000000000000 1 : 1; 5 ffffffffffffffff : 5; 1ffffffff 200000000 : 200000000",
    "umax": "8000000000000000 1 : 8000000000000000; 5 ffffffffffffffff : ffffffffffffffff", "and": "ff00ff00ffffffff 1234567812345678 : 1200560012345678",
    "or": "ff00ff0000000000 1234567812345678 : ff34ff7812345678", "xor": "ff00ff0000000000 1234567812345678 : ed34a97812345678",
    "inc": "ffffffff 100000000 : 100000000; 100000000 100000000 : 0; 100000001 100000000 : 0", "dec": "100000000 100000000 : ffffffff; 100000001 100000000 : 100000000; 300000000 100000000 : 100000000; 0 500000000 : 500000000",
    "cmpswap": "100000002 3 100000002 : 3; 100000002 3 2 : 100000002",
}  # fmt: skip
LDS_NAMES = {
    "swap": "wrxchg_rtn_b32", "add": "add_u32", "sub": "sub_u32", "smin": "min_i32", "umin": "min_u32", "smax": "max_i32", "umax": "max_u32", "and": "and_b32",
    "or": "or_b32", "xor": "xor_b32", "inc": "inc_u32", "dec": "dec_u32", "cmpswap": "cmpst_b32", "add_f32": "add_f32",
}  # fmt: skip


LANES = range(64)


def rows_of(text: str) -> tuple[list[list[int]], list[int]]:
    """(columns: memory, data ..., memory after)"""
    rows = [[[int(token, 16) for token in part.split()] for part in row.split(":")] for row in text.split(";")]
    return [list(column) for column in zip(*(left for left, _ in rows), strict=True)], [right[0] for _, right in rows]


def dword(values: list[int], number: int) -> list[int]:
    return [value >> 32 * number & 0xFFFFFFFF for value in values]


# -- atomics -------------------------------------------------------------------------------------------------------------
def test_the_tables_name_every_atomic() -> None:
    assert set(ROWS_32) == set(ATOMICS) == set(LDS_NAMES)
    assert set(ROWS_64) == set(ATOMICS) - {"add_f32"}


WAYS = {
    "global": "v2, {}, s[8:9]",
    "pair": "v[4:5], {}, off",
    "flat": "v[4:5], {}",
    "buffer": "{}, v2, s[12:15], 0 offen",
}
FORMS = [(name, way, wide) for wide in (False, True) for name in (ROWS_64 if wide else ROWS_32) for way in WAYS]


def atomic_text(name: str, way: str, wide: bool, *, returns: bool) -> str:
    """Data from v6 and the following; the old value goes to v10, in buffers over the data."""
    count = (1 + wide) * (2 if name == "cmpswap" else 1)
    place = WAYS[way].format(vector(6, count))
    target = f"{vector(10, 1 + wide)}, " if returns and way != "buffer" else ""
    stem = "global" if way == "pair" else way
    return f"{stem}_atomic_{name}{'_x2' if wide else ''} {target}{place}{' sc0' if returns else ''}"


@pytest.fixture(scope="module")
def atomics() -> dict[str, Kernel]:
    texts = [atomic_text(*form, returns=returns) for form in FORMS for returns in (False, True)]
    built = kernels({f"k{number}": text for number, text in enumerate(texts)})
    return {text: built[f"k{number}"] for number, text in enumerate(texts)}


@pytest.mark.parametrize(("name", "way", "wide"), FORMS)
def test_atomics_in_memory(name: str, way: str, wide: bool, atomics: dict[str, Kernel]) -> None:
    columns, expected = rows_of((ROWS_64 if wide else ROWS_32)[name])
    count, size = len(expected), 8 if wide else 4
    for returns in (False, True):
        data = np.array(columns[0], np.uint64 if wide else np.uint32)
        pairs = [halves(data, size * lane) for lane in range(count)]
        vectors = {
            2: [size * lane for lane in range(count)],
            4: [low for low, _ in pairs],
            5: [high for _, high in pairs],
        }
        vectors |= {
            6 + n: column
            for n, column in enumerate(dword(column, n) for column in columns[1:] for n in range(1 + wide))
        }
        scalars = [*halves(data), 0, 0, *halves(data), data.nbytes, WORD3]
        kernel = atomics[atomic_text(name, way, wide, returns=returns)]
        after = run(kernel, [Before(vectors, scalars, execute=(1 << count) - 1)], data=data)[0]
        assert [hex(value) for value in data.tolist()] == [hex(value) for value in expected]
        old = returns and way != "buffer"
        for n in range(3):
            right = dword(columns[0], n) if old and n <= wide else [UNTOUCHED + 10 + n] * count
            assert after.lanes(10 + n, count) == right, f"v{10 + n}, returns={returns}"
        assert after.v[10][count] == UNTOUCHED + 10, "an inactive lane was written"


def test_buffer_atomic_returns_over_its_data() -> None:
    data = np.array([5, 6], np.uint32)
    body = "v_mov_b32 v10, v6\nbuffer_atomic_add v10, v2, s[12:15], 0 offen sc0\nv_mov_b32 v11, v6\nbuffer_atomic_add v11, v2, s[12:15], 0 offen"
    before = Before({2: [0, 4], 6: [100, 200]}, [0, 0, 0, 0, *halves(data), data.nbytes, WORD3], execute=3)
    after = execute(body, before, data=data)
    assert (data.tolist(), after.lanes(10, 2), after.lanes(11, 2)) == ([205, 406], [5, 6], [100, 200])


def test_atomics_of_all_lanes_on_one_dword() -> None:
    data = np.array([1000], np.uint32)
    after = execute(
        "global_atomic_add v10, v2, v3, s[8:9] sc0", Before({2: [0] * 64, 3: range(64)}, halves(data)), data=data
    )
    # lane 0 adds nothing, so that it shares its value with the next
    order = sorted(LANES, key=lambda lane: (after.v[10][lane], lane != 0))
    totals = [1000 + sum(order[:n]) for n in LANES]
    assert (data[0], [after.v[10][lane] for lane in order]) == (3016, totals), "any order, but one after another"


@pytest.mark.parametrize("name", list(ROWS_32))
@pytest.mark.parametrize("returns", [False, True])
def test_atomics_in_lds(name: str, returns: bool) -> None:
    columns, expected = rows_of(ROWS_32[name])
    count, mnemonic = len(expected), LDS_NAMES[name]
    if "_rtn" not in mnemonic and returns:
        stem, _, kind = mnemonic.rpartition("_")
        mnemonic = f"{stem}_rtn_{kind}"
    if name == "add_f32":
        mnemonic = "add_rtn_f32" if returns else "add_f32"
    data = "v5, v4" if name == "cmpswap" else "v4"  # ds_cmpst: first the value to compare with
    target = "v10, " if "_rtn" in mnemonic else ""
    body = f"ds_write_b32 v2, v3 offset:8\nds_{mnemonic} {target}v2, {data} offset:8\nds_read_b32 v11, v2 offset:8"
    vectors = {2: [4 * lane for lane in range(count)]} | {3 + n: column for n, column in enumerate(columns)}
    after = execute(body, Before(vectors, execute=(1 << count) - 1), lds=512)
    assert [hex(value) for value in after.lanes(11, count)] == [hex(value) for value in expected]
    assert after.lanes(10, count) == (columns[0] if target else [UNTOUCHED + 10] * count)


# -- FLAT ------------------------------------------------------------------------------------------------------------------
def test_flat_reaches_global_memory_lds_and_scratch() -> None:
    """Lane 0: global, lane 1: LDS through src_shared_base, lane 2: scratch through src_private_base; one instruction for all."""
    data = pattern(64)
    low, high = halves(data, 8)
    body = """s_mov_b64 s[16:17], src_shared_base
    s_mov_b64 s[18:19], src_private_base
    v_mov_b32 v20, 16
    ds_write_b32 v20, v6 offset:4
    scratch_store_dword v20, v7, off offset:4
    s_waitcnt vmcnt(0) lgkmcnt(0)
    v_writelane_b32 v5, s17, 1
    v_writelane_b32 v5, s19, 2
    flat_load_dword v10, v[4:5] offset:4
    s_waitcnt vmcnt(0) lgkmcnt(0)
    flat_store_short v[4:5], v8 offset:6
    s_waitcnt vmcnt(0) lgkmcnt(0)
    ds_read_b32 v11, v20 offset:4
    scratch_load_dword v12, v20, off offset:4
    flat_atomic_add v13, v[4:5], v9 offset:4 sc0"""
    vectors = {4: [low, 16, 16], 5: [high, 0, 0], 6: [0x11112222] * 3, 7: [0x33334444] * 3}
    vectors |= {8: [0xABCD5555] * 3, 9: [1, 2, 3]}
    after = run(scratch_kernel(body, scratch=64, lds=256), [Before(vectors, execute=7)], data=data)[0]
    word = expected_registers(pattern(64), 12, 4, False)[0]
    assert (after.s[16], after.s[18]) == (0, 0)
    assert after.lanes(10, 3) == [word, 0x11112222, 0x33334444]
    assert after.lanes(11, 3) == [0x55552222] * 3
    assert after.v[12][2] == 0x55554444
    assert after.v[12][1] == 0x33334444, "scratch is each lane's own"
    assert after.lanes(13, 3) == [word & 0xFFFF | 0x55550000, 0x55552222, 0x55554444]
    assert data[12:16].tobytes() == ((word & 0xFFFF | 0x55550000) + 1).to_bytes(4, "little")
    assert data[:12].tobytes() + data[16:].tobytes() == pattern(64)[:12].tobytes() + pattern(64)[16:].tobytes()


# -- scratch ---------------------------------------------------------------------------------------------------------------
def test_scratch_addressing_and_widths() -> None:
    body = """scratch_store_dwordx4 v2, v[4:7], off offset:16
    s_waitcnt vmcnt(0)
    scratch_load_dword v10, off, s8 offset:4
    scratch_load_dwordx2 v[12:13], v2, off offset:24
    scratch_load_dword v11, v3, s8 offset:-8
    scratch_load_ubyte v14, off, s9
    scratch_load_sshort v15, v2, off offset:18
    scratch_store_byte off, v3, s8 offset:5
    s_waitcnt vmcnt(0)
    scratch_load_dword v16, off, s8 offset:4"""
    lanes = range(64)
    vectors = {2: [0] * 64, 3: [8] * 64} | {4 + n: [0x80A00000 + 4096 * n + lane for lane in lanes] for n in range(4)}
    after = run(scratch_kernel(body, scratch=32), [Before(vectors, [16, 28])])[0]
    word = [[0x80A00000 + 4096 * n + lane for lane in lanes] for n in range(4)]
    assert after.lanes(10) == word[1]
    assert (after.lanes(12), after.lanes(13)) == (word[2], word[3])
    assert after.lanes(11) == word[0]
    assert after.lanes(14) == [value & 0xFF for value in word[3]]
    assert after.lanes(15) == [0xFFFF80A0] * 64
    assert after.lanes(16) == [value & ~0xFF00 | 0x0800 for value in word[1]]


@pytest.mark.parametrize(
    "body",
    [
        "scratch_load_dword v10, v2, off offset:29",
        "scratch_store_dwordx2 v2, v[4:5], off offset:28",
        "scratch_load_ubyte v10, off, s8",
    ],
)
def test_scratch_bounds(body: str) -> None:
    with pytest.raises(ExecutionFault) as caught:
        run(scratch_kernel(body, scratch=32), [Before({2: [0] * 64, 4: [0] * 64, 5: [0] * 64}, [32])])
    assert (caught.value.kind, caught.value.lane) == ("out-of-bounds scratch", 0)


# -- scalar buffers --------------------------------------------------------------------------------------------------------
def test_scalar_buffer_loads() -> None:
    data = pattern(128)
    body = """s_buffer_load_dword s16, s[8:11], 0x14
    s_buffer_load_dwordx2 s[18:19], s[8:11], s12
    s_buffer_load_dwordx4 s[20:23], s[8:11], s12 offset:0x10
    s_buffer_load_dword s17, s[8:11], 0x7f"""
    after = execute(body, Before(scalars=[*halves(data), 128, WORD3, 32]), data=data)
    assert after.s[16] == expected_registers(data, 20, 4, False)[0]
    assert [after.s[18], after.s[19]] == expected_registers(data, 32, 8, False)
    assert [after.s[n] for n in range(20, 24)] == expected_registers(data, 48, 16, False)
    assert after.s[17] == expected_registers(data, 124, 4, False)[0], "the two low bits of the offset are ignored"


def test_wide_scalar_buffer_loads() -> None:
    data = pattern(128)
    body = "s_buffer_load_dwordx8 s[16:23], s[8:11], 0x60\ns_buffer_load_dwordx16 s[32:47], s[8:11], 0x40\ns_waitcnt lgkmcnt(0)\ns_mov_b32 vcc_lo, s32\ns_mov_b32 vcc_hi, s47"
    after = execute(body, Before(scalars=[*halves(data), 128, WORD3]), data=data)
    assert [after.s[16 + n] for n in range(8)] == expected_registers(data, 96, 32, False)
    assert after.vcc == expected_registers(data, 64, 4, False)[0] | expected_registers(data, 124, 4, False)[0] << 32


def test_scalar_buffer_bounds() -> None:
    data = pattern(128)
    with pytest.raises(ExecutionFault) as caught:
        execute("s_buffer_load_dwordx2 s[16:17], s[8:11], 0x3c", Before(scalars=[*halves(data), 64, WORD3]), data=data)
    assert (caught.value.kind, caught.value.lane) == ("out-of-bounds buffer", -1)


def test_wide_atomics_on_scratch_are_refused() -> None:
    kernel = scratch_kernel(
        "s_mov_b64 s[16:17], src_private_base\nv_mov_b32 v4, 0\nv_mov_b32 v5, s17\nflat_atomic_add_x2 v[4:5], v[8:9]",
        scratch=16,
    )
    with pytest.raises(Unsupported, match=r"flat_atomic_add_x2 .*: a 64-bit atomic on scratch memory"):
        run(kernel, [Before()])
