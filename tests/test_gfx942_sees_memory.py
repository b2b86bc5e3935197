# SPDX-License-Identifier: Apache-2.0
"""Each seeded bug of memory is found at its line, lane, wave and workgroup; its clean twin runs through."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from parity.gfx942 import Allocation, ExecutionFault, Kernel, launch
from tests import seeded_memory
from tests.gfx942_assembly import pointer
from tests.seeded import Bug, assert_place, compile_opencl, kernels_of, partly_written
from tests.seeded_memory import CLASSES, HARMLESS, ITEMS, MISSING

ALL = {bug.name: (kind, bug) for kind, bugs in CLASSES.items() for bug in bugs}


@dataclass(frozen=True)
class Built:
    kernels: dict[str, Kernel]
    lines: dict[str, int]


@pytest.fixture(scope="module")
def built() -> Built:
    bodies = {f"{bug.name}_{form}": getattr(bug, form) for _, bug in ALL.values() for form in ("faulty", "clean")}
    bodies |= {
        f"harmless_{name}": seeded_memory._HEAD + use.replace("X", "in[i]") + "}" for name, use in HARMLESS.items()
    }
    code, lines = compile_opencl(bodies)
    return Built(kernels_of(code, list(bodies)), lines)


def run(kernel: Kernel, *, missing: bool = False, width: int = 4) -> np.ndarray:
    given = (
        np.arange(ITEMS * width, dtype=np.uint8).view([("", np.uint8, (width,))]).copy()
        if width not in (1, 2, 4, 8)
        else np.zeros(0)
    )
    if width in (1, 2, 4, 8):
        given = np.arange(ITEMS, dtype=f"u{width}")
    out = np.zeros(ITEMS * width, np.uint8)
    source = (
        partly_written("in", given, slice(MISSING, MISSING + 1))
        if missing
        else Allocation("in", given.ctypes.data, given.nbytes, given)
    )
    arguments = [pointer(given), pointer(out), ITEMS.to_bytes(4, "little")]
    launch(kernel, arguments, (2, 1, 1), (128, 1, 1), [source, Allocation.of_array("out", out)])
    return out


def width_of(bug: Bug) -> int:
    return int(bug.faulty.partition("__global V")[2].partition("*")[0] or 4) if "__global V" in bug.faulty else 4


@pytest.mark.parametrize("name", list(ALL))
def test_seen(name: str, built: Built) -> None:
    kind, bug = ALL[name]
    kernel = built.kernels[f"{name}_faulty"]
    with pytest.raises(ExecutionFault) as caught:
        run(kernel, missing=kind == "uninitialised global", width=width_of(bug))
    assert_place(caught.value, bug, kernel, line=built.lines[f"{name}_faulty"])


@pytest.mark.parametrize("name", list(ALL))
def test_clean_twin(name: str, built: Built) -> None:
    run(built.kernels[f"{name}_clean"], width=width_of(ALL[name][1]))


@pytest.mark.parametrize("name", list(HARMLESS))
def test_harmless_undefined_bits_are_not_reported(name: str, built: Built) -> None:
    run(built.kernels[f"harmless_{name}"], missing=True)


@pytest.mark.parametrize("kind", list(CLASSES))
def test_at_least_twenty_of_each(kind: str) -> None:
    assert len({bug.name for bug in CLASSES[kind]}) >= 20
