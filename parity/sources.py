# SPDX-License-Identifier: Apache-2.0
"""Where a kernel comes from: this repository, an aiter git revision, or an installed aiter.

A git revision is extracted (Python files of aiter/ only, about 2 s) into a folder of the user's cache named by its commit; nothing is
checked out and the repository given is not changed. The FlyDSL that a revision pins is installed with pip into a folder of its own in
that cache, never into the running environment.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import io
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from parity.gfx942.native import cache_folder

# Modules that define the public wrappers, newest place first.
FLYDSL_MODULES = ("aiter.ops.flydsl.kernels.mqa_logits.fp8_mqa_logits", "aiter.ops.flydsl.kernels.fp8_mqa_logits")
TRITON_MODULES = ("aiter.ops.triton.attention.fp8_mqa_logits", "aiter.ops.triton.fp8_mqa_logits")
WRAPPERS = {"flydsl": "flydsl_fp8_mqa_logits", "triton": "fp8_mqa_logits"}


class SourceError(Exception):
    """The source asked for cannot be used. The text is one line that says what to do."""


@dataclass(frozen=True)
class Source:
    """kind: "own" or "aiter". modules: wrapper module of each kernel. tree: folder that holds aiter/ ("" for own).

    flydsl_path: folder to put first on the import path ("" = the environment's FlyDSL); flydsl: its version.
    """

    kind: str
    label: str
    revision: str
    modules: dict[str, str]
    tree: str
    flydsl: str
    flydsl_path: str


def own_source(kernels: Sequence[str] = tuple(WRAPPERS)) -> Source:
    """This repository's own kernels, with the environment's FlyDSL and Triton. SourceError when one that `kernels` need is missing."""
    require("triton")
    flydsl = _version_or_error("flydsl") if "flydsl" in kernels else ""
    modules = {"flydsl": "parity.kernels.own_flydsl", "triton": "parity.kernels.own_triton"}
    return Source("own", "own kernels", importlib.metadata.version("logits-parity"), modules, "", flydsl, "")


def select_source(
    aiter: str | None, candidate: str | None, *, tell: Callable[[str], None], kernels: Sequence[str] = tuple(WRAPPERS)
) -> Source:
    """The source that the options --aiter and --candidate name, of which `kernels` will run. Raises SourceError."""
    if aiter == "" or candidate == "":  # an unset variable of a script; git would take the folder it runs in
        raise SourceError(f"--{'aiter' if aiter == '' else 'candidate'} is empty")
    if aiter is not None:
        return aiter_source(aiter, candidate, tell=tell)
    if candidate is not None:
        raise SourceError("--candidate needs --aiter: it is a revision of that repository")
    return own_source(kernels)


def require(*packages: str) -> None:
    """SourceError unless these distributions are installed."""
    for package in packages:
        _version_or_error(package)


def _version_or_error(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        raise SourceError(
            f"{package} is not installed in {sys.prefix}: pip install 'logits-parity[executor]' (see `parity doctor`)"
        ) from None


def aiter_source(where: str, revision: str | None, *, tell: Callable[[str], None]) -> Source:
    """aiter at `where`: a git checkout, a bare git directory, or the word "installed". `tell` gets one line a slow step.

    Raises SourceError: no such path, not a repository, no such revision, no FlyDSL kernel in it, no FlyDSL to be had.
    """
    require("triton")
    if where == "installed":
        if revision is not None:
            raise SourceError("--candidate is a git revision: it does not go with --aiter installed")
        return _installed_aiter(tell)
    path = Path(where).expanduser()
    if not os.path.exists(path):  # False for a name that is too long, where Path.exists raises
        raise SourceError(
            f"--aiter {where}: no such path; give a git checkout of aiter, a bare git directory, or `installed`"
        )
    git_dir = _git(path, "rev-parse", "--absolute-git-dir", problem=f"--aiter {where}: not a git repository")
    if revision is None:
        revision = "HEAD"
        _tell_if_dirty(path, tell)
    if revision.startswith("-"):
        raise SourceError(f"--candidate {revision}: not a revision")
    wanted = f"--candidate {revision}: no such revision in {where}; `git -C {where} tag` lists the tags"
    commit = _git(path, "rev-parse", "--verify", "--quiet", f"{revision}^{{commit}}", problem=wanted)
    files = _git(path, "ls-tree", "-r", "--full-tree", "--name-only", commit, "aiter/ops", problem=wanted).splitlines()
    modules = _wrapper_modules(lambda module: module.replace(".", "/") + ".py" in files, f"aiter {revision}")
    pin = _pinned_flydsl(
        _git(path, "show", f"{commit}:requirements.txt", problem=f"aiter {revision} has no requirements.txt"), revision
    )
    tree = _extract(Path(git_dir), commit, tell)
    return Source(
        "aiter", f"aiter {revision} ({commit[:12]})", commit, modules, str(tree), pin, _private_flydsl(pin, tell)
    )


def _tell_if_dirty(path: Path, tell: Callable[[str], None]) -> None:
    """HEAD is what is committed: say so where a checkout holds more."""
    bare = _git(path, "rev-parse", "--is-bare-repository", problem=f"--aiter {path}: not a git repository")
    if bare == "false" and _git(
        path, "status", "--porcelain", "--", ":/aiter", problem=f"--aiter {path}: git status fails"
    ):
        tell(f"note: {path} has uncommitted changes under aiter/; HEAD is judged without them")


def _installed_aiter(tell: Callable[[str], None]) -> Source:
    spec = importlib.util.find_spec("aiter")
    if spec is None or not spec.submodule_search_locations:
        raise SourceError("--aiter installed: no package `aiter` in this environment")
    package = Path(next(iter(spec.submodule_search_locations)))
    version = next((importlib.metadata.version(name) for name in ("amd-aiter", "aiter") if _has(name)), "unknown")
    modules = _wrapper_modules(
        lambda module: (package.parent / (module.replace(".", "/") + ".py")).exists(), f"installed aiter {version}"
    )
    return Source(
        "aiter", f"aiter {version} (installed)", version, modules, str(package.parent), _version_or_error("flydsl"), ""
    )


def _has(distribution: str) -> bool:
    try:
        importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return False
    return True


def _wrapper_modules(exists: Callable[[str], bool], label: str) -> dict[str, str]:
    """The module of each kernel's wrapper; SourceError when this aiter lacks one."""
    found = {}
    for kernel, candidates in {"flydsl": FLYDSL_MODULES, "triton": TRITON_MODULES}.items():
        module = next((name for name in candidates if exists(name)), None)
        if module is None:
            hint = "; it is in v0.1.16.post4 to .post6, v0.1.18 and later, not in v0.1.17" if kernel == "flydsl" else ""
            raise SourceError(f"{label} has no {kernel} fp8_mqa_logits kernel{hint}")
        found[kernel] = module
    return found


def _git_environment() -> dict[str, str]:
    """Without GIT_DIR and its like, which git hooks set and which would name another repository than the one given."""
    return {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}


def _git(path: Path, *arguments: str, problem: str) -> str:
    command = ["git", "-C", str(path), "-c", "safe.directory=*", *arguments]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True, env=_git_environment())
    except FileNotFoundError:
        raise SourceError("git is not installed: it reads the aiter repository") from None
    except (subprocess.CalledProcessError, NotADirectoryError):
        raise SourceError(problem) from None
    return done.stdout.strip()


def _pinned_flydsl(requirements: str, revision: str) -> str:
    match = re.search(r"^flydsl==([0-9][0-9A-Za-z.+!-]*)\s*$", requirements, re.MULTILINE)
    if match is None:
        raise SourceError(f"aiter {revision} pins no FlyDSL in requirements.txt (flydsl==X.Y.Z)")
    return match[1]


def _extract(git_dir: Path, commit: str, tell: Callable[[str], None]) -> Path:
    """Python files of aiter/ at `commit`, in the cache; complete or not there at all."""
    wanted = cache_folder() / "aiter" / commit
    if wanted.exists():
        return wanted
    tell(f"extracting aiter {commit[:12]}")
    command = [
        "git",
        "--git-dir",
        str(git_dir),
        "-c",
        "safe.directory=*",
        "archive",
        "--format=tar",
        commit,
        "aiter/ops",
        "aiter/jit/utils",
    ]
    try:
        archive = subprocess.run(command, capture_output=True, check=True, env=_git_environment()).stdout
    except subprocess.CalledProcessError as error:
        raise SourceError(f"cannot read aiter {commit[:12]}: {error.stderr.decode(errors='replace').strip()}") from None

    def fill(folder: Path) -> None:
        with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
            members = [member for member in tar if member.isfile() and member.name.endswith(".py")]
            tar.extractall(folder, members, filter="data")

    return _into_cache(wanted, fill)


def _private_flydsl(version: str, tell: Callable[[str], None]) -> str:
    """Folder with FlyDSL `version`, "" when the environment has exactly it. Fetched with pip when it is not in the cache."""
    if _has("flydsl") and importlib.metadata.version("flydsl") == version:
        return ""
    wanted = cache_folder() / "flydsl" / f"{version}-py{sys.version_info.major}{sys.version_info.minor}"
    if wanted.exists():
        return str(wanted)
    tell(f"fetching flydsl {version} into {wanted} (about 75 MB)")

    def fill(folder: Path) -> None:
        command = [
            sys.executable,
            "-m",
            "pip",
            "install",
            "--quiet",
            "--no-deps",
            "--disable-pip-version-check",
            "--target",
            str(folder),
        ]
        # cwd: `python -m` would take a folder named pip out of the user's
        done = subprocess.run([*command, f"flydsl=={version}"], capture_output=True, text=True, cwd=folder)
        if done.returncode:
            reason = (done.stderr.strip().splitlines() or ["pip failed"])[-1]
            raise SourceError(f"cannot fetch flydsl {version}: {reason}")

    return str(_into_cache(wanted, fill))


def _into_cache(wanted: Path, fill: Callable[[Path], None]) -> Path:
    """Fill a new folder and rename it to `wanted`: killed midway or run twice, the cache holds whole folders only."""
    try:
        wanted.parent.mkdir(parents=True, exist_ok=True)
        folder = Path(tempfile.mkdtemp(prefix=".partial-", dir=wanted.parent))
    except OSError as error:
        raise SourceError(f"cannot write to the cache {wanted.parent}: {error.strerror}; set XDG_CACHE_HOME") from None
    try:
        fill(folder)
        folder.chmod(0o755)
        os.rename(folder, wanted)
    except OSError as error:
        if not wanted.exists():  # else another process was first, and its folder is as good
            raise SourceError(f"cannot fill the cache {wanted}: {error.strerror}") from None
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return wanted
