# SPDX-License-Identifier: Apache-2.0
"""Assembly text of small gfx942 kernels, for the tests of the executor.

The tests go the true way: clang assembles, load() reads the code object, launch() runs it. One assembler call takes many
kernels, because a call costs more than a thousand lines.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from elftools.elf.elffile import ELFFile

from parity.gfx942 import Allocation
from parity.gfx942.code_object import assemble


@dataclass(frozen=True)
class Source:
    """One kernel: its instructions and what its descriptor says. `arguments` lists (size, value_kind)."""

    name: str
    body: str
    arguments: tuple[tuple[int, str], ...] = ((8, "global_buffer"), (8, "global_buffer"))
    lds: int = 0
    workgroup_ids: str = "x"
    work_item_ids: int = 0
    vgprs: int = 64
    accum_offset: int = 64
    directives: str = ""  # further .amdhsa_ lines

    @property
    def kernarg_bytes(self) -> int:
        return sum(size for size, _ in self.arguments)


def text_of(*sources: Source) -> str:
    """The whole assembly file: code, descriptors and one metadata block."""
    parts = ['.amdgcn_target "amdgcn-amd-amdhsa--gfx942"', ".amdhsa_code_object_version 5"]
    parts += [_code(source) for source in sources]
    parts += [_descriptor(source) for source in sources]
    parts += [
        ".amdgpu_metadata",
        "---",
        "amdhsa.version: [1, 2]",
        "amdhsa.target: amdgcn-amd-amdhsa--gfx942",
        "amdhsa.kernels:",
    ]
    parts += [_metadata(source) for source in sources]
    return "\n".join([*parts, "...", ".end_amdgpu_metadata", ""])


def _code(source: Source) -> str:
    return f".text\n.globl {source.name}\n.p2align 8\n.type {source.name},@function\n{source.name}:\n{source.body}\ns_endpgm"


def _descriptor(source: Source) -> str:
    ids = "".join(f".amdhsa_system_sgpr_workgroup_id_{axis} {int(axis in source.workgroup_ids)}\n" for axis in "xyz")
    return f"""
.section .rodata,"a",@progbits
.p2align 6
.amdhsa_kernel {source.name}
.amdhsa_next_free_vgpr {source.vgprs}
.amdhsa_next_free_sgpr 100
.amdhsa_accum_offset {source.accum_offset}
.amdhsa_group_segment_fixed_size {source.lds}
.amdhsa_kernarg_size {source.kernarg_bytes}
.amdhsa_user_sgpr_kernarg_segment_ptr 1
.amdhsa_system_vgpr_workitem_id {source.work_item_ids}
.amdhsa_float_denorm_mode_32 3
{ids}{source.directives}
.end_amdhsa_kernel"""


def _metadata(source: Source) -> str:
    lines = [f"  - .name: {source.name}", f"    .symbol: {source.name}.kd", "    .wavefront_size: 64",
             f"    .kernarg_segment_size: {source.kernarg_bytes}", "    .kernarg_segment_align: 8",
             f"    .group_segment_fixed_size: {source.lds}", "    .private_segment_fixed_size: 0",
             "    .max_flat_workgroup_size: 1024", "    .sgpr_count: 100", f"    .vgpr_count: {source.vgprs}", f"    .agpr_count: {source.vgprs - source.accum_offset}"]  # fmt: skip
    if source.arguments:
        lines.append("    .args:")
    offset = 0
    for size, kind in source.arguments:
        lines += [f"      - .offset: {offset}", f"        .size: {size}", f"        .value_kind: {kind}"]
        if kind == "global_buffer":
            lines.append("        .address_space: global")
        offset += size
    return "\n".join(lines)


def machine_code(lines: Sequence[str]) -> bytes:
    """The .text bytes of bare instructions, in order."""
    section = ELFFile(io.BytesIO(assemble("\n".join([*lines, ""])))).get_section_by_name(".text")
    return bytes(section.data())


def pointer(array: np.ndarray) -> bytes:
    return int(array.ctypes.data).to_bytes(8, "little")


def allocations(**arrays: np.ndarray) -> list[Allocation]:
    return [Allocation.of_array(name, array) for name, array in arrays.items()]
