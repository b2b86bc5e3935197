# SPDX-License-Identifier: Apache-2.0
"""The way to a GPU, on a made-up libamdhip64.so: order of calls, memory, arguments, failures, which tests go, what is written."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from parity.gfx942 import Allocation, load
from parity.gfx942.code_object import assemble
from tests import test_gfx942_alu, test_gfx942_control, test_gfx942_lds, test_gfx942_memory, test_gfx942_mfma_layout
from tests.conftest import clean_environment
from tests.fake_hip import FakeHip, build
from tests.gfx942_assembly import Source, allocations, pointer, text_of
from tests.gfx942_gpu_session import LONGEST, REASON, runs_on_gpu
from tests.gfx942_on_gpu import SIGNATURES, Gpu, GpuError, assembled, on_gpu, pages_of, run_kernel
from tests.gfx942_state import Before, execute, kernels
from tests.mfma_launch import build as build_matrix_kernels

ABOUT_THE_MACHINE = ("hipDeviceGetName", "hipRuntimeGetVersion")  # for the record: no launch needs them
BEFORE_LAUNCH = ["hipHostGetDevicePointer", "hipModuleLoadData", "hipModuleGetFunction", "hipModuleLaunchKernel"]
ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="session")
def fake_library(once: Callable[[str, Callable[[Path], None]], Path]) -> Path:
    return once("fake-hip", lambda folder: build(folder) and None) / "libamdhip64.so"


@pytest.fixture
def hip(fake_library: Path) -> FakeHip:
    return FakeHip(fake_library)


@pytest.fixture
def gpu(hip: FakeHip) -> Iterator[Gpu]:
    chosen = Gpu(0, str(hip.path))
    with on_gpu(chosen):
        yield chosen


def double() -> None:
    """One instruction on the chosen device."""
    after = execute("v_add_u32 v10, v2, v2", Before(vectors={2: range(64)}))
    assert after.lanes(10) == [2 * lane for lane in range(64)]


# -- launches ------------------------------------------------------------------------------------------------------------
def test_an_instruction_and_the_order_of_calls(hip: FakeHip, gpu: Gpu) -> None:
    double()
    assert hip.calls[0] == "hipSetDevice"
    assert list(dict.fromkeys(hip.calls[1:])) == [
        "hipHostRegister",
        *BEFORE_LAUNCH,
        "hipDeviceSynchronize",
        "hipModuleUnload",
        "hipHostUnregister",
    ]
    assert hip.registered == 0
    ((name, sha256, instructions),) = gpu.launched
    assert (name, instructions) == ("body", "v_add_u32 v10, v2, v2") and re.fullmatch("[0-9a-f]{64}", sha256)


def test_without_a_gpu_the_executor_runs(hip: FakeHip) -> None:
    with on_gpu(None):
        double()
    assert hip.calls == []


def test_whole_tests_pass_through_it(hip: FakeHip, gpu: Gpu) -> None:
    """Vectors and VCC, host addresses in registers, matrix products, waves that wait for each other, LDS that the launch adds."""
    body = "v_cndmask_b32 v10, v2, v3, vcc"
    test_gfx942_alu.test_lanes(body, {body: kernels({"k": body})["k"]})
    test_gfx942_memory.test_global_offset_range()
    test_gfx942_memory.test_scalar_load_of_each_wave_its_own()
    test_gfx942_control.test_barriers_in_a_loop()
    test_gfx942_lds.test_dynamic_lds_holds_what_is_written()
    form = "32x32x16_fp8_bf8"
    test_gfx942_mfma_layout.test_products_of_small_integers(form, build_matrix_kernels())
    assert hip.calls.count("hipModuleLaunchKernel") == len(gpu.launched) >= 6
    assert hip.registered == 0


def test_arguments_are_packed_and_hidden_ones_left_to_hip(hip: FakeHip, gpu: Gpu) -> None:
    out = np.zeros(1, np.uint32)
    parts = ((4, "by_value"), (8, "global_buffer"), (4, "hidden_block_count_x"))
    body = """s_load_dword s4, s[0:1], 0x0
    s_load_dwordx2 s[6:7], s[0:1], 0x4
    s_waitcnt lgkmcnt(0)
    v_mov_b32 v1, s4
    v_mov_b32 v2, 0
    global_store_dword v2, v1, s[6:7]"""
    kernel = assembled(assemble(text_of(Source("k", body, parts))), "k")
    run_kernel(kernel, [b"\x07\0\0\0more", pointer(out)], (1, 1, 1), (1, 1, 1), allocations(out=out))
    assert hip.kernargs == [b"\x07\0\0\0" + pointer(out)]
    assert out[0] == 7


def test_a_kernel_without_its_code_object_is_refused(gpu: Gpu) -> None:
    kernel = load(assemble(text_of(Source("k", "s_nop 0"))), "k")
    with pytest.raises(TypeError, match=r"k has no code object with it: use assembled\(\)"):
        run_kernel(kernel, [bytes(8), bytes(8)], (1, 1, 1), (64, 1, 1), [])


def test_pages_are_whole_and_joined() -> None:
    parts = [(0x10010, 8), (0x10FF8, 16), (0x12000, 0), (0x13FFF, 1), (0x14000, 4096), (0x16000, 1), (0x10020, 4)]
    memory = [Allocation(f"part {number}", address, size) for number, (address, size) in enumerate(parts)]
    assert pages_of(memory) == [(0x10000, 0x2000), (0x13000, 0x2000), (0x16000, 0x1000)]


# -- failures ------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("function", [name for name in SIGNATURES if name not in ABOUT_THE_MACHINE])
def test_each_call_that_fails_is_named(function: str, hip: FakeHip, gpu: Gpu) -> None:
    hip.fail(function)
    with pytest.raises(GpuError, match=rf"^{function}: made-up failure \(hipError_t 999\)$"):
        double()
    assert hip.registered == hip.calls.count("hipHostUnregister") * (function == "hipHostUnregister")
    assert hip.calls.count("hipModuleUnload") == ("hipModuleGetFunction" in hip.calls)


def test_the_name_of_the_device_and_the_version_of_hip(hip: FakeHip, gpu: Gpu) -> None:
    assert (gpu.name, gpu.runtime) == ("Made-up MI300X", 60443483)
    for function, ask in zip(ABOUT_THE_MACHINE, (lambda other: other.name, lambda other: other.runtime), strict=True):
        hip.fail(function)
        with pytest.raises(GpuError, match=f"{function}: made-up failure"):
            ask(Gpu(0, str(hip.path)))


def test_every_range_is_given_back_though_one_fails(hip: FakeHip, gpu: Gpu) -> None:
    """Arrays far apart: several registrations; each is tried."""
    far = [np.zeros(1 << 20, np.uint8) for _ in range(3)]
    hip.fail("hipHostUnregister")
    with pytest.raises(GpuError, match="hipHostUnregister"):
        execute("s_nop 0", **{f"far{number}": array for number, array in enumerate(far)})
    assert hip.calls.count("hipHostUnregister") == hip.calls.count("hipHostRegister") >= 2


def test_what_failed_first_is_told(hip: FakeHip, gpu: Gpu) -> None:
    """After a kernel that faults, HIP may fail at everything; the message is about the kernel."""
    hip.fail("hipHostUnregister")
    with pytest.raises(GpuError, match=r"^hipDeviceSynchronize: unspecified launch failure"):
        execute("v_mov_b32 v3, 0\nglobal_store_dword v[2:3], v2, off", Before(vectors={2: [64] * 64}))
    assert hip.calls[-1] == "hipHostUnregister" and "hipModuleUnload" in hip.calls


def test_memory_at_another_address_is_refused(hip: FakeHip, gpu: Gpu) -> None:
    hip.shift(0x1000)
    with pytest.raises(
        GpuError,
        match=r"hipHostGetDevicePointer: host address 0x(\w+) is 0x(\w+) on the GPU; the tests need them equal",
    ):
        double()
    assert hip.registered == 0 and "hipModuleLaunchKernel" not in hip.calls


@pytest.mark.parametrize("library", ["libno-such-hip.so", "libc.so.6"], ids=["missing", "another library"])
def test_no_hip(library: str) -> None:
    with on_gpu(Gpu(0, library)), pytest.raises(GpuError, match=rf"cannot use {library}: .*\(is ROCm installed"):
        double()


# -- sessions ------------------------------------------------------------------------------------------------------------
def test_which_tests_go_to_the_gpu() -> None:
    go = [
        test_gfx942_alu.test_lanes,
        test_gfx942_memory.test_stores_of_every_width,
        test_gfx942_mfma_layout.test_products_of_small_integers,
        test_gfx942_control.test_barriers_in_a_loop,
    ]
    stay = [test_gfx942_control.test_step_limit, test_gfx942_control.test_counts_of_wave_instructions, test_gfx942_lds.test_workgroups_have_their_own_lds,
            test_gfx942_alu.test_refused, test_gfx942_alu.test_reciprocals_are_counted_as_approximate,
            test_gfx942_alu.test_every_instruction_with_semantics_has_rows, test_gfx942_mfma_layout.test_mfmas_are_counted]  # fmt: skip
    assert [runs_on_gpu(test) for test in go + stay] == [True] * len(go) + [False] * len(stay)


PRETEND = """
import parity.plugin
import tests.gfx942_on_gpu
from parity.devices import Device
from tests.fake_hip import FakeHip

fake = FakeHip({library!r}) if {exists} else None
parity.plugin.choose_device = lambda wanted, worker=0: Device("gpu", 0)
tests.gfx942_on_gpu.Gpu.__init__.__defaults__ = ({library!r},) + tests.gfx942_on_gpu.Gpu.__init__.__defaults__[1:]
"""


def session(tmp_path: Path, library: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """pytest --device=gpu in a process of its own, where the made-up GPU counts as one."""
    (tmp_path / "pretend_gpu.py").write_text(PRETEND.format(library=str(library), exists=library.exists()))
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-p",
        "no:cacheprovider",
        "-p",
        "pretend_gpu",
        "--device=gpu",
        f"--rootdir={ROOT}",
        "-c",
        str(ROOT / "pyproject.toml"),
    ]
    return subprocess.run(
        [*command, *arguments],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        env=clean_environment(PYTHONPATH=f"{ROOT}:{tmp_path}"),
    )


def lines_of(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text().splitlines()]


def test_a_session_writes_a_line_for_each_test_on_the_gpu(tmp_path: Path, fake_library: Path) -> None:
    tests = ROOT / "tests/test_gfx942_lanes.py"
    refused = ROOT / "tests/test_gfx942_lds.py"
    evidence = tmp_path / "kept" / "evidence.jsonl"
    evidence.parent.mkdir()
    done = session(
        tmp_path, fake_library, str(tests), str(refused), "-k", "dpp_patterns or refused", f"--evidence={evidence}"
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(rf"SKIPPED .*{REASON}", done.stdout)
    lines = lines_of(evidence.parent / "instructions.jsonl")
    assert lines and {line["test"].split("[")[0] for line in lines} == {"tests/test_gfx942_lanes.py::test_dpp_patterns"}
    assert {(line["outcome"], line["device"]) for line in lines} == {("passed", "Made-up MI300X")}
    assert {line["hip"] for line in lines} == {60443483} and not any("failure" in line for line in lines)
    for line in lines:
        (kernel,) = line["kernels"]
        assert kernel["name"] == "body" and kernel["instructions"].startswith("v_mov_b32_dpp v10, v2 ")
    again = session(
        tmp_path, fake_library, f"{tests}::test_mbcnt_counts_mask_bits_below_the_lane", f"--evidence={evidence}"
    )
    assert again.returncode == 0, again.stdout + again.stderr
    assert len(lines_of(evidence.parent / "instructions.jsonl")) == len(lines) + 1


WRONG = """
from tests.gfx942_state import Before, execute

def test_wrong():
    after = execute("v_add_u32 v10, v2, v2", Before({2: [3]}))
    assert after.v[10][0] == 7, f"lane 0: v10 is {after.v[10][0]}, expected 7"

def test_long():
    execute("s_add_u32 s16, s8, s8")
    raise AssertionError("x" * 9000)
"""


def test_a_failed_test_says_what_came_and_what_was_expected(tmp_path: Path, fake_library: Path) -> None:
    file = tmp_path / "test_gfx942_made_up.py"
    file.write_text(WRONG)
    done = session(tmp_path, fake_library, "-p", "tests.gfx942_gpu_session", str(file))
    assert done.returncode == 1, done.stdout + done.stderr
    wrong, long = lines_of(tmp_path / "instructions.jsonl")
    assert (wrong["outcome"], wrong["kernels"][0]["instructions"]) == ("failed", "v_add_u32 v10, v2, v2")
    assert "lane 0: v10 is 6, expected 7" in wrong["failure"]
    assert (long["outcome"], len(long["failure"])) == ("failed", LONGEST)


def test_a_session_without_hip_says_so(tmp_path: Path) -> None:
    library = tmp_path / "libamdhip64.so"
    done = session(tmp_path, library, f"{ROOT}/tests/test_gfx942_lanes.py::test_mbcnt_counts_mask_bits_below_the_lane")
    assert done.returncode == 1
    assert f"cannot use {library}" in done.stdout
    (line,) = lines_of(tmp_path / "instructions.jsonl")
    assert (line["outcome"], line["device"], line["hip"]) == ("failed", None, None)
    assert f"cannot use {library}" in line["failure"]
