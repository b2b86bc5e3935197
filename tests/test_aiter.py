# SPDX-License-Identifier: Apache-2.0
"""aiter's own kernels, at the revisions whose verdict is known. CI has no aiter: set PARITY_AITER to a checkout or bare git directory."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from parity.evidence import read_evidence

AITER = os.environ.get("PARITY_AITER")
pytestmark = pytest.mark.skipif(not AITER, reason="PARITY_AITER names no checkout or bare git directory of ROCm/aiter")


def test_a_good_version_passes(parity: Callable[..., object], tmp_path: Path) -> None:
    done = parity("gate", f"--aiter={AITER}", "--candidate=v0.1.19.post2")
    assert done.returncode == 0, done.stdout + done.stderr  # type: ignore[attr-defined]
    last = done.stdout.splitlines()[-1]  # type: ignore[attr-defined]
    assert last.startswith("PASS [")
    assert (
        "gfx942 on executor, H 16/32/64/128, D 64/128, q/kv fn/fn fn/fnuz fnuz/fn fnuz/fnuz, 23 cases, contract of 107 rows, 51 differences accepted by default.toml]"
        in last
    )
    records = read_evidence(tmp_path / "where-the-user-is/parity-evidence.jsonl")
    assert {record.provenance["flydsl_pin"] for record in records} == {"0.3.0"}
    flydsl = [record for record in records if (record.arm, record.check) == ("flydsl", "reference")]
    assert {record.provenance["packages"]["flydsl"][0] for record in flydsl} == {"0.3.0"}
    assert 0.1 < max(record.figures["ratio"] for record in flydsl) < 1


def test_a_version_that_does_not_compile_for_fn_fails(parity: Callable[..., object]) -> None:
    done = parity("gate", f"--aiter={AITER}", "--candidate=v0.1.20")
    assert done.returncode == 1, done.stdout + done.stderr  # type: ignore[attr-defined]
    last = done.stdout.splitlines()[-1]  # type: ignore[attr-defined]
    assert last.startswith("FAIL: flydsl in 17 of 23 cases (q/kv fn/fn fn/fnuz fnuz/fn; fnuz/fnuz clean): ")
    assert "compile-error: AttributeError: 'int' object has no attribute '_CAPIPtr'" in last


def test_a_version_without_the_kernel_is_a_usage_error(parity: Callable[..., object]) -> None:
    done = parity("gate", f"--aiter={AITER}", "--candidate=v0.1.17")
    assert done.returncode == 3  # type: ignore[attr-defined]
    assert "aiter v0.1.17 has no flydsl fp8_mqa_logits kernel" in done.stderr  # type: ignore[attr-defined]
