# SPDX-License-Identifier: Apache-2.0
"""Each seeded missing wait is found at its instruction, lane, wave and workgroup; clean kernels run through."""

from __future__ import annotations

import pytest

from tests.seeded_assembly import Built, Mutant, Pair, build, check_clean, check_seen, plain
from tests.seeded_waits import BASES, CLEAN, HARMLESS_MUTANTS, MUTANTS, PAIRS

KIND = "missing s_waitcnt"
ONE_WAVE = {"products", "wide"}  # what they read and write is for 64 work-items


@pytest.fixture(scope="module")
def built() -> Built:
    sources = [plain(name, body) for name, body in CLEAN.items()]
    return build(bases=BASES, sources=sources, mutants=[*MUTANTS, *HARMLESS_MUTANTS], pairs=PAIRS)


@pytest.mark.parametrize("bug", [*MUTANTS, *PAIRS], ids=lambda bug: bug.name)
def test_seen(bug: Mutant | Pair, built: Built) -> None:
    check_seen(bug, KIND, built, block=64 if isinstance(bug, Mutant) and bug.base in ONE_WAVE else 256)


@pytest.mark.parametrize(
    "name", [*BASES, *(pair.name for pair in PAIRS), *CLEAN, *(mutant.name for mutant in HARMLESS_MUTANTS)]
)
def test_clean(name: str, built: Built) -> None:
    check_clean(name, built, block=64 if name in ONE_WAVE else 256)


def test_twenty_of_them() -> None:
    assert len({bug.name for bug in (*MUTANTS, *PAIRS)}) >= 20
