# SPDX-License-Identifier: Apache-2.0
"""The pytest plugin: options, the gfx942 mark, one GPU per xdist worker, evidence. No check lives here.

It is loaded in every pytest run of an environment that has this package, so it imports nothing heavy before a test asks.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from parity.cli import add_case_options, add_source_options
from parity.devices import Device, DeviceError, choose_device

_DEVICE = pytest.StashKey[Device]()
_NO_DEVICE = pytest.StashKey[str]()
_EVIDENCE = pytest.StashKey[Any]()
_NUMBER = "parity_number_on_host"


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("parity", "logits-parity: gfx942 kernels of fp8_mqa_logits")
    group.addoption(
        "--device",
        default="auto",
        help="auto (default): a gfx942 GPU where there is one, else the executor; gpu; executor; cuda (the Triton kernel alone)",
    )
    add_source_options(group.addoption)
    add_case_options(group.addoption)
    group.addoption("--evidence", metavar="PATH", type=Path, help="write evidence records to this file (JSON lines)")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "gfx942: runs gfx942 machine code, on such a GPU or in the executor")
    worker = getattr(config, "workerinput", {_NUMBER: 0})[_NUMBER]
    try:
        config.stash[_DEVICE] = choose_device(config.getoption("--device"), worker=worker)
    except DeviceError as error:
        if config.getoption("--device") != "auto" and _must_have_device(config):
            raise pytest.UsageError(str(error)) from None
        config.stash[_NO_DEVICE] = str(
            error
        )  # an odd variable matters to the tests that want a device, and to no others
    if config.getoption("--candidate") and not config.getoption("--aiter"):
        raise pytest.UsageError("--candidate needs --aiter: it is a revision of that repository")
    is_main = not hasattr(config, "workerinput")
    depth, captured, seeds = (config.getoption(name) for name in ("--depth", "--captured", "--seeds"))
    if is_main and (depth != "quick" or captured or seeds != 1):
        wanted_cases(config)  # a mistake in them is a usage error now, and a collection error later
    if config.getoption("--evidence") and is_main:
        config.pluginmanager.register(Collector(config.getoption("--evidence")), "parity-evidence")


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Tells an xdist worker its number among those of its host, which picks its GPU. Its id would not do: workers of all
    hosts count on from one another, a `--tx` may name its own, and one that replaces a crashed worker gets a new one."""
    on_host = [spec for spec in node.nodemanager.specs if _host(spec) == _host(node.gateway.spec)]
    node.workerinput[_NUMBER] = [spec is node.gateway.spec for spec in on_host].index(True)


def _host(spec: Any) -> str:
    """Where an execnet specification starts its process; "" for this host."""
    return spec.ssh or spec.vagrant_ssh or (spec.socket or "").rpartition(":")[0] or spec.via or ""


def _must_have_device(config: pytest.Config) -> bool:
    """Not where no kernel runs: in a main process whose workers are all elsewhere. And not in a worker, whose tests can say it: one
    that does not come up is replaced by xdist for ever."""
    return not hasattr(config, "workerinput") and not _workers_are_elsewhere(config)


def _workers_are_elsewhere(config: pytest.Config) -> bool:
    """Is this a main process with every worker on another host?"""
    if hasattr(config, "workerinput") or config.getoption("dist", "no") == "no":
        return False
    from execnet import XSpec
    from xdist.workermanage import parse_tx_spec_config

    return all(_host(XSpec(spec)) for spec in parse_tx_spec_config(config))


def pytest_report_header(config: pytest.Config) -> str:
    if _workers_are_elsewhere(config):
        return f"logits-parity: kernels run where the workers are (--device={config.getoption('--device')})"
    if _DEVICE not in config.stash:
        return f"logits-parity: no device: {config.stash[_NO_DEVICE]}"
    names = {
        "executor": "the gfx942 executor (software)",
        "gpu": "gfx942 GPU",
        "cuda": "a CUDA GPU (the Triton kernel alone)",
    }
    chosen = names[config.stash[_DEVICE].kind]
    return f"logits-parity: kernels run on {chosen} (--device={config.getoption('--device')})"


def wanted_cases(config: pytest.Config) -> Any:
    """The cases that --depth, --seeds and --captured ask for."""
    from parity.matrix import chosen_cases

    if _DEVICE not in config.stash:
        return chosen_cases("quick", [], Device("executor"))  # their tests say what is wrong
    try:
        depth, captured, seeds = (config.getoption(name) for name in ("--depth", "--captured", "--seeds"))
        return chosen_cases(depth, captured, config.stash[_DEVICE], seeds=seeds)
    except (ValueError, OSError) as error:
        raise pytest.UsageError(str(error)) from None


def device_of(config: pytest.Config) -> Device:
    """The device of this worker; the executor where there is none, so that tests are collected and say what is wrong."""
    return config.stash[_DEVICE] if _DEVICE in config.stash else Device("executor")


@pytest.fixture(scope="session")
def policy(request: pytest.FixtureRequest) -> Any:
    """The policy that --policy names, or this project's."""
    from parity.policy import PolicyError, default_policy, load_policy

    problem = ""
    try:
        return load_policy(request.config.getoption("--policy") or default_policy())
    except PolicyError as error:
        problem = str(error)
    pytest.fail(problem, pytrace=False)


@pytest.fixture(scope="session")
def parity_device(request: pytest.FixtureRequest) -> Device:
    """The device of this worker."""
    if _DEVICE not in request.config.stash:
        pytest.fail(request.config.stash[_NO_DEVICE], pytrace=False)
    return request.config.stash[_DEVICE]


@pytest.fixture(scope="session")
def arms(request: pytest.FixtureRequest, parity_device: Device) -> Iterator[dict[str, Any]]:
    """Both kernels of the source that --aiter and --candidate name, each in a process of its own."""
    from parity.run import arms_of, leave_cores_to_arms
    from parity.sources import SourceError, select_source

    leave_cores_to_arms()
    options, problem = request.config, ""
    with ExitStack() as stack:
        try:
            source = select_source(
                options.getoption("--aiter"),
                options.getoption("--candidate"),
                tell=print,
                kernels=parity_device.kernels,
            )
            started = stack.enter_context(arms_of(source, parity_device))
        except SourceError as error:
            problem = str(error)
        if problem:
            pytest.fail(problem, pytrace=False)
        yield started


@pytest.fixture(scope="session")
def repeat_options(request: pytest.FixtureRequest) -> str:
    """The source and case options of this run, for the command that a failure prints."""
    from parity.run import case_options, source_options

    option = request.config.getoption
    return source_options(option("--aiter"), option("--candidate")) + case_options(
        option("--depth"), option("--seeds"), option("--captured"), option("--policy")
    )


@pytest.fixture
def keep_evidence(request: pytest.FixtureRequest) -> Any:
    """A function that takes the records of this test; they travel with its report to the process that writes the file."""

    def keep(records: Any) -> None:
        request.node.stash[_EVIDENCE] = [record.to_line() for record in records]

    return keep


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
    outcome: Any = yield
    if call.when == "call":
        outcome.get_result().parity_evidence = item.stash.get(_EVIDENCE, [])  # xdist sends plain attributes along


class Collector:
    """Writes the records of all tests, from all xdist workers, as their reports arrive. Lives in the main process only."""

    def __init__(self, path: Path) -> None:
        from parity.evidence import EvidenceError, EvidenceFile

        self._error = EvidenceError
        try:
            self._file = EvidenceFile(path)
        except EvidenceError as error:
            raise pytest.UsageError(str(error)) from None

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._file.write(getattr(report, "parity_evidence", []))

    def pytest_sessionfinish(self) -> None:
        try:
            self._file.finish()
        except self._error as error:
            raise pytest.UsageError(str(error)) from None
