# SPDX-License-Identifier: Apache-2.0
"""VOP1, VOP2, VOP3, VOPC to steps: operands and modifiers of e32, e64, SDWA and DPP. What each computes: engine/vector.def.

A modifier that is not implemented for an operand is refused by name. Source: CDNA3 ISA, "Vector ALU Operations", "SDWA", "DPP".
"""

from __future__ import annotations

from parity.gfx942 import native
from parity.gfx942.decode import Instruction
from parity.gfx942.faults import Unsupported
from parity.gfx942.lane_patterns import dpp_lanes
from parity.gfx942.operands import (
    Kernel,
    is_float_constant,
    new_step,
    refuse,
    scalar_row,
    set_mask,
    set_scalar,
    set_vector,
    touch,
    write_scalar,
    write_vector,
)
from parity.gfx942.records import (
    ABSOLUTE,
    DPP,
    EXEC,
    LANE_MOVES,
    NEGATE,
    SIGN_EXTEND,
    VCC,
    WHOLE_DWORD,
    Family,
    Role,
    Step,
)

_FAMILIES = {"V": Family.VECTOR_ALU, "S": Family.CARRY, "O": Family.COMPARE}
# The old destination is their last source.
_ACCUMULATE = ("v_fmac_f32", "v_cvt_pk_fp8_f32", "v_cvt_pk_bf8_f32")
_HALF_SELECT = ("v_cvt_pk_fp8_f32", "v_cvt_pk_bf8_f32")  # op_sel[3] chooses the half that is written
_CONSTANT_IN_CODE = ("v_fmamk_f32", "v_fmaak_f32")


def translate_vector(instruction: Instruction, kernel: Kernel) -> Step:
    """Raises Unsupported by name."""
    if instruction.name in LANE_MOVES:
        return _lane_move(instruction, kernel)
    entry = native.semantics().get(instruction.name)
    if entry is None or entry.kind not in _FAMILIES:
        raise Unsupported(f"{instruction}: no semantics")
    step = new_step(_FAMILIES[entry.kind], instruction)
    step.op, step.fidelity = entry.op, entry.fidelity
    result, types = (entry.types[0], entry.types[1:]) if entry.kind != "O" else ("", entry.types * 2)
    if instruction.name == "v_accvgpr_mov_b32":
        return _accumulator_move(instruction, kernel, step)
    _sources(instruction, kernel, step, [kind for kind in types if kind != "_"])
    if entry.kind == "O":
        _compare_result(instruction, step)
        return step
    write_vector(
        step, kernel.row(instruction.fields["vdst"], count=2 if result in "UI" else 1), 2 if result in "UI" else 1
    )
    if entry.kind == "S":
        _carry_result(instruction, step)
    else:
        _result_modifiers(instruction, kernel, step, result)
    return step


def _accumulator_move(instruction: Instruction, kernel: Kernel, step: Step) -> Step:
    """v_accvgpr_mov_b32: both operands are AGPRs."""
    fields = instruction.fields
    if instruction.format != "VOP1" or fields["src0"] < 256:
        raise Unsupported(f"{instruction}: this encoding")
    set_vector(step, 0, fields["src0"], instruction, kernel, acc=True)
    write_vector(step, kernel.row(fields["vdst"], acc=True))
    return step


def _sources(instruction: Instruction, kernel: Kernel, step: Step, types: list[str]) -> None:
    base, _, form = instruction.format.partition("-")
    fields = instruction.fields
    accumulate = instruction.name in _ACCUMULATE
    encoded = types[:-1] if accumulate or instruction.name in _CONSTANT_IN_CODE else types
    if base == "VOP3":
        codes = [fields[f"src{position}"] for position in range(3)]
        refuse(instruction, opsel=(0, 8) if instruction.name in _HALF_SELECT else 0)
        step.opsel = fields["opsel"]
        _refuse_unread_signs(instruction, len(encoded))
    else:
        codes = [fields["src0"], 256 + fields["vsrc1"] if "vsrc1" in fields else 0, VCC]
    for position, kind in enumerate(encoded):
        if kind == "m":
            set_mask(step, position, codes[position])
        elif form == "SDWA":
            _sdwa_source(instruction, kernel, step, position, kind)
        elif form == "DPP":
            _dpp_source(instruction, kernel, step, position, kind)
        else:
            _plain_source(instruction, kernel, step, position, codes[position], kind)
    if accumulate:
        set_vector(step, len(types) - 1, 256 + fields["vdst"], instruction, kernel)
    elif instruction.name in _CONSTANT_IN_CODE:
        set_vector(step, 2, 255, instruction, kernel)


def _plain_source(instruction: Instruction, kernel: Kernel, step: Step, position: int, code: int, kind: str) -> None:
    if kind in "hs" and is_float_constant(code):  # fp16 there
        raise Unsupported(f"{instruction}: a floating-point inline constant in a 16-bit operand")
    if instruction.name.endswith("f64") and kind == "U" and code == 255:
        raise Unsupported(f"{instruction}: a literal in an fp64 operand")
    set_vector(step, position, code, instruction, kernel, wide=kind in "UI")
    if instruction.format == "VOP3":
        negate, absolute = instruction.fields["neg"] >> position & 1, instruction.fields["abs"] >> position & 1
        _signs(instruction, step, position, kind, negate, absolute)


def _signs(instruction: Instruction, step: Step, position: int, kind: str, negate: int, absolute: int) -> None:
    """|x| then -x, only on floats (ISA 6.1.2)."""
    if not (negate or absolute):
        return
    if kind != "f" and not (kind == "U" and instruction.name.endswith("f64")):
        raise Unsupported(f"{instruction}: abs or neg on an integer source")
    step.source[position].flags |= (NEGATE if negate else 0) | (ABSOLUTE if absolute else 0)


def _refuse_unread_signs(instruction: Instruction, count: int) -> None:
    """abs and neg have a bit for three sources; those beyond `count` belong to none."""
    for name in ("abs", "neg"):
        if instruction.fields[name] >> count:
            raise Unsupported(f"{instruction}: modifier {name}={instruction.fields[name]} with {count} sources")


def _sdwa_source(instruction: Instruction, kernel: Kernel, step: Step, position: int, kind: str) -> None:
    """A byte or word of the source, zero- or sign-extended (ISA, "SDWA")."""
    fields = instruction.fields
    if kind in "UI":
        raise Unsupported(f"{instruction}: SDWA on a 64-bit source")
    register = fields["src0"] if position == 0 else fields["vsrc1"]
    code = register if fields[f"s{position}"] else 256 + register
    _plain_source(instruction, kernel, step, position, code, kind)
    source, select = step.source[position], fields[f"src{position}_sel"]
    negate, absolute = fields[f"src{position}_neg"], fields[f"src{position}_abs"]
    if select == WHOLE_DWORD:
        _signs(instruction, step, position, kind, negate, absolute)
        return
    if (
        negate or absolute or select > WHOLE_DWORD or kind == "f"
    ):  # what part of an fp32 a byte would be is nowhere said
        raise Unsupported(f"{instruction}: SDWA src{position}_sel={select} on a float, or with modifiers")
    source.select = select
    if fields[f"src{position}_sext"]:
        source.flags |= SIGN_EXTEND


def _dpp_source(instruction: Instruction, kernel: Kernel, step: Step, position: int, kind: str) -> None:
    fields = instruction.fields
    if kind in "UI":
        raise Unsupported(f"{instruction}: DPP on a 64-bit source")
    set_vector(step, position, 256 + fields["src0"] if position == 0 else 256 + fields["vsrc1"], instruction, kernel)
    _signs(instruction, step, position, kind, fields[f"src{position}_neg"], fields[f"src{position}_abs"])
    if position == 0:
        step.source[0].flags |= DPP
        step.lanes = kernel.pattern(dpp_lanes(fields["dpp_ctrl"]))
        step.row_mask, step.bank_mask, step.bound_control = (
            fields["row_mask"],
            fields["bank_mask"],
            fields["bound_ctrl"],
        )


# -- results -----------------------------------------------------------------------------------------------------------
def _compare_result(instruction: Instruction, step: Step) -> None:
    fields = instruction.fields
    if instruction.format == "VOP3":
        refuse(instruction, clamp=0, omod=0)
        code = fields["vdst"]
    elif instruction.format == "VOPC-SDWA":
        code = fields["sdst"] if fields["sd"] else VCC
    elif instruction.format == "VOPC":
        code = VCC
    else:
        raise Unsupported(f"{instruction}: DPP in a comparison")
    write_scalar(step, code, 2)
    if instruction.name.startswith("v_cmpx"):
        step.writes_exec = 1
        touch(step, Role.WRITE_S, EXEC, 2)


def _carry_result(instruction: Instruction, step: Step) -> None:
    if instruction.format == "VOP3":
        refuse(instruction, clamp=0, omod=0, neg=0)
    elif instruction.format != "VOP2":
        raise Unsupported(f"{instruction}: this encoding of a carry instruction")
    write_scalar(step, instruction.fields["sdst"] if instruction.format == "VOP3" else VCC, 2)


def _result_modifiers(instruction: Instruction, kernel: Kernel, step: Step, result: str) -> None:
    fields = instruction.fields
    if fields.get("omod"):
        raise Unsupported(f"{instruction}: modifier omod={fields['omod']}")  # hardware ignores it with denormals on
    if fields.get("clamp"):
        if result != "f":
            raise Unsupported(f"{instruction}: clamp on an integer result")
        step.clamp = 1
    if not instruction.format.endswith("-SDWA"):
        return
    refuse(instruction, clamp=0)
    if fields["dst_sel"] == WHOLE_DWORD:
        return
    select, unused = fields["dst_sel"], fields["dst_unused"]
    if unused not in (0, 2) or select > WHOLE_DWORD or result not in "ui":
        raise Unsupported(f"{instruction}: SDWA dst_sel={select} dst_unused={unused}")
    step.sdwa_select, step.sdwa_unused = select, unused
    if unused:
        touch(step, Role.READ_V, step.vdst)


# -- lanes and scalars -------------------------------------------------------------------------------------------------
def _lane_move(instruction: Instruction, kernel: Kernel) -> Step:
    """v_readfirstlane_b32, v_readlane_b32, v_writelane_b32, v_mbcnt_lo/hi_u32_b32, v_swap_b32."""
    step, fields, name = new_step(Family.LANE_MOVE, instruction), instruction.fields, instruction.name
    step.op = LANE_MOVES.index(name)
    if instruction.format == "VOP3":
        refuse(instruction, clamp=0, omod=0, neg=0, abs=0, opsel=0)
    elif "-" in instruction.format:
        raise Unsupported(f"{instruction}: this encoding")
    set_vector(step, 0, fields["src0"], instruction, kernel)
    if name == "v_readfirstlane_b32":
        write_scalar(step, fields["vdst"])
    elif name == "v_readlane_b32":
        set_scalar(step, 1, fields["src1"], instruction)
        write_scalar(step, scalar_row(fields["vdst"]))
    elif name == "v_swap_b32":
        if fields["src0"] < 256:
            raise Unsupported(f"{instruction}: a swap with a scalar")
        write_vector(step, kernel.row(fields["vdst"]))
        touch(step, Role.WRITE_V, step.source[0].row)
        touch(step, Role.READ_V, step.vdst)
    else:
        if name == "v_writelane_b32":
            set_scalar(step, 1, fields["src1"], instruction)
        else:
            set_vector(
                step, 1, fields["src1"] if instruction.format == "VOP3" else 256 + fields["vsrc1"], instruction, kernel
            )
        write_vector(step, kernel.row(fields["vdst"]))
    return step
