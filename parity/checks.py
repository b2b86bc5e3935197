# SPDX-License-Identifier: Apache-2.0
"""One case judged: every check of both kernels and of their agreement, as evidence records.

    reference   the kernel against float64: form, -inf/NaN positions, each row against its budget
    top-k       the tokens it would select, against those of the reference, ties allowed for
    repeat      a second launch on the same inputs, bit for bit
    agreement   the two kernels against each other: each may use its own budget

The gate and the pytest cases both call `judge_case`; there is no other judgement.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import torch

from parity.arm import Arm, ArmError, Run
from parity.budget import error_budget
from parity.cases import Case
from parity.compare import Comparison, Finding, bitwise_equal, compare
from parity.evidence import Record
from parity.inputs import Inputs, build_inputs
from parity.reference import reference_logits
from parity.topk import top_k_agreement

KERNELS = ("flydsl", "triton")
KERNEL_CHECKS = ("reference", "top-k", "repeat")
AGREEMENT, BOTH = "agreement", "flydsl+triton"
REPEATS = 2
UNKNOWN = (
    "unsupported",
    "no-launch",
    "killed",
    "timeout",
    "no-space",
)  # kinds of ArmError that say nothing about the kernel


@dataclass(frozen=True)
class Expected:
    """What a correct kernel gives on `inputs`: logits and budget, float64 [M, N]."""

    inputs: Inputs
    logits: torch.Tensor
    budget: torch.Tensor


def required_checks(case: Case) -> list[tuple[str, str, str]]:
    """(check, case id, arm) of every record that `judge_case` makes, and that the gate wants to see."""
    single = [(check, case.id, kernel) for kernel in KERNELS for check in KERNEL_CHECKS]
    return [*single, (AGREEMENT, case.id, BOTH)]


def expect(case: Case) -> Expected:
    """Inputs, reference and budget of a case."""
    inputs = build_inputs(case)
    return Expected(inputs, reference_logits(inputs), error_budget(inputs))


def judge_case(case: Case, arms: Mapping[str, Arm], *, plants: Mapping[str, str] | None = None) -> list[Record]:
    """Run both arms on the case, at the same time, and judge them. `plants`: kernel -> fault to build in (own kernels)."""
    expected = expect(case)
    with ThreadPoolExecutor(len(arms)) as pool:
        results = {
            kernel: pool.submit(_run, arm, expected.inputs, (plants or {}).get(kernel)) for kernel, arm in arms.items()
        }
        runs = {kernel: future.result() for kernel, future in results.items()}
    records = []
    for kernel in KERNELS:
        make = _maker(case, expected, arms[kernel], kernel)
        records += _judge_kernel(case, expected, runs[kernel], make)
    return [*records, _judge_agreement(case, expected, runs, _maker(case, expected, arms["flydsl"], BOTH))]


def _run(arm: Arm, inputs: Inputs, plant: str | None) -> Run | ArmError:
    try:
        return arm.run(inputs, repeats=REPEATS, plant=plant)
    except ArmError as error:
        return error


Maker = Callable[[str, str, tuple[Finding, ...], dict[str, Any]], Record]


def _maker(case: Case, expected: Expected, arm: Arm, name: str) -> Maker:
    """A function that fills in what all records of one arm and case share."""

    def make(check: str, status: str, findings: tuple[Finding, ...], figures: dict[str, Any]) -> Record:
        return Record(
            check=check, case=case.id, arm=name, source=arm.source.label, where=arm.provenance.get("where", arm.device.kind),
            status=status, findings=findings, figures=figures, case_axes=case.to_json(), inputs_sha256=expected.inputs.sha256,
            provenance=arm.provenance | {"revision": arm.source.revision, "flydsl_pin": arm.source.flydsl},
        )  # fmt: skip

    return make


def _failed_arm(error: ArmError) -> tuple[str, tuple[Finding, ...]]:
    """(status, findings) of every check of an arm that gave no logits of its kernel. The executor's own limit is no fault."""
    status = "unsupported" if error.kind in UNKNOWN else "fail"
    return status, (Finding(error.kind, None, None, None, None, f"{error.kind}: {error.text}"),)


def _judge_kernel(case: Case, expected: Expected, run: Run | ArmError, make: Maker) -> list[Record]:
    if isinstance(run, ArmError):
        status, findings = _failed_arm(run)
        return [make(check, status, findings, {}) for check in KERNEL_CHECKS]
    logits = run.outputs[0]
    comparison = compare(logits, expected.logits, expected.budget)
    figures = _figures(comparison) | {"launches": list(run.launches), "seconds": run.seconds}
    records = [make("reference", _status(comparison.findings), comparison.findings, figures)]
    if logits.shape != expected.logits.shape or logits.dtype != torch.float32:
        text = f"not judged: the logits are {logits.dtype} of shape {list(logits.shape)}"
        return [
            *records,
            *(
                make(check, "fail", (Finding("shape", None, None, None, None, text),), {})
                for check in ("top-k", "repeat")
            ),
        ]
    inputs = expected.inputs
    selected = top_k_agreement(logits, expected.logits, expected.budget, inputs.starts, inputs.ends, case.topk)
    figures = {"k": selected.k, "overlap_mean": selected.overlap_mean, "overlap_min": selected.overlap_min,
               "worst_row": selected.worst_row, "displaced": selected.displaced}  # fmt: skip
    records.append(make("top-k", _status(selected.findings), selected.findings, figures))
    repeats = tuple(finding for other in run.outputs[1:] for finding in bitwise_equal(logits, other))
    return [*records, make("repeat", _status(repeats), repeats, {"launches": len(run.outputs)})]


def _judge_agreement(case: Case, expected: Expected, runs: Mapping[str, Run | ArmError], make: Maker) -> Record:
    outputs = {}
    for kernel in KERNELS:
        run = runs[kernel]
        if isinstance(run, ArmError):
            status, findings = _failed_arm(run)
            text = f"no agreement to judge: {kernel} gave no logits ({findings[0].text})"
            return make(AGREEMENT, status, (Finding(run.kind, None, None, None, None, text),), {})
        outputs[kernel] = run.outputs[0]
    for kernel, logits in outputs.items():
        if logits.shape != expected.logits.shape or logits.dtype != torch.float32:
            text = f"no agreement to judge: {kernel} gave {logits.dtype} of shape {list(logits.shape)}"
            return make(AGREEMENT, "fail", (Finding("shape", None, None, None, None, text),), {})
    baseline = outputs["triton"].double()
    finite = torch.isfinite(expected.logits)
    if not torch.equal(torch.isfinite(baseline), finite) or not torch.equal(torch.isneginf(baseline), ~finite):
        text = "no agreement to judge: triton's positions of -inf or NaN are wrong"
        return make(AGREEMENT, "fail", (Finding("baseline", None, None, None, None, text),), {})
    comparison = compare(outputs["flydsl"], baseline, 2 * expected.budget)
    bits = (outputs["flydsl"].view(torch.int32) == outputs["triton"].view(torch.int32))[finite]
    equal = float(bits.double().mean()) if bits.numel() else 1.0
    return make(
        AGREEMENT, _status(comparison.findings), comparison.findings, _figures(comparison) | {"equal_bits": equal}
    )


def _status(findings: tuple[Finding, ...]) -> str:
    return "fail" if findings else "pass"


def _figures(comparison: Comparison) -> dict[str, Any]:
    return {"ratio": comparison.ratio, "worst": comparison.worst, "calc_diff": comparison.calc_diff,
            "elements": comparison.elements, "bad": comparison.bad, "bad_rows": list(comparison.bad_rows)}  # fmt: skip
