# SPDX-License-Identifier: Apache-2.0
"""VOP3P to steps: packed fp32 and 16-bit arithmetic (engine/vector.def), AGPR moves, fp8/bf8 and f16 matrix products (engine/matrix.c).

Source: CDNA3 ISA, "Packed Math" and "Matrix Arithmetic Instructions".
"""

from __future__ import annotations

import re

from parity.gfx942 import native
from parity.gfx942.decode import Instruction
from parity.gfx942.faults import Unsupported
from parity.gfx942.operands import (
    Kernel,
    constant,
    new_step,
    refuse,
    scalar_row,
    set_constant,
    set_vector,
    touch,
    write_vector,
)
from parity.gfx942.records import Family, Role, SourceKind, Step

_MFMA = re.compile(r"v_mfma_f32_(?:(16x16x32|32x32x16)_(fp8|bf8)_(fp8|bf8)|(16x16x16|32x32x8)_f16)")
PASSES = {16: 4, 32: 8}  # of four cycles (CDNA3 ISA, table of matrix instructions; LLVM SISchedule MI300)


def translate_packed(instruction: Instruction, kernel: Kernel) -> Step:
    """Raises Unsupported by name (bf16, xf32, i8, fp32 and fp64 matrix forms too)."""
    if instruction.format == "VOP3P-MAI":
        if instruction.name in ("v_accvgpr_read_b32", "v_accvgpr_write_b32"):
            return _accvgpr(instruction, kernel)
        return _mfma(instruction, kernel)
    entry = native.semantics().get(instruction.name)
    if entry is None or entry.kind != "P":
        raise Unsupported(f"{instruction}: no semantics")
    step, fields, floats = new_step(Family.PACKED_ALU, instruction), instruction.fields, entry.types[0] == "f"
    move = instruction.name == "v_pk_mov_b32"
    refuse(instruction, clamp=0)
    if not floats:
        refuse(instruction, neg=0, neg_hi=0)
    if fields["neg"] >> entry.sources or fields["neg_hi"] >> entry.sources or fields["opsel"] >> entry.sources:
        raise Unsupported(f"{instruction}: modifiers of a source that is not there")
    step.op, step.fidelity, step.elements = entry.op, entry.fidelity, entry.sources
    step.opsel, step.opsel_hi, step.neg, step.neg_hi = (
        fields["opsel"],
        fields["opsel_hi"],
        fields["neg"],
        fields["neg_hi"],
    )
    for position in range(entry.sources):
        _packed_source(instruction, kernel, step, position, wide=floats or move, move=move)
    write_vector(step, kernel.row(fields["vdst"], count=2 if floats or move else 1), 2 if floats or move else 1)
    return step


def _packed_source(
    instruction: Instruction, kernel: Kernel, step: Step, position: int, *, wide: bool, move: bool
) -> None:
    """One packed source: a pair of dwords (wide) or the halves of one."""
    code, fields, source = instruction.fields[f"src{position}"], instruction.fields, step.source[position]
    upper = (fields["opsel"] | (0 if move else fields["opsel_hi"])) >> position & 1
    value = constant(code, instruction)
    if value is not None:
        # The manual does not say what the high half is when the operand is a constant (compilers never select it, but of a 0):
        # refused, as all that is not known.
        if value and upper:
            raise Unsupported(f"{instruction}: high half of a constant in a packed operand")
        set_constant(source, value)
    elif code >= 256:
        count = 2 if wide and upper else 1
        source.kind, source.row = SourceKind.VECTOR, kernel.row(code - 256, count=count)
        touch(step, Role.READ_V, source.row, count)
    else:
        count = 2 if wide else 1
        source.kind, source.row = SourceKind.SCALAR, scalar_row(code, count=count)
        touch(step, Role.READ_S, code, count)


def _accvgpr(instruction: Instruction, kernel: Kernel) -> Step:
    """v_accvgpr_read/write_b32: a move between the halves of the register file, in the active lanes (VALU rules)."""
    fields, reading = instruction.fields, instruction.name == "v_accvgpr_read_b32"
    refuse(instruction, cbsz=0, abid=(0, 8), blgp=0)  # clang sets VOP3P's default op_sel_hi here, which abid overlaps
    step = new_step(Family.VECTOR_ALU, instruction)
    step.op = native.semantics()["v_mov_b32"].op
    if reading:
        source = step.source[0]
        if fields["src0"] < 256:
            raise Unsupported(f"{instruction}: a source that is no accumulator")
        source.kind, source.row = SourceKind.VECTOR, kernel.row(fields["src0"] - 256, acc=True)
        touch(step, Role.READ_V, source.row)
    else:
        set_vector(step, 0, fields["src0"], instruction, kernel)
    write_vector(step, kernel.row(fields["vdst"], acc=not reading))
    return step


def _mfma(instruction: Instruction, kernel: Kernel) -> Step:
    """D = A B + C on all 64 lanes, whatever EXEC says."""
    match = _MFMA.fullmatch(instruction.name)
    if match is None:
        raise Unsupported(f"{instruction}: this matrix instruction has no public bit-exact specification here")
    refuse(instruction, cbsz=0, abid=0, blgp=0)
    fields, step = instruction.fields, new_step(Family.MATRIX, instruction)
    step.rows, step.narrow = int((match[1] or match[4]).partition("x")[0]), match[4] is not None
    registers, acc = step.rows * step.rows // 64, bool(fields["acc_cd"])
    step.left_bf8, step.right_bf8, step.passes = match[2] == "bf8", match[3] == "bf8", PASSES[step.rows]
    step.vdst = kernel.row(fields["vdst"], acc=acc, count=registers)
    touch(step, Role.MATRIX_D, step.vdst, registers)  # first: engine/watch.c looks there
    for position in (0, 1):
        code = fields[f"src{position}"]
        if code < 256:
            raise Unsupported(f"{instruction}: a matrix operand that is no vector register")
        source = step.source[position]
        source.kind, source.row = (
            SourceKind.VECTOR,
            kernel.row(code - 256, acc=bool(fields["acc"] >> position & 1), count=2),
        )
        touch(step, Role.MATRIX_AB, source.row, 2)
    value = constant(fields["src2"], instruction)
    if value is not None:
        set_constant(step.source[2], value)
    elif fields["src2"] < 256:
        raise Unsupported(f"{instruction}: a matrix addend in scalar registers")
    else:
        step.source[2].kind, step.source[2].row = (
            SourceKind.VECTOR,
            kernel.row(fields["src2"] - 256, acc=acc, count=registers),
        )
        touch(step, Role.MATRIX_C, step.source[2].row, registers)
    return step
