# SPDX-License-Identifier: Apache-2.0
"""The `parity` command.  Exit codes: 0 PASS, 1 FAIL, 2 NOT VALIDATED, 3 usage (bad option, path, revision, missing package)."""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import signal
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from parity.devices import CHOICES, DEPTHS

NOT_VALIDATED, USAGE = 2, 3


class Parser(argparse.ArgumentParser):
    """argparse exits with 2 on bad usage, which means NOT VALIDATED here."""

    def error(self, message: str) -> NoReturn:
        self.print_usage(sys.stderr)
        self.exit(USAGE, f"{self.prog}: error: {_visible(message)}\n")


def _visible(text: str) -> str:
    """Control characters as escapes: options and paths are echoed, and must not drive the terminal or fake a line."""
    return "".join(char if char.isprintable() else repr(char)[1:-1] for char in text)


def parser() -> Parser:
    top = Parser(prog="parity", description="Does the FlyDSL fp8_mqa_logits kernel still do what the Triton one does on gfx942?",
                 epilog="Exit codes: 0 PASS, 1 FAIL, 2 NOT VALIDATED, 3 usage.")  # fmt: skip
    top.add_argument("--version", action="version", version=importlib.metadata.version("logits-parity"))
    commands = top.add_subparsers(dest="command", required=True, parser_class=Parser)
    doctor = commands.add_parser(
        "doctor", help="what is here and fit for use", description="What is here and fit for use."
    )
    doctor.add_argument("--json", action="store_true", help="the same as JSON")
    gate = commands.add_parser("gate", help="run the cases and give a verdict",
                               description="Run the cases through both kernels and give a verdict. Without --aiter: this "
                               "repository's own kernels.")  # fmt: skip
    add_source_options(gate.add_argument)
    add_case_options(gate.add_argument)
    gate.add_argument("--device", choices=CHOICES, default="auto",
                      help="auto (default): a gfx942 GPU where there is one, else the executor; cuda: the Triton kernel alone, no verdict")  # fmt: skip
    gate.add_argument(
        "--evidence", type=Path, default=Path("parity-evidence.jsonl"), help="file to write (default: %(default)s)"
    )
    gate.add_argument(
        "--plant",
        metavar="KERNEL:FAULT",
        help="plant a fault (`parity faults`) in an own kernel and see the verdict turn",
    )
    faults = commands.add_parser("faults", help="the faults that the quick depth catches, and by which check",
                                 description="The faults that the quick depth is shown to catch, and the check that catches each.")  # fmt: skip
    faults.add_argument("--json", action="store_true", help="the same as JSON")
    _mutate_options(commands)
    return top


def _mutate_options(commands: argparse._SubParsersAction[Parser]) -> None:
    mutate = commands.add_parser(
        "mutate",
        help="change single instructions of a compiled kernel: do the quick checks notice?",
        description="Change one instruction of a compiled gfx942 kernel (another register, a neighbouring opcode, an immediate, a dropped "
        "wait or barrier, another lane pattern, ...) and run the quick cases in the executor; again and again. Survivors are listed with "
        "a reason: equivalent, within budget, not reached, or a gap.",
        epilog="Exit codes: 0 at least 95 % of the mutants that are not equivalent were caught, 1 fewer, 2 not finished, 3 usage.",
    )
    mutate.add_argument("--kernel", choices=("flydsl", "triton"), required=True, help="the kernel to change")
    add_source_options(mutate.add_argument)
    mutate.add_argument("-n", type=int, default=300, metavar="N", help="mutants (default: %(default)s)")
    mutate.add_argument("--seed", type=int, default=0, help="draws the mutants (default: %(default)s)")
    mutate.add_argument("--report", type=Path, metavar="FILE", help="write every mutant and what became of it, as JSON")


def add_source_options(add: object) -> None:
    """--aiter and --candidate, the same for the command and for pytest. `add`: an add_argument or addoption method."""
    assert callable(add)
    add(
        "--aiter",
        metavar="PATH",
        help="a git checkout or bare git directory of aiter, or `installed`: test aiter's kernels",
    )
    add("--candidate", metavar="REVISION", help="revision of --aiter (default: HEAD)")


def add_case_options(add: object) -> None:
    """--depth, --seeds, --captured and --policy, the same for the command and for pytest. `add`: an add_argument or addoption method."""
    assert callable(add)
    add("--depth", choices=DEPTHS, default="quick",
        help="quick (default): under a minute in the executor; full: minutes; release: whole prefill chunks, on GPUs")  # fmt: skip
    add(
        "--seeds",
        type=int,
        metavar="N",
        default=1,
        help="each case with this many seeds, 0 to N-1 (default: %(default)s)",
    )
    add("--captured", metavar="FILE", type=Path, action="append", default=[],
        help="also judge these inputs (a safetensors file as parity.inputs.Inputs.save describes); may be given again")  # fmt: skip
    add(
        "--policy",
        metavar="FILE",
        type=Path,
        help="differences in the contract that are accepted (TOML; default: this project's)",
    )


def main(arguments: Sequence[str] | None = None) -> int:
    options = parser().parse_args(arguments)
    signal.signal(
        signal.SIGTERM, _interrupt
    )  # CI stops a job so: leave as after Ctrl-C, with the arms and their folders gone
    try:
        return _COMMANDS[options.command](options)
    except KeyboardInterrupt:
        print("parity: interrupted: NOT VALIDATED", file=sys.stderr)
    except BrokenPipeError:  # `parity … | head`: nobody reads on, so nobody saw a verdict
        sys.stdout = None  # type: ignore[assignment]  # else the interpreter complains again when it flushes
    except Exception:  # uncaught, it would make Python exit with 1, and 1 says FAIL about a kernel
        traceback.print_exc()
        print("parity: internal error, please report the traceback above: NOT VALIDATED", file=sys.stderr)
    return NOT_VALIDATED


def _interrupt(number: int, frame: object) -> NoReturn:
    raise KeyboardInterrupt


def _faults(options: argparse.Namespace) -> int:
    from parity import faults

    print(json.dumps(faults.as_json(), indent=2) if options.json else faults.as_text())
    return 0


def _judge(options: argparse.Namespace) -> int:
    """The gate or mutants; what a user can mend is told in one line. torch and the compilers are imported from here on."""
    install = "pip install 'logits-parity[executor]' (see `parity doctor`)"
    try:
        from parity.devices import DeviceError
        from parity.sources import SourceError

        try:
            return _mutate(options) if options.command == "mutate" else _gate(options)
        except (DeviceError, SourceError) as error:
            return _usage(str(error))
    except ModuleNotFoundError as error:
        return _usage(f"{error.name} is not installed: {install}")
    except ImportError as error:
        return _usage(f"a package is installed but broken: {error}: {install}")


def _usage(text: str) -> int:
    print(f"parity: error: {_visible(text)}", file=sys.stderr)
    return USAGE


def _doctor(options: argparse.Namespace) -> int:
    from parity import doctor

    items = doctor.examine()
    print(doctor.as_json(items) if options.json else doctor.as_text(items))
    return 0


def _gate(options: argparse.Namespace) -> int:
    import torch

    if not hasattr(torch, "float8_e4m3fnuz"):
        return _usage(f"torch {torch.__version__} has no float8_e4m3fnuz: pip install 'torch>=2.6'")
    from parity.devices import choose_device
    from parity.evidence import EvidenceError, EvidenceFile
    from parity.matrix import chosen_cases
    from parity.policy import PolicyError, default_policy, load_policy
    from parity.run import case_options, run_gate, source_options
    from parity.sources import select_source

    def tell(line: str) -> None:
        print(line, flush=True)

    device = choose_device(options.device)
    source = select_source(options.aiter, options.candidate, tell=tell, kernels=device.kernels)
    plants = _plants(options.plant, source.kind)
    again = source_options(options.aiter, options.candidate)
    again += case_options(options.depth, options.seeds, options.captured, options.policy)
    try:
        policy = load_policy(options.policy or default_policy())
        cases = chosen_cases(options.depth, options.captured, device, seeds=options.seeds)
        evidence = EvidenceFile(options.evidence)
    except (EvidenceError, PolicyError, ValueError, OSError) as error:
        return _usage(str(error))
    try:
        verdict = run_gate(source, device, cases, evidence, tell=tell, policy=policy, options=again, plants=plants)
    except EvidenceError as error:
        print(f"parity: {error}: NOT VALIDATED", file=sys.stderr)
        return NOT_VALIDATED
    return verdict.state.exit_code


def _mutate(options: argparse.Namespace) -> int:
    from parity.matrix import quick_cases
    from parity.mutants import Trouble
    from parity.mutate import Campaign, run_campaign
    from parity.report import mutants
    from parity.sources import select_source

    if options.n < 1:
        return _usage(f"-n {options.n}: at least 1")
    if options.report is not None and not (options.report.parent.is_dir() and not options.report.is_dir()):
        return _usage(f"--report={options.report}: not a file in a folder that exists")

    def tell(line: str) -> None:
        print(line, flush=True)

    def keep(campaign: Campaign) -> None:
        if options.report is not None:
            mutants.write(campaign, options.report)

    source = select_source(options.aiter, options.candidate, tell=tell)
    try:
        campaign = run_campaign(source, options.kernel, quick_cases(),
                                wanted=options.n, seed=options.seed, tell=tell, keep=keep)  # fmt: skip
    except (Trouble, OSError) as error:
        print(f"parity: {_visible(str(error))}: not finished", file=sys.stderr)
        return NOT_VALIDATED
    print("\n" + mutants.as_text(campaign), flush=True)
    return campaign.exit_code


def _plants(text: str | None, source_kind: str) -> dict[str, str]:
    """--plant as {kernel: fault}; SourceError when it cannot be planted."""
    from parity.checks import KERNELS
    from parity.faults import FAULTS
    from parity.sources import SourceError

    if text is None:
        return {}
    kernel, _, fault = text.partition(":")
    if kernel not in KERNELS or fault not in {known.name for known in FAULTS}:
        raise SourceError(
            f"--plant {text}: give KERNEL:FAULT with {' or '.join(KERNELS)} and a fault that `parity faults` lists"
        )
    if source_kind != "own":
        raise SourceError("--plant works on the own kernels only, not with --aiter")
    return {kernel: fault}


_COMMANDS = {"doctor": _doctor, "faults": _faults, "gate": _judge, "mutate": _judge}


if __name__ == "__main__":
    sys.exit(main())
