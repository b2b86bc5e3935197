# SPDX-License-Identifier: Apache-2.0
"""Operand codes to the engine's sources and rows. Source: CDNA3 ISA, table "Operand codes" (scalar and vector ALU chapters).

A row is a register's place in the engine: SGPRs by their code (0..101, VCC 106/107, M0 124, EXEC 126/127), arch VGPRs by their
number, AGPRs behind them from the descriptor's accum_offset.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field

import numpy as np

from parity.gfx942 import records
from parity.gfx942.decode import LITERAL, Instruction
from parity.gfx942.faults import Unsupported
from parity.gfx942.records import EXEC, M0, VCC, WHOLE_DWORD, WIDE, Role, SourceKind, SourceRecord, Step

_FLOATS = {240: 0.5, 241: -0.5, 242: 1.0, 243: -1.0, 244: 2.0, 245: -2.0, 246: 4.0, 247: -4.0}
INV_2PI = 0x3E22F983
# Upper halves of the flat addresses of LDS and scratch, as in engine/memory.c
APERTURES = {235: 0x10000, 237: 0x20000}


@dataclass
class Kernel:
    """What translation needs of the kernel: its registers, and the lane patterns collected on the way."""

    vgprs: int
    accum_offset: int
    patterns: list[np.ndarray] = field(default_factory=list)

    def row(self, register: int, *, acc: bool = False, count: int = 1) -> int:
        """Row of VGPR or AGPR `register`, the first of `count`. Raises Unsupported beyond what the kernel allocated."""
        last = register + count - 1
        if last >= (self.vgprs - self.accum_offset if acc else self.accum_offset):
            raise Unsupported(
                f"{'a' if acc else 'v'}{last} is beyond the registers that the kernel descriptor allocates"
            )
        return register + (self.accum_offset if acc else 0)

    def pattern(self, lanes: np.ndarray) -> int:
        """Index of a lane pattern (int [64], -1 = outside) in the engine's list."""
        wanted = np.where(lanes < 0, 255, lanes).astype(np.uint8)
        for index, known in enumerate(self.patterns):
            if (known == wanted).all():
                return index
        self.patterns.append(wanted)
        return len(self.patterns) - 1


def new_step(family: records.Family, instruction: Instruction) -> Step:
    """A step without sources or destinations."""
    step = Step(
        family=family,
        pc=instruction.pc,
        vdst=records.NO_ROW,
        sdst=records.NO_ROW,
        sdwa_select=WHOLE_DWORD,
        wait_states=1,
    )
    for source in step.source:
        source.select, source.sign_bit = WHOLE_DWORD, 31
    return step


def touch(step: Step, role: Role, first: int, count: int = 1) -> None:
    """Tell the checks that the step touches `count` rows from `first`."""
    step.range[step.ranges] = records.RangeRecord(first, count, role)
    step.ranges += 1


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
    """Row of the first of `count` scalar registers; Unsupported for trap registers, apertures, unaligned groups."""
    last = code + count - 1
    if code % min(count, 4) == 0 and (
        last <= 101 or (code >= VCC and last <= VCC + 1) or (code >= EXEC and last <= EXEC + 1) or code == last == M0
    ):
        return code
    raise Unsupported(f"scalar operand {code}" + (f", {count} registers" if count > 1 else ""))


def set_constant(source: SourceRecord, value: int, *, wide: bool = False) -> None:
    source.kind, source.value, source.flags = SourceKind.CONSTANT, value, WIDE if wide else 0


def set_scalar(step: Step, position: int, code: int, instruction: Instruction, *, wide: bool = False) -> None:
    """Source `position` of a step from an 8-bit scalar operand code."""
    source, value = step.source[position], constant(code, instruction)
    if value is not None:
        set_constant(source, _wide_constant(code, value) if wide else value, wide=wide)
    elif code in APERTURES and wide:
        set_constant(source, APERTURES[code] << 32, wide=True)
    elif code == 253 and not wide:
        source.kind = SourceKind.SCC
    else:
        source.kind, source.row, source.flags = (
            SourceKind.SCALAR,
            scalar_row(code, count=2 if wide else 1),
            WIDE if wide else 0,
        )
        touch(step, Role.READ_S, source.row, 2 if wide else 1)


def set_vector(
    step: Step,
    position: int,
    code: int,
    instruction: Instruction,
    kernel: Kernel,
    *,
    wide: bool = False,
    acc: bool = False,
) -> None:
    """Source `position` of a step from a 9-bit vector operand code."""
    if code < 256:
        set_scalar(step, position, code, instruction, wide=wide)
        return
    source = step.source[position]
    source.kind, source.flags = SourceKind.VECTOR, WIDE if wide else 0
    source.row = kernel.row(code - 256, acc=acc, count=2 if wide else 1)
    touch(step, Role.READ_V, source.row, 2 if wide else 1)


def set_mask(step: Step, position: int, code: int) -> None:
    """Source `position` is a lane mask in a scalar register pair."""
    step.source[position].kind, step.source[position].row = SourceKind.LANE_MASK, scalar_row(code, count=2)
    touch(step, Role.READ_S, code, 2)


def write_vector(step: Step, row: int, count: int = 1) -> None:
    step.vdst, step.dwords = row, count
    touch(step, Role.WRITE_V, row, count)


def write_scalar(step: Step, code: int, count: int = 1) -> None:
    step.sdst = scalar_row(code, count=count)
    touch(step, Role.WRITE_S, code, count)


def _wide_constant(code: int, value: int) -> int:
    """A constant of a 64-bit integer operand: inline integers are sign-extended. Literals that would differ are refused."""
    if is_float_constant(code):
        raise Unsupported("a floating-point inline constant in a 64-bit integer operand")
    if 193 <= code <= 208:
        return value | 0xFFFFFFFF00000000
    if value >> 31:
        raise Unsupported(f"literal {value:#x} in a 64-bit operand: sign- or zero-extended")
    return value


def refuse(instruction: Instruction, **allowed: int | tuple[int, ...]) -> None:
    """Raise Unsupported unless each named field has its allowed value (or one of them).

    Silent modifiers are the danger of an executor: whatever is not implemented is refused here by name.
    """
    for name, values in allowed.items():
        actual = instruction.fields[name]
        if actual not in (values if isinstance(values, tuple) else (values,)):
            raise Unsupported(f"{instruction}: modifier {name}={actual}")
