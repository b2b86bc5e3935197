# SPDX-License-Identifier: Apache-2.0
"""Source lines: what clang -g records is found, what the linker dropped or somebody broke gives no line and no exception."""

from __future__ import annotations

import io
import random
from functools import cache
from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile

from parity.gfx942 import native
from parity.gfx942.code_object import assemble
from parity.gfx942.decode import decode
from parity.gfx942.lines import line_table
from tests.gfx942_assembly import Source, text_of

_KERNEL = """__kernel void work(__global float *out, __global const float *in) {
  int i = __builtin_amdgcn_workitem_id_x();
  float x = in[i];
  __builtin_amdgcn_s_barrier();
  out[i] = x;
}
"""


@cache
def _code_object(dwarf: str, folder: Path) -> bytes:
    """The kernel compiled with line programs of a DWARF version."""
    source, text, built, linked = (folder / f"kernel.{end}" for end in ("cl", "s", "o", "hsaco"))
    source.write_text(_KERNEL)
    target = ("--target=amdgcn-amd-amdhsa", "-mcpu=gfx942")
    native.zig_tool("clang", *target, "-x", "cl", "-cl-std=CL2.0", "-cl-no-stdinc", "-nogpulib", "-O2", f"-gdwarf-{dwarf}", "-S",
                    str(source), "-o", str(text))  # fmt: skip
    native.zig_tool("clang", *target, "-c", str(text), "-o", str(built))
    native.zig_tool("ld.lld", "-shared", str(built), "-o", str(linked))
    return linked.read_bytes()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("lines")


def _elf(data: bytes) -> ELFFile:
    return ELFFile(io.BytesIO(data))


@pytest.mark.parametrize("version", ["3", "4", "5"])
def test_instructions_have_their_lines(version: str, folder: Path) -> None:
    elf = _elf(_code_object(version, folder))
    table, code = line_table(elf), elf.get_section_by_name(".text").data()
    lines = {instruction.name: table[instruction.pc] for instruction in decode(code) if instruction.pc in table}
    assert lines["global_load_dword"] == "kernel.cl:3"
    assert lines["s_barrier"] == "kernel.cl:4"
    assert lines["global_store_dword"] == "kernel.cl:5"
    assert lines["s_endpgm"] == "kernel.cl:6"
    assert all(pc % 4 == 0 and 0 <= pc < len(code) for pc in table)


@pytest.mark.parametrize("version", ["4", "5"])
def test_full_path(version: str, folder: Path) -> None:
    table = line_table(_elf(_code_object(version, folder)), full_path=True)
    assert f"{folder / 'kernel.cl'}:4" in table.values()


def test_second_half_of_an_instruction_has_its_line(folder: Path) -> None:
    elf = _elf(_code_object("5", folder))
    table = line_table(elf)
    load = next(found for found in decode(elf.get_section_by_name(".text").data()) if found.name == "global_load_dword")
    assert load.size == 8 and table[load.pc] == table[load.pc + 4]


def _with_unit(body: str) -> ELFFile:
    """A kernel of these instructions, with the smallest compile unit that names their line program."""
    return _elf(assemble(text_of(Source("k", body)) + _UNIT))


# Abbreviation 1: DW_TAG_compile_unit with DW_AT_stmt_list alone; then the unit's header (version 4) and this one entry.
_UNIT = """
.section .debug_abbrev,"",@progbits
.byte 1, 17, 0, 16, 23, 0, 0, 0
.section .debug_info,"",@progbits
.long end - start
start:
.short 4
.long .debug_abbrev
.byte 8, 1
.long .debug_line
end:
"""


def test_line_zero_is_no_line() -> None:
    """Compilers write 0 for what no source line stands behind."""
    elf = _with_unit('.file 1 "/somewhere" "a.py"\n.loc 1 7\ns_nop 0\n.loc 1 0\ns_nop 1\n.loc 1 9\ns_nop 2')
    assert line_table(elf) == {0: "a.py:7", 8: "a.py:9", 12: "a.py:9"}
    assert line_table(elf, full_path=True) == {0: "/somewhere/a.py:7", 8: "/somewhere/a.py:9", 12: "/somewhere/a.py:9"}


def test_the_last_of_two_rows_counts() -> None:
    elf = _with_unit('.file 1 "a.py"\n.file 2 "b.py"\n.loc 1 7\n.loc 2 8\ns_nop 0\ns_mov_b32 s1, 0x12345678')
    assert line_table(elf) == dict.fromkeys((0, 4, 8, 12), "b.py:8")


def test_without_debug_information() -> None:
    assert line_table(_elf(assemble(text_of(Source("k", "s_nop 0"))))) == {}


@pytest.mark.parametrize("version", ["4", "5"])
def test_cut_sections_raise_nothing(version: str, folder: Path) -> None:
    data = _code_object(version, folder)
    for name in (".debug_line", ".debug_info", ".debug_abbrev", ".debug_str"):
        section = _elf(data).get_section_by_name(name)
        if section is None:
            continue
        for keep in (0, 1, 5, section["sh_size"] // 2, section["sh_size"] - 1):
            broken = bytearray(data)
            start = section["sh_offset"] + keep
            broken[start : section["sh_offset"] + section["sh_size"]] = b"\xff" * (section["sh_size"] - keep)
            line_table(_elf(bytes(broken)))


@pytest.mark.parametrize("version", ["4", "5"])
def test_changed_bytes_raise_nothing(version: str, folder: Path) -> None:
    data, generator = _code_object(version, folder), random.Random(7)
    good = line_table(_elf(data))
    spans = [
        (part["sh_offset"], part["sh_size"]) for part in _elf(data).iter_sections() if part.name.startswith(".debug")
    ]
    changed = 0
    for _ in range(400):
        broken = bytearray(data)
        for _ in range(generator.choice((1, 2, 8))):
            start, size = generator.choice(spans)
            broken[start + generator.randrange(size)] = generator.choice((0, 0x80, 0xFF, generator.randrange(256)))
        table = line_table(_elf(bytes(broken)))
        assert all(isinstance(line, str) and line for line in table.values())
        changed += table != good
    assert changed > 50


@pytest.mark.parametrize("table", ["directories", "files"])
def test_tables_of_entries_without_size_are_not_read(table: str, folder: Path) -> None:
    """pyelftools would make 2^35 of them."""
    data = bytearray(_code_object("5", folder))
    section = _elf(bytes(data)).get_section_by_name(".debug_line")
    at = section["sh_offset"] + 6 + 11
    at += data[at]  # the byte of opcode_base and the lengths of the standard opcodes
    if table == "files":  # no directories, then the files' format
        data[at : at + 2] = b"\0\0"
        at += 2
    data[at : at + 7] = b"\0\xff\xff\xff\xff\x7f\0"
    assert line_table(_elf(bytes(data))) == {}
