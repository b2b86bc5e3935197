# SPDX-License-Identifier: Apache-2.0
"""SMEM, GLOBAL, FLAT, SCRATCH, MUBUF and DS to steps. How they access memory: engine/memory.c.

Source: CDNA3 ISA, "Scalar Memory", "Vector Memory Buffer Instructions", "FLAT/GLOBAL/SCRATCH", "Local Data Share". GDS, LDS-DMA,
formatted and indexed buffers are refused.
"""

from __future__ import annotations

from parity.gfx942.decode import Instruction
from parity.gfx942.faults import Unsupported
from parity.gfx942.lane_patterns import swizzle_lanes
from parity.gfx942.operands import (
    Kernel,
    new_step,
    refuse,
    scalar_row,
    set_constant,
    set_scalar,
    touch,
    write_scalar,
    write_vector,
)
from parity.gfx942.records import ATOMICS, D16, HIGH_HALF, LDS_MOVES, SIGNED, Access, Family, Role, Space, Step

# kind in the mnemonic: (bytes, registers, how a narrow value sits in its register)
LOADS = {
    "ubyte": (1, 1, 0), "sbyte": (1, 1, SIGNED), "ushort": (2, 1, 0), "sshort": (2, 1, SIGNED),
    "u8": (1, 1, 0), "i8": (1, 1, SIGNED), "u16": (2, 1, 0), "i16": (2, 1, SIGNED),
    "ubyte_d16": (1, 1, D16), "ubyte_d16_hi": (1, 1, D16 | HIGH_HALF), "short_d16": (2, 1, D16), "short_d16_hi": (2, 1, D16 | HIGH_HALF),
    "sbyte_d16": (1, 1, D16 | SIGNED), "sbyte_d16_hi": (1, 1, D16 | SIGNED | HIGH_HALF),
    "u8_d16": (1, 1, D16), "u8_d16_hi": (1, 1, D16 | HIGH_HALF), "u16_d16": (2, 1, D16), "u16_d16_hi": (2, 1, D16 | HIGH_HALF),
    "i8_d16": (1, 1, D16 | SIGNED), "i8_d16_hi": (1, 1, D16 | SIGNED | HIGH_HALF),
    "dword": (4, 1, 0), "dwordx2": (8, 2, 0), "dwordx3": (12, 3, 0), "dwordx4": (16, 4, 0),
    "b32": (4, 1, 0), "b64": (8, 2, 0), "b96": (12, 3, 0), "b128": (16, 4, 0),
}  # fmt: skip
STORES = {
    "byte": (1, 1, 0), "short": (2, 1, 0), "byte_d16_hi": (1, 1, HIGH_HALF), "short_d16_hi": (2, 1, HIGH_HALF),
    "b8": (1, 1, 0), "b16": (2, 1, 0), "b8_d16_hi": (1, 1, HIGH_HALF), "b16_d16_hi": (2, 1, HIGH_HALF),
    **{kind: LOADS[kind] for kind in ("dword", "dwordx2", "dwordx3", "dwordx4", "b32", "b64", "b96", "b128")},
}  # fmt: skip
SCALAR_LOADS = {"dword": 1, "dwordx2": 2, "dwordx4": 4, "dwordx8": 8, "dwordx16": 16}
_DS_ATOMICS = {
    "add_u32": "add", "sub_u32": "sub", "min_i32": "smin", "min_u32": "umin", "max_i32": "smax", "max_u32": "umax", "and_b32": "and",
    "or_b32": "or", "xor_b32": "xor", "inc_u32": "inc", "dec_u32": "dec", "wrxchg_b32": "swap", "add_f32": "add_f32",
    "cmpst_b32": "cmpswap",
}  # fmt: skip


def translate_memory(instruction: Instruction, kernel: Kernel) -> Step:
    """Raises Unsupported by name."""
    if instruction.format == "SMEM":
        return _scalar_load(instruction)
    if instruction.format == "DS":
        return _lds(instruction, kernel)
    step, fields = new_step(Family.MEMORY, instruction), instruction.fields
    if instruction.format == "MUBUF":
        refuse(instruction, idxen=0, lds=0)
        step.space, step.offset, step.saddr = Space.BUFFER, fields["offset"], scalar_row(4 * fields["srsrc"], count=4)
        touch(step, Role.READ_S, step.saddr, 4)
        set_scalar(step, 1, fields["soffset"], instruction)
        _address(kernel, step, fields["vaddr"] if fields["offen"] else None, 1)
        data = target = fields["vdata"]
    else:
        data, target = fields["data"], fields["vdst"]
        _flat_address(instruction, kernel, step)
    _, verb, kind = instruction.name.split("_", 2)
    acc = bool(fields["acc"])
    if verb == "load" and kind in LOADS:
        _size(step, Access.LOAD, LOADS[kind])
        _load_target(kernel, step, target, step.dwords, acc=acc)
    elif verb == "store" and kind in STORES:
        _size(step, Access.STORE, STORES[kind])
        step.vdata = _data(kernel, step, data, step.dwords, acc=acc)
    elif verb == "atomic" and kind.removesuffix("_x2") in ATOMICS:
        _atomic(instruction, kernel, step, kind, data, target, acc=acc)
    else:
        raise Unsupported(f"{instruction}: no semantics")
    return step


def _size(step: Step, access: Access, shape: tuple[int, int, int]) -> None:
    step.access, step.elements = access, 1
    step.size, step.dwords, step.narrow = shape


def _load_target(kernel: Kernel, step: Step, register: int, count: int, *, acc: bool = False) -> None:
    dwords = step.dwords
    write_vector(step, kernel.row(register, acc=acc, count=count), count)
    step.dwords = dwords
    if step.narrow & D16:  # the other half stays
        touch(step, Role.READ_V, step.vdst)


def _data(kernel: Kernel, step: Step, register: int, count: int, *, acc: bool = False) -> int:
    row = kernel.row(register, acc=acc, count=count)
    touch(step, Role.READ_V, row, count)
    return row


def _address(kernel: Kernel, step: Step, register: int | None, count: int) -> None:
    if register is not None:
        step.has_vaddr, step.vaddr = 1, kernel.row(register, count=count)
        touch(step, Role.READ_V, step.vaddr, count)


def _flat_address(instruction: Instruction, kernel: Kernel, step: Step) -> None:
    fields = instruction.fields
    signed = fields["offset"] - (1 << 13 if fields["offset"] >= 1 << 12 else 0)
    scalar = None if fields["saddr"] == 0x7F else fields["saddr"]
    if instruction.format == "SCRATCH":
        step.space, step.offset = Space.SCRATCH, signed
        if scalar is not None:
            step.has_saddr, step.saddr = 1, scalar_row(scalar)
            touch(step, Role.READ_S, scalar)
        _address(kernel, step, fields["addr"] if fields["sve"] else None, 1)
        return
    refuse(instruction, sve=0)
    if instruction.format == "FLAT":
        if scalar not in (None, 0):  # the field is unused by FLAT; assemblers write either
            raise Unsupported(f"{instruction}: modifier saddr={scalar}")
        if signed < 0:
            raise Unsupported(f"{instruction}: modifier offset={signed}")
        step.space, step.offset = Space.FLAT, signed
        _address(kernel, step, fields["addr"], 2)
        return
    step.space, step.offset = Space.GLOBAL, signed
    if scalar is not None:
        step.has_saddr, step.saddr = 1, scalar_row(scalar, count=2)
        touch(step, Role.READ_S, scalar, 2)
    _address(kernel, step, fields["addr"], 1 if step.has_saddr else 2)


def _atomic(
    instruction: Instruction, kernel: Kernel, step: Step, kind: str, data: int, target: int, *, acc: bool
) -> None:
    name, dwords = kind.removesuffix("_x2"), 2 if kind.endswith("_x2") else 1
    step.op, step.returns = ATOMICS.index(name), instruction.fields["sc0"]  # sc0: give the old value back
    _size(step, Access.ATOMIC, (4 * dwords, dwords, 0))
    step.vdata = _data(kernel, step, data, dwords, acc=acc)
    if name == "cmpswap":  # the new value, then the one to compare with
        step.vdata2 = _data(kernel, step, data + dwords, dwords, acc=acc)
    if step.returns:
        _load_target(kernel, step, target, dwords, acc=acc)


def _scalar_load(instruction: Instruction) -> Step:
    fields = instruction.fields
    stem, _, kind = instruction.name.rpartition("_")
    if stem not in ("s_load", "s_buffer_load") or kind not in SCALAR_LOADS:
        raise Unsupported(f"{instruction}: no semantics")
    refuse(instruction, nv=0)
    step, dwords = new_step(Family.MEMORY, instruction), SCALAR_LOADS[kind]
    step.space, step.access, step.dwords, step.narrow = Space.CONSTANTS, Access.LOAD, dwords, stem == "s_buffer_load"
    pair = 4 if step.narrow else 2
    step.saddr = scalar_row(2 * fields["sbase"], count=pair)
    touch(step, Role.READ_S, step.saddr, pair)
    _scalar_offset(instruction, step)
    write_scalar(step, fields["sdst"], dwords)
    return step


def _scalar_offset(instruction: Instruction, step: Step) -> None:
    """A signed constant, a constant and an SGPR, or an SGPR in the constant's bits; added to the base."""
    fields = instruction.fields
    value = fields["offset"]
    if fields["imm"]:
        step.offset = value - (1 << 21 if value >= 1 << 20 else 0)
        if fields["soffset_en"]:
            set_scalar(step, 1, fields["soffset"], instruction)
        else:
            set_constant(step.source[1], 0)
    elif fields["soffset_en"] or value > 0x7F:
        raise Unsupported(f"{instruction}: modifier imm=0 with soffset_en={fields['soffset_en']} offset={value}")
    else:
        set_scalar(step, 1, value, instruction)


# -- LDS -----------------------------------------------------------------------------------------------------------------
def _lds(instruction: Instruction, kernel: Kernel) -> Step:
    refuse(instruction, gds=0)
    fields, name = instruction.fields, instruction.name.removeprefix("ds_")
    offset, acc = fields["offset0"] | fields["offset1"] << 8, bool(fields["acc"])
    if instruction.name in LDS_MOVES:
        return _lds_move(instruction, kernel, offset)
    step = new_step(Family.MEMORY, instruction)
    step.space, step.offset = Space.LDS, offset
    _address(kernel, step, fields["addr"], 1)
    stem, _, kind = name.partition("_")
    base, two = stem.removesuffix("st64").removesuffix("2"), stem.removesuffix("st64").endswith("2")
    if base == "read" and kind in LOADS:
        _size(step, Access.LOAD, LOADS[kind])
        _two_elements(instruction, step, stem, two=two)
        _load_target(kernel, step, fields["vdst"], step.dwords * step.elements, acc=acc)
    elif base == "write" and kind in STORES:
        _size(step, Access.STORE, STORES[kind])
        _two_elements(instruction, step, stem, two=two)
        step.vdata = _data(kernel, step, fields["data0"], step.dwords, acc=acc)
        if two:
            step.vdata2 = _data(kernel, step, fields["data1"], step.dwords, acc=acc)
    else:
        _lds_atomic(instruction, kernel, step, name, acc=acc)
    return step


def _two_elements(instruction: Instruction, step: Step, stem: str, *, two: bool) -> None:
    """read2, write2: two offsets in units of the element, with st64 in units of 64 elements."""
    if two:
        unit = step.size * (64 if stem.endswith("st64") else 1)
        step.elements = 2
        step.offset, step.offset2 = instruction.fields["offset0"] * unit, instruction.fields["offset1"] * unit


def _lds_atomic(instruction: Instruction, kernel: Kernel, step: Step, name: str, *, acc: bool) -> None:
    fields, plain = instruction.fields, name.replace("_rtn", "")
    if plain not in _DS_ATOMICS:
        raise Unsupported(f"{instruction}: no semantics")
    step.op, step.returns = ATOMICS.index(_DS_ATOMICS[plain]), "_rtn" in name
    _size(step, Access.ATOMIC, (4, 1, 0))
    swapped = plain == "cmpst_b32"  # data0 compares, data1 is the new value
    step.vdata = _data(kernel, step, fields["data1" if swapped else "data0"], 1, acc=acc)
    if swapped:
        step.vdata2 = _data(kernel, step, fields["data0"], 1, acc=acc)
    if step.returns:
        _load_target(kernel, step, fields["vdst"], 1, acc=acc)


def _lds_move(instruction: Instruction, kernel: Kernel, offset: int) -> Step:
    """ds_swizzle_b32: a fixed pattern; ds_bpermute_b32, ds_permute_b32: lane (address + offset) / 4 mod 64."""
    step, fields = new_step(Family.LDS_MOVE, instruction), instruction.fields
    refuse(instruction, acc=0)
    step.op, step.offset = LDS_MOVES.index(instruction.name), offset
    if instruction.name == "ds_swizzle_b32":
        step.lanes = kernel.pattern(swizzle_lanes(offset))
        step.vdata = step.vaddr = _data(kernel, step, fields["addr"], 1)
    else:
        step.vaddr, step.vdata = _data(kernel, step, fields["addr"], 1), _data(kernel, step, fields["data0"], 1)
    write_vector(step, kernel.row(fields["vdst"]))
    return step
