# SPDX-License-Identifier: Apache-2.0
"""The two 8-bit floating-point formats a gfx942 indexer meets: e4m3 FN (OCP) and e4m3 FNUZ.

Both are 1 sign, 4 exponent and 3 mantissa bits. They differ in the exponent bias (7 and 8, so an FN byte means twice
the FNUZ value of the same byte) and in three bytes: 0x80 is -0 in FN and the only NaN in FNUZ; 0x7F and 0xFF are NaN
in FN and +240 and -240 in FNUZ. Neither has an infinity. Sources: OCP 8-bit Floating Point Specification 1.0 (FN),
Noune et al., arXiv 2206.02915 (FNUZ).
"""

from __future__ import annotations

import enum
import functools
import math

import torch

_MANTISSA_BITS = 3
_EXPONENT_FIELDS = 16
_SIGN = 0x80


class Encoding(enum.Enum):
    """Meaning of an fp8 byte. The value is the name used in case ids."""

    FN = "fn"
    FNUZ = "fnuz"

    @property
    def torch_dtype(self) -> torch.dtype:
        """The torch dtype of the same bytes, for handing tensors to a kernel's public wrapper."""
        return {Encoding.FN: torch.float8_e4m3fn, Encoding.FNUZ: torch.float8_e4m3fnuz}[self]

    @property
    def max(self) -> float:
        """Largest finite value: 448 (FN, mantissa 7 of the last binade being NaN) or 240 (FNUZ)."""
        return {Encoding.FN: 448.0, Encoding.FNUZ: 240.0}[self]

    @property
    def bias(self) -> int:
        """Exponent bias: 7 (FN) or 8 (FNUZ)."""
        return {Encoding.FN: 7, Encoding.FNUZ: 8}[self]

    @property
    def smallest_exponent(self) -> int:
        """Exponent shared by the subnormals and the smallest normals: -6 (FN) or -7 (FNUZ)."""
        return 1 - self.bias


def _value(byte: int, encoding: Encoding) -> float:
    nan_bytes = {Encoding.FN: (0x7F, 0xFF), Encoding.FNUZ: (0x80,)}[encoding]
    if byte in nan_bytes:
        return math.nan
    field, mantissa = (byte >> _MANTISSA_BITS) % _EXPONENT_FIELDS, byte % (1 << _MANTISSA_BITS)
    hidden = 0 if field == 0 else 1 << _MANTISSA_BITS
    magnitude = math.ldexp(hidden + mantissa, max(field, 1) - encoding.bias - _MANTISSA_BITS)
    return -magnitude if byte & _SIGN else magnitude


@functools.cache
def _table(encoding: Encoding) -> torch.Tensor:
    return torch.tensor([_value(byte, encoding) for byte in range(256)], dtype=torch.float64)


def decode(bytes: torch.Tensor, encoding: Encoding) -> torch.Tensor:
    """Exact float64 values of uint8 `bytes` of any shape; NaN where the byte is NaN; FN 0x80 gives -0.

    Raises TypeError for another dtype: a float8 tensor must be viewed as uint8 first, so that the encoding is named.
    """
    if bytes.dtype != torch.uint8:
        raise TypeError(f"fp8 bytes must be uint8, not {bytes.dtype}")
    return _table(encoding).to(bytes.device)[bytes.long()]


def encode(values: torch.Tensor, encoding: Encoding) -> torch.Tensor:
    """uint8 bytes nearest to `values` (any floating dtype and shape), ties to even, saturating at `encoding.max`.

    Small negatives round to -0: FN keeps it as 0x80, FNUZ has only 0x00 there. Raises ValueError for NaN.
    """
    if torch.isnan(values).any():
        raise ValueError("NaN has no place in a quantised tensor")
    table = _table(encoding).to(values.device)
    last = int((table[:_SIGN] <= encoding.max).sum()) - 1  # 0x7E (FN) or 0x7F (FNUZ)
    magnitudes = table[: last + 1]  # bytes 0..last stand for increasing values
    wanted = values.to(torch.float64).abs().clamp(max=encoding.max)
    lower = torch.searchsorted(magnitudes, wanted.contiguous(), right=True) - 1
    upper = (lower + 1).clamp(max=last)
    middle = (magnitudes[lower] + magnitudes[upper]) / 2  # exact in float64
    # Round to nearest even: the parity of the byte is the parity of its mantissa.
    up = (wanted > middle) | ((wanted == middle) & (lower % 2 == 1))
    code = torch.where(up, upper, lower)
    negative = torch.signbit(values)
    if encoding is Encoding.FNUZ:
        negative = negative & (code != 0)
    return (code + _SIGN * negative.long()).to(torch.uint8)
