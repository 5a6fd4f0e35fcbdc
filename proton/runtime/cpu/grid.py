"""Runs a grid of CPU programs: on the calling thread when it is little work, else on all cores.

Compiled code runs ranges of programs. The grid is cut into shares that threads take in turn, so
that programs of unequal length balance (team.py).
"""

import os
import time
from dataclasses import dataclass

from proton.base.errors import LaunchError
from proton.base.knobs import knobs
from proton.base.words import shown
from proton.runtime.cpu import guard, team
from proton.runtime.cpu.guard import arm
from proton.runtime.cpu.team import TeamCall
from proton.runtime.launch.grid import grid_sizes

# What a thread is asked for does at least this much: where it slept, the launching one has done as
# much before it begins.
LEAST_NS = 25_000
SHARES = 8  # of a thread, where all are equally fast
MAX_PROGRAMS = 1 << 31  # program ids are i32
MAX_THREADS = 256  # or as many as there are cores: more gain nothing, and a system has so many


@dataclass
class WorkEstimate:
    """What a kernel's programs took so far: ns per program, from the launch before."""

    ns_per_program: float | None = None


def check_grid(grid: object) -> tuple[int, int, int]:
    """The sizes of a grid that the CPU runs, which numbers all programs."""
    x, y, z = grid_sizes(grid)
    if x * y * z >= MAX_PROGRAMS:
        found = " x ".join(map(shown, (x, y, z)))
        raise LaunchError(f"a grid has fewer than {MAX_PROGRAMS} programs, got {found}")
    return x, y, z


def _cores() -> int:
    """The cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1


def thread_count(programs: int) -> int:
    """Threads that run so many programs: PROTON_NUM_THREADS, else the cores this process may use;
    no more than there are programs."""
    cores = _cores()
    asked: object = knobs.num_threads  # an override may be anything
    if asked is None:
        return min(cores, programs)
    if not isinstance(asked, int) or asked < 1:
        raise LaunchError(
            f"num_threads (PROTON_NUM_THREADS) must be an integer of at least 1, got {asked!r}"
        )
    return min(asked, programs, max(MAX_THREADS, cores))


def run_grid(programs: int, call: TeamCall, estimate: WorkEstimate) -> None:
    """Runs all programs of a grid."""
    first = 0
    if estimate.ns_per_program is None and programs > 1:
        start = arm()
        call.here(0, 1)
        estimate.ns_per_program = time.perf_counter_ns() - start
        first = 1
    left = programs - first
    threads = thread_count(left) if left > 1 else 1
    threads = min(threads, int(left * (estimate.ns_per_program or 0.0) / LEAST_NS))
    start = time.perf_counter_ns()
    if start > guard.armed_until:
        start = arm()
    if threads < 2:
        call.here(first, programs)
        threads = 1
    else:
        threads = team.run(call, first, programs, max(1, left // (threads * SHARES)), threads)
    estimate.ns_per_program = (time.perf_counter_ns() - start) * threads / max(1, left)


def run_at_once(programs: int, call: TeamCall) -> None:
    """Runs all programs of a grid each on a thread of its own, as they wait for each other; where
    there are more than a system has threads, so many at once, in their order."""
    arm()
    threads = min(programs, max(MAX_THREADS, _cores()))
    team.run(call, 0, programs, 1, threads)
