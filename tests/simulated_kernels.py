# SPDX-License-Identifier: Apache-2.0
"""Models of logits kernels in torch float32, for the budget's tests: a dot product and a sum over heads, each in
several orders of accumulation. One dot product follows gfx942's MFMA bit by bit; `bf16_chain` is a wrong one."""

from __future__ import annotations

from collections.abc import Callable

import torch

Dot = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]  # float64 q [M,H,D], kv [N,D] -> float32 [M,H,N]
Head = Callable[[torch.Tensor, torch.Tensor, torch.Tensor], torch.Tensor]  # dots, scales, weights -> float32 [M,N]


def chain(q: torch.Tensor, kv: torch.Tensor) -> torch.Tensor:
    """One fp32 FMA after the other; products of two fp8 are exact in fp32, so a product and a sum are an FMA."""
    acc = torch.zeros(*q.shape[:2], len(kv))
    for d in range(q.shape[2]):
        acc = acc + (q[:, :, d, None] * kv[None, None, :, d]).float()
    return acc


def reversed_chain(q: torch.Tensor, kv: torch.Tensor) -> torch.Tensor:
    return chain(q.flip(2), kv.flip(1))


def pairwise(values: torch.Tensor) -> torch.Tensor:
    """fp32 tree over the last axis."""
    while values.shape[-1] > 1:
        values = values[..., 0::2] + values[..., 1::2]
    return values[..., 0]


def pairwise_dot(q: torch.Tensor, kv: torch.Tensor) -> torch.Tensor:
    return pairwise((q[:, :, None] * kv[None, None]).float())


def exponents(values: torch.Tensor, smallest: int) -> torch.Tensor:
    return torch.where(values == 0, -126, (torch.frexp(values).exponent - 1).clamp(min=smallest)).double()


def floor_at(values: torch.Tensor, exponent: torch.Tensor) -> torch.Tensor:
    return torch.floor(values * torch.exp2(-exponent)) * torch.exp2(exponent)


def mfma_step(acc: torch.Tensor, q: torch.Tensor, kv: torch.Tensor, smallest: tuple[int, int]) -> torch.Tensor:
    """One group of 16 products of gfx942's fp8 MFMA, as MMA-Sim describes it.

    acc float64 [M,H,N] holding fp32 values; q float64 [M,H,16]; kv float64 [N,16]; the formats' smallest exponents.
    """
    products = q[:, :, None] * kv[None, None]
    e = exponents(q, smallest[0])[:, :, None] + exponents(kv, smallest[1])[None, None]
    tops, sums = [], []
    for half in (slice(0, None, 2), slice(1, None, 2)):
        top = e[..., half].amax(dim=-1)
        unit = torch.exp2(top - 24)[..., None]
        tops.append(top)
        sums.append((torch.trunc(products[..., half] / unit) * unit).sum(dim=-1))
    joined = torch.maximum(*tops)
    total = floor_at(sums[0], joined - 24) + floor_at(sums[1], joined - 24)
    acc_exponent = exponents(acc, -126)
    largest = torch.maximum(joined, acc_exponent)
    kept = torch.where(acc_exponent < largest - 25, 0.0, floor_at(acc, largest - 24))
    return (floor_at(total, largest - 31) + kept).float().double()  # round to nearest even into fp32


def mfma_dot(smallest: tuple[int, int]) -> Dot:
    def dot(q: torch.Tensor, kv: torch.Tensor) -> torch.Tensor:
        acc = torch.zeros(*q.shape[:2], len(kv), dtype=torch.float64)
        for k in range(0, q.shape[2], 16):
            acc = mfma_step(acc, q[..., k : k + 16], kv[:, k : k + 16], smallest)
        return acc.float()

    return dot


def head_chain(dots: torch.Tensor, scales: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
    acc = torch.zeros(dots.shape[0], dots.shape[2])
    for h in range(dots.shape[1]):
        acc = acc + torch.relu(dots[:, h] * scales) * weights[:, h, None]
    return acc


def reversed_heads(dots: torch.Tensor, scales: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
    return head_chain(dots.flip(1), scales, weights.flip(1))


def head_tree(dots: torch.Tensor, scales: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
    return pairwise((torch.relu(dots * scales) * weights[:, :, None]).movedim(1, -1))


def fused_scale_last(dots: torch.Tensor, scales: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
    """Four lanes of FMA chains as a 16-row accumulator lies, joined by a tree, scaled at the end."""
    m, heads, n = dots.shape
    lanes = torch.relu(dots).reshape(m, heads // 16, 4, 4, n).double()
    factor = weights.reshape(m, heads // 16, 4, 4, 1).double()
    acc = torch.zeros(m, 4, n)
    for tile in range(heads // 16):
        for register in range(4):
            acc = (acc + lanes[:, tile, :, register] * factor[:, tile, :, register]).float()
    return ((acc[:, 0] + acc[:, 1]) + (acc[:, 2] + acc[:, 3])) * scales


def by_size(q: torch.Tensor, kv: torch.Tensor, *, descending: bool) -> torch.Tensor:
    """An order chosen against the data: the products of each element sorted, so partial sums go as far as they can."""
    products = (q[:, :, None] * kv[None, None]).sort(dim=-1, descending=descending).values.float()
    acc = torch.zeros(products.shape[:-1])
    for d in range(products.shape[-1]):
        acc = acc + products[..., d]
    return acc


def heads_by_size(dots: torch.Tensor, scales: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
    terms = (torch.relu(dots * scales) * weights[:, :, None]).sort(dim=1, descending=True).values
    acc = torch.zeros(dots.shape[0], dots.shape[2])
    for h in range(dots.shape[1]):
        acc = acc + terms[:, h]
    return acc


def bf16(values: torch.Tensor) -> torch.Tensor:
    return values.to(torch.bfloat16).float()


def bf16_chain(q: torch.Tensor, kv: torch.Tensor) -> torch.Tensor:
    acc = torch.zeros(*q.shape[:2], len(kv))
    for d in range(q.shape[2]):
        acc = bf16(acc + (q[:, :, d, None] * kv[None, None, :, d]).float())
    return acc
