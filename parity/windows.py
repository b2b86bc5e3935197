# SPDX-License-Identifier: Apache-2.0
"""Which columns each row of a case may see: `[starts, ends)`, not clipped, as serving code hands them to the kernel."""

from __future__ import annotations

import numpy as np

WINDOWS: dict[str, str] = {
    "causal": "row i ends at n-m+1+i; with m > n the first rows are empty and their ends zero or negative",
    "packed": "ragged requests share one batch: a row starts at its request's base and is causal within it",
    "context-parallel": "rows of a longer causal problem dealt zigzag to this rank, so the ends jump",
    "misaligned": "starts straddle the tiles of 64 and 128; every other row reaches the last column",
    "edges": "lengths of a tile of 64, 128 or 256 and one more or less, from starts on and beside its boundaries",
    "narrow": "1 to 130 columns a row, the rows spread over all of n up to its last column: large sizes, little work",
    "empty": "start == end, end < start, negative end, start >= n, end > n, with normal rows between",
    "full": "every row sees every column",
    "captured": "as the captured file has them",
}

_EDGE_STARTS = (0, 1, 63, 64, 65, 127, 128, 129, 255, 256, 257)
_EDGE_LENGTHS = (1, 63, 64, 65, 127, 128, 129, 255, 256, 257)


def build_windows(window: str, m: int, n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """int32 starts and ends [m] for n columns (see WINDOWS). ValueError for a window that cannot be built."""
    row = np.arange(m)
    if window == "full":
        starts, ends = 0 * row, 0 * row + n
    elif window == "causal":
        starts, ends = 0 * row, n - m + 1 + row
    elif window == "packed":
        starts, ends = _packed(m, n)
    elif window == "context-parallel":
        # Even rows climb from an early chunk while odd rows descend from the last one, as in zigzag sharding.
        early, late = n // 8 + row // 2, n - 1 - row // 2
        starts, ends = 0 * row, np.clip(np.where(row % 2 == 0, early, late), 0, n - 1) + 1
    elif window == "misaligned":
        starts = np.minimum(np.array([1, 63, 64, 65, 127, 128, 129])[row % 7], n - 1)
        ends = np.where(row % 2 == 0, n, rng.integers(starts + 1, n + 1))
    elif window == "edges":
        # The two counts share no factor, so rows walk through all 110 pairs.
        starts = np.minimum(np.array(_EDGE_STARTS)[row % len(_EDGE_STARTS)], n - 1)
        ends = np.minimum(starts + np.array(_EDGE_LENGTHS)[row % len(_EDGE_LENGTHS)], n)
    elif window == "narrow":
        lengths = np.minimum(1 + 37 * row % 130, n)
        starts = np.rint((n - lengths) * (row / max(m - 1, 1))).astype(np.int64)
        ends = starts + lengths
    elif window == "empty":
        starts, ends = _empty(m, n)
    else:
        raise ValueError(f"no builder for window {window!r}")
    return starts.astype(np.int32), ends.astype(np.int32)


def _empty(m: int, n: int) -> tuple[np.ndarray, np.ndarray]:
    middle = n // 2
    patterns = [
        (0, n),
        (middle, middle),
        (middle, middle - 1),
        (1, n),
        (0, -3),
        (n, n + 5),
        (n + 7, n + 9),
        (middle, n + 40),
        (0, 1),
    ]
    starts, ends = np.array(patterns).T[:, np.arange(m) % len(patterns)]
    return starts, ends


def _packed(m: int, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Two or three requests whose shares of the rows (1:4:2) and of the keys (3:1:4) differ, so that one may have
    more rows than keys while others have a long history."""
    requests = min(3, m, n)
    rows, keys = (
        np.concatenate([[0], np.cumsum(1 + (total - requests) * np.array(share) // sum(share))])
        for total, share in ((m, (1, 4, 2)[:requests]), (n, (3, 1, 4)[:requests]))
    )
    rows[-1], keys[-1] = m, n  # the last request takes what the rounding left
    request = np.searchsorted(rows, np.arange(m), side="right") - 1
    ends = keys[request + 1] - rows[request + 1] + 1 + np.arange(m)
    return keys[request], ends
