"""Runs a grid of CPU programs: on the calling thread when it is little work, else on all cores.

Compiled code runs ranges of programs; ctypes releases the interpreter lock during a call, so
threads run in parallel. The grid is cut into shares that threads take in turn, so that
programs of unequal length balance.
"""

import contextlib
import ctypes
import functools
import itertools
import os
import queue
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from proton.base.errors import LaunchError
from proton.base.knobs import knobs
from proton.base.words import shown
from proton.runtime.grid import grid_sizes

# A worker runs its first share 25 to 40 us after it was handed over (docs/cpu-results.md); below
# this much work a second thread does not pay.
PARALLEL_NS = 100_000
CHUNKS_PER_THREAD = 8
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


def thread_count(programs: int) -> int:
    """Threads that run so many programs: PROTON_NUM_THREADS, else the cores this process may use;
    no more than there are programs."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1
    asked: object = knobs.num_threads  # an override may be anything
    if asked is None:
        return min(cores, programs)
    if not isinstance(asked, int) or asked < 1:
        raise LaunchError(
            f"num_threads (PROTON_NUM_THREADS) must be an integer of at least 1, got {asked!r}"
        )
    return min(asked, programs, max(MAX_THREADS, cores))


class _Worker:
    """A thread that does what it is handed, one thing after the other.

    Two C-implemented queues carry a launch to it and the outcome back, in a quarter of the time of
    an executor with its futures.
    """

    def __init__(self) -> None:
        self.tasks: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self.outcomes: queue.SimpleQueue[BaseException | None] = queue.SimpleQueue()
        threading.Thread(target=self._serve, name="proton", daemon=True).start()

    def _serve(self) -> None:
        while (task := self.tasks.get()) is not None:
            try:
                task()
                self.outcomes.put(None)
            except BaseException as problem:  # the launching thread raises it
                self.outcomes.put(problem)


class _Team:
    """The workers of one launching thread; they end with it."""

    def __init__(self) -> None:
        self.workers: list[_Worker] = []

    def first(self, count: int) -> list[_Worker]:
        """That many workers, started if need be; fewer where the system gives no more, as at the
        end of a process."""
        with contextlib.suppress(RuntimeError):
            while len(self.workers) < count:
                self.workers.append(_Worker())
        return self.workers[:count]

    def __del__(self) -> None:
        for worker in self.workers:
            worker.tasks.put(None)


class _Local(threading.local):
    """Launches of several threads never share a worker."""

    def __init__(self) -> None:
        self.team = _Team()


_local = _Local()


def _forget_parent() -> None:
    """A forked child has none of its parent's threads: it starts its own."""
    _local.team.workers.clear()


os.register_at_fork(after_in_child=_forget_parent)


def run_grid(programs: int, run: Callable[[int, int, int], None], estimate: WorkEstimate) -> None:
    """Calls run(first, last, thread number) until all programs have run."""
    first = 0
    if estimate.ns_per_program is None and programs > 1:
        start = time.perf_counter_ns()
        run(0, 1, 0)
        estimate.ns_per_program = time.perf_counter_ns() - start
        first = 1
    left = programs - first
    threads = thread_count(left) if left > 1 else 1
    if threads == 1 or left * (estimate.ns_per_program or 0.0) < PARALLEL_NS:
        start = time.perf_counter_ns()
        run(first, programs, 0)
        estimate.ns_per_program = (time.perf_counter_ns() - start) / max(1, left)
        return
    start = time.perf_counter_ns()
    threads = _run_parallel(first, programs, run, threads)
    spent = (time.perf_counter_ns() - start) * threads
    estimate.ns_per_program = spent / left


def _run_parallel(first: int, last: int, run: Callable[[int, int, int], None], threads: int) -> int:
    """Runs programs on up to so many threads; how many there were."""
    size = max(1, (last - first) // (threads * CHUNKS_PER_THREAD))
    starts = itertools.count(first, size)  # next() on a count is atomic under the lock
    home = _current_core()

    def work(thread: int) -> None:
        if thread:
            _leave_core(home)
        for start in starts:
            if start >= last:
                return
            run(start, min(start + size, last), thread)

    workers = _local.team.first(threads - 1)
    for number, worker in enumerate(workers, 1):
        worker.tasks.put(functools.partial(work, number))
    try:
        work(0)
    finally:
        problems = [worker.outcomes.get() for worker in workers]
    for problem in problems:
        if problem is not None:
            raise problem
    return len(workers) + 1


@functools.cache
def _getcpu() -> Callable[[], int] | None:
    """The C library's sched_getcpu; None where it or affinities are missing."""
    if not hasattr(os, "sched_setaffinity"):
        return None
    function: Callable[[], int] | None = getattr(ctypes.CDLL(None), "sched_getcpu", None)
    return function


def _current_core() -> int:
    """The core that the calling thread runs on; -1 where that is not known."""
    getcpu = _getcpu()
    return -1 if getcpu is None else getcpu()


def _leave_core(core: int) -> None:
    """Moves the calling worker off the launching thread's core.

    Linux wakes a worker on the core of the thread that wakes it, and may leave both there for
    the length of a launch while another core is idle: without this, layer norm on two threads
    was slower than on one (docs/cpu-results.md).
    """
    if core >= 0 and _current_core() == core:
        others = os.sched_getaffinity(os.getpid()) - {core}
        if others:
            os.sched_setaffinity(0, others)
