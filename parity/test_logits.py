# SPDX-License-Identifier: Apache-2.0
"""The cases as pytest cases: `pytest -n 8 parity/`, `pytest -m gfx942`, `pytest --pyargs parity`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from parity.arm import Arm
from parity.cases import Case
from parity.checks import judge_case
from parity.devices import Device
from parity.evidence import Record
from parity.matrix import runs_on
from parity.plugin import wanted_cases
from parity.report.terminal import failures_text
from parity.run import again_command

pytestmark = pytest.mark.gfx942


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    metafunc.parametrize("case", wanted_cases(metafunc.config), ids=lambda case: case.id)


def test_case(
    case: Case,
    arms: dict[str, Arm],
    parity_device: Device,
    repeat_options: str,
    keep_evidence: Callable[[Sequence[Record]], Any],
) -> None:
    """Both kernels against float64, their top-k, their repeat and their agreement: every finding, raised once."""
    if not runs_on(case, parity_device):
        pytest.skip(f"CUDA's matrix units read fn only, not {case.q_encoding.value}/{case.kv_encoding.value}")
    records = judge_case(case, arms)
    keep_evidence(records)
    failed = [record for record in records if record.status != "pass"]
    if failed:
        pytest.fail(failures_text(failed, {case.id: again_command(case, parity_device, repeat_options)}), pytrace=False)
