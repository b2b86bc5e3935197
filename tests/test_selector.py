# SPDX-License-Identifier: Apache-2.0
"""The selector and its judge: right answers pass in any order of ties, each wrong kind has its line."""

from __future__ import annotations

import math

import pytest
import torch

from parity.selector import judge_selection, select

LOGITS = torch.tensor([[9.0, 5.0, 7.0, 7.0, 1.0, 3.0], [0.0, 2.0, 4.0, 6.0, 8.0, 9.0], [1.0] * 6])
STARTS, ENDS = torch.tensor([1, 4, 0], dtype=torch.int32), torch.tensor([6, 6, 6], dtype=torch.int32)
RIGHT = [[1, 2, 0], [1, 0, -1], [0, 1, 2]]  # counted from the starts; row 1 has two columns


def texts(rows: list[list[int]], logits: torch.Tensor = LOGITS, k: int = 3) -> list[str]:
    return [finding.text for finding in judge_selection(torch.tensor(rows), logits, STARTS, ENDS, k)]


def test_select_by_hand() -> None:
    chosen = select(LOGITS, STARTS, ENDS, 3)
    assert chosen.dtype == torch.int32 and [sorted(row) for row in chosen[:2].tolist()] == [[0, 1, 2], [-1, 0, 1]]
    assert chosen[1].tolist() == [1, 0, -1]  # largest first, then -1
    assert texts(chosen.tolist()) == [] == texts(RIGHT)


def test_select_of_more_than_there_is_and_of_odd_windows() -> None:
    starts, ends = (torch.tensor(values, dtype=torch.int32) for values in ([-2, 5, 9, 3], [3, 5, 12, 99]))
    logits = LOGITS[1].expand(4, 6).contiguous()
    chosen = select(logits, starts, ends, 8)
    assert chosen.tolist() == [[4, 3, 2] + [-1] * 5, [-1] * 8, [-1] * 8, [2, 1, 0] + [-1] * 5]
    assert judge_selection(chosen, logits, starts, ends, 8) == ()


@pytest.mark.parametrize("ties", [[1, 0, 2], [5, 4, 3], [0, 3, 5]])
def test_equal_logits_may_be_broken_either_way(ties: list[int]) -> None:
    assert texts([*RIGHT[:2], ties]) == []


@pytest.mark.parametrize(
    ("row", "text"),
    [
        ([1, 2, 3], "kept token 3 (logit 1.0000) and left out token 0 (logit 5.0000)"),
        ([1, 2, -1], "kept 2 tokens of a window of 5, expected 3"),
        ([1, 1, 2], "kept token 1 2 times"),
        ([1, 2, 5], "kept token 5, which its window of 5 does not hold"),
        ([1, 2, -2], "kept token -2, which its window of 5 does not hold"),
    ],
)
def test_wrong_rows(row: list[int], text: str) -> None:
    assert texts([row, *RIGHT[1:]]) == [f"selector: row 0 {text}"]


def test_wrong_paddings_and_forms() -> None:
    assert texts([RIGHT[0], [-1, 1, 0], RIGHT[2]]) == ["selector: row 1 has -1 at place 0, before its last token"]
    assert texts([RIGHT[0], [1, 0, 0], RIGHT[2]]) == ["selector: row 1 kept 3 tokens of a window of 2, expected 2"]
    assert texts([row[:2] for row in RIGHT]) == [
        "selector: gave torch.int64 of shape [3, 2], expected integers of [3, 3]"
    ]
    absolute = [[2, 3, 1], [5, 4, -1], [0, 1, 2]]  # columns instead of tokens from the row's start
    assert texts(absolute) == [
        "selector: row 0 kept token 3 (logit 1.0000) and left out token 0 (logit 5.0000)",
        "selector: row 1 kept token 5, which its window of 2 does not hold",
    ]


def test_nan_and_many_rows() -> None:
    logits = LOGITS.clone()
    logits[0, 3] = math.nan
    logits[1, 0] = math.nan  # outside its window
    assert texts(RIGHT, logits) == ["selector: row 0 has 1 NaN, which cannot be ranked"]
    many = torch.arange(60.0).reshape(10, 6)
    ends, starts = torch.full((10,), 6), torch.zeros(10, dtype=torch.int64)
    found = judge_selection(torch.zeros(10, 1, dtype=torch.int64), many, starts, ends, 1, first_row=100)
    assert len(found) == 9 and found[0].text.startswith(
        "selector: row 100 kept token 0 (logit 0.0000) and left out token 5"
    )
    assert found[-1].text == "selector: wrong in 2 more rows"


def test_random_rows_pass_and_one_swapped_token_does_not() -> None:
    generator = torch.Generator().manual_seed(1)
    logits = torch.randn(50, 300, generator=generator)
    starts = torch.randint(-5, 290, (50,), generator=generator)
    ends = starts + torch.randint(-3, 300, (50,), generator=generator)
    chosen = select(logits, starts, ends, 40)
    assert judge_selection(chosen, logits, starts, ends, 40) == ()
    row = next(row for row in range(50) if int(ends[row].clamp(max=300) - starts[row].clamp(min=0)) > 41)
    full = select(logits, starts, ends, 41)
    chosen[row, 39] = full[row, 40]  # the 41st instead of the 40th
    (finding,) = judge_selection(chosen, logits, starts, ends, 40)
    assert finding.where == (row,)
