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
from parity.selector import window_mask
from parity.topk_result import RowLoss, TopK, summarise

_AROUND_INDEX_TOPK = (2047, 2048, 2049)


def judged_ks(case: Case) -> tuple[int, ...]:
    """The k at which a case is judged, ascending: its own `topk`, and 2047, 2048 and 2049 where it has more keys.

    2048 is index_topk of DeepSeek-V3.2 and GLM-5. Its neighbours cost nothing and show a selector, or a reader of its
    indices, that is one off: a k that selects one token more must lose no other.
    """
    return tuple(sorted({case.topk, *(k for k in _AROUND_INDEX_TOPK if case.n > k)}))


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
    `expected` lives. A caller that judges a long matrix in blocks gives each block's `first_row`, and
    `parity.topk_result.merge` joins them.

    Equal values rank by position in both, so that exact ties agree. A NaN inside a window is a finding and ranks
    last. Raises ValueError for tensors of different shapes, k < 1, or an `expected` that is not finite in a window.
    """
    rows, columns = expected.shape
    if not actual.shape == expected.shape == budget.shape or not starts.shape == ends.shape == (rows,):
        raise ValueError("actual, expected and budget must share one [M,N] shape, starts and ends be [M]")
    if k < 1:
        raise ValueError(f"k must be 1 or more, not {k}")
    actual, budget, starts, ends = (part.detach().to(expected.device) for part in (actual, budget, starts, ends))
    inside = window_mask(starts, ends, columns)
    broken = (inside & ~torch.isfinite(expected)).any(dim=1).nonzero().flatten()
    if len(broken):
        raise ValueError(f"the reference is not finite inside the window of row {first_row + int(broken[0])}")
    kept, owed = _top(actual, inside, k), _top(expected, inside, k)
    nan = (inside & torch.isnan(actual)).sum(dim=1)
    suspect = ((kept != owed).any(dim=1) | (nan > 0)).nonzero().flatten().tolist()
    losses = []
    for row in suspect:
        start, end = int(starts[row]), int(ends[row])
        window = slice(max(start, 0), min(end, columns))
        masks = kept[row, window], owed[row, window]
        form = RowLoss(first_row + row, int(owed[row].sum()), int(nan[row]))
        losses.append(_judge_row(form, *masks, expected[row, window], budget[row, window], k, start=start))
    return summarise(k, first_row, rows, tuple(losses))


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


def _judge_row(
    form: RowLoss,
    kept: torch.Tensor,
    owed: torch.Tensor,
    expected: torch.Tensor,
    budget: torch.Tensor,
    k: int,
    *,
    start: int,
) -> RowLoss:
    """`form` with its figures, from the columns of one window that is not empty; `start` is the row's, as given.

    A correct kernel puts token j before token i only if expected[j] + budget[j] >= expected[i] - budget[i]. All
    gained tokens came out before all lost ones, so the j that reaches least high decides for every i.
    """
    lost, gained = (owed & ~kept).nonzero().flatten(), (kept & ~owed).nonzero().flatten()
    if not len(lost):
        return form
    reach = (expected + budget)[gained]
    rival = gained[reach.argmin()]
    margin, allowed = expected[lost] - expected[rival], budget[lost] + budget[rival]
    ratio = torch.where(margin == 0, 0.0, margin / allowed)
    worst = int(ratio.argmax())
    floor = torch.topk(expected - budget, k, sorted=False).values.amin()  # fewer than k tokens surely lie above it
    weight = torch.softmax(expected, dim=0)
    column = int(lost[worst]) + max(start, 0)
    return replace(
        form,
        displaced=len(lost),
        recall=1 - int((reach < floor).sum()) / form.kept,
        unexplained=int((~(margin <= allowed)).sum()),
        token=column - start,
        column=column,
        margin=float(margin[worst]),
        allowed=float(allowed[worst]),
        mass=float((weight[lost] - weight[gained]).sum()),
        token_mass=float(weight[lost].max()),
    )
