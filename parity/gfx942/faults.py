# SPDX-License-Identifier: Apache-2.0
"""What the executor raises: it stops at the first thing it does not know or that a correct kernel would not do."""

from __future__ import annotations


class ExecutorError(Exception):
    """Base of everything that parity.gfx942 raises about a kernel."""


class Unsupported(ExecutorError):
    """The executor does not know this instruction, modifier, descriptor mode or file feature. Never a verdict."""


class BadCodeObject(ExecutorError):
    """The bytes or the text given are not a gfx942 code object with the wanted kernel."""


class ExecutionFault(ExecutorError):
    """The kernel did something wrong: an access outside every allocation or its LDS, or no end (the step limit).

    Attributes: kind, kernel, pc (bytes from the kernel's entry), instruction (text), workgroup (x, y, z), wave (in its
    workgroup), lane, address (None where there is none), detail.
    """

    def __init__(self, kind: str, detail: str, *, wave: int = -1, lane: int = -1, address: int | None = None) -> None:
        super().__init__(kind, detail)
        self.kind, self.detail = kind, detail
        self.wave, self.lane, self.address = wave, lane, address
        self.kernel, self.instruction = "", ""
        self.pc = -1
        self.workgroup: tuple[int, int, int] | None = None

    def __str__(self) -> str:
        where = f"{self.kernel}+{self.pc:#x} {self.instruction}"
        if self.workgroup is not None:
            where += f", workgroup {self.workgroup}, wave {self.wave}, lane {self.lane}"
        address = "" if self.address is None else f", address {self.address:#x}"
        return f"{self.kind}: {self.detail} ({where}{address})"
