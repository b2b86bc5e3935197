# SPDX-License-Identifier: Apache-2.0
"""Data between lanes: DPP patterns, ds_swizzle and ds_bpermute patterns, readlane, readfirstlane, mbcnt.

Source: CDNA3 ISA, "DPP" (data parallel primitives), "DS_SWIZZLE_B32", "DS_BPERMUTE_B32", "V_READFIRSTLANE_B32".
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from parity.gfx942.decode import Instruction
from parity.gfx942.faults import Unsupported
from parity.gfx942.operands import refuse, scalar_row, scalar_source, vector_source
from parity.gfx942.waves import Waves

LANE = np.arange(64)
ROW, IN_ROW = LANE // 16, LANE % 16


def dpp_lanes(control: int) -> np.ndarray:
    """Source lane of each of the 64 lanes for a dpp_ctrl value; -1 where the pattern reaches outside. Unsupported if unknown."""
    if control <= 0xFF:  # quad_perm: two bits a lane of the quad
        return (LANE & ~3) + ((control >> (2 * (LANE & 3))) & 3)
    amount = control & 15
    if 0x101 <= control <= 0x10F:  # row_shl: lane i reads i + n
        return np.where(IN_ROW + amount < 16, LANE + amount, -1)
    if 0x111 <= control <= 0x11F:  # row_shr: lane i reads i - n
        return np.where(amount <= IN_ROW, LANE - amount, -1)
    if 0x121 <= control <= 0x12F:  # row_ror: lane i reads (i - n) mod 16
        return ROW * 16 + (IN_ROW - amount) % 16
    if control == 0x140:  # row_mirror
        return ROW * 16 + 15 - IN_ROW
    if control == 0x141:  # row_half_mirror
        return (LANE & ~7) + 7 - (LANE & 7)
    if control == 0x142:  # row_bcast:15, last lane of a row to the whole next row
        return np.where(ROW > 0, ROW * 16 - 1, -1)
    if control == 0x143:  # row_bcast:31, lane 31 to rows 2 and 3
        return np.where(ROW > 1, 31, -1)
    raise Unsupported(f"dpp_ctrl {control:#x}")


def dpp_source(instruction: Instruction) -> Callable[[Waves], tuple[np.ndarray, np.ndarray]]:
    """(shuffled src0, lanes to write) of a DPP instruction, both [waves, 64].

    A lane whose source is outside the pattern or inactive reads 0 with bound_ctrl, else it is not written; row_mask and
    bank_mask switch rows and banks of four lanes off.
    """
    fields = instruction.fields
    lanes = dpp_lanes(fields["dpp_ctrl"])
    inside, source = lanes >= 0, np.maximum(lanes, 0)
    enabled = (fields["row_mask"] >> ROW & 1).astype(bool) & (fields["bank_mask"] >> (IN_ROW // 4) & 1).astype(bool)
    register, bound_control = fields["src0"], fields["bound_ctrl"]

    def shuffle(waves: Waves) -> tuple[np.ndarray, np.ndarray]:
        active = waves.exec_mask()
        valid = active[:, source] & inside
        value = waves.v(waves.row(register))[:, source]
        if bound_control:
            return np.where(valid, value, np.uint32(0)), active & enabled
        return value, active & enabled & valid

    return shuffle


def swizzle_lanes(offset: int) -> np.ndarray:
    """Source lane of each lane for the 16-bit offset of ds_swizzle_b32 (bit mask and quad modes)."""
    if offset >= 0x8000:
        if offset & 0x7F00:
            raise Unsupported(f"ds_swizzle offset {offset:#x} (rotate and FFT modes)")
        return dpp_lanes(offset & 0xFF)
    and_mask, or_mask, xor_mask = offset & 31, offset >> 5 & 31, offset >> 10 & 31
    return (LANE & 32) + (((LANE & 31 & and_mask) | or_mask) ^ xor_mask)


def read_lanes(value: np.ndarray, source: np.ndarray, active: np.ndarray) -> np.ndarray:
    """value[w, source[w, lane]], 0 where the source lane is inactive (ds_swizzle, ds_bpermute). All [waves, 64]."""
    source = np.broadcast_to(source, value.shape)
    taken = np.take_along_axis(value, source, axis=1)
    return np.where(np.take_along_axis(active, source, axis=1), taken, np.uint32(0))


def compile_lane_move(instruction: Instruction) -> Callable[[Waves], None]:
    """v_readfirstlane_b32, v_readlane_b32, v_mbcnt_lo/hi_u32_b32."""
    fields = instruction.fields
    source = vector_source(fields["src0"], instruction)
    if instruction.format == "VOP3":
        refuse(instruction, clamp=0, omod=0, neg=0, abs=0, opsel=0)
    if instruction.name == "v_readfirstlane_b32":
        destination = scalar_row(fields["vdst"])

        def first(waves: Waves) -> None:  # EXEC = 0 reads lane 0, which argmax gives
            value = np.broadcast_to(source(waves), (waves.selected, 64))
            waves.set_s(destination, value[np.arange(waves.selected), waves.exec_mask().argmax(axis=1)])

        return first
    if instruction.name == "v_readlane_b32":
        destination, lane_of = scalar_row(fields["vdst"]), scalar_source(fields["src1"], instruction)

        def one(waves: Waves) -> None:
            value = np.broadcast_to(source(waves), (waves.selected, 64))
            waves.set_s(destination, value[np.arange(waves.selected), lane_of(waves) & np.uint32(63)])

        return one
    return _mbcnt(instruction)


def _mbcnt(instruction: Instruction) -> Callable[[Waves], None]:
    """Bits of the mask below this lane, in its low or high half, plus src1."""
    low = instruction.name == "v_mbcnt_lo_u32_b32"
    below = LANE if low else LANE - 32
    thread_mask = np.array([(1 << min(max(int(n), 0), 32)) - 1 for n in below], np.uint64).astype(np.uint32)
    mask, addend = (vector_source(instruction.fields[name], instruction) for name in ("src0", "src1"))
    destination = instruction.fields["vdst"]

    def run(waves: Waves) -> None:
        bits = np.ascontiguousarray(np.broadcast_to(mask(waves), (waves.selected, 64)) & thread_mask)
        count = np.unpackbits(bits.view(np.uint8).reshape(waves.selected, 64, 4), axis=2).sum(axis=2, dtype=np.uint32)
        waves.set_v(waves.row(destination), count + addend(waves))

    return run
