# SPDX-License-Identifier: Apache-2.0
"""Source lines of a code object's instructions, from DWARF's line programs (.debug_line, versions 2 to 5).

Triton and `clang -g` write them. What they say helps a reader and decides nothing: where it is missing or malformed there is no
line. Source: DWARF 5, section 6.2 "Line Number Information".
"""

from __future__ import annotations

import contextlib
import io
import itertools
import posixpath
import struct
import zlib
from typing import IO, Any

from elftools.common.exceptions import DWARFError, ELFError
from elftools.construct.core import ConstructError
from elftools.elf.elffile import ELFFile

# What pyelftools raises on malformed sections.
_MALFORMED = (
    DWARFError,
    ELFError,
    ConstructError,
    NotImplementedError,  # forms that pyelftools does not know
    AssertionError,
    ArithmeticError,
    MemoryError,
    RecursionError,
    struct.error,
    zlib.error,
    LookupError,
    TypeError,
    AttributeError,
    ValueError,
)
_Row = tuple[int, str | None]  # pc, and the line from there on: "" where there is none, None where a sequence ends


def line_table(elf: ELFFile, *, full_path: bool = False) -> dict[int, str]:
    """Where each instruction of .text comes from: "file.py:123" by pc (bytes from the start of .text, every multiple of 4).

    full_path: "/folder/file.py:123", as far as the compiler recorded the folder. A pc without a line is not in the result.
    Malformed DWARF raises nothing: what cannot be read counts as not there.
    """
    rows: list[_Row] = []
    with contextlib.suppress(*_MALFORMED):  # the rows of the units before the malformed one are good
        _collect(elf, full_path, rows)
    rows.sort(key=lambda row: (row[0], row[1] is not None))  # what ends at a pc ends before what begins there
    table: dict[int, str] = {}
    for (pc, line), (following, _) in itertools.pairwise(rows):
        if line:
            table.update(dict.fromkeys(range((pc + 3) // 4 * 4, following, 4), line))
    return table


def _collect(elf: ELFFile, full_path: bool, rows: list[_Row]) -> None:
    """Append the rows of every unit's line program."""
    text = elf.get_section_by_name(".text")
    if text is None or elf.get_section_by_name(".debug_line") is None:
        return
    # follow_links: the file may name another one, and data must not make us open files
    dwarf = elf.get_dwarf_info(follow_links=False)
    seen: set[int] = set()
    for unit in dwarf.iter_CUs():
        attributes = unit.get_top_DIE().attributes
        if "DW_AT_stmt_list" not in attributes or attributes["DW_AT_stmt_list"].value in seen:
            continue
        seen.add(attributes["DW_AT_stmt_list"].value)
        folder = attributes["DW_AT_comp_dir"].value.decode(errors="replace") if "DW_AT_comp_dir" in attributes else ""
        if not _plausible(dwarf.debug_line_sec.stream, attributes["DW_AT_stmt_list"].value):
            continue
        program = dwarf.line_program_for_CU(unit)
        names = _file_names(program, folder, full_path)
        _append(program, names, text["sh_addr"], len(text.data()), rows)


# Bytes of the forms that compilers use in the tables of a version 5 header; None: a string that ends with 0; -1: LEB128.
_FORMS: dict[int, int | None] = {0x08: None, 0x0B: 1, 0x05: 2, 0x06: 4, 0x0E: 4, 0x1F: 4, 0x07: 8, 0x0F: -1, 0x1E: 16}


def _plausible(stream: IO[bytes], offset: int) -> bool:
    """Whether the header's directories and files (version 5) take room: pyelftools would make any number of entries of no size."""
    stream.seek(offset)
    length, version = struct.unpack("<IH", stream.read(6))
    if length >= 0xFFFFFFF0 or version < 5:
        return version < 5
    data = io.BytesIO(stream.read(length))
    data.seek(2 + 4 + 5)  # address and selector sizes, header length, five parameters of the program
    data.seek(max(data.read(1)[0] - 1, 0), io.SEEK_CUR)  # lengths of the standard opcodes
    for _ in ("directories", "files"):
        forms = [(_leb128(data), _leb128(data))[1] for _ in range(data.read(1)[0])]
        count = _leb128(data)
        if (count and not forms) or any(form not in _FORMS for form in forms) or count > length:
            return False
        for _ in range(count):
            for form in forms:
                _skip(data, _FORMS[form])
            if data.tell() > length:
                return False
    return True


def _skip(data: IO[bytes], size: int | None) -> None:
    if size == -1:
        _leb128(data)
    elif size is not None:
        data.seek(size, io.SEEK_CUR)
    else:
        while data.read(1) not in (b"\0", b""):
            pass


def _leb128(data: IO[bytes]) -> int:
    """An unsigned LEB128 number. Raises IndexError at the end of the data."""
    value, shift = 0, 0
    while True:
        byte = data.read(1)[0]
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value
        shift += 7


def _append(program: Any, names: list[str], start: int, size: int, rows: list[_Row]) -> None:
    """Append the rows of one line program. `start`: address of .text, `size`: its bytes."""
    first = 0 if program.header["version"] >= 5 else 1  # the number of the first file
    sequence: list[_Row] = []
    for state in (entry.state for entry in program.get_entries()):
        if state is None:
            continue
        pc = state.address - start
        if state.end_sequence:
            # A function that the linker dropped keeps its line program, at address 0 or -1.
            if sequence and 0 <= sequence[0][0] < min(pc, size):
                rows += [row for row in sequence if 0 <= row[0] < size]
                rows.append((min(pc, size), None))
            sequence = []
        else:
            known = state.line > 0 and 0 <= state.file - first < len(names)
            sequence.append((pc, f"{names[state.file - first]}:{state.line}" if known else ""))


def _file_names(program: Any, folder: str, full_path: bool) -> list[str]:
    """The program's files in its order: last parts of their paths, or whole paths."""
    names = [file.name.decode(errors="replace") for file in program["file_entry"]]
    if not full_path:
        return [posixpath.basename(name) for name in names]
    folders = [part.decode(errors="replace") for part in program["include_directory"]]
    if program.header["version"] < 5:
        folders.insert(0, folder)  # before version 5, folder 0 is the unit's
    indices = [file.dir_index for file in program["file_entry"]]
    return [posixpath.join(folder, folders[index], name) if 0 <= index < len(folders) else name
            for index, name in zip(indices, names, strict=True)]  # fmt: skip
