# SPDX-License-Identifier: Apache-2.0
"""The verdict. It walks the list of what is required, not the list of what came in.

    PASS            exit 0   every required record is there and passed
    FAIL            exit 1   at least one required record failed
    NOT VALIDATED   exit 2   none failed, but something required is missing, doubled, unsupported or holds a number that is none

INCONCLUSIVE (exit 2, not enough data) belongs to the model level. FAIL outranks NOT VALIDATED: a fault seen is a fault.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

from parity.cases import Case
from parity.checks import BOTH, KERNELS, required_checks
from parity.contract import Row
from parity.evidence import Record
from parity.gate_contract import ContractResult, judge_contract
from parity.policy import Policy


class State(Enum):
    PASS = "PASS"
    FAIL = "FAIL"
    NOT_VALIDATED = "NOT VALIDATED"

    @property
    def exit_code(self) -> int:
        return {State.PASS: 0, State.FAIL: 1, State.NOT_VALIDATED: 2}[self]


@dataclass(frozen=True)
class Verdict:
    """state, one line of reasons each, and in words what the verdict covers and what it does not."""

    state: State
    reasons: tuple[str, ...]
    covers: str
    not_covered: str

    def line(self) -> str:
        """The last line of a gate: the verdict and why, to be pasted."""
        more = f" (+{len(self.reasons) - 1} more)" if len(self.reasons) > 1 else ""
        why = f": {self.reasons[0]}{more}" if self.reasons else ""
        return f"{self.state.value}{why} [{self.covers}]"


def decide(
    records: Sequence[Record],
    cases: Iterable[Case],
    *,
    rows: Sequence[Row] = (),
    policy: Policy | None = None,
    today: datetime.date | None = None,
) -> Verdict:
    """The verdict on `records` for the required checks of `cases` and the required `rows` of the contract, of which `policy` may accept
    differences (none without one) as long as its dates say on `today` (the date of this machine)."""
    cases = list(cases)
    found: dict[tuple[str, str, str], list[Record]] = {}
    for record in records:
        found.setdefault(record.key, []).append(record)
    problems = [
        problem
        for case in cases
        for key in required_checks(case)
        if (problem := _problem(key, case, found.get(key, [])))
    ]
    failures = [problem for problem in problems if problem.failed]
    agreed = judge_contract(records, rows, policy or Policy("none"), today or datetime.date.today())
    doubts = _mixtures(records) + ([] if cases else ["no case was required"])
    failed = _grouped(failures, cases) + _of_contract(agreed.failures, rows)
    doubtful = _grouped([problem for problem in problems if not problem.failed], cases)
    doubtful += _of_contract(agreed.doubts, rows) + doubts
    state = State.FAIL if failed else State.NOT_VALIDATED if doubtful else State.PASS
    covers = _covers(records, cases) + _contract_words(rows, agreed, policy)
    return Verdict(state, tuple(failed + doubtful), covers, _not_covered(records))


def _of_contract(texts: Sequence[str], rows: Sequence[Row]) -> list[str]:
    """One reason for all rows of one kind, with the first one's text."""
    return [f"contract broken or unproven in {len(texts)} of {len(rows)} rows: {texts[0]}"] if texts else []


def _contract_words(rows: Sequence[Row], agreed: ContractResult, policy: Policy | None) -> str:
    if not rows:
        return ""
    accepted = f", {len(agreed.accepted)} differences accepted by {policy.name}" if policy and agreed.accepted else ""
    return f", contract of {len(rows)} rows{accepted}"


@dataclass(frozen=True)
class _Problem:
    """A required check that did not pass. failed: a fault was seen; else there is only no proof of its absence."""

    arm: str
    case: Case
    text: str
    failed: bool


def _problem(key: tuple[str, str, str], case: Case, records: list[Record]) -> _Problem | None:
    """What is wrong with the records of one required check; None when its only record passed."""
    check, _, arm = key
    if len(records) != 1:
        return _Problem(arm, case, f"{check} {'missing' if not records else f'has {len(records)} records'}", False)
    record = records[0]
    if record.status != "pass":
        return _Problem(arm, case, record.findings[0].text, record.status == "fail")
    doubt = _contradiction(record, case)
    return _Problem(arm, case, f"{check}: {doubt}", False) if doubt else None


FIGURES = {
    "reference": ("ratio", "bad", "launches"),
    "top-k": ("k", "overlap_min"),
    "selector": ("k",),
    "repeat": ("launches",),
    "agreement": ("ratio", "bad"),
}


def _contradiction(record: Record, case: Case) -> str:
    """Why a record that says "pass" cannot be believed, or ""."""
    figures = record.figures
    wrong = [figure for figure, value in figures.items() if not _finite(value)]
    missing = [figure for figure in FIGURES[record.check] if figure not in figures]
    if wrong or missing:
        return f"{', '.join(wrong or missing)} is {'not a number' if wrong else 'missing'}"
    if figures.get("ratio", 0) > 1 or figures.get("bad", 0):
        return "passed, but its own figures are beyond the limit"
    if record.where == "executor" and record.check == "reference" and not figures["launches"]:
        return "passed without a launch"
    if record.check == "reference" and any(launch.get("mutation") for launch in figures["launches"]):
        return "is of a mutant (parity mutate), not of the kernel"
    return "" if record.case_axes == case.to_json() else "is about another case than its name says"


def _grouped(problems: Sequence[_Problem], cases: Sequence[Case]) -> list[str]:
    """One reason an arm: in how many cases and dtype pairs, which pairs are untouched, and its first finding."""
    reasons: list[str] = []
    for arm in (*KERNELS, BOTH):
        mine = [problem for problem in problems if problem.arm == arm]
        if not mine or (arm == BOTH and reasons):
            continue  # two kernels disagree because one is wrong: that one is named already
        bad = {_pair(problem.case) for problem in mine}
        clean = sorted({_pair(case) for case in cases} - bad)
        count = len({problem.case.id for problem in mine})
        # the baseline is what the candidate is measured by: say so when it is the broken one
        name = "baseline error: triton" if arm == "triton" and mine[0].failed else arm
        untouched = f"; {' '.join(clean)} clean" if clean else ""
        reasons.append(
            f"{name} in {count} of {len(cases)} cases (q/kv {' '.join(sorted(bad))}{untouched}): {mine[0].case.id}: {mine[0].text}"
        )
    return reasons


def _pair(case: Case) -> str:
    return f"{case.q_encoding.value}/{case.kv_encoding.value}"


def _finite(value: Any) -> bool:
    if isinstance(value, float):
        return math.isfinite(value)
    return value not in ("nan", "inf", "-inf") if isinstance(value, str) else True


def _mixtures(records: Sequence[Record]) -> list[str]:
    """Evidence of one verdict comes from one source on one device, and of one case from one set of inputs."""
    doubts = []
    for name in ("source", "where"):
        values = {getattr(record, name) for record in records}
        if len(values) > 1:
            doubts.append(f"evidence mixes {name}s: {', '.join(sorted(values))}")
    inputs = {(record.case, record.inputs_sha256) for record in records}
    doubts += [
        f"evidence mixes inputs of {case}"
        for case in sorted({case for case, _ in inputs})
        if sum(case == c for c, _ in inputs) > 1
    ]
    return doubts


def _covers(records: Sequence[Record], cases: Sequence[Case]) -> str:
    """Kernel, source, compilers, device, sizes and dtype pairs, read off the cases and the records."""
    pairs = sorted({_pair(case) for case in cases})
    heads = "/".join(map(str, sorted({case.heads for case in cases})))
    dims = "/".join(map(str, sorted({case.head_dim for case in cases})))
    sources = ", ".join(sorted({record.source for record in records})) or "no evidence"
    devices = ", ".join(sorted({record.where for record in records})) or "nothing"
    compilers = "".join(f", {text}" for text in _versions(records))
    return (
        f"fp8_mqa_logits, flydsl against triton, {sources}{compilers}, gfx942 on {devices}, "
        f"H {heads}, D {dims}, q/kv {' '.join(pairs)}, {len(cases)} cases"
    )


def _versions(records: Sequence[Record]) -> list[str]:
    """ "flydsl 0.3.1", "triton 3.7.1": what the arms imported, every version that occurs."""
    found = {
        (name, version[0]) for record in records for name, version in record.provenance.get("packages", {}).items()
    }
    return [f"{name} {version}" for name, version in sorted(found) if name in KERNELS]


def _not_covered(records: Sequence[Record]) -> str:
    parts = ["other H, D and shapes", "speed", "the served model"]
    if any(record.where == "executor" for record in records):
        parts.insert(0, "real silicon (the machine code ran in software)")
    return "; ".join(parts)


def worst_ratios(records: Sequence[Record]) -> dict[str, float]:
    """Largest error/budget of each kernel against the reference and of the pair against each other, where it is more than a bound; NaN
    where none was judged."""
    worst = {}
    for arm in (*KERNELS, BOTH):
        ratios = [
            float(record.figures["ratio"])
            for record in records
            if record.arm == arm and "ratio" in record.figures and not record.figures.get("floor")
        ]
        worst[arm] = max(ratios, default=math.nan)
    return worst
