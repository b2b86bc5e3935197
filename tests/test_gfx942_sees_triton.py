# SPDX-License-Identifier: Apache-2.0
"""Each instruction lost in a kernel from Triton is found at its instruction, lane and wave; the kernels themselves are right."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from parity import fp8
from parity.gfx942 import ExecutionFault, Kernel, launch
from tests.gfx942_assembly import allocations, pointer
from tests.seeded import Bug, assert_place
from tests.seeded_assembly import Built, build
from tests.seeded_triton import BUGS, HARMLESS, LIMIT, Lost, sources

TURNS = 4


@pytest.fixture(scope="module")
def built() -> Built:
    return build(sources=sources(), mutants=[lost.mutant for lost in (*BUGS, *HARMLESS)])


def run(kernel: Kernel, base: str) -> np.ndarray:
    """out of `base`: sums of 1024 numbers each, or x times y transposed."""
    given, out = np.arange(4096, dtype=np.int32), np.zeros(1024, np.int32)
    x, y = (np.arange(start, start + 32 * 256).reshape(32, 256) % 120 for start in (0, 7))
    left, right = x.astype(np.uint8), y.astype(np.uint8)
    inputs = {"given": given} if base == "total" else {"left": left, "right": right}
    arguments = [*map(pointer, inputs.values()), pointer(out), TURNS.to_bytes(8, "little"), bytes(8), bytes(8)]
    launch(
        kernel,
        arguments,
        (4 if base == "total" else 1, 1, 1),
        (256, 1, 1),
        allocations(**inputs, out=out),
        step_limit=20_000,
    )
    return out


@pytest.mark.parametrize("lost", BUGS, ids=lambda lost: lost.name)
def test_seen(lost: Lost, built: Built) -> None:
    kernel = built.kernels[lost.name]
    with pytest.raises(ExecutionFault) as caught:
        run(kernel, lost.base)
    # an endless loop ends somewhere in it
    place = None if lost.kind == LIMIT else built.places[lost.name]
    assert_place(caught.value, Bug(lost.name, lost.kind, "", "", lost.lane, lost.wave, 0), kernel, pc=place)


@pytest.mark.parametrize("name", ["total", *(lost.name for lost in HARMLESS if lost.base == "total")])
def test_total_is_right(name: str, built: Built) -> None:
    assert run(built.kernels[name], "total")[:4].tolist() == [
        np.arange(k, k + 1024).sum() for k in range(0, 4096, 1024)
    ]


@pytest.mark.parametrize("name", ["product", *(lost.name for lost in HARMLESS if lost.base == "product")])
def test_product_is_right(name: str, built: Built) -> None:
    x, y = (
        fp8.decode(torch.arange(start, start + 32 * 256).reshape(32, 256).remainder(120).byte(), fp8.Encoding.FNUZ)
        for start in (0, 7)
    )
    actual = run(built.kernels[name], "product").view(np.float32).reshape(32, 32)
    assert np.allclose(actual, (x @ y.T).numpy(), rtol=1e-5)
