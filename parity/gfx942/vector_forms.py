# SPDX-License-Identifier: Apache-2.0
"""Vector ALU encodings: reads sources (vector_sources.py), applies the tables of vector.py, writes with its modifiers.

compile_vector(instruction) gives the executable form. A modifier that is not implemented for an instruction is refused.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from parity.gfx942 import native, vector
from parity.gfx942.decode import Instruction
from parity.gfx942.faults import Unsupported
from parity.gfx942.operands import refuse, scalar_row, vector_source
from parity.gfx942.vector_sources import DWORD, dpp_mask, sources, typed
from parity.gfx942.waves import EXEC, VCC, Waves


def compile_vector(instruction: Instruction) -> Callable[[Waves], None]:
    """The executable form of one VOP1, VOP2, VOP3 or VOPC instruction. Raises Unsupported by name."""
    name = instruction.name
    if name in vector.COMPARE:
        return _compare(instruction)
    if name in vector.CARRY:
        return _carry(instruction)
    if name in vector.ACCUMULATE:
        kind, types, function = vector.ACCUMULATE[name]
        return _compute(instruction, kind, types, function, accumulate=True)
    if name in ("v_fmamk_f32", "v_fmaak_f32"):
        return _fma_with_constant(instruction)
    if name in vector.TABLE:
        kind, types, function = vector.TABLE[name]
        return _compute(instruction, kind, types, function)
    raise Unsupported(f"{instruction}: no semantics")


def _compute(
    instruction: Instruction, kind: str, types: str, function: Callable[..., np.ndarray], *, accumulate: bool = False
) -> Callable[[Waves], None]:
    readers = sources(instruction, types[:-1] if accumulate else types)
    destination = instruction.fields["vdst"]
    if accumulate:
        readers.append(typed(vector_source(256 + destination, instruction), "f"))
    mask_of = dpp_mask(instruction)
    finish = _result_modifier(instruction, kind)

    def run(waves: Waves) -> None:
        result = finish(waves, function(*(reader(waves) for reader in readers)))
        mask = None if mask_of is None else mask_of(waves)
        if kind in "UI":
            bits = (
                np.broadcast_to(result, (waves.selected, 64)).view(np.uint64) if result.dtype != np.uint64 else result
            )
            waves.set_v(waves.row(destination), (bits & np.uint64(0xFFFFFFFF)).astype(np.uint32), mask=mask)
            waves.set_v(waves.row(destination + 1), (bits >> np.uint64(32)).astype(np.uint32), mask=mask)
        else:
            waves.set_v(waves.row(destination), result.view(np.uint32), mask=mask)

    return run


def _fma_with_constant(instruction: Instruction) -> Callable[[Waves], None]:
    """v_fmamk: D = S0 * K + S1; v_fmaak: D = S0 * S1 + K."""
    first = typed(vector_source(instruction.fields["src0"], instruction), "f")
    second = typed(vector_source(256 + instruction.fields["vsrc1"], instruction), "f")
    fixed = np.full((1, 1), instruction.fields["literal"], np.uint32).view(np.float32)
    destination = instruction.fields["vdst"]

    def run(waves: Waves) -> None:
        x, y = first(waves), second(waves)
        result = native.fma_f32(x, fixed, y) if instruction.name == "v_fmamk_f32" else native.fma_f32(x, y, fixed)
        waves.set_v(waves.row(destination), result.view(np.uint32))

    return run


def _compare(instruction: Instruction) -> Callable[[Waves], None]:
    types, condition = vector.COMPARE[instruction.name]
    readers = sources(instruction, types)
    fields = instruction.fields
    if instruction.format == "VOP3":
        refuse(instruction, clamp=0, omod=0, opsel=0)
        destination = scalar_row(fields["vdst"], count=2)
    elif instruction.format == "VOPC-SDWA":
        destination = scalar_row(fields["sdst"], count=2) if fields["sd"] else VCC
    elif instruction.format == "VOPC":
        destination = VCC
    else:
        raise Unsupported(f"{instruction}: DPP in a comparison")
    writes_exec = instruction.name.startswith("v_cmpx")

    def run(waves: Waves) -> None:
        active = waves.exec_mask()
        result = np.logical_and(condition(*(reader(waves) for reader in readers)), active)  # inactive lanes write 0
        waves.set_lane_mask(destination, result)
        if writes_exec:
            waves.set_lane_mask(EXEC, result)

    return run


def _carry(instruction: Instruction) -> Callable[[Waves], None]:
    kind, types, function = vector.CARRY[instruction.name]
    readers = sources(instruction, types)
    if instruction.format == "VOP3":
        refuse(instruction, clamp=0, omod=0, neg=0)
    elif instruction.format != "VOP2":
        raise Unsupported(f"{instruction}: this encoding of a carry instruction")
    carry_row = scalar_row(instruction.fields["sdst"], count=2) if instruction.format == "VOP3" else VCC
    destination = instruction.fields["vdst"]

    def run(waves: Waves) -> None:
        result, carry = function(*(reader(waves) for reader in readers))
        waves.set_lane_mask(carry_row, np.logical_and(carry, waves.exec_mask()))
        if kind == "U":
            waves.set_v(waves.row(destination), (result & np.uint64(0xFFFFFFFF)).astype(np.uint32))
            waves.set_v(waves.row(destination + 1), (result >> np.uint64(32)).astype(np.uint32))
        else:
            waves.set_v(waves.row(destination), result)

    return run


# -- results ---------------------------------------------------------------------------------------------------------
def _result_modifier(instruction: Instruction, kind: str) -> Callable[[Waves, np.ndarray], np.ndarray]:
    fields = instruction.fields
    if fields.get("omod"):
        raise Unsupported(f"{instruction}: modifier omod={fields['omod']}")  # hardware ignores it with denormals on
    clamp = fields.get("clamp")
    if clamp and kind != "f":
        raise Unsupported(f"{instruction}: clamp on an integer result")
    if instruction.format.endswith("-SDWA"):
        return _sdwa_result(instruction, kind)
    if clamp:  # to 0..1; DX10_CLAMP makes NaN 0
        return lambda waves, result: np.where(result > 0, np.minimum(result, np.float32(1)), np.float32(0)).astype(
            np.float32
        )
    return lambda waves, result: result


def _sdwa_result(instruction: Instruction, kind: str) -> Callable[[Waves, np.ndarray], np.ndarray]:
    refuse(instruction, clamp=0)
    select, unused = instruction.fields["dst_sel"], instruction.fields["dst_unused"]
    if select == DWORD:
        return lambda waves, result: result
    if unused == 1 or select > DWORD or kind == "f":
        raise Unsupported(f"{instruction}: SDWA dst_sel={select} dst_unused={unused}")
    width, destination = (8 if select < 4 else 16), instruction.fields["vdst"]
    offset = np.uint32(8 * select if select < 4 else 16 * (select - 4))
    field = np.uint32(((1 << width) - 1) << int(offset))

    def place(waves: Waves, result: np.ndarray) -> np.ndarray:
        placed = (result.view(np.uint32) << offset) & field
        return placed if unused == 0 else placed | (waves.v(waves.row(destination)) & ~field)

    return place
