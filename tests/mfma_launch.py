# SPDX-License-Identifier: Apache-2.0
"""Matrix products through the executor or on a GPU: one kernel a form, operands and results laid out as fixtures/mfma/README.md says."""

from __future__ import annotations

import numpy as np

from parity.gfx942 import Kernel
from parity.gfx942.code_object import assemble
from tests.gfx942_assembly import Source, allocations, pointer, text_of
from tests.gfx942_on_gpu import assembled, run_kernel

FORMS = [
    f"{rows}_{left}_{right}" for rows in ("16x16x32", "32x32x16") for left in ("fp8", "bf8") for right in ("fp8", "bf8")
]
ONE = 0x40  # 1.0 in both encodings


def build() -> dict[str, Kernel]:
    """A kernel for each form, assembled in one call."""
    code = assemble(text_of(*(kernel_source(form) for form in FORMS)))
    return {form: assembled(code, "k" + form, instructions=f"v_mfma_f32_{form}") for form in FORMS}


def shape(form: str) -> tuple[int, int]:
    """(rows, depth)."""
    return (16, 32) if form.startswith("16") else (32, 16)


def kernel_source(form: str) -> Source:
    """One wave a workgroup: A and B (2 registers each) and C from memory, D over C."""
    rows, _ = shape(form)
    registers = rows * rows // 64
    lines = ["s_load_dwordx4 s[4:7], s[0:1], 0x0", "s_load_dwordx2 s[8:9], s[0:1], 0x10", "s_waitcnt lgkmcnt(0)", f"s_mul_i32 s3, s2, {256 * registers}",
             "v_lshl_add_u32 v1, v0, 2, s3", "s_lshl_b32 s3, s2, 9", "v_lshl_add_u32 v2, v0, 2, s3",
             "global_load_dword v4, v2, s[4:5]", "global_load_dword v5, v2, s[4:5] offset:256",
             "global_load_dword v6, v2, s[6:7]", "global_load_dword v7, v2, s[6:7] offset:256"]  # fmt: skip
    lines += [f"global_load_dword v{8 + n}, v1, s[8:9] offset:{256 * n}" for n in range(registers)]
    accumulator = f"v[8:{7 + registers}]"
    lines += ["s_waitcnt vmcnt(0)", f"v_mfma_f32_{form} {accumulator}, v[4:5], v[6:7], {accumulator}", "s_nop 10"]
    lines += [f"global_store_dword v1, v{8 + n}, s[8:9] offset:{256 * n}" for n in range(registers)]
    return Source("k" + form, "\n".join(lines), ((8, "global_buffer"),) * 3)


def operand_registers(matrix: np.ndarray) -> np.ndarray:
    """uint8 [waves, rows, depth] to dwords [waves, 2, 64]: row = lane % rows, bytes k = 8 (lane / rows) .. + 7."""
    waves, rows, _ = matrix.shape
    lane = np.arange(64)
    data = matrix[:, (lane % rows)[:, None], (lane // rows * 8)[:, None] + np.arange(8)]
    return np.ascontiguousarray(np.ascontiguousarray(data).view(np.uint32).transpose(0, 2, 1)).reshape(waves, 2, 64)


def result_rows(rows: int) -> tuple[np.ndarray, np.ndarray]:
    """(row, column) of D by register and lane, written out from the README."""
    register, lane = np.arange(rows * rows // 64)[:, None], np.arange(64)[None, :]
    row = 4 * (lane // 16) + register if rows == 16 else 8 * (register // 4) + 4 * (lane // 32) + register % 4
    return row, np.broadcast_to(lane % rows, row.shape)


def matrix_product(kernel: Kernel, form: str, left: np.ndarray, right: np.ndarray, c: np.ndarray) -> np.ndarray:
    """D uint32 [waves, rows, rows] of A uint8 [waves, rows, depth], B^T uint8 [waves, rows, depth], C uint32 like D."""
    rows, _ = shape(form)
    row, column = result_rows(rows)
    a, b, d = operand_registers(left), operand_registers(right), np.ascontiguousarray(c[:, row, column])
    run_kernel(kernel, [pointer(a), pointer(b), pointer(d)], (len(left), 1, 1), (64, 1, 1), allocations(a=a, b=b, d=d))
    result = np.zeros_like(c)
    result[:, row, column] = d
    return result


def nearest_bytes(values: np.ndarray, *, bf8: bool) -> np.ndarray:
    """Bytes whose value is nearest; the table is built from the format's definition."""
    mantissa, bias = (2, 16) if bf8 else (3, 8)
    fields, rest = np.arange(128) >> mantissa, np.arange(128) & ((1 << mantissa) - 1)
    table = np.where(fields == 0, rest, rest + (1 << mantissa)) * 2.0 ** (np.maximum(fields, 1) - bias - mantissa)
    size = np.abs(values)
    index = np.clip(np.searchsorted(table, size), 1, 127)
    index = np.where(size - table[index - 1] < table[index] - size, index - 1, index)
    return np.where((values < 0) & (index > 0), index | 0x80, index).astype(np.uint8)
