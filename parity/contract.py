# SPDX-License-Identifier: Apache-2.0
"""The contract of a drop-in replacement, as a table: what a caller of the Triton kernel may rely on, one check a row.

    valid     legal arguments: both kernels give the right logits (reference and budget), in the same form
    values    values outside the reference (a NaN scale, an infinite weight): both kernels give the same
    refusal   illegal arguments: both kernels refuse them, or both give the same

The Triton kernel is the baseline: what it does with a call is what callers got so far. With legal arguments nothing else counts as right
only because both kernels do it: wrong logits, an error, an access out of bounds, a changed input and a crash are findings whatever the
other kernel does. Sizes are small enough to read; `layouts` names how an argument lies in memory (contract_calls.py), everything around it
being poison; contract_inputs.py builds the values.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import product

from parity.devices import Device

INT_MAX, INT_MIN = 2**31 - 1, -(2**31)


@dataclass(frozen=True)
class Row:
    """One promise. `size` is "MxN" with 16 heads of 64; `layouts`: argument -> how it lies in memory; `dtypes`: argument -> another
    dtype; `changes`: named changes of the inputs; `options`: keyword arguments; `repeats`: calls that must agree bit for bit."""

    name: str
    group: str
    promise: str
    judged: str = "valid"
    size: str = "4x70"
    pair: str = "fnuz.fnuz"
    layouts: Mapping[str, str] = field(default_factory=dict)
    dtypes: Mapping[str, str] = field(default_factory=dict)
    windows: tuple[tuple[int, int], ...] = ()
    changes: tuple[str, ...] = ()
    options: Mapping[str, object] = field(default_factory=dict)
    repeats: int = 2

    @property
    def case(self) -> str:
        """What stands for a case's id in the evidence."""
        return f"contract-{self.name}"

    def to_json(self) -> dict[str, object]:
        """What describes the row in the evidence."""
        return {
            "row": self.name,
            "group": self.group,
            "promise": self.promise,
            "judged": self.judged,
            "size": self.size,
        }


ARGUMENTS = ("Q", "KV", "kv_scales", "weights", "cu_starts", "cu_ends")
_MEMORY = {
    "apart": "every second row of a larger tensor",
    "wide": "the first columns of wider rows",
    "transposed": "its first two dimensions exchanged in memory",
    "offset": "inside a larger buffer, one element in",
}
_EXPANDED = "one value or row expanded to all (stride 0)"
_ODD_WINDOWS = {
    "start-at-n": ((70, 75), (0, 70)),
    "start-past-n": ((90, 99), (3, 9)),
    "end-past-n": ((0, 71), (60, 1000)),
    "start-negative": ((-5, 30), (-1, 70)),
    "end-negative": ((0, -3), (0, 70)),
    "end-before-start": ((40, 12), (0, 70)),
    "end-at-start": ((33, 33), (1, 2)),
    "end-int-max": ((0, INT_MAX), (69, INT_MAX)),
    "start-int-min": ((INT_MIN, 70), (INT_MIN, 1)),
    "both-int-max": ((INT_MAX, INT_MAX), (0, 70)),
    "both-int-min": ((INT_MIN, INT_MIN), (0, 70)),
}


def _layout_rows() -> list[Row]:
    rows = []
    for argument in ("Q", "KV", "weights"):
        for layout, words in _MEMORY.items():
            rows.append(
                Row(f"{argument.lower()}-{layout}", "memory", f"{argument} lies as {words}", layouts={argument: layout})
            )
    for argument in ("kv_scales", "cu_starts", "cu_ends"):
        for layout in ("apart", "offset"):
            text = f"{argument} lies as {_MEMORY[layout]}"
            rows.append(Row(f"{argument.replace('_', '-')}-{layout}", "memory", text, layouts={argument: layout}))
    for argument in ("kv_scales", "weights", "cu_starts", "cu_ends"):
        name, text = f"{argument.replace('_', '-')}-expanded", f"{argument} is {_EXPANDED}"
        rows.append(Row(name, "memory", text, layouts={argument: "expanded"}))
    for argument, layout in product(("Q", "KV"), ("apart", "wide", "transposed")):
        name, text = f"{argument.lower()}-{layout}-fn", f"FN {argument} lies as {_MEMORY[layout]}"
        rows.append(Row(name, "memory", text, pair="fn.fn", layouts={argument: layout}))
    return [
        *rows,
        Row("scales-column", "memory", "kv_scales of shape [N,1]", layouts={"kv_scales": "column"}),
        Row("scales-column-of-one", "memory", "kv_scales of shape [1,1] with N = 1", size="4x1", layouts={"kv_scales": "column"}),
        Row("scales-slice", "memory", "kv_scales of shape [N,1], a column of a wider tensor", layouts={"kv_scales": "slice"}),
        Row("all-apart", "memory", "every argument lies apart, M odd", size="5x70", layouts=dict.fromkeys(ARGUMENTS, "apart")),
    ]  # fmt: skip


def _size_rows() -> list[Row]:
    return [
        Row("no-rows", "sizes", "M = 0 gives an empty result", changes=("no-rows",)),
        Row("no-keys", "sizes", "N = 0 gives an empty result", changes=("no-keys",)),
        Row("one-key", "sizes", "N = 1", size="4x1"),
        Row("one-row", "sizes", "M = 1", size="1x70"),
        Row("one-of-each", "sizes", "M = 1 and N = 1", size="1x1"),
        Row("n-256", "sizes", "N a multiple of 256: the row stride is N itself", size="3x256"),
        Row("n-257", "sizes", "N one past 256: the row stride jumps to 512", size="3x257"),
    ]


def _call_rows() -> list[Row]:
    return [
        Row("signature", "call", "the Triton kernel's parameters stand first, in order, with its defaults", changes=("signature",)),
        Row("by-keyword", "call", "arguments by the Triton kernel's names", changes=("by-keyword",)),
        Row("clean", "call", "clean_logits=True: -inf outside the window", options={"clean_logits": True}),
        Row("not-clean", "call", "clean_logits=False: right inside the window, over any memory", options={"clean_logits": False}),
        Row("not-clean-empty", "call", "clean_logits=False with empty windows", options={"clean_logits": False},
            windows=((5, 5), (0, 70), (70, 99), (9, 2))),
        Row("current-stream", "call", "the launch goes to torch's current stream", changes=("current-stream",)),
        Row("given-stream", "call", "a kernel that takes `stream` launches there", changes=("given-stream",)),
        Row("inference-mode", "call", "under torch.inference_mode, as vLLM calls it", changes=("inference-mode",)),
        Row("weights-grad", "call", "weights that require a gradient", changes=("weights-grad",)),
        Row("result-own", "call", "each result has memory of its own, apart from the arguments", changes=("result-own",)),
        Row("nan-outside", "call", "what no window holds is never looked at: NaN in K and kv_scales there", windows=((10, 60), (20, 64)),
            changes=("nan-outside",)),
        Row("repeated", "call", "20 launches give the same bits", size="5x300", repeats=20),
        Row("fn-minus-zero", "call", "FN's minus zero counts as 0", pair="fn.fn", changes=("minus-zero",)),
        Row("mixed-pair", "call", "an FN query meets FNUZ keys", pair="fn.fnuz"),
    ]  # fmt: skip


def _value_rows() -> list[Row]:
    values = [
        ("scale-negative", "a negative kv_scale turns the ReLU around", "valid"),
        ("scale-zero", "a kv_scale of 0 gives logits of 0", "valid"),
        ("scale-tiny", "a subnormal kv_scale is not flushed", "valid"),
        ("scale-nan", "a NaN kv_scale", "values"),
        ("scale-inf", "an infinite kv_scale", "values"),
        ("weight-nan", "a NaN weight", "values"),
        ("weight-inf", "an infinite weight", "values"),
        ("q-nan", "a NaN byte in Q", "values"),
        ("kv-nan", "a NaN byte in K", "values"),
    ]
    rows = [Row(name, "values", promise, judged, changes=(name,)) for name, promise, judged in values]
    return [
        *rows,
        Row("q-nan-fn", "values", "an FN NaN byte in Q", "values", pair="fn.fn", changes=("q-nan",)),
        Row("kv-nan-fn", "values", "an FN NaN byte in K", "values", pair="fn.fn", changes=("kv-nan",)),
    ]


def _refusal_rows() -> list[Row]:
    wrong_dtypes = {
        "Q": ("float16", "bfloat16", "float32", "float8_e5m2", "int8"),
        "KV": ("float16", "float32", "float8_e5m2", "uint8"),
        "kv_scales": (
            "float16",
            "bfloat16",
        ),  # float64 brings fp64 minimum and maximum, which the executor does not know
        "weights": ("float16", "bfloat16", "float64"),
        "cu_starts": ("int64", "int16"),
        "cu_ends": ("int64", "int16"),
    }
    rows = [
        Row(f"{argument.lower().replace('_', '-')}-{dtype.replace('_', '-')}", "refusals", f"{argument} of dtype {dtype}", "refusal",
            dtypes={argument: dtype})
        for argument, dtypes in wrong_dtypes.items() for dtype in dtypes
    ]  # fmt: skip
    shapes = {
        "kv-narrow": "K of half the head dimension",
        "weights-narrow": "weights of half the heads",
        "scales-short": "kv_scales of one token too few",
        "scales-long": "kv_scales of one token too many",
        "scales-scalar": "kv_scales of no dimension with N = 1",
        "weights-short": "weights of one row too few",
        "starts-short": "cu_starts of one row too few",
        "ends-short": "cu_ends of one row too few",
        "q-flat": "Q of two dimensions",
        "heads-48": "48 heads, no power of two",
        "heads-8": "8 heads, fewer than an MFMA has rows",
        "dim-96": "a head dimension of 96",
        "dim-32": "a head dimension of 32",
        "kv-elsewhere": "K on another device",
    }
    return rows + [
        Row(name, "refusals", promise, "refusal", size="4x1" if name == "scales-scalar" else "4x70", changes=(name,))
        for name, promise in shapes.items()
    ]


def contract() -> tuple[Row, ...]:
    """All rows, by group."""
    odd = [
        Row(f"window-{name}", "windows", f"int32 windows {', '.join(map(str, windows))} of 70 keys", windows=windows)
        for name, windows in _ODD_WINDOWS.items()
    ]
    return (*_layout_rows(), *odd, *_size_rows(), *_call_rows(), *_value_rows(), *_refusal_rows())


def rows_on(device: Device) -> tuple[Row, ...]:
    """The rows that a device is asked for: on a GPU none that may bring it down, and on a CUDA GPU none at all, since only one of the
    kernels runs there."""
    if device.kind == "executor":
        return contract()
    return tuple(row for row in contract() if not _may_fault(row)) if device.kind == "gpu" else ()


def _may_fault(row: Row) -> bool:
    """Illegal calls, bounds at the end of int32, and layouts by which a kernel that ignores strides reads past the end of memory."""
    spread = {"expanded"} | ({"apart", "wide"} if row.pair == "fn.fn" else set())
    return row.judged == "refusal" or bool(
        {INT_MAX, INT_MIN} & set(sum(row.windows, ())) or spread & set(row.layouts.values())
    )


def row_named(name: str) -> Row:
    """The row of that name. KeyError without one."""
    return {row.name: row for row in contract()}[name]
