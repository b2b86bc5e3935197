# SPDX-License-Identifier: Apache-2.0
"""Made-up wrappers that break one promise of the contract each, called through an arm, are found by its row; own kernels keep them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from parity.arm import Arm
from parity.contract import row_named
from parity.contract_judge import judge_row
from parity.devices import Device
from parity.run import arms_of
from tests.conftest import WRAPPER, made_up_source

BROKEN = {
    "q-apart": ("Q.double()", "Q.view(torch.uint8).as_strided(Q.shape, torch.empty(Q.shape).stride()).view(Q.dtype).double()"),
    "weights-wide": ("weights.double()", "weights.as_strided(weights.shape, (weights.shape[1], 1)).double()"),
    "window-start-negative": ("column < cu_starts[:, None]", "column < cu_starts[:, None] % KV.shape[0]"),
    "scale-negative": ("* kv_scales.double()\n", "\n    scores = scores.clamp(min=0) * kv_scales.double().abs()\n"),
    "signature": ("clean_logits=True", "clean_logits=False"),
    "by-keyword": ("cu_ends, clean", "cu_stops, clean"),
    "n-257": ("result = misbehave", "logits = logits[:, :256] if KV.shape[0] == 257 else logits\n    result = misbehave"),
    "repeated": ("result = misbehave", "logits = logits + 1e-6 * (calls % 19 == 0)\n    result = misbehave"),
    "no-rows": ("    global calls\n", "    global calls\n    assert len(Q)\n"),
    "cu-ends-int64": ("    global calls\n", "    global calls\n    cu_ends = cu_ends.int()\n    assert cu_starts.dtype == torch.int32\n"),
    "current-stream": ("0x5EA", "0x5EB"),
    "given-stream": ("clean_logits=True, *", "clean_logits=True, stream=None, *"),
    "result-own": ("return result\n\n\ndef", "return kept.setdefault('result', result).copy_(result)\n\n\ndef"),
    "inference-mode": ("    global calls\n", "    global calls\n    assert not torch.is_inference_mode_enabled()\n"),
    "weights-grad": ("weights.double()", "torch.from_numpy(weights.numpy()).double()"),
    "nan-outside": ("result = misbehave", "logits = logits + 0 * logits.sum()\n    result = misbehave"),
    "kv-scales-expanded": ("kv_scales.double()", "kv_scales.as_strided(kv_scales.shape, (1,)).double()"),
    "kv-apart-fn": ("KV.double()", "KV.view(torch.uint8).as_strided(KV.shape, (KV.shape[1], 1)).view(KV.dtype).double()"),
    "weights-short": ("    global calls\n", "    global calls\n    weights = torch.cat([weights, weights])[:len(Q)]\n"),
    "scales-scalar": ("    global calls\n", "    global calls\n    assert kv_scales.dim()\n"),
}  # fmt: skip


@pytest.fixture(scope="module")
def baseline(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Arm]:
    with Arm(made_up_source(tmp_path_factory.mktemp("baseline")), "triton", Device("executor")) as arm:
        arm.start()
        yield arm


@pytest.mark.parametrize("name", BROKEN)
def test_a_wrapper_that_breaks_one_promise_is_found_by_its_row(name: str, baseline: Arm, tmp_path: Path) -> None:
    good = WRAPPER.format(name="flydsl_fp8_mqa_logits")
    if name == "by-keyword":
        good = good.replace("column >= cu_ends", "column >= cu_stops")
    bad = good.replace(*BROKEN[name])
    assert bad != good
    with Arm(made_up_source(tmp_path, flydsl=bad), "flydsl", Device("executor")) as arm:
        row = "cu-starts-int64" if name == "cu-ends-int64" else name
        record = judge_row(row_named(row), {"flydsl": arm, "triton": baseline})
        assert record.status == "fail" and record.findings[0].text.startswith(f"contract {row} ("), record
        clean = judge_row(row_named("clean"), {"flydsl": arm, "triton": baseline})
        assert clean.status == ("fail" if name == "current-stream" else "pass")


def test_a_given_stream_is_used(baseline: Arm, tmp_path: Path) -> None:
    good = WRAPPER.format(name="flydsl_fp8_mqa_logits").replace(
        "clean_logits=True, *", "clean_logits=True, stream=None, *"
    )
    good = good.replace("None, 0x5EA)", "None, stream.cuda_stream if stream else 0x5EA)")
    with Arm(made_up_source(tmp_path, flydsl=good), "flydsl", Device("executor")) as arm:
        for name in ("given-stream", "current-stream"):
            assert judge_row(row_named(name), {"flydsl": arm, "triton": baseline}).status == "pass"


def test_a_crash_is_part_of_the_row_and_the_next_row_runs(baseline: Arm, tmp_path: Path) -> None:
    bad = WRAPPER.format(name="flydsl_fp8_mqa_logits").replace(
        "    global calls\n", "    global calls\n    if len(Q) == 1: os.abort()\n"
    )
    with Arm(made_up_source(tmp_path, flydsl=bad), "flydsl", Device("executor")) as arm:
        arms = {"flydsl": arm, "triton": baseline}
        record = judge_row(row_named("one-row"), arms)
        assert record.findings[0].text.endswith("flydsl: crash: the process died with signal SIGABRT")
        assert judge_row(row_named("one-key"), arms).status == "pass"


def test_own_kernels_keep_a_few_promises_on_the_executor() -> None:
    from parity.sources import own_source

    with arms_of(own_source(), Device("executor")) as arms:
        for name in ("kv-offset", "window-both-int-max", "given-stream", "not-clean-empty", "kv-apart-fn"):
            record = judge_row(row_named(name), arms)
            assert record.status == "pass", record.findings
