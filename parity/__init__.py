# SPDX-License-Identifier: Apache-2.0
"""Kernel level of logits-parity: does the FlyDSL `fp8_mqa_logits` still do what the Triton one does on gfx942?

Read in the order of one case:

    cases.py, inputs.py, fp8.py        what is asked: axes, the exact bytes
    sources.py, kernels/               which kernels: own, an aiter revision, an installed aiter
    devices.py, arm.py, worker.py      where they run: a process an arm, on a GPU or in the executor
    launchers/, gfx942/                the compilers' launches executed in software
    reference.py, budget.py            what is expected, and how far a correct kernel may be off
    compare.py, topk.py, checks.py     findings
    evidence.py, gate.py, report/      records, verdict, text
    run.py, cli.py, doctor.py          the command; plugin.py, test_*.py: pytest
"""
