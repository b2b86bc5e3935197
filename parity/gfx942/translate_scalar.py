# SPDX-License-Identifier: Apache-2.0
"""SOP1, SOP2, SOPC, SOPK to steps. What each computes: engine/scalar.def."""

from __future__ import annotations

from parity.gfx942 import native
from parity.gfx942.decode import Instruction
from parity.gfx942.faults import Unsupported
from parity.gfx942.operands import new_step, set_constant, set_scalar, touch, write_scalar
from parity.gfx942.records import EXEC, Family, Role, Step

_READS_SCC = ("s_addc_u32", "s_subb_u32", "s_cselect_b32", "s_cselect_b64", "s_cmov_b32", "s_cmov_b64", "s_cmovk_i32")
_READS_DESTINATION = ("s_cmov_b32", "s_cmov_b64", "s_bitset0_b32", "s_bitset1_b32", "s_bitset0_b64", "s_bitset1_b64")


def translate_scalar(instruction: Instruction) -> Step:
    """Raises Unsupported by name."""
    entry = native.semantics().get(instruction.name)
    if entry is None or entry.kind != "D":
        raise Unsupported(f"{instruction}: no semantics")
    step, fields = new_step(Family.SCALAR_ALU, instruction), instruction.fields
    step.op, step.fidelity = entry.op, entry.fidelity
    bits, *widths = (int(part) for part in entry.types)
    if instruction.format == "SOPK":
        _sopk_sources(instruction, step, two=widths[1] != 0)
    else:
        codes = [fields["ssrc0"], fields.get("ssrc1", fields.get("sdst", 0))]
        for position, width in enumerate(widths):
            if width:
                set_scalar(step, position, codes[position], instruction, wide=width == 64)
    if instruction.format == "SOP1" and widths[1] and instruction.name not in _READS_DESTINATION:
        raise Unsupported(f"{instruction}: no semantics")
    if bits:
        write_scalar(step, fields["sdst"], bits // 32)
    if "saveexec" in instruction.name:
        touch(step, Role.READ_S, EXEC, 2)
        touch(step, Role.WRITE_S, EXEC, 2)
    step.reads_scc = instruction.name in _READS_SCC
    if instruction.name.startswith("s_bfe"):
        step.narrow = int(instruction.name[-2:]) - 1  # the widest field that the manual's formula has a meaning for
    return step


def _sopk_sources(instruction: Instruction, step: Step, *, two: bool) -> None:
    """SOPK: the destination is also the first source; simm16 is sign-extended but in the unsigned compares (ISA 12.2)."""
    value = instruction.fields["simm16"]
    if value >= 0x8000 and not (instruction.name.startswith("s_cmpk") and instruction.name.endswith("u32")):
        value |= 0xFFFF0000
    set_constant(step.source[1 if two else 0], value)
    if two:
        set_scalar(step, 0, instruction.fields["sdst"], instruction)
