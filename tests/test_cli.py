# SPDX-License-Identifier: Apache-2.0
"""The command as a user meets it: real processes, real exit codes, one line for each mistake."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sysconfig
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from parity.checks import BOTH, required_checks
from parity.contract import contract
from parity.contract_judge import CHECK
from parity.evidence import read_evidence
from parity.matrix import quick_cases
from tests.conftest import FILES, Repository, clean_environment

Parity = Callable[..., "subprocess.CompletedProcess[str]"]


def assert_usage(done: subprocess.CompletedProcess[str], text: str, folder: Path) -> None:
    assert done.returncode == 3, done.stderr
    assert text in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stderr.count("error:") == 1
    assert list((folder / "where-the-user-is").iterdir()) == [], "nothing is written half"


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["gate", "--aiter=/missing"], "parity: error: --aiter /missing: no such path"),
        (["gate", "--aiter=/", "--candidate=v1"], "parity: error: --aiter /: not a git repository"),
        (["gate", "--candidate=v1"], "--candidate needs --aiter"),
        (["gate", "--aiter=", "--candidate=v1"], "--aiter is empty"),
        (["gate", "--aiter=/missing\nPASS \x1b[32mall"], r"--aiter /missing\nPASS \x1b[32mall: no such path"),
        (["gate", "--evidence="], "cannot write evidence to .: it is a folder"),
        (["gate", "--aiter=installed"], "no package `aiter` in this environment"),
        (["gate", "--device=gpu"], "no gfx942 GPU (MI300X, MI325X): looked for gfx_target_version 90402"),
        (["gate", "--device=tpu"], "invalid choice: 'tpu'"),
        (["gate", "--depth=release"], "--depth=release is for GPUs"),
        (["gate", "--captured=/missing"], "/missing"),
        (["gate", "--seeds=0"], "--seeds=0: at least 1"),
        (
            ["gate", "--plant=flydsl"],
            "give KERNEL:FAULT with flydsl or triton and a fault that `parity faults` lists",
        ),
        (["gate", "--evidence=/missing/x"], "cannot write evidence to /missing/x: No such file or directory"),
        (["gate", "--evidence=/"], "cannot write evidence to /: it is a folder"),
        (["gat"], "invalid choice: 'gat'"),
        ([], "the following arguments are required: command"),
    ],
)
def test_a_mistake_is_one_line_and_exit_3(parity: Parity, tmp_path: Path, arguments: list[str], text: str) -> None:
    assert_usage(parity(*arguments), text, tmp_path)


def test_mistakes_about_a_repository(parity: Parity, repository: Repository, tmp_path: Path) -> None:
    repository.commit({FILES["flydsl"]: None}, "v2")
    where = f"--aiter={repository.path}"
    assert_usage(parity("gate", where, "--candidate=v9"), "--candidate v9: no such revision in", tmp_path)
    assert_usage(parity("gate", where, "--candidate=v2"), "aiter v2 has no flydsl fp8_mqa_logits kernel", tmp_path)
    assert_usage(
        parity("gate", where, "--candidate=v1", "--plant=flydsl:dropped-relu"),
        "works on the own kernels only",
        tmp_path,
    )


# A sitecustomize that makes one package look absent, to metadata and to imports, in this process and those it starts.
ABSENT = """
import importlib.metadata, sys
NAME = {name!r}
found = importlib.metadata.version
def version(name):
    if name == NAME:
        raise importlib.metadata.PackageNotFoundError(name)
    return found(name)
importlib.metadata.version = version
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == NAME:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Absent())
"""


@pytest.mark.parametrize("name", ["torch", "triton", "flydsl", "ziglang", "msgpack"])
def test_a_missing_package_is_named(parity: Parity, tmp_path: Path, name: str) -> None:
    (tmp_path / "sitecustomize.py").write_text(ABSENT.format(name=name))
    done = parity("gate", PYTHONPATH=str(tmp_path))
    assert_usage(done, f"{name} is not installed", tmp_path)
    assert "pip install 'logits-parity[executor]'" in done.stderr


def test_a_torch_without_fp8(parity: Parity, tmp_path: Path) -> None:
    (tmp_path / "torch.py").write_text("__version__ = '2.0.0'\n")
    done = parity("gate", PYTHONPATH=str(tmp_path))
    assert_usage(done, "torch 2.0.0 has no float8_e4m3fnuz: pip install 'torch>=2.6'", tmp_path)


def test_doctor_fits_one_screen_and_says_the_same_as_json(parity: Parity, tmp_path: Path) -> None:
    done = parity("doctor")
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) <= 24
    items = {item["name"]: item for item in json.loads(parity("doctor", "--json").stdout)}
    assert (
        items["executor"]["found"]
        == items["own FlyDSL kernel"]["found"]
        == items["own Triton kernel"]["found"]
        == "works"
    )
    assert "triton 3." in items["triton"]["found"]
    (tmp_path / "flydsl").mkdir()
    (tmp_path / "flydsl/__init__.py").write_text("raise ImportError('broken on purpose')\n")
    broken = parity("doctor", PYTHONPATH=str(tmp_path))
    assert broken.returncode == 0
    assert "-- own FlyDSL kernel  ImportError: broken on purpose" in broken.stdout


@pytest.fixture(scope="module")
def own_gate(once: Callable[[str, Callable[[Path], None]], Path]) -> tuple[subprocess.CompletedProcess[str], Path]:
    """One real run of the whole gate on the own kernels."""

    def fill(folder: Path) -> None:
        command = [str(Path(sysconfig.get_path("scripts")) / "parity"), "gate"]
        done = subprocess.run(command, cwd=folder, env=clean_environment(), capture_output=True, text=True)
        (folder / "done.json").write_text(json.dumps([done.returncode, done.stdout, done.stderr]))

    folder = once("own-gate", fill)
    code, out, error = json.loads((folder / "done.json").read_text())
    return subprocess.CompletedProcess([], code, out, error), folder


def test_the_own_kernels_pass(own_gate: tuple[subprocess.CompletedProcess[str], Path]) -> None:
    done, _ = own_gate
    assert done.returncode == 0, done.stdout + done.stderr
    lines = done.stdout.splitlines()
    assert sum(line.endswith("  pass") for line in lines) == len(quick_cases())
    assert lines[-1].startswith("PASS [fp8_mqa_logits, flydsl against triton, own kernels, flydsl ")
    assert ", gfx942 on executor, H 16/32/64/128, D 64/128, " in lines[-1]
    assert lines[-2] == f"evidence: parity-evidence.jsonl ({9 * len(quick_cases()) + len(contract())} records)"


def test_the_evidence_is_complete(own_gate: tuple[subprocess.CompletedProcess[str], Path]) -> None:
    records = read_evidence(own_gate[1] / "parity-evidence.jsonl")
    assert sorted(record.key for record in records) == sorted(
        [key for case in quick_cases() for key in required_checks(case)]
        + [(CHECK, row.case, BOTH) for row in contract()]
    )
    for record in records:
        assert record.provenance["packages"]["torch"][1].endswith("__init__.py")
        assert len(record.provenance["kernel_sha256"]) == 64
        assert record.provenance["gfx"] == "gfx942"
        assert len(record.inputs_sha256) == 64
        if record.check == "reference":
            launches = record.figures["launches"]
            assert [len(launch["sha256"]) for launch in launches] == [64, 64]
            assert (
                launches[0]["symbol"]
                == {"flydsl": "own_fp8_mqa_logits_0", "triton": "_fp8_mqa_logits_kernel"}[record.arm]
            )
            assert launches[0]["report"]["mfma"] > 0
            assert launches[0]["report"]["fidelity"]["approximate"] == 0


@pytest.mark.parametrize("arm", ["flydsl", "triton"])
def test_the_budget_would_notice_and_is_kept(own_gate: tuple[subprocess.CompletedProcess[str], Path], arm: str) -> None:
    records = read_evidence(own_gate[1] / "parity-evidence.jsonl")
    gaussian = [
        record.figures["ratio"]
        for record in records
        if (record.arm, record.check) == (arm, "reference") and record.case_axes["distribution"] == "gaussian"
    ]
    assert 0.1 < max(gaussian) < 1


def test_killed_midway_there_is_no_evidence_and_no_process(tmp_path: Path) -> None:
    command = [str(Path(sysconfig.get_path("scripts")) / "parity"), "gate"]
    process = subprocess.Popen(
        command, cwd=tmp_path, env=clean_environment(), stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    assert process.stdout is not None
    while "pass" not in process.stdout.readline():
        assert process.poll() is None
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    assert not (tmp_path / "parity-evidence.jsonl").exists()
    [partial] = tmp_path.iterdir()
    assert len(read_evidence(partial)) % 9 == 0
    for _ in range(300):  # the arms see their input end and leave
        try:
            os.killpg(process.pid, 0)
        except ProcessLookupError:
            break
        time.sleep(0.1)
    else:
        pytest.fail("an arm outlived the gate")


def test_terminated_it_cleans_up_and_says_so(tmp_path: Path) -> None:
    command = [str(Path(sysconfig.get_path("scripts")) / "parity"), "gate"]
    environment = clean_environment(TMPDIR=str(tmp_path / "tmp"))
    (tmp_path / "tmp").mkdir()
    process = subprocess.Popen(
        command, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    while "pass" not in process.stdout.readline():
        assert process.poll() is None
    process.terminate()
    _, error = process.communicate()
    assert (process.returncode, error.splitlines()[-1]) == (2, "parity: interrupted: NOT VALIDATED")
    assert not list((tmp_path / "tmp").glob("parity-arm-*"))


def test_nobody_reads_on(tmp_path: Path) -> None:
    shell = f"'{Path(sysconfig.get_path('scripts')) / 'parity'}' doctor --json | head -1; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", shell], cwd=tmp_path, env=clean_environment(), capture_output=True, text=True)
    assert "Traceback" not in done.stderr
    assert done.stdout.startswith("[")
