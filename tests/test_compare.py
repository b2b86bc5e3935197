# SPDX-License-Identifier: Apache-2.0
"""Comparison: each check passes a clean run and catches its planted fault; message texts are fixed."""

from __future__ import annotations

import itertools
import math

import pytest
import torch

from parity.bits import bitwise_equal
from parity.compare import Comparison, compare, merge, number

INF = math.inf
INSIDE = [*range(2, 60)]


def clean(rows: int = 6, columns: int = 64) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """actual, expected, budget: columns 2..59 inside, values that encode their position, budget 2^-8 everywhere."""
    expected = torch.full((rows, columns), -INF, dtype=torch.float64)
    expected[:, INSIDE] = 1.0 + torch.arange(rows)[:, None].double() + torch.arange(58)[None].double() / 64
    budget = torch.isfinite(expected).double() * 2.0**-8
    return expected.float(), expected, budget


def kinds(result: Comparison) -> set[str]:
    return {finding.kind for finding in result.findings}


def test_clean_run_passes() -> None:
    result = compare(*clean())
    assert not result.findings and result.calc_diff == 0 and (result.bad, result.bad_rows) == (0, ())
    assert (result.ratio, result.worst, result.elements) == (0.0, (0, 0), 6 * 58)


def test_error_on_the_budget_passes_and_beyond_it_does_not() -> None:
    actual, expected, budget = clean()
    actual[4, 9] += 2.0**-8
    result = compare(actual, expected, budget)
    assert not result.findings and result.ratio == 1.0 and result.worst == (4, 9)
    actual[4, 9] += 2.0**-20
    result = compare(actual, expected, budget)
    assert kinds(result) == {"budget"} and result.ratio > 1.0
    assert (result.bad, result.bad_rows) == (1, (4,))


def test_message_of_the_design_note() -> None:
    actual, expected, budget = clean()
    expected[5, 31], budget[5, 31], actual[5, 31] = -1.7969, 0.0041, -1.8125
    for column in (40, 41):
        actual[5, column] += 2.0**-7
    result = compare(actual, expected, budget)
    assert [finding.text for finding in result.findings] == [
        "3 of 348 logits outside budget, all in row 5",
        "worst [5, 31]: actual -1.8125, expected -1.7969, off 0.0156, allowed 0.0041",
    ]
    worst = result.findings[1]
    assert worst.kind == "budget" and worst.where == (5, 31) == result.worst
    assert (worst.actual, worst.expected, worst.limit) == (-1.8125, -1.7969, 0.0041)


@pytest.mark.parametrize("planted", [math.nan, INF, -INF])
def test_non_finite_inside_is_found(planted: float) -> None:
    actual, expected, budget = clean()
    actual[3, 30] = planted
    result = compare(actual, expected, budget)
    kind = {"nan": "NaN", "inf": "+inf", "-inf": "-inf"}[str(planted)]
    assert kinds(result) == {kind} and (result.bad, result.bad_rows) == (1, (3,))
    assert result.findings[0].text == f"1 positions disagree on {kind}, all in row 3"
    assert result.findings[1].text == f"{kind} [3, 30]: actual {number(planted)}, expected 4.4375 (1 in row 3)"
    assert math.isfinite(result.ratio) and math.isfinite(result.calc_diff)


@pytest.mark.parametrize("planted", [0.0, -3.0e38, math.nan, INF])
def test_anything_but_minus_inf_outside_is_found(planted: float) -> None:
    actual, expected, budget = clean()
    actual[2, 60] = planted  # the first column past the end
    result = compare(actual, expected, budget)
    assert "-inf" in kinds(result) and result.bad == 1 and result.bad_rows == (2,)


def test_a_tensor_of_nan_never_passes() -> None:
    actual, expected, budget = clean()
    result = compare(torch.full_like(actual, math.nan), expected, budget)
    assert {"NaN", "-inf"} == kinds(result)
    assert result.ratio == 0.0 and result.worst is None and result.bad == actual.numel()


def test_error_without_budget_is_infinite() -> None:
    actual, expected, budget = clean()
    budget[1, 5], actual[1, 5] = 0.0, actual[1, 5] + 2.0**-20
    result = compare(actual, expected, budget)
    assert result.ratio == INF and result.worst == (1, 5) and kinds(result) == {"budget"}


def test_shape_and_dtype_come_first() -> None:
    actual, expected, budget = clean()
    result = compare(actual[:, :-1].double(), expected, budget)
    assert [finding.text for finding in result.findings] == [
        "shape [6, 63], expected [6, 64]",
        "dtype torch.float64, expected torch.float32",
    ]
    assert result.ratio == INF and result.elements == 0


def test_eight_rows_shown_worst_first_and_all_counted() -> None:
    actual, expected, budget = clean(rows=30)
    for row in range(20):
        actual[row, 10] += (row + 1) * 2.0**-7
        actual[row, 61] = 0.0
    result = compare(actual, expected, budget)
    budget_texts = [finding for finding in result.findings if finding.kind == "budget"]
    assert budget_texts[0].text == "20 of 1,740 logits outside budget, in 20 rows"
    assert [finding.where for finding in budget_texts[1:]] == [(row, 10) for row in range(19, 11, -1)]
    position_texts = [finding for finding in result.findings if finding.kind == "-inf"]
    assert position_texts[0].text == "20 positions disagree on -inf, in 20 rows" and len(position_texts) == 9
    assert result.bad == 40 and result.bad_rows == tuple(range(20))


def test_usual_similarity_hides_two_dead_rows_of_1024() -> None:
    generator = torch.Generator().manual_seed(7)
    expected = torch.randn(1024, 256, generator=generator, dtype=torch.float64)
    expected /= expected.norm(dim=1, keepdim=True)
    actual = expected.float()
    actual[[100, 900]] = 0.0
    result = compare(actual, expected, torch.full_like(expected, 1e-6))
    assert result.calc_diff == pytest.approx(2 / 2046, rel=1e-6)  # 9.8e-4: passes at the usual 1e-3
    assert result.bad_rows == (100, 900) and result.findings[0].text.endswith("in 2 rows")


def test_broken_judge_is_an_error_not_a_verdict() -> None:
    actual, expected, budget = clean()
    for bad in (math.nan, INF):
        with pytest.raises(ValueError, match="reference"):
            compare(actual, expected.index_fill(0, torch.tensor([1]), bad), budget)
    for bad in (math.nan, INF, -1.0):
        with pytest.raises(ValueError, match="budget"):
            compare(actual, expected, budget.index_fill(0, torch.tensor([1]), bad))
    with pytest.raises(ValueError, match="shape"):
        compare(actual, expected, budget[:-1])
    with pytest.raises(ValueError, match="float64"):
        compare(actual, expected.float(), budget)


def test_strided_view_is_judged_like_its_copy() -> None:
    actual, expected, budget = clean()
    padded = torch.full((6, 256), math.nan)
    padded[:, :64] = actual
    assert compare(padded[:, :64], expected, budget).findings == ()
    assert bitwise_equal(padded[:, :64], actual) == ()


def test_empty_window_everywhere() -> None:
    expected = torch.full((3, 5), -INF, dtype=torch.float64)
    result = compare(expected.float(), expected, torch.zeros_like(expected))
    assert result == Comparison()


def test_bitwise_equal_runs() -> None:
    actual, _, _ = clean()
    actual[0, 3] = math.nan
    assert bitwise_equal(actual, actual.clone()) == ()


def test_bitwise_differences_are_found() -> None:
    first, _, _ = clean()
    second = first.clone()
    second[2, 5] = torch.nextafter(first[2, 5], torch.tensor(INF))
    second[4, 7] += 1
    (finding,) = bitwise_equal(first, second)
    assert finding.kind == "repeat" and finding.where == (2, 5)
    # 1 + 2 + 3/64 = 3.046875 = 0x40430000
    assert finding.text == "repeat differs in 2 of 384 positions, first [2, 5]: 0x40430000, then 0x40430001"
    signed = torch.tensor([[0.0, 1.0]])
    (finding,) = bitwise_equal(signed, -signed)
    assert "first [0, 0]: 0x00000000, then 0x80000000" in finding.text
    nan = torch.tensor([[0x7FC00000]], dtype=torch.int32).view(torch.float32)
    other_nan = torch.tensor([[0x7FC00001]], dtype=torch.int32).view(torch.float32)
    assert len(bitwise_equal(nan, other_nan)) == 1


def test_bitwise_form() -> None:
    first, _, _ = clean()
    assert [finding.kind for finding in bitwise_equal(first, first[:-1].double())] == ["shape", "dtype"]
    with pytest.raises(ValueError, match="int32"):
        bitwise_equal(first.int(), first.int())


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (-1.8125, "-1.8125"),
        (0.0, "0.0000"),
        (0.015, "0.0150"),
        (4.1e-6, "4.100e-06"),
        (3e7, "3.000e+07"),
        (math.nan, "nan"),
        (-INF, "-inf"),
        (0.001, "0.0010"),
        (-123456.75, "-123456.7500"),
    ],
)
def test_numbers(value: float, text: str) -> None:
    assert number(value) == text


@pytest.mark.parametrize("cuts", [(0, 40), (0, 1, 40), (0, 7, 8, 30, 40)])
@pytest.mark.parametrize("faults", [0, 1, 3, 60])
def test_blocks_of_rows_merge_into_the_whole(cuts: tuple[int, ...], faults: int) -> None:
    actual, expected, budget = clean(rows=40)
    generator = torch.Generator().manual_seed(faults)
    for value in (math.nan, INF, -INF, 0.25):
        for row, column in zip(
            *(torch.randint(0, size, (faults,), generator=generator).tolist() for size in (40, 64)), strict=True
        ):
            actual[row, column] = (
                actual[row, column] + float(torch.rand((), generator=generator)) if value == 0.25 else value
            )
    whole = compare(actual, expected, budget)
    blocks = [slice(*ends) for ends in itertools.pairwise(cuts)]
    parts = [compare(actual[rows], expected[rows], budget[rows], first_row=rows.start) for rows in blocks]
    merged = merge(parts)
    texts = [[(finding.kind, finding.where, finding.text) for finding in result.findings] for result in (merged, whole)]
    assert texts[0] == texts[1] and (faults == 0) is not bool(texts[0])
    assert (merged.ratio, merged.worst, merged.bad, merged.bad_rows) == (
        whole.ratio,
        whole.worst,
        whole.bad,
        whole.bad_rows,
    )
    assert merged.elements == whole.elements and merged.calc_diff == pytest.approx(whole.calc_diff, abs=1e-12)


def test_merge_of_a_wrong_form_and_of_nothing() -> None:
    actual, expected, budget = clean()
    wrong = compare(actual[:, :-1], expected, budget)
    assert merge([wrong, wrong]).findings == wrong.findings and merge([wrong]).ratio == INF
    with pytest.raises(ValueError, match="no rows"):
        merge([])
