# SPDX-License-Identifier: Apache-2.0
"""fixtures/coverage.json: what tests/kernel_coverage.py found, and the same as Markdown.

    {"kernels": [{"kernel": "aiter v0.1.18 flydsl", "compiler": .., "distinct": .., "same": ..}, ..],
     "forms": [[mnemonic, format, modifiers], ..],
     "variants": [{"kernel", "tile", "m", "n", "heads", "head_dim", "pair", "window", "result", "why", "ratio", "instructions", "code",
                   "forms": hexadecimal, bit i set: forms[i] occurs}, ..]}

distinct: different instructions in all variants; same: those whose text assembles to the same bytes. code: the first 16 digits of the
code object's SHA-256. ratio: largest error as a part of the budget.

    python -m tests.coverage_table      renews the section of parity/gfx942/README.md between <!-- coverage --> and <!-- /coverage -->
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from tests.coverage_reassembly import Reassembly

FIXTURE = Path(__file__).resolve().parent.parent / "fixtures/coverage.json"
README = FIXTURE.parent.parent / "parity/gfx942/README.md"
HOST_ADDRESS = re.compile(r", address 0x[0-9a-f]{9,}")  # another one in every run
KEPT = ("tile", "m", "n", "heads", "head_dim", "pair", "window", "result", "why", "ratio", "instructions")


def write_coverage(
    records: Sequence[dict[str, Any]], reassembled: dict[str, Reassembly], *, path: Path = FIXTURE
) -> None:
    """records: one of each variant, as tests.kernel_coverage_run writes them. One line a variant, so that a diff reads."""
    forms = sorted({tuple(form) for record in records for form in record["forms"]})
    place = {form: number for number, form in enumerate(forms)}
    variants = []
    for record in records:
        bits = sum(1 << place[tuple(form)] for form in record["forms"])
        code = record["sha256"][0][:16] if record["sha256"] else ""
        kept = {name: record[name] for name in KEPT if name in record}
        kept["why"] = HOST_ADDRESS.sub("", kept["why"])
        variants.append(
            {"kernel": f"{record['source']} {record['kernel']}"} | kept | {"code": code, "forms": f"{bits:x}"}
        )
    parts = {"kernels": _kernels(records, reassembled), "forms": forms, "variants": variants}
    lines = [
        f' "{name}": [\n' + ",\n".join(f"  {json.dumps(row)}" for row in rows) + "\n ]" for name, rows in parts.items()
    ]
    path.write_text("{\n" + ",\n".join(lines) + "\n}\n")


def _kernels(records: Sequence[dict[str, Any]], reassembled: dict[str, Reassembly]) -> list[dict[str, Any]]:
    found = []
    for name, again in reassembled.items():
        own = [record for record in records if f"{record['source']} {record['kernel']}" == name]
        compiler = next(record["compiler"] for record in own if record["compiler"])
        found.append(
            {
                "kernel": name,
                "compiler": f"{own[0]['kernel']} {compiler}",
                "distinct": again.distinct,
                "same": again.same,
            }
        )
    return found


def mnemonics(coverage: dict[str, Any], variants: Iterable[dict[str, Any]]) -> set[tuple[str, str]]:
    """(format, mnemonic) of all instructions in these variants."""
    bits = 0
    for variant in variants:
        bits |= int(variant["forms"], 16)
    return {(form[1], form[0]) for number, form in enumerate(coverage["forms"]) if bits >> number & 1}


def render(coverage: dict[str, Any]) -> str:
    """Two tables in Markdown: what was tried and ran; which instructions it takes."""
    return f"{_kernel_table(coverage)}\n\n{_problem_list(coverage)}\n\n{_mnemonic_table(coverage)}\n"


def _kernel_table(coverage: dict[str, Any]) -> str:
    lines = ["| kernel | compiler | variants | ran | code objects | mnemonics | distinct instructions | reassembles |",
             "|---|---|---:|---:|---:|---:|---:|---:|"]  # fmt: skip
    for kernel in coverage["kernels"]:
        own = [variant for variant in coverage["variants"] if variant["kernel"] == kernel["kernel"]]
        ran = sum(variant["result"] == "ran" for variant in own)
        codes = len({variant["code"] for variant in own} - {""})
        names = len({name for _, name in mnemonics(coverage, own)})
        cells = [kernel["kernel"], kernel["compiler"], len(own), ran, codes, names, kernel["distinct"], kernel["same"]]
        lines.append("| " + " | ".join(str(cell) for cell in cells) + " |")
    return "\n".join(lines)


def _problem_list(coverage: dict[str, Any]) -> str:
    """Every kind of result that is not "ran", once a kernel: how often, and the first reason."""
    lines = []
    for kernel in coverage["kernels"]:
        own = [variant for variant in coverage["variants"] if variant["kernel"] == kernel["kernel"]]
        for result, count in sorted(Counter(variant["result"] for variant in own).items()):
            if result != "ran":
                first = next(variant for variant in own if variant["result"] == result)
                shape = f"H {first['heads']}, D {first['head_dim']}, M {first['m']}, q.kv {first['pair']}, tile {first['tile']}"
                lines.append(f"- {kernel['kernel']}: {count} {result}; the first ({shape}): {first['why']}")
    return "\n".join(lines) or "Every variant ran."


def _mnemonic_table(coverage: dict[str, Any]) -> str:
    needed: Counter[tuple[str, str]] = Counter()
    for variant in coverage["variants"]:
        needed.update(mnemonics(coverage, [variant]))
    lines = ["| format | mnemonics (variants that need them) |", "|---|---|"]
    for format_name in sorted({format_name for format_name, _ in needed}):
        names = sorted((name, count) for (own, name), count in needed.items() if own == format_name)
        lines.append(f"| {format_name} | " + ", ".join(f"{name} ({count})" for name, count in names) + " |")
    return "\n".join(lines)


def main() -> None:
    """See the module's docstring."""
    before, start, rest = README.read_text().partition("<!-- coverage -->\n")
    _, end, after = rest.partition("<!-- /coverage -->")
    if not end:
        raise SystemExit(f"{README} has no <!-- coverage --> and <!-- /coverage -->")
    README.write_text(before + start + render(json.loads(FIXTURE.read_text())) + end + after)


if __name__ == "__main__":
    main()
