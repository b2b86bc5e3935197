# SPDX-License-Identifier: Apache-2.0
"""What judging a whole prefill chunk on a GPU costs, beside the field's usual fp32 reference: `python -m parity.bench_reference`.

The usual reference (as the tests of DeepGEMM, aiter and vLLM have it) is an fp32 einsum over all heads, then ReLU, weights and a sum;
here in blocks of rows, since whole it would need 64 GiB. This project's is float64 with a budget for every element. Times are the
better of two runs after one that compiles; memory is torch's peak beyond inputs and the logits that are judged.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import torch

from parity.compare import Comparison, compare, merge
from parity.inputs import Inputs, build_inputs, tensors_of
from parity.kernels.own_triton import fp8_mqa_logits
from parity.matrix import case_of
from parity.oracle import Oracle
from parity.rows import judge_rows, refined_for

_CASE = "deepseek-v3.2 causal {m}x{n} fn.fn gaussian"
_ROWS = (16, 64, 256)  # of the einsum's blocks: 0.5, 2 and 8 GiB of scores at 64 heads and 131,072 columns


def usual(inputs: Inputs, device: str, rows: int) -> torch.Tensor:
    """float32 [M,N]: the usual reference, `rows` rows at a time, -inf outside the window."""
    q = inputs.q.to(device).view(inputs.q_encoding.torch_dtype).float()
    kv = inputs.kv.to(device).view(inputs.kv_encoding.torch_dtype).float() * inputs.kv_scales.to(device)[:, None]
    weights, starts, ends = (part.to(device) for part in (inputs.weights, inputs.starts, inputs.ends))
    column = torch.arange(len(kv), device=device)
    logits = torch.empty(len(q), len(kv), device=device)
    for first in range(0, len(q), rows):
        part = slice(first, first + rows)
        scores = torch.einsum("mhd,nd->hmn", q[part], kv)
        logits[part] = (scores.relu() * weights[part].T[:, :, None]).sum(dim=0)
        outside = (column < starts[part, None]) | (column >= ends[part, None])
        logits[part].masked_fill_(outside, -torch.inf)
    return logits


def measured(run: Callable[[], object]) -> tuple[float, float]:
    """(seconds, GiB): the better time of two runs after a first, and the peak beyond what was there before."""
    seconds = []
    for _ in range(3):
        torch.cuda.synchronize()
        torch.cuda.reset_peak_memory_stats()
        before, started = torch.cuda.memory_allocated(), time.perf_counter()
        run()
        torch.cuda.synchronize()
        seconds.append(time.perf_counter() - started)
    return min(seconds[1:]), (torch.cuda.max_memory_allocated() - before) / 2**30


def compared(inputs: Inputs, device: str, logits: torch.Tensor) -> Comparison:
    """The logits against reference and budget, as the gate judges them."""
    oracle, parts = Oracle(inputs, device=device), []
    for expected in oracle.blocks():
        block = logits[expected.rows]
        expected = refined_for(oracle, expected, {"triton": block})
        parts.append(compare(block, expected.logits, expected.budget, first_row=expected.rows.start))
    return merge(parts)


def main() -> None:
    options = argparse.ArgumentParser(prog="python -m parity.bench_reference", description=__doc__)
    options.add_argument("-m", type=int, default=2048, help="rows (default: %(default)s)")
    options.add_argument("-n", type=int, default=131072, help="columns (default: %(default)s)")
    sizes = options.parse_args()
    if not torch.cuda.is_available():
        options.exit(3, "no GPU that torch can use\n")
    device = "cuda:0"
    case = case_of(_CASE.format(m=sizes.m, n=sizes.n), "a whole prefill chunk")
    inputs = build_inputs(case)
    print(f"{case.id} on {torch.cuda.get_device_name(0)}, torch {torch.__version__}")
    usual_costs = {rows: measured(lambda rows=rows: usual(inputs, device, rows)) for rows in _ROWS}  # type: ignore[misc]
    for rows, (seconds, memory) in usual_costs.items():
        print(f"usual fp32 einsum, {rows:3} rows a block   {seconds:7.3f} s  {memory:7.2f} GiB")
    logits = fp8_mqa_logits(*(tensor.to(device) for tensor in tensors_of(inputs).values()))
    runs: dict[str, Callable[[], object]] = {
        "reference, budget, comparison": lambda: compared(inputs, device, logits),
        "the same and top-k": lambda: judge_rows(case, Oracle(inputs, device=device), {"triton": logits}, {}),
    }
    for name, call in runs.items():
        run = measured(call)
        best = min(seconds for seconds, _ in usual_costs.values())
        least = min(memory for _, memory in usual_costs.values())
        print(
            f"{name:38} {run[0]:7.3f} s  {run[1]:7.2f} GiB: {run[0] / best:.2f} times the fastest, {run[1] / least:.2f} of the smallest"
        )
    result = compared(inputs, device, logits)
    print(f"own Triton kernel: error/budget < {result.ratio:.2f}, {result.bad} of {result.elements:,} logits outside")


if __name__ == "__main__":
    main()
