# SPDX-License-Identifier: Apache-2.0
"""Bytes that tell their position, and what a load of them must give."""

from __future__ import annotations

import numpy as np

WORD3 = 0x00027000  # of a raw buffer descriptor


def pattern(size: int) -> np.ndarray:
    """Bytes that tell their position and have both signs."""
    return ((np.arange(size) * 37 + 0x81) & 0xFF).astype(np.uint8)


def vector(first: int, count: int) -> str:
    return f"v{first}" if count == 1 else f"v[{first}:{first + count - 1}]"


def expected_registers(data: np.ndarray, offset: int, size: int, signed: bool) -> list[int]:
    raw = data[offset : offset + size].tobytes()
    if size < 4:
        return [int.from_bytes(raw, "little", signed=signed) & 0xFFFFFFFF]
    return [int.from_bytes(raw[n : n + 4], "little") for n in range(0, size, 4)]
