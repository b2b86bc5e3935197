# SPDX-License-Identifier: Apache-2.0
"""gfx942 machine code on the CPU: code object or assembly in, memory out. README.md in this folder tells what it checks.

    from parity.gfx942 import Allocation, launch, load

    kernel = load(code_object_bytes)                       # or a path, or assembly text
    data = np.zeros(64, np.uint32)
    pointer = data.ctypes.data.to_bytes(8, "little")
    launch(kernel, [pointer], grid=(1, 1, 1), block=(64, 1, 1), memory=[Allocation.of_array("data", data)])

It knows nothing of logits. fp8/bf8 MFMAs are bit-exact to MMA-Sim's rules, other arithmetic is IEEE; every access is checked
against the allocations; what it does not know (instruction, modifier, set-up) it refuses by name.

    code_object.py, lines.py    ELF, metadata, kernel descriptor, source lines
    opcodes.py, decode.py       machine code to instructions;  text.py   instructions to assembly text
    program.py, translate_*.py  instructions to the engine's steps;  operands.py  operand codes;  lane_patterns.py  DPP, swizzle
    engine/                     the steps executed, in C: vector.def and scalar.def say what each instruction computes
    launch.py, memory.py        arguments, initial registers, allocations;  repeat.py  shuffled orders, moved approximations
    explain.py, faults.py       what is raised;  native.py, records.py  the engine built and its data structures
"""

from parity.gfx942.code_object import Kernel, load
from parity.gfx942.faults import BadCodeObject, ExecutionFault, ExecutorError, Unsupported
from parity.gfx942.launch import Fidelity, LaunchReport, launch
from parity.gfx942.memory import Allocation
from parity.gfx942.repeat import Examined, check_schedules, examine

__all__ = [
    "Allocation",
    "BadCodeObject",
    "Examined",
    "ExecutionFault",
    "ExecutorError",
    "Fidelity",
    "Kernel",
    "LaunchReport",
    "Unsupported",
    "check_schedules",
    "examine",
    "launch",
    "load",
]
