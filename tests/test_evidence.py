# SPDX-License-Identifier: Apache-2.0
"""Records survive the round trip, malformed ones are refused, and the file appears whole or not at all."""

from __future__ import annotations

import contextlib
import json
import math
import os
from pathlib import Path

import pytest

from parity.compare import Finding
from parity.evidence import EvidenceError, EvidenceFile, Record, read_evidence

FINDING = Finding("budget", (5, 31), math.inf, -1.5, 0.25, "worst [5, 31]: ...")


def record(status: str = "fail", findings: tuple[Finding, ...] = (FINDING,), **changes: object) -> Record:
    fields: dict[str, object] = {
        "check": "reference", "case": "some-case", "arm": "flydsl", "source": "made up", "where": "executor", "status": status,
        "findings": findings, "figures": {"ratio": math.nan, "worst": [5, 31]}, "case_axes": {"m": 3}, "inputs_sha256": "0" * 64,
        "provenance": {"python": "3.11"},
    }  # fmt: skip
    return Record(**(fields | changes))  # type: ignore[arg-type]


def test_a_line_is_strict_json_and_comes_back_equal() -> None:
    line = record().to_line()
    assert "\n" not in line
    assert json.loads(line, parse_constant=pytest.fail)["figures"]["ratio"] == "nan"
    again = Record.from_line(line)
    assert again.findings == (FINDING,)
    assert again.to_line() == line


def test_a_status_must_fit_its_findings() -> None:
    with pytest.raises(EvidenceError, match="status pass with 1 findings"):
        record("pass")
    with pytest.raises(EvidenceError, match="status fail with 0 findings"):
        record("fail", ())
    with pytest.raises(EvidenceError, match="'skipped' is not one of pass, fail, unsupported"):
        record("skipped")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"schema": 2}, "not evidence of schema 1"),
        ({"arm": None, "remove": "arm"}, r"missing fields \['arm'\]"),
        ({"speed": 1}, r"unknown fields \['speed'\]"),
        ({"findings": [{"kind": "budget"}]}, "a finding is malformed"),
        ({"status": "maybe"}, "not one of"),
        ({"schema": True}, "not evidence of schema 1"),
        ({"check": {}}, "check must be str, not dict"),
        ({"figures": []}, "figures must be dict, not list"),
    ],
)
def test_malformed_records_are_refused(change: dict[str, object], message: str) -> None:
    data = json.loads(record().to_line()) | change
    data.pop(str(data.pop("remove", "")), None)
    with pytest.raises(EvidenceError, match=message):
        Record.from_line(json.dumps(data))


def test_the_file_is_renamed_when_finished(tmp_path: Path) -> None:
    path = tmp_path / "evidence.jsonl"
    path.write_text("older\n")
    with EvidenceFile(path) as file:
        file.write([record().to_line()])
        assert path.read_text() == "older\n"
        assert file.partial.read_text().count("\n") == 1
    assert [entry.key for entry in read_evidence(path)] == [("reference", "some-case", "flydsl")]
    assert list(tmp_path.iterdir()) == [path]


def test_an_exception_keeps_what_was_written_under_the_partial_name(tmp_path: Path) -> None:
    path = tmp_path / "evidence.jsonl"
    file = EvidenceFile(path)
    file.write([record().to_line()])
    with pytest.raises(KeyError), file:
        raise KeyError
    assert not path.exists()
    assert len(read_evidence(file.partial)) == 1


def test_an_exception_before_the_first_record_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(KeyError), EvidenceFile(tmp_path / "evidence.jsonl"):
        raise KeyError
    assert list(tmp_path.iterdir()) == []


def test_paths_that_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(EvidenceError, match="No such file or directory"):
        EvidenceFile(tmp_path / "missing" / "evidence.jsonl")
    with pytest.raises(EvidenceError, match="it is a folder"):
        EvidenceFile(tmp_path)


def test_a_link_is_followed_and_a_device_refused(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "target.jsonl")
    with EvidenceFile(tmp_path / "link") as file:
        file.write([record().to_line()])
    assert (tmp_path / "link").is_symlink()
    assert len(read_evidence(tmp_path / "target.jsonl")) == 1
    os.mkfifo(tmp_path / "pipe")
    for special in (tmp_path / "pipe", Path("/dev/null")):
        with pytest.raises(EvidenceError, match="it is no regular file"):
            EvidenceFile(special)


def test_a_full_disk_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = EvidenceFile(tmp_path / "evidence.jsonl")
    with contextlib.suppress(OSError), open("/dev/full", "w") as full:  # closing it fails again
        monkeypatch.setattr(file, "_file", full)
        with pytest.raises(EvidenceError, match="No space left on device"):
            file.write([record().to_line()])
    file.abandon()
    assert list(tmp_path.iterdir()) == []


def test_a_bad_line_is_named(tmp_path: Path) -> None:
    path = tmp_path / "evidence.jsonl"
    path.write_text(record().to_line() + "\n{half")
    with pytest.raises(EvidenceError, match=r"evidence.jsonl, line 2: not JSON"):
        read_evidence(path)
