# SPDX-License-Identifier: Apache-2.0
"""The values of a row of the contract, before anything is done to their memory."""

from __future__ import annotations

from dataclasses import replace

import torch

from parity.contract import Row
from parity.inputs import Inputs, build_inputs
from parity.matrix import case_of


def row_inputs(row: Row) -> Inputs:
    """The inputs of a row before anything is done to their memory: gaussian, every row seeing what its windows say."""
    heads, head_dim = {"heads-48": (64, 64), "heads-8": (16, 64), "dim-32": (16, 64)}.get(row.name, (16, 64))
    inputs = build_inputs(
        case_of(f"h{heads}-d{head_dim} causal {row.size} {row.pair} gaussian", f"Contract: {row.promise}.")
    )
    for argument in (name for name, layout in row.layouts.items() if layout == "expanded"):
        field = {"cu_starts": "starts", "cu_ends": "ends"}.get(argument, argument)
        part = getattr(inputs, field)
        inputs = replace(inputs, **{field: part[-1:].expand_as(part).clone()})
    if row.windows:
        pairs = [row.windows[index % len(row.windows)] for index in range(inputs.q.shape[0])]
        starts, ends = (torch.tensor(bounds, dtype=torch.int32) for bounds in zip(*pairs, strict=True))
        inputs = replace(inputs, starts=starts, ends=ends)
    for change in row.changes:
        inputs = _changed(inputs, change)
    return inputs


POISONED_TOKEN, POISONED_ROW, POISONED_HEAD = 7, 1, 3  # where the values rows put their one special value


def _changed(inputs: Inputs, change: str) -> Inputs:
    """The inputs with one special value; those that only change how the call is made leave them alone."""
    scales, weights, q, kv = (part.clone() for part in (inputs.kv_scales, inputs.weights, inputs.q, inputs.kv))
    special = {"negative": -1.0, "zero": 0.0, "tiny": 2.0**-140, "nan": float("nan"), "inf": float("inf")}
    kind, _, value = change.partition("-")
    if kind == "scale":
        scales[POISONED_TOKEN] *= 0 if value == "zero" else 1
        scales[POISONED_TOKEN] = special[value] * (scales[POISONED_TOKEN] if value == "negative" else 1)
        if value == "inf":  # all of them: a sum of infinite parts is NaN or not as their signs fall
            scales[:] = special[value]
    elif kind == "weight":
        weights[POISONED_ROW, POISONED_HEAD] = special[value]
    elif change == "q-nan":
        q[POISONED_ROW, POISONED_HEAD, 5] = 0x80 if inputs.q_encoding.value == "fnuz" else 0x7F
    elif change == "kv-nan":
        kv[POISONED_TOKEN, 5] = 0x80 if inputs.kv_encoding.value == "fnuz" else 0x7F
    elif change == "minus-zero":
        q[:, :, ::3], kv[:, 1::3] = 0x80, 0x80
    return replace(inputs, kv_scales=scales, weights=weights, q=q, kv=kv)
