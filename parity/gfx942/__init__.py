# SPDX-License-Identifier: Apache-2.0
"""gfx942 machine code on the CPU: code object or assembly in, memory out.

    from parity.gfx942 import Allocation, launch, load

    kernel = load(code_object_bytes)                       # or a path, or assembly text
    data = np.zeros(64, np.uint32)
    pointer = data.ctypes.data.to_bytes(8, "little")
    launch(kernel, [pointer], grid=(1, 1, 1), block=(64, 1, 1), memory=[Allocation.of_array("data", data)])

It knows nothing of logits. fp8/bf8 MFMAs are bit-exact to MMA-Sim's rules, other arithmetic is IEEE; every access is checked
against the allocations; what it does not know (instruction, modifier, set-up) it refuses by name.

    code_object.py  ELF, metadata, kernel descriptor        opcodes.py, decode.py   machine code to instructions
    launch.py       arguments and initial registers         engine.py               run loop over waves
    waves.py        registers, EXEC, selection              operands.py             operand codes, modifiers
    scalar.py       SOP1, SOP2, SOPC, SOPK                   vector*.py              VOP1, VOP2, VOP3, VOPC
    packed.py       VOP3P and MFMA                          cross_lane.py           DPP, swizzle, readlane
    memory.py       allocations, bounds                     memory_ops.py, lds.py   SMEM, GLOBAL, MUBUF; DS
    native.c, .py   MFMA and fused multiply-add in C        faults.py               what is raised
"""

from parity.gfx942.code_object import Kernel, load
from parity.gfx942.faults import BadCodeObject, ExecutionFault, ExecutorError, Unsupported
from parity.gfx942.launch import LaunchReport, launch
from parity.gfx942.memory import Allocation, Memory

__all__ = [
    "Allocation",
    "BadCodeObject",
    "ExecutionFault",
    "ExecutorError",
    "Kernel",
    "LaunchReport",
    "Memory",
    "Unsupported",
    "launch",
    "load",
]
