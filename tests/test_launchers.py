# SPDX-License-Identifier: Apache-2.0
"""Triton kernels of this file, launched by Triton's own JIT into the executor: argument types, grids, out-of-bounds accesses."""

from __future__ import annotations

import gc
import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from parity.gfx942 import Examined, Fidelity, Kernel, LaunchReport
from parity.gfx942.mutation import Mutation
from parity.launchers.record import STREAM, CallRecord
from tests.conftest import python

# Runs in a process of its own: installing the driver changes Triton for good.
PROGRAM = """
import json, sys
import torch, triton
import triton.language as tl
from parity.gfx942 import ExecutionFault
from parity.launchers import triton_
from parity.gfx942 import Examined, Fidelity, LaunchReport
from parity.launchers.record import CallRecord

call = None
triton_.install(lambda: call)

@triton.jit
def write_all(out, i32, i64, f32, BLOCK: tl.constexpr):
    program = tl.program_id(0) + 10 * tl.program_id(1)
    lane = tl.arange(0, BLOCK)
    tl.store(out + program * BLOCK + lane, i32 + (i64 >> 38).to(tl.int32) + f32 + lane + 1000 * program)

@triton.jit
def read_beyond(source, out, BLOCK: tl.constexpr):
    lane = tl.arange(0, BLOCK)
    tl.store(out + lane, tl.load(source + 2 * lane))

def run(kernel, grid, tensors, *rest, **constants):
    global call
    call = CallRecord(tensors)
    with call:
        kernel[grid](*tensors.values(), *rest, **constants)

out = torch.zeros(1, 12 * 64)
run(write_all, (2, 2), {"out": out}, -3, 2**40, 0.5, BLOCK=64)
values = {"first": out[0, 0].item(), "last": out[0, 11 * 64 + 63].item(), "untouched": out[0, 5 * 64].item()}
launch = call.launches[0]
values |= {"grid": launch.grid, "block": launch.block, "symbol": launch.symbol, "stream": launch.stream}
run(write_all, (2, 0), {"out": out}, -3, 2**40, 0.5, BLOCK=64)
values |= {"launches of an empty grid": len(call.launches)}
try:
    run(read_beyond, (1,), {"source": torch.zeros(100), "out": torch.zeros(64)}, BLOCK=64)
except ExecutionFault as fault:
    values |= {"fault": str(fault), "lane": fault.lane, "kind": fault.kind}
print(json.dumps(values))
"""

# s_nop 0; s_barrier; s_endpgm
KERNEL = Kernel(
    "made_up", bytes.fromhex("000080bf00008abf000081bf"), 0, 8, 8, 0, 0, 8, (), (), 0, 0, (True, False, False), 1, 0xF0, True, True,
    "1" * 64)  # fmt: skip


@pytest.fixture(scope="module")
def values(tmp_path_factory: pytest.TempPathFactory) -> dict[str, object]:
    folder: Path = tmp_path_factory.mktemp("triton")
    (folder / "program.py").write_text(PROGRAM)  # Triton reads a kernel's source from its file
    code = f"import runpy; runpy.run_path({str(folder / 'program.py')!r})"
    done = python(code, cwd=folder, TRITON_CACHE_DIR=str(folder / "cache"))
    assert done.returncode == 0, done.stderr
    found: dict[str, object] = json.loads(done.stdout.splitlines()[-1])
    return found


def test_scalars_grid_and_result_arrive(values: dict[str, object]) -> None:
    base = -3 + (2**40 >> 38) + 0.5
    assert values["first"] == base
    assert values["last"] == base + 63 + 11000
    assert values["untouched"] == 0.0
    assert (values["grid"], values["block"], values["symbol"]) == ([2, 2, 1], [256, 1, 1], "write_all")
    assert values["stream"] == STREAM and values["launches of an empty grid"] == 0


def test_a_read_beyond_a_tensor_is_a_fault_that_names_it(values: dict[str, object]) -> None:
    assert values["kind"] == "out-of-bounds"
    assert "of source (400 bytes)" in str(values["fault"])
    assert "read_beyond+0x" in str(values["fault"])


def test_a_record_remembers_what_is_alive_and_forgets_what_is_not() -> None:
    given = torch.zeros(10)
    with CallRecord({"given": given}) as record:
        made = torch.full((4, 4), 1.0)[:, :2]
        gone = torch.ones(1000)
        address = gone.data_ptr()
        del gone
        gc.collect()
        live = {allocation.name for _, allocation in record.live().values()}
    assert "given" in live
    assert any("full" in name for name in live)
    assert address not in record.live()
    assert made.untyped_storage().data_ptr() in record.live()


def undefined_bytes(record: CallRecord, tensor: torch.Tensor) -> int:
    """How many bytes of the tensor's storage count as unwritten."""
    known = record.live()[tensor.untyped_storage().data_ptr()][1]
    return 0 if known.undefined is None else int((known.undefined != 0).sum())


def test_memory_that_nobody_wrote_counts_as_unwritten_until_torch_writes_it() -> None:
    with CallRecord({"given": torch.zeros(10)}) as record:
        fresh = torch.empty(8, 4)
        like, new = torch.empty_like(fresh), fresh.new_empty(3)
        assert [undefined_bytes(record, part) for part in (fresh, like, new)] == [128, 128, 12]
        assert undefined_bytes(record, torch.zeros(5)) == 0
        fresh[:, :2].abs()  # reading is not writing
        assert undefined_bytes(record, fresh) == 128
        fresh[:2].fill_(1.0)
        torch.add(torch.ones(3), 1, out=new)
        assert [undefined_bytes(record, part) for part in (fresh, like, new)] == [0, 128, 0]


def test_unwritten_elements_of_a_result_are_counted_in_its_view_only() -> None:
    with CallRecord({}) as record:
        padded = torch.empty(4, 16)
        view = padded[:, :10]
    known = record.live()[padded.untyped_storage().data_ptr()][1]
    assert known.undefined is not None
    assert record.unwritten(view) == 40
    written = known.undefined.reshape(4, 64)
    written[:, :40] = 0  # as the stores of a kernel leave it
    assert (record.unwritten(view), record.unwritten(padded)) == (0, 24)
    written[2, 7] = 0x80  # one bit of one byte
    assert record.unwritten(view) == 1


def test_a_launch_keeps_alive_what_it_lists(monkeypatch: pytest.MonkeyPatch) -> None:
    """After a fault the tensors of the failed call hang in a cycle; the collector may come in the middle of the next launch."""
    alive: list[bool] = []
    record = CallRecord({})
    with record:
        cycle: list[object] = [torch.ones(1000)]
        cycle.append(cycle)
    known = next(iter(record._storages.values())).reference

    def examine(*arguments: object, **options: object) -> object:
        gc.collect()
        alive.append(known() is not None)
        raise KeyboardInterrupt

    del cycle
    monkeypatch.setattr("parity.launchers.record.examine", examine)
    with pytest.raises(KeyboardInterrupt):
        record.launch(KERNEL, [], (1, 1, 1), (64, 1, 1))
    assert alive == [True]


def test_a_mutant_is_launched_in_the_place_of_its_kernel_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[Kernel] = []

    def examine(kernel: Kernel, *arguments: object, **options: object) -> Examined:
        given.append(kernel)
        return Examined(LaunchReport(1, 0, 1, Fidelity(1, 0, 0)), None)

    monkeypatch.setattr("parity.launchers.record.examine", examine)
    mutation = Mutation(KERNEL.sha256, "made_up", 4, "drop", "dropped", "s_barrier", "s_nop 0", "00008abf", "000080bf")
    record = CallRecord({}, mutation=mutation)
    other = replace(KERNEL, sha256="2" * 64)
    for kernel in (KERNEL, other):
        record.launch(kernel, [], (1, 1, 1), (64, 1, 1))
    assert [kernel.text[4:8].hex() for kernel in given] == ["000080bf", "00008abf"]
    assert [launch.mutation for launch in record.launches] == ["+0x4 s_barrier -> s_nop 0", None]
    assert record.launches[0].sha256 not in (KERNEL.sha256, other.sha256)
    assert record.launches[1].sha256 == other.sha256
    assert list(record.kernels.values()) == [KERNEL, other]
