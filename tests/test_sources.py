# SPDX-License-Identifier: Apache-2.0
"""Where kernels come from, on made-up git repositories; each refusal is one line that says what to do."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from parity.sources import SourceError, aiter_source, own_source, select_source
from tests.conftest import FILES, FLYDSL, Repository, aiter_files

NEWER = "aiter/ops/flydsl/kernels/mqa_logits/fp8_mqa_logits.py"


def source(path: Path, revision: str | None = "v1", *, told: list[str] | None = None):  # type: ignore[no-untyped-def]
    return aiter_source(str(path), revision, tell=[].append if told is None else told.append)


def refusal(path: Path | str, revision: str | None = "v1") -> str:
    with pytest.raises(SourceError) as refused:
        aiter_source(str(path), revision, tell=[].append)
    assert "\n" not in str(refused.value)
    return str(refused.value)


def test_a_revision_is_extracted_and_its_modules_named(repository: Repository, private_home: Path) -> None:
    told: list[str] = []
    found = source(repository.path, told=told)
    commit = repository.git("rev-parse", "v1")
    assert (found.kind, found.label, found.revision, found.flydsl, found.flydsl_path) == (
        "aiter",
        f"aiter v1 ({commit[:12]})",
        commit,
        FLYDSL,
        "",
    )
    assert found.modules == {
        "flydsl": "aiter.ops.flydsl.kernels.fp8_mqa_logits",
        "triton": "aiter.ops.triton.fp8_mqa_logits",
    }
    assert found.tree == str(private_home / "aiter" / commit)
    assert (Path(found.tree) / FILES["flydsl"]).read_text() == aiter_files()[FILES["flydsl"]]
    assert told == [f"extracting aiter {commit[:12]}"]
    told.clear()
    assert source(repository.path, told=told) == found
    assert told == []


def test_the_newer_place_of_the_kernel_and_a_bare_repository(repository: Repository, tmp_path: Path) -> None:
    repository.commit({FILES["flydsl"]: None, NEWER: "# newer\n"}, "v2")
    bare = tmp_path / "bare.git"
    subprocess.run(["git", "clone", "--quiet", "--bare", str(repository.path), str(bare)], check=True)
    assert source(bare, "v2").modules["flydsl"] == "aiter.ops.flydsl.kernels.mqa_logits.fp8_mqa_logits"
    assert source(bare, "v1").modules["flydsl"] == "aiter.ops.flydsl.kernels.fp8_mqa_logits"


def test_uncommitted_changes_are_told(repository: Repository) -> None:
    told: list[str] = []
    source(repository.path, None, told=told)
    assert not any("uncommitted" in line for line in told)
    (repository.path / FILES["triton"]).write_text("# changed\n")
    source(repository.path, None, told=told)
    assert told[-1] == f"note: {repository.path} has uncommitted changes under aiter/; HEAD is judged without them"


def test_what_cannot_be_used_is_refused_in_one_line(repository: Repository, tmp_path: Path) -> None:
    assert refusal(tmp_path / "missing").endswith(
        "no such path; give a git checkout of aiter, a bare git directory, or `installed`"
    )
    (tmp_path / "plain").mkdir()
    assert refusal(tmp_path / "plain").endswith("not a git repository")
    assert refusal(repository.path / FILES["triton"]).endswith("not a git repository")
    assert refusal(repository.path, "v9").startswith("--candidate v9: no such revision in ")
    assert refusal(repository.path, "--output=x") == "--candidate --output=x: not a revision"
    assert "no such revision" in refusal(repository.path, "$(touch x); 'v1'")
    repository.commit({FILES["flydsl"]: None}, "v0.1.17")
    assert refusal(repository.path, "v0.1.17") == (
        "aiter v0.1.17 has no flydsl fp8_mqa_logits kernel; it is in v0.1.16.post4 to .post6, v0.1.18 and later, not in v0.1.17"
    )
    repository.commit({**aiter_files(), FILES["triton"]: None}, "v3")
    assert refusal(repository.path, "v3") == "aiter v3 has no triton fp8_mqa_logits kernel"
    repository.commit({**aiter_files(), "requirements.txt": "pandas\n"}, "v4")
    assert refusal(repository.path, "v4") == "aiter v4 pins no FlyDSL in requirements.txt (flydsl==X.Y.Z)"


def test_a_flydsl_that_cannot_be_fetched(
    repository: Repository, private_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository.commit(aiter_files(pin="0.0.1"), "v5")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    assert refusal(repository.path, "v5").startswith("cannot fetch flydsl 0.0.1: ")
    assert list((private_home / "flydsl").iterdir()) == []


@pytest.mark.skipif(
    os.geteuid() == 0 and not Path("/proc/self/mountinfo").exists(), reason="needs a folder that cannot be written"
)
def test_a_cache_that_cannot_be_written(repository: Repository, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "/proc/self/nothing")
    assert refusal(repository.path).startswith("cannot write to the cache /proc/self/nothing/logits-parity/aiter: ")
    assert refusal(repository.path).endswith("set XDG_CACHE_HOME")


def test_two_processes_extract_at_once(repository: Repository, private_home: Path) -> None:
    code = (
        "import sys; from parity.sources import aiter_source; print(aiter_source(sys.argv[1], 'v1', tell=print).tree)"
    )
    started = [
        subprocess.Popen([sys.executable, "-c", code, str(repository.path)], stdout=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    trees = {process.communicate()[0].splitlines()[-1] for process in started}
    assert [process.returncode for process in started] == [0, 0]
    assert trees == {str(entry) for entry in (private_home / "aiter").iterdir()}


def test_git_variables_of_the_caller_do_not_choose_the_repository(
    repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    decoy = Repository(tmp_path / "decoy")
    decoy.commit(aiter_files() | {"decoy": "another commit"}, "v1")
    monkeypatch.setenv("GIT_DIR", str(decoy.path / ".git"))
    found = source(repository.path)
    monkeypatch.delenv("GIT_DIR")
    assert found.revision == repository.git("rev-parse", "v1") != decoy.git("rev-parse", "v1")


def test_a_subfolder_of_a_checkout_is_the_checkout(repository: Repository) -> None:
    assert source(repository.path / "aiter").revision == repository.git("rev-parse", "v1")


def test_empty_options_and_endless_paths(repository: Repository) -> None:
    with pytest.raises(SourceError, match="--aiter is empty"):
        select_source("", "v1", tell=print)
    with pytest.raises(SourceError, match="--candidate is empty"):
        select_source(str(repository.path), "", tell=print)
    assert "no such path" in refusal("x" * 5000)


def test_options_that_do_not_fit_together(repository: Repository) -> None:
    with pytest.raises(SourceError, match="--candidate needs --aiter"):
        select_source(None, "v1", tell=print)
    with pytest.raises(SourceError, match="does not go with --aiter installed"):
        select_source("installed", "v1", tell=print)
    with pytest.raises(SourceError, match="no package `aiter` in this environment"):
        select_source("installed", None, tell=print)


def test_an_installed_aiter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for path, text in aiter_files().items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    (tmp_path / "aiter/__init__.py").write_text("raise ImportError('the whole of aiter must not be imported')\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    found = select_source("installed", None, tell=print)
    assert (found.tree, found.flydsl, found.label) == (str(tmp_path), FLYDSL, "aiter unknown (installed)")


def test_own_kernels() -> None:
    found = own_source()
    assert found.modules == {"flydsl": "parity.kernels.own_flydsl", "triton": "parity.kernels.own_triton"}
    assert found.flydsl == FLYDSL
