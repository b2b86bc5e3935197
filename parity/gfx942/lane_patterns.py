# SPDX-License-Identifier: Apache-2.0
"""Which lane a lane reads: the patterns of DPP and of ds_swizzle. Source: CDNA3 ISA, "DPP", "DS_SWIZZLE_B32"."""

from __future__ import annotations

import numpy as np

from parity.gfx942.faults import Unsupported

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
    if 0x150 <= control <= 0x15F:  # row_newbcast: one lane of the row to the whole row
        return ROW * 16 + amount
    raise Unsupported(f"dpp_ctrl {control:#x}")


def swizzle_lanes(offset: int) -> np.ndarray:
    """Source lane of each lane for the 16-bit offset of ds_swizzle_b32 (bit mask and quad modes)."""
    if offset >= 0x8000:
        if offset & 0x7F00:
            raise Unsupported(f"ds_swizzle offset {offset:#x} (rotate and FFT modes)")
        return dpp_lanes(offset & 0xFF)
    and_mask, or_mask, xor_mask = offset & 31, offset >> 5 & 31, offset >> 10 & 31
    return (LANE & 32) + (((LANE & 31 & and_mask) | or_mask) ^ xor_mask)
