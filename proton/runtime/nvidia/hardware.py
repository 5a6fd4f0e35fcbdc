"""What a session asks of a GPU besides the records of launches: what CUPTI sees of all work, and
counters of the hardware."""

import contextlib
import sys

from proton.base.errors import ProfileError
from proton.runtime.nvidia import cuda, cupti
from proton.runtime.nvidia.counters import Sampler, check_counters
from proton.runtime.nvidia.cupti import Collector
from proton.trace.instrumentation import SessionOptions
from proton.trace.model import ACTIVITIES, CounterSamples, HostSlice


class HardwareRecorder:
    """The options `activities` and `counters` of one session."""

    def __init__(self, options: SessionOptions) -> None:
        self.options = options
        self.samplers: dict[int, Sampler] = {}  # by GPU
        self.activities: Collector | None = None
        self.no_activities = ""  # why nothing listens to CUPTI, where that was asked for
        if options.counters:
            check_counters()

    def listen(self) -> None:
        """Asks CUPTI for all work from now on, if that is asked for."""
        self.activities, self.no_activities = _activities(self.options.activities)

    def sample(self, device: int) -> None:
        """Has the counters of a GPU sampled from now on, if that is asked for."""
        options = self.options
        if options.counters and device not in self.samplers:
            interval = options.counter_interval_ns
            self.samplers[device] = Sampler(device, options.counters, interval)

    def seen(self, machine: dict[str, object]) -> list[HostSlice]:
        """What CUPTI saw, once the GPU of this thread has done what it was asked for; where it saw
        nothing, `machine` says why."""
        if self.no_activities:
            machine[ACTIVITIES] = self.no_activities
        if self.activities is None:
            return []
        device = cuda.device_in_use()
        if device is not None:
            with contextlib.suppress(cuda.CUDAError):  # the recorder says what is wrong
                cuda.synchronize(device)
        return self.activities.stop()

    def sampled(self, machine: dict[str, object]) -> list[CounterSamples]:
        """What counters said until the GPUs had done everything; where they say nothing after all,
        `machine` says why, and so does a message: the rest of the run is worth keeping."""
        found = []
        for device, sampler in self.samplers.items():
            with cuda.on_device(device), contextlib.suppress(cuda.CUDAError):
                cuda.synchronize(device)  # the recorder says what is wrong
            try:
                found.append(sampler.stop())
                if sampler.lost:
                    machine[f"counters of GPU {device}, lost"] = sampler.told_lost
                    print(f"proton: counters of GPU {device}: {sampler.told_lost}", file=sys.stderr)
            except ProfileError as error:
                machine[f"counters of GPU {device}"] = str(error)
                print(f"proton: {error}", file=sys.stderr)
        return found


def _activities(asked: str) -> tuple[Collector | None, str]:
    """What listens to CUPTI, if that is asked for; else why nothing does, which is said, too."""
    if asked == "own":
        return None, ""
    try:
        return Collector(cupti.load()), ""
    except ProfileError as error:
        if not cuda.device_count():
            return None, ""  # nothing is missing
        print(f"proton: only Proton's own launches are recorded: {error}", file=sys.stderr)
        return None, str(error)
