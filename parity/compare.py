# SPDX-License-Identifier: Apache-2.0
"""Compares a kernel's logits with the expected ones and says what is wrong, as data.

Order of judgement: shape and dtype; positions of NaN, -inf and +inf (exact); each element against its budget, row by
row. A similarity over the whole tensor is reported beside it, because people expect one, and never judged: two dead
rows of a thousand leave it below the usual threshold.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch

from parity.fused import fused

_ROWS_SHOWN = 8
KINDS = ("NaN", "-inf", "+inf", "budget")


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
class Trouble:
    """What is wrong of one kind (NaN, -inf, ...): positions and rows in all, and a finding for each of at most eight rows:
    the first ones, or with `severity` the worst ones, worst first."""

    kind: str
    positions: int
    rows: int
    shown: tuple[Finding, ...]
    severity: tuple[float, ...] = ()


@dataclass(frozen=True)
class Comparison:
    """Result of `compare`, or of several on neighbouring rows (`merge`).

    `form`: shape and dtype findings; with any, nothing else was judged. `ratio`: largest error over budget where both sides are
    finite, 0 where nothing is, inf after a form finding; `worst`: where it is. `product` and `energy`: sums of x*y and x*x + y*y over
    the same elements. `elements`: logits inside the window; `bad`: positions with anything wrong, inside or out; `bad_rows`: their rows.
    """

    form: tuple[Finding, ...] = ()
    troubles: tuple[Trouble, ...] = ()
    ratio: float = 0.0
    worst: tuple[int, int] | None = None
    product: float = 0.0
    energy: float = 0.0
    elements: int = 0
    bad: int = 0
    bad_rows: tuple[int, ...] = ()

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Form, or of each trouble a summary and then its rows."""
        listed = list(self.form)
        for trouble in self.troubles:
            where = f"all in row {_row(trouble.shown[0])}" if trouble.rows == 1 else f"in {trouble.rows:,} rows"
            text = f"{trouble.positions:,} positions disagree on {trouble.kind}, {where}"
            if trouble.kind == "budget":
                text = f"{trouble.positions:,} of {self.elements:,} logits outside budget, {where}"
            listed += [Finding(trouble.kind, None, None, None, None, text), *trouble.shown]
        return tuple(listed)

    @property
    def calc_diff(self) -> float:
        """1 - 2<x,y>/(<x,x>+<y,y>), the field's usual figure, for print only."""
        if self.form:
            return math.inf
        return 0.0 if self.energy == 0 else 1 - 2 * self.product / self.energy


def number(value: float) -> str:
    """A number as messages print it: four decimals, or an exponent where those would show nothing."""
    if value == 0 or not math.isfinite(value) or 1e-3 <= abs(value) < 1e6:
        return f"{value:.4f}"
    return f"{value:.3e}"


def compare(actual: torch.Tensor, expected: torch.Tensor, budget: torch.Tensor, *, first_row: int = 0) -> Comparison:
    """Judges `actual` float32 [M,N] against `expected` float64 [M,N] (-inf outside the window, finite inside) with
    `budget` float64 [M,N], the error allowed at each element. `first_row`: the number of the first of these rows, for texts.

    Raises ValueError where the judge itself is broken: `expected` with NaN or +inf, a budget that is negative or not
    finite, or the two of different shapes.
    """
    _check_form(expected, budget)
    form = form_findings(actual, expected.shape, torch.float32)
    if form:
        return Comparison(form, ratio=math.inf)
    if not expected.numel():
        return Comparison()
    value = actual.detach().to(expected.device)
    rows = fused(_measure, expected.device.type)(value, expected, budget)
    _check_values(rows)
    wrong = (~(rows["placed"] & rows["within"])).nonzero().flatten()
    troubles, bad = _troubles(value[wrong].double(), expected[wrong], budget[wrong], (wrong + first_row).tolist())
    top, any_finite = int(rows["ratio"].argmax()), bool(rows["finite"].any())
    return Comparison(
        troubles=tuple(troubles),
        ratio=float(rows["ratio"][top]) if any_finite else 0.0,
        worst=(first_row + top, int(rows["column"][top])) if any_finite else None,
        product=float(rows["product"].sum()),
        energy=float(rows["energy"].sum()),
        elements=int(rows["elements"].sum()),
        bad=bad,
        bad_rows=tuple((wrong + first_row).tolist()),
    )


def _measure(actual: torch.Tensor, expected: torch.Tensor, budget: torch.Tensor) -> dict[str, torch.Tensor]:
    """Of each row: is everything in its place (`placed`) and within budget (`within`), and the figures of Comparison."""
    value = actual.double()
    both = torch.isfinite(value) & torch.isfinite(expected)
    error = torch.where(both, value - expected, 0.0).abs()
    ratio, column = torch.where(error == 0, 0.0, error / budget).max(
        dim=1
    )  # inf where the budget is 0 and the error not
    return {
        "placed": (both | (value == expected)).all(dim=1),
        "within": (~both | (error <= budget)).all(dim=1),
        "finite": both.any(dim=1),
        "ratio": ratio,
        "column": column,
        "product": torch.where(both, value * expected, 0.0).sum(dim=1),
        "energy": torch.where(both, value * value + expected * expected, 0.0).sum(dim=1),
        "elements": torch.isfinite(expected).sum(dim=1),
        "reference": (torch.isfinite(expected) | torch.isneginf(expected)).all(dim=1),
        "budget": (torch.isfinite(budget) & (budget >= 0)).all(dim=1),
    }


def _troubles(
    value: torch.Tensor, expected: torch.Tensor, budget: torch.Tensor, numbers: list[int]
) -> tuple[list[Trouble], int]:
    """The troubles of the rows that have any, float64, and at how many positions; `numbers`: what the rows are called."""
    if not numbers:
        return [], 0
    bad = torch.zeros_like(expected, dtype=torch.bool)
    troubles = []
    for kind, is_kind in (("NaN", torch.isnan), ("-inf", torch.isneginf), ("+inf", torch.isposinf)):
        misplaced = is_kind(value) != is_kind(expected)
        bad |= misplaced
        troubles += _misplaced(kind, misplaced, value, expected, numbers)
    both = torch.isfinite(value) & torch.isfinite(expected)
    error = torch.where(both, value - expected, 0.0).abs()
    outside = both & ~(error <= budget)
    ratio = torch.where(error == 0, 0.0, error / budget)
    troubles += _outside(outside, ratio, value, expected, budget, numbers)
    return troubles, int((bad | outside).sum())


def merge(parts: Sequence[Comparison]) -> Comparison:
    """The comparison of all rows from those of its blocks of rows, in order. ValueError without any."""
    if not parts:
        raise ValueError("no rows were compared")
    if any(part.form for part in parts):
        return next(part for part in parts if part.form)
    troubles = (
        joined([trouble for part in parts for trouble in part.troubles if trouble.kind == kind]) for kind in KINDS
    )
    judged = [part for part in parts if part.worst is not None]
    worst = max(judged, key=lambda part: part.ratio, default=Comparison())
    return Comparison(
        troubles=tuple(trouble for trouble in troubles if trouble is not None),
        ratio=worst.ratio,
        worst=worst.worst,
        product=sum(part.product for part in parts),
        energy=sum(part.energy for part in parts),
        elements=sum(part.elements for part in parts),
        bad=sum(part.bad for part in parts),
        bad_rows=tuple(row for part in parts for row in part.bad_rows),
    )


def joined(parts: list[Trouble]) -> Trouble | None:
    """One trouble of one kind out of its parts."""
    if not parts:
        return None
    shown = [finding for part in parts for finding in part.shown]
    severity = [value for part in parts for value in part.severity]
    if severity:
        order = sorted(range(len(shown)), key=lambda index: -severity[index])
        shown, severity = [shown[index] for index in order], [severity[index] for index in order]
    return Trouble(
        parts[0].kind,
        sum(part.positions for part in parts),
        sum(part.rows for part in parts),
        tuple(shown[:_ROWS_SHOWN]),
        tuple(severity[:_ROWS_SHOWN]),
    )


def _check_form(expected: torch.Tensor, budget: torch.Tensor) -> None:
    if expected.dim() != 2 or expected.shape != budget.shape:
        raise ValueError(f"expected {list(expected.shape)} and budget {list(budget.shape)} are not one [M,N] shape")
    if expected.dtype != torch.float64 or budget.dtype != torch.float64:
        raise ValueError(f"expected and budget are float64, not {expected.dtype} and {budget.dtype}")


def _check_values(rows: dict[str, torch.Tensor]) -> None:
    if not rows["reference"].all():
        raise ValueError("the reference holds NaN or +inf")
    if not rows["budget"].all():
        raise ValueError("the budget holds a negative or non-finite value")


def form_findings(actual: torch.Tensor, shape: torch.Size, dtype: torch.dtype) -> tuple[Finding, ...]:
    """Wrong shape, wrong dtype: a finding each."""
    texts = []
    if actual.shape != shape:
        texts.append(("shape", f"shape {list(actual.shape)}, expected {list(shape)}"))
    if actual.dtype != dtype:
        texts.append(("dtype", f"dtype {actual.dtype}, expected {dtype}"))
    return tuple(Finding(kind, None, None, None, None, text) for kind, text in texts)


def _row(finding: Finding) -> int:
    assert finding.where is not None
    return finding.where[0]


def _misplaced(
    kind: str, misplaced: torch.Tensor, value: torch.Tensor, expected: torch.Tensor, numbers: list[int]
) -> list[Trouble]:
    """The first position of each of the first rows."""
    rows = misplaced.any(dim=1).nonzero().flatten()
    findings = []
    for row in rows[:_ROWS_SHOWN].tolist():
        column = int(misplaced[row].nonzero()[0])
        is_, should, at = float(value[row, column]), float(expected[row, column]), numbers[row]
        text = (
            f"{kind} [{at}, {column}]: actual {number(is_)}, expected {number(should)} "
            f"({int(misplaced[row].sum()):,} in row {at})"
        )
        findings.append(Finding(kind, (at, column), is_, should, None, text))
    return [Trouble(kind, int(misplaced.sum()), len(rows), tuple(findings))] if findings else []


def _outside(
    outside: torch.Tensor,
    ratio: torch.Tensor,
    value: torch.Tensor,
    expected: torch.Tensor,
    budget: torch.Tensor,
    numbers: list[int],
) -> list[Trouble]:
    """The worst element of each of the worst rows, worst row first."""
    rows = outside.any(dim=1).nonzero().flatten()
    if not len(rows):
        return []
    worst_first = rows[ratio[rows].amax(dim=1).argsort(descending=True, stable=True)]
    findings, severity = [], []
    for row in worst_first[:_ROWS_SHOWN].tolist():
        column = int(ratio[row].argmax())
        is_, should, allowed = (float(tensor[row, column]) for tensor in (value, expected, budget))
        at = (numbers[row], column)
        text = (
            f"worst {list(at)}: actual {number(is_)}, expected {number(should)}, "
            f"off {number(abs(is_ - should))}, allowed {number(allowed)}"
        )
        findings.append(Finding("budget", at, is_, should, allowed, text))
        severity.append(float(ratio[row, column]))
    return [Trouble("budget", int(outside.sum()), len(rows), tuple(findings), tuple(severity))]
