# SPDX-License-Identifier: Apache-2.0
"""How an argument of the contract can lie in memory. What lies around it is poison: 0x77 in every byte is a large fp8, float32 and int32."""

from __future__ import annotations

from collections.abc import Callable

import torch

POISON = 0x77


def _poisoned(shape: tuple[int, ...], like: torch.Tensor) -> torch.Tensor:
    """A tensor of like's dtype and device, every byte POISON."""
    size = like.element_size() * max(1, torch.Size(shape).numel())
    return (
        torch.full((size,), POISON, dtype=torch.uint8, device=like.device)
        .view(like.dtype)[: torch.Size(shape).numel()]
        .view(shape)
    )


def _fill(target: torch.Tensor, source: torch.Tensor) -> torch.Tensor:
    """Copy bytes: torch has no copy of some fp8 dtypes."""
    if source.element_size() == 1:
        target.view(torch.uint8).copy_(source.view(torch.uint8))
    else:
        target.copy_(source)
    return target


def _apart(tensor: torch.Tensor) -> torch.Tensor:
    return _fill(_poisoned((2 * len(tensor), *tensor.shape[1:]), tensor)[::2], tensor)


def _wide(tensor: torch.Tensor) -> torch.Tensor:
    columns = tensor.shape[-1]
    return _fill(_poisoned((*tensor.shape[:-1], 2 * columns), tensor)[..., :columns], tensor)


def _transposed(tensor: torch.Tensor) -> torch.Tensor:
    shape = (tensor.shape[1], tensor.shape[0], *tensor.shape[2:])
    return _fill(_poisoned(shape, tensor).transpose(0, 1), tensor)


def _offset(tensor: torch.Tensor) -> torch.Tensor:
    """One element into its buffer: of fp8 that is a byte, which no vector load is aligned to."""
    return _fill(_poisoned((tensor.numel() + 64,), tensor)[1 : 1 + tensor.numel()].view(tensor.shape), tensor)


def _column(tensor: torch.Tensor) -> torch.Tensor:
    return tensor[:, None].contiguous()


def _slice(tensor: torch.Tensor) -> torch.Tensor:
    return _fill(_poisoned((len(tensor), 4), tensor)[:, 1:2], tensor[:, None])


def _expanded(tensor: torch.Tensor) -> torch.Tensor:
    """Its first row, the same as all others, in memory of that size: what reads on from it reads past the end."""
    return tensor[:1].clone().expand_as(tensor)


LAYOUTS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "apart": _apart, "wide": _wide, "transposed": _transposed, "offset": _offset, "column": _column, "slice": _slice,
    "expanded": _expanded,
}  # fmt: skip
