# SPDX-License-Identifier: Apache-2.0
"""The judgement of a case's logits, block of rows by block of rows, put together again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from parity.cases import Case
from parity.compare import Comparison, Finding, compare, merge
from parity.oracle import Expected, Oracle, beyond
from parity.selector import judge_selection
from parity.topk import TopK, judged_ks, top_k_agreement
from parity.topk import merge as merge_top_k


@dataclass(frozen=True)
class KernelRows:
    """All rows of one kernel: against the reference, and its top-k for each k that is judged, the case's own first.

    `selector`: what is wrong with the tokens that a selector took from these logits. `floor`: the ratio is of the error to a floor of the budget where that was enough, so it is an upper bound."""

    comparison: Comparison
    top_k: tuple[TopK, ...]
    selector: tuple[Finding, ...]
    floor: bool

    @property
    def top_k_findings(self) -> tuple[Finding, ...]:
        return tuple(finding for top_k in self.top_k for finding in top_k.findings)

    @property
    def top_k_figures(self) -> dict[str, Any]:
        """Figures at the case's own k, and under `others` those at the other ones."""
        own, *others = (top_k.figures() for top_k in self.top_k)
        return own | ({"others": others} if others else {})


@dataclass(frozen=True)
class AgreementRows:
    """All rows of one kernel against the other; comparison None where the baseline's -inf are not where they belong. `equal_bits`:
    share of the logits inside the window that are the same float32; `floor` as in KernelRows."""

    comparison: Comparison | None = None
    equal_bits: float = 1.0
    floor: bool = False


@dataclass
class _Parts:
    """What the blocks gave so far."""

    compared: dict[str, list[Comparison]] = field(default_factory=dict)
    top_k: dict[tuple[str, int], list[TopK]] = field(default_factory=dict)
    selector: dict[str, list[Finding]] = field(default_factory=dict)
    agreed: list[Comparison] = field(default_factory=list)
    equal: int = 0
    baseline_wrong: bool = False


def judge_rows(
    case: Case, oracle: Oracle, outputs: Mapping[str, torch.Tensor], selected: Mapping[str, torch.Tensor]
) -> tuple[dict[str, KernelRows], AgreementRows]:
    """Judge each kernel's logits, float32 [M,N] on any device (a memory-mapped file is read a block at a time), the tokens
    selected from them, int [M,k], and with both kernels their agreement."""
    parts = _Parts()
    ks = judged_ks(case)
    for expected in oracle.blocks():
        blocks = {kernel: logits[expected.rows].to(oracle.device) for kernel, logits in outputs.items()}
        expected = refined_for(oracle, expected, blocks)
        for kernel, logits in blocks.items():
            part = compare(logits, expected.logits, expected.budget, first_row=expected.rows.start)
            parts.compared.setdefault(kernel, []).append(part)
            for k, result in zip(ks, _top_k(oracle, expected, logits, ks, clean=not part.findings), strict=True):
                parts.top_k.setdefault((kernel, k), []).append(result)
            parts.selector.setdefault(kernel, []).extend(
                _selector(case, oracle, expected, logits, selected.get(kernel))
            )
        if len(blocks) == 2:
            _agree(parts, expected, blocks)
    floor = not oracle.computes_all
    kernels = {
        kernel: KernelRows(
            merge(compared),
            tuple(merge_top_k(parts.top_k[kernel, k]) for k in ks),
            tuple(parts.selector[kernel]),
            floor,
        )
        for kernel, compared in parts.compared.items()
    }
    if len(outputs) < 2 or parts.baseline_wrong:
        return kernels, AgreementRows()
    comparison = merge(parts.agreed)
    return kernels, AgreementRows(comparison, parts.equal / max(1, comparison.elements), floor)


def refined_for(oracle: Oracle, expected: Expected, blocks: Mapping[str, torch.Tensor]) -> Expected:
    """The budget itself wherever a kernel, or the kernels from each other, are further than its floor."""
    if expected.exact:
        return expected
    suspects = [beyond(logits, expected.logits, expected.budget) for logits in blocks.values()]
    if len(blocks) == 2:
        suspects.append(beyond(blocks["flydsl"], blocks["triton"].double(), 2 * expected.budget))
    found = [mask for mask in suspects if mask is not None]
    return oracle.refined(expected, torch.stack(found).any(dim=0)) if found else expected


def _top_k(oracle: Oracle, expected: Expected, logits: torch.Tensor, ks: Sequence[int], *, clean: bool) -> list[TopK]:
    """top_k_agreement at each k; where only a floor of the budget does not explain a loss, with the budget itself."""
    starts, ends = oracle.inputs.starts[expected.rows], oracle.inputs.ends[expected.rows]
    results = []
    for k in ks:
        results.append(
            top_k_agreement(logits, expected.logits, expected.budget, starts, ends, k, first_row=expected.rows.start)
        )
        if results[-1].findings and clean and not expected.exact:  # a kernel that is wrong anyway needs no second look
            near = _near_the_kth(logits, expected, k)
            finer = oracle.refined(expected, near)
            results[-1] = top_k_agreement(
                logits, finer.logits, finer.budget, starts, ends, k, first_row=expected.rows.start
            )
    return results


def _selector(
    case: Case, oracle: Oracle, expected: Expected, logits: torch.Tensor, selected: torch.Tensor | None
) -> tuple[Finding, ...]:
    if selected is None:
        return (Finding("selector", None, None, None, None, "selector: the arm selected nothing"),)
    starts, ends = oracle.inputs.starts[expected.rows], oracle.inputs.ends[expected.rows]
    chosen = selected[expected.rows]
    return judge_selection(chosen, logits, starts, ends, case.topk, first_row=expected.rows.start)


def _near_the_kth(logits: torch.Tensor, expected: Expected, k: int) -> torch.Tensor:
    """bool [R,N]: every token that can have changed sides, being within two errors of the k-th value of its row."""
    error = torch.where(torch.isfinite(expected.logits), logits.double() - expected.logits, 0.0).abs().amax(dim=1)
    kth = torch.topk(expected.logits, k, dim=1).values[:, -1]
    return (expected.logits - kth[:, None]).abs() <= 2 * error[:, None]


def _agree(parts: _Parts, expected: Expected, blocks: Mapping[str, torch.Tensor]) -> None:
    inside = torch.isfinite(expected.logits)
    baseline = blocks["triton"].double()
    if not torch.equal(torch.isfinite(baseline), inside) or not torch.equal(torch.isneginf(baseline), ~inside):
        parts.baseline_wrong = True
        return
    parts.agreed.append(compare(blocks["flydsl"], baseline, 2 * expected.budget, first_row=expected.rows.start))
    bits = blocks["flydsl"].view(torch.int32) == blocks["triton"].view(torch.int32)
    parts.equal += int((bits & inside).sum())
