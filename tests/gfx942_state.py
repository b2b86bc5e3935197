# SPDX-License-Identifier: Apache-2.0
"""Runs a few instructions between a prologue that sets registers and an epilogue that stores them.

Each workgroup is one wave with its own registers: v2..v9 and s8..s15 come from memory, so do VCC, EXEC and SCC; v10..v17,
s16..s23, VCC, EXEC and SCC go back. v10..v17 and s16..s23 start as UNTOUCHED plus their number, so that a missing write shows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from parity.gfx942 import Kernel, LaunchReport
from parity.gfx942.code_object import assemble
from tests.gfx942_assembly import Source, allocations, pointer, text_of
from tests.gfx942_on_gpu import assembled, run_kernel

UNTOUCHED = 0xDEAD0000
BLOCK = 4096  # bytes of one wave's registers in memory
ALL = 0xFFFFFFFFFFFFFFFF
_SCALARS = 2048 // 4  # where they begin, in dwords

_PROLOGUE = "\n".join([
    "s_load_dwordx4 s[4:7], s[0:1], 0x0", "s_waitcnt lgkmcnt(0)", "v_lshlrev_b32_e32 v1, 2, v0", "s_lshl_b32 s3, s2, 12",
    "s_add_u32 s4, s4, s3", "s_addc_u32 s5, s5, 0", "s_add_u32 s6, s6, s3", "s_addc_u32 s7, s7, 0",
    *(f"global_load_dword v{2 + n}, v1, s[4:5] offset:{256 * n}" for n in range(8)),
    "s_load_dwordx8 s[8:15], s[4:5], 0x800", "s_load_dwordx2 vcc, s[4:5], 0x820", "s_load_dwordx4 s[24:27], s[4:5], 0x828",
    *(f"v_mov_b32_e32 v{n}, {UNTOUCHED + n:#x}" for n in range(10, 18)),
    *(f"s_mov_b32 s{n}, {UNTOUCHED + n:#x}" for n in range(16, 24)),
    "s_waitcnt vmcnt(0) lgkmcnt(0)", "s_cmp_lg_u32 s26, 0", "s_mov_b64 exec, s[24:25]",
])  # fmt: skip
_STORED = [f"s{n}" for n in range(16, 24)] + ["vcc_lo", "vcc_hi", "s24", "s25", "s26"]
_EPILOGUE = "\n".join([
    # a body need not wait for its loads and matrix products itself
    "s_waitcnt vmcnt(0) lgkmcnt(0)", "s_nop 15", "s_nop 3", "s_cselect_b32 s26, 1, 0", "s_mov_b64 s[24:25], exec", "s_mov_b64 exec, -1", "v_mov_b32_e32 v19, 0",
    *(f"global_store_dword v1, v{10 + n}, s[6:7] offset:{256 * n}" for n in range(8)),
    *(f"v_mov_b32_e32 v18, {name}\nglobal_store_dword v19, v18, s[6:7] offset:{2048 + 4 * n}" for n, name in enumerate(_STORED)),
])  # fmt: skip


@dataclass(frozen=True)
class Before:
    """Registers of one wave before the body. vectors: register -> up to 64 values; scalars: s8 and the following."""

    vectors: dict[int, Sequence[int]] = field(default_factory=dict)
    scalars: Sequence[int] = ()
    vcc: int = 0
    execute: int = ALL
    scc: int = 0


@dataclass(frozen=True)
class After:
    """Registers of one wave after the body: v[n] uint32 [64] for n in 10..17, s[n] for n in 16..23; report: None on a GPU."""

    v: dict[int, np.ndarray]
    s: dict[int, int]
    vcc: int
    execute: int
    scc: int
    report: LaunchReport | None

    def lanes(self, register: int, count: int = 64) -> list[int]:
        return [int(value) for value in self.v[register][:count]]


def source(name: str, body: str, *, lds: int = 0) -> Source:
    return Source(name, "\n".join([_PROLOGUE, body, _EPILOGUE]), accum_offset=32, lds=lds)


def kernels(bodies: dict[str, str], *, lds: int = 0) -> dict[str, Kernel]:
    """All bodies assembled in one call."""
    code = assemble(text_of(*(source(name, body, lds=lds) for name, body in bodies.items())))
    return {name: assembled(code, name, instructions=body) for name, body in bodies.items()}


def run(kernel: Kernel, waves: Sequence[Before], *, checks: bool = True, **memory: np.ndarray) -> list[After]:
    """One workgroup of one wave for each of `waves`; `memory` names further arrays that the kernel may touch."""
    given = np.zeros((len(waves), BLOCK // 4), np.uint32)
    for row, before in zip(given, waves, strict=True):
        for register, values in before.vectors.items():
            row[64 * (register - 2) : 64 * (register - 2) + len(values)] = values
        row[_SCALARS : _SCALARS + len(before.scalars)] = before.scalars
        rest = [
            before.vcc & 0xFFFFFFFF,
            before.vcc >> 32,
            before.execute & 0xFFFFFFFF,
            before.execute >> 32,
            before.scc,
        ]
        row[_SCALARS + 8 : _SCALARS + 13] = rest
    stored = np.zeros_like(given)
    known = allocations(given=given, stored=stored, **memory)
    report = run_kernel(kernel, [pointer(given), pointer(stored)], (len(waves), 1, 1), (64, 1, 1), known, checks=checks)
    return [_after(row, report) for row in stored]


def _after(row: np.ndarray, report: LaunchReport | None) -> After:
    scalars = [int(value) for value in row[_SCALARS : _SCALARS + len(_STORED)]]
    return After(
        v={10 + n: row[64 * n : 64 * n + 64] for n in range(8)},
        s={16 + n: scalars[n] for n in range(8)},
        vcc=scalars[8] | scalars[9] << 32, execute=scalars[10] | scalars[11] << 32, scc=scalars[12], report=report,
    )  # fmt: skip


def execute(
    body: str, before: Before | None = None, *, lds: int = 0, checks: bool = True, **memory: np.ndarray
) -> After:
    """Assemble and run one body on one wave."""
    return run(kernels({"body": body}, lds=lds)["body"], [before or Before()], checks=checks, **memory)[0]


def halves(array: np.ndarray, offset: int = 0) -> list[int]:
    """Address of byte `offset` of an array, as the two dwords of a register pair."""
    address = int(array.ctypes.data) + offset
    return [address & 0xFFFFFFFF, address >> 32]
