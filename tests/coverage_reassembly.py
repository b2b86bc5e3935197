# SPDX-License-Identifier: Apache-2.0
"""Does the text that parity.gfx942.text gives of an instruction assemble to the same bytes? For the instructions of real kernels."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from parity.gfx942 import Unsupported
from parity.gfx942.decode import Instruction, decode_one
from parity.gfx942.text import assembly
from tests.gfx942_assembly import machine_code

BATCH = 20_000  # lines of one assembler call


@dataclass(frozen=True)
class Reassembly:
    """distinct: different instructions seen; same: those whose text gives their bytes; differing: some of the others, in words."""

    distinct: int
    same: int
    differing: tuple[str, ...]


def reassemble(words: Path) -> Reassembly:
    """words: a file with one instruction a line, its dwords in hexadecimal."""
    lines = sorted(set(words.read_text().split("\n")) - {""})
    differing = [
        problem for first in range(0, len(lines), BATCH) for problem in _differing(lines[first : first + BATCH])
    ]
    return Reassembly(len(lines), len(lines) - len(differing), tuple(differing[:20]))


def _differing(lines: list[str]) -> Iterator[str]:
    texts: list[str] = []
    codes: list[bytes] = []
    for line in lines:
        code = b"".join(struct.pack("<I", int(word, 16)) for word in line.split())
        instruction = decode_one(code, 0)
        try:
            texts.append(assembly(instruction))
        except Unsupported as error:
            yield str(error)
        else:
            codes.append(code)
    actual, expected = machine_code(texts), b"".join(codes)
    if actual != expected:
        yield from _one_by_one(texts, codes, actual)


def _one_by_one(texts: list[str], codes: list[bytes], actual: bytes) -> Iterator[str]:
    """Where the batch differs. A size that differs would shift all that follows, so decoding keeps the two in step."""
    place = 0
    for text, code in zip(texts, codes, strict=True):
        made: Instruction = decode_one(actual, place)
        if actual[place : place + made.size] != code:
            yield f"{text}: {code.hex()} becomes {actual[place : place + made.size].hex()}"
        place += made.size
