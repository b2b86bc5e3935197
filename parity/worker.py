# SPDX-License-Identifier: Apache-2.0
"""One arm: a process of its own that loads one kernel and runs it on the inputs it is given.

A compiler that aborts, a kernel that hangs or a wrapper that patches global state can harm this process alone. arm.py starts it
and talks to it in JSON lines: `{"source": .., "kernel": .., "device": ..}` first, answered by what was loaded, then one request a run.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import sys
import time
import traceback
import types
from dataclasses import replace
from pathlib import Path
from typing import IO, Any

import numpy as np
import torch

from parity.calling import DeviceLost, ExecutorDevice, GpuDevice, KernelFault, Result
from parity.contract import row_named
from parity.contract_calls import observe
from parity.inputs import Inputs, tensors_of
from parity.loading import Wrapper, load_wrapper
from parity.planted import AROUND, SELECTIONS, planted
from parity.selector import select
from parity.sources import Source

_BLOCK = 1 << 26  # elements of a result copied at a time


class InputModified(Exception):
    """A wrapper or kernel changed what the caller gave it."""


def _describe(module: types.ModuleType, device: ExecutorDevice | GpuDevice) -> dict[str, Any]:
    path = Path(str(module.__file__))
    loaded = {name: sys.modules[name] for name in ("torch", "triton", "flydsl") if name in sys.modules}
    return {
        "where": device.where,
        "gfx": device.gfx,
        "kernel_file": str(path),
        "kernel_sha256": hashlib.sha256(path.read_bytes()).hexdigest(),
        "packages": {name: [str(part.__version__), str(part.__file__)] for name, part in loaded.items()},
        "python": sys.version.split()[0],
    }


_KINDS = {
    "ExecutionFault": "kernel-fault",
    "Unsupported": "unsupported",
    "BadCodeObject": "compile-error",
    "NoLaunch": "no-launch",
    "InputModified": "input-modified",
    "Unwritten": "unwritten",
    "KernelFault": "kernel-fault",
    "DeviceLost": "device-lost",
}


def _compilers() -> tuple[str, ...]:
    """Folders of the compilers in this process (aiter has folders of the same names, which are not meant)."""
    return tuple(
        f"{Path(str(sys.modules[name].__file__)).parent}/" for name in ("flydsl", "triton") if name in sys.modules
    )


def _problem(error: Exception, kernel_file: str) -> dict[str, str]:
    """What a wrapper raised, as a finding: {kind, text}. A compiler's frame in the traceback makes it a compile error."""
    name = type(error).__name__
    text = f"{name}: {error}"
    kind = _KINDS.get(name)
    if isinstance(error, OSError) and error.errno == errno.ENOSPC:
        kind = "no-space"
    if kind is None:
        frames = traceback.extract_tb(error.__traceback__)
        kind = "compile-error" if any(frame.filename.startswith(_compilers()) for frame in frames) else "wrapper-error"
        own = [frame for frame in frames if frame.filename == kernel_file]
        places = (
            [own[-1], frames[-1]] if own and own[-1] != frames[-1] else frames[-1:]
        )  # where in the kernel, where in the compiler
        text += " (" + ", raised in ".join(f"{Path(frame.filename).name}:{frame.lineno}" for frame in places) + ")"
    return {"kind": kind, "text": " ".join(text.split())[:2000]}


def _call(device: ExecutorDevice | GpuDevice, wrapper: Wrapper, inputs: Inputs, options: dict[str, Any]) -> Result:
    """One call on its own copy of the inputs, which must come back unchanged."""
    given, before = tensors_of(inputs), {name: tensor.clone() for name, tensor in tensors_of(inputs).items()}
    result = device.run(wrapper, given, options)
    for name, tensor in given.items():
        if not torch.equal(tensor.view(torch.uint8), before[name].view(torch.uint8)):
            raise InputModified(f"the caller's {name} was changed")
    return result


def _other_contents(inputs: Inputs) -> Inputs:
    """The same shapes and dtypes with everything moved by one token, row or sign; each row gets the window of the one before."""
    return replace(
        inputs,
        q=inputs.q.roll(1, 0),
        kv=inputs.kv.roll(1, 0),
        kv_scales=2 * inputs.kv_scales.roll(1, 0),
        weights=-inputs.weights,
        starts=inputs.starts.roll(1, 0),
        ends=inputs.ends.roll(1, 0),
    )


def _answer(
    request: dict[str, Any], source: Source, device: ExecutorDevice | GpuDevice, wrapper: Wrapper
) -> dict[str, Any]:
    inputs = Inputs.load(Path(request["inputs"]))
    _mutate(device, None if "contract" in request else request["mutation"])
    if "contract" in request:
        return observe(
            row_named(request["contract"]),
            inputs,
            wrapper,
            device,
            lambda tensor, name: _save(tensor, Path(request["outputs"]) / name),
        )
    plant, options = request["plant"], {}
    if source.kind == "own" and plant in AROUND:
        wrapper = planted(wrapper, plant)
    elif plant is not None and plant not in SELECTIONS:
        options = {"plant": plant}  # the wrapper's own affair: compiled into an own kernel
    # A first call with other contents: a wrapper that keeps something by shape then answers the judged calls with it.
    _call(device, wrapper, _other_contents(inputs), options)
    started, launches, outputs, selected = time.perf_counter(), [], [], ""
    for number in range(request["repeats"]):
        logits, launched = _call(device, wrapper, inputs, options)
        launches += launched
        outputs.append(_save(logits, Path(request["outputs"]) / str(number)))
        if number == 0 and outputs[0].endswith(".npy") and logits.shape == (inputs.q.shape[0], inputs.kv.shape[0]):
            selected = _select(logits, inputs, request)
    reply = {"outputs": outputs, "launches": launches, "selected": selected, "seconds": time.perf_counter() - started}
    if request["code"]:
        assert isinstance(device, ExecutorDevice)
        reply["code"] = device.code()
    return reply


def _mutate(device: ExecutorDevice | GpuDevice, mutation: dict[str, Any] | None) -> None:
    """Change the kernel of the next calls, or (None) leave it as it is."""
    if isinstance(device, ExecutorDevice):
        from parity.gfx942.mutation import Mutation

        device.mutation = None if mutation is None else Mutation(**mutation)
    elif mutation is not None:
        raise ValueError("machine code is changed in the executor only")


def _select(logits: torch.Tensor, inputs: Inputs, request: dict[str, Any]) -> str:
    """The tokens that a selector takes from these logits, where they are; the name of the .npy file, int32 [M,k]."""
    starts, ends = (bound.to(logits.device) for bound in (inputs.starts, inputs.ends))
    path = Path(request["outputs"]) / "selected.npy"
    chosen = select(logits, starts, ends, request["k"])
    if request["plant"] in SELECTIONS:
        chosen = SELECTIONS[request["plant"]](chosen, logits, starts)
    np.save(path, chosen.cpu().numpy())
    return str(path)


def _save(logits: Any, path: Path) -> str:
    """A result of the form it should have as .npy, a block of rows at a time so that it need not fit into host memory; any other as
    torch saves it. Returns the file's name."""
    if not isinstance(logits, torch.Tensor) or logits.dtype != torch.float32 or logits.dim() != 2:
        torch.save(logits.detach().contiguous() if isinstance(logits, torch.Tensor) else logits, f"{path}.pt")
        return f"{path}.pt"
    with open(f"{path}.npy", "wb") as file:
        header = {"descr": "<f4", "fortran_order": False, "shape": tuple(logits.shape)}
        np.lib.format.write_array_header_1_0(file, header)
        for rows in logits.detach().split(max(1, _BLOCK // max(1, logits.shape[1]))):
            file.write(rows.cpu().contiguous().numpy().tobytes())
    return f"{path}.npy"


def serve(requests: IO[str], replies: IO[str]) -> None:
    """Load what the first line names, then answer one JSON line with one JSON line until the end of input."""

    def reply(message: dict[str, Any]) -> None:
        replies.write(json.dumps(message) + "\n")
        replies.flush()

    setup = json.loads(requests.readline())
    source = Source(**setup["source"])
    try:
        device: ExecutorDevice | GpuDevice = (
            ExecutorDevice(setup["kernel"]) if setup["device"] == "executor" else GpuDevice(setup["device"])
        )
        wrapper, module = load_wrapper(source, setup["kernel"], executor=setup["device"] == "executor")
    except Exception as error:  # whatever an import raises is the answer to "can it be imported?"
        # A missing package is this machine's; anything else is what the candidate's own code does on import.
        missing = isinstance(error, ImportError) and not str(error.name).startswith("aiter")
        reply({"error": {"kind": "not-importable" if missing else "import-error", "text": _problem(error, "")["text"]}})
        return
    reply(_describe(module, device))
    for line in requests:
        try:
            reply(_answer(json.loads(line), source, device, wrapper))
        except Exception as error:  # whatever a compiler or a wrapper raises is a finding about the arm
            reply({"error": _problem(error, str(module.__file__))})
            if isinstance(error, KernelFault | DeviceLost):
                return  # no later call of this process can use the GPU


def main() -> None:
    """Requests on stdin, replies on the original stdout; what compilers print goes to stderr instead."""
    replies = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    serve(sys.stdin, replies)
    replies.close()
    sys.stderr.flush()
    os._exit(0)  # interpreter shutdown would tear down MLIR and torch.library in an order that prints tracebacks


if __name__ == "__main__":
    main()
