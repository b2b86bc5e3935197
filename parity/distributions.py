# SPDX-License-Identifier: Apache-2.0
"""Where the numbers of a case come from: fp8 bytes of Q and K, the K scales and the weights.

Values are drawn and quantised a few thousand vectors at a time, so that a million tokens need no more than their bytes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch

from parity.fp8 import Encoding, decode, encode

DISTRIBUTIONS: dict[str, str] = {
    "gaussian": "normal Q and K, each vector quantised by its largest magnitude as production does; FN: some bytes of the patch's edges",
    "scales": "as gaussian, with kv_scales log-uniform over 1e-3..1e1 and different at every token",
    "outlier": "as gaussian, with a few channels thirty times larger before quantisation",
    "heavy-tailed": "as gaussian, drawn from Student's t with two degrees of freedom: most bytes of a vector are small",
    "negative": "every second row has no positive dot product: its logits are exactly 0 and every rank is tied",
    "near-ties": "few distinct keys and scales some 2^-23 apart: logits around the k-th place differ in their last bits",
    "saturated": "every byte is the largest magnitude, of either sign",
    "subnormal": "every byte is a subnormal, of either sign",
    "position": "a logit is its token's number plus 1/64 of its row's, exactly: any that is moved shows where from",
    "bytes": "uniform finite bytes: every magnitude, sign, subnormal and, for fn, minus zero",
    "captured": "as the captured file has them",
}

# Negative FN bytes of at most one bit of magnitude, and the largest. Rounding alone makes them rare, and they are what a byte patch can get
# wrong: -0, and any other whose sign is lost with a bit of the patch's masks (found by mutants that survived). Nine, which no power of two
# divides, so that each of them comes to every channel.
_FN_PATCH = torch.tensor([0x80, 0x81, 0x82, 0x84, 0x88, 0x90, 0xA0, 0xC0, 0xFE], dtype=torch.uint8)
_FN_EVERY = 23  # bytes from one to the next; prime, so that they visit all channels
_OUTLIER = 30.0
_CHUNK = 4096  # vectors drawn and quantised at a time
_TIED_KEYS = 8  # distinct keys of near-ties
_ULPS = 16  # distinct scales of each
_ROW_CODES = 63  # position: rows that can be told apart, below 1/64 of a token's step


@dataclass(frozen=True)
class Operands:
    """q uint8 [M,H,D], kv uint8 [N,D], kv_scales float64 [N], weights float64 [M,H] (Q's own scales already in them)."""

    q: torch.Tensor
    kv: torch.Tensor
    kv_scales: torch.Tensor
    weights: torch.Tensor


Draw = Callable[[tuple[int, ...]], np.ndarray]


def build_operands(distribution: str, q_shape: tuple[int, int, int], n: int, encodings: tuple[Encoding, Encoding],
                   rng: np.random.Generator) -> Operands:  # fmt: skip
    """Operands of a named distribution (see DISTRIBUTIONS). ValueError for one that is not drawn here."""
    weights = torch.from_numpy(rng.standard_normal(q_shape[:2]))
    shapes = (q_shape, (n, q_shape[2]))
    if distribution in _BYTES:
        q, kv = (_BYTES[distribution](rng, shape, encoding) for shape, encoding in zip(shapes, encodings, strict=True))
        return Operands(q, kv, torch.from_numpy(rng.uniform(0.5, 1.5, n)) / encodings[1].max, weights)
    if distribution == "position":
        return _position(q_shape, n, encodings, weights)
    draw = _drawing(distribution, q_shape[2], rng)
    (q, q_scales), (kv, kv_scales) = (
        _quantised(draw, shape, encoding) for shape, encoding in zip(shapes, encodings, strict=True)
    )
    if distribution == "scales":
        kv_scales = _log_uniform(rng, n, 1e-3, 1e1)
    if distribution == "near-ties":
        key = torch.from_numpy(rng.integers(0, min(_TIED_KEYS, n), n))
        steps = torch.from_numpy(rng.integers(0, _ULPS, n))
        kv, kv_scales = kv[key], kv_scales[key] * (1 + steps * 2.0**-23)
    if distribution == "negative":
        q[::2] &= 0x7F
        kv = torch.where(kv & 0x7F == 0, kv, kv | 0x80)  # a zero keeps its byte: FNUZ has no -0
    return Operands(q, kv, kv_scales, weights * q_scales)  # where production puts Q's scales


def _drawing(distribution: str, head_dim: int, rng: np.random.Generator) -> Draw:
    if distribution == "heavy-tailed":
        return lambda shape: rng.standard_t(2, shape)
    if distribution not in ("gaussian", "scales", "outlier", "near-ties", "negative"):
        raise ValueError(f"no builder for distribution {distribution!r}")
    gain = np.ones(head_dim)
    if distribution == "outlier":
        gain[rng.choice(head_dim, size=min(3, head_dim), replace=False)] = _OUTLIER
    return lambda shape: rng.standard_normal(shape) * gain


def _quantised(draw: Draw, shape: tuple[int, ...], encoding: Encoding) -> tuple[torch.Tensor, torch.Tensor]:
    """Bytes of `shape` and float64 scales: the largest magnitude of every vector becomes the largest byte."""
    bytes = torch.empty(shape, dtype=torch.uint8)
    scales = torch.empty(shape[:-1], dtype=torch.float64)
    vectors, flat = bytes.view(-1, shape[-1]), scales.view(-1)
    for first in range(0, len(vectors), _CHUNK):
        part = slice(first, min(first + _CHUNK, len(vectors)))
        values = torch.from_numpy(draw((part.stop - first, shape[-1])))
        flat[part] = (values.abs().amax(dim=-1) / encoding.max).float().double()  # a kernel is given float32 scales
        vectors[part] = encode(values / flat[part, None], encoding)
    if encoding is Encoding.FN:
        places = torch.arange(5, bytes.numel(), _FN_EVERY)
        bytes.view(-1)[places] = _FN_PATCH[torch.arange(len(places)) % len(_FN_PATCH)]
    return bytes, scales


def _finite(rng: np.random.Generator, shape: tuple[int, ...], encoding: Encoding) -> torch.Tensor:
    every = torch.arange(256, dtype=torch.uint8)
    return _pick(rng, every[~torch.isnan(decode(every, encoding))], shape)


def _saturated(rng: np.random.Generator, shape: tuple[int, ...], encoding: Encoding) -> torch.Tensor:
    return _pick(rng, encode(torch.tensor([encoding.max, -encoding.max]), encoding), shape)


def _subnormal(rng: np.random.Generator, shape: tuple[int, ...], encoding: Encoding) -> torch.Tensor:
    magnitudes = torch.arange(1, 8, dtype=torch.uint8)  # exponent field 0
    return _pick(rng, torch.cat([magnitudes, magnitudes | 0x80]), shape)


def _pick(rng: np.random.Generator, choices: torch.Tensor, shape: tuple[int, ...]) -> torch.Tensor:
    return choices[torch.from_numpy(rng.integers(0, choices.numel(), size=shape))]


_BYTES = {"bytes": _finite, "saturated": _saturated, "subnormal": _subnormal}


def _position(q_shape: tuple[int, int, int], n: int, encodings: tuple[Encoding, Encoding],
              weights: torch.Tensor) -> Operands:  # fmt: skip
    """Row m's head m % H gives the token's number + 1 and the next head the row's code, from base-8 digits: a digit times a
    power of two is an fp8 value. Digits 0 to 4 of the token take one channel each, digit 5 takes eight of 2^12."""
    (m, heads, head_dim) = q_shape
    if heads < 2 or head_dim < 32 or n >= 8**6:
        raise ValueError(
            f"position needs 2 heads, 32 channels and fewer than {8**6} tokens, not {heads}, {head_dim}, {n}"
        )
    powers = [3 * digit for digit in range(5)] + [15] * 8  # channel -> exponent of its digit's place
    kv, q = torch.zeros(n, head_dim, dtype=torch.float64), torch.zeros(q_shape, dtype=torch.float64)
    row, number = torch.arange(m), torch.arange(1, n + 1)
    token_head, row_head = row % heads, (row + 1) % heads
    for channel, power in enumerate(powers):
        place = min(power, 12)  # eight channels of 2^12 make 2^15
        shift = max(place - 7, 0)  # 2^7 is the largest power both formats hold
        kv[:, channel] = (number // 2**power % 8 * 2**shift).double()
        q[row, token_head, channel] = 2.0 ** (place - shift)
    for digit in range(2):
        kv[:, 16 + digit] = 1.0
        q[row, row_head, 16 + digit] = ((row % _ROW_CODES + 1) // 8**digit % 8 * 8**digit).double()
    weights[row, token_head], weights[row, row_head] = 1.0, 1 / 64
    q_bytes, kv_bytes = (encode(values, encoding) for values, encoding in zip((q, kv), encodings, strict=True))
    return Operands(q_bytes, kv_bytes, torch.ones(n, dtype=torch.float64), weights)


def _log_uniform(rng: np.random.Generator, count: int, low: float, high: float) -> torch.Tensor:
    """One value in the middle half of each of `count` equal slices of the log axis, shuffled: no two are close."""
    fraction = (np.arange(count) + rng.uniform(0.25, 0.75, count)) / count
    return torch.from_numpy(low * (high / low) ** rng.permutation(fraction))
