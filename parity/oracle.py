# SPDX-License-Identifier: Apache-2.0
"""What a correct kernel gives on some inputs, a block of rows at a time, so that neither memory nor a GPU has to hold a whole result.

Where few products are summed the budget of every element is computed. In a large case it is needed at few: most errors lie below a
floor of the budget that costs next to nothing (budget.budget_floor), and only the elements above it are judged by the budget itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch

from parity.budget import budget_floor, budget_of_rows
from parity.fused import fused
from parity.inputs import Inputs
from parity.reference import dequantise, head_sums

_BLOCK = 1 << 22  # logits judged at a time: 32 MB for each float64 temporary, so that a few stay in the cache of a GPU
_AFFORDED = 1 << 29  # products of a case whose budgets are all computed: two seconds of one core


@dataclass(frozen=True)
class Expected:
    """Of `rows` (a slice with both ends): logits float64 [R,N], -inf outside the window, and budget float64 [R,N], 0 there. Where not
    `exact`, the budget is a floor: less than it is no fault, more than it needs `Oracle.refined`."""

    rows: slice
    logits: torch.Tensor
    budget: torch.Tensor
    exact: bool


class Oracle:
    """Expected logits and budgets of one set of inputs, computed on `device` ("cpu" or a torch GPU). ValueError for inputs that are not
    finite."""

    def __init__(self, inputs: Inputs, *, device: str = "cpu", afforded: int = _AFFORDED) -> None:
        self.inputs, self.device = inputs, device
        self._exact = dequantise(inputs, device=device)
        seen = int((self._exact.ends - self._exact.starts).clamp(min=0).sum())
        self.computes_all = seen * inputs.q.shape[1] * inputs.q.shape[2] <= afforded

    def blocks(self, *, block: int = _BLOCK) -> Iterator[Expected]:
        """All rows, in order, about `block` elements at a time."""
        (rows, columns) = self.inputs.q.shape[0], self.inputs.kv.shape[0]
        step = max(1, block // columns)
        for first in range(0, rows, step):
            yield self._expected(slice(first, min(first + step, rows)))

    def _expected(self, rows: slice) -> Expected:
        sums = head_sums(self._exact, rows)
        budget = budget_of_rows(self._exact, self.inputs, rows) if self.computes_all else budget_floor(sums)
        return Expected(rows, sums.logits, budget, self.computes_all)

    def refined(self, expected: Expected, only: torch.Tensor) -> Expected:
        """`expected` with the budget itself at the elements `only`, bool [R,N]."""
        if expected.exact or not only.any():
            return expected
        budget = budget_of_rows(self._exact, self.inputs, expected.rows, only=only)
        return Expected(expected.rows, expected.logits, torch.where(only, budget, expected.budget), False)


def beyond(actual: torch.Tensor, expected: torch.Tensor, limit: torch.Tensor) -> torch.Tensor | None:
    """bool [R,N]: where both are finite and differ by more than the limit. None where that is nowhere."""
    actual = actual.to(expected.device)
    kind = expected.device.type
    if not fused(_any_beyond, kind)(actual, expected, limit).any():
        return None
    return _beyond(actual, expected, limit)


def _beyond(actual: torch.Tensor, expected: torch.Tensor, limit: torch.Tensor) -> torch.Tensor:
    error = (actual.double() - expected).abs()
    return torch.isfinite(error) & (error > limit)


def _any_beyond(actual: torch.Tensor, expected: torch.Tensor, limit: torch.Tensor) -> torch.Tensor:
    return _beyond(actual, expected, limit).any(dim=1)
