# SPDX-License-Identifier: Apache-2.0
"""fixtures/coverage.json is whole, the decoder still knows all of it, and the executor's README shows it."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from parity.gfx942 import decode
from tests.coverage_table import FIXTURE, README, render

RESULTS = {
    "ran",
    "refused",
    "unsupported",
    "kernel-fault",
    "differs",
    "compile-error",
    "wrapper-error",
    "no-launch",
    "crash",
}


@pytest.fixture(scope="module")
def coverage() -> dict[str, Any]:
    return json.loads(FIXTURE.read_text())


def test_every_variant_belongs_to_a_kernel_and_says_how_it_ended(coverage: dict[str, Any]) -> None:
    assert set(coverage) == {"kernels", "forms", "variants"}
    kernels = {kernel["kernel"] for kernel in coverage["kernels"]}
    assert len(kernels) == len(coverage["kernels"])
    assert {variant["kernel"] for variant in coverage["variants"]} == kernels
    for variant in coverage["variants"]:
        assert variant["result"] in RESULTS
        assert (variant["result"] == "ran") == (variant["why"] == "")
        assert int(variant["forms"], 16) < 1 << len(coverage["forms"])
        if variant["result"] == "ran":
            assert 0 <= variant["ratio"] <= 1 and variant["instructions"] > 0 and len(variant["code"]) == 16


def test_no_variant_is_listed_twice(coverage: dict[str, Any]) -> None:
    axes = ("kernel", "tile", "m", "n", "heads", "head_dim", "pair", "window")
    seen = [tuple(variant[axis] for axis in axes) for variant in coverage["variants"]]
    assert len(seen) == len(set(seen))


def test_the_decoder_has_every_mnemonic(coverage: dict[str, Any]) -> None:
    inner = {name for family in ("VOP1", "VOP2", "VOPC") for name in decode._TABLES[family].values()}
    for name, format_name, _ in coverage["forms"]:
        family = format_name.removesuffix("-SDWA").removesuffix("-DPP")
        known = set(decode.opcodes.VOP3.values()) | inner if family == "VOP3" else set(decode._TABLES[family].values())
        assert name in known, f"{name} [{format_name}]"


def test_every_instruction_reassembles(coverage: dict[str, Any]) -> None:
    for kernel in coverage["kernels"]:
        assert kernel["same"] == kernel["distinct"] > 0, kernel["kernel"]


def test_the_readme_shows_it(coverage: dict[str, Any]) -> None:
    shown = re.search(r"<!-- coverage -->\n(.*)<!-- /coverage -->", README.read_text(), re.DOTALL)
    assert shown is not None
    assert shown[1] == render(coverage)
