"""A monitor on a GPU that is not there (tests/compile/test_gpu_sessions.py): what it takes while
launches go on, by which calls of the driver."""

import ctypes
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import proton
from proton.monitoring import Monitor, monitor
from proton.monitoring.sketch import RELATIVE_ERROR
from proton.monitoring.statistics import KERNEL, SCOPE
from proton.runtime.nvidia import cuda
from proton.runtime.nvidia import graph as gpu_graph
from proton.runtime.nvidia import recorder as gpu_recorder
from proton.runtime.session import open_sessions
from proton.runtime.session import session as sessions
from proton.runtime.session.launch_budget import KernelGate, LaunchBudget, TimedLaunches
from tests.chosen_launches import each_second
from tests.compile.test_gpu_sessions import (
    BLOCK,
    WARPS,
    ProfilingDriver,
    kernels,
    wait_until,
)

FOREVER = 1e6  # s


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch) -> ProfilingDriver:
    fake = ProfilingDriver()
    fake.install(monkeypatch)
    return fake


@pytest.fixture
def of(driver: ProfilingDriver, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    """A monitor that looks when it is told to; each second launch of a kernel is recorded, the
    others are timed."""
    monkeypatch.setattr(LaunchBudget, "choose", each_second)
    monkeypatch.setattr(monitor, "POLL_S", FOREVER)
    driver.in_use = 0
    with proton.monitor(tmp_path, period_s=FOREVER) as made:
        yield made
        driver.arrived.set()


@pytest.fixture
def default_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    """On it the end of each launch is seen; elsewhere that of each sixteenth in a row."""
    monkeypatch.setattr(cuda, "current_stream", lambda device: 0)


@pytest.fixture
def look(of: Monitor, monkeypatch: pytest.MonkeyPatch) -> Callable[[], Any]:
    """Ends a period; no device is waited for meanwhile, and the default stream is not used."""

    def refuse(*_: Any) -> Any:
        raise AssertionError("a monitor waits for no device")

    def period() -> Any:
        with monkeypatch.context() as patched:
            patched.setattr(cuda, "synchronize", refuse)
            patched.setattr(cuda, "read_device", refuse)
            of._keep(*open_sessions.take_program())
            of._publish()
        return of.snapshot

    return period


def recorder() -> Any:
    return sessions.recorder_of("cuda")


def all_arrived() -> bool:
    return all(launch.arrived is not None for launch in recorder().pending)


def test_what_has_arrived_is_taken_while_launches_go_on(
    driver: ProfilingDriver,
    of: Monitor,
    look: Callable[[], Any],
    default_stream: None,
    tmp_path: Path,
) -> None:
    rounds, plain = kernels()
    x = driver.array("float32")
    state = recorder().state
    left = None
    for number in range(1, 4):
        for _ in range(20):
            rounds[2,](x, 5)
            plain[2,](x, 5)
        wait_until(all_arrived)
        found = look()
        assert found.kernels["rounds"].launches == 20 * number
        assert found.kernels["rounds"].recorded == 10 * number
        durations = found.durations[SCOPE, "rounds", "round"]
        assert durations.count == 10 * number * 2 * WARPS * 5
        recording = proton.Run.load(max(tmp_path.glob("*"))).frame
        values = recording[recording["kind"] == "scope"]["corrected_ns"]
        wanted = np.quantile(values, 0.5, method="lower")
        assert durations.quantiles[0.5] == pytest.approx(wanted, rel=RELATIVE_ERROR)
        # The driver's times: 1 us without records, 3 with them.
        assert found.durations[KERNEL, "rounds", ""].total_ns == 1000 * 10 * number
        (budget,) = (k for k in of.budget.kernels.values() if k.kernel == "rounds")
        assert set(budget.recorded.window) == {3000}
        assert set(budget.plain.window) == {1000}
        assert budget.recorded.host
        assert budget.plain.host
        # A kernel without scopes is timed alone.
        assert found.kernels["plain"].launches == 20 * number
        assert found.kernels["plain"].recorded == 0
        assert found.durations[KERNEL, "plain", ""].total_ns == 1000 * 10 * number
        # Nothing of it is left.
        assert not recorder().pending
        assert not recorder().plain
        assert not recorder().run_times.timings
        with state.lock:
            for device in recorder().devices.values():
                device.settle()
        assert left in (None, state.memory_left)
        left = state.memory_left
    rounds[2,](x, 5)
    of.stop()
    assert not driver.queued, "events are given back"
    assert not driver.allocations
    assert not driver.host
    assert not driver.streams


def test_what_has_not_ended_stays(
    driver: ProfilingDriver, of: Monitor, look: Callable[[], Any], default_stream: None
) -> None:
    rounds, _ = kernels()
    x = driver.array("float32")
    driver.arrived.clear()
    for _ in range(6):
        rounds[2,](x, 5)
    found = look()
    assert found.kernels["rounds"].launches == 6
    assert found.kernels["rounds"].recorded == 0
    assert len(recorder().pending) == 3
    assert len(recorder().run_times.timings) == 6
    driver.arrived.set()
    wait_until(all_arrived)
    assert look().kernels["rounds"].recorded == 3
    assert not recorder().run_times.timings


def test_no_more_launches_are_timed_than_are_known(
    driver: ProfilingDriver, of: Monitor, monkeypatch: pytest.MonkeyPatch
) -> None:
    rounds, _ = kernels()
    x = driver.array("float32")
    rounds[2,](x, 5)
    recorder().run_times.most = 4
    driver.arrived.clear()
    for _ in range(40):
        rounds[2,](x, 5)
    assert len(recorder().run_times.timings) == 4
    driver.arrived.set()


def captured(driver: ProfilingDriver, launches: int) -> list[Callable[[], None]]:
    """The graph of launches of a kernel that are captured."""
    rounds, _ = kernels()
    driver.capturing = True
    for _ in range(launches):
        rounds[2,](driver.array("float32"), 5)
    driver.capturing = False
    return driver.graph


def test_of_a_graph_some_launches_are_recorded_and_the_newest_replay_is_fetched(
    driver: ProfilingDriver, of: Monitor, look: Callable[[], Any]
) -> None:
    graph = captured(driver, 4)
    assert len(graph) == 2 * 2, "two of four, each with what keeps it"
    for number in range(1, 4):
        for _ in range(3 * number):
            for node in graph:
                node()
        found = look()
        assert found.kernels["rounds"].launches == 4
        assert found.kernels["rounds"].recorded == 2 * number
        assert found.durations[SCOPE, "rounds", "round"].count == 2 * number * 2 * WARPS * 5
        assert found.dropped == 0
    assert look().kernels["rounds"].recorded == 2 * 3, "no replay since"
    assert not recorder().pending
    size = gpu_graph.HEAD_BYTES + (1 + gpu_recorder.SAMPLED_SLOTS) * 2 * BLOCK.bytes
    logs = [recording.captured.bytes for recording in recorder().captured]
    assert logs == [size, size]
    for node in graph:
        node()
    of.stop()
    assert of.snapshot is not None
    assert of.snapshot.kernels["rounds"].recorded == 2 * 4
    assert of.snapshot.dropped == 0


@pytest.mark.parametrize("more", range(7))
def test_a_replay_that_others_wrote_over_is_not_read(driver: ProfilingDriver, more: int) -> None:
    """Replays that come while the newest slot is copied; the count wraps around."""
    slots, size = gpu_recorder.SAMPLED_SLOTS, BLOCK.bytes
    memory = np.zeros(gpu_graph.HEAD_BYTES + slots * size, np.uint8)
    log = memory.ctypes.data
    count = (1 << 32) - 2
    launch = gpu_graph.CapturedLaunch(0, 0, log, size, slots, 1, BLOCK, seen=count - 1)

    def replay() -> None:
        nonlocal count
        slot = gpu_graph.HEAD_BYTES + count % slots * size
        memory[slot : slot + size] = count % 251
        count = (count + 1) % (1 << 32)
        memory[:4].view("<u4")[0] = count

    def read(address: int, wanted: int) -> np.ndarray:
        data = np.frombuffer(ctypes.string_at(address, wanted), np.uint8)
        if address > log:
            for _ in range(more):
                replay()
        return data

    replay()
    newest = (count - 1) % 251
    since, found = launch.newest(read)
    assert since == 2
    # The replay `slots` later may have begun to write there when the one before it is counted.
    assert len(found) == (more + 1 < slots)
    for data in found:
        assert (data == newest).all()
    since, found = launch.newest(read)
    assert (since, len(found)) == (more, bool(more) and more + 1 < slots)


def test_a_capture_ahead_of_all_launches_is_no_error(
    driver: ProfilingDriver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A session would have to measure clocks first, and says so; a monitor records later ones."""

    def choose(self: LaunchBudget, kernel: str, grid: object) -> TimedLaunches:
        self.gates.setdefault(kernel, KernelGate()).left = 0
        of = self.of(kernel, grid)
        assert of is not None
        return of.recorded

    monkeypatch.setattr(LaunchBudget, "choose", choose)
    with proton.monitor(tmp_path, period_s=FOREVER) as of:
        assert not captured(driver, 3)
        assert [event[0] for event in driver.events].count("launch") == 3
        rounds, _ = kernels()
        rounds[1,](driver.array("float32"), 5)
    assert of.snapshot is not None
    assert of.snapshot.kernels["rounds"].recorded == 1
