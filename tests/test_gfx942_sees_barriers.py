# SPDX-License-Identifier: Apache-2.0
"""Each barrier that not all of a workgroup take is found there, each endless loop in its loop; clean kernels run through."""

from __future__ import annotations

import pytest

from tests.seeded import Bug
from tests.seeded_assembly import Built, Mutant, Pair, build, check_clean, check_seen, plain
from tests.seeded_barriers import (
    BARRIER_MUTANTS,
    BARRIER_PAIRS,
    BARRIERS,
    BASES,
    CLEAN,
    DIVERGENCE,
    ENDLESS,
    ENDLESS_PAIRS,
    LIMIT,
)

STEPS = 20_000  # instructions; the clean kernels take less than 3,000 a wave


@pytest.fixture(scope="module")
def built() -> Built:
    sources = [plain(name, body) for name, body in CLEAN.items()]
    return build(
        bugs=[*BARRIERS, *ENDLESS],
        bases=BASES,
        sources=sources,
        mutants=BARRIER_MUTANTS,
        pairs=[*BARRIER_PAIRS, *ENDLESS_PAIRS],
    )


@pytest.mark.parametrize("bug", [*BARRIERS, *BARRIER_PAIRS, *BARRIER_MUTANTS], ids=lambda bug: bug.name)
def test_divergence_seen(bug: Bug | Mutant | Pair, built: Built) -> None:
    check_seen(bug, DIVERGENCE, built)


@pytest.mark.parametrize("bug", [*ENDLESS, *ENDLESS_PAIRS], ids=lambda bug: bug.name)
def test_endless_loop_seen(bug: Bug | Pair, built: Built) -> None:
    check_seen(bug, LIMIT, built, step_limit=STEPS)


@pytest.mark.parametrize(
    "name", [*(bug.name for bug in (*BARRIERS, *BARRIER_PAIRS, *ENDLESS, *ENDLESS_PAIRS)), *BASES, *CLEAN]
)
def test_clean(name: str, built: Built) -> None:
    check_clean(name, built, block=100 if name.startswith("partly_filled") else 256, step_limit=STEPS)


@pytest.mark.parametrize(
    "bugs", [[*BARRIERS, *BARRIER_PAIRS, *BARRIER_MUTANTS], [*ENDLESS, *ENDLESS_PAIRS]], ids=[DIVERGENCE, LIMIT]
)
def test_twenty_of_each(bugs: list[Bug | Mutant | Pair]) -> None:
    assert len({bug.name for bug in bugs}) >= 20
