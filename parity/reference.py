# SPDX-License-Identifier: Apache-2.0
"""The expected logits, in float64, from the dequantised bytes. Shares no code with any kernel."""

from __future__ import annotations

import torch

from parity.fp8 import decode
from parity.inputs import Inputs, require_finite


def reference_logits(inputs: Inputs, *, block: int = 4096) -> torch.Tensor:
    """float64 [M,N]: sum over h of relu(<q[m,h,:], kv[n,:]> * kv_scales[n]) * weights[m,h] for n in
    [max(starts[m], 0), min(ends[m], N)), and -inf elsewhere.

    `block` columns are computed at a time, so scratch memory is heads x block float64 whatever N is. The dot products
    are exact: fp8 products are multiples of 2^-20 and their sum stays far below 2^33. What remains is a relative
    2^-53 an operation, of which the budget keeps count. Raises ValueError for inputs that are not finite.
    """
    require_finite(inputs)
    q = decode(inputs.q, inputs.q_encoding)  # [M,H,D]
    kv = decode(inputs.kv, inputs.kv_encoding)  # [N,D]
    scales, weights = inputs.kv_scales.double(), inputs.weights.double()  # [N], [M,H]
    (rows, _, _), columns = q.shape, kv.shape[0]
    logits = torch.full((rows, columns), -torch.inf, dtype=torch.float64, device=q.device)
    for row, (start, end) in enumerate(zip(inputs.starts.tolist(), inputs.ends.tolist(), strict=True)):
        first, stop = max(start, 0), min(end, columns)
        for begin in range(first, stop, block):
            keys = slice(begin, min(begin + block, stop))
            products = q[row] @ kv[keys].T  # [H,B]
            # The scale comes before the ReLU, as the operation is written. With positive scales, the only ones a
            # quantiser makes, the order is immaterial; a negative one would turn the surviving half around.
            scores = torch.relu(products * scales[keys])
            logits[row, keys] = weights[row] @ scores
    return logits
