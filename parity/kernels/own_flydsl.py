# SPDX-License-Identifier: Apache-2.0
"""This repository's own `fp8_mqa_logits` in FlyDSL, for gfx942.

    logits[m, n] = sum_h ReLU(<Q[m, h, :], KV[n, :]> * kv_scales[n]) * weights[m, h]    n in [cu_starts[m], cu_ends[m])

A kernel to compare others with, written to be read, not to be fast: a wave works alone, without LDS, on one query row
and every `splits`-th tile of 64 tokens of that row's window. It shares no code with the kernels of aiter and vLLM.

The product is v_mfma_f32_16x16x32_fp8_fp8, heads as the rows of A and tokens as the columns of B. Lane l gives A's row
and B's column l % 16, in each the eight bytes from 8 * (l / 16); it gets the result's column l % 16, rows 4 * (l / 16)
to 4 * (l / 16) + 3 (AMD Instinct MI300 ISA, chapter on matrix arithmetic; ROCm/amd_matrix_instruction_calculator).
Below, l % 16 is `column` and l / 16 `group`.
"""

from __future__ import annotations

from typing import Any

import flydsl.compiler as flyc
import flydsl.expr as fx
import torch
from flydsl.expr import rocdl
from flydsl.runtime.device import get_rocm_arch
from torch import Tensor

from parity.kernels.arguments import FN_PLANTS, PLANTS, ROW_ALIGN, check_arguments

_WAVE = 64  # lanes, and tokens a tile: lane l stores token l
_MAX_SPLITS = 16  # waves a query row; they matter when there are few rows

# heads, head_dim, Q is FN, KV is FN, plant or "". Plain scalars: a Constexpr takes no object of our own, and one that a
# closure captures would be missing from FlyDSL's disk-cache key, so that two configurations would share a binary.
_Config = tuple[int, int, bool, bool, str]

_COMPILED: dict[_Config, Any] = {}  # flyc.CompiledFunction: later calls skip FlyDSL's tracing and key building


def _patch(word: fx.Int32) -> fx.Int32:
    """Four FN bytes with every 0x80 (FN -0, which FNUZ reads as NaN) made 0: a sign stays only over a magnitude.

    0x7F + 0x7F does not carry into the next byte, so the sum has a byte's top bit exactly if its low seven are not 0.
    """
    return word & (((word & 0x7F7F7F7F) + 0x7F7F7F7F) | 0x7F7F7F7F)


def _sign_extended_patch(word: fx.Int32) -> fx.Int32:
    """The plant: patched bytes are widened with their sign and or-ed together, which makes those above a negative one
    0xFF."""
    patched = _patch(word)
    packed = patched
    for byte in range(4):
        packed = packed | (((patched << (24 - 8 * byte)) >> 24) << (8 * byte))
    return packed


def _operand(raw: fx.Int64, is_fn: bool, plant: str) -> fx.Int64:
    """Eight fp8 bytes as the MFMA, which reads FNUZ, has to get them."""
    if not is_fn or plant == "unpatched-minus-zero":
        return raw
    patch = _sign_extended_patch if plant == "sign-extended-patch" else _patch
    words = fx.Vector.from_elements([raw], fx.Int64).bitcast(fx.Int32)
    return fx.Vector.from_elements([patch(words[0]), patch(words[1])], fx.Int32).bitcast(fx.Int64)[0]


def _min(first: fx.Int32, second: fx.Int32) -> fx.Int32:
    return fx.arith.select(first < second, first, second)


def _query_row(config: _Config, q: fx.Tensor, weights: fx.Tensor, row: fx.Int32, lane: fx.Int32) -> list:
    """For each block of 16 heads: A operands [head_dim / 32] and the weights of the four heads this lane gets."""
    heads, _, q_is_fn, _, plant = config
    column, group = lane & 15, lane >> 4
    weight_row = row
    if plant == "previous-row-weights":
        weight_row = fx.arith.select(row > 0, row - 1, row)
    blocks = []
    for head in range(0, heads, 16):
        operands = [
            _operand(q[row * heads + head + column, 4 * step + group], q_is_fn, plant) for step in range(_steps(config))
        ]
        head_weights = [weights[weight_row, head + 4 * group + register] for register in range(4)]
        if plant == "dropped-head" and head == 0:
            head_weights[0] = fx.arith.select(group == 0, fx.Float32(0.0), head_weights[0])
        blocks.append((operands, head_weights))
    return blocks


def _steps(config: _Config) -> int:
    """Products of 32 channels each that make a dot product."""
    return config[1] // 32 if config[4] != "half-head-dim" else config[1] // 64


def _sum_of_heads(query: list, key: list, scale: fx.Float32, plant: str) -> fx.Float32:
    """sum_h ReLU(<Q[h], K> * scale) * w[h] of the token in this lane's column, over the heads this lane gets."""
    total = fx.Float32(0.0)
    for operands, head_weights in query:
        dots = fx.Vector.filled(4, 0.0, fx.Float32)
        for query_bytes, key_bytes in zip(operands, key, strict=True):
            dots = fx.Vector(rocdl.mfma_f32_16x16x32_fp8_fp8(dots.type, [query_bytes, key_bytes, dots]))
        for register, head_weight in enumerate(head_weights):
            score = _planted_score(dots[register] * scale, plant)
            if plant == "relu-after-weight":
                total = total + fx.arith.maxnumf(score * head_weight, fx.Float32(0.0))
                continue
            if plant not in ("dropped-relu", "absolute-value"):
                score = fx.arith.maxnumf(score, fx.Float32(0.0))
            total = fx.fma(score, head_weight, total)
    return total


def _planted_score(score: fx.Float32, plant: str) -> fx.Float32:
    """The score of one head before its ReLU; as it is, but for two plants."""
    if plant == "absolute-value":
        return fx.arith.maxnumf(score, score * fx.Float32(-1.0))
    if plant == "bf16-scores":
        return (score.bitcast(fx.Int32) & -65536).bitcast(fx.Float32)  # the upper 16 bits: rounded towards zero
    return score


def _add_groups(value: fx.Float32, lane: fx.Int32) -> fx.Float32:
    """The sum, in every lane, over the four lanes of its column: together they hold all heads."""
    for distance in (16, 32):
        source = (lane ^ distance) << 2  # ds_bpermute takes the lane to read as a byte address, four bytes a lane
        other = rocdl.ds_bpermute(fx.Int32.ir_type, source, value.bitcast(fx.Int32))
        value = value + fx.Int32(other).bitcast(fx.Float32)
    return value


def _tile(
    config: _Config,
    query: list,
    kv: fx.Tensor,
    kv_scales: fx.Tensor,
    first: fx.Int32,
    n_tokens: fx.Int32,
    lane: fx.Int32,
) -> fx.Float32:
    """The logit of token `first + lane`: four products of 16 tokens each, of which this lane keeps its group's."""
    _, _, q_is_fn, kv_is_fn, plant = config
    factor = (2.0 if q_is_fn else 1.0) * (2.0 if kv_is_fn else 1.0)  # an FN byte read as FNUZ is half its value
    if plant == "missing-fn-factor":
        factor = 1.0
    column, group = lane & 15, lane >> 4
    logit = fx.Float32(0.0)
    for quarter in range(4):
        # The last tile may reach past the tensors: its surplus columns read the last token and are not stored.
        token = first + 16 * quarter + column
        if plant != "unclamped-load":
            token = _min(token, n_tokens - 1)
        read = _min(token + 1, n_tokens - 1) if plant == "neighbour-key" else token
        key = [_operand(kv[read, 4 * step + group], kv_is_fn, plant) for step in range(_steps(config))]
        if plant == "neighbour-scale":
            token = _min(token + 1, n_tokens - 1)
        total = _sum_of_heads(query, key, kv_scales[token] * factor, plant)
        logit = fx.arith.select(group == quarter, _add_groups(total, lane), logit)
    return logit


@flyc.kernel(known_block_size=[_WAVE, 1, 1])
def own_fp8_mqa_logits(
    q: fx.Tensor,  # i64 [M * heads, head_dim / 8]: eight fp8 bytes an element
    kv: fx.Tensor,  # i64 [n_tokens, head_dim / 8]
    kv_scales: fx.Tensor,  # f32 [n_tokens]
    weights: fx.Tensor,  # f32 [M, heads]
    cu_starts: fx.Tensor,  # i32 [M]
    cu_ends: fx.Tensor,  # i32 [M]
    logits: fx.Tensor,  # f32 [M, row stride]; written inside the window only
    n_tokens: fx.Int32,
    splits: fx.Int32,
    config: fx.Constexpr[tuple],
):
    row, split, lane = fx.block_idx.x, fx.block_idx.y, fx.thread_idx.x
    # The window is clamped to [0, n_tokens) before any address is formed.
    start = _min(fx.arith.select(cu_starts[row] > 0, cu_starts[row], fx.Int32(0)), n_tokens)
    end = _min(cu_ends[row], n_tokens)
    if fx.const_expr(config[4] == "start-off-by-one"):
        start = start + 1
    if fx.const_expr(config[4] == "end-off-by-one"):
        end = end + 1
    query = _query_row(config, q, weights, row, lane)
    for first in range(start + _WAVE * split, end, _WAVE * splits):
        logit = _tile(config, query, kv, kv_scales, first, n_tokens, lane)
        if fx.const_expr(config[4] == "racing-stores"):
            logits[0, start] = logit
        if fx.const_expr(config[4] == "unmasked-store") or first + lane < end:
            logits[row, first + lane] = logit


@flyc.jit
def _launch(
    q: fx.Tensor,
    kv: fx.Tensor,
    kv_scales: fx.Tensor,
    weights: fx.Tensor,
    cu_starts: fx.Tensor,
    cu_ends: fx.Tensor,
    logits: fx.Tensor,
    rows: fx.Int32,
    n_tokens: fx.Int32,
    splits: fx.Int32,
    config: fx.Constexpr[tuple],
    stream: fx.Stream,
):
    own_fp8_mqa_logits(q, kv, kv_scales, weights, cu_starts, cu_ends, logits, n_tokens, splits, config).launch(
        grid=(rows, splits, 1), block=(_WAVE, 1, 1), stream=stream
    )


def _config(Q: Tensor, KV: Tensor, plant: str | None) -> _Config:
    """What the kernel is compiled for; ValueError for an unknown plant, one that changes nothing, or another target."""
    if plant is not None and plant not in PLANTS:
        raise ValueError(f"plant must be None or one of {', '.join(PLANTS)}, not {plant!r}")
    arch = get_rocm_arch()
    if arch.split(":")[0] != "gfx942":
        raise ValueError(f"this kernel is written for gfx942, not for {arch}")
    q_is_fn, kv_is_fn = (tensor.dtype == torch.float8_e4m3fn for tensor in (Q, KV))
    if plant in FN_PLANTS and not (q_is_fn or kv_is_fn):
        raise ValueError(f"{plant} needs an FN operand: nothing is patched here")
    return Q.shape[1], Q.shape[2], q_is_fn, kv_is_fn, plant or ""


def _packed(tensor: Tensor, *shape: int) -> Tensor:
    """`tensor` contiguous in a 1-D or 2-D `shape` with the strides of that shape: FlyDSL reads them, and torch leaves
    any stride on a dimension of one element. Copied where it starts at an odd address: the kernel loads eight bytes at a time."""
    tensor = tensor.detach().contiguous()  # DLPack refuses what requires a gradient
    if tensor.data_ptr() % 8:
        tensor = tensor.clone()
    return tensor.as_strided(shape, (shape[-1], 1)[-len(shape) :], tensor.storage_offset())


def _run(config: _Config, *arguments: Any) -> None:
    """Launch, compiling first where this configuration is new."""
    if config in _COMPILED:
        _COMPILED[config](*arguments)
        return
    compiled = flyc.compile(_launch, *arguments)  # compiles and launches
    if compiled is None:
        raise RuntimeError("flydsl compiled the kernel and did not run it: COMPILE_ONLY is set")
    _COMPILED[config] = compiled


def flydsl_fp8_mqa_logits(
    Q: Tensor,
    KV: Tensor,
    kv_scales: Tensor,
    weights: Tensor,
    cu_starts: Tensor,
    cu_ends: Tensor,
    clean_logits: bool = True,
    stream: torch.cuda.Stream | None = None,
    *,
    plant: str | None = None,
) -> Tensor:
    """Logits f32 [M, N], a view whose row stride is rounded up to 256 columns.

    Q [M, H, D] and KV [N, D] are float8_e4m3fn or float8_e4m3fnuz, each on its own; H is 16, 32, 64 or 128 and D 64 or
    128. kv_scales f32 [N] or [N, 1], weights f32 [M, H], cu_starts and cu_ends int32 [M]; windows may be empty or reach
    outside [0, N). Outside the window the result is -inf, or undefined with `clean_logits=False`. Bytes that are NaN in
    their own format are a broken precondition, and a NaN score counts as 0 (the hardware maximum drops it). `stream`
    None is torch's current stream. `plant` builds one known fault (PLANTS) into the kernel, for testing the checks.

    ValueError: wrong rank, dtype, shape or device, unknown plant, a target other than gfx942. RuntimeError:
    COMPILE_ONLY is set, so that nothing ran.
    """
    check_arguments(Q, KV, kv_scales, weights, cu_starts, cu_ends)
    config = _config(Q, KV, plant)
    (m, heads, head_dim), n = Q.shape, KV.shape[0]
    logits = torch.empty((m, -(-n // ROW_ALIGN) * ROW_ALIGN), dtype=torch.float32, device=Q.device)
    if clean_logits:
        logits.fill_(float("-inf"))
    if m and n:
        _run(
            config,
            _packed(Q, m * heads, head_dim).view(torch.int64),
            _packed(KV, n, head_dim).view(torch.int64),
            _packed(kv_scales, n),
            _packed(weights, m, heads),
            _packed(cu_starts, m),
            _packed(cu_ends, m),
            logits if plant != "wrong-row-stride" else logits.as_strided((m, n), (n, 1)),
            m,
            n,
            min(-(-n // _WAVE), _MAX_SPLITS),
            config,
            fx.Stream(torch.cuda.current_stream() if stream is None else stream),
        )
    return logits[:, :n]
