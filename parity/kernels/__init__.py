# SPDX-License-Identifier: Apache-2.0
"""One module per implementation of `fp8_mqa_logits`: this repository's own kernels, one in Triton and one in FlyDSL."""
