# SPDX-License-Identifier: Apache-2.0
"""Mutated code objects and assembly through load() and launch(): every outcome but a run or one of the executor's errors is a bug.

    python -m tests.fuzz --count 10000 --seed 1

Runs in a process of its own (test_gfx942_fuzz.py starts it), because a bug of the engine may end the process.
"""

from __future__ import annotations

import argparse
import collections
import importlib
import io
import random
import sys
from typing import Any

import numpy as np
from elftools.elf.elffile import ELFFile

from parity.gfx942 import BadCodeObject, ExecutorError, Kernel, launch, load, native
from parity.gfx942.code_object import assemble
from tests.gfx942_assembly import Source, allocations, pointer, text_of
from tests.gfx942_templates import TEMPLATES

# The package's `launch` is the function; this is its module.
launching: Any = importlib.import_module("parity.gfx942.launch")
SIZE = 4096  # bytes of the one buffer
STEPS = 3000
GUARD, PATTERN = 1 << 15, 0xA5
# Control flow would leave most of a kernel unexecuted; these are added where wanted.
_LEFT_OUT = (
    "s_endpgm",
    "s_branch",
    "s_cbranch",
    "s_setpc",
    "s_swappc",
    "s_trap",
    "s_sethalt",
    "s_sendmsg",
    "s_barrier",
)
_PROLOGUE = """s_load_dwordx2 s[8:9], s[0:1], 0x0
s_waitcnt lgkmcnt(0)
s_mov_b64 s[10:11], s[8:9]
v_lshlrev_b32_e32 v8, 3, v0
v_mov_b32_e32 v7, v8
""" + "\n".join(f"v_mov_b32_e32 v{n}, {n}" for n in (1, 2, 3, 4, 5, 6, 9, 10, 11, 12, 13, 14, 15))  # fmt: skip


def lines() -> list[str]:
    """One line of assembly for every opcode of the decoder."""
    found = []
    for templates in TEMPLATES.values():
        for operands, _, names in templates:
            found += [f"{name} {operands}" for name in names.split() if not name.startswith(_LEFT_OUT)]
    return found


def seeds(generator: random.Random) -> list[bytes]:
    """Code objects of one kernel each: a third of all opcodes, a third of arithmetic that is executable, a third of matrix and LDS
    instructions, so that mutations meet code that runs."""
    every = lines()
    known = [line for line in every if line.split()[0] in native.semantics()]
    lds = [
        line
        for line in every
        if line.startswith(("ds_read_b32", "ds_write_b32", "ds_swizzle", "v_mfma_f32_16x16x32_fp8"))
    ]
    bodies = [generator.sample(every, 20) for _ in range(12)]
    bodies += [generator.sample(known, 40) for _ in range(12)]
    bodies += [generator.choices(lds + known[:40], k=20) for _ in range(12)]
    return [
        assemble(text_of(Source("k", "\n".join([_PROLOGUE, *body]), ((8, "global_buffer"),), lds=8192)))
        for body in bodies
    ]


def mutated(code: bytes, generator: random.Random) -> bytes:
    """A few bits, bytes or dwords changed: anywhere, or in the instructions."""
    data = bytearray(code)
    section = ELFFile(io.BytesIO(code)).get_section_by_name(".text")
    where = (section["sh_offset"], section["sh_offset"] + section["sh_size"])
    for _ in range(generator.choice((1, 1, 2, 4, 16))):
        low, high = generator.choice(((0, len(data)), where, where))
        at = generator.randrange(low, high)
        kind = generator.randrange(4)
        if kind == 0:
            data[at] ^= 1 << generator.randrange(8)
        elif kind == 1:
            data[at] = generator.choice((0, 1, 0x7F, 0x80, 0xFF, generator.randrange(256)))
        elif kind == 2:
            at &= ~3
            data[at : at + 4] = generator.randbytes(4)
        else:
            at &= ~3
            other = generator.randrange(0, len(data) - 4) & ~3
            data[at : at + 4] = data[other : other + 4]
    if generator.random() < 0.02:
        del data[generator.randrange(len(data)) :]
    return bytes(data)


_storage: list[tuple[str, np.ndarray, int, int]] = []  # of the last launch: name, array with guards, first byte, size


def guard_storage() -> None:
    """Put guard zones around all that the engine writes, so that a write beyond an array shows at once."""
    inner = launching._machine

    def machine(*arguments: Any, **options: Any) -> Any:
        made, kept = inner(*arguments, **options)
        _storage.clear()
        for name, array in kept[0].items():
            raw = array.view(np.uint8).ravel()
            guarded = np.full(raw.size + 2 * GUARD, PATTERN, np.uint8)
            guarded[GUARD : GUARD + raw.size] = raw
            setattr(made, name, guarded.ctypes.data + GUARD)
            _storage.append((name, guarded, GUARD, raw.size))
        return made, kept

    launching._machine = machine


def check_guards() -> None:
    for name, guarded, first, size in _storage:
        assert (guarded[:first] == PATTERN).all() and (guarded[first + size :] == PATTERN).all(), (
            f"written beyond {name}"
        )


def run(kernel: Kernel, generator: random.Random) -> str:
    """Launch and name the outcome."""
    buffer = np.zeros(SIZE // 4, np.uint32)
    arguments = [pointer(buffer)] * sum(not argument.hidden for argument in kernel.arguments)
    try:
        launch(kernel, arguments, (generator.choice((1, 2)), 1, 1), (generator.choice((64, 96, 128)), 1, 1), allocations(buffer=buffer),
               checks=generator.random() < 0.7, schedule=generator.choice((None, 1)), step_limit=STEPS)  # fmt: skip
    except ExecutorError as error:
        return getattr(error, "kind", type(error).__name__)
    except ValueError as error:  # the call does not fit the kernel: too few bytes of an argument, too much LDS
        return (
            "ValueError: " + str(error).split(":")[0][:20]
            if "argument" not in str(error) and "LDS" not in str(error)
            else "ValueError"
        )
    return "ran"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=10_000, help="mutated code objects (default: 10000)")
    parser.add_argument("--texts", type=int, default=100, help="mutated assembly texts (default: 100)")
    parser.add_argument("--seed", type=int, default=1, help="of the random generator (default: 1)")
    options = parser.parse_args()
    generator = random.Random(options.seed)
    outcomes: collections.Counter[str] = collections.Counter()
    guard_storage()
    codes = seeds(generator)
    for code in codes:
        load(code)
    for number in range(options.count):
        changed = mutated(generator.choice(codes), generator)
        if number % 1000 == 0:
            print(f"{number} of {options.count}", file=sys.stderr)
        try:
            kernel = load(changed)
        except BadCodeObject:
            outcomes["BadCodeObject"] += 1
            continue
        outcomes[run(kernel, generator)] += 1
        check_guards()
    every = lines()
    for _ in range(options.texts):
        text = list(text_of(Source("k", "\n".join([_PROLOGUE, *generator.sample(every, 10)]), ((8, "global_buffer"),))))
        for _ in range(generator.choice((1, 3, 30))):
            text[generator.randrange(len(text))] = chr(
                generator.choice((0, 10, 32, 34, 39, 92, 0xE9, 0x1F600, generator.randrange(32, 127)))
            )
        try:
            outcomes["text " + run(load("".join(text)), generator)] += 1
        except BadCodeObject:
            outcomes["text BadCodeObject"] += 1
    print(" ".join(f"{name.replace(' ', '-')}={count}" for name, count in sorted(outcomes.items())))


if __name__ == "__main__":
    main()
