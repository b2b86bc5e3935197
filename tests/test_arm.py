# SPDX-License-Identifier: Apache-2.0
"""An arm's process may die, hang, print or lie: each becomes a finding, and the next run works. Wrappers are made up, in torch."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch

from parity.arm import Arm, ArmError
from parity.cases import Case
from parity.checks import judge_case, required_checks
from parity.devices import Device
from parity.evidence import Record
from parity.gate import State, decide
from parity.inputs import build_inputs
from parity.matrix import quick_cases
from parity.run import arms_of
from tests.conftest import made_up_source

CASE = quick_cases()[0]  # causal, 17 rows, row 0 sees 60 of 76 keys
INPUTS = build_inputs(CASE)
EXECUTOR = Device("executor")


@pytest.fixture(scope="module")
def arms(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Arm]]:
    source = made_up_source(tmp_path_factory.mktemp("aiter"))
    with Arm(source, "flydsl", EXECUTOR) as flydsl, Arm(source, "triton", EXECUTOR) as triton:
        yield {"flydsl": flydsl, "triton": triton}


def error_of(arm: Arm, plant: str) -> ArmError:
    with pytest.raises(ArmError) as caught:
        arm.run(INPUTS, plant=plant)
    return caught.value


def judged(arms: dict[str, Arm], plant: str | None, *, kernel: str = "flydsl") -> dict[tuple[str, str], Record]:
    records = judge_case(CASE, arms, plants={kernel: plant} if plant else {})
    assert [record.key for record in records] == required_checks(CASE)
    return {(record.check, record.arm): record for record in records}


def test_right_logits_pass(arms: dict[str, Arm]) -> None:
    records = judged(arms, None)
    assert {record.status for record in records.values()} == {"pass"}
    assert decide(list(records.values()), [CASE]).state is State.PASS
    provenance = records["reference", "flydsl"].provenance
    assert provenance["packages"]["torch"][0] == torch.__version__
    assert len(provenance["kernel_sha256"]) == 64


@pytest.mark.parametrize(
    ("plant", "kind", "text"),
    [
        ("raise", "wrapper-error", "ValueError: heads of this size are not for me (fp8_mqa_logits.py:"),
        ("abort", "crash", "the process died with signal SIGABRT"),
        ("last-words", "crash", "the process died with signal SIGSEGV: last words"),
        ("exit", "crash", "the process died with exit status 3"),
        ("no-launch", "no-launch", "NoLaunch: the wrapper returned logits and launched no kernel"),
        (
            "foreign",
            "no-launch",
            "NoLaunch: the wrapper launched a kernel, but returned logits in memory that no launch wrote",
        ),
        ("unwritten", "unwritten", f"Unwritten: 1 of {CASE.m * CASE.n:,} logits were never written"),
        ("modify", "input-modified", "InputModified: the caller's KV was changed"),
    ],
)
def test_what_goes_wrong_is_told_and_the_next_run_works(arms: dict[str, Arm], plant: str, kind: str, text: str) -> None:
    error = error_of(arms["flydsl"], plant)
    assert error.kind == kind
    assert error.text.startswith(text)
    assert arms["flydsl"].run(INPUTS).outputs[0].shape == (CASE.m, CASE.n)


def test_a_hang_is_ended(tmp_path: Path) -> None:
    with Arm(made_up_source(tmp_path), "flydsl", EXECUTOR, timeout=20) as arm:
        pid = int(arm.run(INPUTS, plant="pid").outputs[0][0, 0])
        arm._timeout = 0.5
        assert str(error_of(arm, "sleep")) == "timeout: no answer within 0 s"
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


def test_killed_from_outside_between_runs(arms: dict[str, Arm]) -> None:
    pid = int(arms["flydsl"].run(INPUTS, plant="pid").outputs[0][0, 0])
    os.kill(pid, signal.SIGKILL)
    with pytest.raises(ArmError, match="killed: the process died with signal SIGKILL"):
        arms["flydsl"].run(INPUTS)
    assert arms["flydsl"].run(INPUTS).outputs[0].shape == (CASE.m, CASE.n)


def test_what_a_wrapper_prints_does_not_disturb(arms: dict[str, Arm]) -> None:
    assert torch.equal(arms["flydsl"].run(INPUTS, plant="print").outputs[0], arms["flydsl"].run(INPUTS).outputs[0])


@pytest.mark.parametrize(
    ("plant", "check", "kind"),
    [
        ("shape", "reference", "shape"),
        ("dtype-bfloat16", "reference", "dtype"),
        ("nan", "reference", "NaN"),
        ("nan", "top-k", "top-k"),
        ("hole", "reference", "-inf"),
        ("leak", "reference", "-inf"),
        ("dead-row", "reference", "budget"),
        ("restless", "repeat", "repeat"),
        ("stale", "reference", "budget"),
        ("modify", "reference", "input-modified"),
        ("abort", "repeat", "crash"),
    ],
)
def test_a_lie_is_found_by_the_check_that_should(arms: dict[str, Arm], plant: str, check: str, kind: str) -> None:
    records = judged(arms, plant)
    assert records[check, "flydsl"].status == "fail"
    assert records[check, "flydsl"].findings[0].kind == kind
    assert {records[name, "triton"].status for name in ("reference", "top-k", "repeat")} == {"pass"}
    assert decide(list(records.values()), [CASE]).state is State.FAIL


def test_a_dead_row_is_named(arms: dict[str, Arm]) -> None:
    findings = judged(arms, "dead-row")["reference", "flydsl"].findings
    assert findings[0].text.endswith("all in row 1")
    assert findings[1].where is not None
    assert findings[1].where[0] == 1


def test_a_broken_baseline_is_a_baseline_error(arms: dict[str, Arm]) -> None:
    verdict = decide(list(judged(arms, "dead-row", kernel="triton").values()), [CASE])
    assert verdict.state is State.FAIL
    assert verdict.reasons[0].startswith("baseline error: triton")


@pytest.mark.parametrize("plant", ["no-launch", "foreign"])
def test_no_launch_is_not_validated(arms: dict[str, Arm], plant: str) -> None:
    records = judged(arms, plant)
    assert records["reference", "flydsl"].status == "unsupported"
    assert decide(list(records.values()), [CASE]).state is State.NOT_VALIDATED


@pytest.mark.parametrize("kind", ["killed", "timeout", "no-space", "unsupported"])
def test_trouble_of_the_machine_is_not_validated(
    arms: dict[str, Arm], monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    def trouble(*arguments: object, **options: object) -> None:
        raise ArmError(kind, "made up")

    monkeypatch.setattr(arms["flydsl"], "run", trouble)
    assert decide(list(judged(arms, None).values()), [CASE]).state is State.NOT_VALIDATED


def test_a_full_disk_of_the_process_is_not_its_kernels_fault(tmp_path: Path) -> None:
    text = "import sys, os\ndef flydsl_fp8_mqa_logits(*a, **k):\n    print('No space left on device', file=sys.stderr, flush=True)\n    os.abort()\n"
    with (
        Arm(made_up_source(tmp_path, flydsl=text), "flydsl", EXECUTOR) as arm,
        pytest.raises(ArmError, match="no-space: "),
    ):
        arm.run(INPUTS)


def test_modules_in_the_folder_of_the_caller_are_not_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("triton", "parity", "torch"):
        (tmp_path / "here" / name).mkdir(parents=True)
        (tmp_path / "here" / name / "__init__.py").write_text("raise ImportError('the folder of the caller')\n")
    source = made_up_source(tmp_path / "tree")
    monkeypatch.chdir(tmp_path / "here")
    with Arm(source, "flydsl", EXECUTOR) as arm:
        assert arm.run(INPUTS).outputs[0].shape == (CASE.m, CASE.n)


def test_the_callers_steering_variables_stay_outside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    steering = {
        "TRITON_INTERPRET": "1",
        "FLYDSL_FP8_MQA_LOGITS_VARIANT": "x",
        "COMPILE_ONLY": "1",
        "AITER_LOG": "1",
        "ARCH": "gfx950",
    }
    for name, value in steering.items():
        monkeypatch.setenv(name, value)
    with Arm(made_up_source(tmp_path), "flydsl", EXECUTOR) as arm:
        text = error_of(arm, "environment").text.split(" (fp8_mqa")[0].split()
    assert "ARCH=gfx942" in text
    assert "GPU_ARCHS=gfx942" in text
    assert not {f"{name}={value}" for name, value in steering.items()} & set(text)
    assert not any(entry.startswith("TRITON_INTERPRET") for entry in text)


def test_a_kernel_that_cannot_be_imported(tmp_path: Path) -> None:
    source = made_up_source(tmp_path, flydsl="import a_package_that_is_missing\n")
    with Arm(source, "flydsl", EXECUTOR) as arm, pytest.raises(ArmError) as caught:
        arm.start()
    assert caught.value.kind == "not-importable"
    assert "No module named 'a_package_that_is_missing'" in caught.value.text


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        ("def flydsl_fp8_mqa_logits(:\n", "SyntaxError"),
        ("from aiter.ops.gone import x\n", "ModuleNotFoundError: No module named 'aiter.ops.gone'"),
        ("another_name = 1\n", "AttributeError: module 'aiter.ops.flydsl.kernels.fp8_mqa_logits' has no attribute"),
        ("import os\nos.abort()\n", "the process died with signal SIGABRT"),
    ],
)
def test_a_candidate_that_breaks_on_import_fails(tmp_path: Path, text: str, cause: str) -> None:
    with arms_of(made_up_source(tmp_path, flydsl=text), EXECUTOR) as started:
        records = {(record.check, record.arm): record for record in judge_case(CASE, started)}
    assert cause in records["reference", "flydsl"].findings[0].text
    assert records["reference", "triton"].status == "pass"
    assert decide(list(records.values()), [CASE]).state is State.FAIL


def test_no_package_init_of_aiter_is_run(tmp_path: Path, once: Callable[..., Path]) -> None:
    source = made_up_source(tmp_path)
    (tmp_path / "aiter/__init__.py").write_text("raise ImportError('all of aiter')\n")
    (tmp_path / "aiter/ops/__init__.py").write_text("raise ImportError('all of aiter')\n")
    with Arm(source, "flydsl", EXECUTOR) as arm:
        assert arm.start()["kernel_file"].startswith(str(tmp_path))


def test_nothing_is_left_behind(tmp_path: Path) -> None:
    with Arm(made_up_source(tmp_path), "flydsl", EXECUTOR) as arm:
        pid, folder = int(arm.run(INPUTS, plant="pid").outputs[0][0, 0]), arm._folder
        assert folder.exists()
    assert not folder.exists()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_an_odd_case_is_judged_in_the_right_order(arms: dict[str, Arm]) -> None:
    case: Case = quick_cases()[10]  # empty windows beside normal rows
    assert {record.status for record in judge_case(case, arms)} == {"pass"}
