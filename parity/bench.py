# SPDX-License-Identifier: Apache-2.0
"""Rows of the executor's benchmark that need compilers and wrappers: a Triton GEMM, the own kernels, aiter's kernels.

`python -m parity.gfx942.bench` prints them. Launches are captured from the wrappers once and then repeated, so that the time is
the executor's alone; aiter's kernels run in a process of their own, as in the gate, with all checks on.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from parity.cases import PROFILES, Case
from parity.fp8 import Encoding
from parity.gfx942 import Allocation, Kernel, launch
from parity.gfx942.bench import median_seconds
from parity.inputs import build_inputs
from parity.launchers.record import CallRecord, Dims

BenchRow = tuple[str, float | None, str, float | None, str]  # name, figure, unit, bar, note
PREFILL = ("M=32 N=2048 H=64 D=128", 32, 2048, 64)
DECODE = ("M=1 N=131072 H=32 D=128", 1, 131072, 32)
BARS = {
    ("flydsl", PREFILL[0]): 0.4,
    ("triton", PREFILL[0]): 0.7,
    ("flydsl", DECODE[0]): 1.0,
    ("triton", DECODE[0]): 1.0,
}
GEMM_BAR, CHECKS_BAR = 4.2, 3.0


@dataclass(frozen=True)
class Captured:
    """One launch and the live memory it was made with."""

    kernel: Kernel
    arguments: Sequence[bytes]
    grid: Dims
    block: Dims
    memory: list[Allocation]
    dynamic_lds: int

    def run(self, *, checks: bool) -> None:
        launch(
            self.kernel, self.arguments, self.grid, self.block, self.memory, dynamic_lds=self.dynamic_lds, checks=checks
        )


class Capture(CallRecord):
    """Runs launches once and keeps them for repetition."""

    def __init__(self, tensors: dict[str, torch.Tensor]) -> None:
        super().__init__(tensors)
        self.captured: list[Captured] = []
        self._kept: list[Any] = []

    def launch(
        self,
        kernel: Kernel,
        arguments: Sequence[bytes],
        grid: Dims,
        block: Dims,
        *,
        dynamic_lds: int = 0,
        stream: int | None = None,
    ) -> None:
        # the owners too: what the wrapper allocated must live as long as the launch may be repeated
        self._kept += [storage for known in self._storages.values() if (storage := known.reference()) is not None]
        memory = [allocation for _, allocation in self.live().values()]
        self.captured.append(Captured(kernel, list(arguments), grid, block, memory, dynamic_lds))
        super().launch(kernel, arguments, grid, block, dynamic_lds=dynamic_lds)


def rows(repeats: int, aiter: str | None) -> Iterator[BenchRow]:
    """(name, figure or None, unit, bar, note or reason)."""
    for name in ("triton", "flydsl"):
        if importlib.util.find_spec(name) is None:
            yield f"kernels of {name}", None, "s", None, f"{name} is not installed"
            continue
        # each compiler in a process of its own, as installing a launcher changes the compiler for good
        command = [sys.executable, "-m", "parity.bench", "--compiler", name, "--repeats", str(repeats)]
        with tempfile.TemporaryDirectory(prefix="parity-bench-") as folder:
            caches = {
                "TRITON_CACHE_DIR": f"{folder}/triton",
                "FLYDSL_RUNTIME_CACHE_DIR": f"{folder}/flydsl",
                "PARITY_ARM_FOLDER": folder,
            }
            target = {"ARCH": "gfx942", "FLYDSL_GPU_ARCH": "gfx942", "OMP_NUM_THREADS": "1"}
            done = subprocess.run(command, capture_output=True, text=True, env=os.environ | target | caches)
        if done.returncode:
            yield f"kernels of {name}", None, "s", None, (done.stderr.strip() or "no message").splitlines()[-1][:200]
            continue
        for line in done.stdout.splitlines():
            title, figure, unit, bar, note = line.split("\t")
            yield title, float(figure), unit, float(bar) if bar else None, note
    yield from _aiter_rows(repeats, aiter)


def _tensors(m: int, n: int, heads: int) -> dict[str, torch.Tensor]:
    from parity.inputs import tensors_of

    return tensors_of(build_inputs(_case(m, n, heads)))


def _case(m: int, n: int, heads: int) -> Case:
    profile = next(profile for profile in PROFILES.values() if profile.heads == heads)
    return Case(
        "full",
        m,
        n,
        heads,
        profile.head_dim,
        Encoding.FNUZ,
        Encoding.FNUZ,
        "gaussian",
        0,
        profile.index_topk,
        "benchmark",
    )


def _measure(title: str, capture: Capture, repeats: int, bar: float, note: str) -> Iterator[BenchRow]:
    """Time of all launches of a call without checks, and the ratio with them."""

    def run(checks: bool) -> None:
        for part in capture.captured:
            part.run(checks=checks)

    off, on = (median_seconds(lambda checks=checks: run(checks), repeats) for checks in (False, True))  # type: ignore[misc]
    yield title, off, "s", bar, f"{note}, checks off"
    yield f"{title}: checks on", on / off, "x", CHECKS_BAR, "time with all checks over time without"


def _compiler_rows(name: str, repeats: int) -> Iterator[BenchRow]:
    """In the process of one compiler."""
    from parity.calling import ExecutorDevice

    device: Any = ExecutorDevice(name)
    if name == "triton":
        from parity.kernels.bench_gemm import SIZE, matrix_product
        from parity.kernels.own_triton import fp8_mqa_logits as wrapper

        generator = torch.Generator().manual_seed(0)
        left, right = (
            torch.randint(0, 120, (SIZE, SIZE), dtype=torch.uint8, generator=generator).view(torch.float8_e4m3fnuz)
            for _ in range(2)
        )
        device._call = capture = Capture({"left": left, "right": right})
        with capture:
            matrix_product(left, right)
        yield from _measure(f"Triton fp8 GEMM {SIZE}^3", capture, repeats, GEMM_BAR, "own kernel")
    else:
        from parity.kernels.own_flydsl import flydsl_fp8_mqa_logits as wrapper
    for title, m, n, heads in (PREFILL, DECODE):
        tensors = _tensors(m, n, heads)
        device._call = capture = Capture(tensors)
        with capture:
            wrapper(*tensors.values())
        if capture.failure is not None:
            raise capture.failure
        yield from _measure(f"own {name} logits, {title}", capture, repeats, BARS[name, title], "launches only")


def _aiter_rows(repeats: int, aiter: str | None) -> Iterator[BenchRow]:
    from parity.arm import Arm, ArmError
    from parity.devices import Device
    from parity.sources import aiter_source

    if not aiter:
        yield "aiter's kernels", None, "s", None, "no --aiter=PATH@REV"
        return
    path, _, revision = aiter.rpartition("@")
    source = aiter_source(path or revision, revision if path else None, tell=lambda text: None)
    for name in ("flydsl", "triton"):
        for title, m, n, heads in (PREFILL, DECODE):
            try:
                with Arm(source, name, Device("executor")) as arm:
                    arm.start()
                    run = arm.run(build_inputs(_case(m, n, heads)), repeats=repeats)
            except ArmError as error:
                yield f"aiter {name} logits, {title}", None, "s", None, str(error)
                continue
            seconds = [launch["report"]["seconds"] for launch in run.launches]
            yield (
                f"aiter {name} logits, {title}",
                statistics.median(seconds),
                "s",
                BARS[name, title],
                f"{source.label}, a launch, checks on",
            )


def main() -> None:
    """Prints the rows, tab-separated, for parity.gfx942.bench."""
    parser = argparse.ArgumentParser(
        prog="python -m parity.bench", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--aiter", metavar="PATH@REV")
    parser.add_argument(
        "--compiler", choices=("triton", "flydsl"), help="only the own kernels of this compiler, in this process"
    )
    options = parser.parse_args()
    found = (
        _compiler_rows(options.compiler, options.repeats) if options.compiler else rows(options.repeats, options.aiter)
    )
    for title, figure, unit, bar, note in found:
        print(title, "" if figure is None else figure, unit, "" if bar is None else bar, note, sep="\t", flush=True)
    os._exit(0)  # interpreter shutdown would tear down MLIR and torch.library in an order that prints tracebacks


if __name__ == "__main__":
    main()
