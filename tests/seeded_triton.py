# SPDX-License-Identifier: Apache-2.0
"""Seeded bugs in what Triton makes of a sum over a workgroup and of a product of two fp8 tiles: one instruction lost or changed.

Both run on four waves. total: each wave leaves its sum in LDS, wave 0 adds them. product, 32 x 64 bytes a tile, wave w loads rows w,
w + 4, ...: x goes through LDS, then y through the same bytes; four barriers a turn, and `n` turns.
"""

from __future__ import annotations

from dataclasses import dataclass

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from tests.gfx942_assembly import Source
from tests.seeded_assembly import Edit, Mutant, source_of

_SCRATCH = ((8, "global_buffer"), (8, "global_buffer"))  # Triton's own arguments; null here
RACE, WAIT, DIVERGENCE, HAZARD, LIMIT = (
    "LDS race",
    "missing s_waitcnt",
    "barrier divergence",
    "MFMA hazard",
    "step limit",
)


@triton.jit
def total(given, out, n, K: tl.constexpr):
    x = tl.load(given + tl.program_id(0) * K + tl.arange(0, K))
    tl.store(out + tl.program_id(0), tl.sum(x))


@triton.jit
def product(x, y, out, n, K: tl.constexpr):
    rows = tl.arange(0, 32)
    acc = tl.zeros((32, 32), tl.float32)
    for k in range(0, n):
        ks = k * K + tl.arange(0, K)
        left = tl.load(x + rows[:, None] * 256 + ks[None, :])
        right = tl.load(y + rows[None, :] * 256 + ks[:, None])
        acc = tl.dot(left, right, acc)
    tl.store(out + rows[:, None] * 32 + rows[None, :], acc)


def sources() -> list[Source]:
    target, four = GPUTarget("hip", "gfx942", 64), {"num_warps": 4}
    made = triton.compile(
        ASTSource(total, {"given": "*i32", "out": "*i32", "n": "i32"}, {"K": 1024}), target=target, options=four
    )
    signature = {"x": "*fp8e4b8", "y": "*fp8e4b8", "out": "*fp32", "n": "i32"}
    options = four | {"matrix_instr_nonkdim": 16, "num_stages": 2}
    other = triton.compile(ASTSource(product, signature, {"K": 64}), target=target, options=options)
    pointers = ((8, "global_buffer"),)
    # n takes 8 bytes: the next argument is aligned
    return [source_of(made.asm["amdgcn"], "total", arguments=pointers * 2 + ((8, "by_value"), *_SCRATCH), dynamic_lds=made.metadata.shared),
            source_of(other.asm["amdgcn"], "product", arguments=pointers * 3 + ((8, "by_value"), *_SCRATCH), dynamic_lds=other.metadata.shared)]  # fmt: skip


@dataclass(frozen=True)
class Lost:
    """An instruction of `base` lost or changed; the fault that it must raise. nothing: that the change does no harm."""

    name: str
    kind: str
    edits: tuple[Edit, ...]
    at: tuple[str, int]
    lane: int | None = 0
    wave: int | None = 0

    @property
    def base(self) -> str:
        return self.name.partition("_")[0]

    @property
    def mutant(self) -> Mutant:
        return Mutant(self.name, self.base, self.edits, self.at, self.lane, self.wave, 0)


_BARRIER, _LGKM = "s_barrier", r"s_waitcnt lgkmcnt\(0\)"
BUGS = [
    Lost("total_barrier_before_reading", RACE, (Edit(_BARRIER, ""),), ("ds_write", 0), 0, 1),
    Lost("total_3_for_2", WAIT, (Edit("s_waitcnt vmcnt.2", "s_waitcnt vmcnt(3)"),), ("v_add_u32_e32", 0)),
    Lost("total_1_for_0", WAIT, (Edit("s_waitcnt vmcnt.0", "s_waitcnt vmcnt(1)"),), ("v_add3_u32", 0)),
    Lost("total_store_before_barrier", WAIT, (Edit(_LGKM, "", 1),), ("ds_read", 0), 1),
    Lost("total_sums_of_waves", WAIT, (Edit(_LGKM, "", 2),), ("v_mov_b32_e32 v4, v3", 0)),
    Lost("total_result", WAIT, (Edit(_LGKM, "", -1),), ("global_store", 0)),
    Lost("total_exec_not_restored", DIVERGENCE, (Edit("s_or_b64 exec", ""),), (_BARRIER, 0), 1),
    Lost("total_exec_not_restored_again", DIVERGENCE, (Edit("s_or_b64 exec", "", 1),), (_BARRIER, 1), 4),
    Lost("product_x_over_y", RACE, (Edit(_BARRIER, ""),), ("ds_read", 2), 0, 1),
    Lost("product_x_not_there", RACE, (Edit(_BARRIER, "", 1),), ("ds_write", 0), 0, 1),
    Lost("product_y_over_x", RACE, (Edit(_BARRIER, "", 2),), ("ds_read", 0), 0, 1),
    Lost("product_y_not_there", RACE, (Edit(_BARRIER, "", 3),), ("ds_write", 8), 0, 1),
    Lost("product_first_row", WAIT, (Edit("s_waitcnt vmcnt.15", ""),), ("ds_write", 0)),
    Lost("product_8_for_7", WAIT, (Edit("s_waitcnt vmcnt.7", "s_waitcnt vmcnt(8)"),), ("ds_write", 4)),
    Lost("product_1_for_0", WAIT, (Edit("s_waitcnt vmcnt.0", "s_waitcnt vmcnt(1)"),), ("ds_write", 15)),
    Lost("product_store_of_x", WAIT, (Edit(_LGKM, "", 2),), ("ds_read", 0), 1),
    Lost("product_store_of_y", WAIT, (Edit(_LGKM, "", 4),), ("ds_read", 2), 1),
    Lost("product_operand", WAIT, (Edit("s_waitcnt lgkmcnt.1", "s_waitcnt lgkmcnt(2)"),), ("v_mfma", 0)),
    Lost("product_second_operand", WAIT, (Edit(_LGKM, "", -1),), ("v_mfma", 1)),
    Lost("product_part_of_sum", HAZARD, (Edit("v_mfma.*v.2:5.$", "v_mfma_f32_16x16x32_fp8_fp8 v[2:5], v[22:23], v[18:19], v[4:7]", 1),), ("v_mfma", 1), -1),
    Lost("product_sum_doubled", HAZARD, (Edit("s_cbranch_scc1 .*_2$", "v_add_f32 v2, v2, v2\ns_cbranch_scc1 .Lproduct_BB0_2"),), ("v_add_f32", 0), -1),
    Lost("product_turns_not_counted", LIMIT, (Edit("s_add_i32 s8, s8, -1", "s_add_i32 s8, s8, 0"), Edit("v_add_u32_e32 v6, 64", "")), ("s_barrier", 0), None, None),
]  # fmt: skip
# Only wave 0 stores and reads behind the second barrier; nobody overwrites what is read before the third.
HARMLESS = [
    Lost("total_second_barrier", "", (Edit(_BARRIER, "", 1),), ("global_store", 0)),
    Lost("product_answers_before_barrier", "", (Edit(_LGKM, "", 3),), ("global_store", 0)),
]
