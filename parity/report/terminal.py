# SPDX-License-Identifier: Apache-2.0
"""The gate in a terminal: one line a case while it runs, then the findings, the table's summary and the verdict. 100 columns."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from parity.cases import Case
from parity.checks import AGREEMENT, BOTH, KERNELS
from parity.evidence import Record
from parity.gate import Verdict, worst_ratios

HEADER = f"{'case':57} {'flydsl':>7} {'triton':>7} {'agree':>7} {'top-k':>6}  result"
_FINDINGS_SHOWN = 4  # of one record
_BLOCKS_SHOWN = 6  # of one run


def visible(text: str) -> str:
    """`text` with control characters shown as escapes: error texts of compilers and paths are not ours."""
    return "".join(char if char.isprintable() else repr(char)[1:-1] for char in text)


def case_line(case: Case, records: Sequence[Record]) -> str:
    """Error/budget of both kernels and of their difference, the smallest top-k overlap, and pass or what failed."""
    by_key = {(record.check, record.arm): record for record in records}
    figures = {key: record.figures for key, record in by_key.items()}  # a kernel that did not run has none
    ratios = [figures.get(key, {}) for key in (*(("reference", kernel) for kernel in KERNELS), (AGREEMENT, BOTH))]
    overlaps = [figures.get(("top-k", kernel), {}).get("overlap_min") for kernel in KERNELS]
    overlap = min((value for value in overlaps if value is not None), default=None)
    failed = [f"{record.arm} {record.check}" for record in records if record.status != "pass"]
    result = "pass" if not failed else _shorten(failed)
    cells = " ".join(f"{_bound(found) + _ratio(found.get('ratio')):>7}" for found in ratios)
    return f"{case.id:57} {cells} {_overlap(overlap):>6}  {result}"


def contract_text(records: Sequence[Record], refused: Sequence[Record], *, unused: Sequence[str] = ()) -> str:
    """How many rows of the contract there were, and the names of those in which the kernels differ: `refused` are those records that
    the policy does not accept, `unused` the names of rows in which it accepts a difference that was not there."""
    if not records:
        return "contract: not judged"
    differ = [record for record in records if record.status != "pass"]
    parts = [f"contract: {len(records)} rows" + ("" if differ else ", no difference")]
    for word, chosen in (("not accepted", refused), ("accepted", [one for one in differ if one not in refused])):
        if chosen:
            parts.append(
                f"{len(chosen)} differ and are {word}: "
                + " ".join(one.case.removeprefix("contract-") for one in chosen)
            )
    if unused:
        parts.append(f"{len(unused)} accepted by the policy without a difference: " + " ".join(unused))
    return textwrap.fill("; ".join(parts), 100, subsequent_indent="  ", break_on_hyphens=False)


def _bound(figures: Mapping[str, Any]) -> str:
    """A < before a ratio that is no more than an upper bound: of a large case, where a floor of the budget was enough."""
    return "<" if figures.get("floor") else ""


def _shorten(failed: list[str]) -> str:
    arms = list(dict.fromkeys(text.partition(" ")[0] for text in failed if "+" not in text))
    return "FAIL " + "+".join(arms or ["agreement"])


def _ratio(value: float | None) -> str:
    if value is None:
        return "-"
    return (
        f"{value:.2f}"
        if math.isfinite(value) and value < 1000
        else (f"{value:.0e}" if math.isfinite(value) else str(value))
    )


def _overlap(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def failure_text(record: Record, again: str) -> str:
    """A failed record as text: who, where, what, the worst elements, and the command that repeats it."""
    lines = [f"{record.arm} ({record.source}) / {record.case} / {record.where}: {record.findings[0].text}"]
    lines += [f"  {finding.text}" for finding in record.findings[1:_FINDINGS_SHOWN]]
    if len(record.findings) > _FINDINGS_SHOWN:
        lines.append(f"  and {len(record.findings) - _FINDINGS_SHOWN} more findings")
    lines.append(f"  again: {again}")
    return "\n".join(visible(line) for line in lines)


def failures_text(records: Iterable[Record], again: Mapping[str, str]) -> str:
    """The failed records that tell something new, at most _BLOCKS_SHOWN; the evidence file has them all.

    Told once: what fails alike in every check or case of an arm (a compile error), and a disagreement of the two kernels where one of
    them already differs from the reference.
    """
    failed = [record for record in records if record.status != "pass"]
    guilty = {record.case for record in failed if record.check != AGREEMENT}
    telling: dict[tuple[str, str, str], Record] = {}
    for record in failed:
        if record.check != AGREEMENT or record.case not in guilty:
            alike = record.case if record.figures else ""  # without figures there were no logits: an error of the arm
            telling.setdefault((record.arm, alike, record.findings[0].text), record)
    blocks = [failure_text(record, again[record.case]) for record in telling.values()]
    if len(blocks) > _BLOCKS_SHOWN:
        blocks[_BLOCKS_SHOWN:] = [
            f"and {len(blocks) - _BLOCKS_SHOWN} more of the {len(failed)} failed records in the evidence"
        ]
    return "\n\n".join(blocks)


def verdict_text(records: Sequence[Record], verdict: Verdict, evidence: str) -> str:
    """Largest ratios, what is and is not covered, where the evidence lies; the verdict is the last line."""
    worst = worst_ratios(records)
    ratios = ", ".join(
        f"{name} {_ratio(None if math.isnan(worst[name]) else worst[name])}" for name in (*KERNELS, BOTH)
    )
    lines = [
        f"largest error/budget: {ratios} (a correct kernel stays at or under 1; flydsl+triton: their difference)",
        f"not covered: {verdict.not_covered}",
        f"evidence: {evidence} ({len(records)} records)",
        verdict.line(),
    ]
    return "\n".join(visible(line) for line in lines)
