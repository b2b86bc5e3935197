# SPDX-License-Identifier: Apache-2.0
"""Loads and stores of global memory: SMEM, GLOBAL, MUBUF. Every byte is checked against an allocation.

Source: CDNA3 ISA, "Scalar Memory", "Vector Memory Buffer Instructions" (buffer descriptor), "FLAT/GLOBAL".
Memory is in order here, so waits and cache bits (sc0, sc1, nt, glc) change nothing. FLAT and SCRATCH are refused.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from parity.gfx942.decode import Instruction
from parity.gfx942.faults import ExecutionFault, Unsupported
from parity.gfx942.memory import Memory
from parity.gfx942.operands import Reader, refuse, scalar_row, scalar_source
from parity.gfx942.waves import Waves

U64 = np.uint64
# bytes, then how a narrow load fills its register: dtype of the element
NARROW = {"ubyte": np.uint8, "sbyte": np.int8, "ushort": np.uint16, "sshort": np.int16,
          "u8": np.uint8, "i8": np.int8, "u16": np.uint16, "i16": np.int16}  # fmt: skip
WIDE = {"dword": 1, "dwordx2": 2, "dwordx3": 3, "dwordx4": 4, "dwordx8": 8, "dwordx16": 16,
        "b32": 1, "b64": 2, "b96": 3, "b128": 4}  # fmt: skip
STORE_NARROW = {"byte": 1, "short": 2, "b8": 1, "b16": 2}
Step = Callable[[Waves], None]


def compile_memory(instruction: Instruction, memory: Memory) -> Step:
    """The executable form of one memory instruction. Raises Unsupported by name."""
    if instruction.format == "SMEM":
        return _scalar_load(instruction, memory)
    if instruction.format == "GLOBAL":
        return _vector_memory(instruction, memory, _global_address(instruction))
    if instruction.format == "MUBUF":
        return _vector_memory(instruction, memory, _buffer_address(instruction))
    raise Unsupported(f"{instruction}: no semantics")


def _scalar_load(instruction: Instruction, memory: Memory) -> Step:
    fields = instruction.fields
    dwords = WIDE.get(instruction.name.removeprefix("s_load_"))
    if dwords is None or not instruction.name.startswith("s_load_"):
        raise Unsupported(f"{instruction}: no semantics")
    refuse(instruction, nv=0)
    base, destination = scalar_row(2 * fields["sbase"], count=2), scalar_row(fields["sdst"], count=dwords)
    offset, register = _scalar_offset(instruction)

    def run(waves: Waves) -> None:
        address = waves.s64(base) + U64(offset & 0xFFFFFFFFFFFFFFFF)
        if register is not None:
            address = address + register(waves)
        data = _checked(
            lambda: memory.read(address & ~U64(3), 4 * dwords), waves, np.arange(waves.selected), per_lane=False
        )
        words = data.view(np.uint32)
        for index in range(dwords):
            waves.set_s(destination + index, words[:, index])

    return run


def _scalar_offset(instruction: Instruction) -> tuple[int, Reader | None]:
    """(constant, register) to add to the base: a signed constant, a constant and an SGPR, or an SGPR in the constant's bits."""
    fields = instruction.fields
    value = fields["offset"]
    if fields["imm"]:
        register = scalar_source(fields["soffset"], instruction) if fields["soffset_en"] else None
        return value - (1 << 21 if value >= 1 << 20 else 0), register
    if fields["soffset_en"] or value > 0x7F:
        raise Unsupported(f"{instruction}: modifier imm=0 with soffset_en={fields['soffset_en']} offset={value}")
    return 0, scalar_source(value, instruction)


def _checked(
    access: Callable[[], np.ndarray | None], waves: Waves, active: np.ndarray, *, per_lane: bool = True
) -> np.ndarray:
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
    base = None if fields["saddr"] == 0x7F else scalar_row(fields["saddr"], count=2)

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

    A lane beyond num_records reads 0 and writes nothing: compilers mask lanes so. Accounts differ on whether soffset counts
    in that comparison, whether the dwords of one access are compared one by one, and whether the offset wraps at 2^32
    (ISA "Range checking"; MLIR amdgpu.raw_buffer_load: "may or may not"), so a lane for which it matters is refused.
    """
    fields = instruction.fields
    refuse(instruction, idxen=0, lds=0, acc=0)
    descriptor = scalar_row(4 * fields["srsrc"], count=4)
    soffset = scalar_source(fields["soffset"], instruction)
    register = fields["vaddr"] if fields["offen"] else None

    def address(waves: Waves, size: int) -> tuple[np.ndarray, np.ndarray]:
        base, records = _descriptor(instruction, waves, descriptor)
        scalar = soffset(waves).astype(U64)[:, None]
        within = np.full((waves.selected, 64), fields["offset"], U64)
        if register is not None:
            within += waves.v(waves.row(register))
        inside, outside = within + scalar + U64(size) <= records, within >= records
        active = waves.exec_mask()
        if (active & (~(inside | outside) | (within > U64(0xFFFFFFFF)))).any():
            raise Unsupported(
                f"{instruction}: an access across the end of its buffer, whose result the manual leaves open"
            )
        return base + scalar + within, active & inside

    return address


def _descriptor(instruction: Instruction, waves: Waves, row: int) -> tuple[np.ndarray, np.ndarray]:
    """(base, num_records) of a raw buffer of dwords, both uint64 [waves, 1]. Other kinds are refused."""
    word1, word3 = waves.s(row + 1), waves.s(row + 3)
    if (word1 >> np.uint32(16)).any():
        raise Unsupported(f"{instruction}: buffer descriptor with stride or swizzle (word 1 {int(word1[0]):#x})")
    if (
        word3 >> np.uint32(15) != 4
    ).any():  # DATA_FORMAT 32 and nothing above it; NUM_FORMAT and DST_SEL act on formatted loads
        raise Unsupported(f"{instruction}: buffer descriptor with word 3 {int(word3[0]):#x}")
    base = waves.s(row).astype(U64) | (word1.astype(U64) << U64(32))
    return base[:, None], waves.s(row + 2).astype(U64)[:, None]


def _vector_memory(instruction: Instruction, memory: Memory, address: Address) -> Step:
    _, verb, kind = instruction.name.split("_", 2)
    fields = instruction.fields
    is_buffer = instruction.format == "MUBUF"
    if verb == "load" and (kind in WIDE or kind in NARROW):
        return _load(instruction, memory, address, kind, fields["vdata"] if is_buffer else fields["vdst"])
    if verb == "store" and (kind in WIDE or kind in STORE_NARROW):
        return _store(memory, address, kind, fields["vdata"] if is_buffer else fields["data"])
    raise Unsupported(f"{instruction}: no semantics")


def _load(instruction: Instruction, memory: Memory, address: Address, kind: str, destination: int) -> Step:
    dtype = NARROW.get(kind)
    size = np.dtype(dtype).itemsize if dtype else 4 * WIDE[kind]

    def run(waves: Waves) -> None:
        full, lanes = address(waves, size)
        active = np.flatnonzero(lanes)
        data = _checked(lambda: memory.read(full.ravel()[active], size), waves, active)
        columns = widen(data, dtype)
        for index in range(columns.shape[1]):
            value = np.zeros(lanes.size, np.uint32)  # lanes beyond a buffer's end read 0
            value[active] = columns[:, index]
            waves.set_v(waves.row(destination + index), value.reshape(lanes.shape))

    return run


def widen(data: np.ndarray, dtype: type | None) -> np.ndarray:
    """Loaded bytes [n, size] to register values uint32 [n, registers]; narrow ones are zero- or sign-extended."""
    if dtype is None:
        return data.view(np.uint32)
    wide = np.int32 if np.dtype(dtype).kind == "i" else np.uint32
    return data.view(dtype).astype(wide).view(np.uint32)


def _store(memory: Memory, address: Address, kind: str, source: int) -> Step:
    dwords = WIDE.get(kind, 1)
    size = STORE_NARROW.get(kind, 4 * dwords)

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
