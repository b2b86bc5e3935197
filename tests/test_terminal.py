# SPDX-License-Identifier: Apache-2.0
"""What a user reads, literally."""

from __future__ import annotations

from parity.checks import required_checks
from parity.compare import Finding
from parity.evidence import Record
from parity.gate import decide
from parity.matrix import quick_cases
from parity.report.terminal import HEADER, case_line, failure_text, failures_text, verdict_text

CASE = quick_cases()[0]
FINDINGS = (
    Finding("budget", None, None, None, None, "3 of 1,139 logits outside budget, all in row 5"),
    Finding(
        "budget",
        (5, 31),
        -1.8125,
        -1.7969,
        0.0041,
        "worst [5, 31]: actual -1.8125, expected -1.7969, off 0.0156, allowed 0.0041",
    ),
)


def record(
    check: str,
    arm: str,
    findings: tuple[Finding, ...] = (),
    figures: dict[str, object] | None = None,
    *,
    case: str = CASE.id,
) -> Record:
    status = "fail" if findings else "pass"
    return Record(
        check, case, arm, "aiter v9", "executor", status, findings, figures or {}, CASE.to_json(), "0" * 64, {}
    )


def test_a_failure_names_arm_source_case_device_and_how_to_repeat() -> None:
    assert failure_text(record("reference", "flydsl", FINDINGS), "pytest -k it") == (
        f"flydsl (aiter v9) / {CASE.id} / executor: 3 of 1,139 logits outside budget, all in row 5\n"
        "  worst [5, 31]: actual -1.8125, expected -1.7969, off 0.0156, allowed 0.0041\n"
        "  again: pytest -k it"
    )


def test_many_findings_are_cut_and_counted() -> None:
    text = failure_text(record("reference", "flydsl", FINDINGS + FINDINGS[1:] * 6), "again")
    assert text.count("worst") == 3
    assert "  and 4 more findings" in text


def test_control_characters_are_shown_not_sent() -> None:
    hostile = (Finding("compile-error", None, None, None, None, "red \x1b[31m alert \r\n"),)
    text = failure_text(record("reference", "flydsl", hostile), "again")
    assert "\x1b" not in text
    assert r"red \x1b[31m alert \r\n" in text


def test_one_compile_error_is_told_once() -> None:
    error = (Finding("compile-error", None, None, None, None, "compile-error: no"),)
    cases = [case.id for case in quick_cases()]
    records = [
        record(check, "flydsl", error, case=case) for case in cases for check in ("reference", "top-k", "repeat")
    ]
    text = failures_text(records, dict.fromkeys(cases, "again"))
    assert text.count("compile-error: no") == 1


def test_a_disagreement_is_told_only_where_neither_kernel_is_wrong_already() -> None:
    figures: dict[str, object] = {"ratio": 2.0}
    disagreement = record("agreement", "flydsl+triton", FINDINGS, figures)
    again = {CASE.id: "again"}
    assert failures_text([disagreement], again).startswith("flydsl+triton")
    assert "flydsl+triton" not in failures_text([record("reference", "triton", FINDINGS, figures), disagreement], again)


def test_many_blocks_are_cut_and_counted() -> None:
    cases = [case.id for case in quick_cases()]
    records = [record("reference", "flydsl", FINDINGS, {"ratio": 2.0}, case=case) for case in cases]
    text = failures_text(records, dict.fromkeys(cases, "again"))
    assert text.count("again: again") == 6
    assert text.endswith(f"and {len(cases) - 6} more of the {len(cases)} failed records in the evidence")


def full_case(case_id: str, **figures: float) -> list[Record]:
    made = []
    for check, _, arm in required_checks(CASE):
        values: dict[str, object] = {"ratio": figures.get(arm, 0.1), "bad": 0, "launches": [{}]}
        if check in ("top-k", "selector", "repeat"):
            values = {"k": 19, "overlap_min": 0.998, "launches": 2}
        made.append(record(check, arm, (), values, case=case_id))
    return made


def test_the_table_fits_100_columns() -> None:
    for case in quick_cases():
        line = case_line(case, full_case(case.id, flydsl=1e300))
        assert len(line) <= 100, line
    assert len(HEADER) <= 100


def test_a_case_line() -> None:
    line = case_line(CASE, full_case(CASE.id, flydsl=0.25))
    assert line.split() == [CASE.id, "0.25", "0.10", "0.10", "0.998", "pass"]
    broken = [
        entry if entry.arm != "flydsl" else record(entry.check, "flydsl", FINDINGS) for entry in full_case(CASE.id)
    ]
    assert case_line(CASE, broken).split()[1:] == ["-", "0.10", "0.10", "0.998", "FAIL", "flydsl"]


def test_the_verdict_is_the_last_line() -> None:
    records = full_case(CASE.id, flydsl=0.25)
    text = verdict_text(records, decide(records, [CASE]), "somewhere.jsonl").splitlines()
    assert text[0].startswith("largest error/budget: flydsl 0.25, triton 0.10, flydsl+triton 0.10")
    assert text[-2] == "evidence: somewhere.jsonl (9 records)"
    assert text[-1].startswith("PASS [fp8_mqa_logits")
