"""Which launches of a kernel are recorded, so that recording costs a stated part of its time.

Of the launches of a kernel one of `every` is recorded, and one of `plain_every` is timed without
records. Of both kinds the newest run times are kept. With what they say,

    cost = upper bound of the recorded median - lower bound of the plain one + host + timing
    every = cost / (RECORDING * (budget * lower bound of the plain median - gate))

The bounds are those of a median's confidence interval by ranks, which asks nothing of how run times
are distributed. So where the cost is below the noise, `every` is what the noise still allows, and
falls as times come in. It rises at once, and falls to a half with each launch recorded. Until one
is, a recorded launch is taken to cost as much as the kernel, and what keeping it takes besides.

Launches of one kernel are told apart by the power of two of their programs, since they differ in
time. To ask which it is takes longer than the budget of a short kernel, so a kernel has a *gate*:
of the launches there all but one of so many are let through by counting down. What follows is
chosen of those that are left.

How far apart they are is drawn by a generator with a fixed seed, so that no period of a program's
launches meets one kind alone. Which of them is recorded follows a sequence that fills the unit
interval evenly: the multiples of an irrational number, modulo 1.
"""

import itertools
import math
import statistics
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

WINDOW = 32  # run times of a kind that count: a change is known when a third of them are new
CONFIDENCE = 1.96  # standard deviations of a rank: 95 % of medians lie within the bounds
LEAST_PLAIN = 4  # run times before anything is recorded
LEAST_EVERY, MOST_EVERY = 2, 1 << 20
FIRST_PLAIN_EVERY = 64  # until `LEAST_PLAIN` are known
RECORDING = 0.75  # of the budget; the rest is for timing
# What timing a launch takes: two events of a GPU, of about 1 us each in their stream's order.
TIMING_NS = 2000
# What each launch takes of the host at its gate (136 to 178 ns of an EPYC 9005). It is taken off
# the budget, of which LEAST_LEFT is left in any case: where that is too much, nothing helps.
GATE_NS, LEAST_LEFT = 200, 0.5
FIRST_HOST_NS = 200_000  # of the host for a launch recorded, until it is known
CHARGES = 5  # of which the median counts: the first has what is done once
FRESH = 4096  # run times that nobody took yet: the newest
MOST_KERNELS = 10_000  # kernels, by name and size; launches of more are not recorded
_ROOT, _MASK = 0x6A09E667, (1 << 32) - 1  # 2^32 times the fraction of the square root of 2
# A linear congruential generator modulo 2^32 (Numerical Recipes, ranqd1).
_FACTOR, _SUMMAND = 1664525, 1013904223

T = TypeVar("T")  # what a launch gives


class TimedLaunches:
    """Run times of launches of a kernel, with records or without: on the device, and what their
    launching took of the host, ns. They come from any thread."""

    def __init__(self, is_recorded: bool) -> None:
        self.is_recorded = is_recorded
        self.fresh: deque[int] = deque(maxlen=FRESH)
        self.fresh_host: deque[int] = deque(maxlen=FRESH)
        self.window: deque[int] = deque(maxlen=WINDOW)
        self.host: deque[int] = deque(maxlen=WINDOW)
        self.count = 0  # of all that were taken

    def add(self, ns: int) -> None:
        self.fresh.append(ns)

    def called(self, launch: Callable[[], T]) -> T:
        """Calls what launches, and adds what that took of the host."""
        begin = time.perf_counter_ns()
        result = launch()
        self.fresh_host.append(time.perf_counter_ns() - begin)
        return result

    def take(self) -> list[int]:
        """What came since the last call, which counts from now on. The first of recorded launches
        may have compiled, and counts as none."""
        found, host = _drained(self.fresh), _drained(self.fresh_host)
        if self.is_recorded and found and not self.count:
            self.count, found = 1, found[1:]
        self.count += len(found)
        self.window.extend(found)
        self.host.extend(host)
        return found


def _drained(of: deque[int]) -> list[int]:
    return [of.popleft() for _ in range(len(of))]


def bounds(times: Iterable[int]) -> tuple[int, int]:
    """Between which the median of what the times are drawn from lies, in 95 % of cases; from fewer
    than six times the least and the largest."""
    ordered = sorted(times)
    half = CONFIDENCE * math.sqrt(len(ordered)) / 2
    low = math.floor(len(ordered) / 2 - half)
    high = math.ceil(len(ordered) / 2 + half)
    return ordered[max(low, 0)], ordered[min(high, len(ordered) - 1)]


def median(times: Sequence[int]) -> int:
    """The median, or the lower one of two; 0 of none."""
    return sorted(times)[(len(times) - 1) // 2] if times else 0


class KernelGate:
    """All launches of one kernel. Those who launch count `left` down; at 0 they ask, and `pass_on`
    says how many go through after that one. Threads may ask at once: sums alone change, so none is
    lost."""

    __slots__ = ("counted", "gap", "left", "number")

    def __init__(self) -> None:
        # The first launch may compile: the second one asks.
        self.left, self.counted, self.number = 1, 1, 0
        self.gap = FIRST_PLAIN_EVERY  # from one that asks to the next, in the mean

    def pass_on(self) -> None:
        """A launch asks."""
        self.number = (self.number * _FACTOR + _SUMMAND) & _MASK
        gap = 1 + ((2 * self.gap - 1) * self.number >> 32)
        self.counted += gap
        self.left += gap - 1

    @property
    def launches(self) -> int:
        """So far."""
        return self.counted - self.left


class KernelBudget:
    """The launches of one kernel, of about one size. `choose` is called by those who launch, the
    rest by one thread."""

    def __init__(self, kernel: str, budget: float) -> None:
        self.kernel, self.budget = kernel, budget
        self.recorded, self.plain = TimedLaunches(True), TimedLaunches(False)
        self.launches = 0  # about: those that asked stand for the others
        self.every, self.plain_every = 0, FIRST_PLAIN_EVERY  # 0: none is recorded
        self.charged: deque[float] = deque(maxlen=CHARGES)
        self._numbers = itertools.count()  # `next` of it is atomic
        self._seen = 0  # recorded launches whose times counted at the last update
        self.set_gap(FIRST_PLAIN_EVERY)

    def choose(self) -> TimedLaunches | None:
        """Where the times of a launch that asks go: those with records, if it is to be recorded;
        None where it is only launched."""
        self.launches += self.gap
        place = next(self._numbers) * _ROOT & _MASK
        if place < self._recorded_below:
            return self.recorded
        return self.plain if place >= self._plain_from else None

    def update(self) -> list[int]:
        """Takes the times that came and chooses anew; gives those without records."""
        self.recorded.take()
        found = self.plain.take()
        if len(self.plain.window) < LEAST_PLAIN:
            return found
        least = max(bounds(self.plain.window)[0], 1)
        cost = self._cost_bound(least) + self.host_ns + TIMING_NS
        wanted = math.ceil(cost / (RECORDING * self._ns(least)))
        count = max(self.recorded.count - 1, 0)
        new, self._seen = count - self._seen, count
        least_every = (self.every or wanted) >> min(new, 32)
        self.every = min(max(wanted, least_every, LEAST_EVERY), MOST_EVERY)
        timing = math.ceil(TIMING_NS / ((1 - RECORDING) * self._ns(least)))
        self.plain_every = min(max(timing, LEAST_EVERY), MOST_EVERY)
        return found

    @property
    def widest_gap(self) -> int:
        """How far apart launches may ask, so that enough are recorded and timed."""
        return int(1 / ((1 / self.every if self.every else 0) + 1 / self.plain_every))

    def set_gap(self, gap: int) -> None:
        """Launches ask so far apart."""
        self.gap = gap
        whole = _MASK + 1
        self._recorded_below = whole * gap // self.every if self.every else 0
        self._plain_from = whole - whole * gap // self.plain_every

    def charge(self, ns: float) -> None:
        """Keeping a recorded launch took so much of the host."""
        self.charged.append(ns)

    @property
    def kept_ns(self) -> float:
        """What keeping one takes, as far as is known."""
        return statistics.median(self.charged) if self.charged else FIRST_HOST_NS

    @property
    def host_ns(self) -> float:
        """What a recorded launch takes of the host besides its time: launching it, and keeping
        it."""
        return max(median(self.recorded.host) - median(self.plain.host), 0) + self.kept_ns

    @property
    def plain_ns(self) -> int:
        """The median time without records; 0 where none is known."""
        return median(self.plain.window)

    @property
    def share(self) -> float:
        """What recording takes, about, as a part of the kernel's time."""
        if not self.every or not self.plain_ns:
            return 0.0
        cost = self.host_ns + TIMING_NS
        if self.recorded.window:
            cost += max(median(self.recorded.window) - self.plain_ns, 0)
        return (cost / self.every + TIMING_NS / self.plain_every + GATE_NS) / self.plain_ns

    def _ns(self, plain: int) -> float:
        """The budget of a launch, behind its gate."""
        return max(self.budget * plain - GATE_NS, LEAST_LEFT * self.budget * plain)

    def _cost_bound(self, plain: int) -> float:
        """What a recorded launch takes more than others, at most."""
        count = len(self.recorded.window)
        if not count:
            return plain
        return max(bounds(self.recorded.window)[1] - plain, 0) * (1 + 1 / count)


@dataclass
class LaunchBudget:
    """The launches of all kernels in a session, each recorded within the budget."""

    budget: float
    kernels: dict[tuple[str, int], KernelBudget] = field(default_factory=dict)
    gates: dict[str, KernelGate] = field(default_factory=dict)

    def of(self, kernel: str, grid: object) -> KernelBudget | None:
        """Of a kernel's launches those about as large as one on this grid; None where there are too
        many kernels."""
        key = kernel, size_of(grid)
        found = self.kernels.get(key)
        if found is None and len(self.kernels) < MOST_KERNELS:
            found = self.kernels.setdefault(key, KernelBudget(kernel, self.budget))
        return found

    def choose(self, kernel: str, grid: object) -> TimedLaunches | None:
        """As `KernelBudget.choose`, of any launch of a kernel."""
        gate = self.gates.get(kernel)
        if gate is None and len(self.gates) < MOST_KERNELS:
            gate = self.gates.setdefault(kernel, KernelGate())
        if gate is None:
            return None
        if gate.left > 0:
            gate.left -= 1
            return None
        gate.pass_on()
        found = self.of(kernel, grid)
        return None if found is None else found.choose()

    def update(self) -> list[tuple[str, list[int]]]:
        """Chooses anew; the run times of launches without records that came, by kernel."""
        kernels = list(self.kernels.values())
        found = [(kernel.kernel, kernel.update()) for kernel in kernels]
        gaps: dict[str, int] = {}
        for kernel in kernels:
            gaps[kernel.kernel] = min(gaps.get(kernel.kernel, MOST_EVERY), kernel.widest_gap)
        for kernel in kernels:
            kernel.set_gap(gaps[kernel.kernel])
        for name, gap in gaps.items():
            self.gates[name].gap = gap
        return found


def size_of(grid: object) -> int:
    """The bits of the number of programs of a grid; 0 for what is none, which others refuse."""
    if isinstance(grid, int):
        return grid.bit_length()
    try:
        return int(math.prod(grid)).bit_length()  # type: ignore[call-overload]
    except (TypeError, ValueError, OverflowError):
        return 0
