"""The threads that help a launching thread.

A thread that sleeps begins 40 to 100 us after it was woken, and half of that is the interpreter's
lock, which is long beside a launch of half a millisecond. So a worker runs its shares, and looks
for the next job for a while, in machine code (team_code.py); OpenMP's threads do the same, for
longer. It comes back to Python only to sleep.
"""

import contextlib
import ctypes
import functools
import os
import queue
import threading
from collections.abc import Callable
from typing import Any

from proton.runtime.cpu import guard
from proton.runtime.cpu.guard import Entry
from proton.runtime.cpu.team_code import (
    ASLEEP,
    ENDS,
    LOOKING,
    POSTED,
    SLEEPS,
    TAKEN,
    Desk,
    Job,
    on_a_line,
    team_code,
)


class TeamCall:
    """A kernel's machine code and what it is given; an extra of None is the number of the thread,
    the others are addresses."""

    def __init__(self, entry: Entry, given: list[Any], extras: list[int | None]) -> None:
        self.entry, self.given, self.extras = entry, given, extras

    def here(self, first: int, last: int) -> None:
        """Runs programs [first, last) on the calling thread."""
        entry, extras = self.entry, self.extras
        if extras:
            extras = [0 if extra is None else extra for extra in extras]
        if entry.run(entry.address, *self.given, first, last, *extras):
            self.raise_caught()

    def fill(self, job: Job) -> ctypes.Structure:
        """Writes down in a job how to run programs; what must live until it is done."""
        entry = self.entry
        block = entry.block(*self.given, *[extra for extra in self.extras if extra is not None])
        job.caller, job.block = entry.call, ctypes.addressof(block)
        job.function = entry.address
        return block

    def raise_caught(self) -> None:
        """Raises what ended the kernel on this thread."""
        try:
            guard.raise_caught()
        except BaseException as problem:
            self.say_stopped(problem)
            raise

    def say_stopped(self, problem: BaseException) -> None:
        """Has an exception name the launch that it ended."""
        guard.say_what_was_stopped(problem, self.entry.name, self.given[-3:])


class _Worker:
    """A thread that runs shares of jobs, and its desk."""

    def __init__(self, number: int) -> None:
        self.desk = on_a_line(Desk)
        self.desk.number = number
        self.address = ctypes.addressof(self.desk)
        self._wakes: queue.SimpleQueue[int] = queue.SimpleQueue()
        self._told: queue.SimpleQueue[None] = queue.SimpleQueue()
        code = team_code()
        arguments = self.desk, code.serve, code.looks, self._wakes, self._told
        self._wakes.put(_current_core())
        self._thread = threading.Thread(target=_serve, args=arguments, name="proton", daemon=True)
        self._thread.start()
        self.desk.thread = self._thread.ident or 0

    def wake(self, home: int) -> None:
        """Where it sleeps; it leaves the core `home`. One woken twice looks, and sleeps."""
        if self.desk.before == ASLEEP:
            self._wakes.put(home)
            self.desk.before = LOOKING  # it is woken once

    def has_begun(self) -> bool:
        """True if it took the last job before that was done."""
        return self.desk.before != POSTED

    def wait(self) -> None:
        """Returns when it is done, where `finish` named it. What it told after an earlier job
        nobody may have waited for, hence the look at its desk."""
        while self.desk.state >= TAKEN:
            self._told.get()


def _serve(
    desk: Desk,
    serve: Any,
    looks: int,
    wakes: "queue.SimpleQueue[int]",
    told: "queue.SimpleQueue[None]",
) -> None:
    address = ctypes.addressof(desk)
    _leave_core(wakes.get())
    while (way := serve(address, looks)) != ENDS:
        if way == SLEEPS:
            _leave_core(wakes.get())
        else:
            told.put(None)


class _Team:
    """The workers of one launching thread; they end with it."""

    def __init__(self) -> None:
        self.workers: list[_Worker] = []
        self.job = on_a_line(Job)
        self.desks: Any = None  # the workers' addresses
        self.works = False

    def grow(self, count: int) -> int:
        """How many workers there are of those asked for, started if need be; fewer where the
        system gives no more, as at the end of a process."""
        if len(self.workers) < count:
            team_code()
            with contextlib.suppress(RuntimeError):
                while len(self.workers) < count:
                    self.workers.append(_Worker(len(self.workers) + 1))
            self.desks = (ctypes.c_void_p * len(self.workers))(*[w.address for w in self.workers])
        return min(count, len(self.workers))

    def run(self, call: TeamCall, first: int, last: int, size: int, count: int) -> int:
        """Runs programs [first, last) on the calling thread and so many workers; how many threads
        had begun before it was done.

        Whatever interrupts it, it returns when all have ended what they have begun, which uses what
        the launch gave them. Python looks for signals where a function begins, behind a call, and
        where a loop goes back: between what interrupts it and `end` is none of these.
        """
        code, job, home = team_code(), self.job, _current_core()
        job.next, job.last, job.size = first, last, size
        block, address = call.fill(job), ctypes.addressof(job)
        desks, workers, end = self.desks, self.workers[:count], code.end
        arm, stop = guard.stops()
        try:
            if code.post(desks, count, address):
                for worker in workers:
                    worker.wake(home)
            if code.lead(address):
                guard.raise_caught()
            done = 0
            while (done := code.finish(desks, done, count, code.looks)) < count:
                workers[done].wait()
        except BaseException as problem:
            job.next = last  # they shall end at once
            end(desks, count, arm, stop)
            call.say_stopped(problem)
            raise
        del block
        return 1 + sum(worker.has_begun() for worker in workers)

    def __del__(self) -> None:
        if self.workers and team_code is not None:
            team_code().post(self.desks, len(self.workers), None)
            for worker in self.workers:
                worker.wake(-1)


class _Local(threading.local):
    """Launches of several threads never share a worker."""

    def __init__(self) -> None:
        self.team = _Team()


_local = _Local()


def run(call: TeamCall, first: int, last: int, size: int, threads: int) -> int:
    """Runs programs [first, last) in shares of `size` on up to so many threads, the calling one
    among them; how many took part."""
    team = _local.team
    count = 0 if team.works else team.grow(threads - 1)  # a signal's handler may launch, too
    if count == 0:
        call.here(first, last)
        return 1
    team.works = True
    try:
        return team.run(call, first, last, size, count)
    finally:
        team.works = False


def _forget_parent() -> None:
    """A forked child has none of its parent's threads: it starts its own."""
    _local.team.workers.clear()
    _local.team.works = False


os.register_at_fork(after_in_child=_forget_parent)


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
    was slower than on one.
    """
    if core >= 0 and _current_core() == core:
        others = os.sched_getaffinity(os.getpid()) - {core}
        if others:
            os.sched_setaffinity(0, others)
