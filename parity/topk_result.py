# SPDX-License-Identifier: Apache-2.0
"""What a top-k judgement says: the rows that lost tokens, the figures over all rows, the findings and their texts.

`parity.topk` judges rows; here their losses become one result, for a block of rows or for blocks joined again.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

from parity.compare import Finding, number

_ROWS_SHOWN = 8


@dataclass(frozen=True)
class RowLoss:
    """A row that lost a token or holds NaN. Tokens count from the row's start, columns from the tensor's.

    `kept`: tokens selected, min(k, window). `displaced`: expected tokens that are not among them; `unexplained`: those
    of them that no errors within budget explain. `nan`: NaN inside the window. `recall`: see TopK. `token` (at
    `column`) is the displaced one with the largest `margin` / `allowed`: its lead over the rival that came in, and the
    sum of their budgets. `cost`, `token_cost`: see TopK. All 0, and recall 1, where nothing is displaced.
    """

    row: int
    kept: int
    nan: int
    displaced: int = 0
    recall: float = 1.0
    unexplained: int = 0
    token: int = 0
    column: int = 0
    margin: float = 0.0
    allowed: float = 0.0
    cost: float = 0.0
    token_cost: float = 0.0

    @property
    def overlap(self) -> float:
        return 1 - self.displaced / self.kept

    @property
    def budgets(self) -> float:
        """The margin in units of the error allowed: the budget explains it up to 1."""
        return 0.0 if self.margin == 0 else self.margin / self.allowed if self.allowed else math.inf


@dataclass(frozen=True)
class TopK:
    """Result of `parity.topk.top_k_agreement`. Without rows shares are 1, the rest 0 or None; an empty row keeps all it has.

    `k`: tokens asked for (a row with a shorter window keeps all of it). `first_row`, `rows`: the rows judged.
    `overlap_*`: share of the expected tokens kept, over all rows. `worst_row`: the first row of least overlap.
    `recall_*`: share of the tokens kept that a correct kernel could have kept, that is whose expected value plus budget
    reaches the k-th largest of expected values less budgets; 1 where every swap is between near ties.
    `displaced`: tokens lost in all rows, those that the budget explains included. `margin`: of all of them the
    largest lead over the token that came in, in units of the error allowed to the two (up to 1 is explained), and
    `margin_at` its [row, column].
    `cost`: what losing them costs a row at most. Index scores are trained to be, through a softmax, the
    distribution of the main attention (DeepSeek-V3.2-Exp technical report, the indexer's KL loss), so a token's weight
    is its softmax over the expected logits of the whole window, and the cost is the weight of the tokens lost less that
    of the tokens gained. `token_cost`: the largest weight of a single token lost.
    `losses`: the rows behind the figures.
    """

    findings: tuple[Finding, ...]
    k: int
    first_row: int
    rows: int
    overlap_mean: float
    overlap_min: float
    worst_row: int | None
    recall_mean: float
    recall_min: float
    displaced: int
    margin: float
    margin_at: tuple[int, int] | None
    cost: float
    token_cost: float
    losses: tuple[RowLoss, ...]

    def figures(self) -> dict[str, Any]:
        """The figures as evidence records hold them: JSON's types alone."""
        kept_out = ("findings", "first_row", "losses", "margin_at")
        figures = {field.name: getattr(self, field.name) for field in fields(self) if field.name not in kept_out}
        return figures | {"margin_at": list(self.margin_at) if self.margin_at else None}


def merge(parts: Sequence[TopK]) -> TopK:
    """The result of all rows at once, from the results of blocks of rows, in order.

    Raises ValueError for no parts, for parts of different k, and where a part does not begin at the row where the one
    before it ended: rows that nobody judged must not pass.
    """
    if not parts:
        raise ValueError("no parts to merge")
    if len({part.k for part in parts}) > 1:
        raise ValueError(f"parts of different k: {sorted({part.k for part in parts})}")
    for before, after in itertools.pairwise(parts):
        if before.first_row + before.rows != after.first_row:
            raise ValueError(f"rows {before.first_row} + {before.rows} are followed by row {after.first_row}")
    rows, losses = sum(part.rows for part in parts), tuple(loss for part in parts for loss in part.losses)
    return summarise(parts[0].k, parts[0].first_row, rows, losses)


def summarise(k: int, first_row: int, rows: int, losses: tuple[RowLoss, ...]) -> TopK:
    """The result whose rows are all clean but `losses`, which are in order."""
    displaced = [loss for loss in losses if loss.displaced]
    worst = max(displaced, key=lambda loss: loss.budgets, default=None)
    least = min(displaced, key=lambda loss: loss.overlap, default=None)
    return TopK(
        findings=tuple(_nan_findings(losses, k) + _loss_findings(losses, k)),
        k=k,
        first_row=first_row,
        rows=rows,
        overlap_mean=1 - math.fsum(1 - loss.overlap for loss in displaced) / rows if rows else 1.0,
        overlap_min=least.overlap if least else 1.0,
        worst_row=least.row if least else first_row if rows else None,
        recall_mean=1 - math.fsum(1 - loss.recall for loss in displaced) / rows if rows else 1.0,
        recall_min=min((loss.recall for loss in displaced), default=1.0),
        displaced=sum(loss.displaced for loss in displaced),
        margin=worst.budgets if worst else 0.0,
        margin_at=(worst.row, worst.column) if worst else None,
        cost=max((loss.cost for loss in displaced), default=0.0),
        token_cost=max((loss.token_cost for loss in displaced), default=0.0),
        losses=losses,
    )


def _nan_findings(losses: Sequence[RowLoss], k: int) -> list[Finding]:
    affected = [loss for loss in losses if loss.nan]
    findings = [
        Finding("top-k", (loss.row,), None, None, None, f"top-{k} of row {loss.row}: {loss.nan:,} NaN cannot be ranked")
        for loss in affected[:_ROWS_SHOWN]
    ]
    return findings + _beyond(len(affected), f"top-{k}: NaN")


def _loss_findings(losses: Sequence[RowLoss], k: int) -> list[Finding]:
    """One finding for each of the rows that lost most; its `actual` is the margin and its `limit` what is allowed."""
    affected = [loss for loss in losses if loss.unexplained]
    affected.sort(key=lambda loss: (-loss.budgets, -loss.margin))
    findings = []
    for loss in affected[:_ROWS_SHOWN]:
        more = f", and {loss.unexplained - 1:,} more" if loss.unexplained > 1 else ""
        text = (
            f"top-{k} of row {loss.row}: token {loss.token} lost "
            f"(margin {number(loss.margin)}, allowed {number(loss.allowed)}){more}"
        )
        findings.append(Finding("top-k", (loss.row, loss.column), loss.margin, None, loss.allowed, text))
    return findings + _beyond(len(affected), f"top-{k}: tokens lost")


def _beyond(rows: int, what: str) -> list[Finding]:
    """A closing count of the rows that are not shown, if any."""
    if rows <= _ROWS_SHOWN:
        return []
    return [Finding("top-k", None, None, None, None, f"{what} in {rows - _ROWS_SHOWN:,} more rows")]
