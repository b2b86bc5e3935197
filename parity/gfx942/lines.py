# SPDX-License-Identifier: Apache-2.0
"""Source lines of machine code, from the DWARF line table (.debug_line) that Triton and `clang -g` write."""

from __future__ import annotations

from elftools.common.exceptions import DWARFError, ELFError
from elftools.construct.core import ConstructError
from elftools.dwarf.compileunit import CompileUnit
from elftools.elf.elffile import ELFFile

# What pyelftools raises on DWARF that is malformed or newer than it knows: then there are no lines, which is no fault.
_UNREADABLE = (DWARFError, ELFError, ConstructError, AssertionError, ArithmeticError, ValueError, KeyError, IndexError, TypeError,
               AttributeError, NotImplementedError, MemoryError, RecursionError)  # fmt: skip


def line_table(elf: ELFFile, text_address: int, text_size: int) -> dict[int, str]:
    """pc (bytes from the start of .text) -> "file.py:123", for every dword that a line of the source is known for."""
    table: dict[int, str] = {}
    try:
        if not elf.has_dwarf_info():
            return {}
        dwarf = elf.get_dwarf_info()
        for unit in dwarf.iter_CUs():
            _read_unit(dwarf.line_program_for_CU(unit), unit, table, text_address, text_size)
    except _UNREADABLE:
        return {}
    return table


def _read_unit(program: object, unit: CompileUnit, table: dict[int, str], text_address: int, text_size: int) -> None:
    if program is None:
        return
    previous = None
    first = 0 if unit["version"] >= 5 else 1  # DWARF 5 counts files from 0
    for entry in program.get_entries():  # type: ignore[attr-defined]
        state = entry.state
        if state is None:
            continue
        if previous is not None and previous.line:
            name = _file_name(program, previous.file - first)
            start, end = previous.address - text_address, min(state.address - text_address, text_size)
            for pc in range(max(start, 0), end, 4):
                table[pc] = f"{name}:{previous.line}"
        previous = None if state.end_sequence else state


def _file_name(program: object, index: int) -> str:
    name = program["file_entry"][index].name  # type: ignore[index]
    return str(name.decode("utf-8", "replace")).rpartition("/")[2]
