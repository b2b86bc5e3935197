# SPDX-License-Identifier: Apache-2.0
"""Scalar ALU: SOP1, SOP2, SOPC, SOPK. One table row an instruction: (destination bits, source bits, function).

The function takes the sources as uint32 or uint64 [waves] and the waves, and returns (result or None, new SCC or None).
Source: CDNA3 ISA, chapter 12, "SOP2/SOPK/SOP1/SOPC Instructions"; SCC rules stand there at each instruction.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from parity.gfx942.decode import Instruction
from parity.gfx942.faults import Unsupported
from parity.gfx942.operands import scalar_row, scalar_source
from parity.gfx942.waves import EXEC, Waves

Function = Callable[..., tuple[Any, Any]]
U64, I32, U32, I64 = np.uint64, np.int32, np.uint32, np.int64


def _signed(value: np.ndarray) -> np.ndarray:
    """uint32 or uint64 bits as the signed type of the same width."""
    return value.view(I32 if value.dtype == U32 else I64)


def _bits(value: np.ndarray, dtype: Any) -> np.ndarray:
    """Result bits in the destination's width, wrapped."""
    return value.astype(dtype)


def _logic(function: Callable[[np.ndarray, np.ndarray], np.ndarray]) -> Function:
    """Bitwise instructions: SCC = result is not zero."""

    def run(waves: Waves, left: np.ndarray, right: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        result = function(left, right)
        return result, result != 0

    return run


def _shift(function: Callable[[np.ndarray, np.ndarray], np.ndarray], mask: int) -> Function:
    def run(waves: Waves, value: np.ndarray, amount: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        result = function(value, (amount & U32(mask)).astype(value.dtype))
        return result, result != 0

    return run


def _arithmetic_right(value: np.ndarray, amount: np.ndarray) -> np.ndarray:
    return (_signed(value) >> amount.astype(_signed(value).dtype)).view(value.dtype)


def _add_carry(waves: Waves, left: np.ndarray, right: np.ndarray, *, carry: np.ndarray | int = 0) -> tuple[Any, Any]:
    total = left.astype(U64) + right + np.asarray(carry, U64)
    return _bits(total, U32), total > 0xFFFFFFFF


def _sub_borrow(waves: Waves, left: np.ndarray, right: np.ndarray, *, borrow: np.ndarray | int = 0) -> tuple[Any, Any]:
    total = left.astype(I64) - right.astype(I64) - np.asarray(borrow, I64)
    return _bits(total, U32), total < 0


def _overflow(function: Callable[[np.ndarray, np.ndarray], np.ndarray]) -> Function:
    """s_add_i32, s_sub_i32: SCC = signed overflow."""

    def run(waves: Waves, left: np.ndarray, right: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        total = function(_signed(left).astype(I64), _signed(right).astype(I64))
        return _bits(total, U32), (total < -(2**31)) | (total >= 2**31)

    return run


def _extreme(pick: Callable[[np.ndarray, np.ndarray], np.ndarray], *, signed: bool) -> Function:
    """s_min, s_max: SCC = the first source was taken (ISA: s_max takes it when both are equal, s_min does not)."""

    def run(waves: Waves, left: np.ndarray, right: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        chosen = pick(_signed(left), _signed(right)) if signed else pick(left, right)
        return np.where(chosen, left, right), chosen

    return run


def _shift_add(amount: int) -> Function:
    def run(waves: Waves, left: np.ndarray, right: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        total = (left.astype(U64) << U64(amount)) + right
        return _bits(total, U32), total > 0xFFFFFFFF

    return run


def _bfe_u32(waves: Waves, value: np.ndarray, control: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Bits [4:0] offset, [22:16] width; the manual's (1 << width) - 1 has no meaning from 32 on."""
    offset, width = control & U32(31), (control >> U32(16)) & U32(127)
    if (width > 31).any():
        raise Unsupported(f"s_bfe_u32 with a width of {int(width.max())}")
    mask = (U32(1) << width) - U32(1)
    result = (value >> offset) & mask
    return result, result != 0


def _saveexec(combine: Callable[[np.ndarray, np.ndarray], np.ndarray]) -> Function:
    """D = EXEC; EXEC = combine(S0, EXEC); SCC = EXEC is not zero."""

    def run(waves: Waves, source: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        before = waves.s64(EXEC).copy()
        after = combine(source, before)
        waves.set_s64(EXEC, after)
        return before, after != 0

    return run


def _not(waves: Waves, source: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return ~source, source != ~source.dtype.type(0)


def _select(waves: Waves, left: np.ndarray, right: np.ndarray) -> tuple[np.ndarray, None]:
    return np.where(waves.get_scc(), left, right), None


def _compare(function: Callable[[np.ndarray, np.ndarray], np.ndarray], *, signed: bool) -> Function:
    def run(waves: Waves, left: np.ndarray, right: np.ndarray) -> tuple[None, np.ndarray]:
        return None, function(_signed(left), _signed(right)) if signed else function(left, right)

    return run


def _bit_is(value: int) -> Function:
    return lambda waves, left, right: (None, ((left >> (right & U32(31))) & U32(1)) == value)


_CONDITIONS = {
    "eq": np.equal,
    "lg": np.not_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
    "lt": np.less,
    "le": np.less_equal,
}

# name: (destination bits, source bits..., function); 0 destination bits = writes SCC only.
TABLE: dict[str, tuple[int, tuple[int, ...], Function]] = {
    "s_mov_b32": (32, (32,), lambda waves, source: (source, None)),
    "s_mov_b64": (64, (64,), lambda waves, source: (source, None)),
    "s_not_b32": (32, (32,), _not),
    "s_not_b64": (64, (64,), _not),
    "s_and_saveexec_b64": (64, (64,), _saveexec(np.bitwise_and)),
    "s_or_saveexec_b64": (64, (64,), _saveexec(np.bitwise_or)),
    "s_xor_saveexec_b64": (64, (64,), _saveexec(np.bitwise_xor)),
    "s_andn2_saveexec_b64": (64, (64,), _saveexec(lambda source, before: source & ~before)),
    "s_add_u32": (32, (32, 32), _add_carry),
    "s_addc_u32": (32, (32, 32), lambda waves, x, y: _add_carry(waves, x, y, carry=waves.get_scc())),
    "s_sub_u32": (32, (32, 32), _sub_borrow),
    "s_subb_u32": (32, (32, 32), lambda waves, x, y: _sub_borrow(waves, x, y, borrow=waves.get_scc())),
    "s_add_i32": (32, (32, 32), _overflow(np.add)),
    "s_sub_i32": (32, (32, 32), _overflow(np.subtract)),
    "s_addk_i32": (32, (32, 32), _overflow(np.add)),
    "s_mul_i32": (32, (32, 32), lambda waves, x, y: (x * y, None)),
    "s_mulk_i32": (32, (32, 32), lambda waves, x, y: (x * y, None)),
    "s_mul_hi_u32": (32, (32, 32), lambda waves, x, y: (_bits((x.astype(U64) * y) >> U64(32), U32), None)),
    "s_mul_hi_i32": (
        32,
        (32, 32),
        lambda waves, x, y: (_bits((_signed(x).astype(I64) * _signed(y)) >> I64(32), U32), None),
    ),
    "s_min_i32": (32, (32, 32), _extreme(np.less, signed=True)),
    "s_min_u32": (32, (32, 32), _extreme(np.less, signed=False)),
    "s_max_i32": (32, (32, 32), _extreme(np.greater_equal, signed=True)),
    "s_max_u32": (32, (32, 32), _extreme(np.greater_equal, signed=False)),
    "s_cselect_b32": (32, (32, 32), _select),
    "s_cselect_b64": (64, (64, 64), _select),
    "s_lshl_b32": (32, (32, 32), _shift(np.left_shift, 31)),
    "s_lshr_b32": (32, (32, 32), _shift(np.right_shift, 31)),
    "s_ashr_i32": (32, (32, 32), _shift(_arithmetic_right, 31)),
    "s_lshl_b64": (64, (64, 32), _shift(np.left_shift, 63)),
    "s_lshr_b64": (64, (64, 32), _shift(np.right_shift, 63)),
    "s_ashr_i64": (64, (64, 32), _shift(_arithmetic_right, 63)),
    "s_bfe_u32": (32, (32, 32), _bfe_u32),
    "s_movk_i32": (32, (32,), lambda waves, source: (source, None)),
    "s_bitcmp0_b32": (0, (32, 32), _bit_is(0)),
    "s_bitcmp1_b32": (0, (32, 32), _bit_is(1)),
    "s_cmp_eq_u64": (0, (64, 64), _compare(np.equal, signed=False)),
    "s_cmp_lg_u64": (0, (64, 64), _compare(np.not_equal, signed=False)),
}
for _amount in (1, 2, 3, 4):
    TABLE[f"s_lshl{_amount}_add_u32"] = (32, (32, 32), _shift_add(_amount))
for _width in (32, 64):
    _stems: dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
        "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor,
        "andn2": lambda x, y: x & ~y, "orn2": lambda x, y: x | ~y,
        "nand": lambda x, y: ~(x & y), "nor": lambda x, y: ~(x | y), "xnor": lambda x, y: ~(x ^ y),
    }  # fmt: skip
    for _stem, _function in _stems.items():
        TABLE[f"s_{_stem}_b{_width}"] = (_width, (_width, _width), _logic(_function))
for _name, _condition in _CONDITIONS.items():
    for _prefix in ("s_cmp", "s_cmpk"):
        TABLE[f"{_prefix}_{_name}_i32"] = (0, (32, 32), _compare(_condition, signed=True))
        TABLE[f"{_prefix}_{_name}_u32"] = (0, (32, 32), _compare(_condition, signed=False))


def compile_scalar(instruction: Instruction) -> Callable[[Waves], None]:
    """The executable form of one SOP1, SOP2, SOPC or SOPK instruction. Raises Unsupported by name."""
    if instruction.name not in TABLE:
        raise Unsupported(f"{instruction}: no semantics")
    bits, widths, function = TABLE[instruction.name]
    fields = instruction.fields
    if instruction.format == "SOPK":
        readers = _sopk_sources(instruction, len(widths))
    else:
        codes = [fields["ssrc0"], fields["ssrc1"]] if len(widths) == 2 else [fields["ssrc0"]]
        readers = [
            scalar_source(code, instruction, pair=width == 64) for code, width in zip(codes, widths, strict=True)
        ]
    destination = scalar_row(fields["sdst"], count=bits // 32) if bits else 0

    def run(waves: Waves) -> None:
        result, condition = function(waves, *(reader(waves) for reader in readers))
        if bits == 32:
            waves.set_s(destination, result)
        elif bits == 64:
            waves.set_s64(destination, result)
        if condition is not None:
            waves.set_scc(condition)

    return run


def _sopk_sources(instruction: Instruction, count: int) -> list[Callable[[Waves], np.ndarray]]:
    """SOPK: the destination is also the first source; simm16 is sign-extended but in the unsigned compares (ISA 12.2)."""
    value = instruction.fields["simm16"]
    if value >= 0x8000 and not (instruction.name.startswith("s_cmpk") and instruction.name.endswith("u32")):
        value |= 0xFFFF0000

    def immediate(waves: Waves) -> np.ndarray:
        return np.full(waves.selected, value, U32)

    if count == 1:
        return [immediate]
    return [scalar_source(instruction.fields["sdst"], instruction), immediate]
