"""Counters of a GPU's hardware over time, by CUPTI's PM sampling.

The GPU samples counters at an interval, into a buffer of its own; CUPTI decodes that when the
session ends. The package cupti-python (`pip install 'proton-tile[cupti]'`) is optional. What cannot
be had is a ProfileError that says what to do: the package, the driver's permission, a counter that
a GPU lacks or cannot sample beside the others.

    sampler = Sampler(device, ("sm", "dram"), interval_ns=10_000)
    samples = sampler.stop()

CUPTI does not say which clock the times of samples are of. They lie between the readings of that
clock around the sampling: of the GPU's timer, or of CUPTI's own.
"""

import importlib
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from proton.base.errors import ProfileError
from proton.runtime.nvidia import cuda
from proton.runtime.nvidia.clock_exchange import TimerPair, timer_pair
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
BUFFER_BYTES = 512 << 20  # of the GPU's samples, which CUPTI decodes at the end
BATCH = 20_000  # samples that are decoded at once
MOST = 500_000  # samples that a run keeps of a GPU, the oldest
READINGS = 5  # of CUPTI's clock, of which the quickest counts
# How far samples may lie outside of the readings of their own clock, and how far both clocks may
# differ where both would do.
SLACK_NS = 50_000
INSTALL = "pip install 'proton-tile[cupti]'"
PERMISSION = (
    "the driver keeps performance counters to administrators (ERR_NVGPUCTRPERM): run as root or "
    "with the capability SYS_ADMIN, or have the driver's module loaded with "
    "NVreg_RestrictProfilingToAdminUsers=0"
)


@dataclass(frozen=True)
class Cupti:
    """The modules of the package."""

    sampling: Any
    base: Any


def load() -> Cupti:
    """The package; raises ProfileError where it is not there."""
    try:
        names = ("cupti.pm_sampling", "cupti.cupti")
        return Cupti(*(importlib.import_module(name) for name in names))
    except (ImportError, OSError, RuntimeError) as error:
        raise ProfileError(
            f"counters need CUPTI from the package cupti-python: {INSTALL} ({error})"
        ) from None


def check_counters() -> None:
    """Raises ProfileError where no GPU can be sampled: there is none, or the package is missing."""
    load()
    if not cuda.device_count():
        raise ProfileError("counters are those of NVIDIA GPUs, and this process can use none")


@dataclass(frozen=True)
class _Moment:
    """One moment by the GPU's timer, and one by CUPTI's clock, each with that of the host."""

    timer: TimerPair
    cupti_ns: int
    host_ns: int  # when CUPTI's clock said so
    error_ns: float

    @staticmethod
    def now(device: int, base: Any) -> "_Moment":
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
        with _explained(device), cuda.on_device(device):
            self.collector = self.cupti.sampling.Collector(device_index=device)
            self.collector.enable()
            try:
                self.metrics = self._configured(interval_ns)
                self.first = _Moment.now(device, self.cupti.base)
                self.collector.start()
            except BaseException:
                self.collector.disable()
                raise

    def _configured(self, interval_ns: int) -> tuple[str, ...]:
        """Chooses a metric for each counter, such that one pass has them all."""
        refused: list[tuple[int, Exception]] = []  # at which counter, and why
        found = self._chosen([], interval_ns, refused)
        if found is None:
            place, refusal = max(refused, key=lambda entry: entry[0])
            beside = f" beside {', '.join(self.names[:place])}" if place else ""
            raise ProfileError(
                f"counters: GPU {self.device} cannot sample {self.names[place]!r}{beside} "
                f"({refusal}); leave it out, or ask for fewer"
            )
        return tuple(found)

    def _chosen(
        self, chosen: list[str], interval_ns: int, refused: list[tuple[int, Exception]]
    ) -> list[str] | None:
        """These metrics, and those of the other counters that go with them; None if none do."""
        place = len(chosen)
        if place == len(self.names):
            return chosen
        for metric in METRICS[self.names[place]]:
            tried = [*chosen, metric + PERCENT]
            refusal = self._refusal(tried, interval_ns)
            if refusal is not None:
                refused.append((place, refusal))
                continue
            found = self._chosen(tried, interval_ns, refused)
            if found is not None:
                return found
        return None

    def _refusal(self, metrics: list[str], interval_ns: int) -> Exception | None:
        """Why these metrics cannot be sampled together; None where they are from now on."""
        sampling = self.cupti.sampling
        try:
            self.collector.configure(
                metrics=metrics,
                hardware_buffer_size=BUFFER_BYTES,
                sampling_interval=interval_ns,
                trigger_mode=sampling.TriggerMode.GPU_TIME_INTERVAL,
                hw_buffer_append_mode=sampling.HardwareBufferAppendMode.KEEP_OLDEST,
            )
        except PermissionError:
            raise
        except Exception as error:  # of the package, whose kind depends on what is refused
            if _is_permission(error):
                raise
            return error
        return None

    def stop(self) -> CounterSamples:
        """Everything sampled, on the host's clock."""
        with _explained(self.device), cuda.on_device(self.device):
            try:
                self.collector.stop()
                last = _Moment.now(self.device, self.cupti.base)
                starts, ends, values = self._decoded()
            finally:
                self.collector.disable()
        line = _line(self.first, last, starts, ends, self.device)
        start_ns, end_ns = line.to_host(starts), line.to_host(ends)
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

    def _decoded(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Starts, ends and values of the samples, in order of time."""
        found: list[Any] = []
        while len(found) < MOST:
            data = self.collector.decode(max_samples=BATCH)
            found += list(data)
            if len(data) < BATCH:
                break
        starts, ends = (
            np.array([getattr(sample, name) for sample in found], np.int64)
            for name in ("start_timestamp", "end_timestamp")
        )
        values = np.array([sample.metric_values for sample in found], np.float64)
        order = np.argsort(starts, kind="stable")
        return starts[order], ends[order], values.reshape(len(found), -1)[order]


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
    """That of the clock of these samples: the one between whose readings they lie."""
    moments, timers = (first, last), (first.timer, last.timer)
    pairs = {
        "the GPU's timer": [(t.timer_ns, t.host_ns, t.error_ns) for t in timers],
        "CUPTI's clock": [(m.cupti_ns, m.host_ns, m.error_ns) for m in moments],
    }
    lines = [_line_through(own, device) for own in pairs.values()]
    if not starts.size:
        return lines[0]
    outside = [
        max(own[0][0] - int(starts[0]), int(ends[-1]) - own[1][0], 0) for own in pairs.values()
    ]
    best = int(np.argmin(outside))
    if outside[best] > SLACK_NS:
        far = ", ".join(f"{n} ns of {name}" for n, name in zip(outside, pairs, strict=True))
        raise ProfileError(
            f"counters: samples of GPU {device} lie outside of the time of the session, by {far}; "
            "they cannot be put on its axis"
        )
    if max(outside) > SLACK_NS:
        return lines[best]
    # Both would do: the timer's, as wrong as they are apart.
    apart = np.abs(lines[0].to_host(starts[:1]) - lines[1].to_host(starts[:1]))
    return _Line(lines[0].clock, lines[0].error_ns + float(apart.max()))


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


def _is_permission(error: Exception) -> bool:
    return isinstance(error, PermissionError) or "INSUFFICIENT_PRIVILEGES" in str(error)


@contextmanager
def _explained(device: int) -> Iterator[None]:
    """What the package raises, as a ProfileError that says what to do."""
    try:
        yield
    except ProfileError:
        raise
    except Exception as error:  # of the package, whose kind depends on its version
        if _is_permission(error):
            raise ProfileError(f"counters: {PERMISSION}") from None
        raise ProfileError(f"counters: CUPTI cannot sample GPU {device}: {error}") from None
