# SPDX-License-Identifier: Apache-2.0
"""How each compiler's own host code reaches the executor instead of the HIP runtime.

A kernel's public wrapper runs unchanged: it pads, converts, chooses a variant, compiles and launches. Only the last call, the one
into libamdhip64, ends here: the launcher hands over the code object's bytes, the packed arguments and the grid, and the executor
runs them on the tensors' own memory.

    record.py    what was launched, which memory is live, the launch itself
    triton_.py   Triton: a driver (triton.backends.driver.DriverBase) whose device is the executor
    flydsl_.py   FlyDSL: the mgpu* runtime functions that its compiled host code calls
"""
