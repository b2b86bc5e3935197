# SPDX-License-Identifier: Apache-2.0
"""The contract: its table is complete, and each kind of difference has its text."""

from __future__ import annotations

import dataclasses

import pytest
import torch

from parity.arm import Observation
from parity.contract import ARGUMENTS, INT_MAX, INT_MIN, Row, contract, row_named, rows_on
from parity.contract_calls import arguments_of, plain_arguments
from parity.contract_inputs import row_inputs
from parity.contract_judge import findings_of
from parity.contract_memory import POISON
from parity.devices import Device
from parity.launchers.record import STREAM
from parity.reference import reference_logits

ROWS = contract()
FORM = "torch.float32 of shape [4, 70], strides [256, 1], on cpu"


def test_names_are_unique_and_every_group_is_there() -> None:
    assert len({row.name for row in ROWS}) == len(ROWS) > 80
    assert {row.group for row in ROWS} == {"memory", "windows", "sizes", "call", "values", "refusals"}
    assert {row.judged for row in ROWS} == {"valid", "values", "refusal"}
    assert row_named("q-apart").case == "contract-q-apart"
    with pytest.raises(KeyError):
        row_named("q-far-apart")


@pytest.mark.parametrize("argument", ["Q", "KV", "weights"])
@pytest.mark.parametrize("layout", ["apart", "wide", "transposed", "offset"])
def test_every_operand_lies_in_memory_in_every_way(argument: str, layout: str) -> None:
    assert any(row.layouts == {argument: layout} for row in ROWS)


@pytest.mark.parametrize("argument", ["Q", "KV"])
def test_strided_operands_come_in_both_encodings(argument: str) -> None:
    """A wrapper that converts FN bytes makes a copy, whose strides are others."""
    pairs = {(row.pair, row.layouts[argument]) for row in ROWS if set(row.layouts) == {argument}}
    assert {("fn.fn", layout) for layout in ("apart", "wide", "transposed")} < pairs


@pytest.mark.parametrize("size", ["1x1", "4x1", "1x70", "3x256", "3x257"])
def test_sizes(size: str) -> None:
    assert any(row.size == size for row in ROWS)


def test_windows_reach_every_odd_place() -> None:
    windows = {window for row in ROWS for window in row.windows}
    for what in (
        lambda start, end: start >= 70,
        lambda start, end: end > 70,
        lambda start, end: start < 0 < end,
        lambda start, end: end < 0,
        lambda start, end: end == start,
        lambda start, end: 0 <= end < start,
        lambda start, end: end == INT_MAX,
        lambda start, end: start == INT_MIN,
    ):
        assert any(what(*window) for window in windows)


def test_every_argument_has_rows_with_another_dtype() -> None:
    assert {name for row in ROWS for name in row.dtypes} == set(ARGUMENTS)


def test_a_gpu_gets_no_illegal_call_and_cuda_none() -> None:
    gpu = rows_on(Device("gpu", 0))
    assert rows_on(Device("executor")) == ROWS and rows_on(Device("cuda", 0)) == ()
    assert 40 < len(gpu) < len(ROWS) and all(row.judged != "refusal" for row in gpu)
    dangerous = {"window-both-int-max", "window-start-int-min", "kv-scales-expanded", "q-apart-fn", "kv-wide-fn"}
    assert not dangerous & {row.name for row in gpu} and {"q-apart", "kv-transposed-fn"} < {row.name for row in gpu}


@pytest.mark.parametrize("row", [row for row in ROWS if row.layouts], ids=lambda row: row.name)
def test_a_layout_keeps_the_values_and_surrounds_them_with_poison(row: Row) -> None:
    inputs = row_inputs(row)
    plain, laid = plain_arguments(inputs, "cpu"), arguments_of(row, inputs, "cpu")
    for name, layout in row.layouts.items():
        wanted, tensor = plain[name], laid[name]
        if layout in ("column", "slice"):
            assert tensor.shape == (len(wanted), 1)
            tensor = tensor[:, 0]
        bytes = [part.contiguous().view(torch.uint8) for part in (tensor, wanted)]
        assert torch.equal(*bytes)
        whole = torch.tensor([], dtype=torch.uint8).set_(
            tensor.untyped_storage(), 0, (tensor.untyped_storage().nbytes(),)
        )
        spare = len(whole) - bytes[0].numel()
        assert (spare > 0) is (layout not in ("transposed", "column", "expanded"))
        assert int((whole == POISON).sum()) >= spare
        assert layout in ("column", "offset", "slice") or not tensor.is_contiguous() or len(tensor) == 1


def seen(row: Row, **changes: object) -> Observation:
    """What a kernel that does everything right is seen to do."""
    logits = reference_logits(row_inputs(row)).float()
    right = Observation((logits, logits.clone()), torch.zeros_like(logits), FORM, "", (STREAM,))
    return dataclasses.replace(right, **changes)  # type: ignore[arg-type]


def texts(row: Row, flydsl: Observation, triton: Observation) -> list[str]:
    findings, _ = findings_of(row, row_inputs(row), {"flydsl": flydsl, "triton": triton})
    return [finding.text.split("): ", 1)[1] for finding in findings]


def test_two_right_kernels_are_no_finding() -> None:
    row = row_named("q-apart")
    findings, outcomes = findings_of(row, row_inputs(row), {"flydsl": seen(row), "triton": seen(row)})
    assert findings == () and {outcome.kind for outcome in outcomes.values()} == {"right"}


def test_the_text_names_row_promise_and_smallest_input() -> None:
    row = row_named("q-apart")
    wrong = seen(row).outputs[0].clone()
    wrong[1, 3] += 1
    (finding,), _ = findings_of(
        row, row_inputs(row), {"flydsl": seen(row, outputs=(wrong, wrong)), "triton": seen(row)}
    )
    start = "contract q-apart (Q lies as every second row of a larger tensor; MxNxHxD 4x70x16x64): flydsl gives wrong logits: 1 of "
    assert finding.kind == "contract" and finding.text.startswith(start)
    assert "worst [1, 3]: actual" in finding.text and finding.text.endswith("; triton gives the right logits")


def wrong_of(row: Row) -> torch.Tensor:
    return torch.zeros_like(seen(row).outputs[0])


def test_differences_each_have_their_text() -> None:
    row = row_named("q-apart")
    right = seen(row)
    error = Observation(error=("wrapper-error", "ValueError: no"))
    assert texts(row, error, right) == ["flydsl wrapper-error: ValueError: no; triton gives the right logits"]
    fault = Observation(error=("kernel-fault", "out-of-bounds: read"))
    assert texts(row, fault, fault) == [
        "flydsl: kernel-fault: out-of-bounds: read",
        "baseline error: triton: kernel-fault: out-of-bounds: read",
    ]
    assert texts(row, seen(row, modified="Q"), right) == ["flydsl: input-modified: the memory of Q was changed"]
    assert texts(row, seen(row, form=FORM.replace("256", "70")), right) == [
        f"flydsl gives {FORM.replace('256', '70')}; triton {FORM}"
    ]
    unsteady = seen(row, outputs=(right.outputs[0], wrong_of(row)))
    assert texts(row, unsteady, right)[0].startswith("flydsl: repeat differs in ")
    assert texts(row, seen(row, streams=(3,)), right) == ["flydsl: launched on stream 0x3, not on the current one"]
    assert texts(row, seen(row, wanted=7, streams=(7,)), right) == []
    assert texts(row, seen(row, wanted=7), right) == [f"flydsl: launched on stream {STREAM:#x}, not on the one given"]
    assert texts(row, seen(row, shared="Q"), right) == ["flydsl: gives a result that lies in the memory of Q"]
    holes = torch.zeros_like(right.outputs[0])
    holes[0, 0] = 1
    assert texts(row, seen(row, unwritten=holes), right) == [
        "flydsl: unwritten: logits inside the window were never written"
    ]
    assert texts(row, seen(row, outputs=(None,), form="a NoneType"), right) == [
        "flydsl gives a NoneType; triton gives the right logits"
    ]


def test_what_is_wrong_is_a_finding_also_where_the_baseline_is_wrong_too() -> None:
    row = row_named("kv-scales-apart")
    error, wrong = Observation(error=("wrapper-error", "ValueError: no")), seen(row, outputs=(wrong_of(row),) * 2)
    text = "baseline error: flydsl gives the right logits; triton wrapper-error: ValueError: no"
    assert texts(row, seen(row), error) == [text]
    assert texts(row, error, error) == [
        "baseline error: flydsl wrapper-error: ValueError: no; triton wrapper-error: ValueError: no"
    ]
    (text,) = texts(row, wrong, wrong)
    assert text.startswith("baseline error: flydsl gives wrong logits: ") and "; triton gives wrong logits: " in text
    assert texts(row, seen(row), wrong)[0].startswith(
        "baseline error: flydsl gives the right logits; triton gives wrong"
    )
    fault = Observation(error=("kernel-fault", "out-of-bounds: read"))
    flydsl, triton = texts(row, wrong, fault)
    assert flydsl.startswith("flydsl: gives wrong logits: ") and triton.startswith(
        "baseline error: triton: kernel-fault"
    )
    refused = row_named("scales-long")
    assert texts(refused, error, error) == []  # what nobody can do nobody relied on


@pytest.mark.parametrize("kind", ["unsupported", "timeout", "killed", "no-space", "device-lost"])
def test_what_says_nothing_about_a_kernel_is_unknown(kind: str) -> None:
    row = row_named("q-apart")
    _, outcomes = findings_of(row, row_inputs(row), {"flydsl": Observation(error=(kind, "x")), "triton": seen(row)})
    assert outcomes["flydsl"].kind == "unknown"


def test_not_clean_is_judged_inside_alone() -> None:
    row = row_named("not-clean")
    outside = torch.isneginf(seen(row).outputs[0])
    noisy = [seen(row).outputs[0].masked_fill(outside, value) for value in (7.0, 8.0)]
    holes = outside.float()
    assert outside.any() and texts(row, seen(row, outputs=tuple(noisy), unwritten=holes), seen(row)) == []
    broken = noisy[0].clone()
    broken[3, 0] += 1
    assert "gives wrong logits" in texts(row, seen(row, outputs=(broken, broken)), seen(row))[0]
    assert texts(row_named("clean"), seen(row, outputs=(noisy[0],)), seen(row))[0].startswith(
        "flydsl gives wrong logits"
    )


def test_values_outside_the_reference_are_compared_with_one_another() -> None:
    row = row_named("scale-nan")
    logits = torch.ones(4, 70)
    other = logits.clone()
    other[2, 7] = float("nan")
    same = Observation((other, other), None, FORM, "", (STREAM,))
    assert texts(row, same, same) == []
    assert texts(row, same, dataclasses.replace(same, outputs=(logits,))) == [
        "1 of 280 logits differ, first [2, 7]: flydsl nan, triton 1.0000"
    ]


def test_an_illegal_call_may_be_refused_where_the_baseline_reads_past_its_arguments() -> None:
    row = row_named("scales-short")
    error, fault = Observation(error=("wrapper-error", "no")), Observation(error=("kernel-fault", "past the end"))
    logits = Observation((torch.ones(4, 70),), None, FORM, "", (STREAM,))
    assert texts(row, error, fault) == [] == texts(row, fault, fault) == texts(row, error, error)
    assert texts(row, fault, error) == ["flydsl kernel-fault: past the end; triton wrapper-error: no"]
    assert texts(row, fault, logits) == [f"flydsl kernel-fault: past the end; triton gives {FORM}"]


def test_signatures() -> None:
    row = row_named("signature")
    triton = (
        ("Q", "POSITIONAL_OR_KEYWORD", ""),
        ("clean", "POSITIONAL_OR_KEYWORD", "True"),
        ("plant", "KEYWORD_ONLY", "None"),
    )
    flydsl = (*triton[:2], ("stream", "POSITIONAL_OR_KEYWORD", "None"))
    assert texts(row, Observation(signature=flydsl), Observation(signature=triton)) == []
    other = (triton[0], ("clean", "POSITIONAL_OR_KEYWORD", "False"), ("stream", "POSITIONAL_OR_KEYWORD", ""))
    assert texts(row, Observation(signature=other), Observation(signature=triton)) == [
        "parameter 1 is clean=False in flydsl, clean=True in triton",
        "flydsl's parameter stream has no default",
    ]
    assert texts(row, Observation(signature=triton[:1]), Observation(signature=triton)) == [
        "parameter 1 is nothing= in flydsl, clean=True in triton"
    ]
