"""How long kernels run with records and without: each second launch of one goes without them."""

from dataclasses import dataclass

import numpy as np

from proton.runtime.nvidia import cuda
from proton.runtime.nvidia.queue import Queue


@dataclass(frozen=True)
class Timing:
    """Events around a launch of a kernel, with records or without."""

    kernel: int
    device: int
    is_recorded: bool
    begin: int
    end: int


class RunTimes:
    """The times of launches in one session, which are not captured into a graph."""

    def __init__(self, queue: Queue) -> None:
        self.queue = queue
        self.launches: dict[int, int] = {}  # launches of each kernel so far
        self.timings: list[Timing] = []

    def is_plain_launch(self, kernel: int, stream: int) -> bool:
        """True if a launch of a kernel runs without records, for its time."""
        if self.queue.is_capturing(stream):
            return False
        number = self.launches.get(kernel, 0)
        self.launches[kernel] = number + 1
        return number % 2 == 1

    def begin(self, kernel: int, device: int, is_recorded: bool, stream: int) -> Timing | None:
        """Queues the event before a launch, if that can be; then `end` follows."""
        if self.queue.is_capturing(stream):
            return None
        begin, end = (self.queue.new_event(is_timed=True) for _ in range(2))
        self.queue.record(begin, stream)
        return Timing(kernel, device, is_recorded, begin, end)

    def end(self, timing: Timing, stream: int, counts: bool) -> None:
        """Queues the event behind the launch, if its time `counts`."""
        if counts:
            self.queue.record(timing.end, stream)
            self.timings.append(timing)
        else:
            self._release(timing)

    def _release(self, timing: Timing) -> None:
        self.queue.release_event(timing.begin)
        self.queue.release_event(timing.end)

    def medians(self) -> dict[int, dict[str, int]]:
        """Of each kernel that was timed the median run time, ns, with records (`run_ns`) and
        without (`run_ns_off`). All has run, and the events are given back."""
        found: dict[int, dict[str, list[int]]] = {}
        for timing in self.timings:
            name = "run_ns" if timing.is_recorded else "run_ns_off"
            times = found.setdefault(timing.kernel, {}).setdefault(name, [])
            with cuda.on_device(timing.device):
                times.append(self.queue.elapsed_ns(timing.begin, timing.end))
                self._release(timing)
        return {
            kernel: {name: round(float(np.median(times))) for name, times in by_name.items()}
            for kernel, by_name in found.items()
        }
