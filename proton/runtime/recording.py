"""What a launch on the CPU records into while it runs, and how many launches run."""

import ctypes
import mmap
import os
import sys
import threading
import time
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from proton.trace import wire
from proton.trace.model import Chunk

SLAB_BYTES = 16 << 20
PATIENCE_S = 10.0  # after which a wait says what it waits for
POLL_S = 0.2  # seconds between looks
_PROCESSES = 1 << 16  # places for counts: a process has that of its id, modulo this


class Launching(Protocol):
    """A launch that has begun."""

    thread: int  # which made it


@dataclass(eq=False)
class Recording:
    """One instrumented launch while it runs. `kept` is False where nobody will read it."""

    kernel: int
    grid: tuple[int, int, int]
    capacity: int
    buffer: np.ndarray
    path: str
    thread: int
    kept: bool = True
    start: int = 0
    chunks: list[Chunk] = field(default_factory=list)
    callback: Any = None

    @property
    def address(self) -> int:
        return int(self.buffer.ctypes.data)

    @property
    def flush_address(self) -> int:
        if self.callback is None:
            return 0
        return ctypes.cast(self.callback, ctypes.c_void_p).value or 0


class Slab:
    """Zeroed, touched memory that is handed out once."""

    def __init__(self) -> None:
        self.block = np.zeros(0, np.uint8)
        self.used = 0

    def take(self, size: int) -> np.ndarray:
        """`size` zero bytes, aligned to a cache line."""
        if self.used + size > self.block.size:
            room = max(SLAB_BYTES, size) + wire.BLOCK_ALIGNMENT
            self.block = np.empty(room, np.uint8)
            self.block.fill(0)  # touches every page, unlike np.zeros
            self.used = -self.block.ctypes.data % wire.BLOCK_ALIGNMENT
        taken = self.block[self.used : self.used + size]
        self.used += wire.aligned(size, wire.BLOCK_ALIGNMENT)
        return taken


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
                        f"proton: the session ends when {others} launches in other threads have "
                        "ended; interrupt (Ctrl-C) to leave them out",
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
        """Whether the session has ended in the process that began it."""
        return bool(self._over[0])

    def close(self) -> int:
        """The number of launches; those that follow are not counted."""
        self._over[0] = 1
        return int(self._counts.sum())
