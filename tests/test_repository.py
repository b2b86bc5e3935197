# SPDX-License-Identifier: Apache-2.0
"""The repository's own promises: licence lines, stories, and that README, tox and CI run the same commands."""

from __future__ import annotations

import ast
import importlib.resources
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
SOURCES = sorted(path for top in ("parity", "needles", "tests") for path in (ROOT / top).rglob("*.py"))
TESTS = "python3 -m pip install tox && python3 -m tox run -e tests"
GATE = "python3 -m pip install tox && python3 -m tox run -e gate"


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_each_file_has_its_licence_and_says_what_it_is(path: Path) -> None:
    text = path.read_text()
    assert text.startswith("# SPDX-License-Identifier: Apache-2.0\n")
    assert ast.get_docstring(ast.parse(text))


def test_the_top_level_is_as_agreed() -> None:
    wanted = {
        "parity",
        "needles",
        "tests",
        "fixtures",
        "conftest.py",
        "pyproject.toml",
        "tox.ini",
        "README.md",
        "LICENSE",
        "CONTRIBUTING.md",
        ".ci",
    }
    assert wanted <= {path.name for path in ROOT.iterdir()}


def test_readme_and_ci_run_the_same_test_command() -> None:
    readme = (ROOT / "README.md").read_text()
    assert TESTS in readme
    assert GATE in readme
    assert TESTS in (ROOT / ".ci/run").read_text()


def test_what_a_wheel_needs_beside_python_is_in_the_package() -> None:
    assert "mfma_f8" in importlib.resources.files("parity.gfx942").joinpath("engine/matrix.c").read_text()


def test_needles_uses_evidence_and_gate_alone() -> None:
    for path in (ROOT / "needles").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("parity"):
                assert node.module in ("parity.evidence", "parity.gate")


def test_the_executor_knows_nothing_of_logits() -> None:
    for path in (ROOT / "parity/gfx942").glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("parity"):
                assert str(node.module).startswith("parity.gfx942")
