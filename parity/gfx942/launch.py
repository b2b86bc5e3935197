# SPDX-License-Identifier: Apache-2.0
"""launch(kernel, arguments, grid, block, memory): what the packet processor of a gfx942 does before the first instruction.

Source: LLVM "User Guide for AMDGPU Backend": kernel descriptor, "Initial Kernel Execution State" (SGPR and VGPR set-up order),
kernarg preload, code object V5 hidden arguments.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from parity.gfx942.code_object import Kernel
from parity.gfx942.engine import Counts, Program, run_batch
from parity.gfx942.faults import ExecutionFault, Unsupported
from parity.gfx942.memory import Allocation, Memory
from parity.gfx942.waves import Waves

BATCH_WAVES = 256  # waves stepped together: enough to hide Python's cost, few enough for the processor's cache
LDS_LIMIT = 65536  # bytes a workgroup (CDNA3 ISA, "Local Data Share")
MODE_NEAREST_DENORMALS = 0xF0  # FLOAT_MODE: round to nearest even, denormals kept, for all precisions

Dims = tuple[int, int, int]


@dataclass(frozen=True)
class LaunchReport:
    """What one launch executed: wave instructions, MFMAs, approximate instructions (1-ulp reciprocals), waves; and the addresses
    of the allocations that it stored to."""

    instructions: int
    mfma: int
    approximate: int
    waves: int
    written: tuple[int, ...] = ()


def launch(
    kernel: Kernel,
    arguments: Sequence[bytes],
    grid: Dims,
    block: Dims,
    memory: Iterable[Allocation],
    *,
    dynamic_lds: int = 0,
) -> LaunchReport:
    """Run `kernel` on the CPU. Memory is changed in place.

    arguments: the raw bytes of each explicit argument, in order; each at least as long as the metadata says. grid: workgroups,
    block: work-items a workgroup, both (x, y, z). memory: all that the kernel may touch. dynamic_lds: bytes beside the static.
    Raises Unsupported (unknown instruction, modifier, set-up), ExecutionFault (the kernel's fault), ValueError (bad call).
    """
    _check(kernel, grid, block, dynamic_lds)
    kernarg = np.zeros(
        max(kernel.kernarg_bytes, 8) + 256, np.uint8
    )  # tail: a scalar load may read whole aligned blocks
    _pack(kernel, arguments, grid, block, kernarg, dynamic_lds)
    reachable = Memory([*memory, Allocation.of_array("kernarg", kernarg)])
    program = Program(kernel.text, reachable)
    counts, per_group = Counts(), -(-block[0] * block[1] * block[2] // 64)
    groups = grid[0] * grid[1] * grid[2]
    size = max(1, BATCH_WAVES // per_group)
    for first in range(0, groups, size):
        ids = np.arange(first, min(first + size, groups))
        waves = _prepare(kernel, kernarg, ids, grid, block, per_group, dynamic_lds)
        try:
            with np.errstate(all="ignore"):  # IEEE results are wanted, numpy's warnings are not
                run_batch(program, waves, kernel.entry + (256 if kernel.preload_sgprs else 0), counts)
        except ExecutionFault as fault:
            fault.kernel = kernel.name
            fault.pc -= kernel.entry
            group = int(ids[fault.wave // per_group])
            fault.workgroup = (group % grid[0], group // grid[0] % grid[1], group // grid[0] // grid[1])
            fault.wave %= per_group
            raise
    return LaunchReport(
        counts.total, counts.mfma, counts.approximate, groups * per_group, tuple(sorted(reachable.written))
    )


def _check(kernel: Kernel, grid: Dims, block: Dims, dynamic_lds: int) -> None:
    if min(*grid, *block) < 1:
        raise ValueError(f"grid {grid} and block {block} must be positive")
    if block[0] * block[1] * block[2] > 1024:
        raise ValueError(f"block {block}: more than 1024 work-items")
    if kernel.scratch_bytes:
        raise Unsupported(f"{kernel.name}: scratch memory ({kernel.scratch_bytes} bytes a work-item)")
    if kernel.float_mode != MODE_NEAREST_DENORMALS or not (kernel.ieee_mode and kernel.dx10_clamp):
        mode = f"FLOAT_MODE {kernel.float_mode:#x}, IEEE {kernel.ieee_mode:d}, DX10_CLAMP {kernel.dx10_clamp:d}"
        raise Unsupported(f"{kernel.name}: {mode}; only round to nearest with denormals, IEEE 1, DX10_CLAMP 1")
    if kernel.lds_bytes + dynamic_lds > LDS_LIMIT:
        raise ValueError(
            f"{kernel.name}: {kernel.lds_bytes} + {dynamic_lds} bytes of LDS; a workgroup has at most {LDS_LIMIT}"
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


def _prepare(
    kernel: Kernel, kernarg: np.ndarray, ids: np.ndarray, grid: Dims, block: Dims, per_group: int, dynamic_lds: int
) -> Waves:
    """Waves of the workgroups `ids` (x fastest) with their initial SGPRs, v0 and EXEC."""
    count = len(ids) * per_group
    group = np.repeat(np.arange(len(ids)), per_group)
    waves = Waves(count, vgprs=kernel.vgprs, accum_offset=min(kernel.accum_offset, kernel.vgprs), group=group,
                  lds_bytes=kernel.lds_bytes + dynamic_lds)  # fmt: skip
    register = 0
    for name, width in kernel.user_sgprs:
        if name == "kernarg_segment_ptr":
            address = kernarg.ctypes.data
            waves.sgpr[register], waves.sgpr[register + 1] = address & 0xFFFFFFFF, address >> 32
        else:
            raise Unsupported(f"{kernel.name}: user SGPRs for {name}")
        register += width
    for index in range(kernel.preload_sgprs):
        waves.sgpr[register] = kernarg.view(np.uint32)[kernel.preload_offset + index]
        register += 1
    workgroup = np.stack([ids % grid[0], ids // grid[0] % grid[1], ids // grid[0] // grid[1]])
    for axis, wanted in enumerate(kernel.workgroup_id):
        if wanted:
            waves.sgpr[register] = workgroup[axis][group]
            register += 1
    _work_items(waves, block, per_group, kernel.work_item_dims)
    return waves


def _work_items(waves: Waves, block: Dims, per_group: int, dims: int) -> None:
    """v0 = x | y << 10 | z << 20 (gfx90a and later), without those beyond `dims`; lanes beyond the block are inactive."""
    flat = np.arange(per_group * 64, dtype=np.uint32).reshape(per_group, 64)
    ids = [flat % block[0], flat // block[0] % block[1], flat // (block[0] * block[1])]
    packed = sum((part << np.uint32(10 * axis) for axis, part in enumerate(ids[:dims])), start=np.zeros_like(flat))
    copies = waves.count // per_group
    waves.vgpr[0] = np.tile(packed.astype(np.uint32), (copies, 1))
    inside = flat < block[0] * block[1] * block[2]
    if not inside.all():
        waves.set_lane_mask(126, np.tile(inside, (copies, 1)))


def read_argument(address: int, size: int) -> bytes:
    """`size` bytes at host address `address` (a launcher's argument array)."""
    return ctypes.string_at(address, size)
