# SPDX-License-Identifier: Apache-2.0
"""Operand codes to readers: each returns the raw bits of a source for the selected waves.

Source: CDNA3 ISA, table "Operand codes" (section 3.1 of the scalar and vector ALU chapters). A reader takes the waves and
gives uint32 (or uint64 for pairs) that broadcasts to [waves, 64] in vector and to [waves] in scalar instructions.
"""

from __future__ import annotations

import struct
from collections.abc import Callable

import numpy as np

from parity.gfx942.decode import LITERAL, Instruction
from parity.gfx942.faults import Unsupported
from parity.gfx942.waves import EXEC, M0, VCC, Waves

Reader = Callable[[Waves], np.ndarray]

_FLOATS = {240: 0.5, 241: -0.5, 242: 1.0, 243: -1.0, 244: 2.0, 245: -2.0, 246: 4.0, 247: -4.0}
INV_2PI = 0x3E22F983


def constant(code: int, instruction: Instruction) -> int | None:
    """Value of an inline or literal constant as an unsigned 32-bit pattern, None when `code` is a register."""
    if 128 <= code <= 192:
        return code - 128
    if 193 <= code <= 208:
        return (192 - code) & 0xFFFFFFFF
    if code in _FLOATS:
        return int(struct.unpack("<I", struct.pack("<f", _FLOATS[code]))[0])
    if code == 248:
        return INV_2PI
    if code == LITERAL:
        if "literal" not in instruction.fields:
            raise Unsupported(f"{instruction}: a literal in an encoding that has none")
        return instruction.fields["literal"]
    return None


def is_float_constant(code: int) -> bool:
    return code in _FLOATS or code == 248


def scalar_row(code: int, *, count: int = 1) -> int:
    """Row of the scalar file for the first of `count` registers; Unsupported for trap registers, apertures, unaligned groups."""
    last = code + count - 1
    if code % min(count, 4) == 0 and (
        last <= 101 or (code >= VCC and last <= VCC + 1) or (code >= EXEC and last <= EXEC + 1) or code == last == M0
    ):
        return code
    raise Unsupported(f"scalar operand {code}" + (f", {count} registers" if count > 1 else ""))


def scalar_source(code: int, instruction: Instruction, *, pair: bool = False) -> Reader:
    """Reader of an 8-bit scalar source: uint32 [waves], or uint64 [waves] for a pair."""
    value = constant(code, instruction)
    if value is not None:
        if pair:
            fixed64 = _wide_constant(code, value)
            return lambda waves: np.full(waves.selected, fixed64, np.uint64)
        fixed = np.uint32(value)
        return lambda waves: np.full(waves.selected, fixed, np.uint32)
    if code == 253 and not pair:
        return lambda waves: waves.get_scc().astype(np.uint32)
    row = scalar_row(code, count=2 if pair else 1)
    return (lambda waves: waves.s64(row)) if pair else (lambda waves: waves.s(row))


def _wide_constant(code: int, value: int) -> np.uint64:
    """A constant of a 64-bit integer operand: inline integers are sign-extended. Literals that would differ are refused."""
    if is_float_constant(code):
        raise Unsupported("a floating-point inline constant in a 64-bit integer operand")
    if 193 <= code <= 208:
        return np.uint64(value | 0xFFFFFFFF00000000)
    if value >> 31:
        raise Unsupported(f"literal {value:#x} in a 64-bit operand: sign- or zero-extended")
    return np.uint64(value)


def vector_source(code: int, instruction: Instruction, waves_acc: bool = False) -> Reader:
    """Reader of a 9-bit vector source: uint32 that broadcasts to [waves, 64]."""
    value = constant(code, instruction)
    if value is not None:
        fixed = np.full((1, 1), value, np.uint32)
        return lambda waves: fixed
    if code >= 256:
        register = code - 256
        return lambda waves: waves.v(waves.row(register, acc=waves_acc))
    if code == 253:
        return lambda waves: waves.get_scc().astype(np.uint32)[:, None]
    row = scalar_row(code)
    return lambda waves: waves.s(row)[:, None]


def vector_pair(code: int, instruction: Instruction) -> Reader:
    """Reader of a 64-bit integer vector source: uint64 that broadcasts to [waves, 64]."""
    value = constant(code, instruction)
    if value is not None:
        fixed = np.full((1, 1), _wide_constant(code, value), np.uint64)
        return lambda waves: fixed
    if code >= 256:
        register = code - 256
        return lambda waves: _join(waves.v(waves.row(register)), waves.v(waves.row(register + 1)))
    row = scalar_row(code, count=2)
    return lambda waves: waves.s64(row)[:, None]


def _join(low: np.ndarray, high: np.ndarray) -> np.ndarray:
    return low.astype(np.uint64) | (high.astype(np.uint64) << np.uint64(32))


def refuse(instruction: Instruction, **allowed: int | tuple[int, ...]) -> None:
    """Raise Unsupported unless each named field has its allowed value (or one of them).

    Silent modifiers are the danger of an executor: whatever a semantic does not implement is refused here by name.
    """
    for name, values in allowed.items():
        actual = instruction.fields[name]
        if actual not in (values if isinstance(values, tuple) else (values,)):
            raise Unsupported(f"{instruction}: modifier {name}={actual}")
