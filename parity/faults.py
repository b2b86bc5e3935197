# SPDX-License-Identifier: Apache-2.0
"""The catalogue of faults that the quick depth is shown to catch, each by a named check: `parity faults` prints it, tests/test_faults.py
plants every one. `parity gate --plant=KERNEL:FAULT` builds one in and shows the verdict turn.

    kernel      compiled into an own kernel (parity/kernels/): wrong machine code
    around      in what the wrapper gives to the kernel, or returns (parity/planted.py)
    selection   in the tokens that are taken from right logits (parity/planted.py)
"""

from __future__ import annotations

from dataclasses import asdict, dataclass

from parity.cases import Case
from parity.fp8 import Encoding
from parity.kernels.arguments import FN_PLANTS, PLANTS
from parity.planted import AROUND


@dataclass(frozen=True)
class Fault:
    """One fault: its group, what it does and imitates, and the check and kind of finding that catch it. `case`: the quick case that the
    tests show it in."""

    name: str
    group: str
    check: str
    kind: str
    what: str
    case: str = "misaligned-q7-k1217-h16-d64-fn.fn-gaussian-seed0"

    @property
    def planted(self) -> str:
        """Where: kernel, around or selection."""
        return "kernel" if self.name in PLANTS else "around" if self.name in AROUND else "selection"

    def applies(self, case: Case) -> bool:
        """Whether it changes anything in the case: those of the byte patch need an FN operand, one reads FN keys as FNUZ."""
        if self.name == "fn-as-fnuz":
            return case.kv_encoding is Encoding.FN
        return self.name not in FN_PLANTS or Encoding.FN in (case.q_encoding, case.kv_encoding)


_EMPTY = "empty-q16-k130-h64-d128-fnuz.fnuz-scales-seed0"
_REFERENCE = ("reference", "budget")

FAULTS: tuple[Fault, ...] = (
    Fault("dropped-relu", "values", *_REFERENCE, "negative scores count"),
    Fault("absolute-value", "values", *_REFERENCE, "|score| for ReLU(score)"),
    Fault("relu-after-weight", "values", *_REFERENCE, "ReLU of the weighted score: heads of negative weight vanish"),
    Fault("bf16-scores", "values", *_REFERENCE, "scores rounded to bf16 before they are summed"),
    Fault("truncated-significand", "values", *_REFERENCE, "results with the precision of tf32"),
    Fault("drift", "values", *_REFERENCE, "every logit 1e-5 too large, far below the usual 1e-3"),
    Fault("one-logit-off", "values", *_REFERENCE, "one logit of all off by a thousandth"),
    Fault("missing-factor-2", "values", *_REFERENCE, "half of every logit: no top-k changes"),
    Fault("nan-element", "values", "reference", "NaN", "one NaN inside a window"),
    Fault("inf-element", "values", "reference", "+inf", "one overflow inside a window"),
    Fault("hole", "masks", "reference", "-inf", "one -inf inside a window"),
    Fault("leak", "masks", "reference", "-inf", "0 outside the windows"),
    Fault("lowest-float", "masks", "reference", "-inf", "-FLT_MAX for -inf outside the windows"),
    Fault("unmasked-store", "masks", "reference", "-inf", "the last tile is stored past the window's end"),
    Fault("start-off-by-one", "windows", "reference", "-inf", "the window's first column is lost"),
    Fault("end-off-by-one", "windows", "reference", "-inf", "one column past the window's end is written"),
    Fault("lost-last-column", "windows", "reference", "-inf", "the last column of K is lost, which upstream's tests never reach"),
    Fault("ignored-starts", "windows", "reference", "-inf", "every window starts at 0: packed requests see each other"),
    Fault("shared-window", "windows", "reference", "-inf", "two rows of a block share the bounds of the first", _EMPTY),
    Fault("wrapped-ends", "windows", "reference", "-inf", "ends wrapped to 8 bits, as offsets past 31 bits do (aiter #4999, #5121)"),
    Fault("neighbour-scale", "scales", *_REFERENCE, "kv_scale of the next token: the usual similarity stays at 0.018"),
    Fault("rolled-scales", "scales", *_REFERENCE, "kv_scales shifted by one token"),
    Fault("scale-of-the-tile", "scales", *_REFERENCE, "the scale of a tile's first token for all of it"),
    Fault("half-precision-scales", "scales", *_REFERENCE, "kv_scales through float16"),
    Fault("bf16-weights", "scales", *_REFERENCE, "weights through bfloat16"),
    Fault("missing-fn-factor", "dtypes", *_REFERENCE, "FN bytes read as FNUZ without the factor of 2 an operand"),
    Fault("unpatched-minus-zero", "dtypes", *_REFERENCE, "FN -0 reaches the MFMA, which reads it as NaN"),
    Fault("sign-extended-patch", "dtypes", *_REFERENCE, "the byte patch widens bytes with their sign (aiter #5452)"),
    Fault("fn-as-fnuz", "dtypes", *_REFERENCE, "FN keys labelled FNUZ, neither patched nor doubled"),
    Fault("dropped-head", "heads", *_REFERENCE, "head 0 does not count"),
    Fault("swapped-heads", "heads", *_REFERENCE, "weights of the neighbouring head"),
    Fault("previous-row-weights", "heads", *_REFERENCE, "weights of the row before"),
    Fault("swapped-rows", "heads", *_REFERENCE, "queries of the row before"),
    Fault("half-head-dim", "tiles", *_REFERENCE, "the second half of the head dimension is not summed"),
    Fault("neighbour-key", "tiles", *_REFERENCE, "K of the next token under this token's scale"),
    Fault("dead-row", "tiles", *_REFERENCE, "one row of zeros: a similarity over all rows stays under 1e-3"),
    Fault("dead-columns", "tiles", *_REFERENCE, "the last 64 columns are zero"),
    Fault("shifted-row", "tiles", "top-k", "top-k", "one row shifted by a token: another selection"),
    Fault("wrong-row-stride", "strides", *_REFERENCE, "rows stored N apart instead of by the padded stride"),
    Fault("transposed-result", "strides", "reference", "shape", "[N,M] for [M,N]"),
    Fault("padded-result", "strides", "reference", "shape", "the padding columns belong to the result"),
    Fault("reinterpreted-result", "strides", "reference", "dtype", "a result of another dtype"),
    Fault("unclamped-load", "memory", "reference", "kernel-fault", "the last tile reads past K and its scales"),
    Fault("racing-stores", "memory", "reference", "kernel-fault", "waves store different values to one place: the order decides"),
    Fault("unclean-result", "memory", "reference", "unwritten", "outside the windows stands what the memory held"),
    Fault("modified-input", "memory", "reference", "input-modified", "the caller's K is patched in place"),
    Fault("copied-result", "memory", "reference", "no-launch", "the result lies in memory that no launch wrote"),
    Fault("fallback", "memory", "reference", "no-launch", "the right logits from torch, without the kernel (aiter #5047)"),
    Fault("one-ulp-each-launch", "repetition", "repeat", "repeat", "one logit differs by an ulp between launches, within any budget"),
    Fault("stale-keys", "repetition", *_REFERENCE, "K is converted once for each shape and kept"),
    Fault("stale-windows", "repetition", "reference", "-inf", "windows are clamped once for each shape and kept"),
    Fault("stale-answer", "repetition", *_REFERENCE, "the first answer for a shape is given again"),
    Fault("raises", "failure", "reference", "wrapper-error", "the wrapper raises"),
    Fault("aborts", "failure", "reference", "crash", "SIGABRT, as a compiler's failed assertion"),
    Fault("segfaults", "failure", "reference", "crash", "SIGSEGV"),
    Fault("exits", "failure", "reference", "crash", "the process exits"),
    Fault("dropped-token", "selection", "selector", "selector", "a row keeps one token less"),
    Fault("duplicated-token", "selection", "selector", "selector", "a row keeps one token twice"),
    Fault("swapped-token", "selection", "selector", "selector", "the worst token for the best"),
    Fault("columns-for-tokens", "selection", "selector", "selector", "columns instead of tokens counted from the row's start"),
    Fault("one-token-less", "selection", "selector", "selector", "k-1 tokens in every row"),
)  # fmt: skip


def fault_named(name: str) -> Fault:
    """The fault of that name. KeyError without one."""
    return {fault.name: fault for fault in FAULTS}[name]


def as_text() -> str:
    """The catalogue as a table of at most 150 columns, by group."""
    head = f"{'fault':22} {'group':11} {'planted':10} {'caught by':27} what it does"
    lines = [
        f"{fault.name:22} {fault.group:11} {fault.planted:10} {fault.check + ' (' + fault.kind + ')':27} {fault.what}"
        for fault in FAULTS
    ]
    return "\n".join([head, *lines, f"{len(FAULTS)} faults; try one: parity gate --plant=flydsl:{FAULTS[0].name}"])


def as_json() -> list[dict[str, str]]:
    """The catalogue as records: name, group, planted, check, kind, what, case."""
    return [asdict(fault) | {"planted": fault.planted} for fault in FAULTS]
