# SPDX-License-Identifier: Apache-2.0
"""A million random elements of each fp8/bf8 matrix form against rules written without the engine, NaN as a class."""

from __future__ import annotations

import numpy as np
import pytest

from parity.gfx942 import Kernel
from tests.mfma_launch import FORMS, build, matrix_product, shape
from tests.mfma_rules import element
from tests.mfma_rules_array import product
from tests.test_gfx942_mfma import ACC_MIXES, OPERAND_MIXES, accumulators, operand_bytes

ELEMENTS = 1_000_000


@pytest.fixture(scope="module")
def built() -> dict[str, Kernel]:
    return build()


def batch(
    generator: np.random.Generator, form: str, mixes: tuple[str, str, str], waves: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Random A, B^T and C of `waves` products."""
    rows, depth = shape(form)
    _, left_type, right_type = form.split("_")
    left = operand_bytes(generator, mixes[0], (waves, rows, depth), bf8=left_type == "bf8")
    right = operand_bytes(generator, mixes[1], (waves, rows, depth), bf8=right_type == "bf8")
    return left, right, accumulators(generator, mixes[2], (waves, rows, rows))


def nan_as_one(bits: np.ndarray) -> np.ndarray:
    return np.where(bits & 0x7FFFFFFF > 0x7F800000, np.uint32(0x7FC00000), bits)


def expected_of(form: str, left: np.ndarray, right: np.ndarray, c: np.ndarray) -> np.ndarray:
    _, left_type, right_type = form.split("_")
    return product(left, right, c, left_bf8=left_type == "bf8", right_bf8=right_type == "bf8")


@pytest.mark.parametrize("form", FORMS)
def test_the_array_rules_are_the_slow_rules(form: str) -> None:
    generator, (rows, _) = np.random.default_rng(1), shape(form)
    _, left_type, right_type = form.split("_")
    for left_mix in OPERAND_MIXES:
        for acc_mix in ACC_MIXES:
            left, right, c = batch(generator, form, (left_mix, "wide", acc_mix), 1)
            expected = nan_as_one(expected_of(form, left, right, c))
            for at in generator.choice(rows * rows, 6, replace=False):
                i, j = divmod(int(at), rows)
                slow = element(
                    left[0, i].tolist(),
                    right[0, j].tolist(),
                    int(c[0, i, j]),
                    left_bf8=left_type == "bf8",
                    right_bf8=right_type == "bf8",
                )
                assert int(expected[0, i, j]) == int(nan_as_one(np.array(slow, np.uint32)))


@pytest.mark.parametrize("form", FORMS)
def test_a_million_elements(form: str, built: dict[str, Kernel]) -> None:
    generator, (rows, _) = np.random.default_rng(3), shape(form)
    combinations = [
        (left, right, acc)
        for left in OPERAND_MIXES
        for right in ("bytes", "gaussian", "wide", left)
        for acc in ACC_MIXES
    ]
    waves = -(-ELEMENTS // (rows * rows * len(combinations)))
    done = 0
    for mixes in combinations:
        left, right, c = batch(generator, form, mixes, waves)
        actual = nan_as_one(matrix_product(built[form], form, left, right, c))
        expected = nan_as_one(expected_of(form, left, right, c))
        wrong = np.argwhere(actual != expected)
        assert not len(wrong), (
            f"{mixes}, element {wrong[0]}: {actual[tuple(wrong[0])]:08x}, expected {expected[tuple(wrong[0])]:08x}"
        )
        done += actual.size
    assert done >= ELEMENTS
