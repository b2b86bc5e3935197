# SPDX-License-Identifier: Apache-2.0
"""A mutation campaign as a table for the terminal and as JSON."""

from __future__ import annotations

import json
import os
from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import Any

from parity.gfx942.mutation_edits import KINDS
from parity.mutants import Outcome
from parity.mutate import CAUGHT_SHARE, Campaign
from parity.report.terminal import visible
from parity.survivors import REASONS

SCHEMA = 1


def as_text(campaign: Campaign) -> str:
    """The table of kinds, what caught the mutants, the survivors one by one, and the result in the last line."""
    lines = [f"{'kind':10} {'mutants':>8} {'caught':>8} " + " ".join(f"{reason:>14}" for reason in REASONS)]
    for kind in (*KINDS, "all"):
        some = [outcome for outcome in campaign.mutants if kind in (outcome.mutation.kind, "all")]
        if some:
            reasons = Counter(outcome.reason for outcome in some)
            caught = sum(outcome.state == "caught" for outcome in some)
            lines.append(
                f"{kind:10} {len(some):8} {caught:8} " + " ".join(f"{reasons[reason]:14}" for reason in REASONS)
            )
    lines += ["", "caught by"]
    checks = Counter(outcome.check for outcome in campaign.mutants if outcome.state == "caught")
    lines += [f"{count:8}  {check}" for check, count in checks.most_common()]
    lines += _survivors(campaign)
    lines += [f"left out: {visible(text)}" for text in campaign.left_out]
    return "\n".join([*lines, "", _result(campaign)])


def _survivors(campaign: Campaign) -> list[str]:
    survivors = [outcome for outcome in campaign.mutants if outcome.state == "survived"]
    order = {reason: number for number, reason in enumerate(reversed(REASONS))}
    lines = ["", f"survivors: {len(survivors)}"] if survivors else []
    for outcome in sorted(survivors, key=lambda outcome: order[outcome.reason]):
        mutation = outcome.mutation
        line = f" ({visible(mutation.line)})" if mutation.line else ""
        lines.append(f"  {outcome.reason}: {mutation.kind}, {mutation.note}: {mutation}{line} of {mutation.sha256[:8]}")
        lines.append(f"      {visible(outcome.evidence)}")
    return lines


def _result(campaign: Campaign) -> str:
    dropped = len(campaign.outcomes) - len(campaign.mutants)
    redrawn = f", {dropped} redrawn (the executor does not know what they do)" if dropped else ""
    what = (
        f"{campaign.kernel} of {campaign.source}, seed {campaign.seed}, {campaign.codes} kernels, {campaign.cases} quick cases, "
        f"{campaign.seconds:.0f} s{redrawn}"
    )
    share = "no mutant that is not equivalent" if campaign.share is None else f"{100 * campaign.share:.1f} %"
    state = ("enough" if campaign.exit_code == 0 else "too few") if campaign.complete else "not finished"
    return (
        f"{state}: {campaign.caught} of {campaign.different} mutants that are not equivalent caught: {share}, "
        f"at least {100 * CAUGHT_SHARE:.0f} % wanted [{what}]"
    )


def as_json(campaign: Campaign) -> dict[str, Any]:
    """Everything, also the mutants that the executor does not know. share: null where no mutant is not equivalent."""
    return {
        "schema": SCHEMA, "kernel": campaign.kernel, "source": campaign.source, "seed": campaign.seed, "wanted": campaign.wanted,
        "complete": campaign.complete, "kernels": campaign.codes, "cases": campaign.cases, "seconds": round(campaign.seconds, 1),
        "caught": campaign.caught, "not_equivalent": campaign.different, "share": campaign.share, "left_out": campaign.left_out,
        "mutants": [_outcome(outcome) for outcome in campaign.outcomes],
    }  # fmt: skip


def _outcome(outcome: Outcome) -> dict[str, Any]:
    record = asdict(outcome)
    return record.pop("mutation") | record


def write(campaign: Campaign, path: Path) -> None:
    """The JSON, whole or not at all: an earlier report stays until this one is there. OSError."""
    beside = path.with_name(f"{path.name}.{os.getpid()}")
    try:
        beside.write_text(json.dumps(as_json(campaign), indent=1, allow_nan=False) + "\n")
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)
