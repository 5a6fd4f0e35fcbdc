"""How the timers of two GPUs lie to each other, against timers whose relation is known exactly."""

import contextlib
import ctypes
import random
import threading
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proton.base.targets import GPUTarget
from proton.runtime.nvidia import cuda, peer_exchange
from proton.runtime.nvidia.clock_exchange import LEAST_WAY_NS, ClockExchange, tightest
from tests.compile.fake_cuda import check_loadable
from tests.compile.test_clock_exchange import Timer


@given(
    seed=st.integers(0, 1 << 32),
    drifts=st.tuples(*[st.sampled_from([0.0, 2e-5, -4e-5])] * 2),
    step=st.sampled_from([1, 32]),
    ways=st.tuples(*[st.integers(LEAST_WAY_NS, 900)] * 2),
)
def test_the_true_relation_is_within_the_bound(
    seed: int, drifts: tuple[float, float], step: int, ways: tuple[int, int]
) -> None:
    of, now = random.Random(seed), 1_000_000_000
    first, other = (Timer(drift, step) for drift in drifts)
    exchanges = []
    for _ in range(100):
        read = now + ways[0] + of.randrange(100)
        seen = read + ways[1] + of.randrange(100)
        exchanges.append(ClockExchange(first.at(now), other.at(read), first.at(seen)))
        now = seen + of.randrange(40)
    found = tightest(peer_exchange._stepped(exchanges))
    # Some moment within the error of when the first one said so, the other one said that.
    at = (found.host_ns - first.at(0)) / (1 + drifts[0])
    error = found.error_ns + step + 2
    assert other.at(at - error) - step <= found.timer_ns <= other.at(at + error)
    assert found.error_ns <= (sum(ways) + 200) / 2 - LEAST_WAY_NS + 2 * step + 3


class Peers:
    """Two GPUs, as threads that answer as the kernels do, with the host's clock."""

    ahead = 777_000  # of the second timer

    def __init__(self, monkeypatch: pytest.MonkeyPatch, answers: int) -> None:
        self.answers, self.memory = answers, list[Any]()
        self.threads: dict[int, threading.Thread] = {}
        self.device, self.streams = 0, 0
        peer_exchange._peers.cache_clear()
        for name in ("on_device", "allocate_host", "new_stream", "Memory", "launch_once",
                     "is_idle", "write_word"):  # fmt: skip
            monkeypatch.setattr(cuda, name, getattr(self, name))
        monkeypatch.setattr(cuda, "target_of", lambda device: GPUTarget("cuda", 90))
        monkeypatch.setattr(cuda, "load", lambda code, name, _: check_loadable(code, name) or 1)
        monkeypatch.setattr(peer_exchange, "EXCHANGES", 50)
        monkeypatch.setattr(peer_exchange, "GIVE_UP_NS", 300_000_000)

    @contextlib.contextmanager
    def on_device(self, device: int) -> Any:
        before, self.device = self.device, device
        yield
        self.device = before

    def allocate_host(self, size: int) -> int:
        self.memory.append(ctypes.create_string_buffer(size))
        return ctypes.addressof(self.memory[-1])

    def new_stream(self) -> int:
        self.streams += 1
        return self.streams

    def Memory(self, device: int, most: int, *lent_to: int) -> Any:
        assert (device, *lent_to) in {(0, 1), (1, 0)}
        peers = self

        class Lent:
            address = peers.allocate_host(8)

            def grow(self, size: int) -> None:
                assert size == most

        return Lent()

    def write_word(self, address: int, value: int) -> None:
        ctypes.c_uint64.from_address(address).value = value

    def launch_once(
        self, function: int, programs: int, threads: int, stream: int, taken: Any
    ) -> None:
        (own, _), (peer, _), (log, _), (count, _), _ = taken
        mine, its = (ctypes.c_uint64.from_address(address) for address in (own, peer))
        words = (ctypes.c_uint64 * (3 * count)).from_address(log)
        device = self.device

        def ask() -> None:
            for number in range(self.answers):
                words[3 * number] = time.perf_counter_ns()
                its.value = number + 1
                while mine.value != number + 1:
                    time.sleep(0)
                words[3 * number + 1] = time.perf_counter_ns()

        def answer() -> None:
            for number in range(self.answers):
                while mine.value != number + 1:
                    time.sleep(0)
                words[3 * number + 2] = time.perf_counter_ns() + self.ahead
                its.value = number + 1

        self.threads[stream] = threading.Thread(target=answer if device else ask)
        self.threads[stream].start()

    def is_idle(self, stream: int) -> bool:
        return not self.threads[stream].is_alive()


def test_two_gpus_tell_each_other_their_timers(monkeypatch: pytest.MonkeyPatch) -> None:
    Peers(monkeypatch, answers=50)
    for _ in range(2):
        found = peer_exchange.peer_pair(0, 1)
        assert found is not None
        assert abs(found.other_ns - found.first_ns - Peers.ahead) <= found.error_ns


def test_gpus_that_have_no_time_tell_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    Peers(monkeypatch, answers=peer_exchange.FEWEST - 1)
    assert peer_exchange.peer_pair(0, 1) is None
    peers = Peers(monkeypatch, answers=50)
    monkeypatch.setattr(cuda, "is_idle", lambda stream: False)
    monkeypatch.setattr(peer_exchange, "GIVE_UP_NS", 1000)
    assert peer_exchange.peer_pair(0, 1) is None
    monkeypatch.setattr(cuda, "is_idle", peers.is_idle)
    assert peer_exchange.peer_pair(0, 1) is None, "their kernels may still be about to run"
    for thread in peers.threads.values():
        thread.join()


def test_gpus_that_do_not_reach_each_other_tell_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    Peers(monkeypatch, answers=50)

    def refused(*of: int) -> None:
        raise cuda.CUDAError("cuMemSetAccess: CUDA_ERROR_INVALID_DEVICE")

    monkeypatch.setattr(cuda, "Memory", refused)
    assert peer_exchange.peer_pair(0, 1) is None
    peer_exchange._peers.cache_clear()
