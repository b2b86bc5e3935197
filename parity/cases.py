# SPDX-License-Identifier: Apache-2.0
"""Cases: frozen descriptions of one logits problem, and the model profiles behind them. The cases that run are in matrix.py.

A case says which inputs to build (`parity.inputs`) and nothing about how a kernel is run or judged. Its id spells
every axis that changes the inputs; `index_topk` only changes how they are judged, and `reason` nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

from parity.distributions import DISTRIBUTIONS
from parity.fp8 import Encoding
from parity.windows import WINDOWS


@dataclass(frozen=True)
class Profile:
    """Indexer sizes of one published model: index heads, head dimension, tokens kept a row, and who says so."""

    name: str
    heads: int
    head_dim: int
    index_topk: int
    source: str


_CONFIG = "config.json (index_n_heads, index_head_dim, index_topk), as public serving code quotes it"
_PROFILES = (
    Profile("deepseek-v3.2", 64, 128, 2048, f"deepseek-ai/DeepSeek-V3.2-Exp {_CONFIG}"),
    Profile("glm-5", 32, 128, 2048, f"GLM-5 (GlmMoeDsaForCausalLM) {_CONFIG}"),
    Profile("deepseek-v4-flash", 64, 128, 512, f"DeepSeek-V4-Flash (deepseek_v4) {_CONFIG}"),
    Profile("deepseek-v4-pro", 64, 128, 1024, f"DeepSeek-V4-Pro (deepseek_v4) {_CONFIG}"),
)
PROFILES: dict[str, Profile] = {profile.name: profile for profile in _PROFILES}


@dataclass(frozen=True)
class Case:
    """One problem: `m` query rows, `n` keys, `heads` x `head_dim`, and where the numbers come from.

    Captured inputs (matrix.py) have window and distribution "captured", the file's `path`, and as `seed` the first 32 bits of
    their digest. Raises ValueError for an unknown window or distribution and for sizes no kernel is asked to take.
    """

    window: str
    m: int
    n: int
    heads: int
    head_dim: int
    q_encoding: Encoding
    kv_encoding: Encoding
    distribution: str
    seed: int
    index_topk: int
    reason: str
    path: str = ""

    def __post_init__(self) -> None:
        if self.window not in tuple(WINDOWS):  # compares without hashing what JSON may hold
            raise ValueError(f"unknown window {self.window!r}; known: {', '.join(WINDOWS)}")
        if self.distribution not in tuple(DISTRIBUTIONS):
            raise ValueError(f"unknown distribution {self.distribution!r}; known: {', '.join(DISTRIBUTIONS)}")
        for name in ("q_encoding", "kv_encoding"):
            if not isinstance(getattr(self, name), Encoding):
                raise ValueError(f"{name} must be an Encoding, not {getattr(self, name)!r}")
        for name, least in (("m", 1), ("n", 1), ("heads", 1), ("head_dim", 1), ("seed", 0), ("index_topk", 1)):
            value = getattr(self, name)
            if type(value) is not int or value < least:  # bool is an int to isinstance
                raise ValueError(f"{name} must be an integer of {least} or more, not {value!r}")
        for name in ("heads", "head_dim"):
            if getattr(self, name) & (getattr(self, name) - 1):
                raise ValueError(f"{name} must be a power of two, not {getattr(self, name)}")
        if self.window == "packed" and min(self.m, self.n) < 2:
            raise ValueError("a packed batch holds at least two requests of one row and one key each")
        captured = self.distribution == "captured"
        if type(self.path) is not str or (self.window == "captured") is not captured or bool(self.path) is not captured:
            raise ValueError("captured inputs have window and distribution `captured` and a path, others none of these")
        if not isinstance(self.reason, str) or not self.reason.strip():
            raise ValueError("a case carries the reason it exists")

    @property
    def id(self) -> str:
        """Every axis of the inputs, in the form the reports and `pytest -k` use."""
        return (
            f"{self.window}-q{self.m}-k{self.n}-h{self.heads}-d{self.head_dim}"
            f"-{self.q_encoding.value}.{self.kv_encoding.value}-{self.distribution}-seed{self.seed}"
        )

    @property
    def topk(self) -> int:
        """Tokens a row keeps when judged. A model keeps everything below index_topk, which would compare nothing,
        so a short case keeps a quarter of its keys instead."""
        return self.index_topk if self.n > self.index_topk else max(1, self.n // 4)

    def to_json(self) -> dict[str, object]:
        """All fields as JSON values; `from_json` restores the equal case."""
        record: dict[str, object] = {field.name: getattr(self, field.name) for field in fields(self)}
        return record | {"q_encoding": self.q_encoding.value, "kv_encoding": self.kv_encoding.value}

    @staticmethod
    def from_json(record: dict[str, object]) -> Case:
        """The case of a `to_json` record. Raises ValueError for unknown, missing or wrong fields."""
        known = {field.name for field in fields(Case)}
        if set(record) != known:
            missing, unknown = sorted(known - set(record)), sorted(set(record) - known)
            raise ValueError(f"not a case record: missing {missing}, unknown {unknown}")
        encodings = {name: Encoding(record[name]) for name in ("q_encoding", "kv_encoding")}
        return Case(**(record | encodings))  # type: ignore[arg-type]  # __post_init__ checks every type
