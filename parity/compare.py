# SPDX-License-Identifier: Apache-2.0
"""Compares a kernel's logits with the expected ones and says what is wrong, as data.

Order of judgement: shape and dtype; positions of NaN, -inf and +inf (exact); each element against its budget, row by
row. A similarity over the whole tensor is reported beside it, because people expect one, and never judged: two dead
rows of a thousand leave it below the usual threshold.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch

_ROWS_SHOWN = 8
_INTEGER_OF = {torch.float32: torch.int32, torch.float64: torch.int64}


@dataclass(frozen=True)
class Finding:
    """One thing wrong. `where` is [row, column] or None for a summary or a whole tensor; `text` is one line."""

    kind: str
    where: tuple[int, ...] | None
    actual: float | None
    expected: float | None
    limit: float | None
    text: str


@dataclass(frozen=True)
class Comparison:
    """Result of `compare`.

    `ratio`: largest error over budget where both sides are finite, 0 where nothing is, inf after a shape or dtype
    finding; `worst`: where it is. `calc_diff`: 1 - 2<x,y>/(<x,x>+<y,y>) over the same elements, for print only.
    `elements`: logits inside the window; `bad`: positions with anything wrong, inside or out; `bad_rows`: their rows.
    """

    findings: tuple[Finding, ...]
    ratio: float
    worst: tuple[int, int] | None
    calc_diff: float
    elements: int
    bad: int
    bad_rows: tuple[int, ...]


def number(value: float) -> str:
    """A number as messages print it: four decimals, or an exponent where those would show nothing."""
    if value == 0 or not math.isfinite(value) or 1e-3 <= abs(value) < 1e6:
        return f"{value:.4f}"
    return f"{value:.3e}"


def compare(actual: torch.Tensor, expected: torch.Tensor, budget: torch.Tensor) -> Comparison:
    """Judges `actual` float32 [M,N] against `expected` float64 [M,N] (-inf outside the window, finite inside) with
    `budget` float64 [M,N], the error allowed at each element.

    Raises ValueError where the judge itself is broken: `expected` with NaN or +inf, a budget that is negative or not
    finite, or the two of different shapes.
    """
    _check_judge(expected, budget)
    mismatch = _form_findings(actual, expected.shape, torch.float32)
    if mismatch:
        return Comparison(mismatch, math.inf, None, math.inf, 0, 0, ())
    value = actual.detach().to(expected.device, torch.float64)
    findings: list[Finding] = []
    bad = torch.zeros_like(expected, dtype=torch.bool)
    for kind, is_kind in (("NaN", torch.isnan), ("-inf", torch.isneginf), ("+inf", torch.isposinf)):
        misplaced = is_kind(value) != is_kind(expected)
        bad |= misplaced
        findings += _position_findings(kind, misplaced, value, expected)
    both = torch.isfinite(value) & torch.isfinite(expected)
    error = torch.where(both, value - expected, 0.0).abs()
    ratio = torch.where(error == 0, 0.0, error / budget)  # inf where the budget is 0 and the error is not
    outside = both & ~(error <= budget)
    bad |= outside
    elements = int(torch.isfinite(expected).sum())
    findings += _budget_findings(outside, ratio, value, expected, budget, elements)
    top = int(ratio.argmax()) if both.any() else None
    return Comparison(
        findings=tuple(findings),
        ratio=float(ratio.max()) if both.any() else 0.0,
        worst=None if top is None else divmod(top, expected.shape[1]),
        calc_diff=_calc_diff(value[both], expected[both]),
        elements=elements,
        bad=int(bad.sum()),
        bad_rows=tuple(bad.any(dim=1).nonzero().flatten().tolist()),
    )


def bitwise_equal(first: torch.Tensor, second: torch.Tensor) -> tuple[Finding, ...]:
    """Repeat check: one finding if two runs on the same inputs differ in any bit (equal NaN bits are equal, 0 and -0
    are not). Raises ValueError for tensors that are not float32 or float64."""
    mismatch = _form_findings(second, first.shape, first.dtype)
    if mismatch:
        return mismatch
    if first.dtype not in _INTEGER_OF:
        raise ValueError(f"cannot compare the bits of {first.dtype}")
    bits = [tensor.detach().cpu().contiguous().view(_INTEGER_OF[first.dtype]) for tensor in (first, second)]
    differing = (bits[0] != bits[1]).nonzero()
    if not len(differing):
        return ()
    where = tuple(differing[0].tolist())
    mask = (1 << 8 * first.element_size()) - 1
    before, after = (f"0x{int(tensor[where]) & mask:0{2 * first.element_size()}x}" for tensor in bits)
    text = (
        f"repeat differs in {len(differing):,} of {first.numel():,} positions, "
        f"first {list(where)}: {before}, then {after}"
    )
    return (Finding("repeat", where, float(second[where]), float(first[where]), 0.0, text),)


def _check_judge(expected: torch.Tensor, budget: torch.Tensor) -> None:
    if expected.dim() != 2 or expected.shape != budget.shape:
        raise ValueError(f"expected {list(expected.shape)} and budget {list(budget.shape)} are not one [M,N] shape")
    if expected.dtype != torch.float64 or budget.dtype != torch.float64:
        raise ValueError(f"expected and budget are float64, not {expected.dtype} and {budget.dtype}")
    if not (torch.isfinite(expected) | torch.isneginf(expected)).all():
        raise ValueError("the reference holds NaN or +inf")
    if not (torch.isfinite(budget) & (budget >= 0)).all():
        raise ValueError("the budget holds a negative or non-finite value")


def _form_findings(actual: torch.Tensor, shape: torch.Size, dtype: torch.dtype) -> tuple[Finding, ...]:
    texts = []
    if actual.shape != shape:
        texts.append(("shape", f"shape {list(actual.shape)}, expected {list(shape)}"))
    if actual.dtype != dtype:
        texts.append(("dtype", f"dtype {actual.dtype}, expected {dtype}"))
    return tuple(Finding(kind, None, None, None, None, text) for kind, text in texts)


def _rows_text(rows: torch.Tensor) -> str:
    return f"all in row {int(rows[0])}" if len(rows) == 1 else f"in {len(rows):,} rows"


def _position_findings(
    kind: str, misplaced: torch.Tensor, value: torch.Tensor, expected: torch.Tensor
) -> list[Finding]:
    """A summary, then the first position of each of the first rows."""
    rows = misplaced.any(dim=1).nonzero().flatten()
    if not len(rows):
        return []
    summary = f"{int(misplaced.sum()):,} positions disagree on {kind}, {_rows_text(rows)}"
    findings = [Finding(kind, None, None, None, None, summary)]
    for row in rows[:_ROWS_SHOWN].tolist():
        column = int(misplaced[row].nonzero()[0])
        is_, should = float(value[row, column]), float(expected[row, column])
        text = (
            f"{kind} [{row}, {column}]: actual {number(is_)}, expected {number(should)} "
            f"({int(misplaced[row].sum()):,} in row {row})"
        )
        findings.append(Finding(kind, (row, column), is_, should, None, text))
    return findings


def _budget_findings(
    outside: torch.Tensor,
    ratio: torch.Tensor,
    value: torch.Tensor,
    expected: torch.Tensor,
    budget: torch.Tensor,
    elements: int,
) -> list[Finding]:
    """A summary, then the worst element of each of the worst rows, worst row first."""
    rows = outside.any(dim=1).nonzero().flatten()
    if not len(rows):
        return []
    summary = f"{int(outside.sum()):,} of {elements:,} logits outside budget, {_rows_text(rows)}"
    findings = [Finding("budget", None, None, None, None, summary)]
    worst_first = rows[ratio[rows].amax(dim=1).argsort(descending=True, stable=True)]
    for row in worst_first[:_ROWS_SHOWN].tolist():
        column = int(ratio[row].argmax())
        is_, should, allowed = (float(tensor[row, column]) for tensor in (value, expected, budget))
        text = (
            f"worst [{row}, {column}]: actual {number(is_)}, expected {number(should)}, "
            f"off {number(abs(is_ - should))}, allowed {number(allowed)}"
        )
        findings.append(Finding("budget", (row, column), is_, should, allowed, text))
    return findings


def _calc_diff(actual: torch.Tensor, expected: torch.Tensor) -> float:
    energy = float((actual * actual + expected * expected).sum())
    return 0.0 if energy == 0 else 1 - 2 * float((actual * expected).sum()) / energy
