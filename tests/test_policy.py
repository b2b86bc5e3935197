# SPDX-License-Identifier: Apache-2.0
"""The policy file: what it may say, and what it does to a verdict."""

from __future__ import annotations

import datetime
from pathlib import Path

import pytest

from parity.checks import BOTH
from parity.compare import Finding
from parity.contract import contract
from parity.contract_judge import CHECK
from parity.devices import Device
from parity.evidence import Record
from parity.gate import State, decide
from parity.gate_contract import unused
from parity.matrix import quick_cases
from parity.policy import Policy, PolicyError, default_policy, load_policy
from parity.report.terminal import contract_text
from parity.run import again_contract
from tests.test_gate import clean

ENTRY = """
[[accepted]]
rows = ["q-apart"]
sources = ["made *"]
text = "wrong logits"
reason = "a made-up one"
reference = "nowhere"
accepted_by = "the tests"
until = 2027-01-31
"""
TODAY = datetime.date(2026, 12, 1)
ROWS = contract()[:3]
assert ROWS[0].name == "q-apart"


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "policy.toml"
    path.write_text(text)
    return path


def test_the_default_policy_can_be_read_and_is_about_aiter_alone() -> None:
    policy = load_policy(default_policy())
    assert policy.name == "default.toml" and policy.accepted
    assert all(pattern.startswith("aiter") for entry in policy.accepted for pattern in entry.sources)
    assert all(TODAY < entry.until < datetime.date(2028, 1, 1) for entry in policy.accepted)
    # a text that any finding holds would accept them all
    assert min(len(entry.text) for entry in policy.accepted) >= len("logits differ")


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (("rows", "row"), r"entry 1: missing \['rows'\], unknown \['row'\]"),
        (('["q-apart"]', '"q-apart"'), "rows is a list of names, not 'q-apart'"),
        (('["q-apart"]', "[]"), "rows is a list of names"),
        (('["made *"]', "[3]"), "sources is a list of names"),
        (("q-apart", "q-far"), "no row of the contract is called q-far"),
        (('"wrong logits"', '" "'), "text is a text"),
        (("2027-01-31", '"2027-01-31"'), "until is a date"),
        (("2027-01-31", "2027-01-31T00:00:00"), "until is a date"),
        (("[[accepted]]", "[accepted]"), "unknown form of `accepted`"),
        (("[[accepted]]", "[[allowed]]"), "unknown allowed"),
        (("[[accepted]]", "[[accepted"), "is not TOML"),
    ],
    ids=str,
)
def test_refusals(tmp_path: Path, change: tuple[str, str], text: str) -> None:
    path = written(tmp_path, ENTRY.replace(*change))
    with pytest.raises(PolicyError, match=text) as refused:
        load_policy(path)
    assert str(path) in str(refused.value) and "\n" not in str(refused.value)


def test_the_same_difference_is_accepted_once(tmp_path: Path) -> None:
    path = written(tmp_path, ENTRY + ENTRY.replace('["q-apart"]', '["q-wide", "q-apart"]'))
    with pytest.raises(PolicyError, match="entry 2: accepts q-apart again, as entry 1 does"):
        load_policy(path)
    other = written(tmp_path, ENTRY + ENTRY.replace("wrong logits", "an error"))  # of two findings of one row
    assert len(load_policy(other).accepted) == 2


def test_a_row_accepted_and_without_a_difference_is_named(tmp_path: Path) -> None:
    policy = load_policy(written(tmp_path, ENTRY))
    assert unused(records(), ROWS, policy) == ["q-apart"]
    assert unused(records("wrong logits", "fail"), ROWS, policy) == [] == unused([], ROWS, policy)
    other = load_policy(written(tmp_path, ENTRY.replace("made *", "aiter *")))
    assert unused(records(), ROWS, other) == []
    text = contract_text(records()[-3:], [], unused=["q-apart"])
    assert text == "contract: 3 rows, no difference; 1 accepted by the policy without a difference: q-apart"


def test_unreadable_files(tmp_path: Path) -> None:
    with pytest.raises(PolicyError, match="cannot read policy /missing: No such file"):
        load_policy(Path("/missing"))
    (tmp_path / "binary").write_bytes(b"\xff\xfe")
    with pytest.raises(PolicyError, match="is not TOML"):
        load_policy(tmp_path / "binary")


def records(text: str = "", status: str = "pass") -> list[Record]:
    findings = (Finding(CHECK, None, None, None, None, text),) if text else ()
    made = [
        Record(CHECK, row.case, BOTH, "made up", "executor", "pass", (), {}, row.to_json(), "0" * 64, {})
        for row in ROWS
    ]
    if text:
        made[0] = Record(
            CHECK, ROWS[0].case, BOTH, "made up", "executor", status, findings, {}, ROWS[0].to_json(), "0" * 64, {}
        )
    return clean() + made


def verdict(
    tmp_path: Path, found: list[Record], *, today: datetime.date = TODAY, policy: str = ENTRY
) -> tuple[State, str]:
    decided = decide(found, quick_cases(), rows=ROWS, policy=load_policy(written(tmp_path, policy)), today=today)
    return decided.state, decided.line()


def test_a_kept_contract_passes_and_stands_in_the_verdict(tmp_path: Path) -> None:
    state, line = verdict(tmp_path, records())
    assert state is State.PASS and line.endswith("23 cases, contract of 3 rows]")


def test_an_accepted_difference_passes_and_is_counted(tmp_path: Path) -> None:
    state, line = verdict(tmp_path, records("flydsl gives wrong logits", "fail"))
    assert state is State.PASS and line.endswith("contract of 3 rows, 1 differences accepted by policy.toml]")


@pytest.mark.parametrize(
    ("text", "policy"),
    [
        ("another difference", ENTRY),
        ("flydsl gives wrong logits", ENTRY.replace("q-apart", "q-wide")),
        ("flydsl gives wrong logits", ENTRY.replace("made *", "aiter *")),
        ("flydsl gives wrong logits", ""),
    ],
)
def test_any_other_difference_fails(tmp_path: Path, text: str, policy: str) -> None:
    state, line = verdict(tmp_path, records(text, "fail"), policy=policy)
    assert state is State.FAIL and line.startswith(f"FAIL: contract broken or unproven in 1 of 3 rows: {text} [")


def test_an_expired_acceptance_fails_and_says_so(tmp_path: Path) -> None:
    last = datetime.date(2027, 1, 31)
    assert verdict(tmp_path, records("wrong logits", "fail"), today=last)[0] is State.PASS
    state, line = verdict(tmp_path, records("wrong logits", "fail"), today=last + datetime.timedelta(days=1))
    assert state is State.FAIL and "(accepted by the tests until 2027-01-31 only: policy policy.toml)" in line


def test_without_proof_there_is_no_pass(tmp_path: Path) -> None:
    found = records()
    for broken in (found[:-1], [*found, found[-1]], records("unsupported: v_odd", "unsupported")):
        assert verdict(tmp_path, broken)[0] is State.NOT_VALIDATED
    other = [
        *found[:-1],
        Record(CHECK, ROWS[2].case, BOTH, "made up", "executor", "pass", (), {}, ROWS[1].to_json(), "0" * 64, {}),
    ]
    assert verdict(tmp_path, other)[0] is State.NOT_VALIDATED
    assert decide(found, quick_cases(), rows=ROWS, policy=Policy("none"), today=TODAY).state is State.PASS


def test_the_command_repeats_one_row_alone() -> None:
    assert again_contract(ROWS[0], Device("executor"), " --aiter=x") == (
        "pytest --pyargs parity -k 'contract-q-apart]' --device=executor --aiter=x"
    )
