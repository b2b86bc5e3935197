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
    """The kernel did something wrong. README.md in this folder lists the kinds.

    Attributes: kind, detail, kernel, pc (bytes from the kernel's entry), instruction (text), line ("file:line", "" if unknown),
    workgroup (x, y, z), wave (in its workgroup), lane (the lowest concerned; -1 = the whole wave), address (of global memory, or
    the offset in LDS or scratch; None where there is none), allocation (name of the nearest, "" if none).
    """

    def __init__(
        self,
        kind: str,
        detail: str,
        *,
        wave: int = -1,
        lane: int = -1,
        address: int | None = None,
        allocation: str = "",
    ) -> None:
        super().__init__(kind, detail)
        self.kind, self.detail = kind, detail
        self.wave, self.lane, self.address, self.allocation = wave, lane, address, allocation
        self.kernel, self.instruction, self.line = "", "", ""
        self.pc = -1
        self.workgroup: tuple[int, int, int] | None = None

    def __str__(self) -> str:
        where = self.kernel
        if self.pc >= 0:
            where += f"+{self.pc:#x} {self.instruction}"
        if self.line:
            where += f" ({self.line})"
        if self.workgroup is not None:
            lane = f"lane {self.lane}" if self.lane >= 0 else "all lanes"
            where += f", workgroup {self.workgroup}, wave {self.wave}, {lane}"
        address = "" if self.address is None else f", address {self.address:#x}"
        return f"{self.kind}: {self.detail} ({where}{address})"
