# SPDX-License-Identifier: Apache-2.0
"""DS instructions: LDS loads and stores of every width, pairs with strides, overflow, lane exchanges, what is refused."""

from __future__ import annotations

import numpy as np
import pytest

from parity.gfx942 import ExecutionFault, Unsupported, launch, load
from parity.gfx942.code_object import assemble
from tests.gfx942_assembly import Source, allocations, pointer, text_of
from tests.gfx942_on_gpu import assembled, run_kernel
from tests.gfx942_state import UNTOUCHED, Before, execute

# v2: byte address; the bytes at 0..63 of LDS become 0x81 + 37 n modulo 256 first, written as dwords
SEED = bytes((n * 37 + 0x81) & 0xFF for n in range(256))
FILL = "v_lshlrev_b32 v20, 2, v0\nds_write_b32 v20, v3\ns_waitcnt lgkmcnt(0)\n"
READS = {"u8": (1, False, 1), "i8": (1, True, 1), "u16": (2, False, 1), "i16": (2, True, 1), "b32": (4, False, 1), "b64": (8, False, 2),
         "b96": (12, False, 3), "b128": (16, False, 4)}  # fmt: skip
WRITES = {"b8": (1, 1), "b16": (2, 1), "b32": (4, 1), "b64": (8, 2), "b96": (12, 3), "b128": (16, 4)}


def seeded(addresses: list[int], **more: list[int]) -> Before:
    """v3: the dwords that FILL stores, v2: addresses."""
    return Before(
        vectors={2: addresses, 3: list(np.frombuffer(SEED, np.uint32))}
        | {int(key[1:]): value for key, value in more.items()}
    )


def dwords(raw: bytes) -> list[int]:
    return [int.from_bytes(raw[n : n + 4], "little") for n in range(0, len(raw), 4)]


def test_reads_of_every_width() -> None:
    addresses = [0, 4, 21, 30, 100]
    for offset in (0, 8, 101):
        lines, register = [], 10
        for kind in ("u8", "i8", "u16", "i16", "b32"):
            lines.append(f"ds_read_{kind} v{register}, v2 offset:{offset}")
            register += 1
        after = execute(FILL + "\n".join(lines), seeded(addresses), lds=512)
        for number, kind in enumerate(("u8", "i8", "u16", "i16", "b32")):
            size, signed, _ = READS[kind]
            raw = [SEED[at + offset : at + offset + size] for at in addresses]
            expected = [int.from_bytes(part, "little", signed=signed) & 0xFFFFFFFF for part in raw]
            assert after.lanes(10 + number, len(addresses)) == expected, f"{kind} offset {offset}"


@pytest.mark.parametrize("kind", ["b64", "b96", "b128"])
def test_wide_reads(kind: str) -> None:
    size, _, count = READS[kind]
    addresses = [0, 4, 24, 100, 77]
    after = execute(FILL + f"ds_read_{kind} v[10:{9 + count}], v2 offset:12", seeded(addresses), lds=512)
    for lane, at in enumerate(addresses):
        assert [int(after.v[10 + n][lane]) for n in range(count)] == dwords(SEED[at + 12 : at + 12 + size])
    assert after.lanes(10 + count)[0] == UNTOUCHED + 10 + count


@pytest.mark.parametrize("kind", list(WRITES))
def test_writes_of_every_width(kind: str) -> None:
    size, count = WRITES[kind]
    data = {f"v{4 + n}": [0xA0B0C000 + 256 * n + lane for lane in range(64)] for n in range(count)}
    registers = "v4" if count == 1 else f"v[4:{3 + count}]"
    body = (
        FILL
        + f"s_mov_b64 exec, 0x3\nds_write_{kind} v2, {registers} offset:5\ns_mov_b64 exec, -1\nds_read_b32 v10, v20"
    )
    after = execute(body, seeded([32, 103], **data), lds=512)
    expected = bytearray(SEED)
    for lane, at in enumerate((32, 103)):
        raw = b"".join((0xA0B0C000 + 256 * n + lane).to_bytes(4, "little") for n in range(count))
        expected[at + 5 : at + 5 + size] = raw[:size]
    assert after.lanes(10) == dwords(bytes(expected))


def test_paired_reads_and_writes() -> None:
    """read2/write2 count their two offsets in elements; the st64 forms in 64 elements."""
    body = """v_lshlrev_b32 v20, 3, v0
    s_mov_b64 exec, 1
    ds_write2_b32 v2, v3, v4 offset0:1 offset1:3
    ds_write2st64_b32 v2, v5, v6 offset0:1 offset1:2
    ds_write2_b64 v2, v[8:9], v[6:7] offset0:10 offset1:4
    ds_write2st64_b64 v2, v[4:5], v[8:9] offset0:3 offset1:2
    ds_read2_b32 v[10:11], v2 offset0:3 offset1:1
    ds_read2st64_b32 v[12:13], v2 offset0:2 offset1:1
    ds_read2_b64 v[14:17], v2 offset0:4 offset1:10"""
    values = {register: [100 + register] for register in range(3, 10)}
    after = execute(body, Before(vectors={2: [8], **values}), lds=4096)
    assert [after.lanes(n, 1)[0] for n in range(10, 18)] == [104, 103, 106, 105, 106, 107, 108, 109]
    single = """s_mov_b64 exec, 1
    ds_write2st64_b64 v2, v[4:5], v[8:9] offset0:3 offset1:2
    ds_read_b64 v[10:11], v2 offset:1536
    ds_read_b64 v[12:13], v2 offset:1024
    ds_read2st64_b64 v[14:17], v2 offset0:2 offset1:3
    ds_write2_b32 v2, v3, v4 offset0:1 offset1:3
    ds_read_b32 v18, v2 offset:4
    s_waitcnt lgkmcnt(0)
    v_mov_b32 v10, v18"""
    after = execute(single, Before(vectors={2: [8], **values}), lds=4096)
    assert [after.lanes(n, 1)[0] for n in range(10, 18)] == [103, 105, 108, 109, 108, 109, 104, 105]


def test_inactive_lanes_neither_read_nor_write() -> None:
    body = (
        FILL + "s_mov_b64 exec, 0x2\nds_read_b32 v10, v2\nds_write_b32 v2, v4\ns_mov_b64 exec, -1\nds_read_b32 v11, v20"
    )
    after = execute(body, seeded([0, 8, 1 << 30], v4=[1, 2, 3]), lds=256)
    words = dwords(SEED)
    assert after.lanes(10, 3) == [UNTOUCHED + 10, words[2], UNTOUCHED + 10]
    assert after.lanes(11, 4) == [words[0], words[1], 2, words[3]]


def test_read_over_its_own_address() -> None:
    after = execute(FILL + "v_mov_b32 v10, v2\nds_read_b128 v[10:13], v10", seeded([0, 16]), lds=256)
    assert [after.lanes(10 + n, 2) for n in range(4)] == [[dwords(SEED)[n], dwords(SEED)[4 + n]] for n in range(4)]


# -- beyond the workgroup's LDS ------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("body", "lds", "message", "lane"),
    [
        ("ds_read_b32 v10, v2", 256, "read of 4 bytes at LDS offset 256; the workgroup has 256 bytes", 64),
        ("ds_read_b32 v10, v2 offset:4", 256, "read of 4 bytes at LDS offset 256", 63),
        ("ds_read_b128 v[10:13], v2", 256, "read of 16 bytes at LDS offset 244", 61),
        ("ds_write_b8 v2, v3 offset:4", 256, "write of 1 bytes at LDS offset 256", 63),
        ("ds_write2_b32 v2, v3, v3 offset1:9", 256, "write of 4 bytes at LDS offset 256", 55),
        ("ds_read_b32 v10, v2", 0, "read of 4 bytes at LDS offset 0; the workgroup has 0 bytes", 0),
        ("v_mov_b32 v2, -4\nds_read_b32 v10, v2", 256, "read of 4 bytes at LDS offset 4294967292", 0),
    ],
)
def test_overflow(body: str, lds: int, message: str, lane: int) -> None:
    """Two waves: work-item i has address 4 i, so that lane 64 stands for the second wave."""
    source = Source("k", f"v_lshlrev_b32 v2, 2, v0\nv_mov_b32 v3, 0\n{body}", (), lds=lds)
    with pytest.raises(ExecutionFault) as caught:
        launch(load(assemble(text_of(source))), [], (2, 1, 1), (128, 1, 1), [])
    fault = caught.value
    assert (fault.kind, fault.kernel, fault.workgroup) == ("out-of-bounds LDS", "k", (0, 0, 0))
    assert message in str(fault)
    assert 64 * fault.wave + fault.lane == lane


def test_dynamic_lds_adds_to_the_descriptor() -> None:
    source = Source("k", "v_mov_b32 v2, 0\nds_write_b32 v2, v2 offset:508", (), lds=256)
    kernel = load(assemble(text_of(source)))
    launch(kernel, [], (1, 1, 1), (64, 1, 1), [], dynamic_lds=256)
    with pytest.raises(ExecutionFault, match="the workgroup has 508 bytes"):
        launch(kernel, [], (1, 1, 1), (64, 1, 1), [], dynamic_lds=252)


def test_dynamic_lds_holds_what_is_written() -> None:
    """Beyond the descriptor's 256 bytes: each of 64 lanes writes and reads its own dword there."""
    body = """s_load_dwordx2 s[4:5], s[0:1], 0x0
    v_lshlrev_b32 v1, 2, v0
    v_add_u32 v2, 77, v0
    ds_write_b32 v1, v2 offset:256
    s_waitcnt lgkmcnt(0)
    ds_read_b32 v3, v1 offset:256
    s_waitcnt lgkmcnt(0)
    global_store_dword v1, v3, s[4:5]"""
    out = np.zeros(64, np.uint32)
    code = assemble(text_of(Source("k", body, ((8, "global_buffer"),), lds=256)))
    kernel = assembled(code, "k", instructions=body)
    run_kernel(kernel, [pointer(out)], (1, 1, 1), (64, 1, 1), allocations(out=out), dynamic_lds=256)
    assert out.tolist() == [77 + lane for lane in range(64)]


def test_workgroups_have_their_own_lds() -> None:
    """Each adds its id to a cell that must have been 0 (checks off: nobody wrote it), and to nothing of its neighbours'."""
    body = """s_load_dwordx2 s[4:5], s[0:1], 0x0
    v_mov_b32 v1, 0
    ds_read_b32 v2, v1
    s_waitcnt lgkmcnt(0)
    v_add_u32 v2, s2, v2
    ds_write_b32 v1, v2
    ds_read_b32 v3, v1
    s_waitcnt lgkmcnt(0)
    v_mov_b32 v4, s2
    v_lshlrev_b32 v4, 2, v4
    global_store_dword v4, v3, s[4:5]"""
    out = np.zeros(300, np.uint32)
    kernel = load(assemble(text_of(Source("k", body, ((8, "global_buffer"),), lds=64))))
    launch(kernel, [pointer(out)], (300, 1, 1), (64, 1, 1), allocations(out=out), checks=False)
    assert out.tolist() == list(range(300))


# -- lane exchanges ----------------------------------------------------------------------------------------------------
VALUES = [1000 + lane for lane in range(64)]


def test_bpermute_reads_the_lane_that_each_lane_names() -> None:
    sources = [(lane * 5 + 3) % 64 for lane in range(64)]
    after = execute(
        "ds_bpermute_b32 v10, v3, v2\nds_bpermute_b32 v11, v3, v2 offset:8",
        Before(vectors={2: VALUES, 3: [4 * n for n in sources]}),
    )
    assert after.lanes(10) == [1000 + n for n in sources]
    assert after.lanes(11) == [1000 + (n + 2) % 64 for n in sources]


def test_bpermute_ignores_low_and_high_address_bits() -> None:
    after = execute(
        "ds_bpermute_b32 v10, v3, v2", Before(vectors={2: VALUES, 3: [7, 4 * 64 + 8, 0xFFFFFFFF, 0x80000000]})
    )
    assert after.lanes(10, 4) == [1001, 1002, 1063, 1000]


def test_bpermute_gives_0_from_inactive_lanes_and_writes_active_ones() -> None:
    after = execute("ds_bpermute_b32 v10, v3, v2", Before(vectors={2: VALUES, 3: [4, 8, 12, 0]}, execute=0b0110))
    assert after.lanes(10, 4) == [UNTOUCHED + 10, 1002, 0, UNTOUCHED + 10]


SWIZZLES = {  # offset: source of lane n (ISA, DS_SWIZZLE_B32)
    "swizzle(QUAD_PERM,3,1,0,2)": lambda n: n // 4 * 4 + [3, 1, 0, 2][n % 4],
    "swizzle(SWAP,16)": lambda n: n ^ 16,
    "swizzle(REVERSE,8)": lambda n: n ^ 7,
    "swizzle(BROADCAST,32,5)": lambda n: n // 32 * 32 + 5,
    'swizzle(BITMASK_PERM,"01pi0")': lambda n: n // 32 * 32 + ((n & 0b00110 | 0b01000) ^ 0b00010),
    "0x041f": lambda n: n ^ 1,
    "0x8000": lambda n: n // 4 * 4,
}


@pytest.mark.parametrize("offset", list(SWIZZLES))
def test_swizzle(offset: str) -> None:
    after = execute(f"ds_swizzle_b32 v10, v2 offset:{offset}", Before(vectors={2: VALUES}))
    assert after.lanes(10) == [1000 + SWIZZLES[offset](lane) for lane in range(64)]


def test_swizzle_gives_0_from_inactive_lanes() -> None:
    after = execute("ds_swizzle_b32 v10, v2 offset:swizzle(SWAP,1)", Before(vectors={2: VALUES}, execute=0b0111))
    assert after.lanes(10, 4) == [1001, 1000, 0, UNTOUCHED + 10]


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("ds_swizzle_b32 v10, v2 offset:0xc020", "rotate and FFT modes"),
        ("ds_swizzle_b32 v10, v2 offset:0xe001", "rotate and FFT modes"),
        (".long 0xd86d0000, 0x0a000002", "modifier gds=1"),  # ds_read_b32 v10, v2 gds
    ],
)
def test_refused(body: str, message: str) -> None:
    with pytest.raises(Unsupported, match=message):
        execute(body, lds=64)
