# SPDX-License-Identifier: Apache-2.0
"""The compiled part: where it is built and kept, and fused multiply-add with one rounding."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from parity.gfx942 import native


@pytest.fixture(autouse=True)
def _fresh_library() -> Iterator[None]:
    native.library.cache_clear()
    yield
    native.library.cache_clear()


def product() -> float:
    return float(native.fma_f32(np.float32([2]), np.float32([3]), np.float32([1]))[0])


def test_built_once_and_kept_in_the_cache_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert product() == 7
    (library,) = (tmp_path / "logits-parity").iterdir()  # nothing else is left behind
    before = library.stat().st_mtime_ns
    native.library.cache_clear()
    assert product() == 7
    assert library.stat().st_mtime_ns == before


def test_another_source_is_another_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert product() == 7
    changed = tmp_path / "native.c"
    changed.write_text(native.SOURCE.read_text() + "\n// changed\n")
    monkeypatch.setattr(native, "SOURCE", changed)
    native.library.cache_clear()
    assert product() == 7
    assert len(list((tmp_path / "logits-parity").iterdir())) == 2


def test_a_cache_that_cannot_be_written_is_not_needed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    blocker = tmp_path / "file"
    blocker.write_text("no folder")
    monkeypatch.setenv("XDG_CACHE_HOME", str(blocker))
    assert product() == 7


def test_fma_rounds_once_and_broadcasts() -> None:
    x = np.float32(1 + 2**-12)
    left, right, addend = np.full((3, 1), x), np.full((1, 4), x), np.float32([[-(1 + 2**-11)]])
    assert (native.fma_f32(left, right, addend) == np.full((3, 4), 2**-24, np.float32)).all()
    assert x * x + addend[0, 0] == 0  # two roundings
