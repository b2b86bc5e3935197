# SPDX-License-Identifier: Apache-2.0
"""Top-k figures worked by hand, noise within and beyond the budgets, blocks of rows joined again, the k of a case."""

from __future__ import annotations

import itertools
import math

import pytest
import torch

from parity.matrix import case_of
from parity.topk import judged_ks, merge, top_k_agreement
from parity.topk_result import TopK
from tests.test_topk import clean, judge

INF = math.inf
LOGS = [[math.log(weight) for weight in (8, 4, 2, 1, 1)]]  # their softmax: 8/16, 4/16, 2/16, 1/16, 1/16


def test_what_a_displaced_token_costs() -> None:
    # Tokens 0 and 1 are owed; 1 and 3 are kept: 0 is lost with 8/16, 3 gained with 1/16.
    result = judge([[0.0, 9.0, 1.0, 8.0, 1.0]], LOGS, k=2)
    assert result.cost == pytest.approx(7 / 16, rel=1e-12)
    assert result.token_cost == pytest.approx(8 / 16, rel=1e-12)
    # Both are lost: 12/16 less the 3/16 of tokens 2 and 4; the largest single one is still 8/16.
    result = judge([[0.0, 0.0, 9.0, 0.0, 9.0]], LOGS, k=2)
    assert result.cost == pytest.approx(9 / 16, rel=1e-12)
    assert result.token_cost == pytest.approx(8 / 16, rel=1e-12)


def test_the_cost_is_of_the_window_alone_and_survives_large_logits() -> None:
    # Without column 0 the weights are 4/8, 2/8, 1/8 and 1/8; exp(10,000) would overflow.
    result = judge([[99.0, 0.0, 9.0, 0.0, 0.0]], [[10_000 + x for x in LOGS[0]]], k=1, starts=[1], ends=[5])
    assert result.cost == pytest.approx(2 / 8, rel=1e-9)
    assert result.token_cost == pytest.approx(4 / 8, rel=1e-9)


def test_the_cost_is_the_dearest_row_s() -> None:
    result = judge([[0.0, 9.0, 8.0, 7.0, 6.0], [9.0, 0.0, 8.0, 7.0, 6.0]], LOGS * 2, k=2)
    assert [loss.cost for loss in result.losses] == pytest.approx([6 / 16, 2 / 16])
    assert result.cost == pytest.approx(6 / 16) and result.token_cost == pytest.approx(8 / 16)


def test_swaps_of_exact_ties_cost_nothing_and_have_no_margin() -> None:
    result = judge([[0.0, 1.0, 2.0]], [[-7.0] * 3], k=1, budget=0.0)
    assert result.displaced == 1 and result.findings == ()
    assert result.cost == 0.0 and result.margin == 0.0 and result.recall_min == 1.0
    assert result.token_cost == pytest.approx(1 / 3)


def test_margin_in_units_of_the_error_allowed() -> None:
    # Row 0 is clean. Row 1 loses token 1 to token 2: 0.03 over 0.02. Row 2 loses token 0 to 3: 0.5 over 1.5.
    expected = [[4.0, 3.0, 2.0, 1.0], [4.0, 3.03, 3.0, 1.0], [3.0, 2.9, 2.8, 2.5]]
    actual = [[4.0, 3.0, 2.0, 1.0], [4.0, 3.0, 3.1, 1.0], [2.0, 2.9, 2.8, 3.5]]
    budget = [[0.01] * 4, [0.01] * 4, [1.0, 0.0, 0.0, 0.5]]
    result = judge(actual, expected, k=2, budget=budget)
    assert result.margin == pytest.approx(1.5) and result.margin_at == (1, 1)
    assert [loss.budgets for loss in result.losses] == pytest.approx([1.5, 1 / 3])
    assert [finding.text for finding in result.findings] == [
        "top-2 of row 1: token 1 lost (margin 0.0300, allowed 0.0200)"
    ]


def test_a_margin_without_any_budget_is_infinite() -> None:
    result = judge([[1.0, 2.0]], [[2.0, 1.0]], k=1, budget=0.0)
    assert result.margin == INF
    assert [finding.text for finding in result.findings] == [
        "top-1 of row 0: token 0 lost (margin 1.0000, allowed 0.0000)"
    ]


def test_the_worst_token_of_a_row_is_the_one_furthest_past_its_own_budget() -> None:
    # Both owed tokens go: 0 by 4.0 with 1.0 allowed, 1 by 3.0 with 0.5 allowed (the rival's own budget is 0).
    result = judge([[0.0, 0.0, 9.0, 8.0]], [[5.0, 4.0, 1.0, 1.0]], k=2, budget=[[1.0, 0.5, 0.0, 0.0]])
    assert result.margin == pytest.approx(6.0) and result.margin_at == (0, 1)
    assert [finding.text for finding in result.findings] == [
        "top-2 of row 0: token 1 lost (margin 3.0000, allowed 0.5000), and 1 more"
    ]


def test_rows_are_told_by_how_far_past_their_budgets_they_are_then_by_margin() -> None:
    budget = [[2.0, 2.0], [0.25, 0.25], [0.0, 0.0], [0.0, 0.0]]
    result = judge([[0.0, 9.0]] * 4, [[5.0, 0.0], [2.0, 0.0], [3.0, 0.0], [4.0, 0.0]], k=1, budget=budget)
    assert [finding.text for finding in result.findings] == [
        "top-1 of row 3: token 0 lost (margin 4.0000, allowed 0.0000)",
        "top-1 of row 2: token 0 lost (margin 3.0000, allowed 0.0000)",
        "top-1 of row 1: token 0 lost (margin 2.0000, allowed 0.5000)",
        "top-1 of row 0: token 0 lost (margin 5.0000, allowed 4.0000)",
    ]


def test_where_the_worst_margin_is_counts_columns() -> None:
    result = judge([[9.0, 0.0, 1.0, 2.0]], [[9.0, 5.0, 1.0, 2.0]], k=1, starts=[1])
    assert result.margin_at == (0, 1) and result.losses[0].token == 0
    assert result.findings[0].where == (0, 1)


def test_a_budget_that_is_no_number_explains_nothing() -> None:
    result = judge([[1.0, 2.0]], [[2.0, 1.0]], k=1, budget=math.nan)
    assert [finding.text for finding in result.findings] == [
        "top-1 of row 0: token 0 lost (margin 1.0000, allowed nan)"
    ]


def test_recall_by_value_forgives_near_ties_alone() -> None:
    expected = [[5.0, 4.0, 3.0, 2.99, 1.0]]
    near = judge([[5.0, 4.0, 0.0, 3.0, 1.0]], expected, k=3)
    assert near.overlap_min == pytest.approx(2 / 3) and near.recall_min == near.recall_mean == 1.0
    far = judge([[5.0, 4.0, 0.0, 0.0, 3.0]], expected, k=3)
    assert far.overlap_min == pytest.approx(2 / 3) and far.recall_min == pytest.approx(2 / 3)
    both = judge([[5.0, 4.0, 0.0, 3.0, 1.0], [5.0, 4.0, 0.0, 0.0, 3.0]], expected * 2, k=3)
    assert both.recall_mean == pytest.approx(5 / 6) and both.recall_min == pytest.approx(2 / 3)
    assert both.overlap_mean == pytest.approx(2 / 3)


def test_recall_by_value_counts_what_a_correct_kernel_could_keep() -> None:
    """Token 1 may fall below token 3, but token 2 may not: tokens 0 and 2 are surely ahead, so nobody keeps token 3."""
    result = judge([[10.0, 0.0, 0.0, 4.5]], [[10.0, 5.0, 4.9, 4.5]], k=2, budget=[[0.0, 1.0, 0.0, 0.0]])
    assert result.findings == () and result.margin == pytest.approx(0.5)
    assert result.recall_min == 0.5


def test_without_rows() -> None:
    empty = torch.zeros(0, 4, dtype=torch.float64)
    bounds = torch.zeros(0, dtype=torch.int32)
    result = top_k_agreement(empty.float(), empty, empty, bounds, bounds, 2)
    assert result == TopK((), 2, 0, 0, 1.0, 1.0, None, 1.0, 1.0, 0, 0.0, None, 0.0, 0.0, ())
    wide = torch.zeros(3, 0, dtype=torch.float64)
    bounds = torch.zeros(3, dtype=torch.int32)
    assert top_k_agreement(wide.float(), wide, wide, bounds, bounds, 2) == clean(2, rows=3)


def noisy(*, rows: int, columns: int, seed: int) -> tuple[torch.Tensor, ...]:
    """actual float32, expected, budget, starts, ends: coarse values with many ties, noise to the edge of the budget."""
    generator = torch.Generator().manual_seed(seed)
    expected = (torch.randn(rows, columns, generator=generator, dtype=torch.float64) * 8).round() / 8
    budget = torch.rand(rows, columns, generator=generator, dtype=torch.float64) * 0.2 + 1e-6
    noise = (2 * torch.rand(rows, columns, generator=generator, dtype=torch.float64) - 1) * (budget - 1e-6)
    starts = torch.randint(-9, columns, (rows,), generator=generator, dtype=torch.int32)
    ends = torch.randint(-9, columns + 9, (rows,), generator=generator, dtype=torch.int32)
    ends[rows // 2 :] = columns
    return (expected + noise).float(), expected, budget, starts, ends


@pytest.mark.parametrize("seed", range(20))
def test_noise_within_the_budgets_is_never_a_finding(seed: int) -> None:
    actual, expected, budget, starts, ends = noisy(rows=24, columns=200, seed=seed)
    results = [top_k_agreement(actual, expected, budget, starts, ends, k) for k in (1, 7, 64, 199, 200, 300)]
    for result in results:
        assert result.findings == () and result.margin <= 1 and result.recall_min == 1
    assert results[1].displaced and results[2].displaced  # or nothing would have been at stake


@pytest.mark.parametrize("seed", range(20))
def test_a_token_displaced_by_more_than_the_budgets_is_always_found(seed: int) -> None:
    actual, expected, budget, _, _ = noisy(rows=1, columns=200, seed=seed)
    k, bounds = 20, (torch.tensor([0], dtype=torch.int32), torch.tensor([200], dtype=torch.int32))
    order = expected[0].argsort(descending=True)
    owed, rival = int(order[seed]), int(order[150 - seed])  # further apart than any two budgets
    actual[0, owed], actual[0, rival] = float(expected[0, rival]), float(expected[0].max()) + 1
    result = top_k_agreement(actual, expected, budget, *bounds, k)
    margin, allowed = expected[0, owed] - expected[0, rival], budget[0, owed] + budget[0, rival]
    assert len(result.findings) == 1 and result.losses[0].unexplained >= 1
    assert result.margin >= margin / allowed > 1  # a token that noise pushed out has the same rival, and may lead
    assert result.recall_min == 1 - 1 / k


def test_masks_agree_with_a_stable_sort_of_each_row() -> None:
    """The same selection, found another way: full sorts keep equal values in order of position."""
    actual, expected, budget, starts, ends = noisy(rows=40, columns=90, seed=5)
    actual[::3, ::7] = math.nan
    for k in (1, 5, 30):
        displaced = 0
        for row, (start, end) in enumerate(zip(starts.clamp(min=0).tolist(), ends.tolist(), strict=True)):
            seen = actual[row, start : max(end, start)].nan_to_num(nan=-INF)
            kept = seen.argsort(descending=True, stable=True)[:k]
            owed = expected[row, start : max(end, start)].argsort(descending=True, stable=True)[:k]
            displaced += len(set(owed.tolist()) - set(kept.tolist()))
        assert top_k_agreement(actual, expected, budget, starts, ends, k).displaced == displaced > 0


@pytest.mark.parametrize("cuts", [(0, 40), (0, 1, 2, 40), (0, 13, 13, 27, 40)])
def test_blocks_merged_are_the_whole(cuts: tuple[int, ...]) -> None:
    actual, expected, budget, starts, ends = noisy(rows=40, columns=90, seed=1)
    actual[3], actual[17], actual[30:] = 0.0, math.nan, actual[30:].flip(1)
    whole = top_k_agreement(actual, expected, budget, starts, ends, 9)
    parts = [
        top_k_agreement(*(part[low:high] for part in (actual, expected, budget, starts, ends)), 9, first_row=low)
        for low, high in itertools.pairwise(cuts)
    ]
    assert len(whole.findings) > 9 and whole.worst_row is not None
    assert merge(parts) == whole


def test_blocks_number_their_rows_from_the_first() -> None:
    result = judge([[0.0, 1.0]], [[1.0, 0.0]], k=1)
    assert result.findings[0].text == "top-1 of row 0: token 0 lost (margin 1.0000, allowed 0.0200)"
    arguments = torch.tensor([[0.0, 1.0]]), torch.tensor([[1.0, 0.0]], dtype=torch.float64)
    bounds = torch.tensor([0], dtype=torch.int32), torch.tensor([2], dtype=torch.int32)
    result = top_k_agreement(*arguments, torch.full((1, 2), 0.01, dtype=torch.float64), *bounds, 1, first_row=512)
    assert result.findings[0].text == "top-1 of row 512: token 0 lost (margin 1.0000, allowed 0.0200)"
    assert result.findings[0].where == (512, 0) and result.worst_row == 512 and result.margin_at == (512, 0)
    tied = torch.zeros(3, 4, dtype=torch.float64)
    ends = torch.full((3,), 4)
    assert top_k_agreement(tied, tied, tied, ends - 4, ends, 2, first_row=7) == clean(2, rows=3, first_row=7)
    with pytest.raises(ValueError, match="window of row 512"):
        top_k_agreement(arguments[0], arguments[1] / 0, arguments[1], *bounds, 1, first_row=512)


def test_merging_refuses_gaps() -> None:
    with pytest.raises(ValueError, match="no parts"):
        merge([])
    with pytest.raises(ValueError, match=r"different k: \[1, 2\]"):
        merge([clean(1), clean(2, first_row=1)])
    with pytest.raises(ValueError, match=r"rows 0 \+ 4 are followed by row 5"):
        merge([clean(1, rows=4), clean(1, first_row=5)])
    assert merge([clean(1, rows=4), clean(1, rows=2, first_row=4)]) == clean(1, rows=6)


def test_the_figures_of_the_evidence() -> None:
    assert judge([[0.0, 9.0, 1.0, 8.0, 1.0]], LOGS, k=2, budget=0.1).figures() == {
        "k": 2,
        "rows": 1,
        "overlap_mean": 0.5,
        "overlap_min": 0.5,
        "worst_row": 0,
        "recall_mean": 0.5,
        "recall_min": 0.5,
        "displaced": 1,
        "margin": pytest.approx(math.log(8) / 0.2),
        "margin_at": [0, 0],
        "cost": pytest.approx(7 / 16),
        "token_cost": pytest.approx(8 / 16),
    }


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        ("glm-5 full 2x76 fn.fn gaussian", (19,)),
        ("glm-5 full 2x2048 fn.fn gaussian", (512, 2047)),
        ("glm-5 full 2x2049 fn.fn gaussian", (2048, 2047)),
        ("glm-5 full 2x4224 fn.fn gaussian", (2048, 2047, 2049)),
        ("deepseek-v4-flash full 2x4224 fn.fn gaussian", (512, 2047, 2048, 2049)),
    ],
)
def test_the_ks_of_a_case(line: str, wanted: tuple[int, ...]) -> None:
    assert judged_ks(case_of(line, "what is selected")) == wanted
