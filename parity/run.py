# SPDX-License-Identifier: Apache-2.0
"""The gate's run: every required case through both arms, evidence written as it comes."""

from __future__ import annotations

import shlex
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from parity.arm import Arm, ArmError
from parity.cases import Case
from parity.checks import KERNELS, judge_case
from parity.devices import Device
from parity.evidence import EvidenceFile, Record
from parity.gate import Verdict, decide
from parity.report import terminal
from parity.sources import Source, SourceError

Tell = Callable[[str], None]


@contextmanager
def arms_of(source: Source, device: Device) -> Iterator[dict[str, Arm]]:
    """Both kernels of a source, started. SourceError when one cannot be imported (the text has the cause)."""
    with ExitStack() as stack:
        arms = {kernel: stack.enter_context(Arm(source, kernel, device)) for kernel in KERNELS}
        for kernel, arm in arms.items():
            try:
                arm.start()
            except ArmError as error:
                raise SourceError(f"{kernel} of {source.label} cannot be loaded: {error.text}") from None
        yield arms


def again_command(case: Case, device: Device, options: str) -> str:
    """The command that repeats one case."""
    return f"pytest --pyargs parity -k {shlex.quote(case.id)} --device={device.kind}{options}"


def run_gate(
    source: Source, device: Device, cases: Sequence[Case], evidence: Path, *, tell: Tell, options: str = "", plants: Mapping[str, str] | None = None
) -> Verdict:
    """Run all cases, write the evidence file, tell the table and the verdict line by line. Returns the verdict."""
    records: list[Record] = []
    started = time.monotonic()
    with EvidenceFile(evidence) as file, arms_of(source, device) as arms:
        where = next(iter(arms.values())).provenance["where"]
        tell(f"{source.label} on {where}: {len(cases)} cases; figures are error/budget (limit 1), then top-k overlap")
        tell(terminal.HEADER)
        for case in cases:
            judged = judge_case(case, arms, plants=plants)
            file.write(judged)
            records += judged
            tell(terminal.case_line(case, judged))
    verdict = decide(records, cases)
    failures = terminal.failures_text(records, {case.id: again_command(case, device, options) for case in cases})
    if failures:
        tell("\n" + failures)
    tell(f"\n{time.monotonic() - started:.0f} s")
    tell(terminal.verdict_text(records, verdict, str(evidence)))
    return verdict
