# SPDX-License-Identifier: Apache-2.0
"""Where an arm's wrapper comes from: this repository's modules, or those of an aiter tree without the rest of aiter."""

from __future__ import annotations

import importlib
import importlib.machinery
import sys
import types
from collections.abc import Callable, Sequence
from pathlib import Path

import torch

from parity.sources import WRAPPERS, Source

Wrapper = Callable[..., torch.Tensor]


class TreeFinder:
    """Imports aiter's modules from a source tree without running any package's __init__.py.

    aiter's __init__ files import the whole library and want ROCm; the wrapper modules need a handful of siblings only.
    """

    def __init__(self, tree: str) -> None:
        self._tree = Path(tree)

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: object = None
    ) -> importlib.machinery.ModuleSpec | None:
        folder = self._tree / name.replace(".", "/")
        if name.partition(".")[0] != "aiter" or not folder.is_dir():
            return None
        spec = importlib.machinery.ModuleSpec(name, None, is_package=True)
        spec.submodule_search_locations = [str(folder)]
        return spec


def load_wrapper(source: Source, kernel: str, *, executor: bool) -> tuple[Wrapper, types.ModuleType]:
    """The public wrapper of `kernel` and the module that defines it."""
    if source.kind == "aiter":
        sys.meta_path.insert(0, TreeFinder(source.tree))  # type: ignore[arg-type]
        if executor:
            _stand_in_for_rocm(source.tree)
    module = importlib.import_module(source.modules[kernel])
    return getattr(module, WRAPPERS[kernel]), module


def _stand_in_for_rocm(tree: str) -> None:
    """aiter's chip_info imports `cpp_extension`, which looks for ROCm on import; of it, it needs `executable_path` alone, and that
    only to ask rocminfo for the GPU, which GPU_ARCHS=gfx942 answers before."""
    sys.path.insert(0, str(Path(tree) / "aiter/jit/utils"))
    stand_in = types.ModuleType("cpp_extension")
    stand_in.executable_path = lambda name: name  # type: ignore[attr-defined]
    sys.modules["cpp_extension"] = stand_in
