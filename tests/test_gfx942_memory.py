# SPDX-License-Identifier: Apache-2.0
"""Global memory: every width, offsets, buffers with their bounds, scalar loads, faults with their place, what is refused."""

from __future__ import annotations

import numpy as np
import pytest

from parity.gfx942 import Unsupported
from tests.gfx942_data import WORD3, expected_registers, pattern, vector
from tests.gfx942_state import UNTOUCHED, Before, execute, halves, kernels, run

# kind: (bytes read, signed, registers)
LOADS = {"ubyte": (1, False, 1), "sbyte": (1, True, 1), "ushort": (2, False, 1), "sshort": (2, True, 1), "dword": (4, False, 1),
         "dwordx2": (8, False, 2), "dwordx3": (12, False, 3), "dwordx4": (16, False, 4)}  # fmt: skip
STORES = {"byte": (1, 1), "short": (2, 1), "dword": (4, 1), "dwordx2": (8, 2), "dwordx3": (12, 3), "dwordx4": (16, 4)}


# -- loads and stores ----------------------------------------------------------------------------------------------------
ADDRESSINGS = {
    "scalar base": ("v2, s[8:9]", "v2, {}, s[8:9]"),
    "address pair": ("v[4:5], off", "v[4:5], {}, off"),
    "buffer": ("v2, s[12:15], 0 offen", "{}, v2, s[12:15], 0 offen"),
}
OFFSETS = {"": 0, " offset:-40": -40, " offset:300": 300}


def registers(data: np.ndarray, offsets: list[int]) -> Before:
    """v2: offsets, v[4:5]: addresses; s[8:9]: base; s[12:15]: buffer descriptor."""
    pairs = [halves(data, offset) for offset in offsets]
    vectors = {2: offsets, 4: [low for low, _ in pairs], 5: [high for _, high in pairs]}
    return Before(
        vectors=vectors,
        scalars=[*halves(data), 0, 0, *halves(data), data.nbytes, WORD3],
        execute=(1 << len(offsets)) - 1,
    )


@pytest.fixture(scope="module")
def access_kernels() -> dict[str, object]:
    bodies = {}
    for way, (load_text, store_text) in ADDRESSINGS.items():
        stem = "buffer" if way == "buffer" else "global"
        for number, modifier in enumerate(OFFSETS):
            if way == "buffer" and OFFSETS[modifier] < 0:
                continue
            for kind, (_, _, count) in LOADS.items():
                bodies[f"{way} load {kind} {number}"] = f"{stem}_load_{kind} {vector(10, count)}, {load_text}{modifier}"
            for kind, (_, count) in STORES.items():
                bodies[f"{way} store {kind} {number}"] = (
                    f"{stem}_store_{kind} {store_text.format(vector(6, count))}{modifier}"
                )
    names = {f"k{number}": name for number, name in enumerate(bodies)}
    return {names[key]: kernel for key, kernel in kernels({key: bodies[name] for key, name in names.items()}).items()}


@pytest.mark.parametrize("way", list(ADDRESSINGS))
def test_loads_of_every_width(way: str, access_kernels: dict[str, object]) -> None:
    data, offsets = pattern(512), [40, 44, 61, 90, 43, 120, 48, 52]  # some unaligned
    for number, extra in enumerate(OFFSETS.values()):
        for kind, (size, signed, count) in LOADS.items():
            if way == "buffer" and extra < 0:
                continue
            after = run(access_kernels[f"{way} load {kind} {number}"], [registers(data, offsets)], data=data)[0]  # type: ignore[arg-type]
            for lane, offset in enumerate(offsets):
                actual = [int(after.v[10 + n][lane]) for n in range(count)]
                assert actual == expected_registers(data, offset + extra, size, signed), (
                    f"{kind} offset {offset}{extra:+}"
                )
            assert after.lanes(10 + count)[: len(offsets)] == [UNTOUCHED + 10 + count] * len(offsets)
            assert after.v[10][len(offsets)] == UNTOUCHED + 10, "an inactive lane was written"


@pytest.mark.parametrize("way", list(ADDRESSINGS))
def test_stores_of_every_width(way: str, access_kernels: dict[str, object]) -> None:
    offsets = [48, 80, 113, 150]
    for number, extra in enumerate(OFFSETS.values()):
        for kind, (size, count) in STORES.items():
            if way == "buffer" and extra < 0:
                continue
            data, expected = pattern(512), pattern(512)
            before = registers(data, offsets)
            vectors = {6 + n: [0xA0B0C000 + 256 * n + lane for lane in range(64)] for n in range(min(count, 4))}
            run(
                access_kernels[f"{way} store {kind} {number}"],
                [Before(before.vectors | vectors, before.scalars, execute=before.execute)],
                data=data,
            )  # type: ignore[arg-type]
            for lane, offset in enumerate(offsets):
                raw = b"".join((0xA0B0C000 + 256 * n + lane).to_bytes(4, "little") for n in range(count))[:size]
                expected[offset + extra : offset + extra + size] = np.frombuffer(raw, np.uint8)
            assert data.tobytes() == expected.tobytes(), f"{way} {kind} offset {extra}"


def test_global_offset_range() -> None:
    data = pattern(16384)
    body = "global_load_dword v10, v2, s[8:9] offset:4095\nglobal_load_dword v11, v2, s[8:9] offset:-4096"
    after = execute(body, registers(data, [4096, 8192]), data=data)
    assert after.lanes(10, 2) == [expected_registers(data, at + 4095, 4, False)[0] for at in (4096, 8192)]
    assert after.lanes(11, 2) == [expected_registers(data, at - 4096, 4, False)[0] for at in (4096, 8192)]


def test_vector_offset_is_unsigned_and_added_in_64_bits() -> None:
    """v2 = 0xfffffff0 with a base 4 GiB lower reaches data[-16 + 32]; as a signed offset it would not."""
    data = pattern(64)
    low, high = halves(data, 16)
    after = execute(
        "global_load_dword v10, v2, s[8:9]",
        Before(vectors={2: [0xFFFFFFF0]}, scalars=[(low + 16) & 0xFFFFFFFF, high - 1], execute=1),
        data=data,
    )
    assert after.lanes(10, 1) == expected_registers(data, 16, 4, False)


def test_loads_may_overwrite_their_own_address() -> None:
    data = pattern(64)
    body = "v_mov_b32 v10, v4\nv_mov_b32 v11, v5\nglobal_load_dwordx4 v[10:13], v[10:11], off"
    after = execute(body, registers(data, [0, 16]), data=data)
    assert [after.lanes(10 + n, 2) for n in range(4)] == [
        [expected_registers(data, at, 16, False)[n] for at in (0, 16)] for n in range(4)
    ]


def test_no_active_lane_no_access() -> None:
    after = execute("global_load_dword v10, v[4:5], off\nglobal_store_dword v[4:5], v2, off", Before(execute=0))
    assert after.lanes(10) == [UNTOUCHED + 10] * 64


def test_cache_bits_change_nothing() -> None:
    data = pattern(64)
    after = execute(
        "global_load_dword v10, v[4:5], off sc0 sc1 nt\nbuffer_load_dword v11, v2, s[12:15], 0 offen sc0 sc1 nt",
        registers(data, [8]),
        data=data,
    )
    assert after.lanes(10, 1) == after.lanes(11, 1) == expected_registers(data, 8, 4, False)


# -- scalar loads ------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("count", [1, 2, 4, 8])
def test_scalar_loads_of_every_width(count: int) -> None:
    data = pattern(256)
    kind = {1: "dword", 2: "dwordx2", 4: "dwordx4", 8: "dwordx8"}[count]
    target = "s16" if count == 1 else f"s[16:{15 + count}]"
    after = execute(f"s_load_{kind} {target}, s[8:9], 0x14", Before(scalars=halves(data, 8), execute=0), data=data)
    assert [after.s[16 + n] for n in range(count)] == expected_registers(data, 28, 4 * count, False)
    assert count == 8 or after.s[16 + count] == UNTOUCHED + 16 + count


def test_wide_scalar_loads_need_registers_aligned_to_4_only() -> None:
    data = pattern(256)
    after = execute(
        "s_load_dwordx8 s[28:35], s[8:9], 0x4\ns_waitcnt lgkmcnt(0)\ns_mov_b32 s16, s28\ns_mov_b32 s17, s35",
        Before(scalars=halves(data)),
        data=data,
    )
    assert [after.s[16], after.s[17]] == expected_registers(data, 4, 32, False)[::7]


def test_scalar_load_of_16_dwords() -> None:
    data = pattern(256)
    body = "s_load_dwordx16 s[32:47], s[8:9], 0x8\ns_waitcnt lgkmcnt(0)\n" + "\n".join(
        f"s_mov_b32 s{16 + n}, s{32 + 2 * n}" for n in range(8)
    )
    after = execute(body, Before(scalars=halves(data)), data=data)
    assert [after.s[16 + n] for n in range(8)] == expected_registers(data, 8, 64, False)[::2]


def test_scalar_load_offsets() -> None:
    data = pattern(256)
    body = """s_load_dword s16, s[8:9], -16
    s_load_dword s17, s[8:9], s10
    s_load_dword s18, s[8:9], s10 offset:0x8
    s_load_dword s19, s[8:9], s10 offset:-8
    s_load_dword s20, s[8:9], 0x3
    s_mov_b32 m0, 12
    s_load_dword s21, s[8:9], m0"""
    after = execute(body, Before(scalars=[*halves(data, 64), 32]), data=data)
    offsets = [48, 96, 104, 88, 64, 76]  # the two low bits of the address are ignored
    assert [after.s[16 + n] for n in range(6)] == [expected_registers(data, at, 4, False)[0] for at in offsets]


def test_scalar_load_of_each_wave_its_own() -> None:
    data = pattern(256)
    results = run(
        kernels({"k": "s_load_dword s16, s[8:9], 0x0"})["k"],
        [Before(scalars=halves(data, at)) for at in (0, 100, 4)],
        data=data,
    )
    assert [after.s[16] for after in results] == [expected_registers(data, at, 4, False)[0] for at in (0, 100, 4)]


# -- refused -----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("global_load_lds_dword v[4:5], off", "GLOBAL opcode 42"),
        ("buffer_load_dword v10, v2, s[12:15], 0 idxen", "modifier idxen=1"),
        ("buffer_load_dword off, s[12:15], 0 lds", "modifier lds=1"),
        ("s_dcache_inv", "no semantics"),
        (".long 0xc00a1904, 0", "scalar operand 100, 4 registers"),  # s_load_dwordx4 s[100:103], s[8:9], 0x0
    ],
)
def test_refused(body: str, message: str) -> None:
    data = pattern(64)
    with pytest.raises(Unsupported, match=message):
        execute(body, registers(data, [0]), data=data)
