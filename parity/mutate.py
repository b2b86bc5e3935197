# SPDX-License-Identifier: Apache-2.0
"""Machine-code mutation: would the quick checks notice one changed instruction of the compiled kernel?

    1. every quick case runs unchanged, on both kernels: what it launches, its logits, its time
    2. mutants are drawn from the code that was launched (gfx942/mutation.py), the same ones for the same seed
    3. each runs the cases that launch its code, cheapest first, through wrapper, launch, executor and judge, until one catches it
    4. survivors get a reason (survivors.py)

Two arms work at a time. What the executor turns out not to know is no mutant, and another is drawn.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from parity.arm import Arm, ArmError
from parity.cases import Case
from parity.checks import KERNELS, judge_case
from parity.devices import Device
from parity.gfx942 import native
from parity.gfx942.mutation import Code, Mutation, draw
from parity.mutants import Clean, KeptArm, Outcome, Trouble, clean_of, clean_run, judge_mutant
from parity.run import leave_cores_to_arms
from parity.sources import Source, SourceError, require
from parity.survivors import Harder, classify

Tell = Callable[[str], None]
ARMS = 2
TIMEOUT_SECONDS = 120.0  # for one mutant in one case; the largest quick case takes 6 s. More is "timeout", caught
CAUGHT_SHARE = 0.95  # of the mutants that are not equivalent
_TOLD_EVERY = 10.0  # seconds


@dataclass
class Campaign:
    """What was found so far. outcomes: of the first `wanted` mutants that are any, in the order in which they were drawn."""

    kernel: str
    source: str
    seed: int
    wanted: int
    codes: int
    cases: int
    outcomes: list[Outcome] = field(default_factory=list)
    complete: bool = False
    seconds: float = 0.0
    left_out: list[str] = field(default_factory=list)

    @property
    def mutants(self) -> list[Outcome]:
        return [outcome for outcome in self.outcomes if outcome.state != "unsupported"]

    @property
    def caught(self) -> int:
        return sum(outcome.state == "caught" for outcome in self.outcomes)

    @property
    def different(self) -> int:
        """Mutants that are not equivalent."""
        return sum(outcome.reason != "equivalent" for outcome in self.mutants)

    @property
    def share(self) -> float | None:
        """Caught, of those that are not equivalent; None where there are none."""
        return self.caught / self.different if self.different else None

    @property
    def exit_code(self) -> int:
        """0: enough were caught; 1: too few; 2: not finished."""
        if not self.complete:
            return 2
        return 0 if self.share is not None and self.share >= CAUGHT_SHARE else 1


def run_campaign(
    source: Source,
    kernel: str,
    cases: Sequence[Case],
    *,
    wanted: int,
    seed: int,
    tell: Tell,
    keep: Callable[[Campaign], None],
) -> Campaign:
    """`cases` are the checks that are tried. `keep` is given the campaign every few seconds and
    at its end, also when it is interrupted: then it is not complete. Raises SourceError and Trouble."""
    leave_cores_to_arms()
    require("ziglang", "pyelftools", "msgpack")
    native.library()  # built once here, not by every arm at the same time
    started, stop = time.monotonic(), threading.Event()
    with ExitStack() as stack:
        arms = [stack.enter_context(_started(source, kernel, stop)) for _ in range(ARMS)]
        others = {name: stack.enter_context(_started(source, name, stop)) for name in KERNELS if name != kernel}
        tell(f"{kernel} of {source.label} on executor: {len(cases)} quick cases unchanged first")
        cleans, codes, left_out = clean_runs(arms[0], others, cases)
        campaign = Campaign(kernel, source.label, seed, wanted, len(codes), len(cleans), left_out=left_out)
        bench = _Bench(arms, others, cleans, Harder(), stop)
        tell(
            f"{len(codes)} kernels of {sum(len(code.instructions) for code in codes)} instructions in {len(cleans)} cases"
        )
        try:
            _fill(campaign, bench, draw(codes, seed), started, tell, keep)
            campaign.complete = True
        except KeyboardInterrupt:
            tell("interrupted: what follows is a part")
        finally:
            campaign.seconds = time.monotonic() - started
            keep(campaign)
    return campaign


class _StoppableArm(Arm):
    """An arm that takes no more requests once `stop` is set, and starts no more processes: an interrupt must not wait for many cases."""

    def __init__(self, source: Source, kernel: str, stop: threading.Event) -> None:
        super().__init__(source, kernel, Device("executor"), timeout=TIMEOUT_SECONDS)
        self._stop_requested = stop

    def start(self) -> dict[str, Any]:
        if self._stop_requested.is_set():
            raise Trouble("stopped")
        return super().start()

    def _ask(self, message: dict[str, Any]) -> dict[str, Any]:
        if self._stop_requested.is_set():
            raise Trouble("stopped")
        return super()._ask(message)


def _started(source: Source, kernel: str, stop: threading.Event) -> Arm:
    arm = _StoppableArm(source, kernel, stop)
    try:
        arm.start()
    except ArmError as error:
        arm.__exit__(None, None, None)
        raise SourceError(f"{kernel} of {source.label} cannot be loaded: {error.text}") from None
    return arm


def clean_runs(arm: Arm, others: Mapping[str, Arm], cases: Sequence[Case]) -> tuple[list[Clean], list[Code], list[str]]:
    """Of the cases that the unchanged kernels pass: their runs, cheapest first; all code that the first arm launched in them; and why
    others were left out. Trouble when none is left."""
    cleans: list[Clean] = []
    codes: dict[tuple[str, str], Code] = {}
    left_out: list[str] = []
    for case in cases:
        try:
            runs = {each.kernel: clean_run(each, case) for each in (arm, *others.values())}
        except ArmError as error:
            left_out.append(f"{case.id}: {error.kind}: {error.text}")
            continue
        kept = {name: KeptArm(other, runs[name]) for name, other in {arm.kernel: arm, **others}.items()}
        records = judge_case(case, {name: kept[name] for name in KERNELS if name in kept})  # type: ignore[misc]
        bad = [record for record in records if record.status != "pass"]
        if bad:
            left_out.append(f"{case.id}: {bad[0].arm} {bad[0].check}: {bad[0].findings[0].text}")
            continue
        found = [Code.from_json(part) for part in runs[arm.kernel].code]
        codes |= {(code.sha256, code.symbol): code for code in found}
        cleans.append(clean_of(case, runs, arm.kernel))
    if not cleans:
        raise Trouble(f"the unchanged kernels pass none of {len(cases)} quick cases; {left_out[0] if left_out else ''}")
    return sorted(cleans, key=lambda clean: clean.work), list(codes.values()), left_out


class _Bench:
    """The arms that mutants are tried on, one mutant an arm at a time."""

    def __init__(
        self,
        arms: Sequence[Arm],
        others: Mapping[str, Arm],
        cleans: Sequence[Clean],
        harder: Harder,
        stop: threading.Event,
    ) -> None:
        self._free: queue.SimpleQueue[Arm] = queue.SimpleQueue()
        for arm in arms:
            self._free.put(arm)
        self._others, self._cleans, self._harder, self.stop = others, cleans, harder, stop

    def try_one(self, mutation: Mutation) -> Outcome:
        """Raises Trouble, also once `stop` is set."""
        arm = self._free.get()
        try:
            code = (mutation.sha256, mutation.symbol)
            quick = [clean for clean in self._cleans if code in clean.launched]
            outcome = judge_mutant(mutation, arm, self._others, quick)
            if outcome.state != "survived":
                return outcome
            return classify(outcome, arm, quick, self._harder.of(arm, code, quick))
        finally:
            self._free.put(arm)


def _fill(
    campaign: Campaign,
    bench: _Bench,
    drawn: Iterator[Mutation],
    started: float,
    tell: Tell,
    keep: Callable[[Campaign], None],
) -> None:
    """Try mutants until `wanted` are known; the same ones in the same order whatever arm is faster."""
    told = time.monotonic()
    pool = ThreadPoolExecutor(ARMS)
    try:
        while len(campaign.mutants) < campaign.wanted:
            batch: list[Future[Outcome]] = [
                pool.submit(bench.try_one, mutation)
                for mutation in islice(drawn, campaign.wanted - len(campaign.mutants))
            ]
            if not batch:
                raise Trouble(f"the code has only {len(campaign.mutants)} mutants")
            for future in batch:
                campaign.outcomes.append(future.result())
                if time.monotonic() - told > _TOLD_EVERY:
                    told = time.monotonic()
                    campaign.seconds = told - started
                    tell(_progress(campaign))
                    keep(campaign)
    finally:
        bench.stop.set()
        pool.shutdown(wait=True, cancel_futures=True)


def _progress(campaign: Campaign) -> str:
    survived = len(campaign.mutants) - campaign.caught
    return f"{len(campaign.mutants)} of {campaign.wanted}: {campaign.caught} caught, {survived} survived, {campaign.seconds:.0f} s"
