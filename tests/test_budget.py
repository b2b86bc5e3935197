# SPDX-License-Identifier: Apache-2.0
"""The budget against simulated kernels: correct ones stay under it in any order, wrong ones do not, and it is not
so wide that it says nothing."""

from __future__ import annotations

import dataclasses
import functools

import pytest
import torch

from parity.budget import budget_floor, budget_of_rows, error_budget
from parity.cases import DISTRIBUTIONS, Case
from parity.fp8 import Encoding, decode, encode
from parity.inputs import Inputs, build_inputs
from parity.reference import dequantise, head_sums, reference_logits
from tests.simulated_kernels import (
    Dot,
    Head,
    bf16,
    bf16_chain,
    by_size,
    chain,
    fused_scale_last,
    head_chain,
    head_tree,
    heads_by_size,
    mfma_dot,
    mfma_step,
    pairwise_dot,
    reversed_chain,
    reversed_heads,
)

DRAWN = [name for name in DISTRIBUTIONS if name != "captured"]
ROUNDED = [name for name in DRAWN if name != "position"]  # where two heads count and no arithmetic is rounded
LEAST = {"bytes": 0.02, "near-ties": 0.05, "position": -1.0}
PAIRS = [(q, kv) for q in Encoding for kv in Encoding]


def case(distribution: str, heads: int, seed: int, *, m: int = 4, n: int = 96) -> Case:
    q_encoding, kv_encoding = PAIRS[seed % 4]
    return Case("full", m, n, heads, 128, q_encoding, kv_encoding, distribution, seed, 2048, "simulated kernels")


def ratio(inputs: Inputs, dot: Dot, head: Head) -> float:
    """Largest error over budget inside the window."""
    q, kv = decode(inputs.q, inputs.q_encoding), decode(inputs.kv, inputs.kv_encoding)
    expected = reference_logits(inputs)
    inside = torch.isfinite(expected)
    error = (head(dot(q, kv), inputs.kv_scales, inputs.weights).double() - expected)[inside].abs()
    return float(torch.where(error == 0, 0.0, error / error_budget(inputs)[inside]).max())


def mfma(inputs: Inputs) -> Dot:
    return mfma_dot((inputs.q_encoding.smallest_exponent, inputs.kv_encoding.smallest_exponent))


def correct_kernels(inputs: Inputs) -> dict[str, float]:
    """Ratios of every simulated correct kernel."""
    kernels: dict[str, tuple[Dot, Head]] = {
        "chain": (chain, head_chain),
        "reversed": (reversed_chain, reversed_heads),
        "pairwise": (pairwise_dot, head_tree),
        "mfma": (mfma(inputs), head_chain),
        "mfma, fused, scale last": (mfma(inputs), fused_scale_last),
    }
    return {name: ratio(inputs, dot, head) for name, (dot, head) in kernels.items()}


@pytest.mark.parametrize("heads", [32, 64])
@pytest.mark.parametrize("distribution", DRAWN)
def test_correct_kernels_stay_within_and_near_the_budget(distribution: str, heads: int) -> None:
    largest: dict[str, float] = {}
    for seed in range(20):
        for name, value in correct_kernels(build_inputs(case(distribution, heads, seed))).items():
            largest[name] = max(largest.get(name, 0.0), value)
    assert max(largest.values()) < 1.0, largest
    # The width: on bytes of all magnitudes the order of 128 lossy additions is worth a factor of ten.
    # The exact distributions show that nothing is lost, and no width.
    assert min(largest.values()) > LEAST.get(distribution, 0.1), largest


@pytest.mark.parametrize(
    ("products", "start", "bits"),
    [
        ({0: 2.0**14, 2: -(2.0**14), 4: 2.0**-11}, 0.0, 0x00000000),
        ({0: 2.0**14, 2: -(2.0**14), 1: -(2.0**-11)}, 0.0, 0xBA800000),
        ({0: 2.0**14, 2: -(2.0**14)}, -(2.0**-11), 0xBA800000),
        ({0: 2.0**14, 2: -(2.0**14)}, -(2.0**-12), 0x00000000),
        ({0: 1.0, 15: 1.0}, 2.0**24, 0x4B800001),
        ({0: -1.0, 2: 2.0**-8}, 2.0**24 + 2, 0x4B800000),
    ],
)
def test_mfma_model_on_published_vectors(products: dict[int, float], start: float, bits: int) -> None:
    q, kv = torch.zeros(1, 1, 16, dtype=torch.float64), torch.ones(1, 16, dtype=torch.float64)
    for k, product in products.items():
        q[0, 0, k] = product  # times one: only the sum of the exponents matters
    acc = torch.full((1, 1, 1), start, dtype=torch.float64)
    result = mfma_step(acc, q, kv, (-126, -126)).float()
    assert int(result.view(torch.int32)) & 0xFFFFFFFF == bits


@pytest.mark.parametrize("heads", [1, 16, 64])
@pytest.mark.parametrize("distribution", ROUNDED)
def test_orders_chosen_against_the_data(distribution: str, heads: int) -> None:
    for seed in range(8):
        inputs = build_inputs(case(distribution, heads, seed, n=48))
        for descending in (False, True):
            assert ratio(inputs, functools.partial(by_size, descending=descending), heads_by_size) < 1.0


@pytest.mark.parametrize("distribution", ["outlier", "bytes"])
def test_one_head_on_the_mfma(distribution: str) -> None:
    """With one head nothing but the dot product's own bound is left, truncations included."""
    for seed in range(20):
        inputs = build_inputs(case(distribution, 1, seed, n=200))
        assert ratio(inputs, mfma(inputs), head_chain) < 1.0


def planned(q: torch.Tensor, kv: torch.Tensor, *, seed: int = 0) -> Inputs:
    """FNUZ inputs from chosen values, with random weights and scales; every row sees every key."""
    generator = torch.Generator().manual_seed(seed)
    (m, heads, _), n = q.shape, len(kv)
    weights = torch.randn(m, heads, generator=generator)
    scales = torch.rand(n, generator=generator) + 0.01
    starts, ends = torch.zeros(m, dtype=torch.int32), torch.full((m,), n, dtype=torch.int32)
    fnuz = Encoding.FNUZ
    return Inputs(encode(q, fnuz), encode(kv, fnuz), scales, weights, starts, ends, fnuz, fnuz)


def hard(kind: str) -> Inputs:
    generator = torch.Generator().manual_seed(11)
    q, kv = (torch.randn(*shape, generator=generator) * 60 for shape in ((3, 32, 128), (64, 128)))
    alternating = torch.tensor([240.0, 2.0**-10]).repeat(64)
    half = torch.cat([torch.ones(64), -torch.ones(64)])
    return {
        "same sign": lambda: planned(q.abs(), kv.abs()),
        "cancelling": lambda: planned(q.abs() + 1, (kv.abs() + 1) * half),
        "mirrored": lambda: planned(torch.cat([q[..., :64]] * 2, dim=-1), torch.cat([kv[:, :64], -kv[:, :64]], dim=-1)),
        "alternating": lambda: planned(q.sign() * alternating, kv.sign() * alternating),
        "crossed": lambda: planned(q.sign() * alternating, kv.sign() * alternating.flip(0)),
    }[kind]()


@pytest.mark.parametrize("kind", ["same sign", "cancelling", "mirrored", "alternating", "crossed"])
def test_hard_data(kind: str) -> None:
    largest = correct_kernels(hard(kind))
    assert max(largest.values()) < 1.0, largest
    if kind not in ("mirrored", "cancelling"):  # where dot products vanish, so do the errors of some orders
        assert min(largest.values()) > 0.01, largest


def without_head_5(dots: torch.Tensor, scales: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
    return head_chain(dots, scales, weights * (torch.arange(weights.shape[1]) != 5))


FAULTS: dict[str, tuple[Dot, Head]] = {
    "bf16 logits": (chain, lambda dots, scales, weights: bf16(head_chain(dots, scales, weights))),
    "bf16 accumulation": (bf16_chain, head_chain),
    "bf16 scores": (chain, lambda dots, scales, weights: head_chain(bf16(dots), scales, weights)),
    "bf16 weights": (chain, lambda dots, scales, weights: head_chain(dots, scales, bf16(weights))),
    "a scale off by 1e-5": (chain, lambda dots, scales, weights: head_chain(dots, scales * (1 + 1e-5), weights)),
    "no relu": (chain, lambda dots, scales, weights: ((dots * scales) * weights[:, :, None]).sum(dim=1)),
    "one head lost": (chain, without_head_5),
    "one channel lost": (lambda q, kv: chain(q[..., 1:], kv[:, 1:]), head_chain),
}


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("distribution", ROUNDED)
def test_wrong_kernels_exceed_the_budget(distribution: str, fault: str) -> None:
    for seed in range(4):
        assert ratio(build_inputs(case(distribution, 64, seed, m=2, n=48)), *FAULTS[fault]) > 1.0


def one_product(value: float, weight: float, scale: float) -> Inputs:
    inputs = planned(torch.full((1, 1, 1), value), torch.ones(1, 1))
    return dataclasses.replace(inputs, weights=torch.tensor([[weight]]), kv_scales=torch.tensor([scale]))


def test_budget_by_hand() -> None:
    # One exact product, one live head: two multiplications of u = 2^-24 relative, and nothing else.
    assert float(error_budget(one_product(1.0, 3.0, 5.0))) == pytest.approx(15 * 2 * 2.0**-24, rel=1e-4)
    # A negative score is an exact zero: only the underflow term stays.
    assert float(error_budget(one_product(-1.0, 3.0, 5.0))) == 2.0**-149
    # Two equal heads add one rounding: 2u * 2 * 15, and half an ulp of 30 (16u), or of 6 (4u) times the scale 5.
    two = dataclasses.replace(
        planned(torch.ones(1, 2, 1), torch.ones(1, 1)), weights=torch.full((1, 2), 3.0), kv_scales=torch.tensor([5.0])
    )
    assert float(error_budget(two)) == pytest.approx((60 + 20) * 2.0**-24, rel=1e-4)
    # Products 128 * 128 and 2^-10 * 1: reach 2^14 + 2^-10, quantum 2^-9, one fine product, none below the cut 2^-10.
    fine = planned(torch.tensor([[[128.0, 2.0**-10]]]), torch.tensor([[128.0, 1.0]]))
    fine = dataclasses.replace(fine, weights=torch.ones(1, 1), kv_scales=torch.ones(1))
    by_hand = 2.0**-9 * (1 + 2.0**-7) + 2 * 2.0**-24 * 2.0**14
    assert float(error_budget(fine)) == pytest.approx(by_hand, rel=1e-3)


def test_zero_outside_the_window_and_same_for_any_block() -> None:
    inputs = build_inputs(dataclasses.replace(case("gaussian", 16, 0, m=9, n=150), window="empty"))
    budget = error_budget(inputs)
    inside = torch.isfinite(reference_logits(inputs))
    assert (budget[inside] > 0).all() and (budget[~inside] == 0).all()
    exact = dequantise(inputs)
    parts = [budget_of_rows(exact, inputs, slice(*ends), block=37) for ends in ((0, 4), (4, 9))]
    assert torch.allclose(torch.cat(parts), budget, rtol=1e-12, atol=0)  # torch sums in another order
    chosen = torch.rand(budget.shape, generator=torch.Generator().manual_seed(0)) < 0.1
    some = budget_of_rows(exact, inputs, slice(0, 9), only=chosen)
    assert torch.allclose(some[chosen & inside], budget[chosen & inside], rtol=1e-12, atol=0)
    assert not some[~chosen].any()


@pytest.mark.parametrize("distribution", DRAWN)
@pytest.mark.parametrize("heads", [16, 64])
def test_the_floor_is_no_more_than_the_budget_and_not_much_less(distribution: str, heads: int) -> None:
    inputs = build_inputs(case(distribution, heads, 1, m=6))
    floor = budget_floor(head_sums(dequantise(inputs), slice(0, 6)))
    budget = error_budget(inputs)
    assert (floor <= budget).all() and (floor > 0).all()
    if distribution in ("gaussian", "scales", "outlier", "position"):
        assert float((floor / budget).median()) > 0.2  # else it would decide nothing


def test_the_floor_by_hand_and_outside_the_window() -> None:
    """Two heads with terms 3 and 4: 2 u * 7 and one addition of half an ulp of 7, u * 4, by Cauchy 49/25 - 1 of one."""
    two = planned(torch.tensor([[[1.0], [1.0]]]), torch.tensor([[1.0]]))
    two = dataclasses.replace(two, weights=torch.tensor([[3.0, 4.0]]), kv_scales=torch.ones(1))
    sums = head_sums(dequantise(two), slice(0, 1))
    assert (float(sums.positive), float(sums.negative), float(sums.squares)) == (7.0, 0.0, 25.0)
    assert float(budget_floor(sums)) == pytest.approx((14 + (49 / 25 - 1) * 4) * 2.0**-24, rel=1e-6)
    outside = dataclasses.replace(two, ends=torch.zeros(1, dtype=torch.int32))
    assert float(budget_floor(head_sums(dequantise(outside), slice(0, 1)))) == 0


def test_refuses_nan_bytes() -> None:
    inputs = one_product(1.0, 1.0, 1.0)
    inputs.q[0, 0, 0] = 0x80
    with pytest.raises(ValueError, match="NaN bytes"):
        error_budget(inputs)
