# SPDX-License-Identifier: Apache-2.0
"""judge_case where something else than a kernel goes wrong, and with one arm alone."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping

import pytest
import torch

import parity.checks
from parity.arm import Arm
from parity.calling import DeviceLost, KernelFault, of_runtime
from parity.checks import BOTH, KERNEL_CHECKS, judge_case, required_checks
from parity.devices import Device, gpu_error
from parity.gate import State, decide
from parity.matrix import case_of
from tests.conftest import made_up_source

CASE = case_of("h16-d64 packed 6x90 fn.fn gaussian", "a small one")
LOST = "HIP error: the GPU has fallen off the bus\nCompile with TORCH_USE_HIP_DSA"


@pytest.fixture(scope="module")
def arms(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mapping[str, Arm]]:
    source = made_up_source(tmp_path_factory.mktemp("tree"))
    with Arm(source, "flydsl", Device("executor")) as flydsl, Arm(source, "triton", Device("executor")) as triton:
        for arm in (flydsl, triton):
            arm.start()
        yield {"flydsl": flydsl, "triton": triton}


def test_every_required_record_is_made(arms: Mapping[str, Arm]) -> None:
    records = judge_case(CASE, arms)
    assert sorted(record.key for record in records) == sorted(required_checks(CASE))
    assert {record.status for record in records} == {"pass"}, [record.findings for record in records]


def test_one_arm_alone_has_no_agreement_and_is_never_a_pass(arms: Mapping[str, Arm]) -> None:
    records = judge_case(CASE, {"triton": arms["triton"]})
    assert [(record.check, record.arm) for record in records] == [(check, "triton") for check in KERNEL_CHECKS]
    assert decide(records, [CASE]).state is State.NOT_VALIDATED


def test_a_gpu_lost_while_judging_fails_its_case_alone(
    arms: Mapping[str, Arm], monkeypatch: pytest.MonkeyPatch
) -> None:
    def lost(*arguments: object) -> None:
        raise RuntimeError(LOST)

    with monkeypatch.context() as broken:
        broken.setattr(parity.checks, "judge_rows", lost)
        records = judge_case(CASE, arms)
    assert sorted(record.key for record in records) == sorted(required_checks(CASE))
    assert {record.status for record in records} == {"unsupported"}
    text = "device-lost: while judging: HIP error: the GPU has fallen off the bus"
    assert {record.findings[0].text for record in records if record.arm != BOTH} == {text}
    assert decide(records, [CASE]).state is State.NOT_VALIDATED
    assert {record.status for record in judge_case(CASE, arms)} == {"pass"}  # the next case is judged


def test_an_error_of_our_own_is_not_taken_for_a_lost_gpu(
    arms: Mapping[str, Arm], monkeypatch: pytest.MonkeyPatch
) -> None:
    def wrong(*arguments: object) -> None:
        raise RuntimeError("a mistake of the judge")

    monkeypatch.setattr(parity.checks, "judge_rows", wrong)
    with pytest.raises(RuntimeError, match="a mistake of the judge"):
        judge_case(CASE, arms)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        (LOST, DeviceLost),
        ("CUDA error: an illegal memory access was encountered\nmore", KernelFault),
        ("HIP error: unspecified launch failure", KernelFault),
        ("CUDA error: device-side assert", DeviceLost),
        ("shapes do not match", RuntimeError),
    ],
)
def test_what_a_runtime_error_means(text: str, kind: type[Exception]) -> None:
    error = of_runtime(RuntimeError(text))
    assert (type(error) is kind and "\n" not in str(error)) or kind is RuntimeError
    assert bool(gpu_error(RuntimeError(text))) is (kind is not RuntimeError)


def test_a_selector_that_saw_nothing_is_told(arms: Mapping[str, Arm], monkeypatch: pytest.MonkeyPatch) -> None:
    run = Arm.run
    monkeypatch.setattr(
        Arm, "run", lambda *given, **options: dataclasses.replace(run(*given, **options), selected=None)
    )
    records = judge_case(CASE, arms)
    assert [record.findings[0].text for record in records if record.status == "fail"] == [
        "selector: the arm selected nothing"
    ] * 2


def test_wrong_tokens_are_a_finding_of_the_selector_alone(
    arms: Mapping[str, Arm], monkeypatch: pytest.MonkeyPatch
) -> None:
    run = Arm.run

    def off_by_one(*given: object, **options: object) -> object:
        result = run(*given, **options)  # type: ignore[arg-type]
        assert result.selected is not None
        return dataclasses.replace(result, selected=torch.where(result.selected >= 0, result.selected + 1, -1))

    monkeypatch.setattr(Arm, "run", off_by_one)
    failed = [record for record in judge_case(CASE, arms) if record.status == "fail"]
    assert [record.check for record in failed] == ["selector", "selector"]
