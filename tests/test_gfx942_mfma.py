# SPDX-License-Identifier: Apache-2.0
"""fp8/bf8 matrix instructions: given vectors, an independent slow implementation, each rule flipped, layouts, registers."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gfx942_assembly import Source, allocations, pointer, text_of
from gfx942_state import Before, execute
from mfma_rules import NAN, Rules, element, is_nan, to_fp32

from parity.gfx942 import Kernel, Unsupported, launch, load, native
from parity.gfx942.code_object import assemble

VECTORS = json.loads((Path(__file__).parents[1] / "fixtures" / "mfma" / "vectors.json").read_text())
FORMS = [f"{rows}_{left}_{right}" for rows in ("16x16x32", "32x32x16") for left in ("fp8", "bf8") for right in ("fp8", "bf8")]
ONE = 0x40  # 1.0 in both encodings


def shape(form: str) -> tuple[int, int]:
    """(rows, depth)."""
    return (16, 32) if form.startswith("16") else (32, 16)


def kernel_source(form: str) -> Source:
    """One wave a workgroup: A and B (2 registers each) and C from memory, D over C."""
    rows, _ = shape(form)
    registers = rows * rows // 64
    lines = ["s_load_dwordx4 s[4:7], s[0:1], 0x0", "s_load_dwordx2 s[8:9], s[0:1], 0x10", f"s_mul_i32 s3, s2, {256 * registers}",
             "v_lshl_add_u32 v1, v0, 2, s3", "s_lshl_b32 s3, s2, 9", "v_lshl_add_u32 v2, v0, 2, s3",
             "global_load_dword v4, v2, s[4:5]", "global_load_dword v5, v2, s[4:5] offset:256",
             "global_load_dword v6, v2, s[6:7]", "global_load_dword v7, v2, s[6:7] offset:256"]  # fmt: skip
    lines += [f"global_load_dword v{8 + n}, v1, s[8:9] offset:{256 * n}" for n in range(registers)]
    accumulator = f"v[8:{7 + registers}]"
    lines += ["s_waitcnt vmcnt(0)", f"v_mfma_f32_{form} {accumulator}, v[4:5], v[6:7], {accumulator}"]
    lines += [f"global_store_dword v1, v{8 + n}, s[8:9] offset:{256 * n}" for n in range(registers)]
    return Source("k" + form, "\n".join(lines), ((8, "global_buffer"),) * 3)


@pytest.fixture(scope="module")
def built() -> dict[str, Kernel]:
    code = assemble(text_of(*(kernel_source(form) for form in FORMS)))
    return {form: load(code, "k" + form) for form in FORMS}


def operand_registers(matrix: np.ndarray) -> np.ndarray:
    """uint8 [waves, rows, depth] to dwords [waves, 2, 64]: row = lane % rows, bytes k = 8 (lane / rows) .. + 7."""
    waves, rows, _ = matrix.shape
    lane = np.arange(64)
    data = matrix[:, (lane % rows)[:, None], (lane // rows * 8)[:, None] + np.arange(8)]
    return np.ascontiguousarray(np.ascontiguousarray(data).view(np.uint32).transpose(0, 2, 1)).reshape(waves, 2, 64)


def result_rows(rows: int) -> tuple[np.ndarray, np.ndarray]:
    """(row, column) of D by register and lane, written out from the README."""
    register, lane = np.arange(rows * rows // 64)[:, None], np.arange(64)[None, :]
    row = 4 * (lane // 16) + register if rows == 16 else 8 * (register // 4) + 4 * (lane // 32) + register % 4
    return row, np.broadcast_to(lane % rows, row.shape)


def matrix_product(kernel: Kernel, form: str, left: np.ndarray, right: np.ndarray, c: np.ndarray) -> np.ndarray:
    """D uint32 [waves, rows, rows] of A uint8 [waves, rows, depth], B^T uint8 [waves, rows, depth], C uint32 like D."""
    rows, _ = shape(form)
    row, column = result_rows(rows)
    a, b, d = operand_registers(left), operand_registers(right), np.ascontiguousarray(c[:, row, column])
    launch(kernel, [pointer(a), pointer(b), pointer(d)], (len(left), 1, 1), (64, 1, 1), allocations(a=a, b=b, d=d))
    result = np.zeros_like(c)
    result[:, row, column] = d
    return result


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
    mantissa = 3 if bf8 is False else 2
    low = (1 << mantissa) - 1
    raw = generator.integers(0, 256, size, dtype=np.uint8)
    if mix == "bytes":
        return raw
    if mix == "gaussian":
        limit = 57344.0 if bf8 else 240.0
        return _nearest(np.clip(generator.standard_normal(size) * 2, -limit, limit), bf8=bf8)
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


def _nearest(values: np.ndarray, *, bf8: bool) -> np.ndarray:
    """Bytes whose value is nearest; the table is built from the format's definition."""
    mantissa, bias = (2, 16) if bf8 else (3, 8)
    fields, rest = np.arange(128) >> mantissa, np.arange(128) & ((1 << mantissa) - 1)
    table = np.where(fields == 0, rest, rest + (1 << mantissa)) * 2.0 ** (np.maximum(fields, 1) - bias - mantissa)
    size = np.abs(values)
    index = np.clip(np.searchsorted(table, size), 1, 127)
    index = np.where(size - table[index - 1] < table[index] - size, index - 1, index)
    return np.where((values < 0) & (index > 0), index | 0x80, index).astype(np.uint8)


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


def elements(kernel: Kernel, form: str, generator: np.random.Generator, left_mix: str, right_mix: str, acc_mix: str, count: int) -> Iterator[Element]:
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
                assert same, f"{left_mix}/{acc_mix}: A {left}, B {right}, C {c:08x}: {actual:08x}, expected {expected:08x}"


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
    vectors = [(*row_and_column(case), int(case["c"], 16), NAN if case["d"] == "nan" else int(case["d"], 16)) for case in VECTORS]
    mixes = [("wide", "near"), ("cancelling", "near"), ("sparse", "near"), ("gaussian", "near"), ("bytes", "zero"), ("sparse", "subnormal")]
    return vectors + [found for _ in range(3) for left, acc in mixes for found in elements(built[form], form, generator, left, left, acc, 60)]


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


# -- (d) layout --------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("form", FORMS)
def test_layout_by_single_ones(form: str) -> None:
    """A one at (lane, register, byte) of A and at (lane, register, byte) of B meets at one place of D, or nowhere."""
    rows, _ = shape(form)
    row_of, column_of = result_rows(rows)
    generator = np.random.default_rng(3)
    places = [(int(lane), int(byte)) for lane in range(64) for byte in range(8)]
    picks = [(place, places[int(generator.integers(512))]) for place in places]
    picks += [(place, (int(generator.integers(rows)) + place[0] // rows * rows, place[1])) for place in places]  # same k: they meet
    a, b = np.zeros((2, len(picks), 64), np.uint32), np.zeros((2, len(picks), 64), np.uint32)
    expected = np.zeros((len(picks), rows, rows), np.uint32)
    for wave, ((a_lane, a_byte), (b_lane, b_byte)) in enumerate(picks):
        a[a_byte // 4, wave, a_lane] = ONE << 8 * (a_byte % 4)
        b[b_byte // 4, wave, b_lane] = ONE << 8 * (b_byte % 4)
        if (a_lane // rows, a_byte) == (b_lane // rows, b_byte):  # the same k
            expected[wave, a_lane % rows, b_lane % rows] = 0x3F800000
    _, left, right = form.split("_")
    d = native.mfma_f8(rows, a, b, np.zeros((rows * rows // 64, len(picks), 64), np.uint32), left_bf8=left == "bf8", right_bf8=right == "bf8")
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
    left_bytes, right_bytes = _nearest(left, bf8=left_type == "bf8"), _nearest(right, bf8=right_type == "bf8")
    if "bf8" in form:  # bf8 has three significant bits: 5 and 7 are there, so every integer up to 7 is
        assert _nearest(np.array([5.0, 7.0, -6.0]), bf8=True).tolist() == [0x49, 0x4B, 0xCA]
    d = matrix_product(built[form], form, left_bytes, right_bytes, c.view(np.uint32))
    assert (d.view(np.float32) == left @ right.transpose(0, 2, 1) + c).all()


# -- registers ---------------------------------------------------------------------------------------------------------
ONES = 0x40404040
FORM = "v_mfma_f32_16x16x32_fp8_fp8"


def ones(**more: list[int]) -> Before:
    """v2..v5: A and B of ones, so that every element of A B is 32; v6..v9: C."""
    return Before(vectors={n: [ONES] * 64 for n in (2, 3, 4, 5)} | {int(name[1:]): values for name, values in more.items()})


def test_exec_is_ignored() -> None:
    after = execute(f"s_mov_b64 exec, 0\n{FORM} v[10:13], v[2:3], v[4:5], 0", ones())
    assert all(after.lanes(10 + n) == [0x42000000] * 64 for n in range(4))


def test_inline_constant_as_addend() -> None:
    after = execute(f"{FORM} v[10:13], v[2:3], v[4:5], 1.0\n{FORM} v[14:17], v[2:3], v[4:5], -4.0", ones())
    assert (after.lanes(10, 1), after.lanes(17, 1)) == ([0x42040000], [0x41E00000])


def test_accumulation_registers() -> None:
    """A from AGPRs, C and D in AGPRs; v_accvgpr_write and _read move values across."""
    body = "\n".join(f"v_accvgpr_write_b32 a{n}, v{2 + n}" for n in range(2)) + f"""
    v_accvgpr_write_b32 a4, 1.0
    v_accvgpr_write_b32 a5, v6
    v_accvgpr_write_b32 a6, 0
    v_accvgpr_write_b32 a7, 0
    {FORM} a[4:7], a[0:1], v[4:5], a[4:7]
    v_accvgpr_read_b32 v10, a4
    v_accvgpr_read_b32 v11, a5
    v_accvgpr_read_b32 v12, a7
    v_accvgpr_read_b32 v13, a0"""
    after = execute(body, ones(v6=[0x40000000] * 64))
    assert [after.lanes(10 + n, 1)[0] for n in range(4)] == [0x42040000, 0x42080000, 0x42000000, ONES]


def test_destination_over_its_sources() -> None:
    body = f"v_mov_b64 v[10:11], v[2:3]\nv_mov_b64 v[12:13], v[4:5]\n{FORM} v[10:13], v[10:11], v[12:13], v[10:13]"
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
        ("v_mfma_f32_16x16x16_f16 v[10:13], v[2:3], v[4:5], 0", "no public bit-exact specification"),
        ("v_mfma_f32_16x16x16_bf16 v[10:13], v[2:3], v[4:5], 0", "no public bit-exact specification"),
        ("v_mfma_f32_16x16x4_f32 v[10:13], v2, v4, 0", "no public bit-exact specification"),
        ("v_mfma_f32_16x16x8_xf32 v[10:13], v[2:3], v[4:5], v[6:9]", "v_mfma_f32_16x16x8_xf32 .*no semantics"),
        ("v_mfma_i32_16x16x32_i8 v[10:13], v[2:3], v[4:5], 0", "no public bit-exact specification"),
        ("v_smfmac_f32_16x16x64_fp8_fp8 v[10:13], v[2:3], v[4:7], v8", "not in the executor's table"),
        (f"{FORM} v[30:33], v[2:3], v[4:5], 0", "beyond the registers"),
        (f"{FORM} v[10:13], v[2:3], v[4:5], v[30:33]", "beyond the registers"),
        (f"{FORM} v[10:13], v[32:33], v[4:5], 0", "beyond the registers"),
        (f"{FORM} a[30:33], v[2:3], v[4:5], 0", "a33 is beyond the registers"),
        ("s_mov_b64 exec, 1\nv_accvgpr_write_b32 a0, v2", "v_accvgpr_write_b32 .*EXEC"),
        ("s_mov_b64 exec, 1\nv_accvgpr_read_b32 v10, a0", "v_accvgpr_read_b32 .*EXEC"),
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
