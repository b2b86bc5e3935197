# SPDX-License-Identifier: Apache-2.0
"""Code objects: what load() reads from one, and what it raises on everything else."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from parity.gfx942 import BadCodeObject, ExecutorError, load
from parity.gfx942.code_object import assemble
from tests.gfx942_assembly import Source, text_of


@pytest.fixture(scope="module")
def two_kernels() -> bytes:
    return assemble(
        text_of(Source("first", "s_nop 0", lds=64), Source("second", "s_nop 1\ns_nop 2", (), vgprs=24, accum_offset=8))
    )


def test_fields_of_a_kernel(two_kernels: bytes) -> None:
    first, second = load(two_kernels, "first"), load(two_kernels, "second")
    assert (first.name, first.lds_bytes, first.kernarg_bytes, first.vgprs, first.accum_offset) == (
        "first",
        64,
        16,
        64,
        64,
    )
    assert [(part.offset, part.size, part.kind) for part in first.arguments] == [
        (0, 8, "global_buffer"),
        (8, 8, "global_buffer"),
    ]
    assert (second.vgprs, second.accum_offset, second.arguments, second.scratch_bytes) == (24, 8, (), 0)
    assert second.user_sgprs == (("kernarg_segment_ptr", 2),)
    assert (second.workgroup_id, second.work_item_dims, second.float_mode) == ((True, False, False), 1, 0xF0)
    assert second.text[second.entry : second.entry + 4] == bytes.fromhex("010080bf")  # s_nop 1
    assert first.sha256 == second.sha256
    assert len(first.sha256) == 64


def test_load_takes_bytes_path_or_text(two_kernels: bytes, tmp_path: Path) -> None:
    path = tmp_path / "kernel.hsaco"
    path.write_bytes(two_kernels)
    text = text_of(Source("only", "s_nop 0"))
    assert load(path, "first") == load(str(path), "first") == load(two_kernels, "first")
    assert load(text).name == "only"


def test_missing_kernel(two_kernels: bytes) -> None:
    with pytest.raises(BadCodeObject, match="no kernel 'third'; the code object has first, second"):
        load(two_kernels, "third")
    with pytest.raises(BadCodeObject, match="no kernel None; the code object has first, second"):
        load(two_kernels)


@pytest.mark.parametrize("data", [b"", b"\x7fELF", b"not an ELF file at all" * 10, bytes(4096)])
def test_garbage(data: bytes) -> None:
    with pytest.raises(BadCodeObject, match="not a gfx942 code object"):
        load(data)


def test_truncated_and_damaged_code_objects_never_leave_another_exception(two_kernels: bytes) -> None:
    generator = np.random.default_rng(1)
    for _ in range(300):
        data = bytearray(
            two_kernels[: int(generator.integers(len(two_kernels)))] if generator.random() < 0.3 else two_kernels
        )
        for at in generator.integers(0, max(1, min(len(data), 2048)), 8):
            data[at : at + 1] = bytes([int(generator.integers(256))])
        try:
            load(bytes(data), "first")
        except ExecutorError:
            continue


@pytest.mark.parametrize(
    ("offset", "value", "message"), [(18, 0x3E, "machine EM_X86_64"), (48, 0x3F, "flags 0x.*3f: not gfx942")]
)
def test_wrong_machine(two_kernels: bytes, offset: int, value: int, message: str) -> None:
    data = bytearray(two_kernels)
    data[offset] = value
    with pytest.raises(BadCodeObject, match=message):
        load(bytes(data), "first")


def test_path_that_does_not_exist(tmp_path: Path) -> None:
    with pytest.raises(BadCodeObject, match=r"cannot read .*missing.hsaco: No such file or directory"):
        load(tmp_path / "missing.hsaco")
    with pytest.raises(BadCodeObject, match="Is a directory"):
        load(str(tmp_path))


def test_code_object_without_metadata() -> None:
    with pytest.raises(BadCodeObject, match="no AMDGPU metadata note"):
        load("s_nop 0\ns_endpgm\n")


def test_assembly_error_names_line_and_column() -> None:
    with pytest.raises(BadCodeObject, match=r"(?s)line:2:1: error: invalid instruction.*v_bogus v0") as caught:
        load("s_nop 0\nv_bogus v0\n")
    assert "/tmp" not in str(caught.value).split("error")[0]


@pytest.mark.parametrize(
    "line",
    ['.incbin "/etc/passwd"', '  .include "x.s"', 'here: .incbin "/etc/passwd"', ".macro x", ".irp a, b", ".altmacro"],
)
def test_directives_that_reach_beyond_the_text_are_refused(line: str) -> None:
    with pytest.raises(BadCodeObject, match=r"line 2: \.\w+ is not allowed"):
        load(f"s_nop 0\n{line}\n")
