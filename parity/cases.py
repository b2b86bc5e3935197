# SPDX-License-Identifier: Apache-2.0
"""Cases: frozen descriptions of one logits problem, the model profiles behind them, and the quick dozen.

A case says which inputs to build (`parity.inputs`) and nothing about how a kernel is run or judged. Its id spells
every axis that changes the inputs; `index_topk` only changes how they are judged, and `reason` nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

from parity.fp8 import Encoding

WINDOWS: dict[str, str] = {
    "causal": "row i ends at n-m+1+i; with m > n the first rows are empty and their ends zero or negative",
    "packed": "ragged requests share one batch: a row starts at its request's base and is causal within it",
    "context-parallel": "rows of a longer causal problem dealt zigzag to this rank, so the ends jump",
    "misaligned": "starts straddle the tiles of 64 and 128; every other row reaches the last column",
    "empty": "start == end, end < start, negative end, start >= n, end > n, with normal rows between",
    "full": "every row sees every column",
}

DISTRIBUTIONS: dict[str, str] = {
    "gaussian": "normal Q and K, each vector quantised by its largest magnitude as production quantisers do",
    "scales": "as gaussian, with kv_scales log-uniform over 1e-3..1e1 and different at every token",
    "outlier": "as gaussian, with a few channels thirty times larger before quantisation",
    "bytes": "uniform finite bytes: every magnitude, sign, subnormal and, for fn, minus zero",
}


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

    Raises ValueError for an unknown window or distribution and for sizes no kernel is asked to take.
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


def _case(
    profile: str, window: str, m: int, n: int, pair: str, distribution: str, reason: str, *, seed: int = 0
) -> Case:
    sizes = PROFILES[profile]
    q_encoding, kv_encoding = (Encoding(name) for name in pair.split("."))
    return Case(
        window, m, n, sizes.heads, sizes.head_dim, q_encoding, kv_encoding, distribution, seed, sizes.index_topk, reason
    )


def quick_cases() -> tuple[Case, ...]:
    """The dozen that an executor interprets in minutes: each dtype pair with 32 and with 64 heads, every window,
    every distribution. Under 120,000 16x16x32 MFMA in all."""
    cases = (
        _case(
            "deepseek-v3.2",
            "causal",
            17,
            76,
            "fn.fnuz",
            "gaussian",
            "Odd M under two query rows a block, K below one tile, and the mixed pair seen in production.",
        ),
        _case(
            "deepseek-v4-flash",
            "causal",
            4,
            1100,
            "fnuz.fnuz",
            "gaussian",
            "The control pair, with more keys than the 512 that this model keeps, so the top-k really selects.",
        ),
        _case(
            "glm-5",
            "causal",
            3,
            2300,
            "fn.fn",
            "gaussian",
            "More keys than the 2,048 this model keeps, both operands through the byte patch.",
        ),
        _case(
            "glm-5",
            "full",
            2,
            4224,
            "fnuz.fnuz",
            "gaussian",
            "Past 4,096 keys a small row grid splits KV over the grid's second dimension.",
        ),
        _case(
            "deepseek-v3.2",
            "packed",
            13,
            300,
            "fn.fn",
            "gaussian",
            "Ragged requests: top-k indices are relative to bases that no tile boundary shares.",
        ),
        _case(
            "glm-5",
            "packed",
            7,
            383,
            "fnuz.fn",
            "scales",
            "One key short of three tiles of 128; a scale read one token off changes every logit.",
        ),
        _case(
            "deepseek-v3.2",
            "context-parallel",
            8,
            257,
            "fnuz.fn",
            "gaussian",
            "One key past 256, the output's row rounding, with neighbouring rows of very different length.",
        ),
        _case(
            "glm-5",
            "context-parallel",
            11,
            200,
            "fn.fnuz",
            "outlier",
            "Outlier channels spread the product exponents until the MFMA truncates.",
        ),
        _case(
            "deepseek-v3.2",
            "misaligned",
            14,
            255,
            "fn.fn",
            "bytes",
            "Any byte a quantiser can emit, minus zero among them, under starts that cut tiles.",
        ),
        _case(
            "glm-5",
            "misaligned",
            9,
            300,
            "fn.fn",
            "gaussian",
            "Starts of 1, 63..65 and 127..129 with the last column in view, which upstream's tests never reach.",
        ),
        _case(
            "deepseek-v3.2",
            "empty",
            16,
            130,
            "fnuz.fnuz",
            "scales",
            "Windows that hold nothing beside normal rows: a block of two rows must not share one row's bounds.",
        ),
        _case(
            "glm-5", "full", 1, 129, "fnuz.fn", "gaussian", "A single decode row, one key past a tile of 128.", seed=1
        ),
    )
    repeated = {case.id for case in cases if sum(other.id == case.id for other in cases) > 1}
    if repeated:
        raise ValueError(f"ids are not unique: {sorted(repeated)}")
    return cases
