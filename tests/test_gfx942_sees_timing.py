# SPDX-License-Identifier: Apache-2.0
"""Each missing wait and each early use of a matrix result is found at its instruction; its clean twin runs through."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from parity.gfx942 import ExecutionFault, Kernel, launch
from tests.gfx942_assembly import allocations, pointer
from tests.seeded import Bug, assert_place, compile_assembly, kernels_of
from tests.seeded_timing import BUFFER, CLASSES, NO_HAZARD, NO_WAIT_NEEDED, assembly_of

ALL: dict[str, Bug] = {bug.name: bug for bugs in CLASSES.values() for bug in bugs}
HARMLESS = NO_WAIT_NEEDED | NO_HAZARD


@dataclass(frozen=True)
class Built:
    kernels: dict[str, Kernel]
    places: dict[str, int]


@pytest.fixture(scope="module")
def built() -> Built:
    forms = {f"{bug.name}_{form}": getattr(bug, form) for bug in ALL.values() for form in ("faulty", "clean")}
    code, places = compile_assembly(assembly_of(forms | HARMLESS))
    return Built(kernels_of(code, list(forms | HARMLESS)), places)


def run(kernel: Kernel) -> None:
    given, out = np.zeros(BUFFER, np.uint8), np.zeros(BUFFER, np.uint8)
    launch(kernel, [pointer(given), pointer(out)], (1, 1, 1), (64, 1, 1), allocations(given=given, out=out))


@pytest.mark.parametrize("name", list(ALL))
def test_seen(name: str, built: Built) -> None:
    kernel = built.kernels[f"{name}_faulty"]
    with pytest.raises(ExecutionFault) as caught:
        run(kernel)
    assert_place(caught.value, ALL[name], kernel, pc=built.places[f"bug_{name}_faulty"])


@pytest.mark.parametrize("name", list(ALL))
def test_clean_twin(name: str, built: Built) -> None:
    run(built.kernels[f"{name}_clean"])


@pytest.mark.parametrize("name", list(HARMLESS))
def test_what_needs_no_wait_is_not_reported(name: str, built: Built) -> None:
    run(built.kernels[name])


@pytest.mark.parametrize("kind", list(CLASSES))
def test_at_least_twenty_of_each(kind: str) -> None:
    assert len({bug.name for bug in CLASSES[kind]}) >= 20
