# SPDX-License-Identifier: Apache-2.0
"""Faults planted around an own kernel, in the process that runs it: in what it is given, in what it returns, in the tokens selected.

The kernel is launched and its memory checked as ever; what the judge sees is what a wrapper with that fault would give.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

Wrapper = Callable[..., Tensor]
Arguments = dict[str, Tensor]


def planted(wrapper: Wrapper, fault: str) -> Wrapper:
    """`wrapper` with the fault. KeyError for one that is not among AROUND."""
    return AROUND[fault](wrapper)


def _given(change: Callable[[Arguments], Arguments]) -> Callable[[Wrapper], Wrapper]:
    """A fault in what the kernel is given: `change` gets the arguments by name and returns those that differ."""

    def plant(wrapper: Wrapper) -> Wrapper:
        def call(
            Q: Tensor, KV: Tensor, kv_scales: Tensor, weights: Tensor, cu_starts: Tensor, cu_ends: Tensor
        ) -> Tensor:
            arguments = dict(Q=Q, KV=KV, kv_scales=kv_scales, weights=weights, cu_starts=cu_starts, cu_ends=cu_ends)
            return wrapper(*(arguments | change(arguments)).values())

        return call

    return plant


def _returned(change: Callable[[Tensor, Arguments], Any]) -> Callable[[Wrapper], Wrapper]:
    """A fault in the result: `change` gets the logits, in the memory that the kernel wrote, and the windows."""

    def plant(wrapper: Wrapper) -> Wrapper:
        def call(*arguments: Tensor) -> Any:
            return change(wrapper(*arguments), {"KV": arguments[1], "starts": arguments[4], "ends": arguments[5]})

        return call

    return plant


def _element(value: float) -> Callable[[Tensor, Arguments], Tensor]:
    def change(logits: Tensor, windows: Arguments) -> Tensor:
        row, column = _inside(logits)
        logits[row, column] = value
        return logits

    return change


def _inside(logits: Tensor) -> tuple[int, int]:
    """Some element inside a window."""
    places = torch.isfinite(logits).nonzero()
    row, column = places[len(places) // 2].tolist()
    return row, column


def _outside(value: float) -> Callable[[Tensor, Arguments], Tensor]:
    def change(logits: Tensor, windows: Arguments) -> Tensor:
        return logits.masked_fill_(torch.isneginf(logits), value)

    return change


def _one_off(logits: Tensor, windows: Arguments) -> Tensor:
    row, column = _inside(logits)
    logits[row, column] *= 1.001
    return logits


def _dead_row(logits: Tensor, windows: Arguments) -> Tensor:
    row, _ = _inside(logits)
    logits[row] = torch.where(torch.isfinite(logits[row]), 0.0, logits[row])
    return logits


def _dead_columns(logits: Tensor, windows: Arguments) -> Tensor:
    logits[:, -64:] = torch.where(torch.isfinite(logits[:, -64:]), 0.0, logits[:, -64:])
    return logits


def _truncated(logits: Tensor, windows: Arguments) -> Tensor:
    bits = logits.view(torch.int32) if logits.is_contiguous() else logits.contiguous().view(torch.int32)
    return logits.copy_((bits & ~0xFFF).view(torch.float32))  # 11 bits of the significand stay, as tf32 has


def _swapped_columns(logits: Tensor, windows: Arguments) -> Tensor:
    row, _ = _inside(logits)
    columns = torch.isfinite(logits[row]).nonzero().flatten()
    logits[row, columns] = logits[row, columns.roll(1)]
    return logits


def _restless(wrapper: Wrapper) -> Wrapper:
    """One logit one ulp higher at every second launch: within any budget, and not the same bits."""
    calls = 0

    def call(*arguments: Tensor) -> Tensor:
        nonlocal calls
        calls += 1
        logits = wrapper(*arguments)
        row, column = _inside(logits)
        if calls % 2:
            logits[row, column] = torch.nextafter(logits[row, column], torch.tensor(torch.inf))
        return logits

    return call


def _stale_keys(wrapper: Wrapper) -> Wrapper:
    """K is converted once for each shape and kept."""
    kept: dict[tuple[int, ...], Tensor] = {}

    def call(Q: Tensor, KV: Tensor, *rest: Tensor) -> Tensor:
        return wrapper(Q, kept.setdefault(tuple(KV.shape), KV.clone()), *rest)

    return call


def _stale_windows(wrapper: Wrapper) -> Wrapper:
    """The windows are checked and clamped once for each shape and kept."""
    kept: dict[tuple[int, ...], tuple[Tensor, Tensor]] = {}

    def call(Q: Tensor, KV: Tensor, scales: Tensor, weights: Tensor, starts: Tensor, ends: Tensor) -> Tensor:
        windows = kept.setdefault(tuple(Q.shape), (starts.clone(), ends.clone()))
        return wrapper(Q, KV, scales, weights, *windows)

    return call


def _stale_answer(wrapper: Wrapper) -> Wrapper:
    kept: dict[tuple[int, ...], Tensor] = {}

    def call(Q: Tensor, *rest: Tensor) -> Tensor:
        logits = wrapper(Q, *rest)
        return logits.copy_(kept.setdefault(tuple(Q.shape), logits.clone()))

    return call


def _modifies(wrapper: Wrapper) -> Wrapper:
    """The wrapper patches the caller's K in place."""

    def call(Q: Tensor, KV: Tensor, *rest: Tensor) -> Tensor:
        logits = wrapper(Q, KV, *rest)
        KV.view(torch.uint8)[0, 0] ^= 1
        return logits

    return call


def _fallback(wrapper: Wrapper) -> Wrapper:
    """The right answer, computed in torch, with no kernel."""

    def call(Q: Tensor, KV: Tensor, kv_scales: Tensor, weights: Tensor, cu_starts: Tensor, cu_ends: Tensor) -> Tensor:
        scores = torch.einsum("mhd,nd->mhn", Q.double(), KV.double()) * kv_scales.double()
        logits = torch.einsum("mhn,mh->mn", scores.clamp(min=0), weights.double()).float()
        column = torch.arange(len(KV), device=Q.device)
        return logits.masked_fill((column < cu_starts[:, None]) | (column >= cu_ends[:, None]), -torch.inf)

    return call


def _unclean(wrapper: Wrapper) -> Wrapper:
    """The result is never filled with -inf: what lies outside the windows is what the memory held."""
    return lambda *arguments: wrapper(*arguments, clean_logits=False)


def _dies(how: Callable[[], Any]) -> Callable[[Wrapper], Wrapper]:
    def plant(wrapper: Wrapper) -> Wrapper:
        def call(*arguments: Tensor) -> Tensor:
            how()
            return wrapper(*arguments)

        return call

    return plant


def _raise() -> None:
    raise RuntimeError("operand #0 must have a shape")


def _shared_window(arguments: Arguments) -> Arguments:
    """Rows two and two in a block, which takes the bounds of its first."""
    first = torch.arange(len(arguments["cu_starts"])) // 2 * 2
    return {name: arguments[name][first] for name in ("cu_starts", "cu_ends")}


def _rows(bytes: Tensor, order: Tensor) -> Tensor:
    """Rows of an fp8 tensor in another order: torch indexes no fp8."""
    return bytes.view(torch.uint8)[order].view(bytes.dtype)


AROUND: dict[str, Callable[[Wrapper], Wrapper]] = {
    "rolled-scales": _given(lambda given: {"kv_scales": given["kv_scales"].roll(1)}),
    "scale-of-the-tile": _given(lambda given: {"kv_scales": given["kv_scales"][torch.arange(len(given["kv_scales"])) // 64 * 64]}),
    "half-precision-scales": _given(lambda given: {"kv_scales": given["kv_scales"].half().float()}),
    "bf16-weights": _given(lambda given: {"weights": given["weights"].bfloat16().float()}),
    "swapped-heads": _given(lambda given: {"weights": given["weights"].roll(1, 1)}),
    "swapped-rows": _given(lambda given: {"Q": _rows(given["Q"], torch.arange(len(given["Q"])).roll(1))}),
    "fn-as-fnuz": _given(lambda given: {"KV": given["KV"].view(torch.uint8).view(torch.float8_e4m3fnuz)}),
    "ignored-starts": _given(lambda given: {"cu_starts": torch.zeros_like(given["cu_starts"])}),
    "lost-last-column": _given(lambda given: {"cu_ends": given["cu_ends"].clamp(max=len(given["KV"]) - 1)}),
    "wrapped-ends": _given(lambda given: {"cu_ends": given["cu_ends"].bitwise_and(255)}),
    "shared-window": _given(_shared_window),
    "nan-element": _returned(_element(float("nan"))),
    "inf-element": _returned(_element(float("inf"))),
    "hole": _returned(_element(float("-inf"))),
    "leak": _returned(_outside(0.0)),
    "lowest-float": _returned(_outside(torch.finfo(torch.float32).min)),
    "one-logit-off": _returned(_one_off),
    "dead-row": _returned(_dead_row),
    "dead-columns": _returned(_dead_columns),
    "truncated-significand": _returned(_truncated),
    "drift": _returned(lambda logits, windows: logits.mul_(1 + 1e-5)),
    "missing-factor-2": _returned(lambda logits, windows: logits.div_(2)),
    "shifted-row": _returned(_swapped_columns),
    "one-ulp-each-launch": _restless,
    "stale-keys": _stale_keys,
    "stale-windows": _stale_windows,
    "stale-answer": _stale_answer,
    "reinterpreted-result": _returned(lambda logits, windows: logits.view(torch.int32)),
    "padded-result": _returned(lambda logits, windows: logits.as_strided((logits.shape[0], logits.stride(0)), logits.stride())),
    "transposed-result": _returned(lambda logits, windows: logits.t()),
    "copied-result": _returned(lambda logits, windows: logits.clone()),
    "unclean-result": _unclean,
    "fallback": _fallback,
    "modified-input": _modifies,
    "raises": _dies(_raise),
    "aborts": _dies(os.abort),
    "segfaults": _dies(lambda: os.kill(os.getpid(), signal.SIGSEGV)),
    "exits": _dies(lambda: os._exit(3)),
}  # fmt: skip


def _last(chosen: Tensor, row: int) -> int:
    return int((chosen[row] >= 0).sum()) - 1


def _dropped_token(chosen: Tensor, logits: Tensor, starts: Tensor) -> Tensor:
    chosen[0, _last(chosen, 0)] = -1
    return chosen


def _duplicated_token(chosen: Tensor, logits: Tensor, starts: Tensor) -> Tensor:
    chosen[0, _last(chosen, 0)] = chosen[0, 0]
    return chosen


def _swapped_token(chosen: Tensor, logits: Tensor, starts: Tensor) -> Tensor:
    """The smallest logit of row 0 in the place of the largest."""
    inside = torch.where(torch.isfinite(logits[0]), logits[0], torch.inf)
    chosen[0, 0] = int(inside.argmin()) - int(starts[0])
    return chosen


SELECTIONS: dict[str, Callable[[Tensor, Tensor, Tensor], Tensor]] = {
    "dropped-token": _dropped_token,
    "duplicated-token": _duplicated_token,
    "swapped-token": _swapped_token,
    "columns-for-tokens": lambda chosen, logits, starts: torch.where(
        chosen >= 0, chosen + starts[:, None], chosen
    ).int(),
    "one-token-less": lambda chosen, logits, starts: chosen[:, :-1],
}
