# SPDX-License-Identifier: Apache-2.0
"""The run loop: waves that share a program counter step together, the lowest program counter first.

Workgroups run in batches, so memory grows with the tensors and not with the grid. Within a batch all waves of all
workgroups form one array; a divergent branch splits it by wave, and waves meet again where their program counters do.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from parity.gfx942.cross_lane import compile_lane_move
from parity.gfx942.decode import Instruction, decode_one
from parity.gfx942.faults import ExecutionFault, Unsupported
from parity.gfx942.lds import compile_lds
from parity.gfx942.memory import Memory
from parity.gfx942.memory_ops import compile_memory
from parity.gfx942.packed import compile_packed
from parity.gfx942.scalar import compile_scalar
from parity.gfx942.vector import APPROXIMATE
from parity.gfx942.vector_forms import compile_vector
from parity.gfx942.waves import EXEC, VCC, Waves

STEP_LIMIT = 20_000_000  # instructions of one batch; a kernel that needs more does not end

_LANE_MOVES = {"v_readfirstlane_b32", "v_readlane_b32", "v_mbcnt_lo_u32_b32", "v_mbcnt_hi_u32_b32"}
# In-order execution makes waits, priorities and sleeps empty.
_EMPTY = {"s_nop", "s_waitcnt", "s_setprio", "s_sleep", "v_nop", "buffer_wbl2", "buffer_inv"}
_BRANCHES: dict[str, Callable[[Waves], np.ndarray]] = {
    "s_branch": lambda waves: np.ones(waves.selected, bool),
    "s_cbranch_scc0": lambda waves: ~waves.get_scc(),
    "s_cbranch_scc1": lambda waves: waves.get_scc(),
    "s_cbranch_vccz": lambda waves: waves.s64(VCC) == 0,
    "s_cbranch_vccnz": lambda waves: waves.s64(VCC) != 0,
    "s_cbranch_execz": lambda waves: waves.s64(EXEC) == 0,
    "s_cbranch_execnz": lambda waves: waves.s64(EXEC) != 0,
}


@dataclass(frozen=True)
class Step:
    """One decoded instruction with its executable form. `kind` is "run", "branch", "barrier" or "end"."""

    instruction: Instruction
    kind: str
    run: Callable[[Waves], None] | None = None
    taken: Callable[[Waves], np.ndarray] | None = None
    target: int = 0


@dataclass
class Counts:
    """What was executed, in wave instructions."""

    total: int = 0
    mfma: int = 0
    approximate: int = 0


class Program:
    """Instructions of one kernel, decoded and compiled the first time a wave reaches them."""

    def __init__(self, text: bytes, memory: Memory) -> None:
        self._text, self._memory = text, memory
        self._steps: dict[int, Step] = {}

    def at(self, pc: int) -> Step:
        """The step at byte `pc`. Raises Unsupported when it is not executable."""
        step = self._steps.get(pc)
        if step is None:
            step = self._steps[pc] = self._compile(decode_one(self._text, pc))
        return step

    def _compile(self, instruction: Instruction) -> Step:
        name = instruction.name
        if name in _EMPTY:
            return Step(instruction, "run", run=lambda waves: None)
        if name in _BRANCHES:
            distance = instruction.fields["simm16"]
            distance -= 0x10000 if distance >= 0x8000 else 0
            return Step(instruction, "branch", taken=_BRANCHES[name], target=instruction.pc + 4 + 4 * distance)
        if name == "s_barrier":
            return Step(instruction, "barrier")
        if name == "s_endpgm":
            return Step(instruction, "end")
        return Step(instruction, "run", run=self._semantics(instruction))

    def _semantics(self, instruction: Instruction) -> Callable[[Waves], None]:
        family = instruction.format.partition("-")[0]
        if instruction.name in _LANE_MOVES:
            return compile_lane_move(instruction)
        if family in ("SOP1", "SOP2", "SOPC", "SOPK"):
            return compile_scalar(instruction)
        if family in ("VOP1", "VOP2", "VOP3", "VOPC"):
            return compile_vector(instruction)
        if family == "VOP3P":
            return compile_packed(instruction)
        if family == "DS":
            return compile_lds(instruction)
        return compile_memory(instruction, self._memory)


def run_batch(program: Program, waves: Waves, entry: int, counts: Counts) -> None:
    """Run all waves from `entry` to s_endpgm. ExecutionFault carries pc, instruction and wave (index in the batch)."""
    pcs = np.full(waves.count, entry, np.int64)
    ended, waiting = np.zeros(waves.count, bool), np.zeros(waves.count, bool)
    steps = 0
    while True:
        runnable = ~(ended | waiting)
        if not runnable.any():
            if ended.all():
                return
            _release_barriers(waves, ended, waiting)
            continue
        pc = int(pcs[runnable].min())
        chosen = runnable & (pcs == pc)
        others = pcs[runnable & (pcs != pc)]
        waves.select(None if chosen.all() else np.flatnonzero(chosen))
        stop = int(others.min()) if others.size else len(program._text) + 1
        steps += _advance(program, waves, pc, stop, chosen, pcs, ended, waiting, counts, STEP_LIMIT - steps)


def _advance(program: Program, waves: Waves, pc: int, stop: int, chosen: np.ndarray, pcs: np.ndarray, ended: np.ndarray,
             waiting: np.ndarray, counts: Counts, limit: int) -> int:  # fmt: skip
    """Step the selected waves until they split, end, wait, or reach pc `stop` where others are. Returns the step count."""
    steps, selected = 0, waves.selected
    while pc < stop or steps == 0:
        step = program.at(pc)
        steps += 1
        counts.total += selected
        if steps > limit:
            raise _located(
                ExecutionFault("step limit", f"no end after {STEP_LIMIT} instructions", wave=int(waves.waves[0])), step
            )
        try:
            if step.kind == "run":
                assert step.run is not None
                step.run(waves)
                _count(counts, step.instruction.name, selected)
                pc += step.instruction.size
                continue
            if step.kind == "branch":
                assert step.taken is not None
                taken = step.taken(waves)
                following = pc + step.instruction.size
                if taken.all() or not taken.any():
                    target = step.target if taken.all() else following
                    if target > pc or stop > len(program._text):
                        pc = target
                        continue
                    pcs[chosen] = target  # a loop's way back: let the others be looked at
                    return steps
                pcs[chosen] = np.where(taken, step.target, following)
                return steps
        except ExecutionFault as fault:
            raise _located(fault, step) from None
        pcs[chosen] = pc + step.instruction.size
        (ended if step.kind == "end" else waiting)[chosen] = True
        return steps
    pcs[chosen] = pc
    return steps


def _count(counts: Counts, name: str, waves: int) -> None:
    if name.startswith("v_mfma"):
        counts.mfma += waves
    elif name in APPROXIMATE:
        counts.approximate += waves


def _located(fault: ExecutionFault, step: Step) -> ExecutionFault:
    fault.pc, fault.instruction = step.instruction.pc, str(step.instruction)
    return fault


def _release_barriers(waves: Waves, ended: np.ndarray, waiting: np.ndarray) -> None:
    """All waves that can run have arrived: open the barrier of each workgroup. Ended waves no longer take part."""
    if not waiting.any():
        raise Unsupported("no wave can run and none waits")
    waiting[:] = False
