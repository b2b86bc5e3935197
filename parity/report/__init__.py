# SPDX-License-Identifier: Apache-2.0
"""How evidence and verdicts are shown. terminal.py: plain text for a gate's output."""
