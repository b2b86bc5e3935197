# SPDX-License-Identifier: Apache-2.0
"""The exact tensors of a case, built once and given as bytes to every arm.

Quantisation happens here and nowhere else: what a kernel, the reference and the budget see is the same fp8 bytes,
so no comparison ever contains a quantisation error.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save

from parity.cases import Case
from parity.distributions import build_operands
from parity.fp8 import Encoding, decode
from parity.windows import build_windows

_DTYPES = {
    "q": torch.uint8,
    "kv": torch.uint8,
    "kv_scales": torch.float32,
    "weights": torch.float32,
    "starts": torch.int32,
    "ends": torch.int32,
}
_ENCODINGS = ("q_encoding", "kv_encoding")
FORMAT = "logits-parity inputs 1"


@dataclass(frozen=True, eq=False)
class Inputs:
    """Tensors of one problem: q uint8 [M,H,D], kv uint8 [N,D], kv_scales float32 [N], weights float32 [M,H],
    starts and ends int32 [M] (half open, in columns of kv, not clipped). Raises ValueError for any other shape or
    dtype."""

    q: torch.Tensor
    kv: torch.Tensor
    kv_scales: torch.Tensor
    weights: torch.Tensor
    starts: torch.Tensor
    ends: torch.Tensor
    q_encoding: Encoding
    kv_encoding: Encoding

    def __post_init__(self) -> None:
        for name, dtype in _DTYPES.items():
            if getattr(self, name).dtype != dtype:
                raise ValueError(f"{name} must be {dtype}, not {getattr(self, name).dtype}")
        if self.q.dim() != 3 or self.kv.dim() != 2:
            raise ValueError(f"q must be [M,H,D] and kv [N,D], not {list(self.q.shape)} and {list(self.kv.shape)}")
        (m, heads, head_dim), n = self.q.shape, self.kv.shape[0]
        shapes = {"kv": (n, head_dim), "kv_scales": (n,), "weights": (m, heads), "starts": (m,), "ends": (m,)}
        for name, shape in shapes.items():
            if tuple(getattr(self, name).shape) != shape:
                raise ValueError(f"{name} must be {list(shape)}, not {list(getattr(self, name).shape)}")
        if min(m, n, heads, head_dim) < 1:
            raise ValueError("inputs have no empty axis")

    @property
    def sha256(self) -> str:
        """Hex digest over names, dtypes, shapes, encodings and every byte: equal digests mean equal inputs."""
        digest = hashlib.sha256()
        for name in _ENCODINGS:
            digest.update(f"{name}={getattr(self, name).value};".encode())
        for name in _DTYPES:
            array = getattr(self, name).cpu().contiguous().numpy()
            digest.update(f"{name}:{array.dtype.str}{array.shape};".encode())
            digest.update(array.tobytes())
        return digest.hexdigest()

    def save(self, path: str | Path, *, index_topk: int | None = None) -> None:
        """Writes a safetensors file: the six tensors under their names here, fp8 as the bytes they are (U8), and as metadata `format`
        ("logits-parity inputs 1"), `q_encoding` and `kv_encoding` ("fn" or "fnuz"), and `index_topk` if given (what a capture of a
        served model has to say, see matrix.captured_case). OSError."""
        tensors = {name: getattr(self, name).cpu().contiguous() for name in _DTYPES}
        facts = {"format": FORMAT} | {name: getattr(self, name).value for name in _ENCODINGS}
        data = save(tensors, facts if index_topk is None else facts | {"index_topk": str(index_topk)})
        Path(path).write_bytes(data)  # an OSError if the disk is full; the package's own writer has errors of its own

    @staticmethod
    def load(path: str | Path) -> Inputs:
        """Reads what `save` wrote. ValueError for any other content, OSError for an unreadable file."""
        try:
            with safe_open(path, framework="pt") as file:
                facts, names = file.metadata() or {}, set(file.keys())
                tensors = {name: file.get_tensor(name).clone() for name in names & set(_DTYPES)}  # aligned, not mapped
        except SafetensorError as error:
            raise ValueError(f"{path} is not a safetensors file: {error}") from None
        if names != set(_DTYPES):
            raise ValueError(f"{path} holds tensors {sorted(names)}, not {sorted(_DTYPES)}")
        if facts.get("format") != FORMAT or not {*_ENCODINGS} <= set(facts) <= {*_ENCODINGS, "format", "index_topk"}:
            raise ValueError(f"{path} has metadata {facts}, not format {FORMAT!r}, {' and '.join(_ENCODINGS)}")
        return Inputs(**tensors, **{name: Encoding(facts[name]) for name in _ENCODINGS})


def tensors_of(inputs: Inputs) -> dict[str, torch.Tensor]:
    """The wrapper's positional arguments, in order, as views of the inputs' bytes."""
    return {
        "Q": inputs.q.view(inputs.q_encoding.torch_dtype),
        "KV": inputs.kv.view(inputs.kv_encoding.torch_dtype),
        "kv_scales": inputs.kv_scales,
        "weights": inputs.weights,
        "cu_starts": inputs.starts,
        "cu_ends": inputs.ends,
    }


def captured_topk(path: str | Path) -> int:
    """`index_topk` of a captured file. ValueError where it has none or another value than a positive integer."""
    with safe_open(path, framework="pt") as file:
        value = (file.metadata() or {}).get("index_topk", "")
    if not value.isdecimal() or int(value) < 1:
        raise ValueError(f"{path}: metadata index_topk must be a positive integer, not {value!r}")
    return int(value)


def nan_bytes(inputs: Inputs) -> int:
    """How many fp8 bytes of q and kv are NaN. Anything but 0 breaks the operation's precondition: report it, and
    do not compare."""
    operands = ((inputs.q, inputs.q_encoding), (inputs.kv, inputs.kv_encoding))
    return sum(int(torch.isnan(decode(bytes, encoding)).sum()) for bytes, encoding in operands)


def require_finite(inputs: Inputs) -> None:
    """Raises ValueError where the operation has no defined result: NaN bytes, non-finite kv_scales or weights."""
    if nan_bytes(inputs):
        raise ValueError(f"{nan_bytes(inputs)} NaN bytes in q or kv: a broken precondition, not a case to compare")
    for name in ("kv_scales", "weights"):
        if not torch.isfinite(getattr(inputs, name)).all():
            raise ValueError(f"{name} holds a value that is not finite")


def build_inputs(case: Case) -> Inputs:
    """The inputs of `case`: the same bytes for the same case, other bytes for any other id.

    Captured inputs come from the case's file: ValueError if it has other contents than when the case was made.
    """
    if case.distribution == "captured":
        captured = Inputs.load(case.path)
        if capture_seed(captured) != case.seed:
            raise ValueError(f"{case.path} has changed since case {case.id} was made of it")
        return captured
    digest = hashlib.sha256(case.id.encode()).digest()
    rng = np.random.Generator(np.random.PCG64([case.seed, *np.frombuffer(digest, dtype="<u4").tolist()]))
    encodings = (case.q_encoding, case.kv_encoding)
    made = build_operands(case.distribution, (case.m, case.heads, case.head_dim), case.n, encodings, rng)
    starts, ends = (torch.from_numpy(array) for array in build_windows(case.window, case.m, case.n, rng))
    return Inputs(made.q, made.kv, made.kv_scales.float(), made.weights.float(), starts, ends, *encodings)


def capture_seed(inputs: Inputs) -> int:
    """What stands for captured inputs in a case's id: the first 32 bits of their digest."""
    return int(inputs.sha256[:8], 16)
