# SPDX-License-Identifier: Apache-2.0
"""What a checkout needs and an installed wheel has by its entry point: the plugin."""

pytest_plugins = ["parity.plugin"]
