# SPDX-License-Identifier: Apache-2.0
"""Each seeded use of what nobody wrote is found where it shows; undefined bits that play no part are not reported."""

from __future__ import annotations

import pytest

from tests import seeded_undefined, seeded_undefined_code
from tests.seeded_places import Built, Seeded, build, check_clean, check_seen
from tests.seeded_undefined_clean import HARMLESS

CLASSES = {name: seeded_undefined.cases(name) for name in ("global", "lds", "register", "scratch")}
CLASSES["register"] = [*CLASSES["register"], *seeded_undefined_code.CODE]
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
def test_undefined_bits_that_play_no_part(name: str, built: Built) -> None:
    check_clean(name, built)


@pytest.mark.parametrize("name", list(CLASSES))
def test_at_least_twenty_of_each(name: str) -> None:
    assert len({bug.name for bug in CLASSES[name]}) >= 20
    assert {bug.kind for bug in CLASSES[name]} == {"uninitialised"}


def test_no_name_stands_twice() -> None:
    assert len({bug.name for bug in ALL}) == len(ALL)
