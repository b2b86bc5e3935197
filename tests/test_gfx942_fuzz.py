# SPDX-License-Identifier: Apache-2.0
"""Ten thousand mutated code objects and texts: no crash, no hang, no error but the executor's own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from parity.gfx942 import BadCodeObject, load


def test_ten_thousand_mutated_inputs() -> None:
    command = [sys.executable, "-m", "tests.fuzz", "--count", "10000", "--texts", "30"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=Path(__file__).parents[1], timeout=900)
    assert done.returncode == 0, done.stderr[-2000:]
    outcomes = dict(part.split("=") for part in done.stdout.split())
    assert sum(map(int, outcomes.values())) == 10_030
    # the mutations reach all stages: the reader, the translation, execution, its faults
    assert {"BadCodeObject", "Unsupported", "ran", "out-of-bounds", "uninitialised", "text-BadCodeObject"} <= set(
        outcomes
    )
    assert int(outcomes["ran"]) > 300


def test_a_string_without_end_is_told_with_its_line() -> None:
    """clang's assembler does not return from such a line."""
    with pytest.raises(BadCodeObject, match="line 2: a string that does not end"):
        load('.text\nds_\\ead_b128 v[4:7], v7 offset:0"1234\n')


def test_text_that_is_no_unicode() -> None:
    with pytest.raises(BadCodeObject):
        load(".text\n\udc80 \0 v_nop\n")
