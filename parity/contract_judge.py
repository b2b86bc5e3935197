# SPDX-License-Identifier: Apache-2.0
"""The contract judged: one evidence record for each row, from what both kernels did with the same call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import torch

from parity.arm import Arm, Observation
from parity.bits import bitwise_equal
from parity.budget import error_budget
from parity.checks import BOTH, KERNELS, UNKNOWN
from parity.compare import Finding, compare, number
from parity.contract import Row
from parity.contract_inputs import row_inputs
from parity.evidence import Record
from parity.inputs import Inputs
from parity.launchers.record import STREAM
from parity.reference import reference_logits

CHECK = "contract"
_FAULTS = ("kernel-fault", "unwritten", "input-modified", "crash")
_CLOSE = 1e-5  # of a row's largest logit: two kernels on values that no budget covers, such as weights in another dtype


@dataclass(frozen=True)
class Outcome:
    """What one kernel did, as it is compared: `kind` is right, logits (no reference judges them), wrong, error, fault or unknown (says
    nothing about the kernel); `text` is one line. `illegal`: wrong whatever the other kernel does."""

    kind: str
    text: str
    illegal: bool = False


def judge_row(row: Row, arms: Mapping[str, Arm]) -> Record:
    """Call both kernels as the row says, at the same time, and judge."""
    inputs = row_inputs(row)
    with ThreadPoolExecutor(len(arms)) as pool:
        seen = dict(zip(arms, pool.map(lambda arm: arm.call_contract(row, inputs), arms.values()), strict=True))
    findings, outcomes = findings_of(row, inputs, seen)
    unknown = [name for name, outcome in outcomes.items() if outcome.kind == "unknown"]
    arm = arms["flydsl"]
    return Record(
        check=CHECK, case=row.case, arm=BOTH, source=arm.source.label, where=arm.provenance.get("where", arm.device.kind),
        status="unsupported" if unknown else "fail" if findings else "pass", findings=findings,
        figures={name: f"{outcome.kind}: {outcome.text}" for name, outcome in outcomes.items()}, case_axes=row.to_json(),
        inputs_sha256=inputs.sha256,
        provenance=arm.provenance | {"revision": arm.source.revision, "flydsl_pin": arm.source.flydsl},
    )  # fmt: skip


def findings_of(
    row: Row, inputs: Inputs, seen: Mapping[str, Observation]
) -> tuple[tuple[Finding, ...], dict[str, Outcome]]:
    """The findings of a row and each kernel's outcome."""
    outcomes = {kernel: outcome_of(row, inputs, seen[kernel]) for kernel in KERNELS}
    flydsl, triton = (outcomes[kernel] for kernel in KERNELS)
    # The baseline is what callers got so far; say so where it is the broken one.
    legal = row.judged != "refusal"
    broken = legal and triton.kind in ("wrong", "error", "fault")
    baseline = "baseline error: " if broken else ""
    # Where one does what is wrong whatever the other does, each is told for itself, else how they differ.
    apart = any(outcome.illegal or outcome.kind == "unknown" for outcome in outcomes.values())
    texts = [
        f"{baseline if kernel == 'triton' else ''}{kernel}: {outcome.text}"
        for kernel, outcome in outcomes.items()
        if outcome.illegal or outcome.kind == "unknown" or (apart and legal and outcome.kind in ("wrong", "error"))
    ]
    # An illegal call that flydsl refuses and triton lets read past its arguments is no loss.
    refused = row.judged == "refusal" and (flydsl.kind, triton.kind) == ("error", "fault")
    if not texts and (broken or flydsl.kind != triton.kind) and not refused:
        texts.append(f"{baseline}flydsl {flydsl.text}; triton {triton.text}")
    elif not texts and not refused:
        texts += _differences(row, seen["flydsl"], seen["triton"], flydsl.kind)
    size = "x".join(map(str, (*inputs.q.shape[:1], inputs.kv.shape[0], *inputs.q.shape[1:])))
    return (
        tuple(
            Finding(CHECK, None, None, None, None, f"contract {row.name} ({row.promise}; MxNxHxD {size}): {text}")
            for text in texts
        ),
        outcomes,
    )


def outcome_of(row: Row, inputs: Inputs, seen: Observation) -> Outcome:
    """What one kernel did with the call."""
    kind, text = seen.error
    legal = row.judged != "refusal"
    if kind in UNKNOWN and kind != "no-launch":
        return Outcome("unknown", f"{kind}: {text}")
    if kind:
        fault = kind in _FAULTS
        return Outcome("fault" if fault else "error", f"{kind}: {text}", illegal=legal and fault)
    if seen.signature:
        return Outcome("right", " ".join(name for name, _, _ in seen.signature))
    if seen.modified:
        return Outcome("fault", f"input-modified: the memory of {seen.modified} was changed", illegal=True)
    steady = next((found for other in seen.outputs[1:] for found in _unsteady(row, inputs, seen.outputs[0], other)), "")
    if steady:
        return Outcome("fault", steady, illegal=legal)
    if seen.shared:
        return Outcome("fault", f"gives a result that lies in the memory of {seen.shared}", illegal=True)
    wanted = seen.wanted or STREAM
    if elsewhere := set(seen.streams) - {wanted}:
        place = "the one given" if seen.wanted else "the current one"
        return Outcome("wrong", f"launched on stream {min(elsewhere):#x}, not on {place}", illegal=legal)
    if row.judged != "valid":
        return Outcome("logits", f"gives {seen.form}")
    return _against_reference(row, inputs, seen)


def _unsteady(row: Row, inputs: Inputs, first: Any, other: Any) -> list[str]:
    """How a later call differs from the first, where both should be the same."""
    if (
        not isinstance(first, torch.Tensor)
        or first.shape != other.shape
        or first.dtype not in (torch.float32, torch.float64)
    ):
        return []
    if first.shape == (inputs.q.shape[0], inputs.kv.shape[0]) and row.options.get("clean_logits") is False:
        first, other = (_inside(inputs, part) for part in (first, other))
    return [finding.text for finding in bitwise_equal(first, other)]


def _inside(inputs: Inputs, logits: torch.Tensor) -> torch.Tensor:
    """The logits with -inf outside the window, where an unclean result may hold anything."""
    column = torch.arange(logits.shape[1])
    outside = (column < inputs.starts[:, None]) | (column >= inputs.ends[:, None])
    return torch.where(outside, -torch.inf, logits)


def _against_reference(row: Row, inputs: Inputs, seen: Observation) -> Outcome:
    logits = seen.outputs[0]
    empty = "no-rows" in row.changes or "no-keys" in row.changes
    if empty:
        shape = [
            0 if "no-rows" in row.changes else inputs.q.shape[0],
            0 if "no-keys" in row.changes else inputs.kv.shape[0],
        ]
        right = isinstance(logits, torch.Tensor) and list(logits.shape) == shape and logits.dtype == torch.float32
        return Outcome("right" if right else "wrong", f"gives {seen.form}")
    expected, budget = reference_logits(inputs), error_budget(inputs)
    if not isinstance(logits, torch.Tensor):
        return Outcome("wrong", f"gives {seen.form}")
    if logits.shape == expected.shape and row.options.get("clean_logits") is False:
        logits = _inside(inputs, logits)
    unwritten = seen.unwritten
    if (
        unwritten is not None
        and unwritten.shape == expected.shape
        and (unwritten.bool() & torch.isfinite(expected)).any()
    ):
        return Outcome("fault", "unwritten: logits inside the window were never written", illegal=True)
    findings = compare(logits, expected, budget).findings
    if findings:
        return Outcome("wrong", "gives wrong logits: " + "; ".join(finding.text for finding in findings[:2]))
    return Outcome("right", "gives the right logits")


def _differences(row: Row, flydsl: Observation, triton: Observation, kind: str) -> list[str]:
    """How two kernels of the same outcome differ still."""
    if flydsl.signature:
        return _signature_differences(flydsl.signature, triton.signature)
    if kind not in ("right", "logits"):
        return []
    if flydsl.form != triton.form:
        return [f"flydsl gives {flydsl.form}; triton {triton.form}"]
    if kind == "right" or not isinstance(flydsl.outputs[0], torch.Tensor):
        return []
    return _value_differences(flydsl.outputs[0].double(), triton.outputs[0].double())


def _signature_differences(flydsl: Sequence[tuple[str, ...]], triton: Sequence[tuple[str, ...]]) -> list[str]:
    texts = []
    triton = [parameter for parameter in triton if parameter[1] != "KEYWORD_ONLY"]  # no caller passes those by place
    for place, (name, kind, default) in enumerate(triton):
        mine = flydsl[place] if place < len(flydsl) else ("nothing", "", "")
        if mine != (name, kind, default):
            texts.append(f"parameter {place} is {mine[0]}={mine[2]} in flydsl, {name}={default} in triton")
    required = [name for name, _, default in flydsl[len(triton) :] if not default]
    return texts + [f"flydsl's parameter {name} has no default" for name in required]


def _value_differences(flydsl: torch.Tensor, triton: torch.Tensor) -> list[str]:
    """Where one is NaN or infinite and the other not, or both finite and further apart than _CLOSE: the first such place."""
    same = (torch.isnan(flydsl) & torch.isnan(triton)) | (flydsl == triton)
    scale = torch.where(torch.isfinite(triton), triton, 0.0).abs().amax(dim=-1, keepdim=True)
    same |= torch.isfinite(flydsl) & torch.isfinite(triton) & ((flydsl - triton).abs() <= _CLOSE * scale)
    places = (~same).nonzero()
    if not len(places):
        return []
    at = tuple(places[0].tolist())
    return [
        f"{len(places):,} of {same.numel():,} logits differ, first {list(at)}: flydsl {number(float(flydsl[at]))}, "
        f"triton {number(float(triton[at]))}"
    ]
