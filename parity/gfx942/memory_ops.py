# SPDX-License-Identifier: Apache-2.0
"""Loads and stores: SMEM, GLOBAL, MUBUF, DS. Every byte is checked against an allocation or the workgroup's LDS.

Source: CDNA3 ISA, "Scalar Memory", "Vector Memory Buffer Instructions" (buffer descriptor), "FLAT/GLOBAL", "LDS".
Memory is in order here, so waits and cache bits (sc0, sc1, nt, glc) change nothing. FLAT and SCRATCH are refused.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from parity.gfx942.cross_lane import read_lanes, swizzle_lanes
from parity.gfx942.decode import Instruction
from parity.gfx942.faults import ExecutionFault, Unsupported
from parity.gfx942.memory import Memory
from parity.gfx942.operands import refuse, scalar_row, scalar_source
from parity.gfx942.waves import Waves

U64 = np.uint64
# bytes, then how a narrow load fills its register: dtype of the element
_NARROW = {"ubyte": np.uint8, "sbyte": np.int8, "ushort": np.uint16, "sshort": np.int16,
           "u8": np.uint8, "i8": np.int8, "u16": np.uint16, "i16": np.int16}  # fmt: skip
_WIDE = {"dword": 1, "dwordx2": 2, "dwordx3": 3, "dwordx4": 4, "dwordx8": 8, "dwordx16": 16,
         "b32": 1, "b64": 2, "b96": 3, "b128": 4}  # fmt: skip
_STORE_NARROW = {"byte": 1, "short": 2, "b8": 1, "b16": 2}
Step = Callable[[Waves], None]


def compile_memory(instruction: Instruction, memory: Memory) -> Step:
    """The executable form of one memory instruction. Raises Unsupported by name."""
    if instruction.format == "SMEM":
        return _scalar_load(instruction, memory)
    if instruction.format == "GLOBAL":
        return _vector_memory(instruction, memory, _global_address(instruction))
    if instruction.format == "MUBUF":
        return _vector_memory(instruction, memory, _buffer_address(instruction))
    if instruction.format == "DS":
        return _lds(instruction)
    raise Unsupported(f"{instruction}: no semantics")


def _scalar_load(instruction: Instruction, memory: Memory) -> Step:
    fields = instruction.fields
    dwords = _WIDE.get(instruction.name.removeprefix("s_load_"))
    if dwords is None or not instruction.name.startswith("s_load_"):
        raise Unsupported(f"{instruction}: no semantics")
    refuse(instruction, nv=0)
    offset = fields["offset"] - (1 << 21 if fields["offset"] >= 1 << 20 else 0) if fields["imm"] else 0
    base, destination = scalar_row(2 * fields["sbase"]), scalar_row(fields["sdst"])
    register = scalar_source(fields["soffset"], instruction) if fields["soffset_en"] else None

    def run(waves: Waves) -> None:
        address = waves.s64(base) + U64(offset & 0xFFFFFFFFFFFFFFFF)
        if register is not None:
            address = address + register(waves)
        data = _checked(lambda: memory.read(address & ~U64(3), 4 * dwords), waves, np.arange(waves.selected), per_lane=False)
        words = data.view(np.uint32)
        for index in range(dwords):
            waves.set_s(destination + index, words[:, index])

    return run


def _checked(access: Callable[[], np.ndarray | None], waves: Waves, active: np.ndarray, *, per_lane: bool = True) -> np.ndarray:
    """Run a memory access; turn the index in its fault into the wave (and lane) that made it."""
    try:
        result = access()
    except ExecutionFault as fault:
        index = int(active[fault.lane])
        fault.wave = int(waves.waves[index // 64 if per_lane else index])
        fault.lane = index % 64 if per_lane else -1
        raise
    assert result is not None
    return result


Address = Callable[[Waves, int], tuple[np.ndarray, np.ndarray]]  # (uint64 [waves, 64], lanes that access memory)


def _global_address(instruction: Instruction) -> Address:
    fields = instruction.fields
    refuse(instruction, sve=0, acc=0)
    offset = fields["offset"] - (1 << 13 if fields["offset"] >= 1 << 12 else 0)
    register = fields["addr"]
    base = None if fields["saddr"] == 0x7F else scalar_row(fields["saddr"])

    def address(waves: Waves, size: int) -> tuple[np.ndarray, np.ndarray]:
        low = waves.v(waves.row(register)).astype(U64)
        if base is None:
            full = low | (waves.v(waves.row(register + 1)).astype(U64) << U64(32))
        else:
            full = waves.s64(base)[:, None] + low
        return full + U64(offset & 0xFFFFFFFFFFFFFFFF), waves.exec_mask()

    return address


def _buffer_address(instruction: Instruction) -> Address:
    """Raw buffers (stride 0, no swizzle): base + soffset + voffset + offset.

    A lane beyond num_records reads 0 and writes nothing (soffset is not part of that check): compilers mask lanes so.
    """
    fields = instruction.fields
    refuse(instruction, idxen=0, lds=0, acc=0)
    descriptor = 4 * fields["srsrc"]
    soffset = scalar_source(fields["soffset"], instruction)
    register = fields["vaddr"] if fields["offen"] else None

    def address(waves: Waves, size: int) -> tuple[np.ndarray, np.ndarray]:
        word1 = waves.s(descriptor + 1)
        if (word1 >> np.uint32(16)).any():
            raise Unsupported(f"{instruction}: buffer descriptor with stride or swizzle (word 1 {int(word1[0]):#x})")
        base = waves.s(descriptor).astype(U64) | (word1.astype(U64) << U64(32))
        within = np.full((waves.selected, 64), fields["offset"], U64)
        if register is not None:
            within += waves.v(waves.row(register))
        inside = within + U64(size) <= waves.s(descriptor + 2).astype(U64)[:, None]
        return (base + soffset(waves))[:, None] + within, waves.exec_mask() & inside

    return address


def _vector_memory(instruction: Instruction, memory: Memory, address: Address) -> Step:
    _, verb, kind = instruction.name.split("_", 2)
    fields = instruction.fields
    is_buffer = instruction.format == "MUBUF"
    if verb == "load" and (kind in _WIDE or kind in _NARROW):
        return _load(instruction, memory, address, kind, fields["vdata"] if is_buffer else fields["vdst"])
    if verb == "store" and (kind in _WIDE or kind in _STORE_NARROW):
        return _store(memory, address, kind, fields["vdata"] if is_buffer else fields["data"])
    raise Unsupported(f"{instruction}: no semantics")


def _load(instruction: Instruction, memory: Memory, address: Address, kind: str, destination: int) -> Step:
    dtype = _NARROW.get(kind)
    size = np.dtype(dtype).itemsize if dtype else 4 * _WIDE[kind]

    def run(waves: Waves) -> None:
        full, lanes = address(waves, size)
        active = np.flatnonzero(lanes)
        data = _checked(lambda: memory.read(full.ravel()[active], size), waves, active)
        columns = _widen(data, dtype)
        for index in range(columns.shape[1]):
            value = np.zeros(lanes.size, np.uint32)  # lanes beyond a buffer's end read 0
            value[active] = columns[:, index]
            waves.set_v(waves.row(destination + index), value.reshape(lanes.shape))

    return run


def _widen(data: np.ndarray, dtype: type | None) -> np.ndarray:
    """Loaded bytes [n, size] to register values uint32 [n, registers]; narrow ones are zero- or sign-extended."""
    if dtype is None:
        return data.view(np.uint32)
    wide = np.int32 if np.dtype(dtype).kind == "i" else np.uint32
    return data.view(dtype).astype(wide).view(np.uint32)


def _store(memory: Memory, address: Address, kind: str, source: int) -> Step:
    dwords = _WIDE.get(kind, 1)
    size = _STORE_NARROW.get(kind, 4 * dwords)

    def run(waves: Waves) -> None:
        full, lanes = address(waves, size)
        active = np.flatnonzero(lanes)
        words = np.stack([waves.v(waves.row(source + index)).ravel()[active] for index in range(dwords)], axis=1)
        data = words.view(np.uint8)[:, :size]

        def access() -> np.ndarray:
            memory.write(full.ravel()[active], data)
            return data

        _checked(access, waves, active)

    return run


# -- LDS -------------------------------------------------------------------------------------------------------------
def _lds(instruction: Instruction) -> Step:
    refuse(instruction, gds=0, acc=0)
    name = instruction.name
    if name in ("ds_bpermute_b32", "ds_swizzle_b32"):
        return _lane_exchange(instruction)
    stem, _, kind = name.removeprefix("ds_").partition("_")
    paired, strided = stem.startswith(("read2", "write2")), stem.endswith("st64")
    if stem.removesuffix("st64").removesuffix("2") not in ("read", "write") or not (kind in _WIDE or kind in _NARROW or kind in _STORE_NARROW):
        raise Unsupported(f"{instruction}: no semantics")
    fields = instruction.fields
    if paired:
        unit = 4 * _WIDE[kind] * (64 if strided else 1)
        offsets = [fields["offset0"] * unit, fields["offset1"] * unit]
    else:
        offsets = [fields["offset0"] | fields["offset1"] << 8]
    return _lds_read(instruction, kind, offsets) if stem.startswith("read") else _lds_write(instruction, kind, offsets)


def _lds_index(waves: Waves, address_register: int, offset: int, size: int, verb: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(active lanes, workgroup row, byte address) of an LDS access; raises ExecutionFault beyond the workgroup's LDS."""
    active = np.flatnonzero(waves.exec_mask())
    address = waves.v(waves.row(address_register)).ravel()[active].astype(np.int64) + offset
    limit = waves.lds.shape[1]
    bad = address + size > limit
    if bad.any():
        first = int(active[int(np.argmax(bad))])
        at = int(address[int(np.argmax(bad))])
        detail = f"{verb} of {size} bytes at LDS offset {at}; the workgroup has {limit} bytes"
        raise ExecutionFault("out-of-bounds LDS", detail, wave=int(waves.waves[first // 64]), lane=first % 64, address=at)
    return active, waves.group[waves.waves][active // 64], address


def _lds_read(instruction: Instruction, kind: str, offsets: list[int]) -> Step:
    fields = instruction.fields
    dtype = _NARROW.get(kind)
    size = np.dtype(dtype).itemsize if dtype else 4 * _WIDE[kind]

    def run(waves: Waves) -> None:
        columns = []
        for offset in offsets:
            active, group, address = _lds_index(waves, fields["addr"], offset, size, "read")
            data = waves.lds[group[:, None], address[:, None] + np.arange(size)]
            columns.append(_widen(np.ascontiguousarray(data), dtype))
        for index, column in enumerate(np.concatenate(columns, axis=1).T):
            value = np.zeros(waves.selected * 64, np.uint32)
            value[active] = column
            waves.set_v(waves.row(fields["vdst"] + index), value.reshape(-1, 64))

    return run


def _lds_write(instruction: Instruction, kind: str, offsets: list[int]) -> Step:
    fields = instruction.fields
    dwords = _WIDE.get(kind, 1)
    size = _STORE_NARROW.get(kind, 4 * dwords)

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
            source = (((waves.v(waves.row(fields["addr"])) + np.uint32(offset)) >> np.uint32(2)) & np.uint32(63)).astype(np.int64)
        value = read_lanes(waves.v(waves.row(data_register)), source, waves.exec_mask())
        waves.set_v(waves.row(fields["vdst"]), value)

    return run
