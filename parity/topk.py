# SPDX-License-Identifier: Apache-2.0
"""Do the logits select the same tokens? The consumer of a logits row is a top-k, so that is judged too.

Two correct kernels may select different tokens where logits nearly tie. A token is therefore lost in earnest only if
no pair of errors within budget can explain that a token kept instead came out ahead of it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch

from parity.compare import Finding, number

_ROWS_SHOWN = 8


@dataclass(frozen=True)
class TopK:
    """Result of `top_k_agreement`.

    `k`: tokens asked for (a row with a shorter window keeps all of it). `overlap_mean` and `overlap_min`: share of the
    expected tokens kept, over all rows, an empty row counting as 1. `worst_row`: the first row of least overlap, None
    without rows. `displaced`: tokens lost in all rows, those that the budget explains included.
    """

    findings: tuple[Finding, ...]
    k: int
    overlap_mean: float
    overlap_min: float
    worst_row: int | None
    displaced: int


@dataclass(frozen=True)
class _Row:
    """One row judged: share of the expected tokens kept, tokens lost, NaN seen, and losses nothing explains.

    `token` (relative to the row's start), `margin` and `allowed` describe the worst of `unexplained` losses.
    """

    overlap: float = 1.0
    displaced: int = 0
    nan: int = 0
    unexplained: int = 0
    token: int = 0
    margin: float = 0.0
    allowed: float = 0.0


def top_k_agreement(
    actual: torch.Tensor, expected: torch.Tensor, budget: torch.Tensor, starts: torch.Tensor, ends: torch.Tensor, k: int
) -> TopK:
    """Compares the k largest logits of each row of `actual` [M,N] with those of `expected` and `budget` float64 [M,N]
    inside the windows given by int `starts` and `ends` [M]; columns outside them are not read.

    Equal values rank by position in both, so that exact ties agree. A NaN inside a window is a finding and ranks
    last. Raises ValueError for tensors of different shapes, k < 1, or an `expected` that is not finite in a window.
    """
    rows, columns = expected.shape
    if not actual.shape == expected.shape == budget.shape or not starts.shape == ends.shape == (rows,):
        raise ValueError("actual, expected and budget must share one [M,N] shape, starts and ends be [M]")
    if k < 1:
        raise ValueError(f"k must be 1 or more, not {k}")
    judged = []
    for row, (start, end) in enumerate(zip(starts.tolist(), ends.tolist(), strict=True)):
        window = slice(max(start, 0), max(min(end, columns), start, 0))
        seen, wanted, allowed = (tensor[row, window].detach().cpu().double() for tensor in (actual, expected, budget))
        if not torch.isfinite(wanted).all():
            raise ValueError(f"the reference is not finite inside the window of row {row}")
        judged.append(_judge_row(seen, wanted, allowed, k, shift=window.start - start) if len(wanted) else _Row())
    return TopK(
        findings=tuple(_nan_findings(judged, k) + _loss_findings(judged, starts.tolist(), k)),
        k=k,
        overlap_mean=sum(row.overlap for row in judged) / rows if rows else 1.0,
        overlap_min=min((row.overlap for row in judged), default=1.0),
        worst_row=min(range(rows), key=lambda row: judged[row].overlap) if rows else None,
        displaced=sum(row.displaced for row in judged),
    )


def _judge_row(actual: torch.Tensor, expected: torch.Tensor, budget: torch.Tensor, k: int, *, shift: int) -> _Row:
    """Judges the float64 values of one non-empty window; `shift` is from its first column to the row's start.

    A correct kernel puts token j before token i only if expected[j] + budget[j] >= expected[i] - budget[i]. All
    gained tokens came out before all lost ones, so the j that reaches least high decides for every i.
    """
    nan = torch.isnan(actual)
    kept, owed = _top(torch.where(nan, -torch.inf, actual), k), _top(expected, k)
    lost, gained = (owed & ~kept).nonzero().flatten(), (kept & ~owed).nonzero().flatten()
    row = _Row(overlap=1 - len(lost) / int(owed.sum()), displaced=len(lost), nan=int(nan.sum()))
    if not len(lost):
        return row
    rival = gained[(expected + budget)[gained].argmin()]
    margin, allowed = expected[lost] - expected[rival], budget[lost] + budget[rival]
    worst = int((margin - allowed).argmax())
    return replace(
        row,
        unexplained=int((~(margin <= allowed)).sum()),
        token=int(lost[worst]) + shift,
        margin=float(margin[worst]),
        allowed=float(allowed[worst]),
    )


def _top(values: torch.Tensor, k: int) -> torch.Tensor:
    """bool mask of the k largest values, the first of equal ones; all of them if there are no more than k."""
    if k >= len(values):
        return torch.ones(len(values), dtype=torch.bool)
    boundary = torch.topk(values, k).values[-1]
    mask = values > boundary
    tied = (values == boundary).nonzero().flatten()
    mask[tied[: k - int(mask.sum())]] = True
    return mask


def _nan_findings(judged: list[_Row], k: int) -> list[Finding]:
    affected = [row for row, result in enumerate(judged) if result.nan]
    findings = [
        Finding("top-k", (row,), None, None, None, f"top-{k} of row {row}: {judged[row].nan:,} NaN cannot be ranked")
        for row in affected[:_ROWS_SHOWN]
    ]
    return findings + _beyond(len(affected), f"top-{k}: NaN")


def _loss_findings(judged: list[_Row], starts: list[int], k: int) -> list[Finding]:
    """One finding for each of the rows that lost most; its `actual` is the margin and its `limit` what is allowed."""
    affected = [row for row, result in enumerate(judged) if result.unexplained]
    affected.sort(key=lambda row: judged[row].allowed - judged[row].margin)
    findings = []
    for row in affected[:_ROWS_SHOWN]:
        result = judged[row]
        more = f", and {result.unexplained - 1:,} more" if result.unexplained > 1 else ""
        text = (
            f"top-{k} of row {row}: token {result.token} lost "
            f"(margin {number(result.margin)}, allowed {number(result.allowed)}){more}"
        )
        where = (row, starts[row] + result.token)
        findings.append(Finding("top-k", where, result.margin, None, result.allowed, text))
    return findings + _beyond(len(affected), f"top-{k}: tokens lost")


def _beyond(rows: int, what: str) -> list[Finding]:
    """A closing count of the rows that are not shown, if any."""
    if rows <= _ROWS_SHOWN:
        return []
    return [Finding("top-k", None, None, None, None, f"{what} in {rows - _ROWS_SHOWN:,} more rows")]
