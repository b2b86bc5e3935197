# SPDX-License-Identifier: Apache-2.0
"""The selector that stands in for serving's top-k, and its judge: literals, planted faults, and the message texts."""

from __future__ import annotations

import math

import pytest
import torch

from parity.selector import judge_selection, select
from parity.topk import window_mask

INF = math.inf
NAN = math.nan
ROW = [1.0, 9.0, 3.0, 7.0, 5.0, 0.0]


def bounds(starts: list[int], ends: list[int]) -> tuple[torch.Tensor, torch.Tensor]:
    return torch.tensor(starts, dtype=torch.int32), torch.tensor(ends, dtype=torch.int32)


def selected(row: list[float], start: int, end: int, k: int) -> list[int]:
    result = select(torch.tensor([row]), *bounds([start], [end]), k)
    assert result.dtype == torch.int32 and result.shape == (1, k)
    return result[0].tolist()


def texts(tokens: list[int], row: list[float], *, start: int = 0, end: int | None = None) -> list[str]:
    """What the judge says of one selection of one row."""
    window = bounds([start], [len(row) if end is None else end])
    findings = judge_selection(torch.tensor([tokens], dtype=torch.int32), torch.tensor([row]), *window, len(tokens))
    assert all(finding.kind == "selector" and finding.where == (0,) for finding in findings)
    return [finding.text for finding in findings]


@pytest.mark.parametrize(
    ("start", "end", "k", "wanted"),
    [
        (0, 6, 3, [1, 3, 4]),
        (2, 6, 2, [1, 2]),  # columns 3 and 4, counted from 2
        (2, 4, 4, [1, 0, -1, -1]),  # shorter than k
        (0, 6, 8, [1, 3, 4, 2, 0, 5, -1, -1]),  # k larger than the row
        (-3, 99, 2, [4, 6]),  # columns 1 and 3, counted from -3
        (3, 3, 2, [-1, -1]),
        (4, 2, 2, [-1, -1]),
        (0, -4, 2, [-1, -1]),
        (9, 12, 2, [-1, -1]),
    ],
)
def test_select(start: int, end: int, k: int, wanted: list[int]) -> None:
    assert selected(ROW, start, end, k) == wanted
    assert texts(wanted, ROW, start=start, end=end) == []


def test_select_keeps_minus_inf_of_the_window_before_what_lies_outside() -> None:
    assert selected([9.0, -INF, 2.0, -INF, 9.0], 1, 4, 4) == [1, 0, 2, -1]
    assert selected([INF, -INF, -INF, INF], 1, 3, 2) == [0, 1]


def test_select_ranks_nan_last_inside_the_window() -> None:
    assert selected([NAN, NAN, 2.0, 1.0], 1, 4, 2) == [1, 2]
    assert selected([NAN, NAN, 2.0, 1.0], 1, 4, 3) == [1, 2, 0]


def test_select_without_rows_or_columns() -> None:
    assert select(torch.zeros(0, 5), *bounds([], []), 3).shape == (0, 3)
    assert select(torch.zeros(2, 0), *bounds([0, 0], [4, 4]), 2).tolist() == [[-1, -1], [-1, -1]]
    assert judge_selection(torch.zeros(0, 3, dtype=torch.int32), torch.zeros(0, 5), *bounds([], []), 3) == ()
    empty = torch.full((2, 2), -1, dtype=torch.int32)
    assert judge_selection(empty, torch.zeros(2, 0), *bounds([0, 0], [4, 4]), 2) == ()


@pytest.mark.parametrize("block", [1, 6, 11, 12, 13, 1000])
def test_select_takes_long_matrices_a_block_of_rows_at_a_time(block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    logits = torch.stack([torch.tensor(ROW).roll(row) for row in range(7)])
    monkeypatch.setattr("parity.selector._BLOCK", block)
    assert select(logits, *bounds([0] * 7, [6] * 7), 1).flatten().tolist() == [1, 2, 3, 4, 5, 0, 1]


def test_select_leaves_its_inputs_as_they_were() -> None:
    logits, window = torch.tensor([ROW]), bounds([1], [5])
    kept = [tensor.clone() for tensor in (logits, *window)]
    select(logits, *window, 2)
    assert all(torch.equal(after, before) for after, before in zip((logits, *window), kept, strict=True))


def test_any_order_is_right() -> None:
    assert texts([4, 1, 3], ROW) == []


def test_ties_at_the_last_place_may_be_broken_either_way() -> None:
    row = [2.0, 1.0, 3.0, 1.0, 1.0, 0.0]
    for tied in (1, 3, 4):
        assert texts([0, 2, tied], row) == []
    assert texts([0, 2, 5], row) == ["selector: row 0 kept token 5 (logit 0) and left out token 1 (logit 1)"]
    assert texts([1], [0.0, -0.0]) == texts([0], [0.0, -0.0]) == []  # equal, though their bits differ


def test_a_swap_by_one_unit_in_the_last_place_is_found() -> None:
    above = float(torch.nextafter(torch.tensor(1.985), torch.tensor(2.0)))
    assert texts([0, 1], [3.0, 1.985, above]) == [
        "selector: row 0 kept token 1 (logit 1.98500001) and left out token 2 (logit 1.98500013)"
    ]


def test_a_swap_is_told_in_tokens_of_the_row() -> None:
    assert texts([0, 2], ROW, start=2) == ["selector: row 0 kept token 0 (logit 3) and left out token 1 (logit 7)"]
    assert texts([3, 4], ROW, start=-3) == ["selector: row 0 kept token 3 (logit 1) and left out token 6 (logit 7)"]


def test_infinities_rank_as_values() -> None:
    assert texts([0, 1], [INF, -INF, INF]) == [
        "selector: row 0 kept token 1 (logit -inf) and left out token 2 (logit inf)"
    ]
    assert texts([0, 2], [INF, -INF, INF]) == []


@pytest.mark.parametrize(
    ("tokens", "end", "wanted"),
    [
        ([1, 3, -1], 6, ["holds 2 tokens, expected 3"]),
        ([1, 0, 2], 2, ["holds 3 tokens, expected 2", "kept token 2 outside its window [0, 2)"]),
        ([-1, 1, 0], 2, ["has padding at place 0 before token 1"]),
        ([1, -1, 0], 2, ["has padding at place 1 before token 0"]),
        ([1, 3, 6], 6, ["kept token 6 outside its window [0, 6)"]),
        ([1, 3, 6], 99, ["kept token 6 outside its window [0, 6)"]),
        ([1, 3, -2], 6, ["kept token -2 outside its window [0, 6)"]),
        ([1, 3, 2**31 - 1], 6, ["kept token 2147483647 outside its window [0, 6)"]),
        ([0, -1, -1], 0, ["holds 1 tokens, expected 0", "kept token 0 outside its window (empty)"]),
        ([1, 3, 3], 6, ["kept token 3 2 times"]),
        ([1, 1, 1], 6, ["kept token 1 3 times"]),
        ([1, 3, 3], 4, ["kept token 3 2 times"]),
        ([0, 0, -1], 2, ["kept token 0 2 times"]),
        (
            [7, 7, -1],
            6,
            ["holds 2 tokens, expected 3", "kept token 7 outside its window [0, 6)", "kept token 7 2 times"],
        ),
    ],
)
def test_texts_of_a_malformed_selection(tokens: list[int], end: int, wanted: list[str]) -> None:
    assert texts(tokens, ROW, end=end) == [f"selector: row 0 {text}" for text in wanted]


def test_the_window_is_told_from_the_row_s_start() -> None:
    assert texts([8, 2], ROW, start=-3) == ["selector: row 0 kept token 2 outside its window [3, 9)"]
    assert texts([8, 9], ROW, start=-3) == ["selector: row 0 kept token 9 outside its window [3, 9)"]


def test_minus_one_is_padding_even_where_it_would_name_a_column() -> None:
    assert texts([3, -1], ROW, start=2, end=3)[0] == "selector: row 0 kept token 3 outside its window [0, 1)"
    assert texts([0, -1], ROW, start=2, end=3) == []


def test_nan_is_a_finding_whatever_was_selected() -> None:
    row = [1.0, NAN, 3.0, NAN]
    assert texts([2, 0], row) == ["selector: row 0 holds 2 NaN: no selection of it is right"]
    assert texts([2, 2], row) == [
        "selector: row 0 kept token 2 2 times",
        "selector: row 0 holds 2 NaN: no selection of it is right",
    ]
    assert texts([0, -1], row, end=1) == []  # outside the window nobody reads them


def test_the_form_of_the_indices() -> None:
    logits, window = torch.tensor([ROW] * 2), bounds([0, 0], [6, 6])
    findings = judge_selection(torch.zeros(2, 3), logits, *window, 3)
    assert [finding.text for finding in findings] == [
        "selector: gave torch.float32 [2, 3], expected int32 or int64 [2, 3]"
    ]
    findings = judge_selection(torch.zeros(2, 2, dtype=torch.int32), logits, *window, 3)
    assert [finding.text for finding in findings] == [
        "selector: gave torch.int32 [2, 2], expected int32 or int64 [2, 3]"
    ]
    assert judge_selection(select(logits, *window, 3).long(), logits, *window, 3) == ()


def test_eight_rows_shown_then_a_count() -> None:
    logits, window = torch.tensor([ROW] * 20), bounds([0] * 20, [6] * 20)
    indices = select(logits, *window, 2)
    indices[3:14, 0] = 5
    findings = judge_selection(indices, logits, *window, 2)
    assert len(findings) == 9
    assert findings[0].where == (3,)
    assert findings[0].text == "selector: row 3 kept token 5 (logit 0) and left out token 1 (logit 9)"
    assert findings[-1].text == "selector: wrong in 3 more rows" and findings[-1].where is None
    findings = judge_selection(indices, logits, *window, 2, first_row=1000)
    assert findings[0].where == (1003,)
    assert findings[0].text == "selector: row 1003 kept token 5 (logit 0) and left out token 1 (logit 9)"


@pytest.mark.parametrize("seed", range(10))
def test_random_rows_with_ties_select_cleanly_and_every_swap_is_found(seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    rows, columns, k = 30, 120, 16
    logits = (torch.randn(rows, columns, generator=generator) * 4).round() / 4
    starts = torch.randint(-20, columns, (rows,), generator=generator, dtype=torch.int32)
    ends = torch.randint(-20, columns + 20, (rows,), generator=generator, dtype=torch.int32)
    indices = select(logits, starts, ends, k)
    assert judge_selection(indices, logits, starts, ends, k) == ()
    shuffled = indices.clone()
    for row in range(rows):
        held = int((indices[row] != -1).sum())
        shuffled[row, :held] = shuffled[row, torch.randperm(held, generator=generator)]
    assert judge_selection(shuffled, logits, starts, ends, k) == ()
    planted = 0
    for row, start in enumerate(starts.tolist()):
        window = window_mask(starts, ends, columns, logits.device)[row].nonzero().flatten().tolist()
        dropped = sorted(set(window) - {token + start for token in indices[row].tolist()}, key=lambda c: logits[row, c])
        if dropped and logits[row, dropped[0]] < logits[row, int(indices[row, 0]) + start]:
            wrong = indices.clone()
            wrong[row, 0] = dropped[0] - start  # the smallest instead of the largest
            findings = judge_selection(wrong, logits, starts, ends, k)
            assert len(findings) == 1 and f"kept token {dropped[0] - start} (logit" in findings[0].text
            planted += 1
    assert planted > 3


def test_refusals() -> None:
    logits, window = torch.tensor([ROW]), bounds([0], [6])
    indices = torch.zeros(1, 2, dtype=torch.int32)
    for broken in (lambda *rest: select(logits, *rest), lambda *rest: judge_selection(indices, logits, *rest)):
        with pytest.raises(ValueError, match="k must be 1 or more, not 0"):
            broken(*window, 0)
        with pytest.raises(ValueError, match=r"logits must be \[M,N\]"):
            broken(*bounds([0, 0], [6, 6]), 2)
    with pytest.raises(ValueError, match=r"float32 logits, not torch\.float64"):
        select(logits.double(), *window, 2)
