# SPDX-License-Identifier: Apache-2.0
"""The contract as pytest cases: one promise of a drop-in replacement each. `pytest parity -k contract`."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from parity.arm import Arm
from parity.contract import Row, rows_on
from parity.contract_judge import judge_row
from parity.devices import Device
from parity.evidence import Record
from parity.gate_contract import refusal
from parity.plugin import device_of
from parity.policy import Policy
from parity.report.terminal import failures_text
from parity.run import again_contract

pytestmark = pytest.mark.gfx942


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    rows = rows_on(device_of(metafunc.config))
    metafunc.parametrize("row", rows, ids=[row.case for row in rows])


def test_contract(
    row: Row,
    arms: dict[str, Arm],
    policy: Policy,
    parity_device: Device,
    repeat_options: str,
    keep_evidence: Callable[[Sequence[Record]], Any],
) -> None:
    """Both kernels do alike, or differ in a way that the policy accepts."""
    record = judge_row(row, arms)
    keep_evidence([record])
    today = datetime.date.today()
    refused = [finding for finding in record.findings if refusal(row, record, finding.text, policy, today)]
    if refused or record.status == "unsupported":
        pytest.fail(
            failures_text([record], {row.case: again_contract(row, parity_device, repeat_options)}), pytrace=False
        )
