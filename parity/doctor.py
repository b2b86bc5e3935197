# SPDX-License-Identifier: Apache-2.0
"""`parity doctor`: what is here, whether it is fit for use, and what each missing thing would need."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
import os
import platform
import subprocess
import sys
from dataclasses import asdict, dataclass

from parity.devices import DeviceError, choose_device, visible_gpus

_NEEDS = {
    "torch": "pip install 'torch>=2.6' (a CPU build is enough)",
    "triton": "pip install 'logits-parity[executor]'",
    "flydsl": "pip install 'logits-parity[executor]'",
    "ziglang": "pip install 'logits-parity[executor]' (clang and lld for the executor)",
    "aiter": "only for `parity gate --aiter installed`; a git checkout of ROCm/aiter needs no installation",
}
# A trial import in a process of its own: a broken installation can abort, and must not take the doctor along.
_TRIALS = {
    "fp8 in torch": "import torch; torch.zeros(1, dtype=torch.uint8).view(torch.float8_e4m3fnuz)",
    "own FlyDSL kernel": "import parity.kernels.own_flydsl",
    "own Triton kernel": "import parity.kernels.own_triton",
    "executor": "from parity.gfx942 import native; native.library()",
}


@dataclass(frozen=True)
class Item:
    """One line of the doctor: name, fit for use or not, what was found, what it would need ("" when fit)."""

    name: str
    ok: bool
    found: str
    need: str = ""


def examine() -> list[Item]:
    """Every item, in the order shown. Takes about 10 s: four trial imports."""
    items = [
        Item("python", sys.version_info >= (3, 10), f"{platform.python_version()} {sys.executable}", ""),
        _device(),
    ]
    items += [_package(name) for name in ("torch", "triton", "flydsl", "ziglang", "aiter")]
    return items + [_trial(name, code) for name, code in _TRIALS.items()]


def _device() -> Item:
    try:
        gpus = visible_gpus()
        device = choose_device("auto")
    except DeviceError as error:
        return Item("device", False, str(error), "unset the variable or give indices")
    if device.kind == "gpu":
        return Item("device", True, f"{len(gpus)} gfx942 GPUs (HIP indices {', '.join(map(str, gpus))})")
    return Item("device", True, "no gfx942 GPU visible; --device=auto uses the executor")


def _package(name: str) -> Item:
    spec = importlib.util.find_spec(name)
    providers = sorted(set(importlib.metadata.packages_distributions().get(name, [])))
    if spec is None:
        return Item(name, name == "aiter", "not installed", _NEEDS[name])
    path = spec.origin or next(iter(spec.submodule_search_locations or []), "")
    versions = (
        ", ".join(f"{provider} {importlib.metadata.version(provider)}" for provider in providers) or "no distribution"
    )
    if len(providers) > 1:
        return Item(name, False, f"{versions} at {path}", f"uninstall all but one distribution that provides {name}")
    return Item(name, True, f"{versions} at {path}")


def _trial(name: str, code: str) -> Item:
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=os.sep
    )  # -c looks in its folder first
    if done.returncode == 0:
        return Item(name, True, "works")
    reason = (done.stderr.strip().splitlines() or [f"exit status {done.returncode}"])[-1]
    return Item(name, False, reason[:300], "see the packages above")


def as_json(items: list[Item]) -> str:
    return json.dumps([asdict(item) for item in items], indent=1)


def as_text(items: list[Item]) -> str:
    lines = []
    for item in items:
        lines.append(f"{'ok' if item.ok else '--':2} {item.name:18} {item.found}")
        if item.need:
            lines.append(f"   {'':18} needs: {item.need}")
    return "\n".join(lines)
