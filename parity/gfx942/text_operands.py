# SPDX-License-Identifier: Apache-2.0
"""Operands of an instruction as LLVM's assembler writes them: registers, constants, modifiers around a source.

Each function returns text that stands for exactly the code given, or raises Unsupported.
Source: CDNA3 ISA, table "Operand codes"; LLVM "AMDGPU operand syntax".
"""

from __future__ import annotations

import struct

from parity.gfx942.faults import Unsupported

_FLOATS = {240: "0.5", 241: "-0.5", 242: "1.0", 243: "-1.0", 244: "2.0", 245: "-2.0", 246: "4.0", 247: "-4.0"}
_INV_2PI = {16: "0.15915494", 32: "0.15915494", 64: "0.15915494309189532"}
_SINGLE = {102: "flat_scratch_lo", 103: "flat_scratch_hi", 104: "xnack_mask_lo", 105: "xnack_mask_hi", 106: "vcc_lo", 107: "vcc_hi",
           124: "m0", 126: "exec_lo", 127: "exec_hi"}  # fmt: skip
_FLAGS = {251: "src_vccz", 252: "src_execz", 253: "src_scc"}
_PAIR = {102: "flat_scratch", 104: "xnack_mask", 106: "vcc", 126: "exec"}
_APERTURES = {235: "src_shared_base", 236: "src_shared_limit", 237: "src_private_base", 238: "src_private_limit",
              239: "src_pops_exiting_wave_id"}  # fmt: skip


def group(letter: str, first: int, count: int) -> str:
    return f"{letter}{first}" if count == 1 else f"{letter}[{first}:{first + count - 1}]"


def vector(number: int, count: int, *, acc: bool = False) -> str:
    """VGPRs (AGPRs when acc) from `number`. gfx942 has tuples at even numbers only."""
    if number + count > 256 or (count > 1 and number % 2):
        raise Unsupported(f"no group of {count} vector registers begins at {number}")
    return group("a" if acc else "v", number, count)


def scalar(code: int, count: int) -> str:
    """The scalar registers with operand code `code`, no constants."""
    if count == 1 and code in _SINGLE:
        return _SINGLE[code]
    if count == 2 and code in _PAIR:
        return _PAIR[code]
    for letter, start, end in (("s", 0, 102), ("ttmp", 108, 124)):
        if start <= code and code + count <= end and (code - start) % min(count, 4) == 0:
            return group(letter, code - start, count)
    raise Unsupported(f"operand code {code} is no group of {count} scalar registers")


def constant(code: int, bits: int) -> str:
    """An inline constant, "" when `code` is none."""
    if 128 <= code <= 208:
        return str(code - 128 if code <= 192 else 192 - code)
    return _INV_2PI[bits] if code == 248 else _FLOATS.get(code, "")


# 32- and 16-bit patterns of the inline constants.
_INLINE = {*range(65), *range(0xFFFFFFF0, 1 << 32), *range(0xFFF0, 1 << 16)} | {
    int.from_bytes(struct.pack(code, float(text)), "little") for code in ("<f", "<e") for text in [*_FLOATS.values(), _INV_2PI[32]]}  # fmt: skip


def literal(value: int, bits: int) -> str:
    """A 32-bit literal for an operand of `bits`; lit(...) where the assembler could choose an inline constant."""
    if bits == 16 and value >= 1 << 16:
        raise Unsupported(f"literal {value:#x} for 16 bits")
    return f"lit({value:#x})" if value in _INLINE else f"{value:#x}"


def scalar_source(code: int, kind: str, literal_value: int | None) -> str:
    """A source of a scalar instruction, or one of a vector instruction below 256."""
    bits = int(kind[1:])
    if code == 255:
        if literal_value is None:
            raise Unsupported("a literal in an encoding that has none")
        return literal(literal_value, bits)
    if code in _APERTURES and bits <= 64:
        return _APERTURES[code]
    if code in _FLAGS and bits <= 32:
        return _FLAGS[code]
    return constant(code, bits if bits <= 64 else 32) or scalar(code, max(1, bits // 32))


def modified(text: str, *, neg: int, absolute: int, sext: int = 0) -> str:
    """neg and abs around a source; neg(...) where - would make another constant."""
    if absolute:
        text = f"|{text}|"
    if sext:
        text = f"sext({text})"
    if not neg:
        return text
    return f"-{text}" if text[0] in "vsa|" and not text.startswith("src_") else f"neg({text})"
