# SPDX-License-Identifier: Apache-2.0
"""VOP3P: two packed fp32 operations in one instruction, and the fp8/bf8 matrix instructions.

Source: CDNA3 ISA, "Packed Math" and "Matrix Arithmetic Instructions". MFMA rounding and layout: native.c.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np

from parity.gfx942 import native, vector
from parity.gfx942.decode import Instruction
from parity.gfx942.faults import Unsupported
from parity.gfx942.operands import constant, refuse, scalar_row, vector_source
from parity.gfx942.waves import Waves

_MFMA_F8 = re.compile(r"v_mfma_f32_(16x16x32|32x32x16)_(fp8|bf8)_(fp8|bf8)")


def compile_packed(instruction: Instruction) -> Callable[[Waves], None]:
    """The executable form of one VOP3P instruction. Raises Unsupported by name (f16, bf16, xf32 matrix forms too)."""
    if instruction.format == "VOP3P-MAI":
        if instruction.name in ("v_accvgpr_read_b32", "v_accvgpr_write_b32"):
            return _accvgpr(instruction)
        return _mfma(instruction)
    if instruction.name in vector.PACKED_F32:
        return _packed_f32(instruction)
    if instruction.name == "v_pk_mov_b32":
        return _packed_move(instruction)
    raise Unsupported(f"{instruction}: no semantics")


def _half(instruction: Instruction, position: int, *, high: bool) -> Callable[[Waves], np.ndarray]:
    """One 32-bit half of a packed source as chosen by op_sel (for the low result) or op_sel_hi (for the high one)."""
    fields = instruction.fields
    code = fields[f"src{position}"]
    upper = fields["opsel_hi" if high else "opsel"] >> position & 1
    value = constant(code, instruction)
    if value is not None:
        # The manual does not say what the high half of a 64-bit operand is when it is a constant (compilers never select it,
        # but of a 0): refused, as all that is not known.
        if value and upper:
            raise Unsupported(f"{instruction}: high half of a constant in a packed fp32 operand")
        fixed = np.full((1, 1), value, np.uint32)
        return lambda waves: fixed
    if code >= 256:
        return vector_source(code + upper, instruction)
    row = scalar_row(code, count=2) + upper
    return lambda waves: waves.s(row)[:, None]


def _packed_f32(instruction: Instruction) -> Callable[[Waves], None]:
    count, function = vector.PACKED_F32[instruction.name]
    refuse(instruction, clamp=0)
    fields = instruction.fields
    halves = []
    for high in (False, True):
        negate = fields["neg_hi" if high else "neg"]
        halves.append([_signed(_half(instruction, n, high=high), bool(negate >> n & 1)) for n in range(count)])

    def run(waves: Waves) -> None:
        # both results before either write: the destination may be one of the sources
        results = [function(*(reader(waves) for reader in readers)) for readers in halves]
        for index, result in enumerate(results):
            waves.set_v(waves.row(fields["vdst"] + index), result.view(np.uint32))

    return run


def _signed(reader: Callable[[Waves], np.ndarray], negate: bool) -> Callable[[Waves], np.ndarray]:
    if negate:
        return lambda waves: (reader(waves) ^ np.uint32(0x80000000)).view(np.float32)
    return lambda waves: reader(waves).view(np.float32)


def _packed_move(instruction: Instruction) -> Callable[[Waves], None]:
    """v_pk_mov_b32: low result from src0 by op_sel[0], high result from src1 by op_sel[1]."""
    refuse(instruction, clamp=0, neg=0, neg_hi=0)
    fields = instruction.fields
    readers = [_half(instruction, position, high=False) for position in (0, 1)]

    def run(waves: Waves) -> None:
        values = [reader(waves).copy() for reader in readers]
        for index, value in enumerate(values):
            waves.set_v(waves.row(fields["vdst"] + index), value)

    return run


def _accvgpr(instruction: Instruction) -> Callable[[Waves], None]:
    fields = instruction.fields
    refuse(instruction, cbsz=0, abid=(0, 8), blgp=0)  # clang sets VOP3P's default op_sel_hi here, which abid overlaps
    reading = instruction.name == "v_accvgpr_read_b32"
    source = vector_source(fields["src0"], instruction, waves_acc=reading)

    def run(waves: Waves) -> None:
        if not waves.exec_mask().all():
            raise Unsupported(f"{instruction}: with a partial EXEC, which the manual does not say to obey or ignore")
        waves.set_v(waves.row(fields["vdst"], acc=not reading), source(waves))

    return run


def _mfma(instruction: Instruction) -> Callable[[Waves], None]:
    """D = A B + C on all 64 lanes, whatever EXEC says."""
    match = _MFMA_F8.fullmatch(instruction.name)
    if match is None:
        raise Unsupported(f"{instruction}: this matrix instruction has no public bit-exact specification here")
    refuse(instruction, cbsz=0, abid=0, blgp=0)
    fields = instruction.fields
    rows = int(match[1].partition("x")[0])
    registers = rows * rows // 64
    bf8 = {"left_bf8": match[2] == "bf8", "right_bf8": match[3] == "bf8"}
    left, right = (_operand(instruction, position) for position in (0, 1))
    addend = _addend(instruction, registers)

    def run(waves: Waves) -> None:
        result = native.mfma_f8(rows, left(waves), right(waves), addend(waves), **bf8)
        waves.set_v_block(waves.row(fields["vdst"], acc=bool(fields["acc_cd"]), count=registers), result)

    return run


def _operand(instruction: Instruction, position: int) -> Callable[[Waves], np.ndarray]:
    code, acc = instruction.fields[f"src{position}"], bool(instruction.fields["acc"] >> position & 1)
    if code < 256:
        raise Unsupported(f"{instruction}: a matrix operand that is no vector register")
    return lambda waves: waves.v_block(waves.row(code - 256, acc=acc, count=2), 2)


def _addend(instruction: Instruction, registers: int) -> Callable[[Waves], np.ndarray]:
    code, acc = instruction.fields["src2"], bool(instruction.fields["acc_cd"])
    value = constant(code, instruction)
    if value is not None:
        return lambda waves: np.full((registers, waves.selected, 64), value, np.uint32)
    if code < 256:
        raise Unsupported(f"{instruction}: a matrix addend in scalar registers")
    return lambda waves: waves.v_block(waves.row(code - 256, acc=acc, count=registers), registers)
