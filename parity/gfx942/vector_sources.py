# SPDX-License-Identifier: Apache-2.0
"""Sources of vector instructions: one reader an operand, with the modifiers of e32, e64, SDWA and DPP.

A modifier that is not implemented for an operand is refused by name. Source: CDNA3 ISA, "Vector ALU Operations", "SDWA", "DPP".
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from parity.gfx942.cross_lane import dpp_source
from parity.gfx942.decode import Instruction
from parity.gfx942.faults import Unsupported
from parity.gfx942.operands import Reader, is_float_constant, refuse, scalar_row, vector_pair, vector_source
from parity.gfx942.waves import VCC, Waves

# Types of sources and results: see vector.py.
DTYPE = {"u": np.uint32, "h": np.uint32, "i": np.int32, "f": np.float32, "U": np.uint64, "I": np.int64}
SIGN = np.uint32(0x80000000)
DWORD = 6  # SDWA select code


def sources(instruction: Instruction, types: str) -> list[Reader]:
    base, _, form = instruction.format.partition("-")
    if base == "VOP3":
        return _vop3_sources(instruction, types)
    codes = [instruction.fields["src0"]]
    if base != "VOP1":
        codes.append(256 + instruction.fields["vsrc1"])
    readers: list[Reader] = []
    for position, kind in enumerate(types):
        if kind == "m":
            readers.append(lambda waves: waves.lane_mask(VCC))
        elif form == "SDWA":
            readers.append(_sdwa_source(instruction, position, kind, codes))
        elif form == "DPP":
            readers.append(_dpp_operand(instruction, position, kind, codes))
        else:
            readers.append(typed(_bits(codes[position], instruction, kind), kind))
    return readers


def _bits(code: int, instruction: Instruction, kind: str) -> Reader:
    """Raw bits of source `code`, 32 or 64 by `kind`."""
    if kind == "h" and is_float_constant(code):  # fp16 there
        raise Unsupported(f"{instruction}: a floating-point inline constant in a 16-bit operand")
    return (vector_pair if kind in "UI" else vector_source)(code, instruction)


def typed(reader: Reader, kind: str) -> Reader:
    dtype = DTYPE[kind]
    if dtype in (np.uint32, np.uint64):
        return reader
    return lambda waves: reader(waves).view(dtype)


def _modified(reader: Reader, kind: str, instruction: Instruction, *, negate: bool, absolute: bool) -> Reader:
    """Sign-bit modifiers |x| then -x, only on floats (ISA 6.1.2)."""
    if not (negate or absolute):
        return typed(reader, kind)
    if kind != "f":
        raise Unsupported(f"{instruction}: abs or neg on an integer source")

    def read(waves: Waves) -> np.ndarray:
        bits = reader(waves)
        bits = bits & ~SIGN if absolute else bits
        return (bits ^ SIGN if negate else bits).view(np.float32)

    return read


def _vop3_sources(instruction: Instruction, types: str) -> list[Reader]:
    fields = instruction.fields
    refuse(instruction, opsel=0)
    refuse_unread_signs(instruction, len(types))
    readers: list[Reader] = []
    for position, kind in enumerate(types):
        code = fields[f"src{position}"]
        if kind == "m":
            row = scalar_row(code, count=2)
            readers.append(lambda waves, row=row: waves.lane_mask(row))  # type: ignore[misc]
            continue
        flags = {"negate": bool(fields["neg"] >> position & 1), "absolute": bool(fields["abs"] >> position & 1)}
        if kind == "f":
            readers.append(_modified(vector_source(code, instruction), kind, instruction, **flags))
        elif any(flags.values()):
            raise Unsupported(f"{instruction}: abs or neg on an integer source")
        else:
            readers.append(typed(_bits(code, instruction, kind), kind))
    return readers


def refuse_unread_signs(instruction: Instruction, count: int) -> None:
    """abs and neg have a bit for three sources; those beyond `count` belong to none."""
    for name in ("abs", "neg"):
        if instruction.fields[name] >> count:
            raise Unsupported(f"{instruction}: modifier {name}={instruction.fields[name]} with {count} sources")


def _sdwa_source(instruction: Instruction, position: int, kind: str, codes: list[int]) -> Reader:
    """A byte or word of the source, zero- or sign-extended (ISA, "SDWA")."""
    fields = instruction.fields
    if kind in "UI":
        raise Unsupported(f"{instruction}: SDWA on a 64-bit source")
    is_scalar = fields[f"s{position}"]
    register = fields["src0"] if position == 0 else codes[1] - 256
    reader = _bits(register if is_scalar else 256 + register, instruction, kind)
    select, extend = fields[f"src{position}_sel"], fields[f"src{position}_sext"]
    flags = {"negate": bool(fields[f"src{position}_neg"]), "absolute": bool(fields[f"src{position}_abs"])}
    if select == DWORD:
        return _modified(reader, kind, instruction, **flags)
    if any(flags.values()) or select > DWORD or kind == "f":  # what part of an fp32 a byte would be is nowhere said
        raise Unsupported(f"{instruction}: SDWA src{position}_sel={select} on a float, or with modifiers")
    width = 8 if select < 4 else 16
    offset = np.uint32(8 * select if select < 4 else 16 * (select - 4))

    def read(waves: Waves) -> np.ndarray:
        part = (reader(waves) >> offset) & np.uint32((1 << width) - 1)
        if extend:
            part = (part.astype(np.int32) << (32 - width) >> (32 - width)).view(np.uint32)
        return part

    return typed(read, kind)


def _dpp_operand(instruction: Instruction, position: int, kind: str, codes: list[int]) -> Reader:
    fields = instruction.fields
    if kind in "UI":
        raise Unsupported(f"{instruction}: DPP on a 64-bit source")
    if position == 0:
        shuffle = dpp_source(instruction)
        reader: Reader = lambda waves: shuffle(waves)[0]  # noqa: E731
    else:
        reader = vector_source(codes[1], instruction)
    return _modified(
        reader,
        kind,
        instruction,
        negate=bool(fields[f"src{position}_neg"]),
        absolute=bool(fields[f"src{position}_abs"]),
    )


def dpp_mask(instruction: Instruction) -> Callable[[Waves], np.ndarray] | None:
    if not instruction.format.endswith("-DPP"):
        return None
    shuffle = dpp_source(instruction)
    return lambda waves: shuffle(waves)[1]
