# SPDX-License-Identifier: Apache-2.0
"""The policy of a gate: which differences in the contract it accepts, who decided, and until when. TOML, see fixtures/policy/default.toml."""

from __future__ import annotations

import datetime
import sys
from collections.abc import Mapping
from dataclasses import dataclass, fields
from fnmatch import fnmatchcase
from itertools import product
from pathlib import Path
from typing import Any

from parity.contract import contract

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


class PolicyError(Exception):
    """A policy file that cannot be read or says something else than a policy does. The text names the file and the entry."""


@dataclass(frozen=True)
class Accepted:
    """Differences in the contract that may pass: in `rows`, of a source whose label matches one of `sources`, with `text` in the
    finding; `until`: the last day."""

    rows: tuple[str, ...]
    sources: tuple[str, ...]
    text: str
    reason: str
    reference: str
    accepted_by: str
    until: datetime.date

    def covers(self, row: str, source: str, text: str) -> bool:
        return row in self.rows and self.text in text and any(fnmatchcase(source, pattern) for pattern in self.sources)


@dataclass(frozen=True)
class Policy:
    """name: the file's; accepted: in the order of the file."""

    name: str
    accepted: tuple[Accepted, ...] = ()

    def acceptance(self, row: str, source: str, text: str) -> Accepted | None:
        """The first entry that covers a finding, expired or not."""
        return next((entry for entry in self.accepted if entry.covers(row, source, text)), None)

    def expects(self, row: str, source: str) -> bool:
        """Whether any entry accepts a difference in this row of this source."""
        return any(entry.covers(row, source, entry.text) for entry in self.accepted)


def default_policy() -> Path:
    """The policy of this project: in a checkout under fixtures/, in a wheel beside this file."""
    here = Path(__file__).resolve().parent
    packaged = here / "policy_files" / "default.toml"
    return packaged if packaged.is_file() else here.parent / "fixtures" / "policy" / "default.toml"


def load_policy(path: Path) -> Policy:
    """The policy in a file. PolicyError, in one line."""
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise PolicyError(f"cannot read policy {path}: {error.strerror}") from None
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise PolicyError(f"policy {path} is not TOML: {error}") from None
    entries = data.pop("accepted", [])
    if data or not isinstance(entries, list):
        raise PolicyError(
            f"policy {path}: unknown {', '.join(data) or 'form of `accepted`'}; it holds [[accepted]] tables alone"
        )
    accepted = tuple(_entry(entry, f"policy {path}, entry {place}") for place, entry in enumerate(entries, 1))
    seen: dict[tuple[str, str, str], int] = {}
    for place, entry in enumerate(accepted, 1):
        for key in product(entry.rows, entry.sources, (entry.text,)):
            if key in seen:
                raise PolicyError(f"policy {path}, entry {place}: accepts {key[0]} again, as entry {seen[key]} does")
            seen[key] = place
    return Policy(path.name, accepted)


def _entry(entry: Any, where: str) -> Accepted:
    names = {field.name for field in fields(Accepted)}
    if not isinstance(entry, Mapping) or set(entry) != names:
        given = set(entry) if isinstance(entry, Mapping) else set()
        raise PolicyError(f"{where}: missing {sorted(names - given)}, unknown {sorted(given - names)}")
    values: dict[str, Any] = dict(entry)
    for name in ("rows", "sources"):
        if (
            not isinstance(values[name], list)
            or not values[name]
            or not all(isinstance(part, str) for part in values[name])
        ):
            raise PolicyError(f"{where}: {name} is a list of names, not {values[name]!r}")
        values[name] = tuple(values[name])
    for name in ("text", "reason", "reference", "accepted_by"):
        if not isinstance(values[name], str) or not values[name].strip():
            raise PolicyError(f"{where}: {name} is a text, not {values[name]!r}")
    if type(values["until"]) is not datetime.date:  # a datetime is a date to isinstance
        raise PolicyError(f"{where}: until is a date (2027-06-30), not {values['until']!r}")
    unknown = sorted(set(values["rows"]) - {row.name for row in contract()})
    if unknown:
        raise PolicyError(f"{where}: no row of the contract is called {', '.join(unknown)}")
    return Accepted(**values)
