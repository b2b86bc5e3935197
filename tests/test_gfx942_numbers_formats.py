# SPDX-License-Identifier: Apache-2.0
"""Every fp8, bf8 and fp16 value through the conversions, against decoders that know only the formats' definitions; roots and powers within an ulp."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest

from tests.gfx942_state import Before, execute, kernels, run

BYTES = np.arange(256, dtype=np.uint32)
NAN = 0x7FC00000
MNEMONICS = {"v_cvt_f32_fp8", "v_cvt_f32_bf8", "v_cvt_pk_f32_fp8", "v_cvt_pk_f32_bf8"}
BYTE_FORMATS = {"fp8": (3, 8), "bf8": (2, 16)}  # mantissa bits, exponent bias
# bytes whose value is told by the format's table: 240, 57344, 2^-10, 2^-17 ...
LANDMARKS = {"fp8": {0x7F: 240.0, 0x40: 1.0, 0x01: 2.0**-10, 0x07: 7 * 2.0**-10, 0x08: 2.0**-7, 0xC4: -1.5, 0xFF: -240.0, 0: 0.0},
             "bf8": {0x7F: 57344.0, 0x40: 1.0, 0x01: 2.0**-17, 0x03: 3 * 2.0**-17, 0x04: 2.0**-15, 0xC2: -1.5, 0xFF: -57344.0, 0: 0.0}}  # fmt: skip


def decoded(byte: int, kind: str) -> Fraction | None:
    """Exact value of an FNUZ byte; None for its only NaN, 0x80."""
    if byte == 0x80:
        return None
    mantissa, bias = BYTE_FORMATS[kind]
    digits = f"{byte:08b}"
    exponent, fraction = int(digits[1 : 8 - mantissa], 2), int(digits[8 - mantissa :], 2)
    whole = Fraction(fraction, 2**mantissa) + (exponent > 0)
    return (-1) ** int(digits[0]) * whole * Fraction(2) ** (max(exponent, 1) - bias)


def as_bits(value: float) -> int:
    return int(np.array(value, np.float32).view(np.uint32))


def check_bytes(actual: list[int], expected: list[int], kind: str) -> None:
    for bits, byte in zip(actual, expected, strict=True):
        value = decoded(byte, kind)
        if value is None:
            assert bits & 0x7FFFFFFF > 0x7F800000, f"{kind} {byte:#x} is {bits:#x}, expected NaN"
        else:
            assert bits == as_bits(float(value)), f"{kind} {byte:#x} is {bits:#x}, expected {value}"


@pytest.mark.parametrize("kind", list(BYTE_FORMATS))
def test_landmarks_of_the_decoder(kind: str) -> None:
    assert {byte: float(decoded(byte, kind)) for byte in LANDMARKS[kind]} == LANDMARKS[kind]  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", list(BYTE_FORMATS))
def test_every_byte_at_every_place(kind: str) -> None:
    for number, select in enumerate(["", "BYTE_1", "BYTE_2", "BYTE_3"]):
        modifier = f"_sdwa v10, v2 src0_sel:{select}" if select else " v10, v2"
        kernel = kernels({"k": f"v_cvt_f32_{kind}{modifier}"})["k"]
        places = [
            [int(byte) << 8 * number | 0x5A5A5A5A & ~(0xFF << 8 * number) for byte in BYTES[n : n + 64]]
            for n in range(0, 256, 64)
        ]
        results = run(kernel, [Before(vectors={2: column}) for column in places])
        check_bytes([value for after in results for value in after.lanes(10)], BYTES.tolist(), kind)


@pytest.mark.parametrize("kind", list(BYTE_FORMATS))
@pytest.mark.parametrize("upper", [False, True])
def test_every_pair_of_bytes(kind: str, upper: bool) -> None:
    """The low byte goes to the first register, the next byte to the second; WORD_1 takes the upper two."""
    modifier = "_sdwa v[10:11], v2 src0_sel:WORD_1" if upper else "_e32 v[10:11], v2"
    kernel = kernels({"k": f"v_cvt_pk_f32_{kind}{modifier}"})["k"]
    others = [(37 * byte + 11) & 0xFF for byte in range(256)]
    words = [byte | other << 8 for byte, other in zip(range(256), others, strict=True)]
    words = [word << 16 | 0x1234 if upper else word | 0x12340000 for word in words]
    results = run(kernel, [Before(vectors={2: words[n : n + 64]}) for n in range(0, 256, 64)])
    check_bytes([value for after in results for value in after.lanes(10)], list(range(256)), kind)
    check_bytes([value for after in results for value in after.lanes(11)], others, kind)


def nearest_byte(value: Fraction, kind: str) -> int:
    """Nearest byte, ties to the even one; NaN beyond the largest value's upper half-step. Searches all values."""
    size = abs(value)
    scale = [decoded(byte, kind) or Fraction(0) for byte in range(128)]
    beyond = 2 * scale[127] - scale[126]
    best = min(range(129), key=lambda byte: (abs(size - (scale[byte] if byte < 128 else beyond)), byte & 1))
    if best == 128:
        return 0x80
    return best | 0x80 if value < 0 and best else best


@pytest.mark.parametrize("kind", list(BYTE_FORMATS))
def test_encoding_at_every_boundary(kind: str) -> None:
    """Each value, each midpoint and their fp32 neighbours, both signs."""
    scale = [float(decoded(byte, kind) or 0) for byte in range(128)]
    points = scale + [
        (low + high) / 2 for low, high in zip(scale, [*scale[1:], 2 * scale[127] - scale[126]], strict=True)
    ]
    exact = np.array(points, np.float32)
    values = np.concatenate([exact, np.nextafter(exact, np.float32(np.inf)), np.nextafter(exact, np.float32(0))])
    values = np.concatenate([values, -values])
    bits = values.view(np.uint32).tolist()
    kernel = kernels({"k": f"v_mov_b32 v10, 0\nv_cvt_pk_{kind}_f32 v10, v2, v2"})["k"]
    results = run(kernel, [Before(vectors={2: bits[n : n + 64]}) for n in range(0, len(bits), 64)])
    actual = [value for after in results for value in after.lanes(10)]
    for value, given in zip(actual, values.tolist(), strict=False):
        byte = nearest_byte(Fraction(given), kind)
        assert value == byte << 8 | byte, f"{kind} of {given!r} is {value:#x}, expected {byte:#x}"


def test_every_half_to_fp32_and_back() -> None:
    body = "v_cvt_f32_f16 v10, v2\nv_cvt_f16_f32 v11, v10\nv_cvt_f32_f16_sdwa v12, v3 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_1"
    halves = np.arange(65536, dtype=np.uint32)
    waves = [
        Before(vectors={2: column.tolist(), 3: (column << 16 | 0x1234).tolist()}) for column in halves.reshape(-1, 64)
    ]
    results = run(kernels({"k": body})["k"], waves)
    floats = np.concatenate([after.v[10] for after in results])
    back = np.concatenate([after.v[11] for after in results])
    shifted = np.concatenate([after.v[12] for after in results])
    expected = halves.astype(np.uint16).view(np.float16).astype(np.float32)
    nan = np.isnan(expected)
    assert nan.sum() == 2046
    assert np.array_equal(floats[~nan], expected[~nan].view(np.uint32))
    assert np.isnan(floats.view(np.float32)[nan]).all()
    assert np.array_equal(back[~nan], halves[~nan])
    assert np.isnan(back[nan].astype(np.uint16).view(np.float16)).all()
    assert np.array_equal(floats, shifted)


def test_fp32_to_half_between_all_halves() -> None:
    """Midpoints of neighbouring halves and their fp32 neighbours, rounded by numpy."""
    edges = np.arange(0x7C00, dtype=np.uint16).view(np.float16).astype(np.float32)
    middle = (edges[:-1] + edges[1:]) / 2
    values = np.concatenate([middle, np.nextafter(middle, np.float32(np.inf)), np.nextafter(middle, np.float32(0))])
    values = np.concatenate([values, -values])
    values = np.pad(values, (0, -len(values) % 64)).reshape(-1, 64)
    results = run(
        kernels({"k": "v_cvt_f16_f32 v10, v2"})["k"],
        [Before(vectors={2: row.view(np.uint32).tolist()}) for row in values],
    )
    expected = values.astype(np.float16).view(np.uint16)
    assert np.array_equal(np.stack([after.v[10] for after in results]), expected)


# -- results that the manual bounds: one ulp ------------------------------------------------------------------------------
APPROXIMATE: dict[str, tuple[Callable[[float], float], float, float]] = {
    "v_rsq_f32": (lambda x: 1 / math.sqrt(x), 2.0**-126, 2.0**127),
    "v_sqrt_f32": (math.sqrt, 2.0**-126, 2.0**127),
    "v_log_f32": (math.log2, 2.0**-126, 2.0**127),
    "v_rcp_f32": (lambda x: 1 / x, 2.0**-125, 2.0**125),
}


def off_by_ulps(actual: np.ndarray, expected: list[float]) -> float:
    return max(
        abs(float(value) - right) / float(np.spacing(np.float32(abs(right) or 2.0**-126)))
        for value, right in zip(actual.tolist(), expected, strict=True)
    )


@pytest.mark.parametrize("name", list(APPROXIMATE))
def test_within_an_ulp(name: str) -> None:
    function, low, high = APPROXIMATE[name]
    values = np.float32(2) ** np.random.default_rng(7).uniform(math.log2(low), math.log2(high), 62).astype(np.float32)
    values = np.append(values, np.array([low, high], np.float32))
    after = execute(f"{name} v10, v2", Before(vectors={2: values.view(np.uint32).tolist()}))
    assert off_by_ulps(after.v[10].view(np.float32), [function(float(value)) for value in values]) <= 1


def test_exp_within_an_ulp() -> None:
    values = np.random.default_rng(8).uniform(-126, 127.9, 64).astype(np.float32)
    after = execute("v_exp_f32 v10, v2", Before(vectors={2: values.view(np.uint32).tolist()}))
    assert off_by_ulps(after.v[10].view(np.float32), [2.0 ** float(value) for value in values]) <= 1


@pytest.mark.parametrize("name", [*APPROXIMATE, "v_exp_f32"])
def test_counted_as_approximate(name: str) -> None:
    assert execute(f"{name} v10, v2").report.fidelity.approximate == 1
