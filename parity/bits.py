# SPDX-License-Identifier: Apache-2.0
"""Are two results the same, bit for bit? The same launch on the same inputs must be."""

from __future__ import annotations

import torch

from parity.compare import Finding, form_findings

_INTEGER_OF = {torch.float32: torch.int32, torch.float64: torch.int64}


def bitwise_equal(first: torch.Tensor, second: torch.Tensor, *, block: int = 1 << 24) -> tuple[Finding, ...]:
    """Repeat check: one finding if two runs on the same inputs differ in any bit (equal NaN bits are equal, 0 and -0
    are not). `block`: elements compared at a time. Raises ValueError for tensors that are not float32 or float64."""
    mismatch = form_findings(second, first.shape, first.dtype)
    if mismatch:
        return mismatch
    if first.dtype not in _INTEGER_OF:
        raise ValueError(f"cannot compare the bits of {first.dtype}")
    rows = max(1, block // max(1, first[:1].numel()))
    count, where = 0, None
    for start in range(0, len(first), rows):
        bits = [
            part[start : start + rows].detach().cpu().contiguous().view(_INTEGER_OF[first.dtype])
            for part in (first, second)
        ]
        differing = (bits[0] != bits[1]).nonzero()
        count += len(differing)
        if where is None and len(differing):
            where = (start + int(differing[0, 0]), *differing[0, 1:].tolist())
    if where is None:
        return ()
    before, after = (f"0x{_bits(part[where]):0{2 * first.element_size()}x}" for part in (first, second))
    text = f"repeat differs in {count:,} of {first.numel():,} positions, first {list(where)}: {before}, then {after}"
    return (Finding("repeat", where, float(second[where]), float(first[where]), 0.0, text),)


def _bits(value: torch.Tensor) -> int:
    return int(value.detach().cpu().contiguous().view(_INTEGER_OF[value.dtype])) & (1 << 8 * value.element_size()) - 1
