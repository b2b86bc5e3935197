# SPDX-License-Identifier: Apache-2.0
"""What the contract adds to a verdict: every required row passed, or differs in a way that the policy accepts today."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from dataclasses import dataclass

from parity.contract import Row
from parity.contract_judge import CHECK
from parity.evidence import Record
from parity.policy import Policy


@dataclass(frozen=True)
class ContractResult:
    """Texts, one a row: `failures` (differences that nobody accepted), `doubts` (no proof), `accepted`."""

    failures: tuple[str, ...] = ()
    doubts: tuple[str, ...] = ()
    accepted: tuple[str, ...] = ()


def judge_contract(
    records: Sequence[Record], rows: Sequence[Row], policy: Policy, today: datetime.date
) -> ContractResult:
    """The result for the required rows."""
    failures: list[str] = []
    doubts: list[str] = []
    accepted: list[str] = []
    for row in rows:
        mine = [record for record in records if (record.check, record.case) == (CHECK, row.case)]
        if len(mine) != 1:
            doubts.append(f"{row.case} {'missing' if not mine else f'has {len(mine)} records'}")
        elif mine[0].case_axes != row.to_json():
            doubts.append(f"{row.case}: is about another row than its name says")
        elif mine[0].status == "unsupported":
            doubts.append(mine[0].findings[0].text)
        elif mine[0].status == "fail":
            refused = [
                text for finding in mine[0].findings if (text := refusal(row, mine[0], finding.text, policy, today))
            ]
            (failures if refused else accepted).append(refused[0] if refused else mine[0].findings[0].text)
    return ContractResult(tuple(failures), tuple(doubts), tuple(accepted))


def refusal(row: Row, record: Record, text: str, policy: Policy, today: datetime.date) -> str:
    """Why a finding is not accepted, with its text; "" if it is."""
    entry = policy.acceptance(row.name, record.source, text)
    if entry is None:
        return text
    if today > entry.until:
        return f"{text} (accepted by {entry.accepted_by} until {entry.until} only: policy {policy.name})"
    return ""


def unused(records: Sequence[Record], rows: Sequence[Row], policy: Policy) -> list[str]:
    """Names of rows that the policy accepts differences in and that passed without one: for another version, or out of date."""
    passed = {record.case: record for record in records if record.check == CHECK and record.status == "pass"}
    return [row.name for row in rows if row.case in passed and policy.expects(row.name, passed[row.case].source)]
