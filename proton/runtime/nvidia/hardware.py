"""What a session asks of a GPU besides the records of launches: what CUPTI sees of all work,
counters of the hardware, and program counters."""

import contextlib
import functools
import sys
import threading
from collections.abc import Callable, Iterable, Sequence

from proton.base.errors import ProfileError
from proton.runtime.nvidia import cuda, cupti
from proton.runtime.nvidia.counters import Sampler, check_counters
from proton.runtime.nvidia.cupti import Collector
from proton.runtime.nvidia.pc_sampling import Counts, PCSampler
from proton.runtime.nvidia.variant import GPUVariant
from proton.trace.instrumentation import SessionOptions
from proton.trace.model import ACTIVITIES, CounterSamples, HostSlice, PCSamples


class HardwareRecorder:
    """The options `activities`, `counters` and `pc_sampling` of one session."""

    def __init__(self, options: SessionOptions) -> None:
        self.options = options
        self.samplers: dict[int, Sampler] = {}  # by GPU
        self.pc_samplings: dict[int, PCSampler] = {}  # by GPU
        self.loaded_again: dict[int, Callable[..., None]] = {}  # sampled kernels, by their function
        self.pc_sampled: dict[int, Counts] = {}  # by the kernel's number in the run
        self.activities: Collector | None = None
        self.no_activities = ""  # why nothing listens to CUPTI, where that was asked for
        if options.counters:
            check_counters()
        if options.pc_sampling and not cuda.device_count():
            raise ProfileError("pc_sampling is of NVIDIA GPUs, and this process can use none")

    def listen(self) -> None:
        """Asks CUPTI for all work from now on, if that is asked for."""
        self.activities, self.no_activities = _activities(self.options.activities)

    def begin(self, device: int) -> None:
        """As `sample`, when a session begins, which an error ends."""
        try:
            self.sample(device)
        except BaseException:
            self.pc_samples()
            self.sampled({})
            raise

    def sample(self, device: int) -> None:
        """Has the counters and program counters of a GPU sampled from now on, as asked."""
        options = self.options
        if options.counters and device not in self.samplers:
            interval = options.counter_interval_ns
            self.samplers[device] = Sampler(device, options.counters, interval)
        if options.pc_sampling and device not in self.pc_samplings:
            with cuda.on_device(device):
                self.pc_samplings[device] = PCSampler(device, options.pc_sampling)

    def sample_launch(
        self,
        device: int,
        number: int,
        plain: GPUVariant,
        taken: Sequence[object],
        others: Iterable[threading.Lock],
    ) -> None:
        """Launches a kernel, the run's of this number, and samples program counters meanwhile;
        under the locks of `others` that call the driver. CUPTI knows code that was loaded since it
        samples."""
        counts = self.pc_sampled.setdefault(number, Counts(plain.kernel.asm.kept("cubin")))
        if plain.function not in self.loaded_again:
            self.loaded_again[plain.function] = plain.load_again()
        launch = functools.partial(self.loaded_again[plain.function], *taken)
        with contextlib.ExitStack() as quiet:
            for lock in others:
                quiet.enter_context(lock)
            self.pc_samplings[device].sample(launch, counts)

    def pc_samples(self) -> dict[int, PCSamples]:
        """What kernels were sampled at, by their numbers; the sampling is over."""
        for device, sampling in self.pc_samplings.items():
            with cuda.on_device(device), contextlib.suppress(ProfileError):
                sampling.close()  # after an error of the device there is nothing to end
        cycles = self.options.pc_sampling
        return {number: counts.kept(cycles) for number, counts in self.pc_sampled.items()}

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
