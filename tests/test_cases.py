# SPDX-License-Identifier: Apache-2.0
"""Cases: ids, refusals, JSON round trip, and what the quick dozen covers."""

from __future__ import annotations

import dataclasses
import json

import pytest

from parity.cases import PROFILES, Case
from parity.fp8 import Encoding
from parity.matrix import quick_cases

CASE = Case("causal", 17, 76, 64, 128, Encoding.FN, Encoding.FNUZ, "gaussian", 0, 2048, "as in the design note")


def test_id_spells_every_axis_of_the_inputs() -> None:
    assert CASE.id == "causal-q17-k76-h64-d128-fn.fnuz-gaussian-seed0"
    axes = [field.name for field in dataclasses.fields(Case) if field.name not in ("index_topk", "reason", "path")]
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


def test_a_path_belongs_to_captured_inputs_alone() -> None:
    captured = dataclasses.replace(CASE, window="captured", distribution="captured", path="/a/file")
    assert captured.id == "captured-q17-k76-h64-d128-fn.fnuz-captured-seed0"
    assert Case.from_json(captured.to_json()) == captured
    for change in ({"path": ""}, {"window": "full"}, {"distribution": "gaussian"}, {"path": 3}):
        with pytest.raises(ValueError, match="captured"):
            dataclasses.replace(captured, **change)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="captured"):
        dataclasses.replace(CASE, path="/a/file")
