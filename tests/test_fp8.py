# SPDX-License-Identifier: Apache-2.0
"""fp8 tables and rounding, against hand literals and torch's own float8 dtypes as an independent witness."""

from __future__ import annotations

import math

import pytest
import torch

from parity.fp8 import Encoding, decode, encode

ALL_BYTES = torch.arange(256, dtype=torch.uint8)
BOTH = pytest.mark.parametrize("encoding", list(Encoding), ids=lambda encoding: encoding.value)


def one(byte: int, encoding: Encoding) -> float:
    return float(decode(torch.tensor([byte], dtype=torch.uint8), encoding)[0])


@pytest.mark.parametrize(
    ("byte", "encoding", "value"),
    [
        (0x00, Encoding.FN, 0.0),
        (0x01, Encoding.FN, 2.0**-9),
        (0x07, Encoding.FN, 7 * 2.0**-9),
        (0x08, Encoding.FN, 2.0**-6),
        (0x38, Encoding.FN, 1.0),
        (0x3C, Encoding.FN, 1.5),
        (0xB8, Encoding.FN, -1.0),
        (0x7E, Encoding.FN, 448.0),
        (0xFE, Encoding.FN, -448.0),
        (0x01, Encoding.FNUZ, 2.0**-10),
        (0x08, Encoding.FNUZ, 2.0**-7),
        (0x40, Encoding.FNUZ, 1.0),
        (0xC4, Encoding.FNUZ, -1.5),
        (0x7E, Encoding.FNUZ, 224.0),
        (0x7F, Encoding.FNUZ, 240.0),
        (0xFF, Encoding.FNUZ, -240.0),
    ],
)
def test_decode_hand_literals(byte: int, encoding: Encoding, value: float) -> None:
    assert one(byte, encoding) == value


def test_nan_and_minus_zero_bytes() -> None:
    nan = {e: [b for b in range(256) if math.isnan(one(b, e))] for e in Encoding}
    assert nan == {Encoding.FN: [0x7F, 0xFF], Encoding.FNUZ: [0x80]}
    assert math.copysign(1.0, one(0x80, Encoding.FN)) == -1.0 and one(0x80, Encoding.FN) == 0.0


@BOTH
def test_decode_agrees_with_torch_on_every_byte(encoding: Encoding) -> None:
    witness = ALL_BYTES.view(encoding.torch_dtype).to(torch.float64)
    mine = decode(ALL_BYTES, encoding)
    assert mine.dtype == torch.float64
    assert torch.equal(torch.isnan(mine), torch.isnan(witness))
    finite = ~torch.isnan(mine)
    assert torch.equal(mine[finite], witness[finite])
    assert float(mine[finite].max()) == encoding.max


def test_fn_is_twice_fnuz_but_at_three_bytes() -> None:
    differing = [b for b in range(256) if one(b, Encoding.FN) != 2 * one(b, Encoding.FNUZ)]
    assert differing == [0x7F, 0x80, 0xFF]


@BOTH
def test_encode_inverts_decode(encoding: Encoding) -> None:
    keep = ~torch.isnan(decode(ALL_BYTES, encoding))
    assert torch.equal(encode(decode(ALL_BYTES[keep], encoding), encoding), ALL_BYTES[keep])


@BOTH
def test_encode_rounds_like_torch_within_range(encoding: Encoding) -> None:
    grid = decode(ALL_BYTES, encoding)
    grid = grid[~torch.isnan(grid)].sort().values
    middles = (grid[1:] + grid[:-1]) / 2
    generator = torch.Generator().manual_seed(5)
    noise = (torch.rand(20000, generator=generator, dtype=torch.float64) - 0.5) * 2 * encoding.max
    small = noise * 2.0**-14
    above = torch.nextafter(middles.float(), torch.tensor(math.inf)).double()
    below = torch.nextafter(middles.float(), torch.tensor(-math.inf)).double()
    values = torch.cat([grid, middles, above, below, noise.float().double(), small.float().double()])
    witness = values.float().to(encoding.torch_dtype).view(torch.uint8)
    assert torch.equal(encode(values, encoding), witness)


@pytest.mark.parametrize(
    ("value", "encoding", "byte"),
    [
        (1.0625, Encoding.FN, 0x38),  # half way from 1 to 1.125: mantissa 0 is even
        (1.1875, Encoding.FN, 0x3A),  # half way from 1.125 to 1.25: mantissa 2 is even
        (2.0**-10, Encoding.FN, 0x00),  # half a subnormal step ties to zero
        (-(2.0**-10), Encoding.FN, 0x80),
        (-(2.0**-11), Encoding.FNUZ, 0x00),  # FNUZ has no -0: 0x80 would be NaN
        (-1e-30, Encoding.FNUZ, 0x00),
        (-0.0, Encoding.FN, 0x80),
        (449.0, Encoding.FN, 0x7E),
        (-1e9, Encoding.FN, 0xFE),
        (math.inf, Encoding.FNUZ, 0x7F),
        (239.0, Encoding.FNUZ, 0x7F),
    ],
)
def test_encode_hand_literals(value: float, encoding: Encoding, byte: int) -> None:
    assert int(encode(torch.tensor([value]), encoding)[0]) == byte


def test_refusals() -> None:
    with pytest.raises(ValueError, match="NaN"):
        encode(torch.tensor([0.0, math.nan]), Encoding.FN)
    with pytest.raises(TypeError, match="uint8"):
        decode(torch.zeros(2), Encoding.FN)


def test_witness_would_notice_a_wrong_bias() -> None:
    """Planted fault: decoding FN bytes as FNUZ, the usual mistake, is off at all but the zero."""
    wrong = decode(ALL_BYTES, Encoding.FNUZ)
    witness = ALL_BYTES.view(torch.float8_e4m3fn).to(torch.float64)
    assert int((wrong == witness).sum()) == 1
