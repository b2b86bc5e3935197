# SPDX-License-Identifier: Apache-2.0
"""One mutant of a kernel's machine code, judged as the gate judges a kernel: caught by which check in which case, or survived."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import torch

from parity.arm import Arm, ArmError, Run
from parity.cases import Case
from parity.checks import KERNELS, REPEATS, judge_case
from parity.evidence import Record
from parity.gfx942.mutation import Mutation
from parity.inputs import Inputs, build_inputs

# Kinds of ArmError that are this machine's: they say nothing about the mutant.
TROUBLE = ("killed", "no-space", "device-lost", "not-importable")


class Trouble(Exception):
    """The campaign cannot go on: the machine is in trouble, or the unchanged kernel is not clean."""


@dataclass(frozen=True)
class Clean:
    """What the unchanged kernels gave in a case: `outputs` of both (to compare bits, and for the agreement), what the kernel that is
    changed launched, as (sha256, symbol), and its `work` in instructions."""

    case: Case
    runs: Mapping[str, Run]
    launched: frozenset[tuple[str, str]]
    work: int


@dataclass(frozen=True)
class Outcome:
    """state: caught, survived, or unsupported (the executor does not know what the mutant does: no mutant). check: what caught it;
    case: where; text: its first finding. differs: the cases in which a survivor's bits differ from the kernel's. reason and evidence
    come from survivors.py."""

    mutation: Mutation
    state: str
    check: str = ""
    case: str = ""
    text: str = ""
    differs: tuple[str, ...] = ()
    reason: str = ""
    evidence: str = ""


class ChangedArm:
    """An arm whose every run is of the mutant, for judge_case; `last` is its last run, None after an ArmError."""

    def __init__(self, arm: Arm, mutation: Mutation) -> None:
        self._arm, self._mutation = arm, mutation
        self.source, self.device, self.provenance = arm.source, arm.device, arm.provenance
        self.last: Run | None = None

    def run(self, inputs: Inputs, *, k: int = 1, repeats: int = 1, plant: str | None = None) -> Run:
        """As Arm.run."""
        self.last = None
        self.last = self._arm.run(inputs, k=k, repeats=repeats, plant=plant, mutation=self._mutation)
        return self.last


class KeptArm:
    """An arm that answers with what the unchanged kernel gave, for judge_case."""

    def __init__(self, arm: Arm, run: Run) -> None:
        self._kept = run
        self.source, self.device, self.provenance = arm.source, arm.device, arm.provenance

    def run(self, inputs: Inputs, *, k: int = 1, repeats: int = 1, plant: str | None = None) -> Run:
        """As Arm.run."""
        return self._kept


def clean_run(arm: Arm, case: Case) -> Run:
    """The unchanged kernel's run, its outputs read into memory, with the code of what it launched. Raises ArmError."""
    run = arm.run(build_inputs(case), k=case.topk, repeats=REPEATS, code=True)
    selected = None if run.selected is None else run.selected.clone()
    return replace(run, outputs=tuple(output.clone() for output in run.outputs), selected=selected)


def clean_of(case: Case, runs: Mapping[str, Run], kernel: str) -> Clean:
    """What `runs` of the case say about the kernel that is to be changed."""
    launched = frozenset((part["sha256"], part["symbol"]) for part in runs[kernel].code)
    return Clean(case, runs, launched, sum(launch["report"]["instructions"] for launch in runs[kernel].launches))


def judge_mutant(mutation: Mutation, arm: Arm, others: Mapping[str, Arm], cleans: Sequence[Clean]) -> Outcome:
    """Run the mutant on the cases, one after the other, until one catches it. `others`: the arms that are not changed, by kernel."""
    differs = []
    for clean in cleans:
        changed = ChangedArm(arm, mutation)
        kept = {kernel: KeptArm(other, clean.runs[kernel]) for kernel, other in others.items() if kernel in clean.runs}
        arms = {
            kernel: changed if kernel == arm.kernel else kept[kernel]
            for kernel in KERNELS
            if kernel in {arm.kernel, *kept}
        }
        records = judge_case(clean.case, arms)  # type: ignore[arg-type]  # what it uses of an Arm, they have
        found = verdict_of(records)
        if found is not None:
            state, check, text = found
            return Outcome(mutation, state, check, clean.case.id, text)
        if changed.last is None or not any(launch["mutation"] for launch in changed.last.launches):
            raise Trouble(f"{clean.case.id}: the mutant was not launched; kernels are not compiled the same each time")
        if not same_bits(changed.last, clean.runs[arm.kernel]):
            differs.append(clean.case.id)
    return Outcome(mutation, "survived", differs=tuple(differs))


def verdict_of(records: Sequence[Record]) -> tuple[str, str, str] | None:
    """(state, check, first finding) of the first record that did not pass; None if all did. Raises Trouble."""
    for record in records:
        if record.status == "pass":
            continue
        finding = record.findings[0]
        if finding.kind in TROUBLE or (finding.kind == "crash" and "SIGINT" in finding.text):
            raise Trouble(finding.text)
        state = "unsupported" if finding.kind == "unsupported" else "caught"
        return state, _check_name(record), finding.text
    return None


def _check_name(record: Record) -> str:
    """The check's name; for a run that gave no logits what ended it ("kernel-fault LDS race", "timeout")."""
    finding = record.findings[0]
    if finding.kind == "kernel-fault":
        return f"kernel-fault {finding.text.removeprefix('kernel-fault: ExecutionFault: ').partition(':')[0]}"
    raised = finding.text.startswith(f"{finding.kind}: ")
    return finding.kind if raised and finding.where is None and not record.figures else f"{record.check} {finding.kind}"


def same_bits(actual: Run, expected: Run) -> bool:
    """Whether the first outputs are the same bits (NaN included)."""
    left, right = actual.outputs[0], expected.outputs[0]
    return (
        left.dtype == right.dtype
        and left.shape == right.shape
        and torch.equal(left.view(torch.int32), right.view(torch.int32))
    )


def reaches(arm: Arm, stop: Mutation, case: Case) -> bool:
    """Whether the case executes the instruction that `stop`, a probe, refuses."""
    try:
        arm.run(build_inputs(case), mutation=stop)
    except ArmError as error:
        if error.kind in TROUBLE:
            raise Trouble(error.text) from None
        return error.kind == "unsupported"
    return False
