# SPDX-License-Identifier: Apache-2.0
"""One arm: a worker process (worker.py) with one kernel of one source on one device.

Whatever happens to that process is an ArmError here, never an exception of its own.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
import torch

from parity.contract import Row
from parity.devices import Device
from parity.gfx942.mutation import Mutation
from parity.inputs import Inputs
from parity.sources import Source

TIMEOUT_SECONDS = 600.0
# Variables with these prefixes steer compilers and kernels; an arm gets its own, not the user's.
STEERING = ("FLYDSL_", "TRITON_", "AITER_", "LLVM_", "MLIR_", "AMDGCN_", "HSA_OVERRIDE")
STEERING_NAMES = ("ARCH", "COMPILE_ONLY", "GPU_ARCHS", "DISABLE_LLVM_OPT", "ROCM_PATH")


class ArmError(Exception):
    """kind: import-error, compile-error, wrapper-error, kernel-fault, unwritten, input-modified, crash (findings about the arm); unsupported, no-launch,
    killed, timeout, no-space, device-lost (nothing is known about the kernel); not-importable (the arm never started). text: one line."""

    def __init__(self, kind: str, text: str) -> None:
        super().__init__(f"{kind}: {text}")
        self.kind, self.text = kind, text


@dataclass(frozen=True)
class Run:
    """outputs: logits float32 [M, N] of each repeat; selected: int32 [M, k], what selector.select made of the first, None where
    they are no such logits; launches: symbol, sha256, grid, ... of each launch (executor only). code: of each launched kernel, where
    it was asked for (as gfx942.mutation.Code.to_json gives it)."""

    outputs: tuple[torch.Tensor, ...]
    selected: torch.Tensor | None
    launches: tuple[dict[str, Any], ...]
    seconds: float
    code: tuple[dict[str, Any], ...] = ()


@dataclass(frozen=True)
class Observation:
    """What a call of the contract gave. `error`: (kind, text) of an ArmError, "" if there was none; else `outputs`: the result of each
    call, whatever it is; `unwritten`: 1.0 [M,N] where nobody wrote the first; `form`: dtype, shape, strides and device as text;
    `modified`: arguments whose memory was changed; `streams`: of each launch, `wanted`: where they should go, 0 for the current one;
    `shared`: whose memory a result lies in, asked in one row. Or only `signature`: (name, kind, default) in order."""

    outputs: tuple[Any, ...] = ()
    unwritten: torch.Tensor | None = None
    form: str = ""
    modified: str = ""
    streams: tuple[int, ...] = ()
    signature: tuple[tuple[str, ...], ...] = ()
    error: tuple[str, str] = ("", "")
    wanted: int = 0
    shared: str = ""


class Arm:
    """One kernel of one source on one device, in a process of its own. Use as a context manager.

    Caches of both compilers are private and empty at the start, so what runs was compiled now.
    """

    def __init__(self, source: Source, kernel: str, device: Device, *, timeout: float = TIMEOUT_SECONDS) -> None:
        self.source, self.kernel, self.device = source, kernel, device
        self.provenance: dict[str, Any] = {}
        self._timeout = timeout
        self._process: subprocess.Popen[bytes] | None = None
        self._buffer = b""
        self._folder = Path(tempfile.mkdtemp(prefix="parity-arm-"))

    def __enter__(self) -> Arm:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop()
        shutil.rmtree(self._folder, ignore_errors=True)

    def start(self) -> dict[str, Any]:
        """Start the process and load the kernel (about 3 s); returns its provenance. Raises ArmError."""
        self._buffer = b""
        with open(self._folder / "stderr", "wb") as errors:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "parity.worker"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                env=self._environment(),
                cwd=self._folder,  # `python -m` puts this first on the import path: a folder that holds no modules,
            )
        setup = {"source": asdict(self.source), "kernel": self.kernel, "device": self.device.kind}
        self.provenance = self._ask(setup)
        return self.provenance

    def run(
        self,
        inputs: Inputs,
        *,
        k: int = 1,
        repeats: int = 1,
        plant: str | None = None,
        mutation: Mutation | None = None,
        code: bool = False,
    ) -> Run:
        """Call the wrapper `repeats` times on the same inputs, and select k tokens a row. Raises ArmError; after a crash the next run starts anew.

        mutation: change one instruction of the kernel that it applies to (executor). code: also give the code of what was launched."""
        changed = None if mutation is None else asdict(mutation)
        request = {"k": k, "repeats": repeats, "plant": plant, "code": code, "mutation": changed}
        reply = self._ask(self._request(inputs) | request)
        selected = _loaded(reply["selected"]) if reply["selected"] else None
        return Run(
            tuple(_loaded(name) for name in reply["outputs"]),
            selected,
            tuple(reply["launches"]),
            reply["seconds"],
            tuple(reply["code"]) if code else (),
        )

    def call_contract(self, row: Row, inputs: Inputs) -> Observation:
        """Call the wrapper as a row of the contract says. An ArmError is part of what is observed; after a crash the next call starts anew."""
        try:
            reply = self._ask(self._request(inputs) | {"contract": row.name})
        except ArmError as error:
            return Observation(error=(error.kind, error.text))
        if "signature" in reply:
            return Observation(signature=tuple(tuple(parameter) for parameter in reply["signature"]))
        unwritten = _loaded(reply["unwritten"]) if reply["unwritten"] else None
        outputs = tuple(_loaded(name) for name in reply["outputs"])
        return Observation(outputs, unwritten, reply["form"], reply["modified"], tuple(reply["streams"]),
                           wanted=reply["wanted"], shared=reply["shared"])  # fmt: skip

    def _request(self, inputs: Inputs) -> dict[str, Any]:
        """The start of a request, the inputs written. Starts the process if there is none."""
        if self._process is None:
            self.start()
        path, outputs = self._folder / "inputs.safetensors", self._folder / "outputs"
        outputs.mkdir(exist_ok=True)
        try:
            inputs.save(path)
        except OSError as error:
            raise ArmError("no-space", f"cannot write the inputs: {error.strerror}") from None
        return {"inputs": str(path), "outputs": str(outputs)}

    def _environment(self) -> dict[str, str]:
        steering = set(STEERING_NAMES[:-1] if self.device.kind == "gpu" else STEERING_NAMES)  # a GPU needs its ROCm
        kept = {
            name: value for name, value in os.environ.items() if not name.startswith(STEERING) and name not in steering
        }
        given = [
            os.path.abspath(path) for path in kept.get("PYTHONPATH", "").split(os.pathsep) if path
        ]  # the process runs elsewhere
        paths = [self.source.flydsl_path, str(Path(__file__).resolve().parent.parent), *given]
        kept["PYTHONPATH"] = os.pathsep.join(path for path in paths if path)
        kept |= {
            "FLYDSL_RUNTIME_CACHE_DIR": str(self._folder / "flydsl"),
            "TRITON_CACHE_DIR": str(self._folder / "triton"),
        }
        kept["PARITY_ARM_FOLDER"] = str(self._folder)
        if self.device.kind == "executor":
            kept |= {"ARCH": "gfx942", "FLYDSL_GPU_ARCH": "gfx942", "GPU_ARCHS": "gfx942", "OMP_NUM_THREADS": "1"}
        else:
            kept["HIP_VISIBLE_DEVICES" if self.device.kind == "gpu" else "CUDA_VISIBLE_DEVICES"] = str(self.device.gpu)
        return kept

    def _ask(self, message: dict[str, Any]) -> dict[str, Any]:
        assert self._process is not None and self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # a dead process is reported by _reply with its cause
            self._process.stdin.write((json.dumps(message) + "\n").encode())
            self._process.stdin.flush()
        line = self._reply()
        try:
            reply: dict[str, Any] = json.loads(line)
        except json.JSONDecodeError:
            self._stop()
            raise ArmError("crash", f"the process answered {line[:200]!r}") from None
        if "error" in reply:
            if reply["error"]["kind"] in ("not-importable", "import-error", "device-lost") or (
                reply["error"]["kind"] == "kernel-fault" and self.device.kind != "executor"
            ):
                self._stop()  # it cannot go on; the next run starts anew
            raise ArmError(reply["error"]["kind"], reply["error"]["text"])
        return reply

    def _reply(self) -> bytes:
        """One line from the process; ArmError("crash" or "timeout") when none comes."""
        assert self._process is not None and self._process.stdout is not None
        deadline = time.monotonic() + self._timeout
        while b"\n" not in self._buffer:
            if not select.select([self._process.stdout], [], [], max(0.0, deadline - time.monotonic()))[0]:
                self._stop()
                raise ArmError("timeout", f"no answer within {self._timeout:.0f} s")
            chunk = os.read(self._process.stdout.fileno(), 1 << 16)
            if not chunk:
                raise self._death()
            self._buffer += chunk
        line, _, self._buffer = self._buffer.partition(b"\n")
        return line

    def _death(self) -> ArmError:
        """Why the process is gone. SIGKILL comes from outside (out of memory), a full disk is the machine's: neither is a finding."""
        assert self._process is not None
        code = self._process.wait()
        self._stop()
        cause = f"exit status {code}" if code >= 0 else f"signal {signal.Signals(-code).name}"
        text = (self._folder / "stderr").read_text(errors="replace").strip()
        last = f": {text.splitlines()[-1][:500]}" if text else ""
        kind = "killed" if code == -signal.SIGKILL else "no-space" if os.strerror(errno.ENOSPC) in text else "crash"
        return ArmError(kind, f"the process died with {cause}{last}")

    def _stop(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None


def _loaded(name: str) -> torch.Tensor:
    """A result that the process saved, mapped and not read; its file is gone when the tensor is."""
    if name.endswith(".pt"):
        return torch.load(name, weights_only=True)
    mapped = torch.from_numpy(np.load(name, mmap_mode="c"))  # c: torch wants to be able to write
    os.unlink(name)
    return mapped
