# SPDX-License-Identifier: Apache-2.0
"""Cases: ids, refusals, JSON round trip, and what the quick dozen covers."""

from __future__ import annotations

import dataclasses
import json
import math

import pytest

from parity.cases import DISTRIBUTIONS, PROFILES, WINDOWS, Case, quick_cases
from parity.fp8 import Encoding

CASE = Case("causal", 17, 76, 64, 128, Encoding.FN, Encoding.FNUZ, "gaussian", 0, 2048, "as in the design note")


def mfma_count(case: Case) -> int:
    """16x16x32 MFMA instructions that a kernel needs for the case."""
    return case.m * math.ceil(case.n / 16) * (case.heads // 16) * (case.head_dim // 32)


def test_id_spells_every_axis_of_the_inputs() -> None:
    assert CASE.id == "causal-q17-k76-h64-d128-fn.fnuz-gaussian-seed0"
    axes = [field.name for field in dataclasses.fields(Case) if field.name not in ("index_topk", "reason")]
    changed = {
        "window": "full",
        "m": 18,
        "n": 77,
        "heads": 32,
        "head_dim": 64,
        "q_encoding": Encoding.FNUZ,
        "kv_encoding": Encoding.FN,
        "distribution": "bytes",
        "seed": 1,
    }
    assert sorted(changed) == sorted(axes)
    ids = {dataclasses.replace(CASE, **{name: value}).id for name, value in changed.items()}  # type: ignore[arg-type]
    assert len(ids | {CASE.id}) == len(axes) + 1


@pytest.mark.parametrize(("n", "index_topk", "kept"), [(76, 2048, 19), (3, 512, 1), (512, 512, 128), (513, 512, 512)])
def test_topk_of_short_and_long_cases(n: int, index_topk: int, kept: int) -> None:
    assert dataclasses.replace(CASE, n=n, index_topk=index_topk).topk == kept


@pytest.mark.parametrize(
    "change",
    [
        {"window": "sliding"},
        {"window": ["causal"]},
        {"distribution": "uniform"},
        {"m": 0},
        {"n": 0},
        {"n": 7.0},
        {"m": True},
        {"heads": 48},
        {"heads": 0},
        {"head_dim": 96},
        {"seed": -1},
        {"index_topk": 0},
        {"reason": " "},
        {"q_encoding": "fn"},
        {"window": "packed", "m": 1},
    ],
    ids=str,
)
def test_refuses(change: dict[str, object]) -> None:
    with pytest.raises(ValueError):
        dataclasses.replace(CASE, **change)  # type: ignore[arg-type]


@pytest.mark.parametrize("case", quick_cases(), ids=lambda case: case.id)
def test_json_round_trip_through_text(case: Case) -> None:
    assert Case.from_json(json.loads(json.dumps(case.to_json()))) == case


def test_json_refuses_unknown_missing_and_wrong_fields() -> None:
    record = CASE.to_json()
    with pytest.raises(ValueError, match=r"unknown \['block'\]"):
        Case.from_json(record | {"block": 1})
    with pytest.raises(ValueError, match=r"missing \['seed'\]"):
        Case.from_json({name: value for name, value in record.items() if name != "seed"})
    for change in ({"q_encoding": "e5m2"}, {"m": "17"}, {"window": None}, {"reason": 3}):
        with pytest.raises(ValueError):
            Case.from_json(record | change)


def test_profiles() -> None:
    sizes = {name: (p.heads, p.head_dim, p.index_topk) for name, p in PROFILES.items()}
    assert sizes == {
        "deepseek-v3.2": (64, 128, 2048),
        "glm-5": (32, 128, 2048),
        "deepseek-v4-flash": (64, 128, 512),
        "deepseek-v4-pro": (64, 128, 1024),
    }
    assert all(profile.name == name and profile.source for name, profile in PROFILES.items())


def test_quick_cases_cover_what_they_promise() -> None:
    cases = quick_cases()
    assert len({case.id for case in cases}) == len(cases) == 12
    pairs = {(case.heads, case.q_encoding, case.kv_encoding) for case in cases}
    assert pairs == {(heads, q, kv) for heads in (32, 64) for q in Encoding for kv in Encoding}
    assert {case.window for case in cases} == set(WINDOWS)
    assert {case.distribution for case in cases} == set(DISTRIBUTIONS)
    assert {case.head_dim for case in cases} == {128}
    assert any(case.n > case.index_topk == 512 for case in cases)
    assert any(case.n > case.index_topk == 2048 for case in cases)
    assert any(case.n > 4096 for case in cases)
    assert sum(case.m % 2 for case in cases) >= 3
    assert all(len(case.reason) > 20 for case in cases)


def test_quick_cases_stay_cheap_for_an_executor() -> None:
    assert sum(mfma_count(case) for case in quick_cases()) < 120_000
