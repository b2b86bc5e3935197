# SPDX-License-Identifier: Apache-2.0
"""A kernel whose result depends on the order of workgroups or waves is found, with the element; others pass every order."""

from __future__ import annotations

import numpy as np
import pytest

from parity.gfx942 import ExecutionFault, Kernel, check_schedules
from tests.gfx942_assembly import allocations, pointer
from tests.seeded_assembly import Built, build
from tests.seeded_schedules import CLEAN, GRID, HEAD, ORDERS, Order


@pytest.fixture(scope="module")
def built() -> Built:
    bodies = {order.name: order.kernel(order.faulty) for order in ORDERS} | {
        f"{order.name}_clean": order.kernel(order.clean) for order in ORDERS
    }
    return build(clean=bodies | {name: HEAD + body + "}" for name, body in CLEAN.items()})


def run(kernel: Kernel) -> tuple[np.ndarray, np.ndarray]:
    given, out = np.arange(3, 4099, dtype=np.int32), np.zeros(4096, np.int32)
    arguments = [pointer(given), pointer(out), (4).to_bytes(4, "little")]
    check_schedules(kernel, arguments, (GRID, 1, 1), (256, 1, 1), allocations(given=given, out=out))
    return given, out


@pytest.mark.parametrize("order", ORDERS, ids=lambda order: order.name)
def test_seen(order: Order, built: Built) -> None:
    with pytest.raises(ExecutionFault) as caught:
        run(built.kernels[order.name])
    fault = caught.value
    assert (fault.kind, fault.kernel) == ("schedule-dependent", order.name)
    if fault.allocation == "given":  # the kernel writes both, and the one at the lower address is named
        assert "in[" in order.body
        return
    assert fault.allocation == "out"
    offset = int(fault.detail.split()[1])
    assert f"byte {offset} of out" in fault.detail
    assert offset // 4 in order.where, str(fault)


@pytest.mark.parametrize("name", [*(f"{order.name}_clean" for order in ORDERS), *CLEAN])
def test_clean(name: str, built: Built) -> None:
    run(built.kernels[name])


def test_memory_ends_as_the_run_in_order_leaves_it(built: Built) -> None:
    _, out = run(built.kernels["own_element_often"])
    assert out[:2048].tolist() == [18] * 2048 and not out[2048:].any()  # ((0 * 3 + 1) * 3 + 2) * 3 + 3
    given, _ = run(built.kernels["shifted_in_place_clean"])
    assert given[0] == 67 and given[192] == 3


def test_twenty_of_them() -> None:
    assert len({order.name for order in ORDERS}) >= 20
