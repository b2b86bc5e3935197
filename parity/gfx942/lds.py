# SPDX-License-Identifier: Apache-2.0
"""DS: loads and stores of the workgroup's LDS, checked against its size, and the two lane exchanges of this format.

Source: CDNA3 ISA, "Local Data Share". GDS and atomics are refused.
"""

from __future__ import annotations

import numpy as np

from parity.gfx942.cross_lane import read_lanes, swizzle_lanes
from parity.gfx942.decode import Instruction
from parity.gfx942.faults import ExecutionFault, Unsupported
from parity.gfx942.memory_ops import NARROW, STORE_NARROW, WIDE, Step, widen
from parity.gfx942.operands import refuse
from parity.gfx942.waves import Waves


def compile_lds(instruction: Instruction) -> Step:
    """The executable form of one DS instruction. Raises Unsupported by name."""
    refuse(instruction, gds=0, acc=0)
    name = instruction.name
    if name in ("ds_bpermute_b32", "ds_swizzle_b32"):
        return _lane_exchange(instruction)
    stem, _, kind = name.removeprefix("ds_").partition("_")
    paired, strided = stem.startswith(("read2", "write2")), stem.endswith("st64")
    if stem.removesuffix("st64").removesuffix("2") not in ("read", "write") or not (
        kind in WIDE or kind in NARROW or kind in STORE_NARROW
    ):
        raise Unsupported(f"{instruction}: no semantics")
    fields = instruction.fields
    if paired:
        unit = 4 * WIDE[kind] * (64 if strided else 1)
        offsets = [fields["offset0"] * unit, fields["offset1"] * unit]
    else:
        offsets = [fields["offset0"] | fields["offset1"] << 8]
    return _lds_read(instruction, kind, offsets) if stem.startswith("read") else _lds_write(instruction, kind, offsets)


def _lds_index(
    waves: Waves, address_register: int, offset: int, size: int, verb: str
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(active lanes, workgroup row, byte address) of an LDS access; raises ExecutionFault beyond the workgroup's LDS."""
    active = np.flatnonzero(waves.exec_mask())
    address = waves.v(waves.row(address_register)).ravel()[active].astype(np.int64) + offset
    limit = waves.lds.shape[1]
    bad = address + size > limit
    if bad.any():
        first = int(active[int(np.argmax(bad))])
        at = int(address[int(np.argmax(bad))])
        detail = f"{verb} of {size} bytes at LDS offset {at}; the workgroup has {limit} bytes"
        raise ExecutionFault(
            "out-of-bounds LDS", detail, wave=int(waves.waves[first // 64]), lane=first % 64, address=at
        )
    return active, waves.group[waves.waves][active // 64], address


def _lds_read(instruction: Instruction, kind: str, offsets: list[int]) -> Step:
    fields = instruction.fields
    dtype = NARROW.get(kind)
    size = np.dtype(dtype).itemsize if dtype else 4 * WIDE[kind]

    def run(waves: Waves) -> None:
        columns = []
        for offset in offsets:
            active, group, address = _lds_index(waves, fields["addr"], offset, size, "read")
            data = waves.lds[group[:, None], address[:, None] + np.arange(size)]
            columns.append(widen(np.ascontiguousarray(data), dtype))
        for index, column in enumerate(np.concatenate(columns, axis=1).T):
            value = np.zeros(waves.selected * 64, np.uint32)
            value[active] = column
            waves.set_v(waves.row(fields["vdst"] + index), value.reshape(-1, 64))

    return run


def _lds_write(instruction: Instruction, kind: str, offsets: list[int]) -> Step:
    fields = instruction.fields
    dwords = WIDE.get(kind, 1)
    size = STORE_NARROW.get(kind, 4 * dwords)

    def run(waves: Waves) -> None:
        for source, offset in zip(("data0", "data1"), offsets, strict=False):
            active, group, address = _lds_index(waves, fields["addr"], offset, size, "write")
            words = np.stack([waves.v(waves.row(fields[source] + n)).ravel()[active] for n in range(dwords)], axis=1)
            waves.lds[group[:, None], address[:, None] + np.arange(size)] = words.view(np.uint8)[:, :size]

    return run


def _lane_exchange(instruction: Instruction) -> Step:
    """ds_bpermute_b32: lane i reads lane (addr_i + offset) / 4 mod 64; ds_swizzle_b32: a fixed pattern. No LDS is touched."""
    fields = instruction.fields
    offset = fields["offset0"] | fields["offset1"] << 8
    swizzle = swizzle_lanes(offset)[None, :] if instruction.name == "ds_swizzle_b32" else None
    data_register = fields["addr"] if swizzle is not None else fields["data0"]

    def run(waves: Waves) -> None:
        source = swizzle
        if source is None:
            source = (
                ((waves.v(waves.row(fields["addr"])) + np.uint32(offset)) >> np.uint32(2)) & np.uint32(63)
            ).astype(np.int64)
        value = read_lanes(waves.v(waves.row(data_register)), source, waves.exec_mask())
        waves.set_v(waves.row(fields["vdst"]), value)

    return run
