# SPDX-License-Identifier: Apache-2.0
"""What the decoder refuses: unknown opcodes with their bytes, reserved bits, truncated text."""

from __future__ import annotations

import struct

import pytest

from parity.gfx942 import Unsupported
from parity.gfx942.decode import decode, decode_one
from tests.gfx942_assembly import machine_code


def bits(*words: int) -> bytes:
    return struct.pack(f"<{len(words)}I", *words)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((0xBF8B0000,), r"SOPP opcode 11 \(bf8b0000 at pc 0x0\)"),
        ((0xBE803F00,), r"SOP1 opcode 63 \(be803f00"),
        ((0xBF7F0000,), r"SOPC opcode 127"),
        ((0xBFFF0000,), r"SOPP opcode 127"),
        ((0x7E00FE00,), r"VOP1 opcode 127"),
        ((0x2C000000,), r"VOP2 opcode 22"),
        ((0x7C000000,), r"VOPC opcode 0 "),
        ((0xD3A70000, 0), r"VOP3P opcode 39"),
        ((0xD3FF0000, 0), r"VOP3P-MAI opcode 127"),
        ((0xD1C00000, 0), r"VOP3 opcode 448"),
        ((0xD0000000, 0), r"VOP3\(VOPC\) opcode 0 "),
        ((0xD1160000, 0), r"VOP3\(VOP2\) opcode 22"),
        ((0xD1BF0000, 0), r"VOP3\(VOP1\) opcode 127"),
        ((0xC3FC0000, 0), r"SMEM opcode 255"),
        ((0xD8FE0000, 0), r"DS opcode 127"),
        ((0xE1FC0000, 0), r"MUBUF opcode 127"),
        ((0xDDFC0000, 0), r"FLAT opcode 127"),
        ((0xDDFC4000, 0), r"SCRATCH opcode 127"),
        ((0xDDFC8000, 0), r"GLOBAL opcode 127"),
        ((0xDC50C000, 0), r"reserved FLAT segment"),
        ((0xE8000000, 0), r"no format of gfx942 matches e8000000"),  # MTBUF
        ((0xF0000000, 0), r"no format of gfx942 matches f0000000"),  # images
    ],
)
def test_unknown_opcode_is_refused_with_its_bytes(words: tuple[int, ...], message: str) -> None:
    with pytest.raises(Unsupported, match=message):
        decode_one(bits(*words), 0)


@pytest.mark.parametrize(
    ("line", "word", "bit"),
    [
        ("s_load_dword s5, s[8:9], 0x10", 0, 13),
        ("s_load_dword s5, s[8:9], 0x10", 1, 21),
        ("s_load_dword s5, s[8:9], 0x10", 1, 24),
        ("buffer_load_dword v4, off, s[8:11], 0", 0, 25),
        ("buffer_load_dword v4, off, s[8:11], 0", 1, 21),
        ("v_mov_b32_dpp v5, v7 row_mirror row_mask:0xf bank_mask:0xf", 1, 17),
        ("v_mov_b32_dpp v5, v7 row_mirror row_mask:0xf bank_mask:0xf", 1, 18),
        ("v_mov_b32_sdwa v5, v7 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:DWORD", 1, 22),
        ("v_add_f32_sdwa v5, v7, v9 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:DWORD src1_sel:DWORD", 1, 30),
    ],
)
def test_reserved_bits_are_refused(line: str, word: int, bit: int) -> None:
    words = list(struct.unpack("<2I", machine_code([line])[:8]))
    decode_one(bits(*words), 0)
    words[word] |= 1 << bit
    with pytest.raises(Unsupported, match="reserved"):
        decode_one(bits(*words), 0)


@pytest.mark.parametrize("line", ["s_mov_b32 s5, 0x12345678", "v_mov_b32 v5, 0x12345678", "s_load_dword s5, s[8:9], 0x10",
                                  "v_fma_f32 v5, v7, v9, v11", "v_pk_mul_f32 v[6:7], v[8:9], v[10:11]", "ds_read_b32 v5, v7",
                                  "global_load_dword v4, v[8:9], off", "buffer_load_dword v4, off, s[8:11], 0",
                                  "v_mov_b32_dpp v5, v7 row_mirror row_mask:0xf bank_mask:0xf", "v_fmamk_f32 v5, v7, 0x11121314, v9",
                                  "v_mov_b32_sdwa v5, v7 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:BYTE_0"])  # fmt: skip
def test_truncated_text_is_refused(line: str) -> None:
    code = machine_code([line])[:8]
    for length in (0, 2, 4, 7):
        with pytest.raises(Unsupported, match="leaves the code"):
            decode_one(code[:length], 0)


def test_pc_outside_the_text_is_refused() -> None:
    with pytest.raises(Unsupported, match="pc 0x8 leaves the code"):
        decode_one(bits(0xBF810000, 0), 8)
    with pytest.raises(Unsupported, match="leaves the code"):
        decode_one(bits(0xBF810000), -4)


def test_a_literal_in_vop3_is_refused_where_it_is_used() -> None:
    """gfx942 has no literals in 64-bit encodings: code 255 there must not be taken for one."""
    found = decode_one(bits(0xD1CB0005, 0x042612FF), 0)
    assert found.name == "v_fma_f32"
    assert "literal" not in found.fields


def test_a_decoded_text_ends_at_padding() -> None:
    code = machine_code(["s_nop 0", "s_endpgm"])
    assert [found.name for found in decode(code[:4])] == ["s_nop"]
    assert [found.name for found in decode(code[:8] + bits(0xE8000000))] == ["s_nop", "s_endpgm"]
    with pytest.raises(Unsupported, match="e8000000 at pc 0x4"):
        decode(code[:4] + bits(0xE8000000))
