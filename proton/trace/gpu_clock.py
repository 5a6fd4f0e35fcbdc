"""From the cycles of a GPU's SMs to nanoseconds of the host, launch by launch.

Each program leaves pairs (cycles, timer) of its SM: one at init and, unless it was killed, one at
the end. Within a launch each SM counts at a rate and from a zero of its own: timer = rate(SM) *
cycles + offset(SM), by least squares. The rates lie so close together that a short launch, whose
pairs tell one SM's rate poorly, does better with the slope of all of them: each SM takes a mean of
its own slope and the launch's, weighted by their precision. The line through the pairs of the
device's GPUClock takes the timer to the host's clock.

At a pair, and so between two, the line of an SM is off by at most half the resolution of the timer
and the SM's largest residual; a duration, the difference of two such times, by at most twice that,
which is what is stated. That is against other times of the same GPU; against the host the
uncertainty of the device's line comes on top, and against another GPU those of both lines; or what
two GPUs of one process told each other, where they did (`peer`).
"""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from proton.trace.check import check_device, require
from proton.trace.clock import MAX_NS, ClockLine, fit, to_ns
from proton.trace.decode import Decoded
from proton.trace.model import NO_PEER, Clock, GPUClock, RawRun
from proton.trace.wire import ProgramState

RATE_ERROR = 0.01  # a launch that tells its rate less well takes the median of those that do
# Two clocks that both count ns drift apart by less; pairs that tell the drift less well do not.
MAX_DRIFT = 1e-4
# The standard deviation of the rates of a launch's SMs, as a part of their mean. With one rate for
# all, waits of 1 ms on 132 SMs of an H200 were off by up to 2.7e-4 (docs/decisions.md, 39).
RATE_SPREAD = 2e-4
MAX_RESOLUTION = 1024  # ns; no timer is coarser, but few values may have a larger divisor
UNKNOWN_RATE = 1.0  # ns a cycle where nothing tells it; the error is then the launch's length


@dataclass(frozen=True, kw_only=True)
class LaunchClock:
    """What the pairs of one launch told; `measured` is False where nothing told the rate.

    `rate` is what its SMs have in common, `error_ns` the largest of its programs. `start_ns` and
    `end_ns` are the first and the last timer of its programs on the host's axis.
    """

    rate: float  # ns a cycle
    measured: bool
    error_ns: float
    start_ns: int
    end_ns: int


@dataclass(frozen=True, kw_only=True)
class GPUTimes:
    """ns = slope * (cycles - zero) + offset: a row per program of the run, empty for those that no
    GPU ran. No time is off by more than error_ns, nor is the difference of two of one SM.

    `launches` has the clocks of the launches of which any program began, `hosts` the lines from
    timer to host of their devices, and `peers` by whose clock these are, and how far that may be
    off: by its own, unless it says another's.
    """

    zero: np.ndarray
    slope: np.ndarray
    offset: np.ndarray
    error_ns: np.ndarray
    launches: dict[int, LaunchClock]
    hosts: dict[int, ClockLine]
    peers: dict[int, tuple[int, float]]

    def ns(self, cycles: np.ndarray, program: np.ndarray) -> np.ndarray:
        """When the SMs of these programs were at these cycles, in ns since the origin."""
        return to_ns(cycles, self.zero[program], self.slope[program], self.offset[program])

    def host_error_ns(self, device: int) -> float:
        """How far times of a device may be off against the host, all alike."""
        line = self.hosts[device]
        return line.error_ns + float(line.residual_ns.max())

    def alignment_ns(self) -> float:
        """How far times of two devices may be off against each other, whichever two."""
        pairs = itertools.combinations(self.hosts, 2)
        return max((self._apart_ns(*pair) for pair in pairs), default=0.0)

    def _apart_ns(self, one: int, other: int) -> float:
        by_host = self.host_error_ns(one) + self.host_error_ns(other)
        (peer, error), (peer_of_other, error_of_other) = self.peers[one], self.peers[other]
        return min(by_host, error + error_of_other) if peer == peer_of_other else by_host


@dataclass(frozen=True, kw_only=True)
class _Pairs:
    """The pairs of one launch, relative to the first of each SM (`sm` counts from 0)."""

    sm: np.ndarray
    cycles: np.ndarray
    timer: np.ndarray
    program_sm: np.ndarray  # of each program that began
    cycles_zero: np.ndarray  # of each SM: u64
    timer_zero: np.ndarray
    # Of each SM, around the means of its pairs; products / squares is its own slope.
    squares: np.ndarray  # the sum of cycles * cycles
    products: np.ndarray  # the sum of cycles * timer
    interval: np.ndarray  # the first and the last timer: u64


def check_gpus(gpus: Sequence[GPUClock]) -> None:
    """Each device has one clock, whose pairs are pairs, oldest first."""
    devices = [gpu.device for gpu in gpus]
    require(len(set(devices)) == len(devices), "gpus", "devices must differ", devices)
    for gpu in gpus:
        where = f"clock of GPU {gpu.device}"
        check_device(gpu.device, where)
        pairs = f"{gpu.timer_ns.size} timers, {gpu.host_ns.size} host times"
        same = gpu.timer_ns.size == gpu.host_ns.size
        require(same, where, "timer_ns and host_ns must pair", pairs)
        known = gpu.peer in (NO_PEER, *devices) and gpu.peer != gpu.device
        require(known, where, f"peer must be another GPU of the run, or {NO_PEER}", gpu.peer)
        for name in ("error_ns", "slice_cost_cycles", "edge_cost_cycles", "peer_error_ns"):
            value = getattr(gpu, name)
            good = bool(np.isfinite(value)) and 0 <= value < MAX_NS
            require(good, where, f"{name} must be finite and not below 0", value)
        for name in ("timer_ns", "host_ns"):
            column = getattr(gpu, name)
            times = bool(((column >= 0) & (column < MAX_NS)).all())
            require(times, where, f"{name} must be times in ns", column)
            require(bool((column[1:] >= column[:-1]).all()), where, f"{name} must not fall", column)


def gpu_times(raw: RawRun, decoded: Mapping[int, Decoded], programs: np.ndarray) -> GPUTimes | None:
    """The clocks of the GPUs' launches (`decoded`); None where no program of any began.

    `programs` says, for each launch of the run and one more, how many programs come before it.
    """
    pairs = {
        number: _pairs(d, f"launch {number}")
        for number, d in decoded.items()
        if (d.state != ProgramState.UNTOUCHED).any()
    }
    if not pairs:
        return None
    device = {number: raw.launches[number].device for number in pairs}
    hosts = {d: _host_line(raw, d) for d in sorted(set(device.values()))}
    resolution = {d: _resolution([pairs[n] for n in pairs if device[n] == d]) for d in hosts}
    rates = _rates(pairs, device, resolution)

    zero = np.zeros(programs[-1], np.uint64)
    slope, offset, error = np.zeros((3, programs[-1]))
    launches = {}
    for number, found in pairs.items():
        host, measured = hosts[device[number]], bool(rates[number])
        if measured:
            rate = _sm_rates(found, rates[number], resolution[device[number]])
        else:
            rate = np.full(found.squares.size, UNKNOWN_RATE)
        mean, residual = _offsets(found, rate)
        off = resolution[device[number]] + 2 * residual
        if not measured:
            off += _length(decoded[number], found) * UNKNOWN_RATE
        began = found.timer_zero - np.uint64(host.ticks_zero)
        sm = found.program_sm
        rows = programs[number] + np.flatnonzero(decoded[number].state != ProgramState.UNTOUCHED)
        zero[rows] = found.cycles_zero[sm]
        slope[rows] = rate[sm] * host.slope
        offset[rows] = ((began.view(np.int64) + mean) * host.slope + host.ns_zero)[sm]
        error[rows] = off[sm]
        start, end = host.ns(found.interval).tolist()
        launches[number] = LaunchClock(
            rate=rates[number] or UNKNOWN_RATE,
            measured=measured,
            error_ns=float(off.max()),
            start_ns=start,
            end_ns=end,
        )
    peers = {gpu.device: _peer(gpu, hosts[gpu.device]) for gpu in raw.gpus if gpu.device in hosts}
    return GPUTimes(
        zero=zero,
        slope=slope,
        offset=offset,
        error_ns=error,
        launches=launches,
        hosts=hosts,
        peers=peers,
    )


def _pairs(d: Decoded, where: str) -> _Pairs:
    began = np.flatnonzero(d.state != ProgramState.UNTOUCHED)
    ended = np.flatnonzero(d.state == ProgramState.FINISHED)
    timer = np.append(d.timer_start[began], d.timer_end[ended])
    cycles = np.append(d.clock_start[began], d.clock_end[ended])
    latest = int(timer.max())
    require(latest < MAX_NS, where, "the global timer must be a time in ns", latest)
    hardware = d.hardware[np.append(began, ended)]
    _, first, sm = np.unique(hardware, return_index=True, return_inverse=True)
    cycles_since = (cycles - cycles[first][sm]).view(np.int64).astype(np.float64)
    timer_since = (timer - timer[first][sm]).view(np.int64).astype(np.float64)
    centred = cycles_since - _means(cycles_since, sm)[sm]
    return _Pairs(
        sm=sm,
        cycles=cycles_since,
        timer=timer_since,
        squares=np.bincount(sm, centred * centred),
        products=np.bincount(sm, centred * (timer_since - _means(timer_since, sm)[sm])),
        program_sm=sm[: began.size],
        cycles_zero=cycles[first],
        timer_zero=timer[first],
        interval=np.array([timer.min(), latest], np.uint64),
    )


def device_line(gpu: GPUClock, origin_ns: int) -> ClockLine:
    """From a device's timer to ns since the origin.

    Both clocks count ns, so their drift is taken only from pairs that tell it well.
    """
    clock = Clock(ticks=gpu.timer_ns.astype(np.uint64), host_ns=gpu.host_ns, error_ns=gpu.error_ns)
    span = int(gpu.timer_ns[-1] - gpu.timer_ns[0])
    drifts = span > 0 and 2 * gpu.error_ns <= MAX_DRIFT * span
    return fit(clock, origin_ns, None if drifts else 1.0)


def _peer(gpu: GPUClock, line: ClockLine) -> tuple[int, float]:
    if gpu.peer == NO_PEER:
        return gpu.device, 0.0
    return gpu.peer, gpu.peer_error_ns + float(line.residual_ns.max())


def _host_line(raw: RawRun, device: int) -> ClockLine:
    """That of a device of the run, which must have one."""
    where = f"clock of GPU {device}"
    gpu = next((gpu for gpu in raw.gpus if gpu.device == device), None)
    pairs = 0 if gpu is None else gpu.timer_ns.size
    require(pairs > 0, where, "a pair (timer, host time) is needed", pairs)
    assert gpu is not None
    return device_line(gpu, raw.origin_ns)


def _resolution(pairs: Sequence[_Pairs]) -> float:
    """The step of a device's timer: what divides the difference of any two values in headers."""
    first = pairs[0].interval[0]
    values = [p.timer_zero[p.sm] - first + p.timer.astype(np.int64).view(np.uint64) for p in pairs]
    return float(min(np.gcd.reduce(np.concatenate(values).view(np.int64)), MAX_RESOLUTION))


def _rates(
    pairs: Mapping[int, _Pairs], device: Mapping[int, int], resolution: Mapping[int, float]
) -> dict[int, float]:
    """ns a cycle of each launch, all its SMs together; 0 where nothing tells it.

    That is its own slope if that is known within RATE_ERROR, else the median of the device's
    launches whose slopes are, else its own if there is any.
    """
    slopes: dict[int, float] = {}
    sure: dict[int, list[float]] = {}
    unsure = []
    for number, found in pairs.items():
        squares = float(found.squares.sum())
        slopes[number] = max(float(found.products.sum()) / squares, 0.0) if squares > 0 else 0.0
        noise = _noise(resolution[device[number]])
        if slopes[number] and noise <= RATE_ERROR * slopes[number] * squares**0.5:
            sure.setdefault(device[number], []).append(slopes[number])
        else:
            unsure.append(number)
    for number in unsure:
        if device[number] in sure:
            slopes[number] = float(np.median(sure[device[number]]))
    return slopes


def _sm_rates(pairs: _Pairs, common: float, resolution: float) -> np.ndarray:
    """ns a cycle of each SM: the mean, weighted by precision, of its own slope, whose variance is
    noise**2 / squares, and of the launch's, from which the SM's rate deviates by RATE_SPREAD.

    Written so that an SM of one pair, which has no slope, needs no case of its own.
    """
    between = (RATE_SPREAD * common) ** 2
    weight = between / (between * pairs.squares + _noise(resolution) ** 2)
    rate = common + weight * (pairs.products - common * pairs.squares)
    return np.where(rate > 0, rate, common)  # timers of a broken header may run backwards


def _noise(resolution: float) -> float:
    """The standard deviation of a value rounded to the resolution."""
    return resolution / 12**0.5


def _offsets(pairs: _Pairs, rate: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Of each SM: the timer at its zero (since its first pair), and its largest residual."""
    apart = pairs.timer - rate[pairs.sm] * pairs.cycles
    mean = _means(apart, pairs.sm)
    residual = np.zeros(mean.size)
    np.maximum.at(residual, pairs.sm, np.abs(apart - mean[pairs.sm]))
    return mean, residual


def _means(values: np.ndarray, sm: np.ndarray) -> np.ndarray:
    return np.bincount(sm, values) / np.bincount(sm)


def _length(d: Decoded, pairs: _Pairs) -> float:
    """Cycles from the first pair of an SM to the last that is known of it: a pair or a record."""
    began = np.flatnonzero(d.state != ProgramState.UNTOUCHED)
    zero = np.zeros(d.state.size, np.uint64)
    zero[began] = pairs.cycles_zero[pairs.program_sm]
    program = d.track // max(d.written.size // max(d.state.size, 1), 1)
    since = (d.end - zero[program]).view(np.int64)
    return float(max(pairs.cycles.max(), since.max(initial=0)))
