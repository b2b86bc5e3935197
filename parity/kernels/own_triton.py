# SPDX-License-Identifier: Apache-2.0
"""This repository's own `fp8_mqa_logits` in Triton, for gfx942 (and, with FN operands only, for CUDA).

    logits[m, n] = sum_h ReLU(<Q[m, h, :], KV[n, :]> * kv_scales[n]) * weights[m, h]    n in [cu_starts[m], cu_ends[m])

A kernel to compare others with, written to be read, not to be fast: one program per query row, one `tl.dot` per tile of
tokens. It shares no code with the kernels of aiter and vLLM.
"""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from parity.kernels.arguments import FN_PLANTS, PLANTS, ROW_ALIGN, check_arguments

_TILE = 64  # tokens a step


@triton.jit
def _or(left, right):
    return left | right


@triton.jit
def _load_operand(pointers, FP8: tl.constexpr, PATCH: tl.constexpr, SIGN_EXTENDED: tl.constexpr):
    """The fp8 bytes at `pointers` [rows, HEAD_DIM] as the matrix units shall read them."""
    byte = tl.load(pointers)
    if PATCH:
        # FN -0 is the byte that FNUZ reads as NaN. Every other finite FN byte is twice the FNUZ value of the same byte.
        byte = tl.where(byte == 0x80, 0, byte).to(tl.uint8)
        if SIGN_EXTENDED:
            # The plant: patched bytes are widened with their sign and or-ed into their dword, which makes all bytes
            # above a negative one 0xFF.
            shift = 8 * tl.arange(0, 4)[None, None, :]
            signed = tl.reshape(byte.to(tl.int8, bitcast=True), [byte.shape[0], byte.shape[1] // 4, 4])
            dword = tl.reduce(signed.to(tl.int32) << shift, 2, _or, keep_dims=True)
            byte = tl.reshape(dword >> shift, byte.shape).to(tl.uint8)
    return byte.to(FP8, bitcast=True)


@triton.jit
def _fp8_mqa_logits_kernel(
    q,  # uint8 [M, HEADS, HEAD_DIM], contiguous
    kv,  # uint8 [kv_len, HEAD_DIM], contiguous
    kv_scales,  # f32 [kv_len]
    weights,  # f32 [M, HEADS], contiguous
    cu_starts,  # i32 [M]
    cu_ends,  # i32 [M]
    logits,  # f32 [M, row_stride]; written inside the window only
    kv_len,
    row_stride,
    HEADS: tl.constexpr,
    HEAD_DIM: tl.constexpr,
    TILE: tl.constexpr,
    FP8: tl.constexpr,
    PATCH_Q: tl.constexpr,
    PATCH_KV: tl.constexpr,
    SCALE_FACTOR: tl.constexpr,
    PLANT: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64)  # 64 bits: row * row_stride passes 2^31 on long contexts
    heads = tl.arange(0, HEADS)
    dims = tl.arange(0, HEAD_DIM)

    # Both ends are clamped before any address is formed, so no window can reach outside [0, kv_len).
    start = tl.minimum(tl.maximum(tl.load(cu_starts + row), 0), kv_len)
    end = tl.minimum(tl.load(cu_ends + row), kv_len)
    if PLANT == "start-off-by-one":
        start += 1
    if PLANT == "end-off-by-one":
        end += 1

    q_pointers = q + row * HEADS * HEAD_DIM + heads[:, None] * HEAD_DIM + dims[None, :]
    query = tl.trans(_load_operand(q_pointers, FP8, PATCH_Q, PLANT == "sign-extended-patch"))
    weight_row = row
    if PLANT == "previous-row-weights":
        weight_row = tl.maximum(row - 1, 0)
    weight = tl.load(weights + weight_row * HEADS + heads)
    if PLANT == "dropped-head":
        weight = tl.where(heads == 0, 0.0, weight)

    for first in range(start, end, TILE):
        tokens = first + tl.arange(0, TILE)
        # The last tile may reach past the tensors: its surplus columns read the last token and are not stored.
        read = tokens if PLANT == "unclamped-load" else tl.minimum(tokens, kv_len - 1)
        key_read = tl.minimum(read + 1, kv_len - 1) if PLANT == "neighbour-key" else read
        kv_pointers = kv + key_read[:, None].to(tl.int64) * HEAD_DIM + dims[None, :]
        key = _load_operand(kv_pointers, FP8, PATCH_KV, PLANT == "sign-extended-patch")
        if PLANT == "half-head-dim":
            key = tl.where(dims[None, :] < HEAD_DIM // 2, key.to(tl.uint8, bitcast=True), 0).to(FP8, bitcast=True)
        if PLANT == "neighbour-scale":
            read = tl.minimum(read + 1, kv_len - 1)
        scale = tl.load(kv_scales + read) * SCALE_FACTOR

        # Tokens are the rows of the product and heads its columns: the MFMA layout then keeps most heads of a token in
        # one lane, where summing over them is cheap.
        # max_num_imprecise_acc=0: CUDA sm_90 would otherwise sum in the tensor core's accumulator, short of fp32.
        scores = tl.dot(key, query, max_num_imprecise_acc=0) * scale[:, None]  # [TILE, HEADS]
        if PLANT == "bf16-scores":
            scores = scores.to(tl.bfloat16).to(tl.float32)
        if PLANT == "absolute-value":
            scores = tl.abs(scores)
        elif PLANT != "dropped-relu" and PLANT != "relu-after-weight":
            scores = tl.maximum(scores, 0.0)
        terms = scores * weight[None, :]
        if PLANT == "relu-after-weight":
            terms = tl.maximum(terms, 0.0)
        logit = tl.sum(terms, axis=1)
        if PLANT == "racing-stores":
            tl.store(logits + start + 0 * tokens, logit)
        if PLANT == "unmasked-store":
            tl.store(logits + row * row_stride + tokens, logit)
        else:
            tl.store(logits + row * row_stride + tokens, logit, mask=tokens < end)


def _operand_format(q_dtype: torch.dtype, kv_dtype: torch.dtype) -> tl.dtype:
    """The fp8 format that the current target's matrix units read; ValueError where an operand or target has none."""
    target = triton.runtime.driver.active.get_current_target()
    if target.backend == "hip" and target.arch.split(":")[0] == "gfx942":
        return tl.float8e4b8  # FNUZ; FN operands are patched and scaled
    if target.backend == "cuda" and target.arch >= 89:
        if torch.float8_e4m3fnuz in (q_dtype, kv_dtype):
            raise ValueError("float8_e4m3fnuz operands need gfx942: CUDA's matrix units read FN only")
        return tl.float8e4nv
    raise ValueError(f"this kernel is for gfx942 or CUDA sm_89 and later, not for {target.backend} {target.arch}")


def _specialise(q_dtype: torch.dtype, kv_dtype: torch.dtype, plant: str | None) -> dict[str, Any]:
    """The kernel's constants that depend on dtypes and plant; ValueError for a plant unknown or without effect."""
    if plant is not None and plant not in PLANTS:
        raise ValueError(f"plant must be None or one of {', '.join(PLANTS)}, not {plant!r}")
    operand_format = _operand_format(q_dtype, kv_dtype)
    patch_q, patch_kv = (operand_format == tl.float8e4b8 and d == torch.float8_e4m3fn for d in (q_dtype, kv_dtype))
    if plant in FN_PLANTS and not (patch_q or patch_kv):
        raise ValueError(f"{plant} needs an FN operand on gfx942: nothing is patched here")
    # A patched byte is read as FNUZ, which is half its FN value.
    factor = (2.0 if patch_q else 1.0) * (2.0 if patch_kv else 1.0)
    if plant == "missing-fn-factor":
        factor = 1.0
    if plant == "unpatched-minus-zero":
        patch_q = patch_kv = False
    return {"FP8": operand_format, "PATCH_Q": patch_q, "PATCH_KV": patch_kv, "SCALE_FACTOR": factor, "PLANT": plant}


def fp8_mqa_logits(
    Q: Tensor,
    KV: Tensor,
    kv_scales: Tensor,
    weights: Tensor,
    cu_starts: Tensor,
    cu_ends: Tensor,
    clean_logits: bool = True,
    *,
    plant: str | None = None,
) -> Tensor:
    """Logits f32 [M, N], a view whose row stride is rounded up to 256 columns.

    Q [M, H, D] and KV [N, D] are float8_e4m3fn or float8_e4m3fnuz, each on its own; H is 16, 32, 64 or 128 and D 64 or
    128. kv_scales f32 [N] or [N, 1], weights f32 [M, H], cu_starts and cu_ends int32 [M]; windows may be empty or reach
    outside [0, N). Outside the window the result is -inf, or undefined with `clean_logits=False`. Bytes that are NaN in
    their own format are a broken precondition, and a NaN score counts as 0 (the hardware maximum drops it). `plant`
    builds one known fault (PLANTS) into the kernel, for testing the checks.

    ValueError: wrong rank, dtype, shape or device, unknown plant, a target other than gfx942 (or CUDA, FN operands).
    """
    check_arguments(Q, KV, kv_scales, weights, cu_starts, cu_ends)
    constants = _specialise(Q.dtype, KV.dtype, plant)
    (m, heads, head_dim), n = Q.shape, KV.shape[0]
    row_stride = -(-n // ROW_ALIGN) * ROW_ALIGN
    logits = torch.empty((m, row_stride), dtype=torch.float32, device=Q.device)
    if clean_logits:
        logits.fill_(float("-inf"))
    if m and n:
        _fp8_mqa_logits_kernel[(m,)](
            Q.contiguous().view(torch.uint8),
            KV.contiguous().view(torch.uint8),
            kv_scales.contiguous(),
            weights.contiguous(),
            cu_starts.contiguous(),
            cu_ends.contiguous(),
            logits,
            n,
            row_stride if plant != "wrong-row-stride" else n,
            HEADS=heads,
            HEAD_DIM=head_dim,
            TILE=_TILE,
            num_stages=1,  # no software pipelining: the loop in the assembly is the loop above
            **constants,
        )
    return logits[:, :n]
