# SPDX-License-Identifier: Apache-2.0
"""What both own kernels accept, and the faults that can be planted in them."""

from __future__ import annotations

import torch
from torch import Tensor

# What each does is told in parity/faults.py.
PLANTS = (
    "dropped-relu", "absolute-value", "relu-after-weight", "bf16-scores", "start-off-by-one", "end-off-by-one", "unmasked-store",
    "unclamped-load", "neighbour-scale", "neighbour-key", "previous-row-weights", "dropped-head", "half-head-dim",
    "missing-fn-factor", "unpatched-minus-zero", "sign-extended-patch", "wrong-row-stride", "racing-stores",
)  # fmt: skip
FN_PLANTS = ("missing-fn-factor", "unpatched-minus-zero", "sign-extended-patch")  # they change FN operands alone

ROW_ALIGN = 256  # the rows of the result start at multiples of this many columns
FP8 = (torch.float8_e4m3fn, torch.float8_e4m3fnuz)


def check_arguments(
    Q: Tensor, KV: Tensor, kv_scales: Tensor, weights: Tensor, cu_starts: Tensor, cu_ends: Tensor
) -> None:
    """ValueError unless ranks, dtypes, shapes and devices are what the public function's docstring says."""
    for name, tensor, rank in (("Q", Q, 3), ("KV", KV, 2)):
        if tensor.dim() != rank:
            raise ValueError(f"{name}: must have {rank} dimensions, not shape {tuple(tensor.shape)}")
    m, heads, head_dim = Q.shape
    if heads not in (16, 32, 64, 128) or head_dim not in (64, 128):
        raise ValueError(f"Q: heads must be 16, 32, 64 or 128 and head_dim 64 or 128, not {heads} and {head_dim}")
    n = KV.shape[0]
    for name, tensor, dtypes, shapes in (
        ("Q", Q, FP8, ((m, heads, head_dim),)),
        ("KV", KV, FP8, ((n, head_dim),)),
        ("kv_scales", kv_scales, (torch.float32,), ((n,), (n, 1))),
        ("weights", weights, (torch.float32,), ((m, heads),)),
        ("cu_starts", cu_starts, (torch.int32,), ((m,),)),
        ("cu_ends", cu_ends, (torch.int32,), ((m,),)),
    ):
        if tensor.dtype not in dtypes:
            raise ValueError(f"{name}: dtype must be {' or '.join(map(str, dtypes))}, not {tensor.dtype}")
        if tuple(tensor.shape) not in shapes:
            raise ValueError(f"{name}: shape must be {' or '.join(map(str, shapes))}, not {tuple(tensor.shape)}")
        if tensor.device != Q.device:
            raise ValueError(f"{name}: must be on Q's device {Q.device}, not on {tensor.device}")
