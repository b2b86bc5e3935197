# SPDX-License-Identifier: Apache-2.0
"""Campaigns on the own FlyDSL kernel: deadly mutants are caught by the check that should, harmless ones survive with the right reason."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path

import pytest

from parity.arm import Arm
from parity.cases import Case
from parity.compare import Finding
from parity.devices import Device
from parity.evidence import Record
from parity.gfx942.mutation import Code, Mutation, draw, mutants_of, probe
from parity.matrix import case_of
from parity.mutants import Clean, Outcome, Trouble, clean_of, clean_run, judge_mutant, reaches, verdict_of
from parity.mutate import Campaign, clean_runs, run_campaign
from parity.report.mutants import as_json, as_text, write
from parity.sources import own_source
from parity.survivors import classify, harder_cases
from tests.conftest import clean_environment

Parity = Callable[..., "subprocess.CompletedProcess[str]"]
SMALL = case_of("glm-5 packed 4x150 fnuz.fn gaussian", "Small: one tile a block.")
LONG = case_of("glm-5 full 1x1100 fnuz.fn gaussian", "More tiles than blocks: the loop over tiles goes round.")
MUTATION = Mutation("1" * 64, "made_up", 64, "operand", "src1 -1", "v_max_f32_e32 v1, 0, v1", "v_max_f32_e32 v1, 0, v0",
                    "8002020b", "8000020b", "kernel.py:7")  # fmt: skip


class Bench:
    """The own FlyDSL kernel in an arm, both cases run unchanged, and its code."""

    def __init__(self, arm: Arm) -> None:
        self.arm = arm
        self.small, self.long = (clean_of(case, {"flydsl": clean_run(arm, case)}, "flydsl") for case in (SMALL, LONG))
        assert self.small.launched == self.long.launched
        self.code = Code.from_json(self.small.runs["flydsl"].code[0])
        self.every = list(mutants_of(self.code))

    def mutants(self, *, kind: str, old: str, new: str) -> list[Mutation]:
        """Those whose texts start so."""
        found = [part for part in self.every if part.kind == kind]
        return [part for part in found if part.old.startswith(old) and part.new.startswith(new)]

    def judged(self, mutation: Mutation, *cleans: Clean) -> Outcome:
        return judge_mutant(mutation, self.arm, {}, cleans or [self.small])


@pytest.fixture(scope="module")
def bench() -> Iterator[Bench]:
    with Arm(own_source(), "flydsl", Device("executor")) as arm:
        yield Bench(arm)


@pytest.mark.parametrize(
    ("kind", "old", "new", "check"),
    [
        ("opcode", "v_max_f32_e32", "v_min_f32_e32", "reference budget"),
        ("opcode", "v_add_f32_e32", "v_sub_f32_e32", "reference budget"),
        ("drop", "global_store_dword", "s_nop", "no-launch"),
        ("wait", "s_waitcnt vmcnt(0)", "s_nop", "kernel-fault missing s_waitcnt"),
        ("operand", "global_store_dword", "global_store_dword", "kernel-fault "),
        ("branch", "s_cbranch_execz", "s_cbranch_execnz", "no-launch"),
    ],
)
def test_a_deadly_mutant_is_caught_by_the_check_that_should(
    bench: Bench, kind: str, old: str, new: str, check: str
) -> None:
    outcomes = [bench.judged(mutation) for mutation in bench.mutants(kind=kind, old=old, new=new)[:12]]
    caught = [outcome for outcome in outcomes if outcome.check.startswith(check)]
    assert caught, [(outcome.mutation.new, outcome.check) for outcome in outcomes]
    assert {outcome.state for outcome in caught} == {"caught"}
    assert {outcome.case for outcome in caught} == {SMALL.id}
    assert all(outcome.text for outcome in caught)


def test_a_mutant_that_changes_nothing_survives_as_equivalent(bench: Bench) -> None:
    some = next(islice(draw([bench.code], 0), 1))
    same = replace(some, new=some.old, new_code=some.old_code)
    outcome = bench.judged(same, bench.small, bench.long)
    assert (outcome.state, outcome.differs) == ("survived", ())
    told = classify(outcome, bench.arm, [bench.small], [bench.long])
    assert (told.reason, told.evidence) == ("equivalent", "bits equal in 1 quick and 1 harder cases")


def test_what_a_harder_case_alone_catches_is_a_gap(bench: Bench) -> None:
    """The jump back to the next tile: never taken where no block has two."""
    backwards = [
        part
        for part in bench.mutants(kind="branch", old="s_branch", new="s_nop")
        if int(part.old.split()[1]) >= 1 << 15
    ]
    survived = [outcome for outcome in map(bench.judged, backwards) if outcome.state == "survived"]
    told = [classify(outcome, bench.arm, [bench.small], [bench.long]) for outcome in survived]
    assert "gap" in {outcome.reason for outcome in told}
    gap = next(outcome for outcome in told if outcome.reason == "gap")
    assert gap.evidence.startswith(f"reference -inf in {LONG.id}: ") or "unwritten" in gap.evidence


def test_bits_that_differ_within_the_budget_are_no_fault(bench: Bench) -> None:
    outcome = Outcome(bench.mutants(kind="wait", old="s_nop", new="s_nop")[0], "survived", differs=(SMALL.id,))
    told = classify(replace(outcome, mutation=replace(outcome.mutation, new_code=outcome.mutation.old_code)),
                    bench.arm, [bench.small], [])  # fmt: skip
    assert told.reason == "within budget"
    assert told.evidence == f"bits differ in 1 of 1 quick and 0 harder cases; {SMALL.id}"


def test_an_instruction_that_no_case_reaches_is_told(bench: Bench) -> None:
    end = bench.code.instructions[-1]
    beyond = Mutation(
        bench.code.sha256, bench.code.symbol, end.pc + 4, "drop", "dropped", "?", "s_nop 0", "00000000", "000080bf"
    )
    start = bench.code.instructions[0]
    first = replace(beyond, pc=start.pc, old_code=start.words[0].to_bytes(4, "little").hex())
    assert reaches(bench.arm, probe(first), SMALL)
    assert not reaches(bench.arm, probe(beyond), SMALL)
    told = classify(Outcome(beyond, "survived"), bench.arm, [bench.small], [])
    assert (told.reason, told.evidence) == ("not reached", "by 1 quick and 0 harder cases")


def test_harder_cases_keep_sizes_and_dtypes_and_vary_the_rest() -> None:
    harder = harder_cases([SMALL, LONG])
    assert len(harder) == len({case.id for case in harder}) > 12
    assert {(case.heads, case.head_dim, case.q_encoding, case.kv_encoding) for case in harder} == {
        (SMALL.heads, SMALL.head_dim, SMALL.q_encoding, SMALL.kv_encoding)
    }
    assert not {SMALL.id, LONG.id} & {case.id for case in harder}
    assert {case.window for case in harder} >= {"causal", "packed", "misaligned", "edges", "empty", "full"}


def record(kind: str, text: str, *, status: str = "fail", figures: dict[str, object] | None = None) -> Record:
    finding = (Finding(kind, None, None, None, None, text),)
    return Record("reference", "case", "flydsl", "own", "executor", status, finding, figures or {}, {}, "0", {})


@pytest.mark.parametrize(
    ("kind", "text", "status", "expected"),
    [
        (
            "kernel-fault",
            "kernel-fault: ExecutionFault: LDS race: two waves",
            "fail",
            ("caught", "kernel-fault LDS race"),
        ),
        ("timeout", "timeout: no answer within 120 s", "unsupported", ("caught", "timeout")),
        ("no-launch", "no-launch: NoLaunch: the wrapper", "unsupported", ("caught", "no-launch")),
        ("crash", "crash: the process died with signal SIGSEGV", "fail", ("caught", "crash")),
        ("budget", "3 of 9 logits outside budget", "fail", ("caught", "reference budget")),
        ("unsupported", "unsupported: denormal", "unsupported", ("unsupported", "unsupported")),
    ],
)
def test_each_end_of_a_mutant_has_its_name(kind: str, text: str, status: str, expected: tuple[str, str]) -> None:
    found = verdict_of([record(kind, text, status=status)])
    assert found is not None
    assert found == (*expected, text)


@pytest.mark.parametrize(
    ("kind", "text"), [("killed", "signal SIGKILL"), ("no-space", "full"), ("crash", "died with signal SIGINT")]
)
def test_trouble_of_the_machine_is_no_catch(kind: str, text: str) -> None:
    with pytest.raises(Trouble, match=text):
        verdict_of([record(kind, text)])


def campaign_of(cases: list[Case], wanted: int, kept: list[bool]) -> tuple[Campaign, list[str]]:
    told: list[str] = []
    campaign = run_campaign(own_source(), "flydsl", cases, wanted=wanted, seed=0, tell=told.append,
                            keep=lambda campaign: kept.append(campaign.complete))  # fmt: skip
    return campaign, told


def test_a_campaign_judges_as_many_as_asked_and_the_same_ones_each_time(bench: Bench) -> None:
    kept: list[bool] = []
    campaign, told = campaign_of([SMALL], 12, kept)
    assert told[:2] == [
        "flydsl of own kernels on executor: 1 quick cases unchanged first",
        f"1 kernels of {len(bench.code.instructions)} instructions in 1 cases",
    ]
    assert campaign.complete
    assert kept[-1] is True
    assert len(campaign.mutants) == 12
    expected = islice(draw([bench.code], 0), len(campaign.outcomes))
    assert [outcome.mutation for outcome in campaign.outcomes] == list(expected)
    assert campaign.caught >= 6
    assert all(bool(outcome.check) == (outcome.state == "caught") for outcome in campaign.mutants)
    assert all(bool(outcome.reason) == (outcome.state == "survived") for outcome in campaign.mutants)


def test_a_kernel_that_is_not_clean_unchanged_is_trouble(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    found = Record("reference", "case", "triton", "own", "executor", "fail",
                   (Finding("budget", None, None, None, None, "9 logits outside"),), {}, {}, "0", {})  # fmt: skip
    monkeypatch.setattr("parity.mutate.judge_case", lambda case, arms: [found])
    with pytest.raises(Trouble, match=r"pass none of 1 quick cases; packed-.*: triton reference: 9 logits outside"):
        clean_runs(bench.arm, {}, [SMALL])


def made_up(*, complete: bool = True) -> Campaign:
    caught = Outcome(MUTATION, "caught", "reference budget", SMALL.id, "3 of 9 logits outside budget")
    survivors = [
        Outcome(replace(MUTATION, kind="drop", note="dropped"), "survived", reason="equivalent", evidence="bits equal in 3 cases"),
        Outcome(MUTATION, "survived", differs=(LONG.id,), reason="gap", evidence=f"reference -inf in {LONG.id}: \x1b[31m"),
    ]  # fmt: skip
    odd = Outcome(MUTATION, "unsupported", "unsupported", SMALL.id, "denormal")
    return Campaign(
        "flydsl", "own kernels", 5, 21, 2, 3, [caught] * 19 + survivors + [odd], complete, 12.4, ["case-x: why"]
    )


def test_the_table_says_what_caught_and_what_survived_and_why() -> None:
    lines = as_text(made_up()).splitlines()
    assert lines[0].split() == ["kind", "mutants", "caught", "equivalent", "within", "budget", "not", "reached", "gap"]
    assert [line.split() for line in lines[1:4]] == [
        ["operand", "20", "19", "0", "0", "0", "1"], ["drop", "1", "0", "1", "0", "0", "0"], ["all", "21", "19", "1", "0", "0", "1"]]  # fmt: skip
    assert "      19  reference budget" in lines
    at = lines.index("survivors: 2")
    assert lines[at + 1] == (
        "  gap: operand, src1 -1: +0x40 v_max_f32_e32 v1, 0, v1 -> v_max_f32_e32 v1, 0, v0 (kernel.py:7) of 11111111"
    )
    assert lines[at + 2] == rf"      reference -inf in {LONG.id}: \x1b[31m"
    assert lines[at + 3].startswith("  equivalent: drop, dropped: +0x40")
    assert "left out: case-x: why" in lines
    assert lines[-1] == (
        "enough: 19 of 20 mutants that are not equivalent caught: 95.0 %, at least 95 % wanted [flydsl of own kernels, seed 5, "
        "2 kernels, 3 quick cases, 12 s, 1 redrawn (the executor does not know what they do)]"
    )


def test_the_exit_code_follows_the_share_and_whether_it_was_finished() -> None:
    assert made_up().exit_code == 0
    fewer = made_up()
    fewer.outcomes.pop(0)
    assert (fewer.exit_code, as_text(fewer).splitlines()[-1][:44]) == (
        1,
        "too few: 18 of 19 mutants that are not equiv",
    )
    assert (made_up(complete=False).exit_code, as_text(made_up(complete=False)).splitlines()[-1][:12]) == (
        2,
        "not finished",
    )
    none = Campaign("flydsl", "own", 0, 1, 1, 1, [replace(made_up().outcomes[19], reason="equivalent")], True)
    assert (none.share, none.exit_code) == (None, 1)
    assert "no mutant that is not equivalent" in as_text(none)


def test_the_report_holds_every_mutant(tmp_path: Path) -> None:
    write(made_up(), tmp_path / "report.json")
    record = json.loads((tmp_path / "report.json").read_text())
    assert record == json.loads(json.dumps(as_json(made_up())))
    assert (record["schema"], record["caught"], record["not_equivalent"], record["share"]) == (1, 19, 20, 0.95)
    assert len(record["mutants"]) == 22
    assert record["mutants"][0]["new"] == "v_max_f32_e32 v1, 0, v0"
    assert record["mutants"][-1]["state"] == "unsupported"
    assert [path.name for path in tmp_path.iterdir()] == ["report.json"]


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["mutate"], "the following arguments are required: --kernel"),
        (["mutate", "--kernel=gluon"], "invalid choice: 'gluon'"),
        (["mutate", "--kernel=flydsl", "-n", "0"], "-n 0: at least 1"),
        (["mutate", "--kernel=flydsl", "--seed=x"], "invalid int value: 'x'"),
        (
            ["mutate", "--kernel=flydsl", "--report=/missing/r.json"],
            "--report=/missing/r.json: not a file in a folder that exists",
        ),
        (["mutate", "--kernel=flydsl", "--report=/tmp"], "--report=/tmp: not a file in a folder that exists"),
        (["mutate", "--kernel=flydsl", "--aiter=/missing"], "--aiter /missing: no such path"),
    ],
)
def test_usage_is_told_in_one_line(parity: Parity, arguments: list[str], text: str) -> None:
    done = parity(*arguments)
    assert done.returncode == 3
    assert text in done.stderr
    assert "Traceback" not in done.stderr


def test_help_says_what_the_exit_codes_mean(parity: Parity) -> None:
    done = parity("mutate", "--help")
    assert done.returncode == 0
    assert "at least 95 % of the mutants that are not equivalent were caught" in " ".join(done.stdout.split())


INTERRUPTED = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in a shell's background starts with it ignored
from pathlib import Path
import parity.mutate
from parity.matrix import case_of
from parity.report.mutants import as_text, write
from parity.sources import own_source

parity.mutate._TOLD_EVERY = 0.0
case = case_of("glm-5 packed 4x150 fnuz.fn gaussian", "Small.")
campaign = parity.mutate.run_campaign(own_source(), "flydsl", [case], wanted=300, seed=0, tell=lambda line: print(line, flush=True),
                                      keep=lambda campaign: write(campaign, Path("report.json")))
print(as_text(campaign))
sys.exit(campaign.exit_code)
"""


def test_an_interrupt_leaves_a_partial_report(tmp_path: Path) -> None:
    environment = clean_environment(PYTHONPATH=os.getcwd(), TMPDIR=str(tmp_path))
    process = subprocess.Popen([sys.executable, "-c", INTERRUPTED], cwd=tmp_path, env=environment, text=True,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE)  # fmt: skip
    assert process.stdout is not None
    line = next(line for line in process.stdout if "caught," in line)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=120)
    assert process.returncode == 2, err
    assert " of 300: " in line
    assert "interrupted: what follows is a part" in out
    assert out.splitlines()[-1].startswith("not finished: ")
    report = json.loads((tmp_path / "report.json").read_text())
    assert report["complete"] is False
    assert 0 < len(report["mutants"]) < 300
    assert not list(tmp_path.glob("parity-arm*")), "the arms and their folders are gone"
