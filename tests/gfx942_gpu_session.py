# SPDX-License-Identifier: Apache-2.0
"""pytest --device=gpu for the executor's tests: which of them go to the GPU, and a line about each in instructions.jsonl.

    {"device": "AMD Instinct MI300X", "hip": 60443483, "kernels": [{"instructions": "v_mov_b32 v10, v2", "name": "k0", "sha256": "..."}],
     "outcome": "passed", "test": "tests/..."}

A failed one also has "failure", which tells actual and expected values. sha256 is that of the code object. conftest.py takes the hooks and
the fixture from here.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from types import CodeType, FunctionType

import pytest

from parity import gfx942
from tests import gfx942_state, mfma_launch
from tests.gfx942_on_gpu import Gpu, GpuError, on_gpu, run_kernel

REASON = "checks the executor itself"
OWN_TESTS = "test_gfx942_on_gpu"  # they bring a made-up GPU
_EITHER_WAY = (gfx942_state.run, gfx942_state.execute, mfma_launch.matrix_product, run_kernel)
_EXECUTOR_ONLY = (gfx942.launch, gfx942.check_schedules)
LONGEST = 2000  # characters of a failure: pytest compares whole registers
_GPU = pytest.StashKey[Gpu]()
_SEEN = pytest.StashKey[int]()


def runs_on_gpu(test: FunctionType) -> bool:
    """Whether a test launches through run_kernel or what stands on it, and neither asks for a report or expects an exception.

    Read from the code, through the functions of the tests that it calls: a mark could be forgotten, and a refused or faulting
    kernel must not reach a GPU, where a fault ends the process.
    """
    found = False
    waiting, done = [test], {test}
    while waiting:
        function = waiting.pop()
        for name in names_in(function.__code__):
            value = function.__globals__.get(name)
            if name in ("raises", "report") or any(value is one for one in _EXECUTOR_ONLY):
                return False
            if any(value is one for one in _EITHER_WAY):
                found = True
            elif isinstance(value, FunctionType) and value.__module__.startswith("tests.") and value not in done:
                waiting.append(value)
                done.add(value)
    return found


def names_in(code: CodeType) -> set[str]:
    """Globals and attributes that a function names, its inner functions and comprehensions included."""
    inner = [names_in(part) for part in code.co_consts if isinstance(part, CodeType)]
    return set(code.co_names).union(*inner)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Skip the rest of the executor's tests; all others (test_cli.py, ...) do as without a GPU."""
    if config.getoption("--device") != "gpu":
        return
    for item in items:
        if (
            isinstance(item, pytest.Function)
            and item.path.stem.startswith("test_gfx942_")
            and item.path.stem != OWN_TESTS
        ):
            if runs_on_gpu(item.function):
                item.stash[_SEEN] = 0
            else:
                item.add_marker(pytest.mark.skip(reason=REASON))


@pytest.fixture(scope="session", autouse=True)
def gpu_where_asked(request: pytest.FixtureRequest) -> Iterator[None]:
    """With --device=gpu, kernels go to this worker's GPU. Of the whole session: fixtures of modules launch too."""
    if request.config.getoption("--device") != "gpu":
        yield
        return
    gpu = request.config.stash[_GPU] = Gpu(request.getfixturevalue("parity_device").gpu)
    with on_gpu(gpu):
        yield


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
    """One appended line for each test that went to the GPU: what was known survives a fault that ends the process."""
    if _SEEN in item.stash and _GPU in item.config.stash and call.when == "setup":
        item.stash[_SEEN] = len(item.config.stash[_GPU].launched)
    answer = yield
    report = answer.get_result()
    if _SEEN in item.stash and (report.when == "call" or (report.when == "setup" and not report.passed)):
        line = json.dumps(record(item, report), sort_keys=True) + "\n"
        with open(results_file(item.config), "a", encoding="utf-8") as file:
            file.write(line)  # one write: xdist workers append to the same file


def record(item: pytest.Item, report: pytest.TestReport) -> dict[str, object]:
    gpu = item.config.stash.get(_GPU, None)
    launched = [] if gpu is None else gpu.launched[item.stash[_SEEN] :]
    kernels = [dict(zip(("name", "sha256", "instructions"), one, strict=True)) for one in dict.fromkeys(launched)]
    return {"test": item.nodeid, "outcome": report.outcome, "kernels": kernels, **machine(gpu), **failure(report)}


def machine(gpu: Gpu | None) -> dict[str, object]:
    """None where HIP does not say; the test has failed then."""
    try:
        return {"device": None, "hip": None} if gpu is None else {"device": gpu.name, "hip": gpu.runtime}
    except GpuError:
        return {"device": None, "hip": None}


def failure(report: pytest.TestReport) -> dict[str, str]:
    """pytest's message about a failed test: the assertions of these tests say the lane, what came and what was expected."""
    if report.outcome != "failed":
        return {}
    crash = getattr(report.longrepr, "reprcrash", None)  # absent from a failure without a traceback
    return {"failure": (str(report.longrepr) if crash is None else crash.message)[:LONGEST]}


def results_file(config: pytest.Config) -> Path:
    """instructions.jsonl beside the file that --evidence names, else where `parity gate` would write it: in the current folder."""
    evidence = config.getoption("--evidence")
    return (evidence.parent if evidence else config.invocation_params.dir) / "instructions.jsonl"
