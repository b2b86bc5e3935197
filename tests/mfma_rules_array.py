# SPDX-License-Identifier: Apache-2.0
"""mfma_rules.py once more, over whole matrices in int64: quick enough for millions of elements, and nothing taken from the engine.

test_gfx942_mfma_million.py first checks it against the slow rules.
"""

from __future__ import annotations

import numpy as np

NAN = np.uint32(0x7FC00000)


def operands(matrix: np.ndarray, *, bf8: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(significand in eighths, exponent, is NaN) of FNUZ bytes."""
    bits, bias = (2, 16) if bf8 else (3, 8)
    field, mantissa = (matrix & 0x7F).astype(np.int64) >> bits, matrix.astype(np.int64) & ((1 << bits) - 1)
    size = (mantissa + np.where(field > 0, 1 << bits, 0)) << (3 - bits)
    exponent = np.where(size == 0, -126, np.maximum(field, 1) - bias)
    return np.where(matrix & 0x80, -size, size), exponent, matrix == 0x80


def floor_shift(number: np.ndarray, left: np.ndarray) -> np.ndarray:
    """number * 2^left, toward minus infinity."""
    return np.where(left >= 0, number << np.clip(left, 0, 40), number >> np.clip(-left, 0, 63))


def truncate_shift(number: np.ndarray, left: np.ndarray) -> np.ndarray:
    """number * 2^left, toward zero."""
    return np.sign(number) * floor_shift(np.abs(number), left)


def product(left: np.ndarray, right: np.ndarray, c: np.ndarray, *, left_bf8: bool, right_bf8: bool) -> np.ndarray:
    """fp32 bits [waves, i, j] of A uint8 [waves, i, k], B^T uint8 [waves, j, k] and C uint32 [waves, i, j]."""
    (x, x_exponent, x_nan), (y, y_exponent, y_nan) = operands(left, bf8=left_bf8), operands(right, bf8=right_bf8)
    acc = c.copy()
    for first in range(0, left.shape[2], 16):
        group = slice(first, first + 16)
        sizes = x[:, :, None, group] * y[:, None, :, group]
        exponents = x_exponent[:, :, None, group] + y_exponent[:, None, :, group]
        nan = (x_nan[:, :, None, group] | y_nan[:, None, :, group]).any(axis=3) | (acc & 0x7FFFFFFF > 0x7F800000)
        result = _group(sizes, exponents, acc)
        infinite = acc & 0x7FFFFFFF == 0x7F800000
        acc = np.where(nan, NAN, np.where(infinite, acc, result))
    return acc


def _group(sizes: np.ndarray, exponents: np.ndarray, acc: np.ndarray) -> np.ndarray:
    """One group of 16 products and the accumulator, rounded to fp32."""
    halves = []
    for parity in (0, 1):
        part, exponent = sizes[..., parity::2], exponents[..., parity::2]
        top = exponent.max(axis=3)
        halves.append((truncate_shift(part, exponent - top[..., None] - 6 + 24).sum(axis=3), top))
    top = np.maximum(halves[0][1], halves[1][1])
    joined = sum(floor_shift(total, exponent - top) for total, exponent in halves)
    field, mantissa = (acc >> 23 & 0xFF).astype(np.int64), (acc & 0x7FFFFF).astype(np.int64)
    size = mantissa + np.where(field > 0, 1 << 23, 0)
    size, unit = np.where(acc >> 31, -size, size), np.maximum(field, 1) - 150
    exponent = np.maximum(unit + 23, -126)
    common = np.maximum(top, exponent)
    total = floor_shift(joined, top - common + 31 - 24)
    kept = floor_shift(size, unit - common + 24) << (31 - 24)
    total = total + np.where(exponent >= common - 25, kept, 0)
    with np.errstate(over="ignore"):
        return np.ldexp(total.astype(np.float64), common - 31).astype(np.float32).view(np.uint32)


def halves(matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(significand in units of 2^-10, exponent, value as float64) of fp16 bits."""
    field, mantissa = (matrix >> 10 & 31).astype(np.int64), matrix.astype(np.int64) & 0x3FF
    size = mantissa + np.where(field > 0, 1 << 10, 0)
    exponent = np.where(size == 0, -126, np.maximum(field, 1) - 15)
    return np.where(matrix & 0x8000, -size, size), exponent, matrix.view(np.float16).astype(np.float64)


def product_f16(left: np.ndarray, right: np.ndarray, c: np.ndarray) -> np.ndarray:
    """fp32 bits [waves, i, j] of A fp16 bits uint16 [waves, i, k], B^T uint16 [waves, j, k] and C uint32 [waves, i, j]: groups of eight,
    one sum a group, no cut-off, IEEE specials."""
    (x, x_exponent, x_value), (y, y_exponent, y_value) = halves(left), halves(right)
    acc = c.copy()
    for first in range(0, left.shape[2], 8):
        group = slice(first, first + 8)
        sizes, exponents = (
            x[:, :, None, group] * y[:, None, :, group],
            x_exponent[:, :, None, group] + y_exponent[:, None, :, group],
        )
        top = exponents.max(axis=3)
        total = truncate_shift(sizes, exponents - top[..., None] - 20 + 24).sum(axis=3)
        field, mantissa = (acc >> 23 & 0xFF).astype(np.int64), (acc & 0x7FFFFF).astype(np.int64)
        size = mantissa + np.where(field > 0, 1 << 23, 0)
        size, unit = np.where(acc >> 31, -size, size), np.maximum(field, 1) - 150
        common = np.maximum(top, np.maximum(unit + 23, -126))
        total = floor_shift(total, top - common + 31 - 24) + (floor_shift(size, unit - common + 24) << (31 - 24))
        with np.errstate(all="ignore"):
            finite = np.ldexp(total.astype(np.float64), common - 31).astype(np.float32).view(np.uint32)
            special = (x_value[:, :, None, group] * y_value[:, None, :, group]).sum(axis=3) + acc.view(np.float32)
            bits = np.where(np.isnan(special), NAN, special.astype(np.float32).view(np.uint32))
        acc = np.where(np.isfinite(special), finite, bits)
    return acc
