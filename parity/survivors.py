# SPDX-License-Identifier: Apache-2.0
"""Why a mutant survived the quick cases: found by running it on harder cases of the same code and by asking whether it was reached.

equivalent     every output bit is the kernel's own, in the quick and in the harder cases
within budget  bits differ, and every logit stays within its budget: a correct kernel by definition
not reached    no case executes the instruction
gap            a harder case catches it: the quick cases lack that case
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import replace

from parity.arm import Arm, ArmError
from parity.cases import Case
from parity.gfx942.mutation import probe
from parity.inputs import build_inputs
from parity.mutants import ChangedArm, Clean, Outcome, clean_of, clean_run, judge_mutant, reaches, same_bits
from parity.windows import WINDOWS

REASONS = ("equivalent", "within budget", "not reached", "gap")
_WORK = 1 << 19  # logits times heads of a harder case: a second of the executor at most
# Sizes beside tiles of 16, 32, 64, 128 and 256, and where KV is split.
_SHAPES = ((5, 193), (6, 449), (3, 1290), (2, 4353))
_FAR = (1 << 16) + 257  # tokens beyond what 16 bits number
_DISTRIBUTIONS = ("scales", "negative")


class Harder:
    """The harder cases of each kernel's code, run unchanged once, when a survivor first asks for them."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, str], list[Clean]] = {}
        self._lock = threading.Lock()

    def of(self, arm: Arm, code: tuple[str, str], quick: Sequence[Clean]) -> list[Clean]:
        """Those that launch the code (sha256, symbol), cheapest first."""
        with self._lock:
            if code not in self._known:
                found = [self._clean(arm, case) for case in harder_cases([clean.case for clean in quick])]
                self._known[code] = sorted(
                    (clean for clean in found if clean is not None and code in clean.launched),
                    key=lambda clean: clean.work,
                )
            return list(self._known[code])

    @staticmethod
    def _clean(arm: Arm, case: Case) -> Clean | None:
        try:
            return clean_of(case, {arm.kernel: clean_run(arm, case)}, arm.kernel)
        except ArmError:
            return None  # whether the unchanged kernel can do this case is the gate's question


def harder_cases(quick: Sequence[Case]) -> list[Case]:
    """Cases of the same sizes and dtypes as the quick ones (which are all of one kernel's code): these with another seed, every window,
    every shape with every byte, and one row of more tokens than 16 bits number."""
    found = [replace(case, seed=1) for case in quick]
    windows = [name for name in WINDOWS if name != "captured"]
    for number, window in enumerate(windows):
        m, n = _SHAPES[number % len(_SHAPES)]
        drawn = _DISTRIBUTIONS[number // len(_SHAPES) % len(_DISTRIBUTIONS)]
        found.append(replace(quick[0], window=window, m=m, n=n, distribution=drawn, seed=3))
    for m, n in _SHAPES:
        found.append(replace(quick[0], window="misaligned", m=m, n=n, distribution="bytes", seed=4))
    found = [case for case in found if case.m * case.n * case.heads <= _WORK]
    found.append(replace(quick[0], window="full", m=1, n=_FAR, distribution="gaussian", seed=3))
    quick_ids = {case.id for case in quick}
    return list({case.id: case for case in found if case.id not in quick_ids}.values())


def classify(outcome: Outcome, arm: Arm, quick: Sequence[Clean], harder: Sequence[Clean]) -> Outcome:
    """The survivor with its reason and the evidence for it. Raises Trouble."""
    differs = list(outcome.differs)
    for clean in harder:
        found = _try(outcome, arm, clean)
        if found and found.state == "caught":
            return replace(outcome, reason="gap", evidence=f"{found.check} in {found.case}: {found.text}")
        differs += found.differs if found else ()
    stop = probe(outcome.mutation)
    in_quick = any(reaches(arm, stop, clean.case) for clean in quick)
    if not in_quick and not any(reaches(arm, stop, clean.case) for clean in harder):
        return replace(outcome, reason="not reached", evidence=f"by {len(quick)} quick and {len(harder)} harder cases")
    runs = f"{len(quick)} quick and {len(harder)} harder cases" + (
        "" if in_quick else ", reached in the harder ones only"
    )
    if differs:
        return replace(
            outcome, reason="within budget", evidence=f"bits differ in {len(differs)} of {runs}; {differs[0]}"
        )
    watched = "; no register was read before it was filled" if outcome.mutation.kind == "wait" else ""
    return replace(outcome, reason="equivalent", evidence=f"bits equal in {runs}{watched}")


def _try(outcome: Outcome, arm: Arm, clean: Clean) -> Outcome | None:
    """The mutant in one harder case, judged only where its bits are not the kernel's; None where they are."""
    changed = ChangedArm(arm, outcome.mutation)
    try:
        run = changed.run(build_inputs(clean.case), k=clean.case.topk)
    except ArmError:
        return judge_mutant(outcome.mutation, arm, {}, [clean])
    return None if same_bits(run, clean.runs[arm.kernel]) else judge_mutant(outcome.mutation, arm, {}, [clean])
