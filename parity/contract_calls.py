# SPDX-License-Identifier: Apache-2.0
"""The arm's half of the contract: build a row's arguments in memory, call the wrapper, say what came of it.

Runs in the arm's process.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from parity.contract import Row
from parity.contract_memory import LAYOUTS
from parity.inputs import Inputs, tensors_of


@dataclass(frozen=True)
class Call:
    """How a wrapper is called: positional and keyword arguments."""

    arguments: tuple[Any, ...]
    options: dict[str, Any]


def plain_arguments(inputs: Inputs, device: str) -> dict[str, torch.Tensor]:
    """The six tensors, contiguous, on `device`."""
    return {name: tensor.to(device) for name, tensor in tensors_of(inputs).items()}


def arguments_of(row: Row, inputs: Inputs, device: str) -> dict[str, torch.Tensor]:
    """The row's arguments, each on memory of its own."""
    tensors = plain_arguments(inputs, device)
    for name, dtype in row.dtypes.items():
        tensors[name] = _converted(tensors[name], getattr(torch, dtype))
    for change in row.changes:
        if change in _SHAPES:
            _SHAPES[change](tensors)
    return {
        name: LAYOUTS[row.layouts[name]](tensor) if name in row.layouts else tensor for name, tensor in tensors.items()
    }


def call_of(row: Row, tensors: dict[str, torch.Tensor], stream: Any = None) -> Call:
    """The row's call on these tensors, on `stream` where it is given."""
    options = dict(row.options) | ({} if stream is None else {"stream": stream})
    if "by-keyword" in row.changes:
        return Call((), dict(reversed(tensors.items())) | options)
    return Call(tuple(tensors.values()), options)


def signature_of(wrapper: Callable[..., Any]) -> list[list[str]]:
    """[name, kind, default] of every parameter, as text."""
    parameters = inspect.signature(wrapper).parameters.values()
    return [
        [part.name, str(part.kind.name), "" if part.default is part.empty else repr(part.default)]
        for part in parameters
    ]


def _converted(tensor: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """The values in another dtype; of bytes that torch cannot convert, the bytes."""
    if tensor.dtype.itemsize == 1 and dtype in (torch.int8, torch.uint8):
        return tensor.view(dtype)
    return tensor.to(torch.float32).to(dtype) if tensor.dtype.itemsize == 1 else tensor.to(dtype)


def _cut(*names: str, rows: int) -> Callable[[dict[str, torch.Tensor]], None]:
    def cut(tensors: dict[str, torch.Tensor]) -> None:
        for name in names:
            tensors[name] = tensors[name][:rows].clone()

    return cut


def _heads(count: int) -> Callable[[dict[str, torch.Tensor]], None]:
    def cut(tensors: dict[str, torch.Tensor]) -> None:
        q = tensors["Q"].view(torch.uint8)
        tensors["Q"] = q[:, :count].contiguous().view(tensors["Q"].dtype)
        tensors["weights"] = tensors["weights"][:, :count].contiguous()

    return cut


def _dim(count: int, *names: str) -> Callable[[dict[str, torch.Tensor]], None]:
    def resize(tensors: dict[str, torch.Tensor]) -> None:
        for name in names:
            dtype, bytes = tensors[name].dtype, tensors[name].view(torch.uint8)
            tensors[name] = torch.cat([bytes, bytes], dim=-1)[..., :count].contiguous().view(dtype)

    return resize


def _longer_scales(tensors: dict[str, torch.Tensor]) -> None:
    tensors["kv_scales"] = torch.cat([tensors["kv_scales"], tensors["kv_scales"][:1]])


def _narrow_weights(tensors: dict[str, torch.Tensor]) -> None:
    tensors["weights"] = tensors["weights"][:, : tensors["weights"].shape[1] // 2].contiguous()


def _flat_q(tensors: dict[str, torch.Tensor]) -> None:
    tensors["Q"] = tensors["Q"].flatten(0, 1)


def _elsewhere(tensors: dict[str, torch.Tensor]) -> None:
    tensors["KV"] = tensors["KV"].to("meta" if tensors["KV"].device.type == "cpu" else "cpu")


def _nan_outside(tensors: dict[str, torch.Tensor]) -> None:
    """NaN in every byte of K and in every scale that no window holds."""
    first, last = int(tensors["cu_starts"].min()), int(tensors["cu_ends"].max())
    nan = 0x80 if tensors["KV"].dtype == torch.float8_e4m3fnuz else 0x7F
    for outside in (slice(0, first), slice(last, None)):
        tensors["KV"].view(torch.uint8)[outside] = nan
        tensors["kv_scales"][outside] = torch.nan


def _with_gradient(tensors: dict[str, torch.Tensor]) -> None:
    tensors["weights"].requires_grad_()


def _scalar_scale(tensors: dict[str, torch.Tensor]) -> None:
    tensors["kv_scales"] = tensors["kv_scales"].squeeze()


_SHAPES: dict[str, Callable[[dict[str, torch.Tensor]], None]] = {
    "nan-outside": _nan_outside,
    "weights-grad": _with_gradient,
    "scales-scalar": _scalar_scale,
    "weights-short": _cut("weights", rows=-1),
    "no-rows": _cut("Q", "weights", "cu_starts", "cu_ends", rows=0),
    "no-keys": _cut("KV", "kv_scales", rows=0),
    "kv-narrow": _dim(32, "KV"),
    "weights-narrow": _narrow_weights,
    "scales-short": _cut("kv_scales", rows=-1),
    "scales-long": _longer_scales,
    "starts-short": _cut("cu_starts", rows=-1),
    "ends-short": _cut("cu_ends", rows=-1),
    "q-flat": _flat_q,
    "heads-48": _heads(48),
    "heads-8": _heads(8),
    "dim-96": _dim(96, "Q", "KV"),
    "dim-32": _dim(32, "Q", "KV"),
    "kv-elsewhere": _elsewhere,
}


def observe(
    row: Row, inputs: Inputs, wrapper: Callable[..., Any], device: Any, save: Callable[[Any, str], str]
) -> dict[str, Any]:
    """Call the wrapper as the row says and tell what came of it, as JSON: {"signature"}, or the form of the result, the files of the
    results of each call, whether an input was changed, whose memory a result shares, and where the launches went and should have gone
    (0: the current stream). `save` keeps a tensor and returns its file's name."""
    parameters = signature_of(wrapper)
    if "signature" in row.changes:
        return {"signature": parameters}
    stream = device.other_stream() if "given-stream" in row.changes and _takes(parameters, "stream") else None
    told: dict[str, Any] = {"outputs": [], "wanted": int(stream.cuda_stream) if stream is not None else 0}
    kept: list[Any] = []  # alive, so that a later call cannot be given their memory by the allocator
    for number in range(row.repeats):
        tensors = arguments_of(row, inputs, device.torch_device)
        before = {name: _memory(tensor).clone() for name, tensor in tensors.items() if tensor.device.type != "meta"}
        call = call_of(row, tensors, stream)
        with torch.inference_mode("inference-mode" in row.changes):
            seen = device.observe(wrapper, tensors, call.arguments, call.options)
        told["outputs"].append(save(seen.logits, str(number)))
        changed = [name for name, bytes in before.items() if not torch.equal(_memory(tensors[name]), bytes)]
        if not number:
            told |= {"form": _form(seen.logits), "streams": seen.streams, "unwritten": "", "shared": ""}
            if seen.unwritten is not None:
                told["unwritten"] = save(seen.unwritten.float(), "unwritten")
        told["modified"] = ", ".join(changed)
        if "result-own" in row.changes:
            told["shared"] = told["shared"] or _shared(seen.logits, tensors, kept)
            kept.append(seen.logits)
    return told


def _takes(parameters: list[list[str]], name: str) -> bool:
    return any(parameter[0] == name for parameter in parameters)


def _shared(logits: Any, tensors: dict[str, torch.Tensor], earlier: list[Any]) -> str:
    """Whose memory a result lies in, "" for its own."""
    others = tensors | {f"the result of call {number}": result for number, result in enumerate(earlier, 1)}
    tensor = isinstance(logits, torch.Tensor)
    return next((name for name, other in others.items() if tensor and _address(other) == _address(logits)), "")


def _address(tensor: torch.Tensor) -> int:
    return tensor.untyped_storage().data_ptr()


def _memory(tensor: torch.Tensor) -> torch.Tensor:
    """Every byte of the buffer that a tensor lies in."""
    storage = tensor.untyped_storage()
    return torch.tensor([], dtype=torch.uint8, device=tensor.device).set_(storage, 0, (storage.nbytes(),))


def _form(logits: Any) -> str:
    if not isinstance(logits, torch.Tensor):
        return f"a {type(logits).__name__}"
    strides = [
        stride if size > 1 else 0 for size, stride in zip(logits.shape, logits.stride(), strict=True)
    ]  # of one: any
    return f"{logits.dtype} of shape {list(logits.shape)}, strides {strides if logits.numel() else []}, on {logits.device.type}"
