# SPDX-License-Identifier: Apache-2.0
"""The verdict. It walks the list of what is required, not the list of what came in.

    PASS            exit 0   every required record is there and passed
    FAIL            exit 1   at least one required record failed
    NOT VALIDATED   exit 2   none failed, but something required is missing, doubled, unsupported or holds a number that is none

INCONCLUSIVE (exit 2, not enough data) belongs to the model level. FAIL outranks NOT VALIDATED: a fault seen is a fault.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

from parity.cases import Case
from parity.checks import BOTH, KERNELS, required_checks
from parity.evidence import Record


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


def decide(records: Sequence[Record], cases: Iterable[Case]) -> Verdict:
    """The verdict on `records` for the required checks of `cases`."""
    cases = list(cases)
    found: dict[tuple[str, str, str], list[Record]] = {}
    for record in records:
        found.setdefault(record.key, []).append(record)
    failures, doubts = [], []
    for case in cases:
        for key in required_checks(case):
            problem, failed = _problem(key, found.get(key, []))
            if problem:
                (failures if failed else doubts).append(problem)
    if not cases:
        doubts.append("no case was required")
    doubts += _mixtures(records)
    state = State.FAIL if failures else State.NOT_VALIDATED if doubts else State.PASS
    return Verdict(state, tuple(failures + doubts), _covers(records, cases), _not_covered(records))


def _problem(key: tuple[str, str, str], records: list[Record]) -> tuple[str, bool]:
    """("", False) when the one record of a required check passed, else (what is wrong, whether it is a failure)."""
    check, case, arm = key
    name = f"{arm} {check} {case}"
    if len(records) != 1:
        return f"{name}: {'missing' if not records else f'{len(records)} records'}", False
    record = records[0]
    if record.status == "fail":
        # the baseline is what the candidate is measured by: say so when it is the broken one
        return f"{'baseline error: ' if arm == 'triton' else ''}{name}: {record.findings[0].text}", True
    if record.status != "pass":
        return f"{name}: {record.findings[0].text}", False
    wrong = [figure for figure, value in record.figures.items() if not _finite(value)]
    return (f"{name}: {', '.join(wrong)} is not a number", False) if wrong else ("", False)


def _finite(value: Any) -> bool:
    if isinstance(value, float):
        return math.isfinite(value)
    return value not in ("nan", "inf", "-inf") if isinstance(value, str) else True


def _mixtures(records: Sequence[Record]) -> list[str]:
    """Evidence of one verdict comes from one source on one device."""
    return [f"evidence mixes {name}s: {', '.join(sorted(values))}" for name in ("source", "where")
            if len(values := {getattr(record, name) for record in records}) > 1]  # fmt: skip


def _covers(records: Sequence[Record], cases: Sequence[Case]) -> str:
    """Kernel, source, sizes, dtype pairs and device, read off the cases and the records."""
    pairs = sorted({f"{case.q_encoding.value}/{case.kv_encoding.value}" for case in cases})
    heads = sorted({case.heads for case in cases})
    dims = sorted({case.head_dim for case in cases})
    sources = sorted({record.source for record in records}) or ["no evidence"]
    return (
        f"fp8_mqa_logits, flydsl against triton, {', '.join(sources)}, gfx942 on {', '.join(sorted({r.where for r in records})) or 'nothing'}, "
        f"H {'/'.join(map(str, heads))}, D {'/'.join(map(str, dims))}, q/kv {' '.join(pairs)}, {len(cases)} cases"
    )  # fmt: skip


def _not_covered(records: Sequence[Record]) -> str:
    parts = ["other H, D and shapes", "speed", "the served model"]
    if any(record.where == "executor" for record in records):
        parts.insert(0, "real silicon (the machine code ran in software)")
    return "; ".join(parts)


def worst_ratios(records: Sequence[Record]) -> dict[str, float]:
    """Largest error/budget of each kernel against the reference and of the pair against each other; NaN where none was judged."""
    worst = {}
    for arm in (*KERNELS, BOTH):
        ratios = [float(record.figures["ratio"]) for record in records if record.arm == arm and "ratio" in record.figures]
        worst[arm] = max(ratios, default=math.nan)
    return worst


def statuses(records: Sequence[Record]) -> Counter[str]:
    """How many records have each status."""
    return Counter(record.status for record in records)
