# SPDX-License-Identifier: Apache-2.0
"""A kernel's machine code as the engine's steps: every instruction that can be reached from the entry, translated once."""

from __future__ import annotations

import ctypes
from functools import lru_cache

import numpy as np

from parity.gfx942 import records
from parity.gfx942.decode import Instruction, decode_one
from parity.gfx942.faults import Unsupported
from parity.gfx942.operands import Kernel, new_step, touch
from parity.gfx942.records import BRANCHES, EXEC, VCC, Family, Role, Step
from parity.gfx942.translate_memory import translate_memory
from parity.gfx942.translate_packed import translate_packed
from parity.gfx942.translate_scalar import translate_scalar
from parity.gfx942.translate_vector import translate_vector

# In-order execution makes priorities, sleeps and cache maintenance empty.
_EMPTY = {"s_nop", "s_setprio", "s_sleep", "v_nop", "buffer_wbl2", "buffer_inv", "s_dcache_wb", "s_icache_inv"}


class Program:
    """Steps of one kernel. steps[i] executes instructions[i]; refused[i] says why step i cannot be executed."""

    def __init__(self, text: bytes, entry: int, vgprs: int, accum_offset: int) -> None:
        self._text, self._kernel = text, Kernel(vgprs, accum_offset)
        self.instructions: list[Instruction | None] = []
        self.refused: dict[int, str] = {}
        found: list[Step] = []
        self._index: dict[int, int] = {}
        pending = [entry]
        while pending:
            pc = pending.pop()
            while pc not in self._index:
                self._index[pc] = len(found)
                step, pc_after, target = self._translate(pc)
                found.append(step)
                if target is not None:
                    pending.append(target)
                if pc_after is None:
                    break
                pc = pc_after
        for step in found:
            step.next, step.target = self._index.get(step.next, 0), self._index.get(step.target, 0)
        self.steps = (Step * len(found))(*found)
        self.entry = self._index[entry]
        self.patterns = np.array(self._kernel.patterns or [np.zeros(64)], np.uint8)

    def _translate(self, pc: int) -> tuple[Step, int | None, int | None]:
        """(step, following pc or None, branch target or None). What is not known becomes a step that stops when it is reached."""
        number = len(self.instructions)
        try:
            instruction = decode_one(self._text, pc)
        except Unsupported as error:
            self.instructions.append(None)
            self.refused[number] = str(error)
            return Step(family=Family.REFUSED, pc=pc, wait_states=1), None, None
        self.instructions.append(instruction)
        after = pc + instruction.size
        try:
            step = step_of(instruction, self._kernel)
        except Unsupported as error:
            self.refused[number] = str(error)
            step = new_step(Family.REFUSED, instruction)
        step.next = after
        if step.family in (Family.REFUSED, Family.END):
            return step, None, None
        if step.family != Family.BRANCH:
            return step, after, None
        distance = instruction.fields["simm16"]
        step.target = after + 4 * (distance - 0x10000 if distance >= 0x8000 else distance)
        return step, None if instruction.name == "s_branch" else after, step.target


def step_of(instruction: Instruction, kernel: Kernel) -> Step:
    """The step of one instruction, without its successors. Raises Unsupported by name."""
    name, family = instruction.name, instruction.format.partition("-")[0]
    if name in BRANCHES:
        return _branch(instruction)
    if name == "s_waitcnt":
        return _wait(instruction)
    if name == "s_barrier":
        return new_step(Family.BARRIER, instruction)
    if name == "s_endpgm":
        return new_step(Family.END, instruction)
    if name in _EMPTY:
        step = new_step(Family.NOP, instruction)
        step.wait_states = (instruction.fields["simm16"] & 15) + 1 if name == "s_nop" else 1
        return step
    if family in ("SOP1", "SOP2", "SOPC", "SOPK"):
        return translate_scalar(instruction)
    if family in ("VOP1", "VOP2", "VOP3", "VOPC"):
        return translate_vector(instruction, kernel)
    if family == "VOP3P":
        return translate_packed(instruction, kernel)
    if family in ("SMEM", "GLOBAL", "FLAT", "SCRATCH", "MUBUF", "DS"):
        return translate_memory(instruction, kernel)
    raise Unsupported(f"{instruction}: no semantics")


def _branch(instruction: Instruction) -> Step:
    step = new_step(Family.BRANCH, instruction)
    step.op = BRANCHES.index(instruction.name)
    if "vcc" in instruction.name:
        touch(step, Role.READ_S, VCC, 2)
    elif "exec" in instruction.name:
        touch(step, Role.READ_S, EXEC, 2)
    return step


def _wait(instruction: Instruction) -> Step:
    """simm16: vmcnt in bits 3:0 and 15:14, expcnt in 6:4, lgkmcnt in 11:8 (ISA "S_WAITCNT")."""
    step, value = new_step(Family.WAIT, instruction), instruction.fields["simm16"]
    step.vm_count, step.lgkm_count = (value & 15) | value >> 14 << 4, value >> 8 & 15
    return step


@lru_cache(maxsize=64)
def program_of(text: bytes, entry: int, vgprs: int, accum_offset: int) -> Program:
    """The translated program, kept for further launches of the same code."""
    return Program(text, entry, vgprs, accum_offset)


def steps_pointer(program: Program) -> int:
    return ctypes.addressof(program.steps)


def fidelity_of(program: Program, counts: np.ndarray) -> tuple[int, int, int]:
    """Wave instructions executed (exact, from the manual, approximate)."""
    kinds = np.array([step.fidelity for step in program.steps])
    exact, manual, approximate = (int(counts[kinds == kind].sum()) for kind in records.Precision)
    return exact, manual, approximate
