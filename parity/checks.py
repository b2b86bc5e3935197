# SPDX-License-Identifier: Apache-2.0
"""One case judged: every check of both kernels and of their agreement, as evidence records.

    reference   the kernel against float64: form, -inf/NaN positions, each row against its budget
    top-k       the tokens it would select, against those of the reference, ties allowed for
    selector    what a selector made of these logits, against an exact one on the same logits
    repeat      a second launch on the same inputs, bit for bit
    agreement   the two kernels against each other: each may use its own budget

The gate and the pytest cases both call `judge_case`; there is no other judgement.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import torch

from parity.arm import Arm, ArmError, Run
from parity.bits import bitwise_equal
from parity.cases import Case
from parity.compare import Comparison, Finding, form_findings
from parity.devices import Device, gpu_error
from parity.evidence import Record
from parity.inputs import Inputs, build_inputs
from parity.oracle import Oracle
from parity.rows import AgreementRows, KernelRows, judge_rows

KERNELS = ("flydsl", "triton")
KERNEL_CHECKS = ("reference", "top-k", "selector", "repeat")
AGREEMENT, BOTH = "agreement", "flydsl+triton"
REPEATS = 2
UNKNOWN = (
    "unsupported",
    "no-launch",
    "killed",
    "timeout",
    "no-space",
    "device-lost",
)  # kinds of ArmError that say nothing about the kernel

Make = Callable[[str, str, tuple[Finding, ...], dict[str, Any]], Record]


def required_checks(case: Case) -> list[tuple[str, str, str]]:
    """(check, case id, arm) of every record that `judge_case` makes, and that the gate wants to see."""
    single = [(check, case.id, kernel) for kernel in KERNELS for check in KERNEL_CHECKS]
    return [*single, (AGREEMENT, case.id, BOTH)]


def judge_case(case: Case, arms: Mapping[str, Arm], *, plants: Mapping[str, str] | None = None) -> list[Record]:
    """Run the arms on the case, at the same time, and judge them. `plants`: kernel -> fault to build in (own kernels).

    With one arm (a CUDA GPU has no FlyDSL kernel) there is no agreement to judge.
    """
    inputs = build_inputs(case)
    with ThreadPoolExecutor(len(arms)) as pool:
        futures = {
            kernel: pool.submit(_run, arm, inputs, case.topk, (plants or {}).get(kernel))
            for kernel, arm in arms.items()
        }
        runs = {kernel: future.result() for kernel, future in futures.items()}
    makers = {kernel: _maker(case, inputs, arms[kernel], kernel) for kernel in arms}
    form = {kernel: _form(run, inputs) for kernel, run in runs.items()}
    judged: dict[str, KernelRows] = {}
    agreed = AgreementRows()
    try:
        judged, agreed = _judge_rows(case, inputs, next(iter(arms.values())).device, runs, form)
    except (
        RuntimeError
    ) as error:  # the GPU that judges may be lost after it ran the kernels: that says nothing about them
        if not gpu_error(error):
            raise
        runs = dict.fromkeys(arms, ArmError("device-lost", f"while judging: {gpu_error(error)}"))
    records: list[Record] = []
    for kernel, make in makers.items():
        records += _kernel_records(case, runs[kernel], form[kernel], judged.get(kernel), make)
    if set(arms) == set(KERNELS):
        records.append(_agreement_record(runs, form, agreed, _maker(case, inputs, arms["flydsl"], BOTH)))
    return records


def _judge_rows(
    case: Case,
    inputs: Inputs,
    device: Device,
    runs: Mapping[str, Run | ArmError],
    form: Mapping[str, tuple[Finding, ...]],
) -> tuple[dict[str, KernelRows], AgreementRows]:
    """judge_rows on the logits that have the right form, on the device that made them."""
    good = {kernel: run for kernel, run in runs.items() if isinstance(run, Run) and not form[kernel]}
    if not good:
        return {}, AgreementRows()
    selected = {kernel: run.selected for kernel, run in good.items() if run.selected is not None}
    oracle = Oracle(inputs, device=device.torch_device)
    return judge_rows(case, oracle, {kernel: run.outputs[0] for kernel, run in good.items()}, selected)


def _run(arm: Arm, inputs: Inputs, k: int, plant: str | None) -> Run | ArmError:
    try:
        return arm.run(inputs, k=k, repeats=REPEATS, plant=plant)
    except ArmError as error:
        return error


def _form(run: Run | ArmError, inputs: Inputs) -> tuple[Finding, ...]:
    shape = torch.Size((inputs.q.shape[0], inputs.kv.shape[0]))
    return () if isinstance(run, ArmError) else form_findings(run.outputs[0], shape, torch.float32)


def _maker(case: Case, inputs: Inputs, arm: Arm, name: str) -> Make:
    """A function that fills in what all records of one arm and case share."""
    digest = inputs.sha256

    def make(check: str, status: str, findings: tuple[Finding, ...], figures: dict[str, Any]) -> Record:
        return Record(
            check=check, case=case.id, arm=name, source=arm.source.label, where=arm.provenance.get("where", arm.device.kind),
            status=status, findings=findings, figures=figures, case_axes=case.to_json(), inputs_sha256=digest,
            provenance=arm.provenance | {"revision": arm.source.revision, "flydsl_pin": arm.source.flydsl},
        )  # fmt: skip

    return make


def _failed_arm(error: ArmError) -> tuple[str, tuple[Finding, ...]]:
    """(status, findings) of every check of an arm that gave no logits of its kernel. The executor's own limit is no fault."""
    status = "unsupported" if error.kind in UNKNOWN else "fail"
    return status, (Finding(error.kind, None, None, None, None, f"{error.kind}: {error.text}"),)


def _kernel_records(
    case: Case, run: Run | ArmError, form: tuple[Finding, ...], rows: KernelRows | None, make: Make
) -> list[Record]:
    if isinstance(run, ArmError):
        status, findings = _failed_arm(run)
        return [make(check, status, findings, {}) for check in KERNEL_CHECKS]
    ran = {"launches": list(run.launches), "seconds": run.seconds}
    if form or rows is None:
        logits = run.outputs[0]
        text = f"not judged: the logits are {logits.dtype} of shape {list(logits.shape)}"
        others = (Finding("shape", None, None, None, None, text),)
        return [make("reference", "fail", form, ran)] + [make(check, "fail", others, {}) for check in KERNEL_CHECKS[1:]]
    repeats = tuple(finding for other in run.outputs[1:] for finding in bitwise_equal(run.outputs[0], other))
    comparison = rows.comparison
    return [
        make("reference", _status(comparison.findings), comparison.findings, _figures(comparison) | {"floor": rows.floor} | ran),
        make("top-k", _status(rows.top_k_findings), rows.top_k_findings, rows.top_k_figures),
        make("selector", _status(rows.selector), rows.selector, {"k": case.topk}),
        make("repeat", _status(repeats), repeats, {"launches": len(run.outputs)}),
    ]  # fmt: skip


def _agreement_record(
    runs: Mapping[str, Run | ArmError], form: Mapping[str, tuple[Finding, ...]], rows: AgreementRows, make: Make
) -> Record:
    for kernel in KERNELS:
        run = runs[kernel]
        if isinstance(run, ArmError):
            status, findings = _failed_arm(run)
            text = f"no agreement to judge: {kernel} gave no logits ({findings[0].text})"
            return make(AGREEMENT, status, (Finding(run.kind, None, None, None, None, text),), {})
        if form[kernel]:
            logits = run.outputs[0]
            text = f"no agreement to judge: {kernel} gave {logits.dtype} of shape {list(logits.shape)}"
            return make(AGREEMENT, "fail", (Finding("shape", None, None, None, None, text),), {})
    if rows.comparison is None:
        text = "no agreement to judge: triton's positions of -inf or NaN are wrong"
        return make(AGREEMENT, "fail", (Finding("baseline", None, None, None, None, text),), {})
    comparison = rows.comparison
    figures = _figures(comparison) | {"equal_bits": rows.equal_bits, "floor": rows.floor}
    return make(AGREEMENT, _status(comparison.findings), comparison.findings, figures)


def _status(findings: tuple[Finding, ...]) -> str:
    return "fail" if findings else "pass"


def _figures(comparison: Comparison) -> dict[str, Any]:
    return {"ratio": comparison.ratio, "worst": comparison.worst, "calc_diff": comparison.calc_diff,
            "elements": comparison.elements, "bad": comparison.bad, "bad_rows": list(comparison.bad_rows)}  # fmt: skip
