# SPDX-License-Identifier: Apache-2.0
"""Do the logits select the same tokens? The consumer of a logits row is a top-k, so that is judged too.

Two correct kernels may select different tokens where logits nearly tie. A token is therefore lost in earnest only if
no pair of errors within budget can explain that a token kept instead came out ahead of it.

What a lost token costs: the index scores of a row are trained to follow the main attention's distribution as their softmax
(DeepSeek-V3.2-Exp report: a KL loss between the two), so a token's share of that softmax is the attention weight it could carry.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from parity.cases import Case
from parity.compare import Finding, Trouble, joined, number

_ROWS_SHOWN = 8
_AROUND = (2047, 2048, 2049)  # 2,048 is index_topk of DeepSeek-V3.2 and GLM-5; a selector may be off by one


@dataclass(frozen=True)
class TopK:
    """Result of `top_k_agreement` on `rows` rows, or of several on neighbouring rows (`merge`).

    `k`: tokens asked for (a row with a shorter window keeps all of it). `overlap`: share of the expected tokens that a row keeps, an
    empty row counting as 1; `recall`: share of the tokens kept whose expected logit is not below the k-th expected one, which ties do
    not lower; both summed over rows, and least. `worst_row`: the first row of least overlap. `displaced`: tokens lost in all rows,
    those that the budget explains included; `margin`: of the worst of them, the distance in logits to the token kept instead over what
    the two budgets allow (up to 1 it is explained). `cost`: the largest softmax weight that a row gave away (of the tokens lost less
    those kept instead), `token_cost`: of one token. `nan`, `lost`: rows with NaN, and rows with a loss that nothing explains.
    """

    k: int
    rows: int = 0
    overlap_sum: float = 0.0
    overlap_min: float = 1.0
    recall_sum: float = 0.0
    recall_min: float = 1.0
    worst_row: int | None = None
    displaced: int = 0
    margin: float = 0.0
    cost: float = 0.0
    token_cost: float = 0.0
    nan: Trouble | None = None
    lost: Trouble | None = None

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Of each trouble its first or worst rows, and how many more there are."""
        listed: list[Finding] = []
        for trouble, what in ((self.nan, "NaN"), (self.lost, "tokens lost")):
            if trouble is not None:
                listed += trouble.shown
                more = trouble.rows - len(trouble.shown)
                if more:
                    text = f"top-{self.k}: {what} in {more:,} more rows"
                    listed.append(Finding("top-k", None, None, None, None, text))
        return tuple(listed)

    def figures(self) -> dict[str, Any]:
        """The figures as evidence records hold them."""
        return {
            "k": self.k,
            "overlap_mean": self.overlap_sum / self.rows if self.rows else 1.0,
            "overlap_min": self.overlap_min,
            "recall_mean": self.recall_sum / self.rows if self.rows else 1.0,
            "recall_min": self.recall_min,
            "worst_row": self.worst_row,
            "displaced": self.displaced,
            "margin": self.margin,
            "cost": self.cost,
            "token_cost": self.token_cost,
        }


def judged_ks(case: Case) -> tuple[int, ...]:
    """The k at which a case is judged: its own first, then those around 2,048 that select anything."""
    return (case.topk, *(k for k in _AROUND if k < case.n and k != case.topk))


def top_k_agreement(
    actual: torch.Tensor,
    expected: torch.Tensor,
    budget: torch.Tensor,
    starts: torch.Tensor,
    ends: torch.Tensor,
    k: int,
    *,
    first_row: int = 0,
) -> TopK:
    """Compares the k largest logits of each row of `actual` [M,N] with those of `expected` and `budget` float64 [M,N]
    inside the windows given by int `starts` and `ends` [M]; columns outside them are not read. `first_row`: the number of the first of
    these rows, for texts.

    Equal values rank by position in both, so that exact ties agree. A NaN inside a window is a finding and ranks
    last. Raises ValueError for tensors of different shapes, k < 1, or an `expected` that is not finite in a window.
    """
    rows, columns = expected.shape
    if not actual.shape == expected.shape == budget.shape or not starts.shape == ends.shape == (rows,):
        raise ValueError("actual, expected and budget must share one [M,N] shape, starts and ends be [M]")
    if k < 1:
        raise ValueError(f"k must be 1 or more, not {k}")
    if not rows:
        return TopK(k)
    inside = window_mask(starts, ends, columns, expected.device)
    if not torch.isfinite(expected[inside]).all():
        raise ValueError("the reference is not finite inside a window")
    seen = actual.detach().to(expected.device).double()
    nan = torch.isnan(seen) & inside
    kept = _top(torch.where(inside & ~nan, seen, -torch.inf), inside, k)
    owed = _top(torch.where(inside, expected, -torch.inf), inside, k)
    count, lost = owed.sum(dim=1).clamp(min=1).double(), owed & ~kept
    overlap = 1 - lost.sum(dim=1) / count
    least = torch.where(owed, expected, torch.inf).amin(dim=1, keepdim=True)
    recall = 1 - (kept & (expected < least)).sum(dim=1) / count
    losses = [
        _loss(row, expected, budget, lost, owed, kept, inside) for row in lost.any(dim=1).nonzero().flatten().tolist()
    ]
    worst = int(overlap.argmin())
    return TopK(
        k=k,
        rows=rows,
        overlap_sum=float(overlap.sum()),
        overlap_min=float(overlap[worst]),
        recall_sum=float(recall.sum()),
        recall_min=float(recall.min()),
        worst_row=first_row + worst,
        displaced=int(lost.sum()),
        margin=max((loss.ratio for loss in losses), default=0.0),
        cost=max((loss.cost for loss in losses), default=0.0),
        token_cost=max((loss.token_cost for loss in losses), default=0.0),
        nan=_nan_trouble(nan, k, first_row),
        lost=_lost_trouble([loss for loss in losses if loss.unexplained], starts.tolist(), k, first_row),
    )


def merge(parts: Sequence[TopK]) -> TopK:
    """The result for all rows from those of blocks of rows, in order. ValueError without any, or with different k."""
    if len({part.k for part in parts}) != 1:
        raise ValueError("parts of one k are merged")
    judged = [part for part in parts if part.rows]
    worst = min(judged, key=lambda part: part.overlap_min, default=TopK(parts[0].k))
    return TopK(
        k=parts[0].k,
        rows=sum(part.rows for part in parts),
        overlap_sum=sum(part.overlap_sum for part in parts),
        overlap_min=worst.overlap_min,
        recall_sum=sum(part.recall_sum for part in parts),
        recall_min=min(part.recall_min for part in parts),
        worst_row=worst.worst_row,
        displaced=sum(part.displaced for part in parts),
        margin=max(part.margin for part in parts),
        cost=max(part.cost for part in parts),
        token_cost=max(part.token_cost for part in parts),
        nan=joined([part.nan for part in parts if part.nan]),
        lost=joined([part.lost for part in parts if part.lost]),
    )


def window_mask(starts: torch.Tensor, ends: torch.Tensor, columns: int, device: torch.device) -> torch.Tensor:
    """bool [M,N]: the columns of each row's window."""
    column = torch.arange(columns, device=device)
    return (column >= starts.to(device)[:, None]) & (column < ends.to(device)[:, None])


@dataclass(frozen=True)
class _Loss:
    """One row that lost tokens: the worst of them (`column`, `margin`, `allowed`), how many nothing explains, and what they cost."""

    row: int
    column: int
    margin: float
    allowed: float
    unexplained: int
    ratio: float
    cost: float
    token_cost: float


def _loss(
    row: int,
    expected: torch.Tensor,
    budget: torch.Tensor,
    lost: torch.Tensor,
    owed: torch.Tensor,
    kept: torch.Tensor,
    inside: torch.Tensor,
) -> _Loss:
    """A correct kernel puts token j before token i only if expected[j] + budget[j] >= expected[i] - budget[i]. All
    gained tokens came out before all lost ones, so the j that reaches least high decides for every i."""
    logit, limit = expected[row], budget[row]
    out, gained = lost[row].nonzero().flatten(), (kept[row] & ~owed[row]).nonzero().flatten()
    rival = gained[(logit + limit)[gained].argmin()]
    margin, allowed = logit[out] - logit[rival], limit[out] + limit[rival]
    worst = int((margin - allowed).argmax())
    weight = torch.softmax(torch.where(inside[row], logit, -torch.inf), dim=0)
    ratio = torch.where(margin == 0, 0.0, margin / allowed)
    return _Loss(
        row=row,
        column=int(out[worst]),
        margin=float(margin[worst]),
        allowed=float(allowed[worst]),
        unexplained=int((~(margin <= allowed)).sum()),
        ratio=float(ratio.max()),
        cost=float(weight[out].sum() - weight[gained].sum()),
        token_cost=float(weight[out].max()),
    )


def _top(values: torch.Tensor, inside: torch.Tensor, k: int) -> torch.Tensor:
    """bool [M,N]: the k largest values of each row's window, the first of equal ones; all of a window of no more than k."""
    boundary = torch.topk(values, min(k, values.shape[1]), dim=1).values[:, -1:]
    mask = values > boundary
    tied = (values == boundary) & inside
    room = k - mask.sum(dim=1, keepdim=True)
    return mask | (tied & (tied.cumsum(dim=1) <= room))


def _nan_trouble(nan: torch.Tensor, k: int, first_row: int) -> Trouble | None:
    affected = nan.any(dim=1).nonzero().flatten().tolist()
    shown = []
    for row in affected[:_ROWS_SHOWN]:
        text = f"top-{k} of row {first_row + row}: {int(nan[row].sum()):,} NaN cannot be ranked"
        shown.append(Finding("top-k", (first_row + row,), None, None, None, text))
    return Trouble("top-k", int(nan.sum()), len(affected), tuple(shown)) if shown else None


def _lost_trouble(losses: list[_Loss], starts: list[int], k: int, first_row: int) -> Trouble | None:
    """One finding for each of the rows that lost most; its `actual` is the margin and its `limit` what is allowed."""
    losses = sorted(losses, key=lambda loss: loss.allowed - loss.margin)
    shown = []
    for loss in losses[:_ROWS_SHOWN]:
        more = f", and {loss.unexplained - 1:,} more" if loss.unexplained > 1 else ""
        row = first_row + loss.row
        text = (
            f"top-{k} of row {row}: token {loss.column - starts[loss.row]} lost "
            f"(margin {number(loss.margin)}, allowed {number(loss.allowed)}){more}"
        )
        shown.append(Finding("top-k", (row, loss.column), loss.margin, None, loss.allowed, text))
    severity = tuple(loss.margin - loss.allowed for loss in losses[:_ROWS_SHOWN])
    lost = sum(loss.unexplained for loss in losses)
    return Trouble("top-k", lost, len(losses), tuple(shown), severity) if shown else None
