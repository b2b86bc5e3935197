# SPDX-License-Identifier: Apache-2.0
"""Kernels of gfx942_state.py whose work-items have scratch memory."""

from __future__ import annotations

from dataclasses import replace

from parity.gfx942 import Kernel
from parity.gfx942.code_object import assemble
from tests.gfx942_assembly import text_of
from tests.gfx942_on_gpu import assembled
from tests.gfx942_state import source


def scratch_kernel(body: str, *, scratch: int, lds: int = 0) -> Kernel:
    """The body of `execute` in a kernel with `scratch` bytes a work-item."""
    directives = f".amdhsa_private_segment_fixed_size {scratch}\n.amdhsa_enable_private_segment 1"
    text = text_of(replace(source("body", body, lds=lds), directives=directives))
    return assembled(
        assemble(text.replace("    .private_segment_fixed_size: 0", f"    .private_segment_fixed_size: {scratch}")),
        "body",
        instructions=body,
    )
