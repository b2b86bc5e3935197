# SPDX-License-Identifier: Apache-2.0
"""The consumer of the logits, and its own judge: so that a wrong selector is not taken for wrong logits, nor the other way round.

`select` is what serving does with a row, in torch; `judge_selection` checks any selector's answer on the very logits it was given,
exactly. Whether those logits are right is judged elsewhere (compare.py, topk.py).
"""

from __future__ import annotations

import torch

from parity.compare import Finding, number
from parity.topk import window_mask

_ROWS_SHOWN = 8
_BLOCK = 1 << 26  # logits selected from at a time


def select(logits: torch.Tensor, starts: torch.Tensor, ends: torch.Tensor, k: int) -> torch.Tensor:
    """int32 [M,k]: the tokens of the k largest logits in each row's window, counted from the row's start, largest first; -1 where the
    window holds fewer. logits float32 [M,N], starts and ends int [M], all on one device. NaN ranks first, as torch.topk has it."""
    rows, columns = logits.shape
    chosen = torch.full((rows, k), -1, dtype=torch.int32, device=logits.device)
    step = max(1, _BLOCK // max(1, columns))
    for first in range(0, rows, step):
        part = slice(first, first + step)
        inside = window_mask(starts[part], ends[part], columns, logits.device)
        column = torch.where(inside, logits[part], -torch.inf).topk(min(k, columns), dim=1).indices
        token = (column - starts[part, None].to(column)).int()
        chosen[part, : column.shape[1]] = torch.where(inside.gather(1, column), token, -1)
    return chosen


def judge_selection(
    indices: torch.Tensor, logits: torch.Tensor, starts: torch.Tensor, ends: torch.Tensor, k: int, *, first_row: int = 0
) -> tuple[Finding, ...]:
    """Findings on a selector's int [M,k] answer for float32 logits [M,N] and their windows: min(k, window) tokens, then -1 to the end;
    none twice, none outside the window; and no token left out whose logit is above one that was kept (of equal ones any).

    One line for each of the first eight rows that are wrong, and how many more there are. `first_row`: the number of the first row.
    """
    if indices.shape != (len(logits), k) or indices.is_floating_point():
        text = (
            f"selector: gave {indices.dtype} of shape {list(indices.shape)}, expected integers of [{len(logits)}, {k}]"
        )
        return (Finding("selector", None, None, None, None, text),)
    inside = window_mask(starts, ends, logits.shape[1], logits.device)
    suspects = _suspects(indices.to(logits.device).long(), logits, inside, starts.to(logits.device).long())
    findings = []
    for row in suspects[:_ROWS_SHOWN]:
        chosen, start = indices[row].tolist(), int(starts[row])
        window = inside[row].nonzero().flatten().tolist()
        text = _wrong(chosen, logits[row].cpu(), window, start, k)
        findings.append(
            Finding("selector", (first_row + row,), None, None, None, f"selector: row {first_row + row} {text}")
        )
    if len(suspects) > _ROWS_SHOWN:
        text = f"selector: wrong in {len(suspects) - _ROWS_SHOWN:,} more rows"
        findings.append(Finding("selector", None, None, None, None, text))
    return tuple(findings)


def _suspects(indices: torch.Tensor, logits: torch.Tensor, inside: torch.Tensor, starts: torch.Tensor) -> list[int]:
    """Rows whose answer is not exactly right: its columns are distinct, inside and as many as they should be, and the smallest logit
    kept is not below the largest left out."""
    k, columns = indices.shape[1], logits.shape[1]
    given = indices != -1
    wanted = inside.sum(dim=1).clamp(max=k)
    column = indices + starts[:, None]
    legal = (column >= 0) & (column < columns)
    safe = column.clamp(0, columns - 1)
    legal &= inside.gather(1, safe)
    times = torch.zeros(logits.shape, dtype=torch.int32, device=logits.device)
    times.scatter_add_(1, safe, (given & legal).int())
    ordered = given == (torch.arange(k, device=indices.device) < wanted[:, None])
    values = torch.where(inside, logits, -torch.inf)
    kept = torch.where(times > 0, values, torch.inf).amin(dim=1)
    left = torch.where(inside & (times == 0), values, -torch.inf).amax(dim=1)
    right = ordered.all(dim=1) & (legal | ~given).all(dim=1) & (times <= 1).all(dim=1) & ~(left > kept)
    right &= ~(torch.isnan(logits) & inside).any(dim=1)
    return (~right).nonzero().flatten().tolist()


def _wrong(chosen: list[int], logits: torch.Tensor, window: list[int], start: int, k: int) -> str:
    """What is wrong with one row's answer, the first that applies."""
    nan = sum(bool(torch.isnan(logits[column])) for column in window)
    if nan:
        return f"has {nan:,} NaN, which cannot be ranked"
    kept = [token for token in chosen if token != -1]
    if len(kept) != min(k, len(window)):
        return f"kept {len(kept):,} tokens of a window of {len(window):,}, expected {min(k, len(window)):,}"
    if -1 in chosen[: len(kept)]:
        return f"has -1 at place {chosen.index(-1)}, before its last token"
    outside = [token for token in kept if token + start not in set(window)]
    if outside:
        return f"kept token {outside[0]}, which its window of {len(window):,} does not hold"
    twice = [token for token in kept if kept.count(token) > 1]
    if twice:
        return f"kept token {twice[0]} {kept.count(twice[0])} times"
    left = sorted(set(window) - {token + start for token in kept}, key=lambda column: -float(logits[column]))
    worst = min(kept, key=lambda token: float(logits[token + start]))
    return (
        f"kept token {worst} (logit {number(float(logits[worst + start]))}) and left out token {left[0] - start} "
        f"(logit {number(float(logits[left[0]]))})"
    )
