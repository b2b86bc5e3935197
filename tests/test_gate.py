# SPDX-License-Identifier: Apache-2.0
"""The verdict walks what is required: whatever is missing, doubled, unknown or no number is never a PASS."""

from __future__ import annotations

import dataclasses
import math

import pytest

from parity.cases import Case
from parity.checks import required_checks
from parity.compare import Finding
from parity.evidence import Record
from parity.gate import State, decide
from parity.matrix import quick_cases

CASES = quick_cases()
FIGURES = {
    "reference": {"ratio": 0.2, "bad": 0, "launches": [{}]},
    "top-k": {"k": 19, "overlap_min": 1.0},
    "selector": {"k": 19},
    "repeat": {"launches": 2},
    "agreement": {"ratio": 0.2, "bad": 0},
}
FAULT = (Finding("budget", None, None, None, None, "3 of 9 logits outside budget, all in row 2"),)


def clean(cases: tuple[Case, ...] = CASES) -> list[Record]:
    keys = [(key, case) for case in cases for key in required_checks(case)]
    return [
        Record(
            check, case.id, arm, "made up", "executor", "pass", (), dict(FIGURES[check]), case.to_json(), "0" * 64, {}
        )
        for (check, _, arm), case in keys
    ]


def changed(index: int, **changes: object) -> list[Record]:
    records = clean()
    records[index] = dataclasses.replace(records[index], **changes)  # type: ignore[arg-type]
    return records


def test_all_required_and_clean_is_a_pass_that_says_what_it_covers() -> None:
    verdict = decide(clean(), CASES)
    assert (verdict.state, verdict.state.exit_code, verdict.reasons) == (State.PASS, 0, ())
    assert verdict.line() == (
        "PASS [fp8_mqa_logits, flydsl against triton, made up, gfx942 on executor, H 16/32/64/128, D 64/128, "
        f"q/kv fn/fn fn/fnuz fnuz/fn fnuz/fnuz, {len(CASES)} cases]"
    )
    assert "real silicon" in verdict.not_covered


@pytest.mark.parametrize("index", range(9))
def test_a_missing_record_is_not_validated(index: int) -> None:
    records = clean()
    gone = records.pop(index)
    verdict = decide(records, CASES)
    assert (verdict.state, verdict.state.exit_code) == (State.NOT_VALIDATED, 2)
    assert f"{gone.case}: {gone.check} missing" in verdict.reasons[0]


def test_records_of_other_cases_do_not_help() -> None:
    assert decide(clean(CASES[1:]), CASES).state is State.NOT_VALIDATED
    assert decide(clean(), ()).state is State.NOT_VALIDATED
    assert decide([], CASES).state is State.NOT_VALIDATED


def test_a_doubled_record_is_not_validated() -> None:
    verdict = decide([*clean(), clean()[0]], CASES)
    assert verdict.state is State.NOT_VALIDATED
    assert "reference has 2 records" in verdict.reasons[0]


@pytest.mark.parametrize("value", [math.nan, math.inf, "nan", "inf", "-inf"])
def test_a_figure_that_is_no_number_is_not_validated(value: object) -> None:
    verdict = decide(changed(0, figures=FIGURES["reference"] | {"ratio": value}), CASES)
    assert verdict.state is State.NOT_VALIDATED
    assert verdict.reasons[0].endswith("reference: ratio is not a number")


def test_what_the_executor_cannot_run_is_not_validated() -> None:
    verdict = decide(changed(0, status="unsupported", findings=FAULT), CASES)
    assert verdict.state is State.NOT_VALIDATED
    assert verdict.reasons[0].startswith(f"flydsl in 1 of {len(CASES)} cases")


def test_a_failure_outranks_a_doubt() -> None:
    records = changed(0, status="fail", findings=FAULT)
    del records[40]
    verdict = decide(records, CASES)
    assert (verdict.state, verdict.state.exit_code) == (State.FAIL, 1)


def test_a_failure_names_pairs_and_the_clean_ones() -> None:
    verdict = decide(changed(0, status="fail", findings=FAULT), CASES)
    assert verdict.reasons == (
        f"flydsl in 1 of {len(CASES)} cases (q/kv fn/fnuz; fn/fn fnuz/fn fnuz/fnuz clean): "
        "causal-q17-k76-h64-d128-fn.fnuz-gaussian-seed0: 3 of 9 logits outside budget, all in row 2",
    )


def test_a_broken_baseline_is_said_to_be_one() -> None:
    triton = next(index for index, record in enumerate(clean()) if record.arm == "triton")
    verdict = decide(changed(triton, status="fail", findings=FAULT), CASES)
    assert verdict.state is State.FAIL
    assert verdict.reasons[0].startswith(f"baseline error: triton in 1 of {len(CASES)} cases")


def test_a_disagreement_alone_is_a_failure() -> None:
    both = next(index for index, record in enumerate(clean()) if record.check == "agreement")
    verdict = decide(changed(both, status="fail", findings=FAULT), CASES)
    assert verdict.state is State.FAIL
    assert verdict.reasons[0].startswith(f"flydsl+triton in 1 of {len(CASES)} cases")


@pytest.mark.parametrize(("field", "value"), [("source", "another aiter"), ("where", "gpu gfx942")])
def test_mixed_evidence_is_not_validated(field: str, value: str) -> None:
    verdict = decide(changed(3, **{field: value}), CASES)
    assert verdict.state is State.NOT_VALIDATED
    assert verdict.reasons[0].startswith(f"evidence mixes {field}s: ")


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"figures": FIGURES["reference"] | {"ratio": 1.01}}, "passed, but its own figures are beyond the limit"),
        ({"figures": FIGURES["reference"] | {"bad": 1}}, "passed, but its own figures are beyond the limit"),
        ({"figures": FIGURES["reference"] | {"launches": []}}, "passed without a launch"),
        ({"figures": {}}, "ratio, bad, launches is missing"),
        ({"case_axes": {}}, "is about another case than its name says"),
        ({"inputs_sha256": "1" * 64}, "evidence mixes inputs of causal-q17"),
    ],
)
def test_a_pass_that_contradicts_itself_is_not_believed(changes: dict[str, object], reason: str) -> None:
    verdict = decide(changed(0, **changes), CASES)
    assert verdict.state is State.NOT_VALIDATED
    assert reason in verdict.reasons[0]


def test_versions_stand_in_the_verdict() -> None:
    packages = {"packages": {"triton": ["3.7.1", "/x"], "torch": ["2", "/y"]}}
    assert ", made up, triton 3.7.1, gfx942 on executor" in decide(changed(0, provenance=packages), CASES).line()


def test_a_mutant_is_never_evidence_of_its_kernel() -> None:
    figures = FIGURES["reference"] | {"launches": [{"mutation": None}, {"mutation": "+0x40 s_barrier -> s_nop 0"}]}
    verdict = decide(changed(0, figures=figures), CASES)
    assert verdict.state is State.NOT_VALIDATED
    assert "reference: is of a mutant (parity mutate), not of the kernel" in verdict.reasons[0]
    figures = FIGURES["reference"] | {"launches": [{"mutation": None}]}
    assert decide(changed(0, figures=figures), CASES).state is State.PASS
