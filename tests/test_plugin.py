# SPDX-License-Identifier: Apache-2.0
"""The pytest plugin, in real pytest runs: from a checkout, from an installed package, under xdist."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from parity.checks import required_checks
from parity.contract import contract
from parity.evidence import read_evidence
from parity.gate import State, decide
from parity.matrix import quick_cases
from tests.conftest import Repository, clean_environment, python

ROOT = Path(__file__).resolve().parent.parent
CASES = [quick_cases()[9], quick_cases()[11]]  # two cheap ones


def run_pytest(*arguments: str, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *arguments]
    return subprocess.run(command, cwd=cwd, env=clean_environment(**environment), capture_output=True, text=True)


def test_the_plugin_imports_nothing_heavy(tmp_path: Path) -> None:
    done = python(
        "import sys, parity.plugin; print([n for n in ('torch', 'numpy', 'triton', 'flydsl') if n in sys.modules])",
        cwd=tmp_path,
    )
    assert done.stdout.strip() == "[]", done.stderr


def test_an_installed_package_under_xdist_with_evidence(tmp_path: Path) -> None:
    chosen = " or ".join(case.id for case in CASES)
    arguments = [
        "--pyargs",
        "parity",
        "-n",
        "2",
        "-k",
        chosen,
        "-m",
        "gfx942",
        "--evidence=evidence.jsonl",
        "--strict-markers",
    ]
    done = run_pytest(*arguments, cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "2 passed" in done.stdout
    assert "logits-parity: kernels run on the gfx942 executor (software) (--device=auto)" in done.stdout
    records = read_evidence(tmp_path / "evidence.jsonl")
    assert sorted(record.key for record in records) == sorted(key for case in CASES for key in required_checks(case))
    assert {record.where for record in records} == {"executor"}
    assert decide(records, CASES).state is State.PASS
    assert [path.name for path in tmp_path.iterdir()] == ["evidence.jsonl"]


def test_a_checkout_collects_each_case_once_and_registers_the_plugin_once() -> None:
    done = run_pytest("--collect-only", "-q", "parity", "-m", "gfx942", cwd=ROOT)
    assert done.returncode == 0, done.stdout + done.stderr
    assert [line.partition("::")[2] for line in done.stdout.splitlines() if "::" in line] == [
        *(f"test_contract[{row.case}]" for row in contract()),
        *(f"test_case[{case.id}]" for case in quick_cases()),
    ]


def test_a_failure_is_told_with_the_command_that_repeats_it(repository: Repository, tmp_path: Path) -> None:
    source = (repository.path / "aiter/ops/flydsl/kernels/fp8_mqa_logits.py").read_text()
    broken = source.replace("result = misbehave(plant,", "result = misbehave('dead-row',")
    assert broken != source
    commit = repository.commit({"aiter/ops/flydsl/kernels/fp8_mqa_logits.py": broken}, "v2")
    case = CASES[0]
    done = run_pytest("--pyargs", "parity", "-k", case.id, f"--aiter={repository.path}", "--candidate=v2", cwd=tmp_path)
    assert done.returncode == 1
    assert f"flydsl (aiter v2 ({commit[:12]})) / {case.id} / executor: " in done.stdout
    assert "all in row 1" in done.stdout
    assert (
        f"  again: pytest --pyargs parity -k {case.id} --device=executor --aiter={repository.path} --candidate=v2"
        in done.stdout
    )


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["--device=gpu"], "ERROR: --device=gpu: no gfx942 GPU (MI300X, MI325X): looked for gfx_target_version 90402"),
        (["--device=tpu"], "ERROR: --device=tpu: choose auto, gpu, executor, cuda"),
        (["--depth=release"], "ERROR: --depth=release is for GPUs"),
        (["--captured=/missing"], "ERROR: "),
        (["--candidate=v1"], "ERROR: --candidate needs --aiter"),
        (["--evidence=/missing/x"], "ERROR: cannot write evidence to /missing/x: No such file or directory"),
    ],
)
def test_usage_errors(tmp_path: Path, arguments: list[str], text: str) -> None:
    done = run_pytest("--pyargs", "parity", *arguments, cwd=tmp_path)
    assert done.returncode == pytest.ExitCode.USAGE_ERROR
    assert text in done.stdout + done.stderr
    assert "Traceback" not in done.stdout + done.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_source_that_cannot_be_used_fails_every_case(tmp_path: Path) -> None:
    done = run_pytest("--pyargs", "parity", "-k", CASES[0].id, "--aiter=/missing", cwd=tmp_path)
    assert done.returncode == 1
    assert "--aiter /missing: no such path" in done.stdout
    assert "During handling" not in done.stdout
    assert "passed" not in done.stdout


def test_conftest_alone_is_enough_in_a_checkout_that_is_not_installed(tmp_path: Path) -> None:
    for name in ("parity", "conftest.py", "pyproject.toml"):
        target = tmp_path / name
        shutil.copytree(ROOT / name, target) if (ROOT / name).is_dir() else shutil.copy(ROOT / name, target)
    done = run_pytest("--collect-only", "-q", "parity", cwd=tmp_path, PYTEST_DISABLE_PLUGIN_AUTOLOAD="1")
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{len(quick_cases()) + len(contract())} tests collected" in done.stdout
