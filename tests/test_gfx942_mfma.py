# SPDX-License-Identifier: Apache-2.0
"""Arithmetic of the fp8/bf8 matrix instructions: given vectors, an independent slow implementation, each rule flipped."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from parity.gfx942 import Kernel
from tests.mfma_launch import FORMS, build, matrix_product, nearest_bytes, shape
from tests.mfma_rules import NAN, Rules, element, is_nan, to_fp32

VECTORS = json.loads((Path(__file__).parents[1] / "fixtures" / "mfma" / "vectors.json").read_text())


@pytest.fixture(scope="module")
def built() -> dict[str, Kernel]:
    return build()


# -- (a) vectors -------------------------------------------------------------------------------------------------------
def row_and_column(case: dict[str, Any]) -> tuple[list[int], list[int]]:
    """Bytes of row 0 of A and of column 0 of B."""
    row, column = [0] * 32, [0] * 32
    for k, x, y in case["operands"]:
        row[k], column[k] = x, y
    return row, column


@pytest.mark.parametrize("case", VECTORS, ids=lambda case: case["products"])
def test_vectors(case: dict[str, Any], built: dict[str, Kernel]) -> None:
    left, right, c = np.zeros((1, 16, 32), np.uint8), np.zeros((1, 16, 32), np.uint8), np.zeros((1, 16, 16), np.uint32)
    left[0, 0], right[0, 0] = row_and_column(case)
    c[0, 0, 0] = int(case["c"], 16)
    actual = int(matrix_product(built["16x16x32_fp8_fp8"], "16x16x32_fp8_fp8", left, right, c)[0, 0, 0])
    slow = element(*row_and_column(case), int(c[0, 0, 0]), left_bf8=False, right_bf8=False)
    for value in (actual, slow):
        assert is_nan(value) if case["d"] == "nan" else f"{value:08x}" == case["d"]


# -- (b) against the slow implementation -------------------------------------------------------------------------------
def operand_bytes(generator: np.random.Generator, mix: str, size: tuple[int, ...], *, bf8: bool) -> np.ndarray:
    """Random operand bytes. All but "bytes" and "nan" are finite."""
    mantissa = 2 if bf8 else 3
    low = (1 << mantissa) - 1
    raw = generator.integers(0, 256, size, dtype=np.uint8)
    if mix == "bytes":
        return raw
    if mix == "gaussian":
        limit = 57344.0 if bf8 else 240.0
        return nearest_bytes(np.clip(generator.standard_normal(size) * 2, -limit, limit), bf8=bf8)
    if mix == "wide":  # exponents from both ends
        ends = generator.choice(np.array([0, 1, 2, (0x7F >> mantissa) - 1, 0x7F >> mantissa], np.uint8), size)
        raw = raw & (0x80 | low) | ends << mantissa
    elif mix == "subnormal":
        raw = raw & (0x80 | low)
    elif mix == "sparse":
        raw = np.where(generator.random(size) < 0.8, 0, raw).astype(np.uint8)
    elif mix == "cancelling":  # one large pair that cancels in row and column, small rest
        raw = raw & (0x80 | low) | (generator.integers(0, 12, size).astype(np.uint8) << mantissa)
        raw[..., 0], raw[..., 2] = 0x7F, 0xFF if generator.random() < 0.5 else 0x7F
    raw[raw == 0x80] = 0
    if mix == "nan":
        raw[generator.random(size) < 0.01] = 0x80
    return raw.astype(np.uint8)


SPECIAL = [0, 0x80000000, 0x7F800000, 0xFF800000, 0x7FC00000, 0x7F800001, 1, 0x80000001, 0x007FFFFF, 0x807FFFFF, 0x00800000, 0x7F7FFFFF,
           0xFF7FFFFF, 0x4B800000, 0xCB800001, 0x3F800000]  # fmt: skip


def accumulators(generator: np.random.Generator, mix: str, size: tuple[int, ...]) -> np.ndarray:
    bits = generator.integers(0, 2**32, size, dtype=np.uint32)
    if mix == "zero":
        return np.zeros(size, np.uint32)
    if mix == "near":  # exponents -50 to 45, around those of products
        return bits & np.uint32(0x807FFFFF) | (generator.integers(77, 172, size).astype(np.uint32) << np.uint32(23))
    if mix == "subnormal":
        return bits & np.uint32(0x807FFFFF)
    if mix == "special":
        return generator.choice(np.array(SPECIAL, np.uint32), size)
    return bits


OPERAND_MIXES = ("bytes", "gaussian", "wide", "subnormal", "sparse", "cancelling", "nan")
ACC_MIXES = ("zero", "near", "bits", "subnormal", "special")
Element = tuple[list[int], list[int], int, int]  # row of A, column of B, C, D


def elements(
    kernel: Kernel, form: str, generator: np.random.Generator, left_mix: str, right_mix: str, acc_mix: str, count: int
) -> Iterator[Element]:
    """`count` random elements of one matrix product, with what the executor made of them."""
    rows, depth = shape(form)
    _, left_type, right_type = form.split("_")
    left = operand_bytes(generator, left_mix, (1, rows, depth), bf8=left_type == "bf8")
    right = operand_bytes(generator, right_mix, (1, rows, depth), bf8=right_type == "bf8")
    c = accumulators(generator, acc_mix, (1, rows, rows))
    d = matrix_product(kernel, form, left, right, c)
    for at in generator.choice(rows * rows, count, replace=False):
        i, j = divmod(int(at), rows)
        yield left[0, i].tolist(), right[0, j].tolist(), int(c[0, i, j]), int(d[0, i, j])


@pytest.mark.parametrize("form", FORMS)
def test_against_the_slow_implementation(form: str, built: dict[str, Kernel]) -> None:
    generator = np.random.default_rng(20)
    _, left_type, right_type = form.split("_")
    for left_mix in OPERAND_MIXES:
        for acc_mix in ACC_MIXES:
            right_mix = left_mix if acc_mix in ("near", "zero") else "bytes"
            for left, right, c, actual in elements(built[form], form, generator, left_mix, right_mix, acc_mix, 24):
                expected = element(left, right, c, left_bf8=left_type == "bf8", right_bf8=right_type == "bf8")
                same = actual == expected or (is_nan(actual) and is_nan(expected))
                assert same, (
                    f"{left_mix}/{acc_mix}: A {left}, B {right}, C {c:08x}: {actual:08x}, expected {expected:08x}"
                )


# -- (c) every choice matters ------------------------------------------------------------------------------------------
FLIPS = {
    "products at 23 bits": {"product_bits": 23}, "products at 25 bits": {"product_bits": 25},
    "products floored": {"product_rounding": "floor"},
    "join at 23 bits": {"join_bits": 23}, "join at 25 bits": {"join_bits": 25}, "join truncated": {"join_rounding": "truncate"},
    "sum at 30 bits": {"sum_bits": 30}, "sum at 32 bits": {"sum_bits": 32}, "sum truncated": {"sum_rounding": "truncate"},
    "accumulator at 23 bits": {"acc_bits": 23}, "accumulator at 25 bits": {"acc_bits": 25},
    "accumulator truncated": {"acc_rounding": "truncate"},
    "cutoff 24": {"cutoff": 24}, "cutoff 26": {"cutoff": 26}, "no cutoff": {"cutoff": 10_000},
    "halves are runs of k": {"split": "runs"}, "no halves": {"split": "none"},
    "groups of 8": {"group": 8}, "groups of 32": {"group": 32}, "no rounding between groups": {"round_between_groups": False},
    "zeros without exponent": {"zeros_count": False}, "subnormal results flushed": {"keep_subnormals": False},
}  # fmt: skip


@pytest.fixture(scope="module")
def telling(built: dict[str, Kernel]) -> list[Element]:
    """Elements of 16x16x32 fp8 x fp8 where alignment, cancellation and small accumulators count, and the given vectors."""
    generator, form = np.random.default_rng(7), "16x16x32_fp8_fp8"
    vectors = [
        (*row_and_column(case), int(case["c"], 16), NAN if case["d"] == "nan" else int(case["d"], 16))
        for case in VECTORS
    ]
    mixes = [
        ("wide", "near"),
        ("cancelling", "near"),
        ("sparse", "near"),
        ("gaussian", "near"),
        ("bytes", "zero"),
        ("sparse", "subnormal"),
    ]
    return vectors + [
        found
        for _ in range(3)
        for left, acc in mixes
        for found in elements(built[form], form, generator, left, left, acc, 60)
    ]


def test_the_unflipped_rules_agree(telling: list[Element]) -> None:
    for left, right, c, actual in telling:
        expected = element(left, right, c, left_bf8=False, right_bf8=False)
        assert actual == expected or (is_nan(actual) and is_nan(expected))


@pytest.mark.parametrize("flip", list(FLIPS))
def test_a_flipped_rule_shows(flip: str, telling: list[Element]) -> None:
    rules = replace(Rules(), **FLIPS[flip])  # type: ignore[arg-type]
    assert any(element(left, right, c, left_bf8=False, right_bf8=False, rules=rules) != actual and not is_nan(actual)
               for left, right, c, actual in telling), f"{flip} changes nothing in {len(telling)} elements"  # fmt: skip


def test_rounding_of_the_slow_implementation() -> None:
    assert to_fp32(3, -1) == 0x3FC00000
    assert to_fp32((1 << 24) + 1, 0) == 0x4B800000  # ties to even
    assert to_fp32((1 << 24) + 3, 0) == 0x4B800002
    assert to_fp32(-(1 << 25) - 3, 0) == 0xCC000001
    assert to_fp32((1 << 25) - 1, 0) == 0x4C000000  # carries into the exponent
    assert (to_fp32(1, -149), to_fp32(1, -150), to_fp32(3, -150)) == (1, 0, 2)
    assert to_fp32((1 << 24) - 1, -150) == 0x00800000  # a subnormal that rounds up to the smallest normal
    assert to_fp32(1, 128) == 0x7F800000
