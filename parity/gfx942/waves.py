# SPDX-License-Identifier: Apache-2.0
"""The state of many waves at once: registers as arrays over waves, so that one numpy operation steps them all.

sgpr   uint32 [128, waves]      row = the ISA's operand code: 0..101 SGPRs, 106/107 VCC, 124 M0, 126/127 EXEC
vgpr   uint32 [n, waves, 64]    arch VGPRs, then the AGPRs from row `accum_offset`
lds    uint8  [workgroups, lds_bytes]
Instructions see the selected waves only (`select`): None stands for all of them and avoids every copy.
"""

from __future__ import annotations

import numpy as np

from parity.gfx942.faults import Unsupported

VCC, M0, EXEC = 106, 124, 126
LANES = 64


class Waves:
    """Registers of `count` waves; `group[w]` is the workgroup (row of `lds`) of wave w. All registers start at 0, EXEC at ~0."""

    def __init__(self, count: int, *, vgprs: int, accum_offset: int, group: np.ndarray, lds_bytes: int) -> None:
        self.count = count
        self.accum_offset = accum_offset
        self.group = group
        self.sgpr = np.zeros((128, count), np.uint32)
        self.vgpr = np.zeros((vgprs, count, LANES), np.uint32)
        self.scc = np.zeros(count, bool)
        self.lds = np.zeros((int(group.max()) + 1, lds_bytes), np.uint8)
        self.sgpr[EXEC : EXEC + 2] = 0xFFFFFFFF
        self.selection: np.ndarray | None = None
        self._exec: np.ndarray | None = None
        self._exec_full = False

    def select(self, selection: np.ndarray | None) -> None:
        """Make `selection` (wave indices, or None for all) the waves that the next instructions act on."""
        self.selection = selection
        self._exec = None

    @property
    def selected(self) -> int:
        """How many waves are selected."""
        return self.count if self.selection is None else len(self.selection)

    @property
    def waves(self) -> np.ndarray:
        """Indices of the selected waves."""
        return np.arange(self.count) if self.selection is None else self.selection

    # -- scalar registers --------------------------------------------------------------------------------------------
    def s(self, row: int) -> np.ndarray:
        """SGPR `row` of the selected waves, uint32 [waves]. Read only."""
        return self.sgpr[row] if self.selection is None else self.sgpr[row][self.selection]

    def set_s(self, row: int, value: np.ndarray) -> None:
        self.sgpr[row, slice(None) if self.selection is None else self.selection] = value
        if row >= EXEC:
            self._exec = None

    def s64(self, row: int) -> np.ndarray:
        """SGPR pair `row`, `row + 1` as uint64 [waves]."""
        return self.s(row).astype(np.uint64) | (self.s(row + 1).astype(np.uint64) << np.uint64(32))

    def set_s64(self, row: int, value: np.ndarray) -> None:
        value = np.asarray(value, np.uint64)
        self.set_s(row, (value & np.uint64(0xFFFFFFFF)).astype(np.uint32))
        self.set_s(row + 1, (value >> np.uint64(32)).astype(np.uint32))

    def get_scc(self) -> np.ndarray:
        return self.scc if self.selection is None else self.scc[self.selection]

    def set_scc(self, value: np.ndarray) -> None:
        self.scc[slice(None) if self.selection is None else self.selection] = value

    # -- lane masks --------------------------------------------------------------------------------------------------
    def lane_mask(self, row: int) -> np.ndarray:
        """SGPR pair `row` as bool [waves, 64]: bit n is lane n."""
        return np.unpackbits(self.s64(row)[:, None].view(np.uint8), axis=1, bitorder="little").view(bool)

    def set_lane_mask(self, row: int, mask: np.ndarray) -> None:
        self.set_s64(row, np.packbits(mask, axis=1, bitorder="little").view(np.uint64)[:, 0])

    def exec_mask(self) -> np.ndarray:
        """EXEC as bool [waves, 64]."""
        if self._exec is None:
            self._exec = self.lane_mask(EXEC)
            self._exec_full = bool(self._exec.all())
        return self._exec

    # -- vector registers --------------------------------------------------------------------------------------------
    def row(self, register: int, *, acc: bool = False, count: int = 1) -> int:
        """Row of `vgpr` for VGPR or AGPR `register`, the first of `count`. Raises Unsupported beyond what the kernel allocated."""
        row, last = register + (self.accum_offset if acc else 0), register + count - 1
        if last >= (len(self.vgpr) - self.accum_offset if acc else self.accum_offset):
            raise Unsupported(
                f"{'a' if acc else 'v'}{last} is beyond the registers that the kernel descriptor allocates"
            )
        return row

    def v(self, row: int) -> np.ndarray:
        """Row `row` of the vector file, uint32 [waves, 64]. Read only."""
        return self.vgpr[row] if self.selection is None else self.vgpr[row][self.selection]

    def set_v(self, row: int, value: np.ndarray, *, mask: np.ndarray | None = None) -> None:
        """Write uint32 `value` (broadcast to [waves, 64]) in the active lanes, or in those of `mask`."""
        if mask is None:
            mask = self.exec_mask()
            if self._exec_full:
                self.vgpr[row, slice(None) if self.selection is None else self.selection] = value
                return
        if self.selection is None:
            np.copyto(self.vgpr[row], value, where=mask)
        else:
            merged = self.vgpr[row][self.selection]
            np.copyto(merged, value, where=mask)
            self.vgpr[row, self.selection] = merged

    def v_block(self, row: int, count: int) -> np.ndarray:
        """Rows `row`..`row + count - 1`, uint32 [count, waves, 64]."""
        block = self.vgpr[row : row + count]
        return block if self.selection is None else block[:, self.selection]

    def set_v_block(self, row: int, value: np.ndarray) -> None:
        """Write consecutive rows in all lanes, whatever EXEC says (MFMA results)."""
        self.vgpr[row : row + len(value), slice(None) if self.selection is None else self.selection] = value
