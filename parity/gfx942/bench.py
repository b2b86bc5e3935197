# SPDX-License-Identifier: Apache-2.0
"""How fast the executor is: `python -m parity.gfx942.bench` prints each figure beside its bar, with the machine's name.

Every figure is the median of several runs after a first one, on one thread unless the row says otherwise. Rows that need a
compiler (Triton, FlyDSL) are told as not measured where it is missing.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from parity.gfx942 import Allocation, Kernel, launch, load
from parity.gfx942.bench_kernels import ALU, MATRIX, assembly_of

REPEATS = 5


@dataclass(frozen=True)
class Row:
    """One figure. bar: what it must reach; `least` says whether more or less is better. figure None: not measured, and why."""

    name: str
    figure: float | None
    unit: str
    bar: float | None = None
    least: bool = False  # the figure must be at least the bar; else at most
    note: str = ""

    @property
    def missed(self) -> bool:
        if self.figure is None or self.bar is None:
            return False
        return self.figure < self.bar if self.least else self.figure > self.bar


def median_seconds(run: Callable[[], object], repeats: int) -> float:
    run()
    times = []
    for _ in range(repeats):
        started = time.perf_counter()
        run()
        times.append(time.perf_counter() - started)
    return statistics.median(times)


def launched(
    kernel: Kernel, groups: int, *, waves: int = 4, checks: bool = False, data: np.ndarray | None = None
) -> Callable[[], object]:
    """A launch of a kernel that takes one pointer."""
    array = np.zeros(4096, np.uint32) if data is None else data
    pointer = array.ctypes.data.to_bytes(8, "little")
    memory = [Allocation.of_array("data", array)]
    return lambda: launch(kernel, [pointer], (groups, 1, 1), (64 * waves, 1, 1), memory, checks=checks)


def instructions(repeats: int) -> Iterator[Row]:
    """Rates of single kinds of instructions, in loops."""
    for form, bar in (("16x16x32", 300e3 if _has_avx512() else 25e3), ("32x32x16", None)):
        kernel = load(assembly_of(MATRIX[form]))
        count = launch_mfma(kernel)
        seconds = median_seconds(launched(kernel, 16), repeats)
        yield Row(f"v_mfma_f32_{form}_fp8_fp8", count / seconds, "/s", bar, least=True, note="bit-exact, checks off")
    kernel, groups = load(assembly_of(ALU)), 32
    report = launch(kernel, [bytes(8)], (groups, 1, 1), (256, 1, 1), [], checks=False)
    for checks in (False, True):
        seconds = median_seconds(launched(kernel, groups, checks=checks), repeats)
        note = f"vector and scalar mix, {report.waves} waves, checks {'on' if checks else 'off'}"
        yield Row("wave instructions", report.instructions / seconds, "/s", 5e6, least=True, note=note)


def launch_mfma(kernel: Kernel) -> int:
    return launch(kernel, [bytes(8)], (16, 1, 1), (256, 1, 1), [], checks=False).mfma


def first_use(repeats: int) -> Iterator[Row]:
    """The engine built on a machine that never had it; the first launch of a kernel against a later one."""
    code = "import time; t = time.perf_counter(); from parity.gfx942 import native; native.library(); print(time.perf_counter() - t)"
    with tempfile.TemporaryDirectory() as folder:
        times = [float(subprocess.run([sys.executable, "-c", code], env=os.environ | {"XDG_CACHE_HOME": folder}, check=True, capture_output=True, text=True).stdout)
                 for _ in range(2)]  # fmt: skip
    yield Row("engine, first use on a machine", times[0], "s", 3.0, note="compiled by ziglang's clang")
    yield Row("engine, from the cache", times[1], "s", note="Python's imports included")
    text = assembly_of(ALU)
    started = time.perf_counter()
    run = launched(load(text), 1)
    run()
    first = time.perf_counter() - started
    yield Row(
        "kernel, first use", first - median_seconds(run, repeats), "s", 3.0, note="assembled, read, decoded, translated"
    )


def scaling() -> Iterator[Row]:
    """Two processes at once against one: instructions a second, each process counting for the same time."""
    code = (
        "import sys, time; from parity.gfx942 import load; from parity.gfx942.bench import launched; from parity.gfx942.bench_kernels import *\n"
        "run = launched(load(assembly_of(ALU)), 8); run(); end = time.perf_counter() + 3; n = 0\n"
        "while time.perf_counter() < end: run(); n += 1\nprint(n)"
    )

    def rate(processes: int) -> int:
        running = [
            subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) for _ in range(processes)
        ]
        return sum(int(process.communicate()[0]) for process in running)

    if (os.cpu_count() or 1) < 2:
        yield Row("two processes", None, "x", 1.8, least=True, note="this machine has one core")
        return
    ratio = statistics.median(rate(2) / rate(1) for _ in range(3))
    yield Row("two processes", ratio, "x of one", 1.8, least=True, note="median of 3; other work lowers it")


def memory() -> Iterator[Row]:
    """Peak memory of a process that launches 16 workgroups, and one that launches 4,096 over the same tensor."""
    code = (
        "import sys, resource; from parity.gfx942 import load; from parity.gfx942.bench import launched; from parity.gfx942.bench_kernels import *\n"
        "launched(load(assembly_of(TOUCH)), int(sys.argv[1]), checks=True)(); print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)"
    )
    small, large = (
        int(
            subprocess.run([sys.executable, "-c", code, str(groups)], check=True, capture_output=True, text=True).stdout
        )
        for groups in (16, 4096)
    )
    yield Row(
        "memory, 4,096 against 16 workgroups", (large - small) / 1024, "MiB more", 8.0, note="the tensors are the same"
    )


def kernels(repeats: int, aiter: str | None) -> Iterator[Row]:
    """Kernels of Triton and FlyDSL. parity.bench knows their wrappers and prints a line each; nothing here does."""
    command = [sys.executable, "-m", "parity.bench", "--repeats", str(repeats), *(["--aiter", aiter] if aiter else [])]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        for line in process.stdout:
            name, figure, unit, bar, note = line.rstrip("\n").split("\t")
            yield Row(name, float(figure) if figure else None, unit, float(bar) if bar else None, note=note)
        errors = process.stderr.read()
    if process.returncode:
        yield Row("kernels", None, "s", note=(errors.strip() or "no message").splitlines()[-1][:200])


def _has_avx512() -> bool:
    path = Path("/proc/cpuinfo")
    return path.exists() and " avx512f " in path.read_text()


def machine() -> str:
    path = Path("/proc/cpuinfo")
    model = (
        next(
            (line.partition(":")[2].strip() for line in path.read_text().splitlines() if line.startswith("model name")),
            "unknown CPU",
        )
        if path.exists()
        else "unknown CPU"
    )
    return (
        f"{model}, {os.cpu_count()} cores, AVX-512 {'yes' if _has_avx512() else 'no'}, Python {sys.version.split()[0]}"
    )


def text_of(row: Row) -> str:
    if row.figure is None:
        return f"{row.name:<58} not measured: {row.note}"
    bar = "" if row.bar is None else f"{'at least' if row.least else 'at most'} {row.bar:,.12g}"
    figure = f"{row.figure:,.0f}" if row.figure >= 1000 else f"{row.figure:.3g}"
    return f"{row.name:<58} {figure:>12} {row.unit:<9} {bar:<18} {'MISSED' if row.missed else ''}  {row.note}".rstrip()


def main() -> int:
    """Prints the table; 1 when a measured figure misses its bar."""
    parser = argparse.ArgumentParser(
        prog="python -m parity.gfx942.bench", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    groups: dict[str, Callable[[argparse.Namespace], Iterator[Row]]] = {
        "instructions": lambda options: instructions(options.repeats),
        "first-use": lambda options: first_use(options.repeats),
        "scaling": lambda options: scaling(),
        "memory": lambda options: memory(),
        "kernels": lambda options: kernels(options.repeats, options.aiter),
    }
    parser.add_argument(
        "--only", choices=list(groups), action="append", help="measure these rows only (may be given again)"
    )
    parser.add_argument("--repeats", type=int, default=REPEATS, help=f"runs whose median is taken (default: {REPEATS})")
    parser.add_argument(
        "--aiter",
        metavar="PATH@REV",
        default=os.environ.get("PARITY_AITER"),
        help="aiter's kernels too, of this checkout (default: $PARITY_AITER)",
    )
    parser.add_argument("--json", type=Path, help="write the rows there too")
    options = parser.parse_args()
    if options.repeats < 1:
        parser.error("--repeats must be at least 1")
    print(machine())
    rows = []
    for name in options.only or groups:
        for row in groups[name](options):
            print(text_of(row), flush=True)
            rows.append(row)
    if options.json:
        options.json.write_text(
            json.dumps({"machine": machine(), "rows": [asdict(row) | {"missed": row.missed} for row in rows]}, indent=1)
            + "\n"
        )
    return int(any(row.missed for row in rows))


if __name__ == "__main__":
    sys.exit(main())
