# SPDX-License-Identifier: Apache-2.0
"""Buffer loads and stores: the address, num_records, descriptors that are refused."""

from __future__ import annotations

import numpy as np
import pytest

from parity.gfx942 import ExecutionFault, Unsupported
from tests.gfx942_data import WORD3, expected_registers, pattern
from tests.gfx942_state import Before, execute, halves


def buffer(data: np.ndarray, records: int, *, soffset: int = 0, offsets: list[int]) -> Before:
    return Before(
        vectors={2: offsets}, scalars=[soffset, 0, 0, 0, *halves(data), records, WORD3], execute=(1 << len(offsets)) - 1
    )


def test_buffer_address_is_base_plus_soffset_plus_voffset_plus_offset() -> None:
    data = pattern(512)
    body = "buffer_load_dword v10, v2, s[12:15], s8 offen offset:12\nbuffer_load_dword v11, off, s[12:15], s8 offset:12\nbuffer_load_dword v12, off, s[12:15], 4"
    after = execute(body, buffer(data, 512, soffset=64, offsets=[0, 100]), data=data)
    assert after.lanes(10, 2) == [expected_registers(data, 64 + 12 + at, 4, False)[0] for at in (0, 100)]
    assert after.lanes(11, 2) == expected_registers(data, 64 + 12, 4, False) * 2
    assert after.lanes(12, 2) == expected_registers(data, 4, 4, False) * 2


def test_lanes_beyond_num_records_read_zero_and_write_nothing() -> None:
    """As hardware does it; with checks on, only an offset that a compiler uses to mask a lane may lie outside."""
    data = pattern(64)
    outside = [32, 36, 0x80000000, 0xFFFFFFFC]
    body = "buffer_load_dwordx2 v[10:11], v2, s[12:15], 0 offen\nbuffer_store_dword v2, v2, s[12:15], 0 offen"
    after = execute(body, buffer(data, 32, offsets=[0, 24, *outside]), checks=False, data=data)
    assert after.lanes(10, 6) == [*(expected_registers(pattern(64), at, 4, False)[0] for at in (0, 24)), 0, 0, 0, 0]
    assert after.lanes(11, 6) == [*(expected_registers(pattern(64), at, 4, False)[0] for at in (4, 28)), 0, 0, 0, 0]
    expected = pattern(64)
    expected[0:4] = 0
    expected[24:28] = [24, 0, 0, 0]
    assert data.tobytes() == expected.tobytes()


def test_descriptor_in_the_last_registers() -> None:
    data = pattern(64)
    body = "s_mov_b64 s[96:97], s[12:13]\ns_mov_b64 s[98:99], s[14:15]\nbuffer_load_dword v10, v2, s[96:99], 0 offen"
    after = execute(body, buffer(data, 64, offsets=[4, 60]), data=data)
    assert after.lanes(10, 2) == [expected_registers(data, at, 4, False)[0] for at in (4, 60)]


def test_num_records_does_not_replace_the_allocation() -> None:
    """The usual descriptor has 2^32 - 1 records: it stops nothing, the allocation does."""
    data = pattern(64)
    with pytest.raises(ExecutionFault, match="read of 4 bytes at offset 64 of data"):
        execute("buffer_load_dword v10, v2, s[12:15], 0 offen", buffer(data, 0xFFFFFFFF, offsets=[0, 64]), data=data)


@pytest.mark.parametrize(
    ("body", "records", "soffset", "offsets"),
    [
        ("buffer_load_dwordx4 v[10:13], v2, s[12:15], 0 offen", 24, 0, [16]),  # its first dwords are inside
        ("buffer_load_dword v10, v2, s[12:15], 0 offen", 30, 0, [28]),  # its first bytes are inside
        ("buffer_store_dwordx2 v[2:3], v2, s[12:15], 0 offen", 28, 0, [24]),
        ("buffer_load_dword v10, v2, s[12:15], s8 offen", 32, 16, [20]),  # inside without soffset, outside with it
        ("buffer_load_dword v10, v2, s[12:15], 0 offen offset:16", 32, 0, [0xFFFFFFF4]),  # 4 if the sum wraps at 2^32
    ],
)
def test_lanes_across_the_end_of_a_buffer_are_faults(body: str, records: int, soffset: int, offsets: list[int]) -> None:
    data = pattern(64)
    for checks in (True, False):
        with pytest.raises(ExecutionFault, match=f"out-of-bounds buffer: .*descriptor says {records} bytes"):
            execute(body, buffer(data, records, soffset=soffset, offsets=offsets), checks=checks, data=data)
    inactive = buffer(data, records, soffset=soffset, offsets=offsets)
    execute(body, Before(inactive.vectors, inactive.scalars, execute=0), data=data)


@pytest.mark.parametrize(
    ("word", "value", "message"),
    [(1, 0x00100000, "word 1 0x10.*without stride and swizzle"), (1, 0x80000000, "word 1 0x8.*without stride and swizzle"), (3, 0x00027000 | 1 << 23, "word 3 0x827000"),
     (3, 0, "word 3 0x0"), (3, 0xC0027000, "word 3 0xc0027000")],
)  # fmt: skip
def test_unusual_buffer_descriptors_are_refused(word: int, value: int, message: str) -> None:
    data = pattern(64)
    before = buffer(data, 64, offsets=[0])
    scalars = list(before.scalars)
    scalars[4 + word] |= value
    scalars[4 + word] = value if word == 3 else scalars[4 + word]
    with pytest.raises(Unsupported, match=message):
        execute("buffer_load_dword v10, v2, s[12:15], 0 offen", Before(before.vectors, scalars, execute=1), data=data)
