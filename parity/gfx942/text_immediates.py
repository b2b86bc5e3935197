# SPDX-License-Identifier: Apache-2.0
"""Operands that are numbers: literals, SMEM offsets, counters of s_waitcnt, hardware registers.

Source: LLVM "Syntax of AMDGPU Instruction Operands"; CDNA3 ISA chapter 12.
"""

from __future__ import annotations

from collections.abc import Callable

from parity.gfx942 import text_operands as operands
from parity.gfx942.faults import Unsupported
from parity.gfx942.text_fields import Fields

_HWREGS = {1: "HW_REG_MODE", 2: "HW_REG_STATUS", 3: "HW_REG_TRAPSTS", 4: "HW_REG_HW_ID", 5: "HW_REG_GPR_ALLOC", 6: "HW_REG_LDS_ALLOC",
           7: "HW_REG_IB_STS", 20: "HW_REG_XCC_ID"}  # fmt: skip


def _hwreg(fields: Fields, field: str) -> str:
    value = fields.take(field)
    register, offset, width = value & 63, value >> 6 & 31, (value >> 11) + 1
    if register not in _HWREGS:
        return f"{value:#x}"
    return f"hwreg({_HWREGS[register]}" + ("" if (offset, width) == (0, 32) else f", {offset}, {width}") + ")"


def _counters(fields: Fields, field: str) -> str:
    """s_waitcnt: the counters that it waits for, all of them where it waits for none."""
    value = fields.take(field)
    if value & 0x3080:
        return f"{value:#x}"
    counters = (
        ("vmcnt", value & 15 | value >> 14 << 4, 63),
        ("expcnt", value >> 4 & 7, 7),
        ("lgkmcnt", value >> 8 & 15, 15),
    )
    waited = [f"{name}({count})" for name, count, most in counters if count != most]
    return " ".join(waited or [f"{name}({count})" for name, count, _ in counters])


def _hex(fields: Fields, field: str) -> str:
    if field == "literal":
        fields.reads_scalar("a literal")
        return operands.literal(_literal(fields), 32)
    return f"{fields.take(field):#x}"


def _literal(fields: Fields) -> int:
    if fields.literal is None:
        raise Unsupported("a literal in an encoding that has none")
    return fields.literal


def _optional(fields: Fields, field: str) -> str:
    value = fields.take(field)
    return str(value) if value else ""


def _offset(fields: Fields, field: str) -> str:
    """SMEM: a 21-bit signed number, a scalar register, or both."""
    number, register = fields.take("offset"), fields.take("soffset")
    if fields.take("imm"):
        signed = number - (1 << 21) if number >> 20 else number
        if signed < 0 and "buffer" in fields.name:
            raise Unsupported(f"offset={signed} in a buffer")
        if fields.take("soffset_en"):
            return f"{operands.scalar(register, 1)} offset:{signed:#x}"
        if register:
            raise Unsupported("soffset without soffset_en")
        return f"{signed:#x}"
    if register:
        raise Unsupported("soffset without an immediate offset")
    return operands.scalar(number, 1)


IMMEDIATES: dict[str, Callable[[Fields, str], str]] = {
    "number": lambda fields, field: str(fields.take(field)), "hex": _hex, "optional": _optional, "hwreg": _hwreg, "counters": _counters,
    "smem": _offset}  # fmt: skip
