# SPDX-License-Identifier: Apache-2.0
"""Which lane, register and byte of a matrix instruction is which element; its registers, EXEC, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

from parity.gfx942 import Kernel, Unsupported, native
from tests.gfx942_state import Before, execute
from tests.mfma_launch import FORMS, ONE, build, matrix_product, nearest_bytes, result_rows, shape
from tests.mfma_rules import NAN, element


@pytest.fixture(scope="module")
def built() -> dict[str, Kernel]:
    return build()


@pytest.mark.parametrize("form", FORMS)
def test_layout_by_single_ones(form: str) -> None:
    """A one at (lane, register, byte) of A and at (lane, register, byte) of B meets at one place of D, or nowhere."""
    rows, _ = shape(form)
    row_of, column_of = result_rows(rows)
    generator = np.random.default_rng(3)
    places = [(int(lane), int(byte)) for lane in range(64) for byte in range(8)]
    picks = [(place, places[int(generator.integers(512))]) for place in places]
    picks += [
        (place, (int(generator.integers(rows)) + place[0] // rows * rows, place[1])) for place in places
    ]  # same k: they meet
    a, b = np.zeros((2, len(picks), 64), np.uint32), np.zeros((2, len(picks), 64), np.uint32)
    expected = np.zeros((len(picks), rows, rows), np.uint32)
    for wave, ((a_lane, a_byte), (b_lane, b_byte)) in enumerate(picks):
        a[a_byte // 4, wave, a_lane] = ONE << 8 * (a_byte % 4)
        b[b_byte // 4, wave, b_lane] = ONE << 8 * (b_byte % 4)
        if (a_lane // rows, a_byte) == (b_lane // rows, b_byte):  # the same k
            expected[wave, a_lane % rows, b_lane % rows] = 0x3F800000
    _, left, right = form.split("_")
    d = native.mfma_f8(
        rows,
        a,
        b,
        np.zeros((rows * rows // 64, len(picks), 64), np.uint32),
        left_bf8=left == "bf8",
        right_bf8=right == "bf8",
    )
    assert expected[512:].any(axis=(1, 2)).all()
    assert (d == expected[:, row_of, column_of].transpose(1, 0, 2)).all()


@pytest.mark.parametrize("form", FORMS)
def test_products_of_small_integers(form: str, built: dict[str, Kernel]) -> None:
    """Integers up to 7 make every step exact, so that D is numpy's A B + C; the asymmetric C tells rows from columns."""
    rows, depth = shape(form)
    _, left_type, right_type = form.split("_")
    generator = np.random.default_rng(5)
    left, right = generator.integers(-7, 8, (3, rows, depth)), generator.integers(-7, 8, (3, rows, depth))
    c = (1000 * np.arange(rows)[:, None] + np.arange(rows)).astype(np.float32) * np.ones((3, 1, 1), np.float32)
    left_bytes, right_bytes = nearest_bytes(left, bf8=left_type == "bf8"), nearest_bytes(right, bf8=right_type == "bf8")
    if "bf8" in form:  # bf8 has three significant bits: 5 and 7 are there, so every integer up to 7 is
        assert nearest_bytes(np.array([5.0, 7.0, -6.0]), bf8=True).tolist() == [0x49, 0x4B, 0xCA]
    d = matrix_product(built[form], form, left_bytes, right_bytes, c.view(np.uint32))
    assert (d.view(np.float32) == left @ right.transpose(0, 2, 1) + c).all()


# -- registers ---------------------------------------------------------------------------------------------------------
ONES = 0x40404040
FORM = "v_mfma_f32_16x16x32_fp8_fp8"


def ones(**more: list[int]) -> Before:
    """v2..v5: A and B of ones, so that every element of A B is 32; v6..v9: C."""
    return Before(
        vectors={n: [ONES] * 64 for n in (2, 3, 4, 5)} | {int(name[1:]): values for name, values in more.items()}
    )


def test_exec_is_ignored() -> None:
    after = execute(f"s_mov_b64 exec, 0\n{FORM} v[10:13], v[2:3], v[4:5], 0", ones())
    assert all(after.lanes(10 + n) == [0x42000000] * 64 for n in range(4))


def test_inline_constant_as_addend() -> None:
    after = execute(f"{FORM} v[10:13], v[2:3], v[4:5], 1.0\n{FORM} v[14:17], v[2:3], v[4:5], -4.0", ones())
    assert (after.lanes(10, 1), after.lanes(17, 1)) == ([0x42040000], [0x41E00000])


def test_accumulation_registers() -> None:
    """A from AGPRs, C and D in AGPRs; v_accvgpr_write and _read move values across."""
    body = (
        "\n".join(f"v_accvgpr_write_b32 a{n}, v{2 + n}" for n in range(2))
        + f"""
    v_accvgpr_write_b32 a4, 1.0
    v_accvgpr_write_b32 a5, v6
    v_accvgpr_write_b32 a6, 0
    v_accvgpr_write_b32 a7, 0
    s_nop 1
    {FORM} a[4:7], a[0:1], v[4:5], a[4:7]
    s_nop 6
    v_accvgpr_read_b32 v10, a4
    v_accvgpr_read_b32 v11, a5
    v_accvgpr_read_b32 v12, a7
    v_accvgpr_read_b32 v13, a0"""
    )
    after = execute(body, ones(v6=[0x40000000] * 64))
    assert [after.lanes(10 + n, 1)[0] for n in range(4)] == [0x42040000, 0x42080000, 0x42000000, ONES]


def test_destination_over_its_sources() -> None:
    body = f"v_mov_b64 v[10:11], v[2:3]\nv_mov_b64 v[12:13], v[4:5]\ns_nop 1\n{FORM} v[10:13], v[10:11], v[12:13], v[10:13]"
    after = execute(body, ones())
    expected = element([0x40] * 32, [0x40] * 32, ONES, left_bf8=False, right_bf8=False)
    assert [after.lanes(10 + n) for n in range(4)] == [[expected] * 64] * 4


def test_mfmas_are_counted() -> None:
    assert execute(f"{FORM} v[10:13], v[2:3], v[4:5], 0\n{FORM} v[10:13], v[2:3], v[4:5], 0", ones()).report.mfma == 2


def test_nan_operand_spoils_its_row_or_column_only() -> None:
    left = [ONES] * 64
    left[5] = 0x40408040  # row 5, k = 1
    after = execute(f"{FORM} v[10:13], v[2:3], v[4:5], 0", ones(v2=left))
    for register in range(4):
        for lane, value in enumerate(after.lanes(10 + register)):
            assert (value == NAN) if 4 * (lane // 16) + register == 5 else value == 0x42000000


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("v_mfma_f32_16x16x16_bf16 v[10:13], v[2:3], v[4:5], 0", "no public bit-exact specification"),
        ("v_mfma_f32_16x16x4_f32 v[10:13], v2, v4, 0", "no public bit-exact specification"),
        ("v_mfma_f32_16x16x8_xf32 v[10:13], v[2:3], v[4:5], v[6:9]", "v_mfma_f32_16x16x8_xf32 .*no semantics"),
        ("v_mfma_i32_16x16x32_i8 v[10:13], v[2:3], v[4:5], 0", "no public bit-exact specification"),
        ("v_smfmac_f32_16x16x64_fp8_fp8 v[10:13], v[2:3], v[4:7], v8", "not in the executor's table"),
        (f"{FORM} v[30:33], v[2:3], v[4:5], 0", "beyond the registers"),
        (f"{FORM} v[10:13], v[2:3], v[4:5], v[30:33]", "beyond the registers"),
        (f"{FORM} v[10:13], v[32:33], v[4:5], 0", "beyond the registers"),
        (f"{FORM} a[30:33], v[2:3], v[4:5], 0", "a33 is beyond the registers"),
    ],
)
def test_refused(body: str, message: str) -> None:
    with pytest.raises(Unsupported, match=message):
        execute(body, ones())


def test_native_refuses_wrong_shapes() -> None:
    a, c = np.zeros((2, 3, 64), np.uint32), np.zeros((4, 3, 64), np.uint32)
    with pytest.raises(ValueError, match="mfma_f8: rows 8"):
        native.mfma_f8(8, a, a, c)
    with pytest.raises(ValueError, match="shapes"):
        native.mfma_f8(16, a, a[:, :2], c)
    with pytest.raises(ValueError, match="shapes"):
        native.mfma_f8(32, a, a, c)
