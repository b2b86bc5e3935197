# SPDX-License-Identifier: Apache-2.0
"""The fp8/bf8 matrix rules in exact Python integers, one element at a time, from fixtures/mfma/README.md and nothing else.

Slow on purpose. Every choice of the rules is a field of `Rules`, so that a test can flip one and see that it matters.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

NAN = 0x7FC00000
_NO_EXPONENT = -10_000


@dataclass(frozen=True)
class Rules:
    """The choices; the defaults are the rules. Rounding is "truncate" (toward zero) or "floor" (toward minus infinity)."""

    group: int = 16
    split: str = (
        "parity"  # halves of a group: by parity of k, its first and last eight ("runs"), or all together ("none")
    )
    product_bits: int = 24
    product_rounding: str = "truncate"
    join_bits: int = 24
    join_rounding: str = "floor"
    sum_bits: int = 31
    sum_rounding: str = "floor"
    acc_bits: int = 24
    acc_rounding: str = "floor"
    cutoff: int = 25
    round_between_groups: bool = True
    zeros_count: bool = True  # products with a zero operand take part in the largest exponent
    keep_subnormals: bool = True


def is_nan(bits: int) -> bool:
    return bits & 0x7FFFFFFF > 0x7F800000


def operand(byte: int, *, bf8: bool) -> tuple[int, int] | None:
    """(significand in eighths, exponent) of an FNUZ byte; None for NaN."""
    if byte == 0x80:
        return None
    mantissa_bits, bias = (2, 16) if bf8 else (3, 8)
    field, mantissa = (byte & 0x7F) >> mantissa_bits, byte & ((1 << mantissa_bits) - 1)
    if field == 0 and mantissa == 0:
        return 0, -126
    size = mantissa + (1 << mantissa_bits if field else 0)
    sign = -1 if byte & 0x80 else 1
    return sign * (size << (3 - mantissa_bits)), (field or 1) - bias


def move(number: int, shift: int, rounding: str) -> int:
    """number * 2^shift as an integer."""
    if shift >= 0:
        return number << shift
    if rounding == "floor":
        return number >> -shift
    return -(-number >> -shift) if number < 0 else number >> -shift


def to_fp32(number: int, exponent: int, *, subnormals: bool = True) -> int:
    """fp32 bits of number * 2^exponent, rounded to nearest, ties to even."""
    sign, size = (0x80000000, -number) if number < 0 else (0, number)
    if size == 0:
        return 0
    unit = max(size.bit_length() - 24 + exponent, -149)  # exponent of the result's last bit
    down = unit - exponent
    if down <= 0:
        mantissa = size << -down
    else:
        mantissa, rest = size >> down, size & ((1 << down) - 1)
        half = 1 << (down - 1)
        mantissa += rest > half or (rest == half and mantissa & 1)
    if mantissa >> 24:
        mantissa, unit = mantissa >> 1, unit + 1
    if mantissa < 1 << 23:  # subnormal: its exponent field is 0
        return sign | (mantissa if subnormals else 0)
    field = unit + 23 + 127
    return sign | (0x7F800000 if field > 254 else field << 23 | (mantissa & 0x7FFFFF))


def from_fp32(bits: int) -> tuple[int, int]:
    """(integer, exponent of its unit) of finite fp32 bits."""
    field, mantissa = bits >> 23 & 0xFF, bits & 0x7FFFFF
    size = mantissa | (0x800000 if field else 0)
    return (-size if bits >> 31 else size), (field or 1) - 150


def element(
    left: Sequence[int], right: Sequence[int], c: int, *, left_bf8: bool, right_bf8: bool, rules: Rules = Rules()
) -> int:
    """fp32 bits of one element of D: bytes of a row of A and of a column of B, bits of the element of C."""
    acc = c
    exact: tuple[int, int] | None = None  # the accumulator when it is not rounded between groups
    for first in range(0, len(left), rules.group):
        pairs = [
            (operand(left[k], bf8=left_bf8), operand(right[k], bf8=right_bf8))
            for k in range(first, min(first + rules.group, len(left)))
        ]
        if any(x is None or y is None for x, y in pairs) or is_nan(acc):
            acc = NAN
            continue
        if acc & 0x7FFFFFFF == 0x7F800000:
            continue
        products = [(x[0] * y[0], x[1] + y[1]) for x, y in pairs if x is not None and y is not None]
        exact = _accumulate(products, exact or from_fp32(acc), rules)
        acc = to_fp32(*exact, subnormals=rules.keep_subnormals)
        if rules.round_between_groups:
            exact = None
    return acc


def _accumulate(products: list[tuple[int, int]], acc: tuple[int, int], rules: Rules) -> tuple[int, int]:
    """Steps 3 to 5 for one group: (integer, exponent of its unit) of the exact sum."""
    middle = len(products) // 2
    parts = {
        "parity": [products[0::2], products[1::2]],
        "runs": [products[:middle], products[middle:]],
        "none": [products],
    }[rules.split]
    sums = [_half(part, rules) for part in parts]
    top = max(exponent for _, exponent in sums)
    joined = sum(
        move(total, exponent - rules.product_bits - (top - rules.join_bits), rules.join_rounding)
        for total, exponent in sums
    )
    size, unit = acc
    exponent = max(abs(size).bit_length() - 1 + unit, -126) if size else -126
    common = max(top, exponent)
    total = move(joined, top - rules.join_bits - (common - rules.sum_bits), rules.sum_rounding)
    if exponent >= common - rules.cutoff:
        kept = move(size, unit - (common - rules.acc_bits), rules.acc_rounding)
        total += move(kept, rules.sum_bits - rules.acc_bits, "floor")
    return total, common - rules.sum_bits


def _half(products: list[tuple[int, int]], rules: Rules) -> tuple[int, int]:
    """Step 3: (sum in units of 2^(exponent - product_bits), largest exponent)."""
    exponents = [exponent for size, exponent in products if size or rules.zeros_count]
    top = max(exponents, default=-252)
    return sum(
        move(size, exponent - 6 - (top - rules.product_bits), rules.product_rounding)
        for size, exponent in products
        if size
    ), top
