# SPDX-License-Identifier: Apache-2.0
"""What several test modules need: made-up git repositories, made-up aiter trees, subprocesses in a clean environment."""

from __future__ import annotations

import fcntl
import importlib.metadata
import os
import subprocess
import sys
import sysconfig
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from parity.sources import Source
from tests.gfx942_gpu_session import gpu_where_asked, pytest_collection_modifyitems, pytest_runtest_makereport

__all__ = ["gpu_where_asked", "pytest_collection_modifyitems", "pytest_runtest_makereport"]  # pytest finds them here

FLYDSL = importlib.metadata.version("flydsl")
MODULES = {"flydsl": "aiter.ops.flydsl.kernels.fp8_mqa_logits", "triton": "aiter.ops.triton.fp8_mqa_logits"}
FILES = {kernel: module.replace(".", "/") + ".py" for kernel, module in MODULES.items()}

# A wrapper computed in torch, so that no compiler is needed. `plant` says how it misbehaves; it notes a launch itself, as the
# executor would. {name} is the wrapper's name.
WRAPPER = """\
import ctypes, os, signal, subprocess, sys, time
import torch
from torch.utils._python_dispatch import _get_current_dispatch_mode
from parity.gfx942 import Fidelity, LaunchReport
from parity.launchers.record import LaunchRecord

calls = 0
kept = {{}}


def {name}(Q, KV, kv_scales, weights, cu_starts, cu_ends, clean_logits=True, *, plant=None):
    global calls
    calls += 1
    if plant == "stale":
        kv_scales = kept.setdefault(kv_scales.shape, kv_scales.clone())
    if plant == "modify":
        KV.view(torch.uint8)[0, 0] ^= 1
    scores = torch.einsum("mhd,nd->mhn", Q.double(), KV.double()) * kv_scales.double()
    logits = torch.einsum("mhn,mh->mn", scores.clamp(min=0), weights.double()).float()
    column = torch.arange(KV.shape[0])
    outside = (column < cu_starts[:, None]) | (column >= cu_ends[:, None])
    result = misbehave(plant, logits.masked_fill(outside, float("-inf")))
    if plant != "no-launch":
        written = (result.untyped_storage().data_ptr(),) if plant != "foreign" else ()
        launch = LaunchRecord("made_up", "0" * 64, (1, 1, 1), (64, 1, 1), LaunchReport(1, 0, 1, Fidelity(1, 0, 0), written), None, 0x5EA)
        _get_current_dispatch_mode().launches.append(launch)
    return result


def misbehave(plant, logits):
    if plant in (None, "no-launch", "foreign", "stale", "modify"):
        return logits
    if plant == "unwritten":  # as a kernel whose stores miss the last element
        result = torch.empty_like(logits)
        ctypes.memmove(result.data_ptr(), logits.contiguous().data_ptr(), 4 * logits.numel())
        _get_current_dispatch_mode()._known(result).undefined[:-4] = 0
        return result
    if plant == "raise":
        raise ValueError("heads of\\n  this size are not for me")
    if plant == "abort":
        os.abort()
    if plant == "last-words":
        print("last words", file=sys.stderr, flush=True)
        os.kill(os.getpid(), signal.SIGSEGV)
    if plant == "exit":
        os._exit(3)
    if plant == "sleep":
        time.sleep(600)
    if plant == "sleeping-child":
        subprocess.run(["sleep", "600.0625"])
    if plant == "print":
        print('{{"outputs": []}}', flush=True)
        os.write(1, b"not JSON\\n")
        subprocess.run(["echo", "from a child"])
        return logits
    if plant == "half-a-reply":
        pipes = [fd for fd in map(int, os.listdir("/proc/self/fd")) if fd > 2 and os.path.exists(f"/proc/self/fd/{{fd}}") is False]
        for fd in pipes:
            if os.readlink(f"/proc/self/fd/{{fd}}").startswith("pipe:"):
                os.write(fd, b'{{"outp')
        os.abort()
    if plant == "pid":
        return torch.full_like(logits, os.getpid())
    if plant == "none":
        return None
    if plant == "shape":
        return logits[:, :-1]
    if plant == "rank":
        return logits[None]
    if plant.startswith("dtype-"):
        return logits.to(getattr(torch, plant.removeprefix("dtype-")))
    if plant == "nan":
        logits[2, 0] = float("nan")
    elif plant == "hole":
        logits[1, 3] = float("-inf")
    elif plant == "leak":
        logits[0, -1] = 0.0
    elif plant == "dead-row":
        logits[1] = logits[1].clamp(max=0).clamp(min=0).masked_fill(logits[1].isinf(), float("-inf"))
    elif plant == "restless":
        logits[0, 0] += 1e-5 * calls
    elif plant == "environment":
        raise RuntimeError(" ".join(sorted(f"{{name}}={{value}}" for name, value in os.environ.items())))
    else:
        raise AssertionError(plant)
    return logits
"""


@pytest.fixture
def private_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """HOME and the cache in a new folder, no GIT_* or PIP_* of the caller; returns the cache of logits-parity."""
    for name in [name for name in os.environ if name.startswith(("GIT_", "PIP_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "logits-parity"


class Repository:
    """A git repository made up of a few small files."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.mkdir(parents=True)
        self.git("init", "--quiet")

    def git(self, *arguments: str) -> str:
        identity = ["-c", "user.name=test", "-c", "user.email=test@example.invalid", "-c", "commit.gpgsign=false"]
        done = subprocess.run(["git", *identity, *arguments], cwd=self.path, capture_output=True, text=True, check=True)
        return done.stdout.strip()

    def commit(self, files: Mapping[str, str | None], tag: str) -> str:
        """Write (or, for None, remove) these files, commit, tag; returns the commit."""
        for name, text in files.items():
            file = self.path / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.unlink() if text is None else file.write_text(text)
        self.git("add", "--all")
        self.git("commit", "--quiet", "--allow-empty", "-m", tag)
        self.git("tag", tag)
        return self.git("rev-parse", "HEAD")


def aiter_files(*, pin: str = FLYDSL) -> dict[str, str]:
    """A made-up aiter: both wrappers at their older places, what extraction needs, the pin."""
    wrappers = {FILES["flydsl"]: "flydsl_fp8_mqa_logits", FILES["triton"]: "fp8_mqa_logits"}
    files = {path: WRAPPER.format(name=name) for path, name in wrappers.items()}
    return files | {"aiter/jit/utils/chip_info.py": "", "requirements.txt": f"pandas\nflydsl=={pin}\n"}


@pytest.fixture
def repository(tmp_path: Path, private_home: Path) -> Repository:
    """A made-up aiter repository with one revision, v1."""
    made = Repository(tmp_path / "aiter-checkout")
    made.commit(aiter_files(), "v1")
    return made


def made_up_source(tree: Path, **texts: str) -> Source:
    """A Source whose tree holds the made-up wrappers, or for a kernel named in `texts` the module given."""
    for path, text in (aiter_files() | {FILES[kernel]: text for kernel, text in texts.items()}).items():
        (tree / path).parent.mkdir(parents=True, exist_ok=True)
        (tree / path).write_text(text)
    return Source("aiter", "made-up aiter", "r1", MODULES, str(tree), FLYDSL, "")


def clean_environment(**changes: str) -> dict[str, str]:
    """The environment for a subprocess: nothing of this pytest run, no GPU, `changes` last."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST", "COV_"))}
    return kept | {"HIP_VISIBLE_DEVICES": "-1", "COLUMNS": "200"} | changes


@pytest.fixture
def parity(tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs the `parity` command as a user does, in an empty folder; keyword arguments are environment variables."""
    folder = tmp_path / "where-the-user-is"
    folder.mkdir()

    def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        command = [str(Path(sysconfig.get_path("scripts")) / "parity"), *arguments]
        return subprocess.run(command, cwd=folder, env=clean_environment(**environment), capture_output=True, text=True)

    return run


def python(code: str, *arguments: str, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a piece of Python in a process of its own."""
    command = [sys.executable, "-c", code, *arguments]
    return subprocess.run(command, cwd=cwd, env=clean_environment(**environment), capture_output=True, text=True)


@pytest.fixture(scope="session")
def once(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, Callable[[Path], None]], Path]:
    """once(name, fill): the folder `name`, filled by one xdist worker while the others wait for it."""
    base = tmp_path_factory.getbasetemp()
    shared = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base

    def filled(name: str, fill: Callable[[Path], None]) -> Path:
        folder = shared / name
        with open(shared / f"{name}.lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not folder.exists():
                folder.mkdir()
                fill(folder)
        return folder

    return filled


@pytest.fixture
def no_gpu_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    """No *_VISIBLE_DEVICES of the caller."""
    for name in ("HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES"):
        monkeypatch.delenv(name, raising=False)
