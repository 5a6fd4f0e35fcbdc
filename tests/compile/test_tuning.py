"""Autotuning for a GPU that is not there: what is compiled, what reaches the driver, how it is
measured."""

import math
from collections.abc import Callable
from typing import Any

import pytest

import proton
import proton.language as tl
from proton import testing
from proton.compiling import ahead as compile_ahead
from proton.runtime.backend import backend_named
from proton.runtime.nvidia import cuda
from proton.runtime.nvidia import timer as gpu_timer
from tests.compile.fake_cuda import STREAM, FakeDriver


@proton.jit
def scale(x_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x_ptr + offsets, tl.load(x_ptr + offsets, mask=offsets < n) * 2, mask=offsets < n)


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch) -> FakeDriver:
    fake = FakeDriver()
    fake.install(monkeypatch)
    return fake


def test_what_is_tried_reaches_the_gpu(
    driver: FakeDriver, cache_dir: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried, compiled = iter((3.0, 1.0, 2.0)), []
    ahead = compile_ahead.compile_ahead
    monkeypatch.setattr(
        "proton.runtime.tuning.autotuner.compile_ahead",
        lambda requests: (compiled.extend(requests), ahead(requests)),
    )

    def bench(call: Callable[[], Any], quantiles: Any) -> list[float]:
        call()
        return [next(tried)] * 3

    sizes = ((128, 4), (256, 8), (1024, 1), (1 << 20, 1))  # the last has too many elements
    configs = [proton.Config({"BLOCK": block}, num_warps=warps) for block, warps in sizes]
    tuned = proton.autotune(configs, key=["n"], do_bench=bench)(scale)
    with proton.knobs.scope(compile_processes=2):
        kernel = tuned[lambda meta: (proton.cdiv(meta["n"], meta["BLOCK"]),)](
            driver.array("float32"), 3000
        )
    assert len(compiled) == 4
    assert kernel.from_cache  # another process made it
    assert kernel.metadata["num_warps"] == 8
    launches = [(launch.grid[0], launch.block[0]) for launch, _ in driver.launches]
    assert launches == [(24, 128), (12, 256), (3, 32), (12, 256)]
    assert [timing[0] for timing in tuned.configs_timings.values()] == [3.0, 1.0, 2.0, math.inf]


class Queue:
    """Notes what is queued; the n-th event is at n * n ms."""

    said: list[Any]

    def __init__(self) -> None:
        Queue.said = []
        self.events = 0

    def new_event(self, is_timed: bool) -> int:
        assert is_timed
        self.events += 1
        return self.events

    def record(self, event: int, stream: int) -> None:
        assert stream == STREAM
        self.said.append("event")

    def clear(self, address: int, size: int, stream: int) -> None:
        assert (address, stream) == (0xCAFE, STREAM)
        self.said.append("clear")

    def wait(self, event: int) -> None:
        assert event <= self.events

    def elapsed_ns(self, begin: int, end: int) -> int:
        return (end * end - begin * begin) * 1_000_000

    def release_event(self, event: int) -> None:
        self.events -= 1


def test_do_bench_puts_events_around_each_call(
    driver: FakeDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory = []
    monkeypatch.setattr(gpu_timer, "Queue", Queue)
    monkeypatch.setattr(cuda, "synchronize", lambda device: None)
    monkeypatch.setattr(cuda, "allocate_device", lambda size: memory.append(size) or 0xCAFE)
    monkeypatch.setattr(cuda, "release_device", memory.append)
    times = testing.do_bench(
        lambda: Queue.said.append("call") if hasattr(Queue, "said") else None,
        warmup=1,
        rep=2,  # of 0.6 ms, as three ms pass between the first two events, in five calls
        return_mode="all",
        backend=backend_named("cuda"),
    )
    assert times == [16.0 - 9.0, 36.0 - 25.0, 64.0 - 49.0]
    measured = ["clear", "event", "call", "event"] * 3
    assert Queue.said == ["event", *["clear", "call"] * 5, "event", "call", *measured]
    assert memory == [256 << 20, 0xCAFE]  # what was taken was given back
