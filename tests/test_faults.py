# SPDX-License-Identifier: Apache-2.0
"""Every fault of the catalogue, planted in real kernels and caught by the check that the catalogue names, where the clean run passes."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator, Mapping

import pytest

from parity.arm import Arm
from parity.checks import judge_case
from parity.devices import Device
from parity.faults import FAULTS, Fault, as_text, fault_named
from parity.kernels.arguments import FN_PLANTS, PLANTS
from parity.matrix import case_of, quick_cases
from parity.planted import AROUND, SELECTIONS
from parity.run import arms_of
from parity.sources import own_source

CASES = {case.id: case for case in quick_cases()}
Parity = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def own_arms() -> Iterator[Mapping[str, Arm]]:
    with arms_of(own_source(), Device("executor")) as arms:
        yield arms


def planted_in() -> list[tuple[Fault, str]]:
    """Faults of machine code in both kernels; those around them in one, in turn."""
    kernels = ("flydsl", "triton")
    compiled = [(fault, kernel) for fault in FAULTS if fault.planted == "kernel" for kernel in kernels]
    return compiled + [(fault, kernels[place % 2]) for place, fault in enumerate(FAULTS) if fault.planted != "kernel"]


@pytest.mark.parametrize(("fault", "kernel"), planted_in(), ids=lambda value: getattr(value, "name", value))
def test_the_named_check_catches_it(fault: Fault, kernel: str, own_arms: Mapping[str, Arm]) -> None:
    case = CASES[fault.case]
    assert fault.applies(case)
    records = judge_case(case, {kernel: own_arms[kernel]}, plants={kernel: fault.name})
    found = {(record.check, finding.kind) for record in records for finding in record.findings}
    assert (fault.check, fault.kind) in found, records[0].findings
    (judged,) = [record for record in records if record.check == fault.check]
    assert judged.status == ("unsupported" if fault.kind == "no-launch" else "fail")


@pytest.mark.parametrize("case", sorted({fault.case for fault in FAULTS}))
def test_the_clean_run_passes(case: str, own_arms: Mapping[str, Arm]) -> None:
    assert {record.status for record in judge_case(CASES[case], own_arms)} == {"pass"}


def test_the_catalogue_holds_every_plant_once() -> None:
    names = [fault.name for fault in FAULTS]
    assert len(names) == len(set(names)) >= 40
    assert set(names) == {*PLANTS, *AROUND, *SELECTIONS} and set(FN_PLANTS) <= set(PLANTS)
    groups = {
        "values",
        "masks",
        "windows",
        "scales",
        "dtypes",
        "heads",
        "tiles",
        "strides",
        "memory",
        "repetition",
        "failure",
        "selection",
    }
    assert {fault.group for fault in FAULTS} == groups
    assert {fault.check for fault in FAULTS} == {"reference", "top-k", "selector", "repeat"}


def test_some_faults_need_an_fn_operand() -> None:
    control, mixed = (case_of(f"h16-d64 full 2x9 {pair} gaussian", "a pair") for pair in ("fnuz.fnuz", "fn.fnuz"))
    assert not fault_named("sign-extended-patch").applies(control) and fault_named("sign-extended-patch").applies(mixed)
    assert not fault_named("fn-as-fnuz").applies(mixed) and fault_named("hole").applies(control)


def test_the_table() -> None:
    lines = as_text().splitlines()
    assert lines[0].split()[:4] == ["fault", "group", "planted", "caught"]
    assert lines[1] == (
        "dropped-relu           values      kernel     reference (budget)          negative scores count"
    )
    assert lines[-1] == f"{len(FAULTS)} faults; try one: parity gate --plant=flydsl:dropped-relu"
    assert len(lines) == len(FAULTS) + 2 and max(map(len, lines)) <= 150


def test_the_command(parity: Parity) -> None:
    done = parity("faults")
    assert (done.returncode, done.stdout, done.stderr) == (0, as_text() + "\n", "")
    listed = json.loads(parity("faults", "--json").stdout)
    assert [entry["name"] for entry in listed] == [fault.name for fault in FAULTS]
    assert set(listed[0]) == {"name", "group", "planted", "check", "kind", "what", "case"}


@pytest.mark.parametrize("text", ["flydsl", "flydsl:", "cuda:hole", "flydsl:hole\x1b[2J", "triton:holes"])
def test_a_plant_that_is_none(parity: Parity, text: str) -> None:
    done = parity("gate", f"--plant={text}")
    assert (
        done.returncode == 3
        and "give KERNEL:FAULT with flydsl or triton and a fault that `parity faults` lists" in done.stderr
    )
    assert "\x1b" not in done.stderr and done.stderr.count("\n") == 1
