"""How a GPU's timer lies to the host's clock, against clocks whose relation is known exactly."""

import ctypes
import itertools
import random
import threading
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proton.base.targets import GPUTarget
from proton.runtime.nvidia import clock_exchange, cuda
from proton.runtime.nvidia.clock_exchange import (
    LEAST_WAY_NS,
    ClockExchange,
    TimerPair,
    TimerReading,
    tightest,
)
from tests.compile.fake_cuda import check_loadable

ZERO = 1_790_000_000_000_000_000  # what the timer says when the host's clock says 0


class Timer:
    """A GPU's timer by the host's clock: `drift` ns more in each, in steps of `step`."""

    def __init__(self, drift: float = 0.0, step: int = 1) -> None:
        self.drift, self.step = drift, step

    def at(self, host_ns: float) -> int:
        return ZERO + int(host_ns * (1 + self.drift)) // self.step * self.step

    def assert_within(self, pair: TimerPair) -> None:
        """The timer had this value, or was up to a step beyond it, at some moment within the
        pair's error, whose rounding is a nanosecond."""
        error = pair.error_ns + 1
        assert self.at(pair.host_ns - error) - self.step <= pair.timer_ns
        assert pair.timer_ns <= self.at(pair.host_ns + error)


@given(
    seed=st.integers(0, 1 << 32),
    drift=st.sampled_from([0.0, 2e-5, -9e-5]),
    step=st.sampled_from([1, 32, 1000]),
    there=st.integers(LEAST_WAY_NS, 3000),
    back=st.integers(LEAST_WAY_NS, 3000),
    jitter=st.sampled_from([0, 500, 100_000]),
)
def test_the_true_relation_is_within_the_bound(
    seed: int, drift: float, step: int, there: int, back: int, jitter: int
) -> None:
    """Ways there and back of any length, however unlike, with delays of any length."""
    of, timer, now = random.Random(seed), Timer(drift, step), 5_000_000_000_000
    exchanges = []
    for _ in range(100):
        read = now + there + of.expovariate(1) * jitter
        seen = read + back + of.expovariate(1) * jitter
        exchanges.append(ClockExchange(now, timer.at(read), int(seen)))
        now = int(seen) + of.randrange(100, 700)
    pair = tightest(exchanges)
    timer.assert_within(pair)
    least = min(e.answered_ns - e.asked_ns for e in exchanges) / 2
    assert pair.error_ns <= least - LEAST_WAY_NS + step + 1


@given(
    seed=st.integers(0, 1 << 32),
    drift=st.sampled_from([0.0, 2e-5, -9e-5]),
    step=st.sampled_from([1, 32]),
    there=st.integers(LEAST_WAY_NS, 3000),
    back=st.integers(LEAST_WAY_NS, 3000),
    every=st.integers(20, 5000),
)
def test_readings_of_the_hosts_clock_bound_it(
    seed: int, drift: float, step: int, there: int, back: int, every: int
) -> None:
    """The host's clock is written again and again, and is in memory some time before the next one
    is read; the kernel's question takes a way there, and what it finds one back."""
    of, timer, start = random.Random(seed), Timer(drift, step), 5_000_000_000_000
    published = [start + every * n + of.randrange(every // 2) for n in range(400)]
    visible = [of.randrange(*both) for both in itertools.pairwise(published)]
    readings = []
    for _ in range(50):
        number = of.randrange(len(visible) - 2)
        sampled = of.randint(visible[number], visible[number + 1] - 1)
        before, after = timer.at(sampled - there), timer.at(sampled + back + of.randrange(100))
        found, latest = published[number], published[number + 2]
        readings.append(TimerReading(before, found, latest, after))
    slow = ClockExchange(start, timer.at(start + 20_000), start + 40_000)
    pair = tightest([slow], readings)
    timer.assert_within(pair)
    drifted = 2 * clock_exchange.MAX_DRIFT * (400 * every + 20_000)
    most = (there + back + 100 + 3 * every) / 2 - LEAST_WAY_NS + step + 1 + drifted
    assert pair.error_ns <= most


def test_both_sides_are_bounded_by_their_own_best_exchange() -> None:
    """Each exchange is slow in one direction, no two in the same."""
    timer = Timer()
    exchanges = [
        ClockExchange(1000, timer.at(1400), 9000),
        ClockExchange(10_000, timer.at(17_000), 17_300),
        ClockExchange(20_000, timer.at(24_001), 29_000),
    ]
    pair = tightest(exchanges)
    timer.assert_within(pair)
    assert pair.error_ns <= (400 + 300) / 2 - LEAST_WAY_NS + 4


class Device:
    """Answers as the kernel does, from a thread, with the timer."""

    def __init__(self, timer: Timer, answers: int) -> None:
        self.timer, self.answers = timer, answers
        self.memory: Any = None
        self.thread = threading.Thread()

    def install(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(cuda, "target_of", lambda device: GPUTarget("cuda", 90))
        monkeypatch.setattr(cuda, "load", lambda code, name, _: check_loadable(code, name) or 1)
        monkeypatch.setattr(cuda, "new_stream", lambda: 7)
        monkeypatch.setattr(cuda, "allocate_host", self.allocate)
        monkeypatch.setattr(cuda, "launch_once", self.launch)
        monkeypatch.setattr(cuda, "is_idle", self.is_idle)
        monkeypatch.setattr(clock_exchange, "EXCHANGES", 20)
        monkeypatch.setattr(clock_exchange, "READINGS", 30)
        monkeypatch.setattr(clock_exchange, "_PUBLISHED", 1 << 22)  # a thread begins late
        monkeypatch.setattr(clock_exchange, "_LOOKS", 1000)

    def allocate(self, size: int) -> int:
        self.memory = ctypes.create_string_buffer(size)
        return ctypes.addressof(self.memory)

    def launch(self, function: int, programs: int, threads: int, stream: int, taken: Any) -> None:
        (cell, _), (count, _), _, (most, _) = taken
        assert (programs, threads, stream, count, most) == (1, 1, 7, 20, 30)
        words = (ctypes.c_uint64 * (48 + 3 * most)).from_address(cell)

        def now() -> int:
            return self.timer.at(time.perf_counter_ns())

        def run() -> None:
            for number in range(1, self.answers + 1):
                while words[0] != number:
                    time.sleep(0)
                words[16] = now() << 2 | number & 3
            if self.answers < count:
                return
            last = 0
            for place in range(48, 48 + 3 * most, 3):
                while words[32] == last:
                    time.sleep(0)
                words[place], words[place + 1], words[place + 2] = now(), words[32], now()
                last = words[place + 1]
            words[16] = 0

        self.thread = threading.Thread(target=run)
        self.thread.start()

    def is_idle(self, stream: int) -> bool:
        assert stream == 7
        return not self.thread.is_alive()


@pytest.mark.parametrize("step", [1, 32, 1_000_000])
def test_the_host_talks_to_the_kernel(monkeypatch: pytest.MonkeyPatch, step: int) -> None:
    """Also where the timer stands still from one answer to the next."""
    timer = Timer(step=step)
    Device(timer, answers=20).install(monkeypatch)
    monkeypatch.setattr(clock_exchange, "LEAST_WAY_NS", 0)  # between threads of one CPU
    link = clock_exchange._link.__wrapped__(0)
    monkeypatch.setattr(clock_exchange, "_link", lambda device: link)
    exchanges, readings = clock_exchange._told(0)
    assert all(e.asked_ns <= e.answered_ns for e in exchanges)
    assert all(r.found_ns < r.next_ns for r in readings)
    assert len(readings) > 20
    timer.assert_within(tightest(exchanges, readings))


def test_a_kernel_that_ends_without_an_answer_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    Device(Timer(), answers=3).install(monkeypatch)
    link = clock_exchange._link.__wrapped__(0)
    monkeypatch.setattr(clock_exchange, "_link", lambda device: link)
    with pytest.raises(clock_exchange.ProfileError, match="GPU 0 did not tell its global timer"):
        clock_exchange._told(0)
