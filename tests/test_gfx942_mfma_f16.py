# SPDX-License-Identifier: Apache-2.0
"""f16 matrix products (older aiter's and vLLM's Triton kernels use them): literals by hand, a million random elements a form."""

from __future__ import annotations

import numpy as np
import pytest

from parity.gfx942 import Kernel
from parity.gfx942.code_object import assemble
from tests.gfx942_assembly import text_of
from tests.gfx942_on_gpu import assembled
from tests.mfma_launch import kernel_source, matrix_product
from tests.mfma_rules_array import product_f16

FORMS = ["16x16x16_f16", "32x32x8_f16"]


@pytest.fixture(scope="module")
def built() -> dict[str, Kernel]:
    code = assemble(text_of(*(kernel_source(form) for form in FORMS)))
    return {form: assembled(code, "k" + form, instructions=f"v_mfma_f32_{form}") for form in FORMS}


def sizes(form: str) -> tuple[int, int]:
    return (16, 16) if form.startswith("16") else (32, 8)


def multiply(built: dict[str, Kernel], form: str, left: np.ndarray, right: np.ndarray, c: np.ndarray) -> np.ndarray:
    """A, B^T uint16 [waves, rows, k], C uint32 [waves, rows, rows]. Four halves of a lane lie where eight bytes would."""
    return matrix_product(built[form], form, left.view(np.uint8), right.view(np.uint8), c)


# halves of row 0 of A, of column 0 of B, C, D: in hex, k from 0
ROWS = """3c00 | 3c00 | 00000000 | 3f800000; 3c00 3c00 | 3c00 4000 | 3f800000 | 40800000; bc00 | 3c00 | 3f800000 | 00000000;
0001 | 0001 | 00000000 | 27800000; 7bff | 7bff | 00000000 | 4f7fc004; 7c00 | 3c00 | 00000000 | 7f800000; 7c00 | bc00 | 00000000 | ff800000;
7c00 | 0000 | 00000000 | nan; 7c00 7c00 | 3c00 bc00 | 00000000 | nan; 7c00 | 3c00 | ff800000 | nan; 7e00 | 3c00 | 00000000 | nan;
3c00 | 3c00 | 7f800000 | 7f800000; 3c00 | 3c00 | 7fc00000 | nan; 0000 | 0000 | 00000001 | 00000001; 0000 | 0000 | 80000000 | 00000000;
3c00 | 3c00 | b3800000 | 3f7fffff; 3c00 | 3c00 | b2000000 | 3f7fffff; 3c00 | 3c00 | 32000000 | 3f800000;
7800 0400 | 7800 0400 | 00000000 | 4e800000; 7800 0400 f800 | 7800 0400 7800 | 00000000 | 00000000"""  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
def test_literals(form: str, built: dict[str, Kernel]) -> None:
    """The last two rows: beside 2^30 a product of 2^-28 lies below the 24 bits that are kept, also when the large ones cancel. A small
    accumulator beside 1 is floored at 24 bits, never dropped: -2^-27 takes a whole unit away before rounding, +2^-27 none."""
    rows, depth = sizes(form)
    for line in ROWS.replace("\n", " ").split(";"):
        left_text, right_text, c_text, d_text = (part.strip() for part in line.split("|"))
        left, right, c = (
            np.zeros((1, rows, depth), np.uint16),
            np.zeros((1, rows, depth), np.uint16),
            np.zeros((1, rows, rows), np.uint32),
        )
        for matrix, text in ((left, left_text), (right, right_text)):
            matrix[0, 0, : len(text.split())] = [int(word, 16) for word in text.split()]
        c[0, 0, 0] = int(c_text, 16)
        actual = int(multiply(built, form, left, right, c)[0, 0, 0])
        assert (actual & 0x7FFFFFFF > 0x7F800000) if d_text == "nan" else f"{actual:08x}" == d_text, (
            f"{line}: {actual:08x}"
        )


def test_places(built: dict[str, Kernel]) -> None:
    """Every k, row and column counts where it should: A and B hold small integers that tell their place."""
    for form in FORMS:
        rows, depth = sizes(form)
        left = (np.arange(rows * depth) % 61).astype(np.float16).reshape(1, rows, depth)
        right = (np.arange(rows * depth) * 7 % 53).astype(np.float16).reshape(1, rows, depth)
        actual = multiply(
            built, form, left.view(np.uint16), right.view(np.uint16), np.zeros((1, rows, rows), np.uint32)
        ).view(np.float32)
        assert np.array_equal(actual[0], left[0].astype(np.float64) @ right[0].astype(np.float64).T)


def random_halves(generator: np.random.Generator, mix: str, shape: tuple[int, ...]) -> np.ndarray:
    raw = generator.integers(0, 65536, shape, dtype=np.uint16)
    finite = np.where(raw >> 10 & 31 == 31, raw & 0x83FF, raw).astype(np.uint16)
    if mix == "gaussian":
        return generator.standard_normal(shape).astype(np.float16).view(np.uint16)
    if mix == "special":
        return np.where(generator.random(shape) < 0.02, raw | 0x7C00, finite).astype(np.uint16)
    return {
        "bits": finite,
        "subnormal": finite & 0x83FF,
        "sparse": np.where(generator.random(shape) < 0.8, 0, finite),
        "narrow": finite & 0x8FFF | 0x3000,
    }[mix].astype(np.uint16)


@pytest.mark.parametrize("form", FORMS)
def test_a_million_elements(form: str, built: dict[str, Kernel]) -> None:
    generator, (rows, depth) = np.random.default_rng(8), sizes(form)
    waves = 1_000_000 // (18 * rows * rows) + 1
    done = 0
    for mix in ("bits", "gaussian", "subnormal", "sparse", "narrow", "special"):
        for acc in ("zero", "near", "bits"):
            left, right = (random_halves(generator, mix, (waves, rows, depth)) for _ in range(2))
            c = generator.integers(0, 2**32, (waves, rows, rows), dtype=np.uint32)
            if acc != "bits":
                c = (
                    c & np.uint32(0x807FFFFF)
                    | (generator.integers(90, 160, c.shape).astype(np.uint32) << np.uint32(23))
                    if acc == "near"
                    else np.zeros_like(c)
                )
            actual, expected = (np.where(bits & 0x7FFFFFFF > 0x7F800000, np.uint32(0x7FC00000), bits)
                                for bits in (multiply(built, form, left, right, c), product_f16(left, right, c)))  # fmt: skip
            wrong = np.argwhere(actual != expected)
            assert not len(wrong), (
                f"{mix}/{acc} {wrong[0]}: {actual[tuple(wrong[0])]:08x}, expected {expected[tuple(wrong[0])]:08x}"
            )
            done += actual.size
    assert done >= 1_000_000
