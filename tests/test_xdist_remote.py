# SPDX-License-Identifier: Apache-2.0
"""Workers that pytest-xdist starts elsewhere (`--tx`): a second interpreter behind a stand-in for ssh, and who gets which GPU."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from execnet import XSpec

import parity
from parity.checks import required_checks
from parity.evidence import read_evidence
from parity.gate import State, decide
from parity.matrix import quick_cases
from parity.plugin import pytest_configure_node
from tests.conftest import clean_environment, python

HERE = Path(parity.__file__).resolve().parent
CASES = [quick_cases()[9], quick_cases()[11]]  # two cheap ones, so that each worker gets one

# Runs what execnet gives to ssh in a shell of this host as sshd would: in the home folder, with no variable of the caller's Python.
SSH = """\
#!/bin/sh
[ "$1 $2" = "-C other-host" ] || exit 255
unset PYTHONPATH
cd "$HOME" && exec sh -c "$3"
"""


def other_host(folder: Path) -> tuple[Path, Path]:
    """The python of a new virtual environment that has a copy of this package, and for the rest the packages of this one; and
    the copy's folder."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    (installed,) = folder.glob("lib/python*/site-packages")
    shutil.copytree(HERE, installed / "parity", ignore=shutil.ignore_patterns("__pycache__"))
    others = dict.fromkeys([sysconfig.get_path("purelib"), sysconfig.get_path("platlib")])
    (installed / "other-packages.pth").write_text("\n".join(others) + "\n")
    return folder / "bin" / "python", installed / "parity"


class Hosts:
    """This host with an empty folder of the user's, and "other-host", which ssh reaches: another home folder of this one."""

    def __init__(self, folder: Path) -> None:
        self.user, self.home, self._programs = (folder / name for name in ("user", "home", "bin"))
        for made in (self.user, self.home, self._programs):
            made.mkdir()
        (self._programs / "ssh").write_text(SSH)
        (self._programs / "ssh").chmod(0o755)

    def pytest(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "pytest", "-v", "-p", "no:cacheprovider", "--pyargs", "parity", *arguments]
        environment = clean_environment(
            HOME=str(self.home),
            PATH=f"{self._programs}{os.pathsep}{os.environ['PATH']}",
            XDG_CACHE_HOME=os.environ.get("XDG_CACHE_HOME", str(Path.home() / ".cache")),  # the engine is built already
        )
        return subprocess.run(command, cwd=self.user, env=environment, capture_output=True, text=True, timeout=300)


@pytest.fixture
def hosts(tmp_path: Path) -> Hosts:
    return Hosts(tmp_path)


def test_two_interpreters_one_of_them_behind_ssh(hosts: Hosts, tmp_path: Path) -> None:
    """gw0: this interpreter, as -n starts it. gw1: one with an installation of its own, reached by the command `ssh`."""
    other, package = other_host(tmp_path / "other")
    workers = [f"--tx=popen//python={sys.executable}", f"--tx=ssh=other-host//python={other}"]
    chosen = ["-k", " or ".join(case.id for case in CASES), "--device=executor"]
    done = hosts.pytest("--dist=load", *workers, *chosen, "--evidence=e.jsonl")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "2 passed" in done.stdout and "[gw0] [" in done.stdout and "[gw1] [" in done.stdout
    records = read_evidence(hosts.user / "e.jsonl")
    assert sorted(record.key for record in records) == sorted(key for case in CASES for key in required_checks(case))
    assert decide(records, CASES).state is State.PASS
    ran = {Path(record.provenance["kernel_file"]).parent.parent: record.case for record in records}
    # In a checkout with the wheel beside it (tox) the user's folder sees the wheel.
    here = Path(python("import parity; print(parity.__file__)", cwd=hosts.user).stdout.strip()).parent
    assert set(ran) == {here, package} and len(set(ran.values())) == 2
    assert [path.name for path in hosts.user.iterdir()] == ["e.jsonl"]


def test_a_gpu_is_wanted_where_the_workers_are(hosts: Hosts, tmp_path: Path) -> None:
    """A host without GPUs may drive others. One of those without a GPU fails its tests: xdist would replace a worker that does not
    come up, over and over."""
    other, _ = other_host(tmp_path / "other")
    remote, chosen = f"--tx=ssh=other-host//python={other}", ["-k", CASES[1].id, "--device=gpu"]
    done = hosts.pytest("--dist=load", remote, *chosen)
    assert done.returncode == 1
    assert "logits-parity: kernels run where the workers are (--device=gpu)" in done.stdout
    assert "1 error" in done.stdout and "--device=gpu: no gfx942 GPU (MI300X, MI325X): looked for" in done.stdout
    assert "crashed" not in done.stdout
    done = hosts.pytest("--dist=load", remote, "--tx=popen", *chosen)
    assert done.returncode == pytest.ExitCode.USAGE_ERROR and "ERROR: --device=gpu: no gfx942 GPU" in done.stderr


def numbers(*specs: XSpec) -> list[int]:
    """What the plugin tells the worker of each specification."""
    told = []
    for spec in specs:
        node: Any = SimpleNamespace(nodemanager=SimpleNamespace(specs=list(specs)), workerinput={})
        node.gateway = SimpleNamespace(spec=spec)
        pytest_configure_node(node)
        told.append(node.workerinput["parity_number_on_host"])
    return told


@pytest.mark.parametrize(
    ("specs", "wanted"),
    [
        (["popen"] * 3, [0, 1, 2]),
        (["ssh=x", "ssh=x", "ssh=y", "ssh=y"], [0, 1, 0, 1]),
        (["ssh=x", "ssh=y", "popen", "ssh=x", "ssh=y", "popen"], [0, 0, 0, 1, 1, 1]),
        (["ssh=x//id=left", "ssh=x//id=right"], [0, 1]),
        (["socket=x:8888", "socket=x:8889", "socket=y:8888"], [0, 1, 0]),
        (["popen//python=a", "popen//python=b", "popen//via=proxy", "popen//via=proxy"], [0, 1, 0, 1]),
        (["vagrant_ssh=x", "vagrant_ssh=x"], [0, 1]),
    ],
)
def test_workers_are_numbered_host_by_host(specs: list[str], wanted: list[int]) -> None:
    assert numbers(*map(XSpec, specs)) == wanted


def test_a_worker_in_the_place_of_a_crashed_one_keeps_its_number() -> None:
    specs = [XSpec("popen") for _ in range(3)]
    specs[1].id = "gw7"  # xdist gives the specification a new id and starts it again
    assert numbers(*specs) == [0, 1, 2]


def test_a_worker_with_a_name_of_its_own_gets_its_gpu(tmp_path: Path) -> None:
    """Through the real xdist: the worker says which number it was told."""
    (tmp_path / "test_it.py").write_text(
        "def test_it(request):\n    assert request.config.workerinput['parity_number_on_host'] == 1\n"
    )
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--dist=each", "--tx=popen//id=left"]
    command += ["--tx=popen//id=right", "--device=executor"]
    done = subprocess.run(command, cwd=tmp_path, env=clean_environment(), capture_output=True, text=True)
    assert "1 failed, 1 passed" in done.stdout, done.stdout + done.stderr
    assert "assert 0 == 1" in done.stdout
