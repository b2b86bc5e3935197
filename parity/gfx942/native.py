# SPDX-License-Identifier: Apache-2.0
"""Builds and loads the engine (engine/engine.c).

The compiler is clang from PyPI's `ziglang`, so nothing but pip is needed. The shared library lies in the user's cache
under a name that hashes the source, the compiler and this machine's CPU features; it is written beside its final name and
renamed, so that any number of processes may build it at once.
"""

from __future__ import annotations

import ctypes
import hashlib
import importlib.metadata
import os
import platform
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from parity.gfx942.records import SIZES, Machine, Operation

SOURCE = Path(__file__).with_name("engine")


def cache_folder() -> Path:
    """Where compiled pieces are kept: $XDG_CACHE_HOME/logits-parity or ~/.cache/logits-parity."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "logits-parity"


def zig_tool(*arguments: str, timeout: float = 120) -> subprocess.CompletedProcess[str]:
    """Run a tool of PyPI's `ziglang` (clang, ld.lld). Raises CalledProcessError with its stderr when it fails, or does not end:
    clang's assembler is known to loop for ever on some malformed text."""
    command = [sys.executable, "-m", "ziglang", *arguments]
    # cwd: `python -m` would take a folder named ziglang out of the user's; all paths given here are absolute
    try:
        return subprocess.run(
            command, check=True, capture_output=True, text=True, cwd=os.sep, stdin=subprocess.DEVNULL, timeout=timeout
        )
    except subprocess.TimeoutExpired:
        raise subprocess.CalledProcessError(1, command, stderr=f"no end after {timeout:.0f} s") from None


@cache
def library() -> ctypes.CDLL:
    """The compiled engine, built at first use (about 3 s, then cached)."""
    source = b"".join(path.name.encode() + path.read_bytes() for path in sorted(SOURCE.iterdir()) if path.is_file())
    key = hashlib.sha256(source + _compiler_and_cpu().encode()).hexdigest()[:24]
    wanted = cache_folder() / f"engine-{key}.so"
    try:
        if not wanted.exists():
            _build(wanted)
        loaded = ctypes.CDLL(str(wanted))
    except (OSError, subprocess.CalledProcessError):
        # A read-only or full cache costs a moment, not the verdict: build for this process alone. What is loaded may be deleted.
        with tempfile.TemporaryDirectory(prefix="logits-parity-") as folder:
            _build(Path(folder) / wanted.name)
            loaded = ctypes.CDLL(str(Path(folder) / wanted.name))
    pointer, integer, flag = ctypes.c_void_p, ctypes.c_int64, ctypes.c_int
    loaded.mfma_f8.argtypes = [pointer, integer, flag, pointer, integer, flag, *(pointer, integer) * 2, integer, flag]
    loaded.mfma_f8.restype = None
    loaded.run_groups.argtypes = [ctypes.POINTER(Machine), pointer, ctypes.c_uint64]
    loaded.run_groups.restype = ctypes.c_uint32
    loaded.operation.argtypes = [ctypes.c_uint32]
    loaded.operation.restype = ctypes.POINTER(Operation)
    sizes = (ctypes.c_uint64 * len(SIZES))()
    loaded.layout_sizes(sizes)
    if list(sizes) != SIZES:
        raise AssertionError(f"records.py and engine.h differ: {SIZES}, {list(sizes)}")
    return loaded


def _compiler_and_cpu() -> str:
    """What besides the source decides the machine code; a home folder may be shared by unlike machines."""
    flags = ""
    if os.path.exists("/proc/cpuinfo"):
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        flags = next((line for line in lines if line.startswith(("flags", "Features"))), "")
    return f"{importlib.metadata.version('ziglang')} {platform.machine()} {flags}"


def _build(wanted: Path) -> None:
    """Compile beside `wanted`, then rename. Raises OSError or CalledProcessError."""
    wanted.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".build-", dir=wanted.parent) as folder:
        built, compiled = Path(folder) / "engine.so", Path(folder) / "engine.o"
        # -ffp-contract=off: only what is written as a fused operation may be fused. -w: the tables leave operands unused.
        flags = ["-O3", "-march=native", "-fPIC", "-ffreestanding", "-ffp-contract=off", "-fno-math-errno",
                 "-fno-strict-aliasing", "-w"]  # fmt: skip
        source = str(SOURCE / "engine.c")
        zig_tool("clang", f"--target={platform.machine()}-linux-gnu", *flags, "-c", source, "-o", str(compiled))
        zig_tool("ld.lld", "-shared", str(compiled), "-o", str(built))
        os.replace(built, wanted)


@dataclass(frozen=True)
class Semantics:
    """One line of the engine's tables: its number, kind (V, S, P, O or D), types of the result and the sources, fidelity."""

    op: int
    kind: str
    types: tuple[str, ...]
    fidelity: int
    sources: int


@cache
def semantics() -> dict[str, Semantics]:
    """Every instruction of engine/vector.def and scalar.def by mnemonic; comparisons as v_cmp_ and v_cmpx_."""
    table: dict[str, Semantics] = {}
    index = 0
    while found := library().operation(index):
        name, signature = found.contents.name.decode(), found.contents.types.decode()
        types = tuple(signature[2:].split(" ")) if signature[0] == "D" else tuple(signature[1:])
        entry = Semantics(index, signature[0], types, found.contents.fidelity, found.contents.sources)
        for full in (f"v_cmp_{name}", f"v_cmpx_{name}") if entry.kind == "O" else (name,):
            table[full] = entry
        index += 1
    return table


def mfma_f8(
    rows: int,
    left: np.ndarray,
    right: np.ndarray,
    addend: np.ndarray,
    *,
    left_bf8: bool = False,
    right_bf8: bool = False,
) -> np.ndarray:
    """D = A B + C of v_mfma_f32_{16x16x32|32x32x16} on fp8 (e4m3 FNUZ) or bf8 (e5m2 FNUZ) operands.

    rows: 16 or 32. left, right: uint32 [2, waves, 64], the two operand registers; addend: uint32 (fp32 bits)
    [rows*rows/64, waves, 64]. Returns uint32 like addend. Lane layouts and rounding: engine/matrix.c.
    """
    registers, waves = rows * rows // 64, left.shape[1]
    if (
        rows not in (16, 32)
        or left.shape != (2, waves, 64)
        or right.shape != left.shape
        or addend.shape != (registers, waves, 64)
    ):
        raise ValueError(f"mfma_f8: rows {rows}, shapes {left.shape}, {right.shape}, {addend.shape}")
    parts = [np.ascontiguousarray(part, dtype=np.uint32) for part in (left, right, addend)]
    result = np.empty_like(parts[2])
    stride = waves * 64
    library().mfma_f8(
        parts[0].ctypes.data, stride, int(left_bf8), parts[1].ctypes.data, stride, int(right_bf8),
        parts[2].ctypes.data, stride, result.ctypes.data, stride, waves, rows,
    )  # fmt: skip
    return result
