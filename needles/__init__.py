# SPDX-License-Identifier: Apache-2.0
"""Model level of logits-parity: needle-in-a-haystack and GSM8K through a served model. Nothing is here yet; see README."""
