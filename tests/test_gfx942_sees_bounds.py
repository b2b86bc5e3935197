# SPDX-License-Identifier: Apache-2.0
"""Each seeded access out of bounds is found at its instruction, lane, wave, workgroup and byte; clean kernels run through."""

from __future__ import annotations

import pytest

from tests import seeded_bounds, seeded_bounds_local
from tests.seeded_places import Built, Seeded, build, check_clean, check_seen

CLASSES = seeded_bounds.CLASSES | seeded_bounds_local.CLASSES
HARMLESS = seeded_bounds.HARMLESS | seeded_bounds_local.HARMLESS
ALL = [bug for bugs in CLASSES.values() for bug in bugs]


@pytest.fixture(scope="module")
def built() -> Built:
    return build(ALL, HARMLESS)


@pytest.mark.parametrize("bug", ALL, ids=lambda bug: bug.name)
def test_seen(bug: Seeded, built: Built) -> None:
    check_seen(bug, built)


@pytest.mark.parametrize("bug", ALL, ids=lambda bug: bug.name)
def test_clean_twin(bug: Seeded, built: Built) -> None:
    check_clean(f"{bug.name}_clean", built, shape=bug.shape)


@pytest.mark.parametrize("name", list(HARMLESS))
def test_harmless(name: str, built: Built) -> None:
    check_clean(name, built)


@pytest.mark.parametrize("kind", list(CLASSES))
def test_at_least_twenty_of_each(kind: str) -> None:
    assert len({bug.name for bug in CLASSES[kind]}) >= 20
    assert {bug.kind for bug in CLASSES[kind]} == {kind}


def test_no_name_stands_twice() -> None:
    assert len({bug.name for bug in ALL}) == len(ALL)
