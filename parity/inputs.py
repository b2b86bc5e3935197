# SPDX-License-Identifier: Apache-2.0
"""The exact tensors of a case, built once and given as bytes to every arm.

Quantisation happens here and nowhere else: what a kernel, the reference and the budget see is the same fp8 bytes,
so no comparison ever contains a quantisation error.
"""

from __future__ import annotations

import hashlib
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from parity.cases import Case
from parity.fp8 import Encoding, decode, encode

_DTYPES = {
    "q": torch.uint8,
    "kv": torch.uint8,
    "kv_scales": torch.float32,
    "weights": torch.float32,
    "starts": torch.int32,
    "ends": torch.int32,
}
_ENCODINGS = ("q_encoding", "kv_encoding")
_FN_MINUS_ZERO = 0x80
_OUTLIER = 30.0


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

    def save(self, path: str | Path) -> None:
        """Writes one uncompressed .npz holding the six arrays and the two encoding names."""
        arrays: dict[str, Any] = {name: getattr(self, name).cpu().contiguous().numpy() for name in _DTYPES}
        arrays |= {name: np.array(getattr(self, name).value) for name in _ENCODINGS}
        with open(path, "wb") as file:  # an open file keeps numpy from appending a suffix to the name
            np.savez(file, **arrays)

    @staticmethod
    def load(path: str | Path) -> Inputs:
        """Reads what `save` wrote. Raises ValueError for any other content, OSError for an unreadable file."""
        try:
            with np.load(path, allow_pickle=False) as archive:
                if not isinstance(archive, np.lib.npyio.NpzFile):
                    raise ValueError(f"{path} is not an .npz file")
                arrays = {name: archive[name] for name in archive.files}
        except (zipfile.BadZipFile, EOFError) as error:
            raise ValueError(f"{path} is not an .npz file: {error}") from error
        expected = {*_DTYPES, *_ENCODINGS}
        if set(arrays) != expected:
            raise ValueError(f"{path} holds {sorted(arrays)}, not {sorted(expected)}")
        q_encoding, kv_encoding = (Encoding(str(arrays.pop(name))) for name in _ENCODINGS)
        for name, array in arrays.items():
            if array.dtype.kind not in "uif":
                raise ValueError(f"{name} in {path} is {array.dtype}")
        q, kv, kv_scales, weights, starts, ends = (torch.from_numpy(arrays[name]) for name in _DTYPES)
        return Inputs(q, kv, kv_scales, weights, starts, ends, q_encoding, kv_encoding)


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
    """The inputs of `case`: the same bytes for the same case, other bytes for any other id."""
    digest = hashlib.sha256(case.id.encode()).digest()
    rng = np.random.Generator(np.random.PCG64([case.seed, *np.frombuffer(digest, dtype="<u4").tolist()]))
    q_shape, kv_shape = (case.m, case.heads, case.head_dim), (case.n, case.head_dim)
    weights = torch.from_numpy(rng.standard_normal((case.m, case.heads)))
    if case.distribution == "bytes":
        q, kv = (_finite_bytes(rng, s, e) for s, e in ((q_shape, case.q_encoding), (kv_shape, case.kv_encoding)))
        kv_scales = torch.from_numpy(rng.uniform(0.5, 1.5, case.n)) / case.kv_encoding.max
    else:
        q_values, kv_values = (torch.from_numpy(rng.standard_normal(shape)) for shape in (q_shape, kv_shape))
        if case.distribution == "outlier":
            channels = rng.choice(case.head_dim, size=min(3, case.head_dim), replace=False)
            q_values[..., channels] *= _OUTLIER
            kv_values[..., channels] *= _OUTLIER
        q, q_scales = _quantise(q_values, case.q_encoding)
        kv, kv_scales = _quantise(kv_values, case.kv_encoding)
        weights = weights * q_scales  # where production puts Q's scales: the kernel has no argument for them
        if case.distribution == "scales":
            kv_scales = _log_uniform(rng, case.n, 1e-3, 1e1)
    starts, ends = _windows(case, rng)
    return Inputs(q, kv, kv_scales.float(), weights.float(), starts, ends, case.q_encoding, case.kv_encoding)


def _quantise(values: torch.Tensor, encoding: Encoding) -> tuple[torch.Tensor, torch.Tensor]:
    """Bytes and float64 scales: the largest magnitude of every vector along the last axis becomes the largest byte."""
    scales = (values.abs().amax(dim=-1) / encoding.max).float().double()  # a kernel is given float32 scales
    bytes = encode(values / scales[..., None], encoding)
    if encoding is Encoding.FN:
        # Rounding alone makes -0 rare; every 211th byte (prime, so that it visits all channels) makes it certain.
        bytes.view(-1)[5::211] = _FN_MINUS_ZERO
    return bytes, scales


def _finite_bytes(rng: np.random.Generator, shape: tuple[int, ...], encoding: Encoding) -> torch.Tensor:
    finite = torch.arange(256, dtype=torch.uint8)
    finite = finite[~torch.isnan(decode(finite, encoding))]
    return finite[torch.from_numpy(rng.integers(0, finite.numel(), size=shape))]


def _log_uniform(rng: np.random.Generator, count: int, low: float, high: float) -> torch.Tensor:
    """One value in the middle half of each of `count` equal slices of the log axis, shuffled: no two are close."""
    fraction = (np.arange(count) + rng.uniform(0.25, 0.75, count)) / count
    return torch.from_numpy(low * (high / low) ** rng.permutation(fraction))


def _windows(case: Case, rng: np.random.Generator) -> tuple[torch.Tensor, torch.Tensor]:
    """int32 starts and ends [M] of the case's window (see `parity.cases.WINDOWS`)."""
    row = np.arange(case.m)
    if case.window == "full":
        starts, ends = 0 * row, 0 * row + case.n
    elif case.window == "causal":
        starts, ends = 0 * row, case.n - case.m + 1 + row
    elif case.window == "packed":
        starts, ends = _packed(case)
    elif case.window == "context-parallel":
        # Even rows climb from an early chunk while odd rows descend from the last one, as in zigzag sharding.
        early, late = case.n // 8 + row // 2, case.n - 1 - row // 2
        starts, ends = 0 * row, np.clip(np.where(row % 2 == 0, early, late), 0, case.n - 1) + 1
    elif case.window == "misaligned":
        starts = np.minimum(np.array([1, 63, 64, 65, 127, 128, 129])[row % 7], case.n - 1)
        ends = np.where(row % 2 == 0, case.n, rng.integers(starts + 1, case.n + 1))
    elif case.window == "empty":
        middle = case.n // 2
        patterns = [
            (0, case.n),
            (middle, middle),
            (middle, middle - 1),
            (1, case.n),
            (0, -3),
            (case.n, case.n + 5),
            (case.n + 7, case.n + 9),
            (middle, case.n + 40),
            (0, 1),
        ]
        starts, ends = np.array(patterns).T[:, row % len(patterns)]
    else:
        raise ValueError(f"no builder for window {case.window!r}")
    return torch.from_numpy(starts.astype(np.int32)), torch.from_numpy(ends.astype(np.int32))


def _packed(case: Case) -> tuple[np.ndarray, np.ndarray]:
    """Two or three requests whose shares of the rows (1:4:2) and of the keys (3:1:4) differ, so that one may have
    more rows than keys while others have a long history."""
    requests = min(3, case.m, case.n)
    rows, keys = (
        np.concatenate([[0], np.cumsum(1 + (total - requests) * np.array(share) // sum(share))])
        for total, share in ((case.m, (1, 4, 2)[:requests]), (case.n, (3, 1, 4)[:requests]))
    )
    rows[-1], keys[-1] = case.m, case.n  # the last request takes what the rounding left
    request = np.searchsorted(rows, np.arange(case.m), side="right") - 1
    ends = keys[request + 1] - rows[request + 1] + 1 + np.arange(case.m)
    return keys[request], ends
