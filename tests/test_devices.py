# SPDX-License-Identifier: Apache-2.0
"""GPUs are found in the kernel driver's topology (made-up folders here: no gfx942 was at hand)."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from parity.devices import Device, DeviceError, choose_device, visible_gpus

GFX942, GFX950, CPU = 90402, 90500, 0


@pytest.fixture(autouse=True)
def _no_restriction(no_gpu_variables: None) -> None:
    """No *_VISIBLE_DEVICES of the caller."""


def nodes(folder: Path, *versions: int) -> Path:
    for number, version in enumerate(versions):
        (folder / str(number)).mkdir(parents=True)
        (folder / str(number) / "properties").write_text(f"simd_count 4\ngfx_target_version {version}\n")
    return folder


def test_without_the_driver_there_is_no_gpu(tmp_path: Path) -> None:
    assert visible_gpus(tmp_path / "missing") == []
    assert choose_device("auto", nodes=tmp_path) == Device("executor")


def test_cpus_are_no_gpus_and_other_gpus_are_not_gfx942(tmp_path: Path) -> None:
    folder = nodes(tmp_path, CPU, CPU, GFX950, GFX942, GFX942)
    assert visible_gpus(folder) == [1, 2]
    assert choose_device("auto", nodes=folder) == Device("gpu", 1)


def test_ten_nodes_are_ordered_by_number(tmp_path: Path) -> None:
    assert visible_gpus(nodes(tmp_path, *[GFX950] * 9, GFX942, GFX942)) == [9, 10]


def test_workers_share_gpus_round_robin(tmp_path: Path) -> None:
    folder = nodes(tmp_path, GFX942, GFX942, GFX942)
    assert [choose_device("gpu", worker=worker, nodes=folder).gpu for worker in range(5)] == [0, 1, 2, 0, 1]


@pytest.mark.parametrize(
    ("rocr", "hip", "expected"),
    [
        (None, "2", [2]),
        (None, "3,0", [3, 0]),
        (None, "", []),
        (None, "-1", []),
        (None, "1,9,2", [1]),
        ("2,3", None, [0, 1]),
        ("2,3", "1", [1]),
    ],
)
def test_visible_devices(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rocr: str | None, hip: str | None, expected: list[int]
) -> None:
    for name, value in (("ROCR_VISIBLE_DEVICES", rocr), ("HIP_VISIBLE_DEVICES", hip)):
        if value is not None:
            monkeypatch.setenv(name, value)
    assert visible_gpus(nodes(tmp_path, GFX942, GFX942, GFX942, GFX942)) == expected


@pytest.mark.parametrize("value", ["GPU-1234", "--1", "²", "0,x", "1.5"])
def test_identifiers_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setenv("ROCR_VISIBLE_DEVICES", value)
    with pytest.raises(DeviceError, match=re.escape(f"ROCR_VISIBLE_DEVICES={value}: give GPU indices")):
        visible_gpus(nodes(tmp_path, GFX942))


def test_gpu_without_one_says_what_was_looked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(DeviceError) as refused:
        choose_device("gpu", nodes=nodes(tmp_path, CPU, GFX950))
    assert f"looked for gfx_target_version 90402 in {tmp_path}/*/properties" in str(refused.value)
    monkeypatch.setenv("HIP_VISIBLE_DEVICES", "7")
    with pytest.raises(DeviceError, match="with HIP_VISIBLE_DEVICES=7"):
        choose_device("gpu", nodes=tmp_path)
    with pytest.raises(DeviceError, match="choose auto, gpu, executor, cuda"):
        choose_device("tpu", nodes=tmp_path)
