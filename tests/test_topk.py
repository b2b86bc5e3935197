# SPDX-License-Identifier: Apache-2.0
"""Top-k agreement: ties, windows, planted losses, NaN, and the message texts."""

from __future__ import annotations

import math

import pytest
import torch

from parity.topk import top_k_agreement
from parity.topk_result import TopK

INF = math.inf


def judge(
    actual: list[list[float]],
    expected: list[list[float]],
    *,
    k: int,
    budget: float | list[list[float]] = 0.01,
    starts: list[int] | None = None,
    ends: list[int] | None = None,
) -> TopK:
    rows, columns = len(expected), len(expected[0])
    return top_k_agreement(
        torch.tensor(actual),
        torch.tensor(expected, dtype=torch.float64),
        torch.zeros(rows, columns, dtype=torch.float64) + torch.tensor(budget, dtype=torch.float64),
        torch.tensor(starts or [0] * rows, dtype=torch.int32),
        torch.tensor(ends or [columns] * rows, dtype=torch.int32),
        k,
    )


def clean(k: int, *, rows: int = 1, first_row: int = 0) -> TopK:
    return TopK((), k, first_row, rows, 1.0, 1.0, first_row, 1.0, 1.0, 0, 0.0, None, 0.0, 0.0, ())


def test_clean_run_passes() -> None:
    row = [5.0, 1.0, 4.0, 2.0, 3.0]
    assert judge([row], [row], k=2) == clean(2)


def test_exact_ties_agree_whatever_is_selected() -> None:
    zeros = [0.0] * 6  # an all-negative row: ReLU leaves nothing to rank by
    assert judge([zeros], [zeros], k=3) == clean(3)
    noise = [1e-9, 2e-9, 0.0, 3e-9, 0.0, 4e-9]  # a kernel that ranks the tie otherwise keeps 5, 3 and 1
    result = judge([noise], [zeros], k=3)
    assert result.findings == () and result.displaced == 2 and result.overlap_min == pytest.approx(1 / 3)


def test_displacement_within_the_two_budgets_is_no_finding() -> None:
    # Tokens 1 and 2 differ by 0.02, each may be off by 0.01: the swap is explained, exactly.
    result = judge([[3.0, 1.01, 1.01 + 2e-7]], [[3.0, 1.02, 1.0]], k=2, budget=0.01 + 1e-9)
    assert result.findings == () and result.displaced == 1 and result.overlap_mean == 0.5
    result = judge([[3.0, 1.01, 1.01 + 2e-7]], [[3.0, 1.02, 1.0]], k=2, budget=0.0099)
    assert len(result.findings) == 1


def test_message_of_the_design_note() -> None:
    """Row 5 of 6 starts at column 10: token 31 is column 41. It is the last of the 16 expected, and token 32, 0.0150
    below it, takes its place though the two budgets allow 0.0041 together."""
    expected = [[-INF] * 10 + [float(40 - j) for j in range(40)] for _ in range(6)]
    expected[5][10:] = [0.0] * 40
    for j in range(15):
        expected[5][10 + j] = 100.0 + j
    expected[5][41], expected[5][42] = 2.0, 1.985
    actual = [list(row) for row in expected]
    actual[5][41], actual[5][42] = 1.985, 2.0
    result = judge(actual, expected, k=16, budget=0.00205, starts=[10] * 6, ends=[50] * 6)
    assert [finding.text for finding in result.findings] == [
        "top-16 of row 5: token 31 lost (margin 0.0150, allowed 0.0041)"
    ]
    (finding,) = result.findings
    assert finding.kind == "top-k" and finding.where == (5, 41) and finding.limit == pytest.approx(0.0041)
    assert result.worst_row == 5 and result.overlap_min == 15 / 16 and result.displaced == 1


def test_loss_to_a_token_far_below_is_found_among_explained_ones() -> None:
    # Tokens 0 and 1 are lost; token 2 (close) and token 3 (far) come in. Token 3's rise explains neither loss.
    result = judge([[0.0, 0.0, 5.0, 6.0]], [[2.0, 1.9, 1.895, 0.5]], k=2)
    assert [finding.text for finding in result.findings] == [
        "top-2 of row 0: token 0 lost (margin 1.5000, allowed 0.0200), and 1 more"
    ]


def test_short_window_keeps_all_of_it() -> None:
    # Two columns inside, k = 4: nothing can be lost, whatever the values.
    result = judge([[9.0, 1.0, 2.0, 9.0]], [[-INF, 2.0, 1.0, -INF]], k=4, starts=[1], ends=[3])
    assert result == clean(4)


def test_outside_is_not_read() -> None:
    actual = [[math.nan, 1.0, 3.0, 2.0, INF]]
    assert judge(actual, [[-INF, 1.0, 3.0, 2.0, -INF]], k=2, starts=[1], ends=[4]).findings == ()


@pytest.mark.parametrize(("start", "end"), [(2, 2), (3, 1), (0, -4), (9, 12)])
def test_empty_rows_count_as_agreeing(start: int, end: int) -> None:
    result = judge([[7.0] * 4], [[-INF] * 4], k=2, starts=[start], ends=[end])
    assert result == clean(2)


def test_bounds_that_stick_out_are_clipped_and_tokens_count_from_the_start() -> None:
    result = judge([[0.0, 1.0, 2.0]], [[2.0, 1.0, 0.0]], k=1, starts=[-3], ends=[99])
    assert [finding.text for finding in result.findings] == [
        "top-1 of row 0: token 3 lost (margin 2.0000, allowed 0.0200)"
    ]


def test_nan_is_a_finding_even_where_nothing_is_lost() -> None:
    result = judge([[3.0, 2.0, math.nan]], [[3.0, 2.0, 1.0]], k=2)
    assert [finding.text for finding in result.findings] == ["top-2 of row 0: 1 NaN cannot be ranked"]
    assert result.displaced == 0
    result = judge([[math.nan] * 3], [[1.0, 2.0, 3.0]], k=2)
    assert len(result.findings) == 2 and result.overlap_min < 1


def test_minus_inf_inside_ranks_last() -> None:
    result = judge([[-INF, 2.0, 1.0]], [[3.0, 2.0, 1.0]], k=2)
    assert [finding.text for finding in result.findings] == [
        "top-2 of row 0: token 0 lost (margin 2.0000, allowed 0.0200)"
    ]


def test_eight_rows_shown_worst_first_then_a_count() -> None:
    expected = [[float(row + 1), 0.0] for row in range(12)]
    actual = [[0.0, float(row + 1)] for row in range(12)]
    result = judge(actual, expected, k=1)
    assert len(result.findings) == 9 and result.displaced == 12
    assert result.findings[0].text == "top-1 of row 11: token 0 lost (margin 12.0000, allowed 0.0200)"
    assert result.findings[-1].text == "top-1: tokens lost in 4 more rows"
    result = judge([[math.nan, 0.0]] * 11, [[1.0, 0.0]] * 11, k=2)
    assert result.findings[-1].text == "top-2: NaN in 3 more rows" and len(result.findings) == 9


def test_shifted_scores_are_caught_per_row() -> None:
    """Planted fault: one row of 64 shifted by one token; the mean overlap barely moves."""
    generator = torch.Generator().manual_seed(3)
    expected = torch.randn(64, 300, generator=generator, dtype=torch.float64)
    actual = expected.float()
    actual[17] = actual[17].roll(1)
    bounds = torch.zeros(64, dtype=torch.int32), torch.full((64,), 300, dtype=torch.int32)
    result = top_k_agreement(actual, expected, torch.full_like(expected, 1e-6), *bounds, 75)
    assert result.worst_row == 17 and result.overlap_mean > 0.98 and len(result.findings) == 1


def test_refusals() -> None:
    with pytest.raises(ValueError, match="k must be"):
        judge([[1.0]], [[1.0]], k=0)
    with pytest.raises(ValueError, match="share one"):
        judge([[1.0, 2.0]], [[1.0]], k=1)
    for value in (math.nan, -INF):
        with pytest.raises(ValueError, match="row 0"):
            judge([[1.0, 2.0]], [[1.0, value]], k=1)
