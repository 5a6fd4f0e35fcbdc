"""Registers that a thread has no room for, and keeps in local memory.

The estimate is that of each spilled register stored and read once in each iteration (once in a
program without loops), as its code does (tests/compile/test_spills.py). A warp's access of 128
bytes takes some cycles of the SM: of what reaches its first-level cache a part goes on to the
second one, and instructions wait for each other.
"""

from __future__ import annotations

import numpy as np

from proton.base.words import counted
from proton.trace.records import NONE
from proton.viewer.explain.finding import Finding, Said
from proton.viewer.explain.rule import Rule
from proton.viewer.explain.subject import KernelView, Subject

ACCESSES = 2  # of a spilled register: stored, and read
# What two products by TMA gained without spills, by their accesses: 2.7 and 3.3, where a thread
# holds 624 and 512 bytes (gpu_findings.py, H200, 2f945ef7). Other kernels were not tried.
CYCLES = 3
MOST = 0.9  # of a kernel's time that is said to be theirs


def find(subject: Subject) -> Said:
    """Kernels that spill without instrumentation."""
    for kernel in subject.kernels:
        spilled = kernel.number("spills")
        if not spilled:
            continue
        registers = kernel.number("registers")
        ns, rounds = _cost(kernel, spilled)
        part = min(ns / max(kernel.unit_ns(), 1.0), MOST) if kernel.rows.size else 0.0
        has = f" of a limit of {registers}" if registers else ""
        yield Finding(
            rule=RULE.name,
            kernel=kernel.label,
            sentence=f"{counted(spilled, 'register')}{has} a thread spill to local memory, stored "
            f"and read again in each of {rounds:.0f} iterations of a program",
            gain_ns=kernel.time_ns * part,
            advice="more num_warps (a thread then holds less), smaller blocks, or a larger maxnreg",
            record="" if kernel.rows.size else "a scope in the loop, for the number of iterations",
            visits=int(kernel.programs.row.size),
            numbers={"spills": spilled, "registers": registers or 0, "iterations": rounds,
                     "estimate_percent": 100 * part},
            slices=kernel.open_launch(kernel.typical_launch),
        )  # fmt: skip


def _cost(kernel: KernelView, spilled: int) -> tuple[float, float]:
    """What spills take of the time of all units, and how many iterations a program has."""
    records = kernel.records
    some = kernel.rows[records.iteration[kernel.rows] != NONE]
    rounds = 1.0
    if some.size:
        units = np.unique(records.track[some]).size
        rounds = kernel.iterations(some, kernel.subject.weight[some]) / units
    warps = kernel.kernel.units * kernel.kernel.unit_warps
    cycles = CYCLES * ACCESSES * spilled * warps * kernel.resident * rounds
    return cycles * kernel.cycle_ns * kernel.tracks.size, rounds


RULE = Rule(name="spills", about="registers that spill to local memory", find=find)
