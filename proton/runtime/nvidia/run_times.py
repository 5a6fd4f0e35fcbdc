"""How long launches run on a GPU, with records and without: between two events of their stream."""

import math
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from proton.runtime.nvidia import cuda
from proton.runtime.nvidia.queue import Queue
from proton.runtime.session.recording import SessionState


@dataclass(frozen=True)
class Timing:
    """Events around a launch, and who is told how long it took, ns."""

    device: int
    tell: Callable[[int], None]
    begin: int
    end: int


class RunTimes:
    """The times of launches in one session, which are not captured into a graph."""

    def __init__(self, queue: Queue, state: SessionState, most: float = math.inf) -> None:
        """`most` timings are under way at once; launches beyond are not timed."""
        self.queue, self.state, self.most = queue, state, most
        self.timings: deque[Timing] = deque()
        # Where each second launch of a kernel runs without records: launches so far, and times
        # with records and without, by kernel.
        self.launches: dict[int, int] = {}
        self.times: dict[int, tuple[list[int], list[int]]] = {}

    def is_plain_launch(self, kernel: int, stream: int) -> bool:
        """True if a launch of a kernel runs without records, for its time."""
        if self.queue.is_capturing(stream):
            return False
        number = self.launches.get(kernel, 0)
        self.launches[kernel] = number + 1
        return number % 2 == 1

    def of(self, kernel: int, is_recorded: bool) -> Callable[[int], None]:
        """Who keeps the times of a kernel to the end."""
        return self.times.setdefault(kernel, ([], []))[not is_recorded].append

    def around(
        self, tell: Callable[[int], None], device: int, stream: int, launch: Callable[[], object]
    ) -> None:
        """A launch between two events, where that can be; `tell` gets its time, ns."""
        state, timing, launched = self.state, None, False
        with state.lock:
            if not state.is_finished:
                timing = self._begin(device, tell, stream)
        try:
            launch()
            launched = True
        finally:
            if timing is not None:
                with state.lock:
                    self._end(timing, stream, launched and not state.is_finished)

    def _begin(self, device: int, tell: Callable[[int], None], stream: int) -> Timing | None:
        """Queues the event before a launch, if that can be; then `_end` follows."""
        if len(self.timings) >= self.most or self.queue.is_capturing(stream):
            return None
        begin, end = (self.queue.new_event(is_timed=True) for _ in range(2))
        self.queue.record(begin, stream)
        return Timing(device, tell, begin, end)

    def _end(self, timing: Timing, stream: int, counts: bool) -> None:
        """Queues the event behind the launch, if its time `counts`."""
        if counts:
            self.queue.record(timing.end, stream)
            self.timings.append(timing)
        else:
            self._release(timing)

    def _release(self, timing: Timing) -> None:
        self.queue.release_event(timing.begin)
        self.queue.release_event(timing.end)

    def settle(self) -> None:
        """Tells the times of launches that have ended."""
        for _ in range(len(self.timings)):
            timing = self.timings.popleft()
            with cuda.on_device(timing.device):
                if self.queue.is_done(timing.end):
                    timing.tell(self.queue.elapsed_ns(timing.begin, timing.end))
                    self._release(timing)
                else:
                    self.timings.append(timing)

    def medians(self) -> dict[int, dict[str, int]]:
        """Of each kernel whose times are kept the median, ns, with records (`run_ns`) and without
        (`run_ns_off`). All has run, and the events are given back."""
        self.settle()
        return {
            kernel: {
                name: round(float(np.median(times)))
                for name, times in zip(("run_ns", "run_ns_off"), both, strict=True)
                if times
            }
            for kernel, both in self.times.items()
        }
