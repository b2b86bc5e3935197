# SPDX-License-Identifier: Apache-2.0
"""The engine: where it is built and kept."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from parity.gfx942 import native


@pytest.fixture(autouse=True)
def _fresh_library() -> Iterator[None]:
    native.library.cache_clear()
    yield
    native.library.cache_clear()


def works() -> bool:
    """Whether the library answers."""
    return native.library().operation(0).contents.name == b"v_mov_b32"


def test_built_once_and_kept_in_the_cache_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert works()
    (library,) = (tmp_path / "logits-parity").iterdir()  # nothing else is left behind
    before = library.stat().st_mtime_ns
    native.library.cache_clear()
    assert works()
    assert library.stat().st_mtime_ns == before


def test_another_source_is_another_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert works()
    changed = tmp_path / "engine"
    shutil.copytree(native.SOURCE, changed)
    (changed / "engine.c").write_text((changed / "engine.c").read_text() + "\n// changed\n")
    monkeypatch.setattr(native, "SOURCE", changed)
    native.library.cache_clear()
    assert works()
    assert len(list((tmp_path / "logits-parity").iterdir())) == 2


def test_a_cache_that_cannot_be_written_is_not_needed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    blocker = tmp_path / "file"
    blocker.write_text("no folder")
    monkeypatch.setenv("XDG_CACHE_HOME", str(blocker))
    assert works()
