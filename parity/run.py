# SPDX-License-Identifier: Apache-2.0
"""The gate's run: every required case through both arms, evidence written as it comes."""

from __future__ import annotations

import datetime
import shlex
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import torch

from parity.arm import Arm, ArmError
from parity.cases import Case
from parity.checks import judge_case
from parity.contract import Row, rows_on
from parity.contract_judge import CHECK, judge_row
from parity.devices import Device
from parity.evidence import EvidenceFile, Record
from parity.faults import fault_named
from parity.gate import Verdict, decide
from parity.gate_contract import refusal, unused
from parity.gfx942 import native
from parity.matrix import runs_on
from parity.policy import Policy
from parity.report import terminal
from parity.sources import Source, SourceError, require

Tell = Callable[[str], None]


def leave_cores_to_arms() -> None:
    """One torch thread in this process: beside two busy arms, or xdist's workers, more of them wait for one another (measured on 2
    cores: 9 to 33 s a gate with torch's own choice, 8 to 9 s with one)."""
    torch.set_num_threads(1)


@contextmanager
def arms_of(source: Source, device: Device) -> Iterator[dict[str, Arm]]:
    """Both kernels of a source, started. SourceError when one cannot be loaded for a reason of this machine."""
    if device.kind == "executor":
        require("ziglang", "pyelftools", "msgpack")
        native.library()  # built once here, not by every arm at the same time
    with ExitStack() as stack:
        arms = {kernel: stack.enter_context(Arm(source, kernel, device)) for kernel in device.kernels}
        for kernel, arm in arms.items():
            try:
                arm.start()
            except ArmError as error:
                if source.kind == "aiter" and error.kind in ("import-error", "crash"):
                    continue  # a defect of the candidate: every run will say so again, as a finding
                raise SourceError(f"{kernel} of {source.label} cannot be loaded: {error.text}") from None
        if "flydsl" in arms:
            _check_flydsl(source, arms["flydsl"])
        yield arms


def _check_flydsl(source: Source, arm: Arm) -> None:
    """The FlyDSL that was imported is the one wanted: a verdict must not name a version that did not compile the kernel."""
    if not arm.provenance:
        return  # it did not load; its findings say why
    version, path = arm.provenance["packages"].get("flydsl", ["none", "nowhere"])
    if version.partition("+")[0] != source.flydsl.partition("+")[0]:
        raise SourceError(f"{source.label} wants flydsl {source.flydsl}, but {version} at {path} was imported")


def source_options(aiter: str | None, candidate: str | None) -> str:
    """--aiter and --candidate as they stand on a command line. With `=`: pytest takes a bare path for its rootdir."""
    given = {"--aiter": aiter, "--candidate": candidate}
    return "".join(f" {name}={shlex.quote(value)}" for name, value in given.items() if value)


def case_options(depth: str, seeds: int, captured: Sequence[Path], policy: Path | None) -> str:
    """--depth, --seeds, --captured and --policy as they stand on a command line; nothing where they are the default."""
    files = "".join(f" --captured={shlex.quote(str(path))}" for path in captured)
    files += f" --policy={shlex.quote(str(policy))}" if policy else ""
    return (f" --depth={depth}" if depth != "quick" else "") + (f" --seeds={seeds}" if seeds != 1 else "") + files


def again_command(case: Case, device: Device, options: str) -> str:
    """The command that repeats one case; `options` from source_options and case_options."""
    return f"pytest --pyargs parity -k {shlex.quote(case.id)} --device={device.kind}{options}"


def again_contract(row: Row, device: Device, options: str) -> str:
    """The command that repeats one row of the contract; with `]`, where its id ends: names begin with one another."""
    return f"pytest --pyargs parity -k '{row.case}]' --device={device.kind}{options}"


def _applicable(plants: Mapping[str, str], case: Case) -> dict[str, str]:
    """The plants that change something in this case."""
    return {kernel: fault for kernel, fault in plants.items() if fault_named(fault).applies(case)}


def told(records: Sequence[Record], rows: Sequence[Row], policy: Policy) -> list[Record]:
    """The records without those of the contract that the policy accepts."""
    today, by_case = datetime.date.today(), {row.case: row for row in rows}
    return [
        record for record in records
        if record.check != CHECK or record.status != "fail"
        or any(refusal(by_case[record.case], record, finding.text, policy, today) for finding in record.findings)
    ]  # fmt: skip


def run_gate(
    source: Source,
    device: Device,
    cases: Sequence[Case],
    evidence: EvidenceFile,
    *,
    tell: Tell,
    policy: Policy,
    options: str = "",
    plants: Mapping[str, str] | None = None,
) -> Verdict:
    """Run all cases, write and finish the evidence, tell the table and the verdict line by line. Returns the verdict.

    Raises SourceError (a kernel cannot be loaded) and EvidenceError (the evidence cannot be written: there is no verdict then).
    """
    leave_cores_to_arms()
    records: list[Record] = []
    started = time.monotonic()
    with evidence, arms_of(source, device) as arms:
        where = next((arm.provenance["where"] for arm in arms.values() if arm.provenance), device.kind)
        tell(f"{source.label} on {where}: {len(cases)} cases; figures are error/budget (limit 1), then top-k overlap")
        tell(terminal.HEADER)
        for case in cases:
            if not runs_on(case, device):
                continue  # what the verdict misses
            judged = judge_case(case, arms, plants=_applicable(plants or {}, case))
            evidence.write(record.to_line() for record in judged)
            records += judged
            tell(terminal.case_line(case, judged))
        rows = rows_on(device) if not plants else ()
        for row in rows:
            record = judge_row(row, arms)
            evidence.write([record.to_line()])
            records.append(record)
        judged = [record for record in records if record.check == CHECK]
        refused = [record for record in told(judged, rows, policy) if record.status != "pass"]
        tell(terminal.contract_text(judged, refused, unused=unused(judged, rows, policy)))
    verdict = decide(records, cases, rows=rows, policy=policy)
    again = {case.id: again_command(case, device, options) for case in cases}
    again |= {row.case: again_contract(row, device, options) for row in rows}
    if plants:  # pytest plants nothing
        again = dict.fromkeys(
            again, "parity gate " + " ".join(f"--plant={kernel}:{fault}" for kernel, fault in plants.items())
        )
    failures = terminal.failures_text(told(records, rows, policy), again)
    if failures:
        tell("\n" + failures)
    tell(f"\n{time.monotonic() - started:.0f} s")
    tell(terminal.verdict_text(records, verdict, str(evidence.given)))
    return verdict
