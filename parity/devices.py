# SPDX-License-Identifier: Apache-2.0
"""What executes a kernel: a gfx942 GPU, the executor, or (the Triton kernel only) a CUDA GPU. Imports neither torch nor ROCm, so that a pytest worker can choose first."""

from __future__ import annotations

import contextlib
import os
import re
from dataclasses import dataclass
from pathlib import Path

KFD_NODES = Path("/sys/class/kfd/kfd/topology/nodes")
DEPTHS = (
    "quick",
    "full",
    "release",
)  # of cases, see matrix.py; here because options are declared before torch is imported
CHOICES = ("auto", "gpu", "executor", "cuda")
GFX942 = 90402  # gfx_target_version of the Linux KFD: major * 10000 + minor * 100 + stepping


class DeviceError(Exception):
    """The device asked for is not here. The text says what was looked for."""


@dataclass(frozen=True)
class Device:
    """kind: "gpu" (gfx942), "executor" or "cuda"; gpu: index among the visible GPUs, None for the executor."""

    kind: str
    gpu: int | None = None

    @property
    def torch_device(self) -> str:
        """Where references are computed and results compared: the same GPU, which ROCm's torch calls cuda too."""
        return "cpu" if self.kind == "executor" else f"cuda:{self.gpu}"

    @property
    def kernels(self) -> tuple[str, ...]:
        """The kernels that it can run; FlyDSL is for AMD GPUs."""
        return ("triton",) if self.kind == "cuda" else ("flydsl", "triton")


def gpu_error(error: RuntimeError) -> str:
    """The first line of an error that the GPU's runtime reported through torch; "" for any other."""
    text = str(error)
    return text.splitlines()[0] if "HIP error" in text or "CUDA error" in text else ""


def visible_gpus(nodes: Path = KFD_NODES) -> list[int]:
    """HIP indices of the gfx942 GPUs that this process may use; [] when there is none.

    Reads the kernel driver's topology, so neither ROCm nor torch is needed. ROCR_VISIBLE_DEVICES renumbers the GPUs,
    HIP_VISIBLE_DEVICES then restricts them; DeviceError when one holds anything but indices.
    """
    versions = []
    for folder in sorted(nodes.glob("[0-9]*"), key=lambda path: int(path.name)):
        with contextlib.suppress(OSError):  # a node that cannot be read cannot be used
            lines = (folder / "properties").read_text().splitlines()
            versions += [int(line.split()[1]) for line in lines if line.startswith("gfx_target_version ")]
    gpus = [version for version in versions if version]  # CPUs are nodes too, with version 0
    gpus = [gpus[index] for index in _listed("ROCR_VISIBLE_DEVICES", len(gpus))]
    return [index for index in _listed("HIP_VISIBLE_DEVICES", len(gpus)) if gpus[index] == GFX942]


def _listed(variable: str, count: int) -> list[int]:
    """The indices in an environment variable, cut at the first that does not exist, as the runtime does; all without one."""
    value = os.environ.get(variable)
    if value is None:
        return list(range(count))
    if not value.strip():
        return []
    indices: list[int] = []
    for part in value.split(","):
        if not re.fullmatch(r"\s*-?[0-9]+\s*", part):
            raise DeviceError(f"{variable}={value}: give GPU indices (0,1,...), not identifiers")
        if not 0 <= int(part) < count:
            break
        indices.append(int(part))
    return indices


def choose_device(wanted: str, *, worker: int = 0, nodes: Path = KFD_NODES, nvidia: Path = Path("/dev")) -> Device:
    """Device for `wanted` (one of CHOICES) and xdist worker number `worker`: workers share the GPUs round robin.

    Raises DeviceError when a GPU was asked for and there is none.
    """
    if wanted == "executor":
        return Device("executor")
    if wanted == "cuda":
        count = len(list(nvidia.glob("nvidia[0-9]*")))
        visible = _listed("CUDA_VISIBLE_DEVICES", count)
        if not visible:
            raise DeviceError(f"--device=cuda: no CUDA GPU: looked for {nvidia}/nvidia*")
        return Device("cuda", visible[worker % len(visible)])
    if wanted not in ("auto", "gpu"):
        raise DeviceError(f"--device={wanted}: choose {', '.join(CHOICES)}")
    gpus = visible_gpus(nodes)
    if gpus:
        return Device("gpu", gpus[worker % len(gpus)])
    if wanted == "auto":
        return Device("executor")
    restricted = ", ".join(
        f"{name}={os.environ[name]}" for name in ("ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES") if name in os.environ
    )
    raise DeviceError(
        f"--device=gpu: no gfx942 GPU (MI300X, MI325X): looked for gfx_target_version {GFX942} in {nodes}/*/properties"
        + (f" with {restricted}" if restricted else "") + "; --device=executor needs no GPU"
    )  # fmt: skip
