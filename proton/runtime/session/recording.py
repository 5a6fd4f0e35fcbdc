"""What records the launches of a session: a `Recorder` for each back end, and what they share.

A back end that records gives a session its recorder (`Backend.recorder`), and its launcher finds
that there. The session knows nothing of what recorders keep until it ends and asks each of them.
"""

import mmap
import os
import sys
import threading
import time
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from proton.backends.compiler import CompiledKernel
from proton.base.knobs import knobs
from proton.base.words import counted
from proton.runtime.session.described import kernel_model
from proton.runtime.session.host_scopes import HostRecorder
from proton.runtime.session.launch_budget import KernelGate, LaunchBudget, TimedLaunches
from proton.trace.instrumentation import Instrumentation, SessionOptions
from proton.trace.model import (
    Clock,
    CounterSamples,
    GPUClock,
    HostSlice,
    Kernel,
    Launch,
    PCSamples,
)
from proton.trace.monitor_options import MonitorOptions

PATIENCE_S = 10.0  # after which a wait says what it waits for
POLL_S = 0.2  # seconds between looks
_PROCESSES = 1 << 16  # places for counts: a process has that of its id, modulo this
RECORDED = TimedLaunches(True)  # where nobody asks how long launches took


class Launching(Protocol):
    """A launch that has begun."""

    thread: int  # which made it


class Running:
    """The launches that have begun and not ended. All is called under `lock`."""

    def __init__(self, lock: threading.Lock) -> None:
        self.ended = threading.Condition(lock)
        self.is_awaited = False  # telling nobody takes time, too
        self.launches: set[Launching] = set()

    def begin(self, launch: Launching) -> None:
        self.launches.add(launch)

    def end(self, launch: Launching) -> None:
        self.launches.discard(launch)  # a fork may have come between
        if self.is_awaited:
            self.ended.notify_all()

    def wait(self) -> int:
        """Waits for those of other threads; the number that runs on. That of the calling thread
        does (this is a signal's handler then), and an interrupt ends the wait."""
        me = threading.get_ident()
        self.is_awaited = True
        try:
            begin, said = time.monotonic(), False
            while others := sum(launch.thread != me for launch in self.launches):
                # A signal that another thread got is seen when this one wakes.
                self.ended.wait(min(POLL_S, PATIENCE_S))
                if not said and time.monotonic() - begin >= PATIENCE_S:
                    said = True
                    print(
                        f"proton: the session waits for {counted(others, 'launch', 'launches')} "
                        "in other threads; interrupt (Ctrl-C) to leave out what has not ended",
                        file=sys.stderr,
                    )
        except KeyboardInterrupt:
            pass
        return len(self.launches)


class ForkedCounts:
    """How many launches forked processes made: memory that a process shares with all that fork from
    it. A place has one writer, so there is no lock that a killed process could keep."""

    def __init__(self) -> None:
        memory = mmap.mmap(-1, (1 + _PROCESSES) * 4)
        words = np.frombuffer(memory, np.uint32)
        self._over, self._counts = words[:1], words[1:]

    def add(self) -> None:
        """Counts a launch of this process."""
        self._counts[os.getpid() % _PROCESSES] += 1

    @property
    def is_over(self) -> bool:
        """True if the session has ended in the process that began it."""
        return bool(self._over[0])

    def close(self) -> int:
        """The number of launches; those that follow are not counted."""
        self._over[0] = 1
        return int(self._counts.sum())


class SessionState(ABC):
    """The state that recorders of a session share: its options, what is left of its memory, its
    kernels, and which launches run. All but the options changes under `lock`."""

    def __init__(self, options: SessionOptions, host: HostRecorder) -> None:
        self.options, self.host = options, host
        self.instrumentation = options.instrumentation  # what instrumented code depends on
        self.memory_left: int = knobs.profile_memory
        self.kernels: list[Kernel] = []
        self.kernel_numbers: dict[str, int] = {}
        self.dropped = 0  # launches that ran without records
        self.met: dict[str, int] = {}  # launches of each kernel, where not all are recorded
        self.budget: LaunchBudget | None = None  # where it says which are
        if isinstance(options, MonitorOptions):
            self.budget = LaunchBudget(float(options.budget))
        # Where launches that nobody asks about are counted; by kernel.
        self.gates: dict[str, KernelGate] = {} if self.budget is None else self.budget.gates
        self.lock = threading.Lock()
        self.running = Running(self.lock)
        self.forked_counts = ForkedCounts()
        self.is_forked = False  # this is a copy of the session, in a process that was forked
        self.is_finished = False
        self.begun = 0

    @abstractmethod
    def leave(self) -> None:
        """Has launches ask for this session no more."""

    @property
    def takes_all(self) -> bool:
        """True if every launch is recorded."""
        return self.budget is None and self.options.every_launch == 1

    def choose(self, kernel: str, grid: object) -> TimedLaunches | None:
        """Where the run time of a launch that is asked for now goes: that of one with records, if
        it is to be recorded (`every_launch`, or the budget of a monitor); None where the launch is
        as without a session."""
        if self.budget is not None:
            return self.budget.choose(kernel, grid)
        every = self.options.every_launch
        if every == 1:
            return RECORDED
        with self.lock:
            self.met[kernel] = self.met.get(kernel, 0) + 1
            return RECORDED if self.met[kernel] % every == 0 else None

    def begins(self) -> bool:
        """True if a launch that begins now is part of the run. One in a forked process is counted
        there."""
        self.begun += 1
        if self.is_forked:
            if self.forked_counts.is_over:
                self.leave()
            else:
                self.forked_counts.add()
            return False
        return not self.is_finished

    def kernel_number(
        self,
        kernel: CompiledKernel,
        instrumentation: Instrumentation,
        noted: dict[str, Any] | None = None,
    ) -> int:
        """The number of a kernel in the run; `noted` is what else the run says of it."""
        number = self.kernel_numbers.get(kernel.key)
        if number is None:
            number = self.kernel_numbers[kernel.key] = len(self.kernels)
            every = self.options.every_launch
            said: dict[str, object] = {} if every == 1 else {"every_launch": every}
            if self.budget is not None:
                said["budget"] = self.budget.budget
            said |= instrumentation.noted() | (noted or {})
            model = kernel_model(kernel, said, keeps_code=bool(self.options.pc_sampling))
            self.kernels.append(model)
        return number


@dataclass
class Recorded:
    """The data of a recorder for the run when the session ends."""

    launches: list[Launch] = field(default_factory=list)
    dropped: int = 0  # launches whose records were lost after all
    clock: Clock | None = None  # the host's
    gpus: list[GPUClock] = field(default_factory=list)
    host: list[HostSlice] = field(default_factory=list)
    counters: list[CounterSamples] = field(default_factory=list)
    machine: dict[str, object] = field(default_factory=dict)  # facts for display
    measured: dict[int, dict[str, int]] = field(default_factory=dict)  # facts of kernels, by number
    pc_samples: dict[int, PCSamples] = field(default_factory=dict)  # of kernels, by number


class Recorder(ABC):
    """What one back end records in one session. Its launcher and it agree on how a launch begins
    and ends; launches come from any thread, and may come when the session is over."""

    @abstractmethod
    def disown(self) -> None:
        """Makes this the copy of a recorder in a process that was just forked: other threads are
        gone, and what they held. No launch is recorded there."""

    @abstractmethod
    def finish(self) -> Recorded:
        """Everything recorded. The session is over, and its lock free."""

    def take(self) -> Recorded:
        """What has been recorded of launches that have ended, which `finish` gives no more; waits
        for no launch, and for nothing that a device does. A monitor asks; a recorder may give all
        at the end."""
        return Recorded()
