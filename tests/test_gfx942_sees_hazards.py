# SPDX-License-Identifier: Apache-2.0
"""One wait state too few before or after a matrix instruction is found at its instruction; with just enough the kernel runs."""

from __future__ import annotations

import pytest

from tests.seeded_assembly import Built, Mutant, Pair, build, check_clean, check_seen, plain
from tests.seeded_hazards import BASES, CLEAN, MUTANTS, PAIRS

KIND = "MFMA hazard"


@pytest.fixture(scope="module")
def built() -> Built:
    return build(bases=BASES, sources=[plain(name, body) for name, body in CLEAN.items()], mutants=MUTANTS, pairs=PAIRS)


@pytest.mark.parametrize("bug", [*MUTANTS, *PAIRS], ids=lambda bug: bug.name)
def test_seen(bug: Mutant | Pair, built: Built) -> None:
    check_seen(bug, KIND, built, block=64)


@pytest.mark.parametrize("name", [*BASES, *(pair.name for pair in PAIRS), *CLEAN])
def test_clean(name: str, built: Built) -> None:
    check_clean(name, built, block=64)


def test_twenty_of_them() -> None:
    assert len({bug.name for bug in (*MUTANTS, *PAIRS)}) >= 20
