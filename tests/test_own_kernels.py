# SPDX-License-Identifier: Apache-2.0
"""The own kernels: sizes beyond the quick cases, every planted fault caught and its rows named, bad arguments refused."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from parity.arm import Arm, ArmError
from parity.cases import Case
from parity.checks import judge_case
from parity.devices import Device
from parity.fp8 import Encoding
from parity.gate import State, decide
from parity.inputs import build_inputs
from parity.run import arms_of
from parity.sources import own_source


def case(
    *, m: int = 5, n: int = 70, heads: int = 16, head_dim: int = 64, pair: str = "fn.fn", window: str = "causal"
) -> Case:
    q, kv = (Encoding(name) for name in pair.split("."))
    return Case(window, m, n, heads, head_dim, q, kv, "gaussian", 3, 2048, "A size of this test.")


@pytest.fixture(scope="module")
def arms() -> Iterator[dict[str, Arm]]:
    with arms_of(own_source(), Device("executor")) as started:
        yield started


@pytest.mark.parametrize(
    "size",
    [
        case(),
        case(heads=128, head_dim=128, m=2),
        case(m=1, n=1, pair="fnuz.fn"),
        case(m=3, n=129, heads=32, pair="fn.fnuz", window="full"),
        case(m=9, n=65, head_dim=128, window="empty", pair="fnuz.fnuz"),
    ],
    ids=lambda size: size.id,
)
def test_right_at_other_sizes(arms: dict[str, Arm], size: Case) -> None:
    records = judge_case(size, arms)
    assert [record.findings for record in records if record.status != "pass"] == []


@pytest.mark.parametrize("kernel", ["flydsl", "triton"])
@pytest.mark.parametrize("plant", ["dropped-relu", "start-off-by-one", "neighbour-scale", "sign-extended-patch"])
def test_a_planted_fault_fails_and_names_rows(arms: dict[str, Arm], kernel: str, plant: str) -> None:
    records = judge_case(case(), arms, plants={kernel: plant})
    verdict = decide(records, [case()])
    assert verdict.state is State.FAIL
    assert kernel in verdict.reasons[0]
    reference = next(record for record in records if (record.check, record.arm) == ("reference", kernel))
    assert {finding.where[0] for finding in reference.findings if finding.where} == {0, 1, 2, 3, 4}
    other = [record for record in records if record.arm not in (kernel, "flydsl+triton")]
    assert {record.status for record in other} == {"pass"}


@pytest.mark.parametrize("kernel", ["flydsl", "triton"])
def test_what_cannot_be_planted_is_refused(arms: dict[str, Arm], kernel: str) -> None:
    inputs = build_inputs(case(pair="fnuz.fnuz"))
    with pytest.raises(ArmError, match="sign-extended-patch needs an FN operand"):
        arms[kernel].run(inputs, plant="sign-extended-patch")
    with pytest.raises(ArmError, match="plant must be None or one of dropped-relu"):
        arms[kernel].run(inputs, plant="gremlins")
