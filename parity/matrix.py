# SPDX-License-Identifier: Apache-2.0
"""The cases that run, by depth, each with the reason it exists.

    quick     every window, distribution, dtype pair and dispatch that a minute of the executor can hold; more than 1,024 keys for each
              variant, so that the loops of a kernel that splits KV turn more than once (found by mutants that survived)
    full      also every edge with every dtype pair, the models' real lengths to 131,072: minutes in the executor
    release   also whole prefill chunks and results beyond 2^31 bytes and elements: for GPUs

A line is "SIZES WINDOW MxN Q.KV DISTRIBUTION": SIZES is a model profile or h<heads>-d<head_dim> (which keeps 2,048 tokens).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from parity.cases import PROFILES, Case
from parity.devices import DEPTHS, Device
from parity.distributions import DISTRIBUTIONS
from parity.fp8 import Encoding
from parity.inputs import Inputs, capture_seed, captured_topk
from parity.windows import WINDOWS

PAIRS = ("fn.fn", "fn.fnuz", "fnuz.fn", "fnuz.fnuz")
_TOPK = 2048

_QUICK = (
    ("deepseek-v3.2 causal 17x76 fn.fnuz gaussian",
     "Odd M under two query rows a block, K below one tile, and the mixed pair seen in production."),
    ("deepseek-v4-flash causal 4x1100 fnuz.fnuz gaussian",
     "The control pair, with more keys than the 512 that this model keeps, so the top-k really selects."),
    ("glm-5 causal 3x2300 fn.fn gaussian",
     "More keys than the 2,048 this model keeps, both operands through the byte patch."),
    ("glm-5 full 2x4224 fnuz.fnuz gaussian",
     "Past 4,096 keys a small row grid splits KV over the grid's second dimension."),
    ("deepseek-v3.2 packed 13x300 fn.fn gaussian",
     "Ragged requests: top-k indices are relative to bases that no tile boundary shares."),
    ("glm-5 packed 7x383 fnuz.fn scales",
     "One key short of three tiles of 128; a scale read one token off changes every logit."),
    ("deepseek-v3.2 context-parallel 8x1281 fnuz.fn gaussian",
     "One key past a multiple of 256, the output's row rounding, with neighbouring rows of very different length."),
    ("glm-5 context-parallel 11x1160 fn.fnuz outlier",
     "Outlier channels spread the product exponents until the MFMA truncates."),
    ("deepseek-v3.2 misaligned 14x255 fn.fn bytes",
     "Any byte a quantiser can emit, minus zero among them, under starts that cut tiles."),
    ("glm-5 misaligned 9x300 fn.fn gaussian",
     "Starts of 1, 63..65 and 127..129 with the last column in view, which upstream's tests never reach."),
    ("deepseek-v3.2 empty 16x130 fnuz.fnuz scales",
     "Windows that hold nothing beside normal rows: a block of two rows must not share one row's bounds."),
    ("glm-5 full 1x1153 fnuz.fn gaussian", "A single decode row, one key past nine tiles of 128."),
    ("glm-5 edges 21x520 fn.fnuz bytes", "Windows one column under, at and over a tile, from starts on and beside its edges."),
    ("h128-d128 misaligned 5x1157 fnuz.fn gaussian", "128 heads: the largest tile of scores, eight blocks of 16 to sum."),
    ("h16-d64 misaligned 7x1217 fn.fn gaussian", "16 heads of 64: the smallest tile, one MFMA row block and half the steps."),
    ("glm-5 full 5x300 fnuz.fnuz position", "Every logit says which row and token it is of, with no rounding to hide behind."),
    ("deepseek-v3.2 context-parallel 6x140 fnuz.fn negative",
     "No positive product in every second row: logits of exactly 0, every rank tied; a lost ReLU shows nowhere better."),
    ("glm-5 full 2x600 fn.fnuz near-ties", "The k-th place falls among logits that differ in their last bits."),
    ("deepseek-v3.2 packed 8x200 fnuz.fnuz saturated", "All bytes at the largest magnitude: the largest sums there are."),
    ("glm-5 causal 9x129 fn.fn subnormal", "Only subnormal bytes: small products that a flush to zero would lose."),
    ("deepseek-v3.2 misaligned 6x1100 fn.fnuz heavy-tailed", "A few large bytes among small ones, as real activations have them."),
    ("deepseek-v3.2 full 1x8193 fn.fn gaussian", "A decode row over many splits of KV, the last of a single key."),
    ("glm-5 narrow 1025x192 fnuz.fnuz gaussian", "Past 1,024 rows the Triton kernel takes the other MFMA size."),
)  # fmt: skip

# Sizes at which a dispatch changes or a tile fills; `narrow` keeps the work small. Pairs go round in turn.
_DISPATCH = (
    ("glm-5", "full", 3, (4095, 4096, 4097), "One key under, at and over where KV is split."),
    ("deepseek-v3.2", "misaligned", 5, (127, 128, 129, 255, 256, 257), "One key around the tiles of 128 and the row stride of 256."),
    ("deepseek-v3.2", "causal", 1, (63, 64, 65), "One key around the tile of 64, one row."),
    ("glm-5", "causal", 33, (1, 2, 31), "Fewer keys than rows: most windows end at or before 0."),
    ("glm-5", "narrow", 2047, (8191, 8192), "One row under where the kernel takes two waves a block."),
    ("deepseek-v3.2", "narrow", 2048, (8191, 8192, 8193), "Both sizes at, or one key beside, where the kernel takes two waves a block."),
    ("glm-5", "narrow", 2049, (8192, 8193), "One row over, which leaves a block of two rows half empty."),
    ("deepseek-v3.2", "narrow", 1024, (300,), "The last M with the small MFMA."),
    ("deepseek-v3.2", "narrow", 1025, (300,), "The first M with the large MFMA."),
    ("glm-5", "narrow", 2431, (600,), "One row under 304 compute units of 8 rows each."),
    ("glm-5", "narrow", 2433, (600,), "One row over 304 compute units of 8 rows each."),
)  # fmt: skip

_LENGTHS = (
    ("deepseek-v3.2 full 1x131072 fn.fn gaussian", "A decode row at the longest context."),
    ("glm-5 causal 2x131072 fnuz.fnuz gaussian", "128K keys, the length of the served check."),
    ("deepseek-v4-flash causal 2x32768 fn.fnuz gaussian", "128K tokens at this model's compression of 4:1."),
    ("deepseek-v4-pro full 2x32768 fnuz.fn heavy-tailed", "128K tokens compressed, with few large channels."),
    ("glm-5 packed 6x65536 fn.fn scales", "Ragged requests of a long batch: bases far from 0."),
    ("deepseek-v3.2 context-parallel 4x65536 fnuz.fn gaussian", "Ends that jump between the first and the last eighth."),
    ("glm-5 full 2x16384 fn.fn near-ties", "2,048 of 16,384 tokens whose logits nearly tie."),
    ("glm-5 full 2x131071 fnuz.fn position", "Every token of a long row says its number."),
    ("deepseek-v3.2 causal 3x2049 fn.fn gaussian", "One key more than is kept, at k = 2,048."),
    ("glm-5 full 2x2050 fnuz.fnuz bytes", "Two keys more than are kept."),
    ("deepseek-v4-pro causal 5x1500 fn.fn gaussian", "More keys than the 1,024 that this model keeps."),
)  # fmt: skip

_RELEASE = (
    ("deepseek-v3.2 causal 2048x131072 {pair} gaussian", "A full prefill chunk at the end of a 128K prompt."),
    ("glm-5 causal 2048x131072 {pair} gaussian", "A full prefill chunk at the end of a 128K prompt."),
    ("deepseek-v4-flash causal 2048x32768 {pair} scales", "A full prefill chunk over compressed keys, scales over four decades."),
    ("glm-5 causal 4097x131072 {pair} gaussian", "A result of more than 2^31 bytes: byte offsets pass 31 bits."),
    ("deepseek-v3.2 context-parallel 2048x131073 {pair} outlier", "An odd number of keys, rows of every length."),
)  # fmt: skip
_HUGE = (
    ("glm-5 narrow 16385x131072 fn.fn gaussian", "A result of more than 2^31 elements by its rows (aiter #4999, #5121)."),
    ("glm-5 full 2049x1048576 fn.fnuz gaussian", "A result of more than 2^31 elements by its columns: a million keys."),
)  # fmt: skip


def cases_of(depth: str) -> tuple[Case, ...]:
    """All cases of a depth, the quick ones first. ValueError for another depth."""
    if depth not in DEPTHS:
        raise ValueError(f"depth is one of {', '.join(DEPTHS)}, not {depth!r}")
    lines = list(_QUICK)
    if depth != "quick":
        lines += [*_dispatch(), *_axes(), *_LENGTHS]
    if depth == "release":
        lines += [(line.format(pair=pair), reason) for line, reason in _RELEASE for pair in PAIRS] + list(_HUGE)
    cases = tuple(case_of(line, reason) for line, reason in lines)
    return tuple({case.id: case for case in reversed(cases)}.values())[::-1]  # a quick case need not run twice


def chosen_cases(depth: str, captured: Sequence[Path], device: Device, *, seeds: int = 1) -> tuple[Case, ...]:
    """What --depth, --seeds and --captured ask for. ValueError for a depth that the device cannot do, seeds below 1, or a file that is no
    capture; OSError."""
    if seeds < 1:
        raise ValueError(f"--seeds={seeds}: at least 1")
    if depth == "release" and device.kind == "executor":
        raise ValueError("--depth=release is for GPUs: whole prefill chunks would take the executor days")
    drawn = tuple(replace(case, seed=seed) for seed in range(seeds) for case in cases_of(depth))
    cases = drawn + tuple(captured_case(path) for path in captured)
    if len({case.id for case in cases}) < len(cases):
        raise ValueError("--captured names the same inputs twice")
    return cases


def runs_on(case: Case, device: Device) -> bool:
    """Whether the device can run the case at all: CUDA's matrix units read FN only."""
    return device.kind != "cuda" or case.q_encoding is case.kv_encoding is Encoding.FN


def quick_cases() -> tuple[Case, ...]:
    """The cases that a gate runs unless told otherwise."""
    return cases_of("quick")


def _dispatch() -> list[tuple[str, str]]:
    sizes = [(name, window, m, n, reason) for name, window, m, keys, reason in _DISPATCH for n in keys]
    return [
        (f"{name} {window} {m}x{n} {PAIRS[index % len(PAIRS)]} gaussian", reason)
        for index, (name, window, m, n, reason) in enumerate(sizes)
    ]


def _axes() -> list[tuple[str, str]]:
    """Every window, every distribution and every pair of sizes with each dtype pair, small."""
    lines = []
    for pair in PAIRS:
        for window in WINDOWS:
            if window != "captured":
                lines.append((f"glm-5 {window} 9x330 {pair} gaussian", f"Window {window}: {WINDOWS[window]}."))
        for distribution in DISTRIBUTIONS:
            if distribution != "captured":
                text = f"Distribution {distribution}: {DISTRIBUTIONS[distribution]}."
                lines.append((f"deepseek-v3.2 misaligned 7x270 {pair} {distribution}", text))
        for heads in (16, 32, 64, 128):
            for head_dim in (64, 128):
                text = f"{heads} heads of {head_dim}: a variant of each kernel."
                lines.append((f"h{heads}-d{head_dim} causal 6x200 {pair} gaussian", text))
    return lines


def case_of(line: str, reason: str, *, seed: int = 0) -> Case:
    """The case of a line as they stand above. ValueError for one that says something else."""
    match = re.fullmatch(r"(\S+) (\S+) (\d+)x(\d+) (\w+)\.(\w+) (\S+)", line)
    if not match:
        raise ValueError(f"not a case: {line!r}")
    sizes, window, m, n, q, kv, distribution = match.groups()
    own = re.fullmatch(r"h(\d+)-d(\d+)", sizes)
    if own:
        heads, head_dim, topk = int(own[1]), int(own[2]), _TOPK
    elif sizes in PROFILES:
        heads, head_dim, topk = PROFILES[sizes].heads, PROFILES[sizes].head_dim, PROFILES[sizes].index_topk
    else:
        raise ValueError(f"{line!r}: {sizes} is neither h<heads>-d<head_dim> nor one of {', '.join(PROFILES)}")
    return Case(window, int(m), int(n), heads, head_dim, Encoding(q), Encoding(kv), distribution, seed, topk, reason)


def captured_case(path: Path) -> Case:
    """The case of captured inputs (a file as Inputs.save writes it, with `index_topk`). ValueError for another file, OSError."""
    inputs, index_topk = Inputs.load(path), captured_topk(path)
    m, heads, head_dim = inputs.q.shape
    reason = f"Captured inputs: {path.name}."
    return Case("captured", m, inputs.kv.shape[0], heads, head_dim, inputs.q_encoding, inputs.kv_encoding, "captured",
                capture_seed(inputs), index_topk, reason, str(path.resolve()))  # fmt: skip
