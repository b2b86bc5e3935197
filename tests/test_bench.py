# SPDX-License-Identifier: Apache-2.0
"""The benchmark: its rows, its JSON, its exit code. Figures themselves are not tested: machines are shared."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from parity.gfx942 import bench, launch, load
from parity.gfx942.bench import Row, text_of
from parity.gfx942.bench_kernels import ALU, MATRIX, TURNS, assembly_of


def run(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "parity.gfx942.bench", *arguments], capture_output=True, text=True, cwd=cwd
    )


def test_rows_are_printed_and_written(tmp_path: Path) -> None:
    done = run("--only", "memory", "--only", "instructions", "--repeats", "1", "--json", "rows.json", cwd=tmp_path)
    assert done.returncode in (0, 1), done.stderr
    written = json.loads((tmp_path / "rows.json").read_text())
    assert done.stdout.splitlines()[0] == written["machine"]
    assert [row["name"] for row in written["rows"]][:2] == [
        "memory, 4,096 against 16 workgroups",
        "v_mfma_f32_16x16x32_fp8_fp8",
    ]
    assert all(row["figure"] is not None for row in written["rows"])
    assert done.returncode == int(any(row["missed"] for row in written["rows"]))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--only", "speed"], "invalid choice: 'speed'"),
        (["--repeats", "0"], "--repeats must be at least 1"),
        (["--bar", "1"], "unrecognized arguments"),
    ],
)
def test_bad_arguments_are_told(arguments: list[str], message: str, tmp_path: Path) -> None:
    done = run(*arguments, cwd=tmp_path)
    assert done.returncode == 2
    assert message in done.stderr


@pytest.mark.parametrize(
    ("row", "missed", "words"),
    [
        (Row("mfma", 200.0, "/s", 300.0, least=True), True, "at least 300"),
        (Row("mfma", 300.0, "/s", 300.0, least=True), False, "at least 300"),
        (Row("gemm", 5.0, "s", 4.2), True, "at most 4.2"),
        (Row("gemm", 4.2, "s", 4.2), False, "at most 4.2"),
        (Row("free", 7.0, "s"), False, "7 s"),
        (Row("gemm", None, "s", 4.2, note="triton is not installed"), False, "not measured: triton is not installed"),
    ],
)
def test_a_missed_bar_is_said(row: Row, missed: bool, words: str) -> None:
    assert row.missed == missed
    assert words in text_of(row)
    assert ("MISSED" in text_of(row)) == missed


def test_the_benchmark_kernels_do_what_is_counted() -> None:
    """Prologue, TURNS turns and the end: the rates divide by instructions that were executed."""
    report = launch(load(assembly_of(ALU)), [bytes(8)], (2, 1, 1), (64, 1, 1), [])
    assert (report.waves, report.instructions) == (2, 2 * (2 + 71 + 4 + TURNS * (20 + 3) + 1))
    assert launch(load(assembly_of(MATRIX["16x16x32"])), [bytes(8)], (1, 1, 1), (64, 1, 1), []).mfma == 4 * TURNS
    assert bench.median_seconds(lambda: None, 3) >= 0
