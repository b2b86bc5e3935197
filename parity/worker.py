# SPDX-License-Identifier: Apache-2.0
"""One arm: a process of its own that loads one kernel and runs it on the inputs it is given.

A compiler that aborts, a kernel that hangs or a wrapper that patches global state can harm this process alone. arm.py starts it
and talks to it in JSON lines: `{"source": .., "kernel": .., "device": ..}` first, answered by what was loaded, then one request a run.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import importlib
import importlib.machinery
import json
import os
import sys
import time
import traceback
import types
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import IO, Any

import numpy as np
import torch

from parity.contract import row_named
from parity.contract_calls import observe
from parity.devices import gpu_error
from parity.inputs import Inputs
from parity.kernels.arguments import ROW_ALIGN
from parity.launchers.record import STREAM, CallRecord
from parity.planted import AROUND, SELECTIONS, planted
from parity.selector import select
from parity.sources import WRAPPERS, Source

Wrapper = Callable[..., torch.Tensor]
Result = tuple[torch.Tensor, list[dict[str, Any]]]

OTHER_STREAM = 0x6EA  # what a caller gives as `stream=`, in the executor
_BLOCK = 1 << 26  # elements of a result copied at a time


class TreeFinder:
    """Imports aiter's modules from a source tree without running any package's __init__.py.

    aiter's __init__ files import the whole library and want ROCm; the wrapper modules need a handful of siblings only.
    """

    def __init__(self, tree: str) -> None:
        self._tree = Path(tree)

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: object = None
    ) -> importlib.machinery.ModuleSpec | None:
        folder = self._tree / name.replace(".", "/")
        if name.partition(".")[0] != "aiter" or not folder.is_dir():
            return None
        spec = importlib.machinery.ModuleSpec(name, None, is_package=True)
        spec.submodule_search_locations = [str(folder)]
        return spec


def load_wrapper(source: Source, kernel: str, *, executor: bool) -> tuple[Wrapper, types.ModuleType]:
    """The public wrapper of `kernel` and the module that defines it."""
    if source.kind == "aiter":
        sys.meta_path.insert(0, TreeFinder(source.tree))  # type: ignore[arg-type]
        if executor:
            _stand_in_for_rocm(source.tree)
    module = importlib.import_module(source.modules[kernel])
    return getattr(module, WRAPPERS[kernel]), module


def _stand_in_for_rocm(tree: str) -> None:
    """aiter's chip_info imports `cpp_extension`, which looks for ROCm on import; of it, it needs `executable_path` alone, and that
    only to ask rocminfo for the GPU, which GPU_ARCHS=gfx942 answers before."""
    sys.path.insert(0, str(Path(tree) / "aiter/jit/utils"))
    stand_in = types.ModuleType("cpp_extension")
    stand_in.executable_path = lambda name: name  # type: ignore[attr-defined]
    sys.modules["cpp_extension"] = stand_in


class NoLaunch(Exception):
    """A wrapper that answers without its kernel proves nothing about the kernel, however right the answer."""


class Unwritten(Exception):
    """Part of the logits is what the memory happened to hold."""


class InputModified(Exception):
    """A wrapper or kernel changed what the caller gave it."""


class KernelFault(Exception):
    """A GPU kernel touched memory that is not its own, or the like."""


class DeviceLost(Exception):
    """The GPU does not answer any more. Says nothing about the kernel."""


def of_runtime(error: RuntimeError) -> Exception:
    """What a RuntimeError of torch means: a fault of the kernel, a lost GPU, or (any other) itself."""
    line = gpu_error(error)
    if not line:
        return error
    faults = ("illegal memory access", "illegal address", "misaligned address", "illegal instruction", "launch failure")
    return KernelFault(line) if any(fault in line for fault in faults) else DeviceLost(line)


@dataclass(frozen=True)
class Seen:
    """What one call gave: the result, the stream of each launch ([] where launches are not seen), and bool [M,N], which elements
    nobody wrote (None where that is not seen)."""

    logits: Any
    streams: list[int]
    unwritten: torch.Tensor | None


class ExecutorDevice:
    """Runs wrappers on CPU tensors; their launches go to the gfx942 executor."""

    where, gfx = "executor", "gfx942"

    def __init__(self, kernel: str) -> None:
        self._call: Any = None
        self.torch_device = "cpu"
        self.mutation: Any = None  # a parity.gfx942.mutation.Mutation of what the next calls launch
        if kernel == "triton":
            from parity.launchers import triton_

            triton_.install(lambda: self._call)
        else:
            from parity.launchers import flydsl_

            os.environ["ROCM_PATH"] = str(flydsl_.linker_folder(Path(os.environ["PARITY_ARM_FOLDER"])))
            flydsl_.install(lambda: self._call)
        torch.cuda.current_stream = lambda device=None: types.SimpleNamespace(cuda_stream=STREAM)  # type: ignore
        torch.cuda.device = lambda device: contextlib.nullcontext()  # type: ignore

    def run(self, wrapper: Wrapper, tensors: dict[str, torch.Tensor], options: dict[str, Any]) -> Result:
        """Logits and launches of one call. Raises NoLaunch unless a launch wrote to the memory that is returned."""
        logits = self._called(wrapper, tensors, tuple(tensors.values()), options)
        if not self._call.launches:
            raise NoLaunch(
                "the wrapper returned logits and launched no kernel: a fallback, or a launch that went elsewhere"
            )
        if not self._call.wrote(logits):
            raise NoLaunch("the wrapper launched a kernel, but returned logits in memory that no launch wrote")
        unwritten = self._call.unwritten(logits)
        if unwritten:
            raise Unwritten(f"{unwritten:,} of {logits.numel():,} logits were never written")
        return logits, [asdict(launch) for launch in self._call.launches]

    def observe(
        self, wrapper: Wrapper, tensors: dict[str, torch.Tensor], arguments: tuple[Any, ...], options: dict[str, Any]
    ) -> Seen:
        """One call, legal or not, of which nothing is demanded; `tensors` are those among its arguments."""
        logits = self._called(wrapper, tensors, arguments, options)
        mask = self._call.unwritten_mask(logits) if isinstance(logits, torch.Tensor) else None
        return Seen(logits, [launch.stream for launch in self._call.launches], mask)

    def other_stream(self) -> Any:
        """A stream that is not the current one."""
        return types.SimpleNamespace(cuda_stream=OTHER_STREAM)

    def _called(
        self, wrapper: Wrapper, tensors: dict[str, torch.Tensor], arguments: tuple[Any, ...], options: dict[str, Any]
    ) -> torch.Tensor:
        self._call = CallRecord(tensors, earlier=self._call, mutation=self.mutation)
        with self._call:
            logits = wrapper(*arguments, **options)
        failure, self._call.failure = self._call.failure, None
        if failure is not None:
            try:
                raise failure
            finally:
                del failure  # else its traceback and this frame hold each other, and with them all tensors of the call
        return logits

    def code(self) -> list[dict[str, Any]]:
        """Of each kernel that the last call launched, what mutants are drawn from (parity.gfx942.mutation.Code)."""
        from parity.gfx942.mutation import code_of

        return [code_of(kernel).to_json() for kernel in self._call.kernels.values()]


class GpuDevice:
    """Runs wrappers on the first visible GPU (its number was chosen before this process began). It sees no launches.

    A gfx942 GPU through ROCm, or for the Triton kernel a CUDA GPU.
    """

    def __init__(self, kind: str) -> None:
        properties = torch.cuda.get_device_properties(0)
        self.gfx = (
            properties.gcnArchName.partition(":")[0] if kind == "gpu" else f"sm_{properties.major}{properties.minor}"
        )
        self.where = f"{kind} {self.gfx} ({properties.name})"
        self.torch_device = "cuda:0"

    def run(self, wrapper: Wrapper, tensors: dict[str, torch.Tensor], options: dict[str, Any]) -> Result:
        """Logits, on the GPU, and no launches. Raises KernelFault or DeviceLost for what the runtime says of the GPU."""
        try:
            moved = [tensor.to("cuda:0") for tensor in tensors.values()]
            self._poison(moved)
            logits = wrapper(*moved, **options)
            torch.cuda.synchronize()
            for tensor, on_gpu in zip(tensors.values(), moved, strict=True):
                tensor.view(torch.uint8).copy_(
                    on_gpu.view(torch.uint8)
                )  # so that a modified input shows, as on the executor
        except RuntimeError as error:
            raise of_runtime(error) from error
        return logits, []

    def observe(
        self, wrapper: Wrapper, tensors: dict[str, torch.Tensor], arguments: tuple[Any, ...], options: dict[str, Any]
    ) -> Seen:
        """One call, legal or not, on tensors that are on the GPU already."""
        try:
            logits = wrapper(*arguments, **options)
            torch.cuda.synchronize()
        except RuntimeError as error:
            raise of_runtime(error) from error
        return Seen(logits, [], None)

    def other_stream(self) -> Any:
        """A stream that is not the current one, after all work that the current one has."""
        torch.cuda.synchronize()
        return torch.cuda.Stream()

    def _poison(self, moved: list[torch.Tensor]) -> None:
        """Leave NaN in the memory that the wrapper's torch.empty will get: torch gives a freed block to the next tensor of its size."""
        rows, columns = moved[0].shape[0], -(-moved[1].shape[0] // ROW_ALIGN) * ROW_ALIGN
        torch.full((rows, columns), float("nan"), device="cuda:0")


def tensors_of(inputs: Inputs) -> dict[str, torch.Tensor]:
    """The wrapper's positional arguments, in order, as views of the inputs' bytes."""
    return {
        "Q": inputs.q.view(inputs.q_encoding.torch_dtype),
        "KV": inputs.kv.view(inputs.kv_encoding.torch_dtype),
        "kv_scales": inputs.kv_scales,
        "weights": inputs.weights,
        "cu_starts": inputs.starts,
        "cu_ends": inputs.ends,
    }


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
