# SPDX-License-Identifier: Apache-2.0
"""launch(kernel, arguments, grid, block, memory): what the packet processor of a gfx942 does before the first instruction.

Source: LLVM "User Guide for AMDGPU Backend": kernel descriptor, "Initial Kernel Execution State" (SGPR and VGPR set-up order),
kernarg preload, code object V5 hidden arguments.
"""

from __future__ import annotations

import ctypes
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from parity.gfx942 import native
from parity.gfx942.code_object import Kernel
from parity.gfx942.explain import explain
from parity.gfx942.faults import Unsupported
from parity.gfx942.memory import Allocation, region_of, sorted_allocations
from parity.gfx942.program import Program, fidelity_of, program_of
from parity.gfx942.records import EXEC, LANES, NO_ROW, Family, Machine, Region, Touch, Watched

LDS_LIMIT = 65536  # bytes a workgroup (CDNA3 ISA, "Local Data Share")
SCRATCH_LIMIT = 65536  # bytes a work-item
STEP_LIMIT = 50_000_000  # instructions of one wave; a kernel that needs more does not end
MODE_NEAREST_DENORMALS = 0xF0  # FLOAT_MODE: round to nearest even, denormals kept, for all precisions
SLICE = 64  # workgroups between two looks at the keyboard

Dims = tuple[int, int, int]


@dataclass(frozen=True)
class Fidelity:
    """Wave instructions by how their result is known: exact (integer, data movement, IEEE 754, MFMA by MMA-Sim's rules), manual
    (a rule that stands only in AMD's manual, such as min and max of NaN), approximate (the manual gives 1 ulp: v_rcp_f32 and
    the like). README.md lists the instructions."""

    exact: int
    manual: int
    approximate: int


@dataclass(frozen=True)
class LaunchReport:
    """What one launch executed: wave instructions, MFMAs, waves, the addresses of the allocations that it stored to, fidelity."""

    instructions: int
    mfma: int
    waves: int
    fidelity: Fidelity
    written: tuple[int, ...] = ()
    seconds: float = field(default=0.0, compare=False)  # of this run, on this machine


def launch(
    kernel: Kernel,
    arguments: Sequence[bytes],
    grid: Dims,
    block: Dims,
    memory: Iterable[Allocation],
    *,
    dynamic_lds: int = 0,
    checks: bool = True,
    schedule: int | None = None,
    nudge: int | None = None,
    step_limit: int = STEP_LIMIT,
) -> LaunchReport:
    """Run `kernel` on the CPU. Memory is changed in place.

    arguments: the raw bytes of each explicit argument, in order; each at least as long as the metadata says. grid: workgroups,
    block: work-items a workgroup, both (x, y, z). memory: all that the kernel may touch. dynamic_lds: bytes beside the static.
    checks: look for what a GPU does not tell (README.md); without them only bounds and step_limit, a wave's instructions.
    schedule: seed of a shuffled order of workgroups and waves; nudge: seed that moves approximate results by up to 1 ulp.
    Raises Unsupported (unknown instruction, modifier, set-up), ExecutionFault (the kernel's fault), ValueError (bad call).
    """
    started = time.perf_counter()
    _check(kernel, grid, block, dynamic_lds)
    # The tail: a scalar load may read whole aligned blocks, but what it finds there counts as never written.
    kernarg = np.zeros(max(kernel.kernarg_bytes, 8) + 256, np.uint8)
    _pack(kernel, arguments, grid, block, kernarg, dynamic_lds)
    packed = Allocation.of_array("kernarg", kernarg, initialised=False)
    assert packed.undefined is not None
    packed.undefined[: kernel.kernarg_bytes] = 0
    allocations = sorted_allocations([*memory, packed])
    regions = (Region * len(allocations))(*(region_of(part) for part in allocations))
    program = program_for(kernel)
    counts = np.zeros(len(program.steps), np.uint64)
    machine, kept = _machine(kernel, program, grid, block, dynamic_lds, checks=checks)
    machine.counts, machine.step_limit = counts.ctypes.data, step_limit
    machine.regions, machine.region_count = ctypes.addressof(regions), len(regions)
    machine.schedule, machine.nudge = _seed(schedule), _seed(nudge)
    _initial_scalars(kernel, machine, kernarg)
    groups = grid[0] * grid[1] * grid[2]
    order = np.arange(groups, dtype=np.uint64)
    if schedule is not None:
        np.random.default_rng(schedule).shuffle(order)
    for first in range(0, groups, SLICE):
        some = order[first : first + SLICE]
        if native.library().run_groups(ctypes.byref(machine), some.ctypes.data, len(some)):
            sizes = (machine.lds_bytes, machine.scratch_bytes, machine.accum_offset)
            error = explain(machine.fault, kernel, program, allocations, sizes=sizes, step_limit=step_limit)
            group = machine.fault.group
            if not isinstance(error, Unsupported):
                error.workgroup = (group % grid[0], group // grid[0] % grid[1], group // grid[0] // grid[1])
            raise error
    del kept
    return _report(program, counts, groups * machine.waves_per_group, regions, time.perf_counter() - started)


def program_for(kernel: Kernel) -> Program:
    """The kernel translated. With preloaded arguments the hardware starts 256 bytes behind the entry, where no loads are."""
    return program_of(
        kernel.text, kernel.entry + (256 if kernel.preload_sgprs else 0), kernel.vgprs, kernel.accum_offset
    )


def _seed(seed: int | None) -> int:
    """The engine takes 0 for none."""
    return 0 if seed is None else seed % 2**32 + 1


def _report(
    program: Program, counts: np.ndarray, waves: int, regions: ctypes.Array[Region], seconds: float
) -> LaunchReport:
    matrix = np.array([step.family == Family.MATRIX for step in program.steps])
    written = tuple(region.address for region in regions if region.written)
    return LaunchReport(
        int(counts.sum()), int(counts[matrix].sum()), waves, Fidelity(*fidelity_of(program, counts)), written, seconds
    )


def _check(kernel: Kernel, grid: Dims, block: Dims, dynamic_lds: int) -> None:
    if min(*grid, *block) < 1:
        raise ValueError(f"grid {grid} and block {block} must be positive")
    if block[0] * block[1] * block[2] > 1024:
        raise ValueError(f"block {block}: more than 1024 work-items")
    if kernel.float_mode != MODE_NEAREST_DENORMALS or not (kernel.ieee_mode and kernel.dx10_clamp):
        mode = f"FLOAT_MODE {kernel.float_mode:#x}, IEEE {kernel.ieee_mode:d}, DX10_CLAMP {kernel.dx10_clamp:d}"
        raise Unsupported(f"{kernel.name}: {mode}; only round to nearest with denormals, IEEE 1, DX10_CLAMP 1")
    if kernel.lds_bytes + dynamic_lds > LDS_LIMIT:
        raise ValueError(
            f"{kernel.name}: {kernel.lds_bytes} + {dynamic_lds} bytes of LDS; a workgroup has at most {LDS_LIMIT}"
        )
    if kernel.scratch_bytes > SCRATCH_LIMIT:
        raise Unsupported(
            f"{kernel.name}: {kernel.scratch_bytes} bytes of scratch a work-item; at most {SCRATCH_LIMIT} here"
        )
    if np.float32(2.0**-149) * np.float32(1) == 0:
        raise ValueError("this process flushes denormal floats to zero (torch.set_flush_denormal?); gfx942 does not")


def _pack(
    kernel: Kernel, arguments: Sequence[bytes], grid: Dims, block: Dims, kernarg: np.ndarray, dynamic_lds: int
) -> None:
    """Lay the arguments out as the metadata says, and the hidden ones that depend on the grid."""
    explicit = [argument for argument in kernel.arguments if not argument.hidden]
    if len(arguments) != len(explicit):
        raise ValueError(f"{kernel.name} takes {len(explicit)} arguments, got {len(arguments)}")
    for number, (argument, data) in enumerate(zip(explicit, arguments, strict=True)):
        if len(data) < argument.size:
            raise ValueError(
                f"{kernel.name}: argument {number} has {len(data)} bytes, the kernel reads {argument.size}"
            )
        kernarg[argument.offset : argument.offset + argument.size] = np.frombuffer(data[: argument.size], np.uint8)
    hidden = _hidden(grid, block, dynamic_lds)
    for argument in kernel.arguments:
        if argument.hidden and argument.kind not in hidden:
            raise Unsupported(f"{kernel.name}: argument {argument.kind}")
        if argument.hidden:
            data = hidden[argument.kind].to_bytes(argument.size, "little")
            kernarg[argument.offset : argument.offset + argument.size] = np.frombuffer(data, np.uint8)


def _hidden(grid: Dims, block: Dims, dynamic_lds: int) -> dict[str, int]:
    """Values of the hidden arguments that follow from the launch (code object V5)."""
    # HIP launches every kernel with three dimensions and whole workgroups, from offset 0 (clr: ihipLaunchKernelCommand)
    hidden = {"hidden_none": 0, "hidden_grid_dims": 3, "hidden_dynamic_lds_size": dynamic_lds}
    for axis, letter in enumerate("xyz"):
        hidden |= {f"hidden_block_count_{letter}": grid[axis], f"hidden_group_size_{letter}": block[axis]}
        hidden |= {f"hidden_remainder_{letter}": 0, f"hidden_global_offset_{letter}": 0}
    return hidden


def _machine(
    kernel: Kernel, program: Program, grid: Dims, block: Dims, dynamic_lds: int, *, checks: bool
) -> tuple[Machine, list[object]]:
    """The engine's view of the launch, and what must stay alive while it runs."""
    waves, lds = -(-block[0] * block[1] * block[2] // LANES), kernel.lds_bytes + dynamic_lds
    planes, scratch = 2 if checks else 1, kernel.scratch_bytes
    v0, lanes = _work_items(block, waves, kernel.work_item_dims)
    buffers: dict[str, np.ndarray] = {
        "vector_storage": np.empty(planes * waves * kernel.vgprs * LANES, np.uint32),
        "byte_storage": np.zeros(waves * (kernel.vgprs + 2 * scratch * LANES), np.uint8),
        "origin_storage": np.empty(waves * kernel.vgprs, np.uint32),
        "watched_storage": np.empty(waves * (kernel.vgprs + 128) * ctypes.sizeof(Watched), np.uint8),
        "lds": np.empty(max(lds, 1), np.uint8),
        "lds_undefined": np.empty(max(lds, 1), np.uint8),
        "lds_writer": np.empty(max(lds, 1) * ctypes.sizeof(Touch), np.uint8),
        "lds_atomic": np.empty(max(lds, 1) * ctypes.sizeof(Touch), np.uint8),
        "lds_reader": np.empty(max(lds, 1) * ctypes.sizeof(Touch), np.uint8),
        "initial_v0": v0,
        "initial_exec": lanes,
        "patterns": program.patterns,
    }
    machine = Machine(steps=ctypes.addressof(program.steps), step_count=len(program.steps), entry=program.entry, vgprs=kernel.vgprs,
                      accum_offset=kernel.accum_offset, lds_bytes=lds, scratch_bytes=scratch,
                      waves_per_group=waves, wave_count=waves, checks=int(checks))  # fmt: skip
    for name, buffer in buffers.items():
        setattr(machine, name, buffer.ctypes.data)
    machine.grid[:] = grid
    return machine, [buffers, program]


def _initial_scalars(kernel: Kernel, machine: Machine, kernarg: np.ndarray) -> None:
    """User SGPRs, preloaded arguments, and where the workgroup ids go."""
    register = 0
    for name, width in kernel.user_sgprs:
        if name != "kernarg_segment_ptr":
            raise Unsupported(f"{kernel.name}: user SGPRs for {name}")
        address = kernarg.ctypes.data
        machine.initial_s[register], machine.initial_s[register + 1] = address & 0xFFFFFFFF, address >> 32
        register += width
    for index in range(kernel.preload_sgprs):
        machine.initial_s[register] = int(kernarg.view(np.uint32)[kernel.preload_offset + index])
        register += 1
    for axis, wanted in enumerate(kernel.workgroup_id):
        machine.group_id_row[axis] = register if wanted else NO_ROW
        register += int(wanted)
    machine.initial_known = min(register, EXEC)


def _work_items(block: Dims, waves: int, dims: int) -> tuple[np.ndarray, np.ndarray]:
    """v0 = x | y << 10 | z << 20 (gfx90a and later), without those beyond `dims`; EXEC without the lanes beyond the block."""
    flat = np.arange(waves * LANES, dtype=np.uint32).reshape(waves, LANES)
    ids = [flat % block[0], flat // block[0] % block[1], flat // (block[0] * block[1])]
    packed = sum((part << np.uint32(10 * axis) for axis, part in enumerate(ids[:dims])), start=np.zeros_like(flat))
    inside = flat < block[0] * block[1] * block[2]
    return packed.astype(np.uint32), np.packbits(inside, axis=1, bitorder="little").view(np.uint64)[:, 0].copy()


def read_argument(address: int, size: int) -> bytes:
    """`size` bytes at host address `address` (a launcher's argument array)."""
    return ctypes.string_at(address, size)
