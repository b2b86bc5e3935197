# SPDX-License-Identifier: Apache-2.0
"""Evidence: one JSON line per (check, case, arm), with everything needed to repeat and to doubt it.

    {"schema": 1, "check": "reference", "case": "causal-q17-...", "arm": "flydsl", "source": "aiter v0.1.20", "where": "executor",
     "status": "pass", "findings": [...], "figures": {...}, "case_axes": {...}, "inputs_sha256": "...", "provenance": {...}}

JSON has no NaN or infinity; such a number is written as the string "nan", "inf" or "-inf", which no limit accepts.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from types import TracebackType
from typing import Any

from parity.compare import Finding

SCHEMA = 1
STATUSES = ("pass", "fail", "unsupported")


class EvidenceError(Exception):
    """A record that is not valid evidence, or a file that cannot be read or written."""


@dataclass(frozen=True)
class Record:
    """status: pass; fail (findings say why); unsupported (the executor could not run it: no verdict on the kernel).

    arm: the kernel, or "flydsl+triton" for their agreement. where: "executor", or "gpu gfx942 (name)". figures: numbers by name.
    provenance: kernel file and hash, packages with version and path, revision, Python. Invalid values raise EvidenceError.
    """

    check: str
    case: str
    arm: str
    source: str
    where: str
    status: str
    findings: tuple[Finding, ...]
    figures: dict[str, Any]
    case_axes: dict[str, Any]
    inputs_sha256: str
    provenance: dict[str, Any]

    def __post_init__(self) -> None:
        for field in fields(self):
            kind = {"findings": tuple, "figures": dict, "case_axes": dict, "provenance": dict}.get(field.name, str)
            if not isinstance(getattr(self, field.name), kind):
                raise EvidenceError(
                    f"{field.name} must be {kind.__name__}, not {type(getattr(self, field.name)).__name__}"
                )
        if self.status not in STATUSES:
            raise EvidenceError(f"status {self.status!r} is not one of {', '.join(STATUSES)}")
        if (self.status == "pass") == bool(self.findings):
            raise EvidenceError(f"{self.key}: status {self.status} with {len(self.findings)} findings")

    @property
    def key(self) -> tuple[str, str, str]:
        return self.check, self.case, self.arm

    def to_line(self) -> str:
        """One line of JSON, without its line break."""
        return json.dumps({"schema": SCHEMA} | _jsonable(asdict(self)), allow_nan=False, sort_keys=True)

    @classmethod
    def from_line(cls, line: str) -> Record:
        """The record of a line that to_line wrote. EvidenceError: another schema, a missing or an unknown field."""
        try:
            data = json.loads(line)
        except json.JSONDecodeError as error:
            raise EvidenceError(f"not JSON: {error}") from None
        names = {field.name for field in fields(cls)}
        if not isinstance(data, dict) or type(data.get("schema")) is not int or data.pop("schema") != SCHEMA:
            raise EvidenceError(f"not evidence of schema {SCHEMA}")
        if set(data) != names:
            raise EvidenceError(
                f"missing fields {sorted(names - set(data))}, unknown fields {sorted(set(data) - names)}"
            )
        try:
            findings = tuple(Finding(**_restored(finding)) for finding in data.pop("findings"))
        except (TypeError, AttributeError) as error:
            raise EvidenceError(f"a finding is malformed: {error}") from None
        return cls(findings=findings, **data)


_SPECIAL = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}


def _jsonable(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return "nan" if math.isnan(value) else ("inf" if value > 0 else "-inf")
    if isinstance(value, dict):
        return {str(key): _jsonable(part) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [_jsonable(part) for part in value]
    return value


def _restored(finding: dict[str, Any]) -> dict[str, Any]:
    numbers = {
        name: _SPECIAL.get(finding[name], finding[name]) for name in ("actual", "expected", "limit") if name in finding
    }
    where = {"where": tuple(finding["where"])} if finding.get("where") is not None else {}
    return finding | numbers | where


class EvidenceFile:
    """Writes records as they come, into PATH.partial-PID; finish() renames it to PATH. A killed run leaves whole lines, not a PATH.

    Context manager: leaving it normally finishes; leaving it by an exception keeps the partial file, if anything is in it, and
    does not touch PATH. Every OSError becomes an EvidenceError that names the file.
    """

    def __init__(self, path: Path) -> None:
        if path.is_dir():
            raise EvidenceError(f"cannot write evidence to {path}: it is a folder")
        self.given = path
        path = path.resolve()  # through a symbolic link, instead of replacing it
        if path.exists() and not path.is_file():
            raise EvidenceError(f"cannot write evidence to {path}: it is no regular file")
        self.path = path
        self.partial = path.with_name(f"{path.name}.partial-{os.getpid()}")
        try:
            self._file = open(self.partial, "w", encoding="utf-8")  # noqa: SIM115 (closed by finish or abandon)
        except OSError as error:
            raise EvidenceError(f"cannot write evidence to {path}: {error.strerror}") from None

    def write(self, lines: Iterable[str]) -> None:
        """Append lines as Record.to_line gives them; on disk when this returns."""
        try:
            self._file.write("".join(line + "\n" for line in lines))
            self._file.flush()
        except OSError as error:
            raise EvidenceError(f"cannot write evidence to {self.partial}: {error.strerror}") from None

    def finish(self) -> None:
        """Give the file its name."""
        try:
            os.fsync(self._file.fileno())
            self._file.close()
            os.replace(self.partial, self.path)
        except OSError as error:
            raise EvidenceError(f"cannot finish {self.path}: {error.strerror}") from None

    def abandon(self) -> None:
        """Close without giving the file its name; an empty one is removed."""
        with contextlib.suppress(OSError):  # what led here is the error to show
            self._file.close()
        with contextlib.suppress(OSError):
            if not self.partial.stat().st_size:
                self.partial.unlink()

    def __enter__(self) -> EvidenceFile:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.finish()
        else:
            self.abandon()


def read_evidence(path: Path) -> list[Record]:
    """All records of a file. EvidenceError names the file and the line."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise EvidenceError(f"cannot read {path}: {error}") from None
    records = []
    for number, line in enumerate(lines, 1):
        try:
            records.append(Record.from_line(line))
        except EvidenceError as error:
            raise EvidenceError(f"{path}, line {number}: {error}") from None
    return records
