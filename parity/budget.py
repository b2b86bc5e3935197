# SPDX-License-Identifier: Apache-2.0
"""The error that a correct kernel may make at each logit, derived from the bytes it is given.

The budget of an element is the smaller of two bounds. Both hold for every order of fp32 accumulation, also one
chosen against the data, with or without fused multiply-add, and for gfx942's MFMA as MMA-Sim describes it (arXiv
2511.10909; not confirmed on hardware). The CERTAIN bound assumes nothing else. The STATISTICAL bound assumes that
the residuals which round-to-nearest discards are independent and uniform (the model of Higham and Mary, SIAM J. Sci.
Comput. 41, 2019, with the residual's distribution in place of its range alone); then it fails with a probability
below 1e-12 an element, the one number here that is chosen. The certain bound is usually the smaller one up to some
twenty non-zero terms a logit, the statistical one above. u = 2^-24 throughout.

1. The dot product of one head
   An fp8 product has at most 8 significant bits, so fp32 holds it exactly. Every partial sum, in any order, is the
   sum of a subset of the products, so no partial sum exceeds the larger of the positive and the negative products'
   sums, reach := (sum |q||k| + |dot|) / 2, and none is rounded to a grid coarser than quantum := ulp(reach). Call a
   product fine if its lowest set bit is below the quantum. With no fine product the dot product is exact.
   Otherwise take any summation tree. A node that loses something by rounding to grid g has an operand that is no
   multiple of g, which (if a node) has such an operand too, and so on down to a fine product: charge it with the
   loss. The rounded value is a multiple of g, so a later loss charged to the same product is on a grid of 2g or more.
   Certain: a product is charged g/2 at most on each of the grids quantum, quantum/2, ...: quantum in all.
   Statistical: the residual is uniform on a dyadic lattice with ties to either side, a sum of independent signs; its
   variance is g^2/8 for the coarsest lattice (one bit) and tends to g^2/12. So quantum^2/6 a fine product.
   The MFMA also cuts, always the same way: products, half sums and accumulator at 2^-24 of the largest product
   exponent, each by less than one such unit =: cut, and the joined sum at 2^-31 of the accumulator's exponent, at
   most quantum / 2^8. A cut too leaves a multiple of its unit, so the charging applies: at most 2 * cut for a product
   whose lowest set bit is below `cut`, and quantum / 2^7 for a fine one. These biases are certain in both bounds.
   Exponents are the format's (subnormals have its smallest); reading FN bytes as FNUZ shifts all by powers of two.
2. The term of one head, relu(dot) * scale * weight
   ReLU is 1-Lipschitz, so the loss of the dot product passes on times |scale * weight|. Two multiplications, in any
   association, add u each, relative. A head whose dot product is negative by more than its loss contributes an exact
   zero, and adding zero never rounds: only live heads count. The factors of 2 for FN bytes are exact.
3. The sum over heads
   live - 1 additions round, each by half an ulp of its result, which by the argument of 1 does not exceed the larger
   of the positive and the negative terms' sums =: span. A kernel may apply the scale after the sum; then the results
   are span / scale at most, the losses times scale, and the last multiplication replaces one in every term.
4. Underflow: a multiplication whose result is subnormal loses up to 2^-150, times the factor still to come.
Statistically a relative rounding has variance u^2/3 and one of half an ulp (half_ulp)^2/3: terms have full
significands. A sum of such residuals exceeds t standard deviations with probability 2 exp(-t^2/2) at most.

Second-order effects (rounded values that are larger than exact ones, the reference's own 2^-53) are covered by
factors of 1 + 2^-22 times a count of operations, four times what they can amount to.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch

from parity.fp8 import Encoding
from parity.fused import fused
from parity.inputs import Inputs
from parity.reference import Dequantised, HeadSums, dequantise

_U = 2.0**-24  # half an ulp of 1 in fp32
_TINY = 2.0**-149  # fp32's smallest subnormal
_FAILURE = 1e-12  # accepted probability of a false alarm at one element, under the statistical model
_DEVIATIONS = math.sqrt(2 * math.log(2 / _FAILURE))  # 7.53
_NEVER_FINE = 50  # lowest bit of a zero: above any quantum, and two of them still fit int8


@dataclass(frozen=True)
class _DotLoss:
    """What a dot product may lose, float64 [H,B], in its own units."""

    rounded: torch.Tensor  # by rounding to nearest, at most
    variance: torch.Tensor  # of the same, under the statistical model
    cut: torch.Tensor  # by the MFMA's truncations, at most


def error_budget(inputs: Inputs) -> torch.Tensor:
    """float64 [M,N], in units of the logits: bound on |kernel - reference| inside the window, 0 outside.

    The derivation is the module's docstring. Raises ValueError for inputs that are not finite.
    """
    return budget_of_rows(dequantise(inputs), inputs, slice(0, inputs.q.shape[0]))


def budget_of_rows(
    exact: Dequantised, inputs: Inputs, rows: slice, *, only: torch.Tensor | None = None, block: int = 4096
) -> torch.Tensor:
    """The budget of `rows` (a slice with both ends), float64 [R,N]; of `exact`, which `inputs` dequantise to, on its device.

    only: bool [R,N], the elements that are wanted; the others are 0. Costs four matrix products and up to 2*M*H*N*D byte
    comparisons; scratch is a few times heads x block x head_dim bytes.
    """
    budget = torch.zeros(rows.stop - rows.start, exact.kv.shape[0], dtype=torch.float64, device=exact.q.device)
    windows = zip(exact.starts[rows].tolist(), exact.ends[rows].tolist(), strict=True)
    wanted = None if only is None else only.any(dim=1).tolist()
    for local, (start, end) in enumerate(windows):
        if wanted is not None and not wanted[local]:
            continue
        row = rows.start + local
        columns = torch.arange(start, max(start, end), device=budget.device)
        if only is not None:
            columns = columns[only[local, start : max(start, end)]]
        q = exact.q[row]
        q_bits, q_top = _lowest_bit(q), _top(q, inputs.q_encoding)  # [H,D], [H]
        for keys in columns.split(block):
            kv = exact.kv[keys]
            dot = q @ kv.T  # [H,B], exact
            reach = (q.abs() @ kv.abs().T + dot.abs()) / 2
            cut = q_top[:, None] * _top(kv, inputs.kv_encoding) * _U
            loss = _dot_loss(reach, cut, q_bits, _lowest_bit(kv))
            budget[local, keys] = _logit_error(dot, loss, exact.scales[keys], exact.weights[row][:, None])
    return budget


def budget_floor(sums: HeadSums) -> torch.Tensor:
    """float64 [R,N]: no more than the budget anywhere, and cheap. An error within it needs no budget to be judged by.

    What dot products lose is left out, and for the number of live heads stands the least that can give these sums: by the
    inequality of Cauchy and Schwarz (sum t)^2 <= count * (sum t^2).
    """
    return fused(_floor, sums.positive.device.type)(sums.positive, sums.negative, sums.squares, sums.inside)


def _floor(positive: torch.Tensor, negative: torch.Tensor, squares: torch.Tensor, inside: torch.Tensor) -> torch.Tensor:
    total = positive + negative
    live = torch.where(squares > 0, total.square() / squares, 0.0)
    additions = (live - 1).clamp(min=0)
    half_ulp = _U * _power_of_two_below(torch.maximum(positive, negative))
    certain = 2 * _U * total + additions * half_ulp
    spread = (2 * _U**2 * squares + additions * half_ulp.square()) / 3
    # Rounding of these few float64 operations must not lift it above the budget.
    floor = (torch.minimum(certain, _DEVIATIONS * spread.sqrt()) + _TINY) * (1 - 2.0**-40)
    return torch.where(inside, floor, 0.0)


def _dot_loss(reach: torch.Tensor, cut: torch.Tensor, q_bits: torch.Tensor, kv_bits: torch.Tensor) -> _DotLoss:
    """Section 1: reach, cut float64 [H,B]; q_bits int8 [H,D]; kv_bits int8 [B,D]."""
    # Computed partial sums exceed exact ones by what was lost: at most 1.5 quanta of 2^-23 of the reach a product.
    reach = reach * (1 + q_bits.shape[1] * 2.0**-22)
    quantum = 2 * _U * _power_of_two_below(reach)
    fine, cuttable = (_products_below(grid, q_bits, kv_bits) for grid in (quantum, cut))
    return _DotLoss(
        rounded=quantum * fine,
        variance=quantum**2 / 6 * fine,
        cut=2 * cut * cuttable + quantum * 2.0**-7 * fine,
    )


def _products_below(grid: torch.Tensor, q_bits: torch.Tensor, kv_bits: torch.Tensor) -> torch.Tensor:
    """float64 [H,B]: how many products of each dot product have a bit below `grid` [H,B], powers of two or 0."""
    # A product below the grid adds 2 or more to grid * sum(1 / lowest bit): one matrix product spares most counts.
    inverse = torch.exp2(-q_bits.double()) @ torch.exp2(-kv_bits.double()).T
    head, key = (grid * inverse >= 1).nonzero(as_tuple=True)
    count = torch.zeros_like(grid)
    lowest = q_bits[head] + kv_bits[key]  # int8 [*,D]: exponent of a product's lowest set bit
    count[head, key] = (lowest < _exponent(grid[head, key])[:, None]).sum(dim=-1).double()
    return count


def _logit_error(dot: torch.Tensor, loss: _DotLoss, scale: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    """Sections 2 to 4: dot float64 [H,B]; scale [B]; weight [H,1]. Returns [B]."""
    score = dot * scale
    live = score > -(loss.rounded + loss.cut) * scale.abs()
    gain = scale.abs() * weight.abs() * live
    rounded, cut, variance = gain * loss.rounded, gain * loss.cut, gain**2 * loss.variance
    terms = torch.relu(score) * weight.abs() + rounded + cut  # no computed term is larger, to first order
    positive, negative = ((terms * side).sum(dim=0) for side in (weight > 0, weight < 0))
    # Each rounding may enlarge what passes through it by 1 + u; at most H + 2 are on the way of any value.
    growth = 1 + (terms.shape[0] + 8) * 2.0**-22
    span = torch.maximum(positive, negative) * growth
    magnitude = scale.abs().clamp(min=_TINY)
    half_ulp = _U * torch.maximum(_power_of_two_below(span), magnitude * _power_of_two_below(span / magnitude))
    additions = (live.sum(dim=0) - 1).clamp(min=0)
    certain = rounded.sum(dim=0) + 2 * _U * terms.sum(dim=0) + additions * half_ulp
    spread = variance.sum(dim=0) + (2 * _U**2 * terms.square().sum(dim=0) + additions * half_ulp**2) / 3
    nearest = torch.minimum(certain, _DEVIATIONS * spread.sqrt())
    underflow = _TINY * (1 + ((1 + weight.abs() + scale.abs() + dot.abs()) * live).sum(dim=0))
    return (nearest + cut.sum(dim=0)) * growth + underflow


def _lowest_bit(values: torch.Tensor) -> torch.Tensor:
    """int8 exponent of the lowest set bit of fp8 values, all of which are multiples of 2^-10."""
    steps = (values.abs() * 2.0**10).long()
    return torch.where(steps == 0, _NEVER_FINE, _exponent((steps & -steps).double()) - 10).to(torch.int8)


def _top(vectors: torch.Tensor, encoding: Encoding) -> torch.Tensor:
    """2 to the largest exponent, as the format stores it, in each vector along the last axis."""
    return _power_of_two_below(vectors.abs().amax(dim=-1).clamp(min=2.0**encoding.smallest_exponent))


def _power_of_two_below(values: torch.Tensor) -> torch.Tensor:
    """Largest power of two not above each non-negative value; 0 for 0."""
    mantissa = torch.frexp(values).mantissa  # in [1/2, 1), so the quotient is exact
    return torch.where(values == 0, 0.0, values / (2 * mantissa))


def _exponent(powers: torch.Tensor) -> torch.Tensor:
    """int8 floor(log2) of positive values within 2^-100..2^100; a meaningless small number for 0."""
    return (torch.frexp(powers).exponent - 1).to(torch.int8)
