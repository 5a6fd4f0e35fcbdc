"""Counters of a GPU's hardware over time, by CUPTI's PM sampling (pm_sampling.py).

The GPU samples counters at an interval, into a buffer of its own; CUPTI decodes that when the
session ends. What cannot be had is a ProfileError that says what to do: the package, the driver's
permission, a counter that a GPU lacks or cannot sample beside the others.

    sampler = Sampler(device, ("sm", "dram"), interval_ns=10_000)
    samples = sampler.stop()
    sampler.lost                    # what CUPTI took, and did not give

CUPTI takes the times of samples from the GPU to its own clock, as it does those of activities, so
they lie between the readings of that clock around the sampling. Where they do not, they may lie
between those of the GPU's timer.
"""

import time
import types
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from proton.base.errors import ProfileError
from proton.runtime.nvidia import cuda
from proton.runtime.nvidia.clock_exchange import TimerPair, timer_pair
from proton.runtime.nvidia.pm_sampling import (
    PMSampling,
    Sample,
    explained,
    is_permission,
    load,
    of_other_release,
)
from proton.trace.gpu_clock import device_line
from proton.trace.model import CounterSamples, GPUClock

# Of each word of the option `counters` CUPTI's metrics, the best first: not every chip has each,
# nor samples it beside the others in one pass.
PERCENT = ".avg.pct_of_peak_sustained_elapsed"
METRICS = {
    "sm": ("sm__cycles_active",),
    "issue": ("sm__inst_executed_realtime", "sm__inst_executed"),
    "tensor": (
        "sm__pipe_tensor_cycles_active_realtime",
        "sm__pipe_tensor_cycles_active",
        "sm__inst_executed_pipe_tensor",
    ),
    "l2": ("lts__throughput", "lts__t_sectors", "lts__d_sectors"),
    "dram": ("dram__throughput", "dram__bytes"),
}
UNIT = "%"
MOST = 500_000  # samples that a run keeps of a GPU, the oldest
READINGS = 5  # of CUPTI's clock, of which the quickest counts
SLACK_NS = 50_000  # by which samples may lie outside of the readings of their clock
ROOM = 1.05  # times the samples that a session's time has are what an image has room for
SPARE = 64  # and so many more


def check_counters() -> None:
    """Raises ProfileError where no GPU can be sampled: there is none, or the package is missing."""
    if not cuda.device_count():
        raise ProfileError("counters are those of NVIDIA GPUs, and this process can use none")
    load()


@dataclass(frozen=True)
class _Moment:
    """One moment by the GPU's timer, and one by CUPTI's clock, each with that of the host."""

    timer: TimerPair
    cupti_ns: int
    host_ns: int  # when CUPTI's clock said so
    error_ns: float

    @staticmethod
    def now(device: int, base: types.ModuleType) -> "_Moment":
        timer, best = timer_pair(device), (1 << 62, 0, 0)
        for _ in range(READINGS):
            before = time.perf_counter_ns()
            said = int(base.get_timestamp())
            after = time.perf_counter_ns()
            best = min(best, (after - before, said, (before + after) // 2))
        return _Moment(timer, best[1], best[2], best[0] / 2)


class Sampler:
    """Samples counters of a GPU from its making until `stop`. Raises ProfileError where that
    cannot be."""

    def __init__(self, device: int, names: Sequence[str], interval_ns: int) -> None:
        self.device, self.names, self.cupti = device, tuple(names), load()
        self.interval_ns, self.lost, self.overflow = interval_ns, 0, False
        with explained(device), cuda.on_device(device):
            self.sampling = PMSampling(self.cupti, device)
            self.metrics = self._opened(interval_ns)
            try:
                self.first = _Moment.now(device, self.cupti.base)
                self.sampling.start()
            except BaseException:
                self.sampling.close()
                raise

    def _opened(self, interval_ns: int) -> tuple[str, ...]:
        """Chooses a metric for each counter, such that one pass has them all, and opens the
        sampling of these."""
        refused: list[tuple[int, Exception]] = []  # at which counter, and why
        found = self._chosen([], interval_ns, refused)
        if found is None:
            place, refusal = max(refused, key=lambda entry: entry[0])
            beside = f" beside {', '.join(self.names[:place])}" if place else ""
            raise ProfileError(
                f"counters: GPU {self.device} cannot sample {self.names[place]!r}{beside} "
                f"({refusal}); leave it out, or ask for fewer{of_other_release()}"
            )
        return tuple(found)

    def _chosen(
        self, chosen: list[str], interval_ns: int, refused: list[tuple[int, Exception]]
    ) -> list[str] | None:
        """These metrics, and those of the other counters that go with them; None if none do."""
        place = len(chosen)
        for metric in METRICS[self.names[place]]:
            tried = [*chosen, metric + PERCENT]
            is_last = len(tried) == len(self.names)
            try:
                self.sampling.check(tried)
                if is_last:
                    self.sampling.open(tried, interval_ns)
                    return tried
            except Exception as error:  # of the package, whose kind depends on what is refused
                if is_permission(error):
                    raise
                refused.append((place, error))
                continue
            found = self._chosen(tried, interval_ns, refused)
            if found is not None:
                return found
        return None

    def stop(self) -> CounterSamples:
        """Everything sampled, on the host's clock."""
        with explained(self.device), cuda.on_device(self.device):
            try:
                ended = time.perf_counter_ns()
                self.sampling.stop()
                last = _Moment.now(self.device, self.cupti.base)
                count = (last.host_ns - self.first.host_ns) / self.interval_ns * ROOM + SPARE
                self.sampling.make_room(min(int(count), MOST))
                starts, ends, values = self._decoded()
            finally:
                self.sampling.close()
        line = _line(self.first, last, starts, ends, self.device)
        start_ns, end_ns = line.to_host(starts), line.to_host(ends)
        self.lost = _missing(start_ns, end_ns, (self.first.host_ns, ended), self.interval_ns)
        return CounterSamples(
            device=self.device,
            start_ns=start_ns,
            end_ns=np.maximum(start_ns, end_ns),
            names=self.names,
            metrics=self.metrics,
            units=(UNIT,) * len(self.names),
            values=values,
            error_ns=line.error_ns,
        )

    @property
    def told_lost(self) -> str:
        """What is said where samples were lost."""
        why = f"a run keeps the oldest {MOST}, and CUPTI what its buffers hold"
        if self.overflow:
            why = "CUPTI's buffer overflowed"
        return f"{self.lost} samples lost: {why}; ask for a longer counter_interval_ns"

    def _decoded(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Starts, ends and values of the samples, in order of time."""
        found: list[Sample] = []
        is_empty = False
        while not is_empty and len(found) < MOST:
            batch = self.sampling.decode()
            found += batch.samples
            self.overflow |= batch.overflow
            is_empty = not batch.count
        del found[MOST:]
        starts, ends = (np.array([sample[of] for sample in found], np.int64) for of in (0, 1))
        values = np.array([sample[2] for sample in found], np.float64)
        order = np.argsort(starts, kind="stable")
        return starts[order], ends[order], values.reshape(len(found), len(self.names))[order]


def _missing(
    starts: np.ndarray, ends: np.ndarray, session: tuple[int, int], interval_ns: int
) -> int:
    """How many samples are not there of those that were taken in the session's time: between those
    that are, and behind the last. In front of the first none are expected, for CUPTI takes its time
    to begin."""
    begin, end = session
    if not starts.size:
        return (end - begin) // interval_ns
    between = np.maximum(starts[1:] - ends[:-1], 0)
    behind = max(0, end - int(ends[-1]) - SLACK_NS)
    return int(np.round(between / interval_ns).sum()) + behind // interval_ns


@dataclass(frozen=True)
class _Line:
    """From a clock to the host's."""

    clock: GPUClock
    error_ns: float

    def to_host(self, stamps: np.ndarray) -> np.ndarray:
        """Times by `perf_counter_ns`."""
        line = device_line(self.clock, 0)
        found: np.ndarray = line.ns(stamps.astype(np.uint64))
        return found


def _line(
    first: _Moment, last: _Moment, starts: np.ndarray, ends: np.ndarray, device: int
) -> _Line:
    """That of the clock of these samples: CUPTI's, or else the one between whose readings they
    lie."""
    moments, timers = (first, last), (first.timer, last.timer)
    pairs = {
        "CUPTI's clock": [(m.cupti_ns, m.host_ns, m.error_ns) for m in moments],
        "the GPU's timer": [(t.timer_ns, t.host_ns, t.error_ns) for t in timers],
    }
    far = []
    for name, own in pairs.items():
        (begin, *_), (end, *_) = own
        outside = max(begin - int(starts[0]), int(ends[-1]) - end, 0) if starts.size else 0
        if outside <= SLACK_NS:
            return _line_through(own, device)
        far.append(f"{outside} ns of {name} ({begin} to {end})")
    raise ProfileError(
        f"counters: samples of GPU {device}, from {starts[0]} to {ends[-1]}, lie outside of the "
        f"time of the session, by {', '.join(far)}; they cannot be put on its axis"
    )


def _line_through(pairs: Sequence[tuple[int, int, float]], device: int) -> _Line:
    clock = GPUClock(
        device=device,
        name="",
        timer_ns=np.array([pair[0] for pair in pairs], np.int64),
        host_ns=np.array([pair[1] for pair in pairs], np.int64),
        error_ns=max(pair[2] for pair in pairs),
    )
    line = device_line(clock, 0)
    return _Line(clock, line.error_ns + float(line.residual_ns.max()))
