# SPDX-License-Identifier: Apache-2.0
"""The text of every kind of finding, as a failure prints it: kernel, source, case, device, what is wrong, and the command that repeats it."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from parity.arm import ArmError, Run
from parity.budget import error_budget
from parity.checks import UNKNOWN, judge_case
from parity.compare import number
from parity.devices import Device
from parity.evidence import Record
from parity.inputs import Inputs, build_inputs
from parity.matrix import case_of
from parity.reference import reference_logits
from parity.report.terminal import failure_text
from parity.run import again_command
from parity.selector import select
from parity.sources import Source

CASE = case_of("h16-d64 packed 6x90 fn.fnuz gaussian", "a small one")
INPUTS = build_inputs(CASE)
EXPECTED, BUDGET = reference_logits(INPUTS), error_budget(INPUTS)
DEVICE = Device("executor")
AGAIN = f"  again: pytest --pyargs parity -k {CASE.id} --device=executor --aiter=/a/checkout"
HEAD = f"flydsl (aiter v9) / {CASE.id} / executor: "
ROW, COLUMN = (int(part) for part in torch.isfinite(EXPECTED).nonzero()[100])
Change = Callable[[torch.Tensor], Any]


class MadeUpArm:
    """An arm that answers with the right logits, changed, or with an error."""

    device = DEVICE
    source = Source("aiter", "aiter v9", "r", {}, "/tree", "0.3.0", "")
    provenance: dict[str, Any] = {"where": "executor"}  # noqa: RUF012 (read only)

    def __init__(self, change: Change | ArmError = lambda logits: None, *, later: Change = lambda logits: None) -> None:
        self._change, self._later = change, later

    def run(self, inputs: Inputs, *, k: int, repeats: int, plant: str | None) -> Run:
        if isinstance(self._change, ArmError):
            raise self._change
        logits = EXPECTED.float()
        changed = self._change(logits)
        first = logits if changed is None else changed
        second = first.clone()
        self._later(second)
        right = first.shape == EXPECTED.shape and first.dtype == torch.float32
        selected = select(first, inputs.starts, inputs.ends, k) if right else None
        return Run((first, second), selected, ({},), 0.0)


def records(flydsl: MadeUpArm, triton: MadeUpArm | None = None) -> list[Record]:
    return judge_case(CASE, {"flydsl": flydsl, "triton": triton or MadeUpArm()})  # type: ignore[dict-item]


def text_of(found: list[Record], check: str, arm: str = "flydsl") -> list[str]:
    (record,) = [record for record in found if (record.check, record.arm) == (check, arm)]
    assert record.status != "pass"
    return failure_text(record, again_command(CASE, DEVICE, " --aiter=/a/checkout")).splitlines()


ARM_KINDS = ("import-error", "compile-error", "wrapper-error", "kernel-fault", "unwritten", "input-modified", "crash",
             "unsupported", "no-launch", "killed", "timeout", "no-space", "device-lost")  # fmt: skip


@pytest.mark.parametrize("kind", ARM_KINDS)
@pytest.mark.parametrize("check", ["reference", "top-k", "selector", "repeat"])
def test_what_kept_an_arm_from_giving_logits(kind: str, check: str) -> None:
    found = records(MadeUpArm(ArmError(kind, "the reason (file.py:7)")))
    assert text_of(found, check) == [f"{HEAD}{kind}: the reason (file.py:7)", AGAIN]
    agreement = text_of(found, "agreement", "flydsl+triton")[0]
    assert agreement.endswith(f"no agreement to judge: flydsl gave no logits ({kind}: the reason (file.py:7))")
    assert {record.status for record in found if record.arm == "flydsl"} == {
        "unsupported" if kind in UNKNOWN else "fail"
    }


def test_every_kind_that_an_arm_can_give_is_listed() -> None:
    package = Path(__file__).resolve().parent.parent / "parity"
    kinds = set(re.findall(r'"([a-z-]+)"', (package / "worker.py").read_text().split("_KINDS = {")[1].split("}")[0]))
    assert {kind for kind in kinds} <= set(ARM_KINDS) and set(UNKNOWN) <= set(ARM_KINDS)
    raised = set(re.findall(r'ArmError\("([a-z-]+)"', (package / "arm.py").read_text()))
    assert raised <= set(ARM_KINDS)


def put(value: float) -> Change:
    def change(logits: torch.Tensor) -> None:
        logits[ROW, COLUMN] = value

    return change


@pytest.mark.parametrize(
    ("kind", "value", "shown"), [("NaN", math.nan, "nan"), ("+inf", math.inf, "inf"), ("-inf", -math.inf, "-inf")]
)
def test_positions(kind: str, value: float, shown: str) -> None:
    expected = number(float(EXPECTED[ROW, COLUMN]))
    assert text_of(records(MadeUpArm(put(value))), "reference") == [
        f"{HEAD}1 positions disagree on {kind}, all in row {ROW}",
        f"  {kind} [{ROW}, {COLUMN}]: actual {shown}, expected {expected} (1 in row {ROW})",
        AGAIN,
    ]


def test_budget() -> None:
    value = float(EXPECTED[ROW, COLUMN])
    wrong = float(torch.tensor(value + 0.25).float())
    elements = int(torch.isfinite(EXPECTED).sum())
    assert text_of(records(MadeUpArm(put(wrong))), "reference") == [
        f"{HEAD}1 of {elements} logits outside budget, all in row {ROW}",
        f"  worst [{ROW}, {COLUMN}]: actual {number(wrong)}, expected {number(value)}, off {number(abs(wrong - value))}, "
        f"allowed {number(float(BUDGET[ROW, COLUMN]))}",
        AGAIN,
    ]


def test_top_k() -> None:
    row = EXPECTED[ROW]
    best = int(torch.where(torch.isfinite(row), row, -math.inf).argmax())
    found = records(
        MadeUpArm(lambda logits: logits.index_put((torch.tensor(ROW), torch.tensor(best)), torch.tensor(-1e6)))
    )
    first, *_, last = text_of(found, "top-k")
    token = best - int(INPUTS.starts[ROW])
    assert re.fullmatch(
        re.escape(f"{HEAD}top-{CASE.topk} of row {ROW}: token {token} lost (margin ") + r"[0-9.]+, allowed [0-9.e-]+\)",
        first,
    )
    assert last == AGAIN


def test_repeat() -> None:
    first = EXPECTED.float()[ROW, COLUMN]
    other = torch.nextafter(first, torch.tensor(math.inf))
    bits = [f"0x{int(value.view(torch.int32)) & 0xFFFFFFFF:08x}" for value in (first, other)]
    found = records(MadeUpArm(later=put(float(other))))
    assert text_of(found, "repeat") == [
        f"{HEAD}repeat differs in 1 of 540 positions, first [{ROW}, {COLUMN}]: {bits[0]}, then {bits[1]}", AGAIN,
    ]  # fmt: skip


def test_forms() -> None:
    found = records(MadeUpArm(lambda logits: logits[:, :-1]))
    assert text_of(found, "reference") == [f"{HEAD}shape [6, 89], expected [6, 90]", AGAIN]
    assert text_of(found, "repeat") == [f"{HEAD}not judged: the logits are torch.float32 of shape [6, 89]", AGAIN]
    assert text_of(found, "agreement", "flydsl+triton")[0].endswith(
        "no agreement to judge: flydsl gave torch.float32 of shape [6, 89]"
    )
    found = records(MadeUpArm(lambda logits: logits.double()))
    assert text_of(found, "reference") == [f"{HEAD}dtype torch.float64, expected torch.float32", AGAIN]


def test_a_broken_baseline() -> None:
    found = records(MadeUpArm(), MadeUpArm(put(math.nan)))
    assert text_of(found, "agreement", "flydsl+triton") == [
        f"flydsl+triton (aiter v9) / {CASE.id} / executor: no agreement to judge: triton's positions of -inf or NaN are wrong", AGAIN,
    ]  # fmt: skip


def test_agreement() -> None:
    value, allowed = float(EXPECTED[ROW, COLUMN]), 0.9 * float(BUDGET[ROW, COLUMN])
    near, far = (float(torch.tensor(value + sign * allowed).float()) for sign in (1.0, -1.0))
    found = records(MadeUpArm(put(near)), MadeUpArm(put(far)))
    assert {record.status for record in found} == {"pass"}  # each within its budget, and so within two of one another
    found = records(MadeUpArm(put(value + 1)), MadeUpArm())
    assert text_of(found, "agreement", "flydsl+triton")[0].startswith(
        f"flydsl+triton (aiter v9) / {CASE.id} / executor: 1 of "
    )
