# SPDX-License-Identifier: Apache-2.0
"""One process of tests/kernel_coverage.py: compiles the variants of one kernel of one source and runs each in the executor.

`python -m tests.kernel_coverage_run JOB RESULTS WORDS`: JOB is a JSON file; RESULTS gets a JSON line a variant as it is done, so that
a compiler that aborts loses no other variant; WORDS gets the distinct instructions, their dwords in hexadecimal.
"""

from __future__ import annotations

import importlib.util
import json
import os
import sys
import time
import types
from pathlib import Path
from typing import Any

from parity.budget import error_budget
from parity.calling import ExecutorDevice
from parity.cases import Case
from parity.compare import compare
from parity.fp8 import Encoding
from parity.gfx942 import Kernel
from parity.gfx942.decode import Instruction
from parity.gfx942.program import Program, program_of
from parity.inputs import Inputs, build_inputs, tensors_of
from parity.launchers.record import CallRecord
from parity.loading import Wrapper, load_wrapper
from parity.reference import reference_logits
from parity.sources import Source
from parity.worker import _problem

# Fields that name registers, constants or distances; every other field that is not zero is a modifier.
OPERANDS = {"src0", "src1", "src2", "ssrc0", "ssrc1", "vsrc1", "vdst", "sdst", "sbase", "soffset", "vaddr", "vdata", "srsrc",
            "saddr", "addr", "data", "data0", "data1", "s0", "s1", "simm16"}  # fmt: skip
PRESENT = {
    "literal",
    "offset",
    "offset0",
    "offset1",
}  # values without meaning of their own: that they are there is the fact


def form(instruction: Instruction) -> tuple[str, str, str]:
    """(mnemonic, format, modifiers): what the decoder and the semantics must know of an instruction."""
    modifiers = []
    for name, value in instruction.fields.items():
        if value and name in PRESENT:
            modifiers.append(name)
        elif value and name not in OPERANDS:
            modifiers.append(f"{name}={value}")
    return instruction.name, instruction.format, " ".join(sorted(modifiers))


def program(kernel: Kernel) -> Program:
    """The kernel translated as launch() does it."""
    entry = kernel.entry + (256 if kernel.preload_sgprs else 0)
    return program_of(kernel.text, entry, kernel.vgprs, kernel.accum_offset)


def watched_kernels() -> list[Kernel]:
    """A list to which every kernel that reaches the executor is added from now on."""
    kernels: list[Kernel] = []
    launch = CallRecord.launch

    def watching(self: CallRecord, kernel: Kernel, *arguments: Any, **options: Any) -> None:
        kernels.append(kernel)
        launch(self, kernel, *arguments, **options)

    CallRecord.launch = watching  # type: ignore[method-assign]
    return kernels


def load_vllm(path: str) -> tuple[Wrapper, types.ModuleType]:
    """vLLM's Triton kernel from its file alone: of the package it imports triton_utils, which re-exports Triton."""
    import triton
    import triton.language

    utilities = types.ModuleType("vllm.triton_utils")
    utilities.triton, utilities.tl = triton, triton.language  # type: ignore[attr-defined]
    sys.modules |= {"vllm": types.ModuleType("vllm"), "vllm.triton_utils": utilities}
    spec = importlib.util.spec_from_file_location("vllm_fp8_mqa_logits", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module.fp8_mqa_logits_gfx942, module


def inputs_of(variant: dict[str, Any]) -> Inputs:
    """The variant's sizes, windows and encodings."""
    q, kv = (Encoding(name) for name in variant["pair"].split("."))
    sizes = [variant[name] for name in ("m", "n", "heads", "head_dim")]
    return build_inputs(Case(variant["window"], *sizes, q, kv, "gaussian", 0, 64, "every variant of a kernel"))


def judge(variant: dict[str, Any], device: ExecutorDevice, wrapper: Wrapper, file: str) -> dict[str, Any]:
    """{result, why, ratio}: "ran" when the logits agree with the reference, else what happened."""
    inputs = inputs_of(variant)
    options = {"variant": variant["tile"]} if variant["kernel"] == "flydsl" else {}
    try:
        logits, _ = device.run(wrapper, tensors_of(inputs), options)
    except Exception as error:  # whatever a compiler or a kernel does is what this run is to find out
        problem = _problem(error, file)
        return {"result": problem["kind"], "why": problem["text"][:300]}
    found = compare(logits, reference_logits(inputs), error_budget(inputs))
    if found.findings:
        return {"result": "differs", "why": found.findings[0].text[:300]}
    return {"result": "ran", "why": "", "ratio": round(found.ratio, 3)}


def describe(kernels: list[Kernel], words: dict[str, None]) -> dict[str, Any]:
    """Code object, number of instructions and forms of the kernels that a variant launched; what translation refuses."""
    forms, refused, count = set(), [], 0
    for kernel in kernels:
        translated = program(kernel)
        refused += translated.refused.values()
        for instruction in translated.instructions:
            if instruction is not None:
                forms.add(form(instruction))
                words[" ".join(f"{word:08x}" for word in instruction.words)] = None
                count += 1
    description = {"sha256": [kernel.sha256 for kernel in kernels], "instructions": count, "forms": sorted(forms)}
    return description | ({"result": "refused", "why": refused[0][:300]} if refused else {})


def main() -> None:
    """See the module's docstring."""
    job_path, results, words_path = (Path(argument) for argument in sys.argv[1:])
    job, words = json.loads(job_path.read_text()), dict[str, None]()
    kernels, device = watched_kernels(), ExecutorDevice(job["kernel"])
    if job["vllm"]:
        wrapper, module = load_vllm(job["vllm"])
    else:
        wrapper, module = load_wrapper(Source(**job["source"]), job["kernel"], executor=True)
    compiler = __import__(job["kernel"]).__version__
    with open(results, "a") as lines, open(words_path, "a") as words_file:
        for variant in job["variants"]:
            kernels.clear()
            started, known = time.perf_counter(), len(words)
            told = judge(variant, device, wrapper, str(module.__file__))
            told |= describe(kernels, words)
            told |= {"compiler": compiler, "seconds": round(time.perf_counter() - started, 2)}
            lines.write(json.dumps(variant | told) + "\n")
            lines.flush()
            words_file.writelines(word + "\n" for word in list(words)[known:])
            words_file.flush()
    sys.stderr.flush()
    os._exit(0)  # as in parity.worker: MLIR's teardown prints tracebacks


if __name__ == "__main__":
    main()
