# SPDX-License-Identifier: Apache-2.0
"""The expected logits, in float64, from the dequantised bytes. Shares no code with any kernel."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from parity.fp8 import decode
from parity.fused import fused
from parity.inputs import Inputs, require_finite

# Rows multiplied together and columns at a time. A CPU is busy with one row's heads, and rows apart do no work outside their windows; a
# GPU wants large products and few launches (0.27 GB of them at 64 heads).
_BATCH = {"cpu": (1, 4096), "cuda": (16, 32768)}


@dataclass(frozen=True)
class Dequantised:
    """What the bytes of some Inputs mean, float64 on one device: q [M,H,D], kv [N,D], scales [N], weights [M,H]; and the windows
    clipped to [0, N]: starts, ends int64 [M], empty where end <= start."""

    q: torch.Tensor
    kv: torch.Tensor
    scales: torch.Tensor
    weights: torch.Tensor
    starts: torch.Tensor
    ends: torch.Tensor


@dataclass(frozen=True)
class HeadSums:
    """Sums over heads of the terms t = relu(<q,kv> * scale) * weight of some rows, float64 [R,N], all 0 outside the window:
    `positive` of the t above 0, `negative` of -t of those below, `squares` of t^2. `inside`: bool [R,N], the window."""

    positive: torch.Tensor
    negative: torch.Tensor
    squares: torch.Tensor
    inside: torch.Tensor

    @property
    def logits(self) -> torch.Tensor:
        """The expected logits: float64 [R,N], -inf outside the window."""
        return torch.where(self.inside, self.positive - self.negative, -torch.inf)


def dequantise(inputs: Inputs, *, device: str | torch.device = "cpu") -> Dequantised:
    """Exact values on `device`. ValueError for inputs that are not finite."""
    require_finite(inputs)
    q, kv = (bytes.to(device) for bytes in (inputs.q, inputs.kv))
    columns = kv.shape[0]
    return Dequantised(
        q=decode(q, inputs.q_encoding),
        kv=decode(kv, inputs.kv_encoding),
        scales=inputs.kv_scales.to(device).double(),
        weights=inputs.weights.to(device).double(),
        starts=inputs.starts.to(device).long().clamp(0, columns),
        ends=inputs.ends.to(device).long().clamp(0, columns),
    )


def reference_logits(inputs: Inputs) -> torch.Tensor:
    """float64 [M,N]: sum over h of relu(<q[m,h,:], kv[n,:]> * kv_scales[n]) * weights[m,h] for n in
    [max(starts[m], 0), min(ends[m], N)), and -inf elsewhere. ValueError for inputs that are not finite."""
    return head_sums(dequantise(inputs), slice(0, inputs.q.shape[0])).logits


def head_sums(exact: Dequantised, rows: slice, *, tile: tuple[int, int] | None = None) -> HeadSums:
    """The sums of `rows` (a slice with both ends), from which logits and the floor of their budget follow.

    tile: rows and columns multiplied at a time, for tests; the result does not depend on it but for float64's rounding.

    The dot products are exact: fp8 products are multiples of 2^-20 and their sum stays far below 2^33. What remains is a relative
    2^-53 an operation, of which the budget keeps count.
    """
    device, columns = exact.q.device, exact.kv.shape[0]
    batch, block = tile or _BATCH[device.type]
    fold = fused(_fold, device.type)
    shape = (rows.stop - rows.start, columns)
    targets = tuple(torch.zeros(shape, dtype=torch.float64, device=device) for _ in range(3))
    # The scale comes before the ReLU, as the operation is written. Its sign has to; its magnitude may wait until after the sum.
    turned = bool((exact.scales < 0).any())  # no quantiser makes one
    signed, magnitude = exact.kv * exact.scales.sign()[:, None] if turned else exact.kv, exact.scales.abs()
    for first in range(rows.start, rows.stop, batch):
        part = slice(first, min(first + batch, rows.stop))
        local = slice(part.start - rows.start, part.stop - rows.start)
        begin, stop = _union(exact, part)
        for left in range(begin, stop, block):
            keys = slice(left, min(left + block, stop))
            products = (exact.q[part].flatten(0, 1) @ signed[keys].T).unflatten(0, (part.stop - part.start, -1))
            for target, sums in zip(
                targets, fold(products, exact.weights[part, :, None], magnitude[keys]), strict=True
            ):
                target[local, keys] = sums
    column = torch.arange(columns, device=device)
    inside = (column >= exact.starts[rows, None]) & (column < exact.ends[rows, None])
    positive, negative, squares = (target.masked_fill_(~inside, 0.0) for target in targets)
    return HeadSums(positive, negative, squares, inside)


def _union(exact: Dequantised, rows: slice) -> tuple[int, int]:
    """First and one past the last column that any of the rows sees; (0, 0) if none does."""
    starts, ends = exact.starts[rows].tolist(), exact.ends[rows].tolist()
    seen = [(start, end) for start, end in zip(starts, ends, strict=True) if start < end]
    return (min(start for start, _ in seen), max(end for _, end in seen)) if seen else (0, 0)


def _fold(products: torch.Tensor, weights: torch.Tensor, scale: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """positive, negative and squares [R,B] of products [R,H,B], weights [R,H,1], scale [B]."""
    terms = products.relu() * weights
    return (
        terms.clamp(min=0).sum(dim=1) * scale,
        (-terms).clamp(min=0).sum(dim=1) * scale,
        (terms * terms).sum(dim=1) * scale * scale,
    )
