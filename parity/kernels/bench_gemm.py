# SPDX-License-Identifier: Apache-2.0
"""A plain Triton fp8 matrix product, for the executor's benchmark."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

SIZE, BLOCK, DEPTH = 1024, 128, 64


@triton.jit  # type: ignore[untyped-decorator]
def _product(left, right, out, n, BLOCK: tl.constexpr, DEPTH: tl.constexpr):  # type: ignore[no-untyped-def]
    row = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    column = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    depth = tl.arange(0, DEPTH)
    total = tl.zeros((BLOCK, BLOCK), tl.float32)
    for first in range(0, n, DEPTH):
        a = tl.load(left + row[:, None] * n + first + depth[None, :])
        b = tl.load(right + (first + depth[:, None]) * n + column[None, :])
        total = tl.dot(a, b, total)
    tl.store(out + row[:, None] * n + column[None, :], total)


def matrix_product(left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
    """float32 [SIZE, SIZE] of two fp8 (FNUZ) matrices of that shape."""
    out = torch.empty(SIZE, SIZE)
    _product[SIZE // BLOCK, SIZE // BLOCK](left, right, out, SIZE, BLOCK=BLOCK, DEPTH=DEPTH)
    return out
