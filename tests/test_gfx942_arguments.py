# SPDX-License-Identifier: Apache-2.0
"""Kernel arguments: laid out as the metadata says, hidden ones, preloaded ones, wrong counts and sizes."""

from __future__ import annotations

import struct

import numpy as np
import pytest

from parity.gfx942 import ExecutorError, Kernel, Unsupported, launch
from parity.gfx942.code_object import assemble
from tests.gfx942_assembly import Source, allocations, pointer, text_of
from tests.gfx942_on_gpu import assembled, run_kernel

OUT = ((8, "global_buffer"),)
MIXED = (*OUT, (4, "by_value"), (4, "by_value"), (16, "by_value"))
ECHO = """s_load_dwordx2 s[4:5], s[0:1], 0x0
s_load_dwordx4 s[8:11], s[0:1], 0x8
s_load_dwordx2 s[12:13], s[0:1], 0x18
s_waitcnt lgkmcnt(0)
v_mov_b32 v1, 0
"""
ONE: dict[str, tuple[int, int, int]] = {"grid": (1, 1, 1), "block": (64, 1, 1)}


def built(body: str, arguments: tuple[tuple[int, str], ...], *, directives: str = "") -> Kernel:
    code = assemble(text_of(Source("k", body, arguments, directives=directives)))
    return assembled(code, "k", instructions=body)


def stores(count: int) -> str:
    """s8 and the following to the first dwords of s[4:5]."""
    return "\n".join(f"v_mov_b32 v2, s{8 + n}\nglobal_store_dword v1, v2, s[4:5] offset:{4 * n}" for n in range(count))


def test_arguments_are_laid_out_as_the_metadata_says() -> None:
    out = np.zeros(6, np.uint32)
    long = struct.pack("<I", 1) + b"ignored tail"  # launchers may pass more bytes than the kernel reads
    arguments = [pointer(out), long, struct.pack("<i", -2), struct.pack("<4I", 3, 4, 5, 6)]
    run_kernel(built(ECHO + stores(6), MIXED), arguments, memory=allocations(out=out), **ONE)
    assert out.tolist() == [1, 0xFFFFFFFE, 3, 4, 5, 6]


def test_argument_count_and_size() -> None:
    kernel, out = built(ECHO, MIXED), np.zeros(6, np.uint32)
    good = [pointer(out), bytes(4), bytes(4), bytes(16)]
    with pytest.raises(ValueError, match="k takes 4 arguments, got 3"):
        launch(kernel, good[:3], memory=[], **ONE)
    with pytest.raises(ValueError, match="k takes 4 arguments, got 5"):
        launch(kernel, [*good, b""], memory=[], **ONE)
    with pytest.raises(ValueError, match="argument 3 has 12 bytes, the kernel reads 16"):
        launch(kernel, [*good[:3], bytes(12)], memory=[], **ONE)


HIDDEN = (*OUT, (4, "hidden_block_count_x"), (4, "hidden_block_count_y"), (4, "hidden_block_count_z"),
          (2, "hidden_group_size_x"), (2, "hidden_group_size_y"), (2, "hidden_group_size_z"), (2, "hidden_remainder_x"),
          (2, "hidden_remainder_y"), (2, "hidden_remainder_z"), (8, "hidden_global_offset_x"), (2, "hidden_grid_dims"),
          (2, "hidden_none"), (4, "hidden_dynamic_lds_size"))  # fmt: skip


def test_hidden_arguments() -> None:
    body = """s_load_dwordx2 s[4:5], s[0:1], 0x0
    s_load_dwordx8 s[8:15], s[0:1], 0x8
    s_load_dwordx2 s[16:17], s[0:1], 0x28
    s_waitcnt lgkmcnt(0)
    v_mov_b32 v1, 0
    """
    out = np.zeros(10, np.uint32)
    kernel = built(body + stores(10), HIDDEN)
    run_kernel(kernel, [pointer(out)], (5, 3, 2), (32, 4, 2), allocations(out=out), dynamic_lds=1000)
    assert out.tolist() == [5, 3, 2, 32 | 4 << 16, 2, 0, 0, 0, 3, 1000]


def test_hidden_argument_of_unknown_meaning_is_refused() -> None:
    kernel = built("s_nop 0", ((8, "hidden_hostcall_buffer"),))
    with pytest.raises(Unsupported, match="k: argument hidden_hostcall_buffer"):
        launch(kernel, [], memory=[], **ONE)


def test_kernel_arguments_are_bounded_too() -> None:
    out = np.zeros(1, np.uint32)
    with pytest.raises(ExecutorError, match="read of 4 bytes at offset"):
        launch(built("s_load_dword s6, s[0:1], 0x200", OUT), [pointer(out)], memory=allocations(out=out), **ONE)


# -- preload -----------------------------------------------------------------------------------------------------------
FOUR = (*OUT, (4, "by_value"), (4, "by_value"), (4, "by_value"))
BEFORE = "s_trap 2\n.fill 63, 4, 0xbf800000\n"  # 256 bytes of code for firmware that does not preload


def preloading(body: str, length: int, offset: int) -> Kernel:
    directives = f""".amdhsa_user_sgpr_kernarg_preload_length {length}
    .amdhsa_user_sgpr_kernarg_preload_offset {offset}"""
    return built(BEFORE + body, FOUR, directives=directives)


def test_preloaded_arguments_follow_the_kernarg_pointer() -> None:
    """Five dwords in s2 to s6, then workgroup id x; the wave starts 256 bytes on."""
    body = "v_mov_b32 v1, 0\n" + "\n".join(f"v_mov_b32 v{n}, s{2 + n}" for n in range(2, 6))
    kernel = preloading(body + "\nglobal_store_dwordx4 v1, v[2:5], s[2:3]", 5, 0)
    assert (kernel.preload_sgprs, kernel.preload_offset) == (5, 0)
    out = np.full(4, 99, np.uint32)
    launch(kernel, [pointer(out), *(struct.pack("<I", n) for n in (7, 8, 9))], memory=allocations(out=out), **ONE)
    assert out.tolist() == [7, 8, 9, 0]


def test_preload_from_an_offset() -> None:
    body = """s_load_dwordx2 s[8:9], s[0:1], 0x0
    s_waitcnt lgkmcnt(0)
    v_mov_b32 v1, 0
    v_mov_b32 v2, s2
    v_mov_b32 v3, s3
    global_store_dwordx2 v1, v[2:3], s[8:9]"""
    out = np.zeros(2, np.uint32)
    arguments = [pointer(out), *(struct.pack("<I", n) for n in (7, 8, 9))]
    launch(preloading(body, 2, 3), arguments, memory=allocations(out=out), **ONE)
    assert out.tolist() == [8, 9]
