# SPDX-License-Identifier: Apache-2.0
"""The engine's fault record in words: an ExecutionFault with place, instruction and reason, or Unsupported."""

from __future__ import annotations

from parity.gfx942.code_object import Kernel
from parity.gfx942.faults import ExecutionFault, Unsupported
from parity.gfx942.memory import Allocation, nearest
from parity.gfx942.program import Program
from parity.gfx942.records import NO_ROW, FaultRecord, Step
from parity.gfx942.text import assembly

# In the order of engine.h's enum FaultKind; 0 is no fault, the last is Unsupported.
KINDS = ("", "out-of-bounds", "out-of-bounds buffer", "out-of-bounds LDS", "out-of-bounds scratch", "uninitialised", "LDS race",
         "missing s_waitcnt", "MFMA hazard", "barrier divergence", "step limit", "unsupported")  # fmt: skip
# In the order of lanes.c's enum Use.
USES = ("an address", "EXEC", "a branch", "a store to global memory", "a lane number", "a buffer descriptor")


def explain(
    fault: FaultRecord,
    kernel: Kernel,
    program: Program,
    allocations: list[Allocation],
    *,
    sizes: tuple[int, int, int],
    step_limit: int,
) -> Unsupported | ExecutionFault:
    """sizes: bytes of LDS a workgroup, bytes of scratch a lane, AGPRs' first row."""
    kind, step = KINDS[fault.kind], program.steps[fault.step]
    where = _place(fault.step, kernel, program)
    if kind == "unsupported":
        return Unsupported(f"{kernel.name}+{where}: {_unsupported(fault, program)}")
    address, allocation = _address(fault, allocations)
    detail = _detail(kind, fault, step, kernel, program, allocations, sizes, step_limit)
    result = ExecutionFault(kind, detail, wave=fault.wave, lane=fault.lane, address=address, allocation=allocation)
    result.kernel, result.pc = kernel.name, step.pc - kernel.entry
    result.instruction, result.line = _text(fault.step, program), kernel.lines.get(step.pc, "")
    return result


def _text(step: int, program: Program) -> str:
    """Assembly text, or the bytes where the assembler has no text for them."""
    instruction = program.instructions[step]
    if instruction is None:
        return ""
    try:
        return assembly(instruction)
    except Unsupported:
        return str(instruction)


def _place(step: int, kernel: Kernel, program: Program) -> str:
    return f"{program.steps[step].pc - kernel.entry:#x}"


def _other(fault: FaultRecord, kernel: Kernel, program: Program) -> str:
    """The other instruction of a fault."""
    return f"+{_place(fault.other_step, kernel, program)} {_text(fault.other_step, program)}"


def _address(fault: FaultRecord, allocations: list[Allocation]) -> tuple[int | None, str]:
    kind = KINDS[fault.kind]
    if kind == "out-of-bounds":
        found = nearest(allocations, fault.address, fault.size)
        return fault.address, found.name if found else ""
    if kind.startswith("out-of-bounds") or kind == "LDS race" or (kind == "missing s_waitcnt" and fault.reason == 2):
        return fault.address, ""
    if kind == "uninitialised" and fault.address:
        found = nearest(allocations, fault.address, 1)
        return fault.address, found.name if found else ""
    return None, ""


def _unsupported(fault: FaultRecord, program: Program) -> str:
    if fault.step in program.refused:
        return program.refused[fault.step]
    text = _text(fault.step, program)
    if fault.reason == 1:
        return (
            f"{text}: buffer descriptor with word 1 {fault.address:#x}, word 3 {fault.extra:#x}; only raw buffers of dwords, "
            "without stride and swizzle"
        )
    if fault.reason == 3:
        return f"{text}: a 64-bit atomic on scratch memory"
    if fault.reason == 2:
        return f"{text}: a denormal operand or result, for which no error bound is stated"
    return f"{text}: a field wider than the manual's formula allows"


def _detail(kind: str, fault: FaultRecord, step: Step, kernel: Kernel, program: Program, allocations: list[Allocation],
            sizes: tuple[int, int, int], step_limit: int) -> str:  # fmt: skip
    access = f"{'write' if fault.reason else 'read'} of {fault.size} bytes"
    if kind == "out-of-bounds":
        found = nearest(allocations, fault.address, fault.size)
        if found is None:
            return f"{access}, but the kernel has no memory"
        return f"{access} at offset {fault.address - found.address} of {found.name} ({found.size} bytes)"
    if kind == "out-of-bounds buffer":
        return f"{access} at offset {fault.address} of a buffer whose descriptor says {fault.extra} bytes"
    if kind == "out-of-bounds LDS":
        return f"{access} at LDS offset {_signed(fault.address)}; the workgroup has {sizes[0]} bytes"
    if kind == "out-of-bounds scratch":
        return f"{access} at scratch offset {_signed(fault.address)}; a work-item has {sizes[1]} bytes"
    if kind == "uninitialised":
        origin = _origin(fault, kernel, program)
        return f"{USES[fault.reason]} depends on {origin}"
    if kind == "LDS race":
        return f"byte {fault.address} of LDS: wave {fault.other_wave} touched it at {_other(fault, kernel, program)} with no barrier between"
    if kind == "missing s_waitcnt":
        return _missing_wait(fault, kernel, program, sizes[2])
    if kind == "MFMA hazard":
        what = (
            "EXEC was written"
            if fault.registers == NO_ROW
            else f"{register_name(fault.registers, sizes[2])} was used by {_other(fault, kernel, program)}"
        )
        return f"{what} {fault.extra} wait states before, {fault.size} are needed"
    if kind == "barrier divergence":
        return _divergence(fault, kernel, program)
    return f"no end after {step_limit} instructions of a wave"


def _signed(offset: int) -> int:
    return offset - (1 << 64) if offset >> 63 else offset


def _origin(fault: FaultRecord, kernel: Kernel, program: Program) -> str:
    """Where the undefined bits come from. The engine counts steps from 1 there; 0 is a register as the wave got it."""
    if fault.other_step == 0:
        return "a register that was never written"
    step = fault.other_step - 1
    text = _text(step, program)
    hint = " (or a barrier is missing)" if text.startswith("ds_") else ""
    return f"bytes that nobody wrote{hint}, read at +{_place(step, kernel, program)} {text}"


def register_name(row: int, accum_offset: int, *, scalar: bool = False) -> str:
    if scalar:
        return {106: "vcc_lo", 107: "vcc_hi", 124: "m0", 126: "exec_lo", 127: "exec_hi"}.get(row, f"s{row}")
    return f"v{row}" if row < accum_offset else f"a{row - accum_offset}"


def _missing_wait(fault: FaultRecord, kernel: Kernel, program: Program, accum_offset: int) -> str:
    if fault.reason == 2:
        return f"byte {fault.address} of LDS: wave {fault.other_wave} did not wait (lgkmcnt) for {_other(fault, kernel, program)} before its barrier"
    name = register_name(fault.registers, accum_offset, scalar=fault.reason == 1)
    return f"{name} is still being loaded by {_other(fault, kernel, program)}"


def _divergence(fault: FaultRecord, kernel: Kernel, program: Program) -> str:
    if fault.reason == 1:
        return "lanes that started with the wave are switched off"
    if fault.reason == 2:
        return f"wave {fault.other_wave} of the workgroup has ended"
    return f"wave {fault.other_wave} of the workgroup waits at {_other(fault, kernel, program)}"
