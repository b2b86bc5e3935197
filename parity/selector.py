# SPDX-License-Identifier: Apache-2.0
"""The consumer of the logits, and its judge: which tokens does a selector keep?

`select` stands in for a serving engine's top-k kernel; `judge_selection` judges any selector on the very logits that it
read. So a wrong token is the selector's fault here and the logits' fault in `parity.topk`, never a mixture.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch

from parity.compare import Finding
from parity.topk import window_mask

_ROWS_SHOWN = 8
_BLOCK = 1 << 24  # logits selected from at a time
PADDING = -1


def select(logits: torch.Tensor, starts: torch.Tensor, ends: torch.Tensor, k: int) -> torch.Tensor:
    """int32 [M,k]: the k largest of each row of `logits` float32 [M,N] inside its window [starts, ends) (int [M]).

    Indices count from the row's start, largest logit first; a window of fewer than k columns is kept whole and
    followed by -1. NaN ranks last inside the window. Raises ValueError for tensors of different rows and for k < 1.
    """
    _check_form(logits, starts, ends, k)
    selected = torch.full((len(logits), k), PADDING, dtype=torch.int32, device=logits.device)
    step = max(1, _BLOCK // max(1, logits.shape[1]))
    for first in range(0, len(logits), step):
        part = slice(first, first + step)
        kept = _select_rows(logits[part].detach(), starts[part], ends[part], min(k, logits.shape[1]))
        selected[part, : kept.shape[1]] = kept
    return selected


def _select_rows(logits: torch.Tensor, starts: torch.Tensor, ends: torch.Tensor, k: int) -> torch.Tensor:
    inside = window_mask(starts, ends, logits.shape[1], logits.device)
    lowest = torch.finfo(torch.float64).min  # below every float32, above the -inf that stands outside the window
    ranked = torch.nan_to_num(logits.double(), nan=lowest, posinf=torch.inf, neginf=lowest)
    ranked.masked_fill_(~inside, -torch.inf)
    columns = torch.topk(ranked, k, dim=1).indices
    return torch.where(inside.gather(1, columns), columns - starts.to(columns)[:, None], PADDING)


def judge_selection(
    indices: torch.Tensor, logits: torch.Tensor, starts: torch.Tensor, ends: torch.Tensor, k: int, *, first_row: int = 0
) -> tuple[Finding, ...]:
    """Judges `indices` int [M,k], as `select` describes them but in any order, on the float32 `logits` [M,N] that the
    selector read: exact, without tolerance.

    Each row must hold min(k, window) different tokens of its window, then -1 alone; no token dropped may be larger
    than one kept (equal ones at the k-th place may be kept or dropped). A NaN inside the window is a finding: such a
    row has no right answer. All findings of the first eight rows, then a count. `first_row`: the number of the first of
    these rows. Raises ValueError as `select` does.
    """
    _check_form(logits, starts, ends, k)
    if indices.dtype not in (torch.int32, torch.int64) or indices.shape != (len(logits), k):
        text = f"selector: gave {indices.dtype} {list(indices.shape)}, expected int32 or int64 {[len(logits), k]}"
        return (Finding("selector", None, None, None, None, text),)
    selection = _selection(indices, logits, starts, ends)
    problems = [problem(selection) for problem in (_count, _order, _range, _repeats, _nan, _swap)]
    rows = torch.stack([affected for affected, _ in problems]).any(dim=0).nonzero().flatten().tolist()
    findings = [
        Finding("selector", (first_row + row,), None, None, None, f"selector: row {first_row + row} {text(row)}")
        for row in rows[:_ROWS_SHOWN]
        for affected, text in problems
        if affected[row]
    ]
    if len(rows) > _ROWS_SHOWN:
        text = f"selector: wrong in {len(rows) - _ROWS_SHOWN:,} more rows"
        findings.append(Finding("selector", None, None, None, None, text))
    return tuple(findings)


def _check_form(logits: torch.Tensor, starts: torch.Tensor, ends: torch.Tensor, k: int) -> None:
    if logits.dim() != 2 or not starts.shape == ends.shape == (len(logits),):
        raise ValueError("logits must be [M,N], starts and ends [M]")
    if logits.dtype != torch.float32:
        raise ValueError(f"a selector reads float32 logits, not {logits.dtype}")
    if k < 1:
        raise ValueError(f"k must be 1 or more, not {k}")


@dataclass(frozen=True)
class _Selection:
    """What was selected, on one device: `tokens` int64 [M,k] as given; `real` bool [M,k], not padding; `valid` bool
    [M,k], a token of the row's window; `inside` and `kept` bool [M,N]; `quota` int64 [M], tokens a row must hold."""

    tokens: torch.Tensor
    real: torch.Tensor
    valid: torch.Tensor
    inside: torch.Tensor
    kept: torch.Tensor
    quota: torch.Tensor
    starts: torch.Tensor
    logits: torch.Tensor


_Problem = tuple[torch.Tensor, Callable[[int], str]]  # bool [M] of the rows that have it, and a row's text


def _selection(indices: torch.Tensor, logits: torch.Tensor, starts: torch.Tensor, ends: torch.Tensor) -> _Selection:
    tokens, starts, ends = (tensor.to(logits.device, torch.int64) for tensor in (indices, starts, ends))
    columns_in_all, k = logits.shape[1], tokens.shape[1]
    inside = window_mask(starts, ends, columns_in_all, logits.device)
    real, columns = tokens != PADDING, tokens + starts[:, None]
    # With a negative start, -1 may name a column: it is padding all the same, as serving reads it.
    valid = real & (columns >= starts.clamp(min=0)[:, None]) & (columns < ends.clamp(max=columns_in_all)[:, None])
    row, place = valid.nonzero(as_tuple=True)
    kept = torch.zeros_like(inside)
    kept[row, columns[row, place]] = True
    quota = inside.sum(dim=1).clamp(max=k)
    return _Selection(tokens, real, valid, inside, kept, quota, starts, logits.detach())


def _count(selection: _Selection) -> _Problem:
    held = selection.real.sum(dim=1)
    return (
        held != selection.quota,
        lambda row: f"holds {int(held[row]):,} tokens, expected {int(selection.quota[row]):,}",
    )


def _order(selection: _Selection) -> _Problem:
    early = ~selection.real[:, :-1] & selection.real[:, 1:]

    def text(row: int) -> str:
        place = int(early[row].nonzero()[0])
        return f"has padding at place {place} before token {int(selection.tokens[row, place + 1])}"

    return early.any(dim=1), text


def _range(selection: _Selection) -> _Problem:
    foreign = selection.real & ~selection.valid

    def text(row: int) -> str:
        token = int(selection.tokens[row][foreign[row]][0])
        window = (selection.inside[row].nonzero().flatten() - selection.starts[row]).tolist()
        return f"kept token {token} outside its window " + (f"[{window[0]}, {window[-1] + 1})" if window else "(empty)")

    return foreign.any(dim=1), text


def _repeats(selection: _Selection) -> _Problem:
    ranked = selection.tokens.sort(dim=1).values
    again = (ranked[:, 1:] == ranked[:, :-1]) & (ranked[:, 1:] != PADDING)

    def text(row: int) -> str:
        token = int(ranked[row, 1:][again[row]][0])
        return f"kept token {token} {int((selection.tokens[row] == token).sum()):,} times"

    return again.any(dim=1), text


def _nan(selection: _Selection) -> _Problem:
    nan = (torch.isnan(selection.logits) & selection.inside).sum(dim=1)
    return nan > 0, lambda row: f"holds {int(nan[row]):,} NaN: no selection of it is right"


def _swap(selection: _Selection) -> _Problem:
    """The smallest token kept against the largest one dropped: ordered rightly, all others are too. NaN decides nothing."""
    logits, kept = selection.logits, selection.kept
    # Columns that do not count are filled so that they never decide; -inf and inf never differ from an empty side.
    lowest = torch.where(kept, logits, torch.inf)
    highest = torch.where(selection.inside & ~kept, logits, -torch.inf)
    if not logits.shape[1]:
        return torch.zeros(len(logits), dtype=torch.bool, device=logits.device), lambda row: ""
    whole = kept.sum(dim=1) == selection.quota  # different tokens of the window, as many as there should be
    swapped = whole & (highest.amax(dim=1) > lowest.amin(dim=1))

    def text(row: int) -> str:
        into, out = int(lowest[row].argmin()), int(highest[row].argmax())
        # nine digits tell any two float32 apart
        values = [f"{float(logits[row, column]):.9g}" for column in (into, out)]
        first = int(selection.starts[row])
        return f"kept token {into - first} (logit {values[0]}) and left out token {out - first} (logit {values[1]})"

    return swapped, text
