# SPDX-License-Identifier: Apache-2.0
"""Tests of the suite itself: units, planted faults, messages, refusals, real processes. One file a module."""
