# SPDX-License-Identifier: Apache-2.0
"""Do the logits select the same tokens? The consumer of a logits row is a top-k, so that is judged too.

Two correct kernels may select different tokens where logits nearly tie. A token is therefore lost in earnest only if
no pair of errors within budget can explain that a token kept instead came out ahead of it. The rest is figures: how
many tokens went, by how much they led in units of the error allowed, and what attention they could have carried.
"""

from __future__ import annotations

from dataclasses import replace

import torch

from parity.cases import Case
from parity.topk_result import RowLoss, TopK, merge, summarise

__all__ = ["TopK", "judged_ks", "merge", "top_k_agreement", "window_mask"]
_AROUND_INDEX_TOPK = (2047, 2048, 2049)


def judged_ks(case: Case) -> tuple[int, ...]:
    """The k at which a case is judged: its own `topk` first, then those of 2047, 2048 and 2049 below its number of keys.

    2048 is index_topk of DeepSeek-V3.2 and GLM-5. Its neighbours show a selector, or a reader of its indices, that is one
    off: one token more or less asked for must change no other.
    """
    return (case.topk, *(k for k in _AROUND_INDEX_TOPK if k < case.n and k != case.topk))


def window_mask(starts: torch.Tensor, ends: torch.Tensor, columns: int, device: torch.device) -> torch.Tensor:
    """bool [M,columns] on `device`: is the column inside [starts, ends)? Bounds that stick out are cut."""
    column = torch.arange(columns, device=device)
    return (column >= starts.to(device)[:, None]) & (column < ends.to(device)[:, None])


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
    inside the windows given by int `starts` and `ends` [M]; columns outside them are not read. Computed where
    `expected` lives. A caller that judges a long matrix in blocks gives each block's `first_row`, and `merge` joins them.

    Equal values rank by position in both, so that exact ties agree. A NaN inside a window is a finding and ranks
    last. Raises ValueError for tensors of different shapes, k < 1, or an `expected` that is not finite in a window.
    """
    rows, columns = expected.shape
    _check_form(actual, expected, budget, starts, ends, k)
    actual, budget = actual.detach().to(expected.device), budget.to(expected.device)
    inside = window_mask(starts, ends, columns, expected.device)
    broken = (inside & ~torch.isfinite(expected)).any(dim=1).nonzero().flatten()
    if len(broken):
        raise ValueError(f"the reference is not finite inside the window of row {first_row + int(broken[0])}")
    kept, owed = _top(actual, inside, k), _top(expected, inside, k)
    nan = (inside & torch.isnan(actual)).sum(dim=1)
    losses = []
    for row in ((kept != owed).any(dim=1) | (nan > 0)).nonzero().flatten().tolist():
        loss = RowLoss(first_row + row, int(owed[row].sum()), int(nan[row]))
        lost, gained = (owed[row] & ~kept[row]).nonzero().flatten(), (kept[row] & ~owed[row]).nonzero().flatten()
        if len(lost):
            window = slice(max(int(starts[row]), 0), min(int(ends[row]), columns))
            loss = _with_margin(loss, lost, gained, expected[row], budget[row], int(starts[row]))
            loss = _with_recall(loss, gained, expected[row], budget[row], window)
            loss = _with_cost(loss, lost, gained, expected[row], window)
        losses.append(loss)
    return summarise(k, first_row, rows, tuple(losses))


def _check_form(
    actual: torch.Tensor, expected: torch.Tensor, budget: torch.Tensor, starts: torch.Tensor, ends: torch.Tensor, k: int
) -> None:
    if not actual.shape == expected.shape == budget.shape or not starts.shape == ends.shape == expected.shape[:1]:
        raise ValueError("actual, expected and budget must share one [M,N] shape, starts and ends be [M]")
    if k < 1:
        raise ValueError(f"k must be 1 or more, not {k}")


def _top(values: torch.Tensor, inside: torch.Tensor, k: int) -> torch.Tensor:
    """bool [M,N]: the k largest values of each row inside its window, NaN last, the first of equal ones."""
    if k >= values.shape[1]:
        return inside
    values = torch.where(inside & ~torch.isnan(values), values, -torch.inf)
    boundary = torch.topk(values, k, dim=1, sorted=False).values.amin(dim=1, keepdim=True)  # -inf in a short window
    mask, tied = values > boundary, inside & (values == boundary)
    room = k - mask.sum(dim=1)
    crowded = (tied.sum(dim=1) > room).nonzero().flatten()
    tied[crowded] &= tied[crowded].cumsum(dim=1, dtype=torch.int32) <= room[crowded, None]
    return mask | tied


def _with_margin(
    loss: RowLoss, lost: torch.Tensor, gained: torch.Tensor, expected: torch.Tensor, budget: torch.Tensor, start: int
) -> RowLoss:
    """`loss` with its displaced tokens, of one row: columns lost and gained, values float64 [N], the start as given.

    A correct kernel puts token j before token i only if expected[j] + budget[j] >= expected[i] - budget[i]. All
    gained tokens came out before all lost ones, so the j that reaches least high decides for every i.
    """
    rival = gained[(expected[gained] + budget[gained]).argmin()]
    margin, allowed = expected[lost] - expected[rival], budget[lost] + budget[rival]
    worst = int(torch.where(margin == 0, 0.0, margin / allowed).argmax())
    return replace(
        loss,
        displaced=len(lost),
        unexplained=int((~(margin <= allowed)).sum()),
        token=int(lost[worst]) - start,
        column=int(lost[worst]),
        margin=float(margin[worst]),
        allowed=float(allowed[worst]),
    )


def _with_recall(
    loss: RowLoss, gained: torch.Tensor, expected: torch.Tensor, budget: torch.Tensor, window: slice
) -> RowLoss:
    """`loss` with its recall. A correct kernel can keep token j unless k others surely lie above it, and the tokens
    owed can be kept always; so the gained ones are held against the k-th largest of the lowest correct values."""
    floor = torch.topk((expected - budget)[window], loss.kept, sorted=False).values.amin()
    return replace(loss, recall=1 - int((expected[gained] + budget[gained] < floor).sum()) / loss.kept)


def _with_cost(
    loss: RowLoss, lost: torch.Tensor, gained: torch.Tensor, expected: torch.Tensor, window: slice
) -> RowLoss:
    """`loss` with the softmax weights at stake: each lost token is paired with a gained one, and no pair gains."""
    scale = torch.logsumexp(expected[window], dim=0)
    weight_lost, weight_gained = (torch.exp(expected[columns] - scale) for columns in (lost, gained))
    return replace(loss, cost=float((weight_lost - weight_gained).sum()), token_cost=float(weight_lost.max()))
