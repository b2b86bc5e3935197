# SPDX-License-Identifier: Apache-2.0
"""Each seeded race on LDS is found at its line or instruction, lane, wave and workgroup; clean kernels run through."""

from __future__ import annotations

import pytest

from parity.gfx942 import ExecutionFault
from tests.seeded import Bug
from tests.seeded_assembly import Built, Mutant, Pair, build, check_clean, check_seen, run
from tests.seeded_races import BASES, BUGS, HARMLESS, HARMLESS_MUTANTS, HEAD, MUTANTS, PAIRS

KIND = "LDS race"


@pytest.fixture(scope="module")
def built() -> Built:
    harmless = {name: HEAD + body + "}" for name, body in HARMLESS.items()}
    return build(bugs=BUGS, clean=harmless, bases=BASES, mutants=[*MUTANTS, *HARMLESS_MUTANTS], pairs=PAIRS)


@pytest.mark.parametrize("bug", [*BUGS, *MUTANTS, *PAIRS], ids=lambda bug: bug.name)
def test_seen(bug: Bug | Mutant | Pair, built: Built) -> None:
    check_seen(bug, KIND, built)


@pytest.mark.parametrize("bug", [*BUGS, *MUTANTS, *PAIRS], ids=lambda bug: bug.name)
@pytest.mark.parametrize("schedule", [3, 4])
def test_seen_in_a_shuffled_order(bug: Bug | Mutant | Pair, schedule: int, built: Built) -> None:
    """A wave may also come first to bytes that the other has not written yet."""
    with pytest.raises(ExecutionFault) as caught:
        run(built.kernels[bug.name], schedule=schedule)
    assert caught.value.kind in (KIND, "uninitialised")


@pytest.mark.parametrize("name", [*(bug.name for bug in (*BUGS, *PAIRS)), *HARMLESS, *BASES])
def test_clean(name: str, built: Built) -> None:
    check_clean(name, built)


@pytest.mark.parametrize("mutant", HARMLESS_MUTANTS, ids=lambda mutant: mutant.name)
def test_barriers_within_one_wave_may_go(mutant: Mutant, built: Built) -> None:
    check_clean(mutant.name, built)


def test_twenty_of_them() -> None:
    assert len({bug.name for bug in (*BUGS, *MUTANTS, *PAIRS)}) >= 20
