"""Sessions on a GPU that is not there: memory, copies, launches, and what the run says of them.

The stand-in writes into a profile buffer what a kernel would write, by tests/pure/synthetic.py.
"""

import contextlib
import ctypes
import functools
import mmap
import sys
import threading
import time
import types
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import proton
import proton.language as tl
from proton.base.errors import LaunchError, ProfileError
from proton.runtime.backend import backend_named
from proton.runtime.nvidia import buffers as gpu_buffers
from proton.runtime.nvidia import cuda, graph_keep
from proton.runtime.nvidia import graph as gpu_graph
from proton.runtime.nvidia import profile as gpu_profile
from proton.runtime.nvidia import recorder as gpu_recorder
from proton.runtime.nvidia import slabs as gpu_slabs
from proton.runtime.nvidia.buffers import LaunchBuffer, RingBuffer
from proton.runtime.nvidia.calibration import GPUCalibration
from proton.runtime.nvidia.clock_exchange import TimerPair
from proton.runtime.nvidia.queue import Queue
from proton.runtime.nvidia.slabs import Slabs, Taker
from proton.runtime.session import session as sessions
from proton.trace import wire
from proton.trace.gpu_peers import PeerPair
from proton.trace.model import Strategy
from proton.trace.profile import KernelProfile
from tests.compile.fake_cuda import STREAM, FakeDriver
from tests.pure import synthetic

TIMER = 1_790_000_000_000_000_000
SMS, WARPS, CAPACITY = 3, 4, 128  # as many records as shared memory has room for
BLOCK = wire.Block(WARPS, CAPACITY, wire.RecordSchema(0, 32))
KEEP = 1
OWN = 0xBEEF  # the streams of the profiler: the numbers behind this
STEP = 1 << 20  # by which a ring grows here


def zeroed(size: int) -> "ctypes.Array[ctypes.c_char]":
    """Memory of zeros, of which there is what is written."""
    return (ctypes.c_char * size).from_buffer(mmap.mmap(-1, size))


class FakeMemory:
    """`cuda.Memory` on the host."""

    def __init__(self, driver: "ProfilingDriver", most: int) -> None:
        self.driver, self.most, self.size = driver, most, 0
        self.address = driver._allocate_device(most)

    def grow(self, size: int) -> None:
        assert self.size + size <= self.most
        if self.driver.scarce <= self.size:
            raise cuda.CUDAError("CUDA_ERROR_OUT_OF_MEMORY")
        self.size += size

    def release(self) -> None:
        self.driver.allocations.pop(self.address)


@dataclass
class ProfilingDriver(FakeDriver):
    """A driver whose memory is the host's: `events` has what was queued, in order."""

    events: list[tuple[Any, ...]] = field(default_factory=list)
    scarce: int = 1 << 40  # bytes of a ring after which there are no more
    host: dict[int, Any] = field(default_factory=dict)
    capturing: bool = False
    broken: str = ""  # what the driver says when somebody waits for it
    arguments: int = 2  # of the kernel
    turns: int = 5
    flush: bool = False  # the kernel takes a slab and the number of the launch, too
    before_launch: Callable[[], Any] = lambda: None
    in_use: int | None = None
    allocations: dict[int, Any] = field(default_factory=dict)
    queued: list[int] = field(default_factory=list)  # events that there are
    recorded: dict[int, int] = field(default_factory=dict)  # what had been queued before each
    arrived: threading.Event = field(default_factory=threading.Event)  # what `wait` waits for
    graph: list[Callable[[], None]] = field(default_factory=list)  # what was captured
    streams: list[int] = field(default_factory=list)  # of the profiler, in use
    made: int = 0  # streams that were made

    def install(self, monkeypatch: Any) -> None:
        super().install(monkeypatch)
        self.arrived.set()
        monkeypatch.setattr(gpu_recorder, "Queue", lambda: self)
        monkeypatch.setattr(cuda, "Memory", lambda device, most: FakeMemory(self, most))
        monkeypatch.setattr(cuda, "allocate_host", self._allocate_host)
        monkeypatch.setattr(cuda, "release_host", lambda address: self.host.pop(address))
        monkeypatch.setattr(cuda, "synchronize", self._synchronize)
        monkeypatch.setattr(cuda, "device_name", lambda device: "NVIDIA Nothing")
        monkeypatch.setattr(cuda, "device_in_use", lambda: self.in_use)
        monkeypatch.setattr(cuda, "new_stream", self._new_stream)
        monkeypatch.setattr(cuda, "release_stream", lambda stream: self.streams.remove(stream))
        monkeypatch.setattr(cuda, "write_word", self._write_word)
        monkeypatch.setattr(cuda, "allocate_device", self._allocate_device)
        monkeypatch.setattr(cuda, "release_device", lambda address: self.allocations.pop(address))
        monkeypatch.setattr(cuda, "read_device", self._read_device)
        monkeypatch.setattr(cuda, "capture_aside", contextlib.nullcontext)
        monkeypatch.setattr(cuda, "launch_once", self._launch_once)
        for module in (gpu_profile, gpu_buffers):
            monkeypatch.setattr(module, "STEP_BYTES", STEP)
        monkeypatch.setattr(gpu_profile, "MOST_BYTES", 16 * STEP)
        monkeypatch.setattr(cuda, "total_memory", lambda device: 1)
        monkeypatch.setattr(gpu_buffers, "STAGING_BYTES", STEP // 8)
        monkeypatch.setattr(cuda, "enter_primary_context", lambda device: None)
        monkeypatch.setattr(cuda, "on_device", lambda device: contextlib.nullcontext())
        monkeypatch.setattr(cuda, "capture_beside", self._capture_beside)
        monkeypatch.setattr(graph_keep, "keep", lambda device: KEEP)
        monkeypatch.setattr(cuda, "attribute", lambda device, name: SMS)
        monkeypatch.setattr(cuda, "programs_per_sm", lambda function, threads, shared: 8)
        monkeypatch.setattr(gpu_profile, "calibrate", lambda device, bits: GPUCalibration(9.0, 2.0))
        monkeypatch.setattr(gpu_profile, "timer_pair", self._timer_pair)
        monkeypatch.setattr(gpu_recorder, "peer_pair", self._peer_pair)

    def _timer_pair(self, device: int) -> TimerPair:
        now = time.perf_counter_ns()
        return TimerPair(TIMER + now, now, 3000.0)

    def _peer_pair(self, first: int, other: int) -> PeerPair:
        now = TIMER + time.perf_counter_ns()
        return PeerPair(now, now + 100 * other, 400.0)

    def _allocate_host(self, size: int) -> int:
        block = zeroed(size)
        self.host[ctypes.addressof(block)] = block
        return ctypes.addressof(block)

    def _allocate_device(self, size: int) -> int:
        block = zeroed(max(1, size))
        self.allocations[ctypes.addressof(block)] = block
        return ctypes.addressof(block)

    def _new_stream(self) -> int:
        self.made += 1
        self.streams.append(OWN + self.made)
        return OWN + self.made

    def _write_word(self, address: int, value: int) -> None:
        ctypes.c_uint32.from_address(address).value = value

    def set_word(self, address: int, value: int, stream: int) -> None:
        assert stream in self.streams
        self._write_word(address, value)

    def synchronize(self, stream: int) -> None:
        assert stream in self.streams
        self._synchronize(0)

    def is_done(self, event: int) -> bool:
        assert event in self.recorded
        self._synchronize(0)
        return self.arrived.is_set()

    def _read_device(self, address: int, size: int) -> np.ndarray:
        return np.frombuffer(ctypes.string_at(address, size), np.uint8).copy()

    def clear(self, address: int, size: int, stream: int) -> None:
        assert stream in self.streams, "nothing is cleared on the stream of the kernels"
        self.events.append(("clear", address, size))
        ctypes.memset(address, 0, size)

    def elapsed_ns(self, begin: int, end: int) -> int:
        """Launches with records take longer than others."""
        between = self.events[self.recorded[begin] : self.recorded[end]]
        (launch,) = [event for event in between if event[0] == "launch"]
        return 3000 if launch[1] else 1000

    def new_event(self, is_timed: bool = False) -> int:
        self.queued.append(max([0, *self.queued, *self.recorded]) + 1)
        return self.queued[-1]

    def record(self, event: int, stream: int) -> None:
        assert event in self.queued
        self.recorded[event] = len(self.events)

    def wait(self, event: int) -> None:
        assert event in self.recorded
        self.arrived.wait()
        self._synchronize(0)

    def release_event(self, event: int) -> None:
        self.queued.remove(event)

    def _launch_once(self, *_: Any) -> None:
        raise AssertionError("nothing is launched but the user's kernels")

    def _capture_beside(
        self, function: int, programs: int, threads: int, stream: int, arguments: list[Any]
    ) -> None:
        """What the kernel of graph.py does."""
        assert self.capturing
        assert (function, stream) == (KEEP, STREAM)
        values = [value for value, _ in arguments]
        buffer, log, size, blocks, block, segment, slots = values[:7]
        _, each, head_rows, head, record, capacity = values[7:]

        def keep() -> None:
            number = ctypes.c_uint32.from_address(log)
            slot = log + gpu_graph.HEAD_BYTES + number.value % slots * size
            ctypes.memmove(slot, buffer, size)
            # Behind what was written may be anything.
            for first in range(slot, slot + blocks, block):
                for unit in range(each - head_rows):
                    count = ctypes.c_uint32.from_address(first + wire.HEADER_BYTES + 8 * unit)
                    written = min(count.value, capacity) * record
                    place = first + head + unit * segment + written
                    ctypes.memset(place, 0xA5, segment - written)
            # Nothing is clear but for how much of the slab is taken.
            ctypes.memset(buffer, 0xA5, blocks)
            if blocks < size:
                slab, behind = (place + blocks + wire.SLAB_HEAD_BYTES for place in (slot, buffer))
                taken = 16 * ctypes.c_uint32.from_address(buffer + blocks).value
                room = buffer + size - behind
                if taken < room:
                    ctypes.memset(slab + taken, 0xA5, room - taken)
                ctypes.memset(behind, 0xA5, room)
                self._write_word(buffer + blocks, 0)
            number.value += 1

        self.graph.append(keep)

    def _synchronize(self, device: int) -> None:
        if self.broken:
            raise cuda.CUDAError(self.broken)

    def is_capturing(self, stream: int) -> bool:
        return self.capturing

    def copy_to_host(self, host: int, address: int, size: int, stream: int) -> None:
        assert stream in self.streams, "nothing is copied on the stream of the kernels"
        self._synchronize(0)
        self.events.append(("copy", address, size))
        ctypes.memmove(host, address, size)

    def copy_rows(
        self, host: int, address: int, pitch: int, width: int, height: int, stream: int
    ) -> None:
        assert stream in self.streams
        self.events.append(("rows", width, height))
        for row in range(height):
            ctypes.memmove(host + row * width, address + row * pitch, width)

    def clear_rows(self, address: int, pitch: int, width: int, height: int, stream: int) -> None:
        assert stream in self.streams
        for row in range(height):
            ctypes.memset(address + row * pitch, 0, width)

    def _launch(self, config: int, function: int, parameters: int, extra: int | None) -> int:
        recorder = sessions.recorder_of("cuda")
        devices = recorder.devices.values() if recorder else ()
        under_way = recorder.state.running.launches if recorder else ()
        is_captured = any(launch.captured is not None for launch in under_way)
        is_instrumented = is_captured or any(device.ring.held for device in devices)
        self.before_launch()
        kinds = [ctypes.c_uint64, ctypes.c_int32][: self.arguments]
        added = [ctypes.c_uint64] * is_instrumented
        if self.flush and is_instrumented:
            added += [ctypes.c_uint64, ctypes.c_uint32]
        self.read = kinds + added
        status = super()._launch(config, function, parameters, extra)
        launch, values = self.launches[-1]
        instrumented = values[self.arguments] if is_instrumented else 0
        self.events.append(("launch", instrumented))
        if instrumented and not self.broken:
            if self.flush:
                data = flushed(launch.grid, self.turns, *values[-2:])
            else:
                data = written(launch.grid, self.turns)
            room = data.size  # other layouts than this one may have less
            for ring in (device.ring for device in devices if not self.capturing):
                taken = {ring.address + p.start: p.size for p in list(ring.buffers)}
                room = min(room, taken[instrumented])
            if self.capturing:
                later = data.tobytes()
                self.graph.append(lambda: ctypes.memmove(instrumented, later, room))
            else:
                ctypes.memmove(instrumented, data.tobytes(), room)
        return status


def written(grid: tuple[int, int, int], turns: int) -> np.ndarray:
    """What the kernel `rounds` leaves: each warp one slice a turn, 1000 cycles each, 2 a ns."""
    kernel = synthetic.kernel(
        units=WARPS, clock_bits=32, target="cuda:90", table=synthetic.scopes(1)
    )
    programs = []
    for number in range(grid[0]):
        start = (1 << 40) + number * 100
        units = [
            [
                synthetic.Record(start + 1000 * k, start + 1000 * (k + 1), 0, 0, k)
                for k in range(turns)
            ]
            for _ in range(WARPS)
        ]
        end = start + 1000 * turns
        programs.append(
            synthetic.Written(
                units,
                hardware=number % SMS,
                clock=(start, end),
                timer=(TIMER + start // 2, TIMER + end // 2),
            )
        )
    return synthetic.pack_launch(kernel, grid, CAPACITY, programs).buffer


FLUSH_CAPACITY = 8
FLUSH_BLOCK = wire.Block(WARPS, FLUSH_CAPACITY, wire.RecordSchema(0, 32))
CHUNK_BYTES = 32 + 16 * FLUSH_CAPACITY


def flushed(grid: tuple[int, int, int], turns: int, slab: int, number: int) -> np.ndarray:
    """The same under strategy flush, by the protocol of proton/trace/wire.py: units take turns,
    each takes a chunk of the slab for its first record of eight, or else its own segment."""
    kernel = synthetic.kernel(
        units=WARPS, clock_bits=32, target="cuda:90", table=synthetic.scopes(1)
    )
    programs = []
    for program in range(grid[0]):
        start = (1 << 40) + program * 100
        clocks = start, start + 1000 * turns
        timers = TIMER + clocks[0] // 2, TIMER + clocks[1] // 2
        empty = [[] for _ in range(WARPS)]
        programs.append(synthetic.Written(empty, clock=clocks, timer=timers, table=[turns] * WARPS))
    blocks = synthetic.pack_launch(kernel, grid, FLUSH_CAPACITY, programs).buffer.copy()
    taken, room = (ctypes.c_uint32.from_address(slab + 4 * n) for n in range(2))
    words, block = CHUNK_BYTES // 16, blocks.size // grid[0]
    places: dict[tuple[int, int], int] = {}
    for turn in range(turns):
        for program in range(grid[0]):
            for unit in range(WARPS):
                slot = turn % FLUSH_CAPACITY
                if slot == 0:
                    segment = synthetic.segments_at(WARPS) + unit * FLUSH_CAPACITY * 16
                    places[program, unit] = blocks.ctypes.data + program * block + segment
                    if taken.value + words <= room.value:
                        chunk = slab + 16 + 16 * taken.value
                        head = np.array([program, unit, turn, 0, number, CHUNK_BYTES, 0, 0], "<u4")
                        ctypes.memmove(chunk, head.tobytes(), 32)
                        places[program, unit] = chunk + 32
                    taken.value += words
                begin = (1 << 40) + program * 100 + 1000 * turn
                record = synthetic.Record(begin, begin + 1000, 0, 0, turn)
                data = synthetic.pack_record(record, 0, 32)
                ctypes.memmove(places[program, unit] + 16 * slot, data, 16)
    return blocks


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch) -> ProfilingDriver:
    fake = ProfilingDriver()
    fake.install(monkeypatch)
    return fake


def kernels() -> tuple[Any, Any]:
    """A kernel with a scope and one without, which nobody has compiled yet."""

    @proton.jit
    def rounds(x_ptr, n):
        lane = tl.arange(0, 128)
        x = tl.load(x_ptr + lane)
        for _ in range(n):
            with proton.scope("round"):
                x = x * 0.5 + 1.0
        tl.store(x_ptr + lane, x)

    @proton.jit
    def plain(x_ptr, n):
        tl.store(x_ptr, n)

    return rounds, plain


def test_a_launch_is_recorded_on_its_own_stream(driver: ProfilingDriver) -> None:
    rounds, _ = kernels()
    x = driver.array("float32")
    with proton.profile("run") as run, proton.scope("outer"):
        for _ in range(3):  # the first takes the slow path
            kernel = rounds[7,](x, 5)
    names = [event[0] for event in driver.events]
    assert names.count("launch") == 3
    assert set(names) == {"launch", "copy", "clear"}
    assert not driver.allocations
    assert not driver.host
    frame = run.frame
    scopes = frame[frame.kind == "scope"]
    assert len(scopes) == 3 * 7 * WARPS * 5
    assert set(scopes.sm) == {0, 1, 2}
    assert set(scopes.warp) == {0, 1, 2, 3}
    assert set(scopes.iteration) == set(range(5))
    assert set(scopes.dur_ns) == {500}
    assert set(scopes.cycles) == {1000}
    assert set(frame.cycles[frame.kind != "scope"]) == {-1}
    assert set(run.launches.scope) == {"outer"}
    options = run.kernels[0].options
    assert options["registers"] == kernel.n_regs
    assert options["blocks_per_sm"] == options["blocks_per_sm_off"] == 8
    assert (run.kernels[0].target, run.kernels[0].units) == ("cuda:90", WARPS)
    (scope,) = run.kernels[0].scopes
    assert 'scope("round")' in Path(scope.file).read_text().splitlines()[scope.line - 1]
    (clock,) = run.raw.gpus
    assert (clock.name, clock.slice_cost_cycles, clock.timer_ns.size) == ("NVIDIA Nothing", 9.0, 2)


def test_of_each_kernel_one_launch_of_so_many_is_recorded(driver: ProfilingDriver) -> None:
    rounds, plain = kernels()
    x = driver.array("float32")
    with proton.profile("run", every_launch=3) as run:
        for _ in range(7):
            rounds[7,](x, 5)
        for _ in range(4):
            plain[3,](x, 5)
    assert [event[0] for event in driver.events].count("launch") == 11
    assert run.launches["kernel"].tolist() == ["rounds", "rounds", "plain"]


def test_compiled_code_that_is_launched_directly_is_recorded(driver: ProfilingDriver) -> None:
    rounds, _ = kernels()
    x = driver.array("float32")
    launch = backend_named("cuda").direct(rounds.warmup(proton.language.float32, 5))
    launch((7, 1, 1), STREAM, (x, 5))
    with proton.profile("run") as run:
        for _ in range(2):
            launch((7, 1, 1), STREAM, (x, 5))
    assert [event[0] for event in driver.events].count("launch") == 3
    frame = run.frame
    assert len(frame[frame.kind == "scope"]) == 2 * 7 * WARPS * 5
    assert run.launches["kernel"].tolist() == ["rounds"] * 2


def test_a_kernel_without_scopes_is_launched_as_it_is(driver: ProfilingDriver) -> None:
    _, plain = kernels()
    x = driver.array("float32")
    with proton.profile("run") as run:
        for _ in range(2):
            plain[3,](x, 5)
    assert driver.events == [("launch", 0)] * 2
    table = run.launches
    assert table["kernel"].tolist() == ["plain"] * 2
    assert table["grid"].tolist() == [(3, 1, 1)] * 2
    assert table["device"].tolist() == [0, 0]
    assert (table["dur_ns"] > 0).all()
    assert table["clock"].tolist() == ["host"] * 2
    assert run.kernels[0].options["registers"] == run.kernels[0].options["registers_off"]


def test_a_kernel_whose_scopes_hold_no_work_is_in_the_run(driver: ProfilingDriver) -> None:
    @proton.jit(noinline=True)
    def helper(x_ptr):
        with proton.scope("called"):
            tl.load(x_ptr + 2)

    @proton.jit
    def idle(x_ptr, n):
        with proton.scope("dead"):
            tl.load(x_ptr + 1)
        helper(x_ptr)
        if n * 0 > 5:
            proton.mark("never")
        tl.store(x_ptr, 1.0)

    x = driver.array("float32")
    driver.turns = 0
    with proton.profile("run", capacity=CAPACITY) as run:
        for _ in range(2):
            idle[3,](x, 7, num_warps=WARPS)
    assert run.optimized_out.values.tolist() == [["idle", 1, "dead"], ["idle", 1, "called"]]
    assert (
        run.launches[["kernel", "grid", "device", "finished"]].values.tolist()
        == [["idle", (3, 1, 1), 0, 3]] * 2
    )
    assert (run.launches["dur_ns"] == 100).all()  # programs of no length, which begin apart
    assert "optimized-out scopes: idle: dead, idle: called" in " ".join(run.summary().warnings)


def test_a_kernel_without_arguments(driver: ProfilingDriver) -> None:
    @proton.jit
    def nothing():
        proton.mark("here")

    with proton.knobs.scope(backend="cuda"):
        driver.arguments = 0
        for _ in range(2):  # the second takes the fast path
            nothing[3,]()
        with contextlib.suppress(proton.ProtonError), proton.profile("run"):
            for _ in range(2):
                nothing[3,]()
    assert len(driver.launches) == 4


def test_after_the_session_nothing_is_recorded_and_the_next_one_compiles_nothing(
    driver: ProfilingDriver,
) -> None:
    rounds, _ = kernels()
    x = driver.array("float32")
    driver.turns = 2
    for _ in range(2):
        with proton.profile("run") as run:
            rounds[1,](x, 5)
        assert run.totals.slices == WARPS * 2
    loaded = len(driver.loaded)
    assert loaded == 2, "the kernel, and the kernel with records"
    rounds[1,](x, 5)
    assert driver.events[-1] == ("launch", 0)
    assert len(driver.loaded) == loaded


def test_each_mode_is_compiled_apart(driver: ProfilingDriver) -> None:
    rounds, _ = kernels()
    x, keys = driver.array("float32"), []
    modes = [{}, {"clock_bits": 64}, {"placement": "program"}, {"granularity": "cta"}, {}]
    for options in modes:
        proton.start("run", **options)
        found = {rounds[1,](x, n).key for n in (5, 6)}
        assert len(found) == 1
        keys += found
        with contextlib.suppress(proton.ProtonError):  # the stand-in writes one layout
            proton.finalize()
    assert len(set(keys)) == len(modes) - 1
    assert keys[0] == keys[-1]
    assert len(driver.loaded) == len(modes), "the kernel, and one of each mode"


def test_an_empty_grid_launches_nothing(driver: ProfilingDriver) -> None:
    rounds, _ = kernels()
    x = driver.array("float32")
    with proton.profile("run") as run:
        for _ in range(2):
            rounds[0,](x, 5)
    assert not driver.events
    assert run.totals.launches == 0


def test_memory_is_bounded(driver: ProfilingDriver) -> None:
    rounds, _ = kernels()
    x = driver.array("float32")
    size = BLOCK.bytes * 2
    with proton.knobs.scope(profile_memory=2 * size + size // 2), proton.profile("run") as run:
        for _ in range(5):
            rounds[2,](x, 5)
    assert [e[0] for e in driver.events].count("launch") == 5
    assert (run.totals.launches, run.totals.dropped_launches) == (2, 3)


def wait_until(condition: Callable[[], Any]) -> None:
    end = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.001)


@pytest.mark.parametrize("stream", [0, STREAM])
def test_buffers_are_pieces_of_a_ring_which_are_used_again(
    driver: ProfilingDriver, monkeypatch: pytest.MonkeyPatch, stream: int
) -> None:
    monkeypatch.setattr(cuda, "current_stream", lambda device: stream)
    monkeypatch.setattr(gpu_profile, "MOST_BYTES", STEP)
    rounds, _ = kernels()
    x = driver.array("float32")
    driver.in_use = 0
    with proton.profile("run") as run:
        # Where CUDA is in use, a session prepares at once.
        (ring,) = (device.ring for device in sessions.recorder_of("cuda").devices.values())
        turns, grids = [], []
        for number in range(500):
            driver.turns = number % 7 + 1
            grids.append(number % 2 + 1)
            turns.append(driver.turns)
            rounds[grids[-1],](x, 5)
            if 2 * sum(buffer.size for buffer in list(ring.buffers)) > ring.size:
                most = 0 if stream == 0 else gpu_buffers.EVENT_EVERY - 1
                wait_until(lambda most=most: len(ring.sent) <= most)
    launched = [event[1] for event in driver.events if event[0] == "launch"]
    assert len(launched) == 500
    assert len(set(launched)) < 300, "pieces are used again"
    assert sum(event[0] == "copy" for event in driver.events) < 100, "many at once are fetched"
    scopes = run.frame[run.frame.kind == "scope"]
    found = [int((scopes.launch == number).sum()) for number in range(500)]
    assert found == [WARPS * g * t for g, t in zip(grids, turns, strict=True)]
    assert not driver.allocations
    assert not driver.host
    assert not driver.streams
    assert not driver.queued, "events are given back"


def test_a_launch_that_comes_alone_is_fetched_soon(driver: ProfilingDriver) -> None:
    """So what was recorded before a kernel that breaks the device is there."""
    rounds, _ = kernels()
    x = driver.array("float32")
    with proton.profile("run"):
        for number in range(3):
            rounds[1,](x, 5)
            wait_until(lambda n=number: [e[0] for e in driver.events].count("copy") == n + 1)
            time.sleep(2 * gpu_buffers.PAUSE_S)


def test_nothing_is_fetched_while_launches_come_in_quick_succession(
    driver: ProfilingDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """But when they have ended, and then all of it."""
    monkeypatch.setattr(cuda, "current_stream", lambda device: 0)
    monkeypatch.setattr(gpu_buffers, "PART_BYTES", 3 * BLOCK.bytes)
    monkeypatch.setattr(gpu_buffers, "ALONE_NS", 1 << 60)  # every launch is quick
    rounds, _ = kernels()
    x = driver.array("float32")
    with proton.profile("run") as run:
        for _ in range(20):
            rounds[1,](x, 5)
            (device,) = sessions.recorder_of("cuda").devices.values()
            device.ring.wake()
        time.sleep(0.02)
        assert "copy" not in [event[0] for event in driver.events]
        monkeypatch.setattr(gpu_buffers, "ALONE_NS", 0)
        wait_until(lambda: not device.ring.buffers)
    assert [event[0] for event in driver.events].count("copy") == 7, "at most three at a time"
    assert run.totals.launches == 20


def test_a_ring_grows_where_nothing_can_be_fetched(driver: ProfilingDriver) -> None:
    """As far as the session's memory goes, or the device's."""
    rounds, _ = kernels()
    x = driver.array("float32")
    size = 7 * BLOCK.bytes
    for limit in ("session", "device"):
        driver.arrived.clear()
        driver.scarce = 3 * STEP if limit == "device" else 1 << 40
        memory = 4 * STEP if limit == "session" else 1 << 30
        room = (memory if limit == "session" else 3 * STEP) // size
        with proton.knobs.scope(profile_memory=memory), proton.profile("run") as run:
            for _ in range(room + 5):
                rounds[7,](x, 5)
            driver.arrived.set()
        assert run.totals.launches + run.totals.dropped_launches == room + 5
        assert room - 1 <= run.totals.launches <= room
        assert run.totals.slices == run.totals.launches * 7 * WARPS * 5
        assert not driver.allocations


PROFILE = KernelProfile(strategy=Strategy.CIRCULAR, block=BLOCK)


@pytest.mark.parametrize("turns", [0, 1, 3, 100, CAPACITY, CAPACITY + 1])
def test_of_a_large_piece_what_was_written_is_fetched(driver: ProfilingDriver, turns: int) -> None:
    rounds, _ = kernels()
    x, driver.turns = driver.array("float32"), turns
    launches, programs = 3, 13
    runs, sent = [], []
    for kind in ("copy", "rows"):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(gpu_buffers, "SPARSE_BYTES", 0 if kind == "rows" else 1 << 30)
            driver.events.clear()
            with proton.profile("run") as run:
                for _ in range(launches):
                    rounds[programs,](x, 5)
            runs.append(run)
            places = [event for event in driver.events if event[0] == kind]
            sizes = [event[2] if kind == "copy" else event[1] * event[2] for event in places]
            sent.append(sum(sizes))
    plain, sparse = runs
    columns = ["launch", "program", "warp", "iteration", "scope", "cycles"]
    tables = [run.frame[run.frame.kind != "compile"][columns] for run in runs]
    # Frames are in the order of time, and when launches were made is not the same in both.
    first, second = (table.sort_values(columns) for table in tables)
    for name in columns:  # the whole as one array is objects
        assert np.array_equal(first[name], second[name]), name
    warps = launches * programs * WARPS
    assert len(sparse.frame[sparse.frame.kind == "scope"]) == warps * min(turns, CAPACITY)
    assert plain.totals.lost == sparse.totals.lost == warps * max(0, turns - CAPACITY)
    head, records = BLOCK.segments, 16 * WARPS * min(turns, CAPACITY)
    assert sent[1] == launches * programs * (head + records)
    kept = [sum(launch.buffer.size for launch in run.raw.launches) for run in runs]
    assert kept[1] <= kept[0]
    if turns <= CAPACITY // 2:
        assert kept[1] < kept[0]


def test_a_killed_program_is_fetched_whole(driver: ProfilingDriver) -> None:
    """Its table may lack what it wrote."""
    blocks = np.zeros((3, BLOCK.bytes), np.uint8)
    blocks.reshape(-1)[: 3 * BLOCK.bytes] = written((3, 1, 1), 2)
    place = wire.header_offset("state")
    blocks[1, place] = wire.ProgramState.STARTED
    blocks[1, BLOCK.table : BLOCK.table + 8 * WARPS] = 0
    ring: RingBuffer[LaunchBuffer] = RingBuffer(0, driver, STEP, threading.Lock())
    assert ring.grow()
    piece = LaunchBuffer(blocks.size, PROFILE, 0)
    for data, capacity in ((blocks.reshape(-1), CAPACITY), (np.zeros_like(blocks).reshape(-1), 1)):
        ctypes.memmove(ring.address, data.tobytes(), data.size)
        ring._fetch_written([piece])
        arrived = piece.arrived
        assert arrived is not None
        assert arrived.capacity == capacity
        if capacity == CAPACITY:
            assert np.array_equal(arrived.data, data)
        else:
            assert not arrived.data.any()
        assert not any(ctypes.string_at(ring.address, data.size)), "it is clear for the next"


@pytest.mark.parametrize("step", [1, 2, 3, 7, 20])
def test_of_sampled_programs_alone_records_are_fetched(driver: ProfilingDriver, step: int) -> None:
    """Three launches of ten programs, whose samples do not go on from one to the next."""
    launches, programs, turns = 3, 10, 5
    blocks = written((programs, 1, 1), turns).reshape(programs, BLOCK.bytes).copy()
    blocks[np.arange(programs) % step != 0, BLOCK.table :] = 0
    ring: RingBuffer[LaunchBuffer] = RingBuffer(0, driver, STEP, threading.Lock())
    assert ring.grow()
    profile = replace(PROFILE, sample_programs=step)
    pieces = [LaunchBuffer(blocks.size, profile, 0) for _ in range(launches)]
    for number, piece in enumerate(pieces):
        piece.start = number * blocks.size
        ctypes.memmove(ring.address + piece.start, blocks.tobytes(), blocks.size)
    driver.events.clear()
    ring._fetch_written(pieces)
    heads, records = launches * programs * BLOCK.segments, 16 * WARPS * turns
    sent = sum(width * height for kind, width, height in driver.events if kind == "rows")
    assert sent == heads + launches * -(-programs // step) * records
    for piece in pieces:
        assert piece.arrived is not None
        kept = replace(BLOCK, capacity=piece.arrived.capacity)
        data = piece.arrived.data.reshape(programs, kept.bytes)
        for unit in range(WARPS):
            own, wanted = kept.segment(unit), BLOCK.segment(unit)
            size = 16 * turns
            assert np.array_equal(data[:, own : own + size], blocks[:, wanted : wanted + size])
    assert not any(ctypes.string_at(ring.address, launches * blocks.size)), "clear for the next"


def test_run_times_with_and_without_records(driver: ProfilingDriver) -> None:
    rounds, plain = kernels()
    x = driver.array("float32")
    with proton.profile("run", compare_run_time=True) as run:
        for _ in range(7):
            rounds[2,](x, 5)
            plain[2,](x, 5)
    assert (run.totals.launches, run.totals.dropped_launches) == (4 + 7, 0)
    options = run.kernels[0].options
    assert (options["run_ns"], options["run_ns_off"]) == (3000, 1000)
    assert any("run_ns 3000 (1000)" in fact for fact in run.summary().facts.values())
    assert not driver.queued
    with proton.profile("run") as run:
        rounds[2,](x, 5)
    assert "run_ns" not in run.kernels[0].options


def test_what_is_sampled_is_in_the_summary(driver: ProfilingDriver) -> None:
    rounds, _ = kernels()
    x = driver.array("float32")
    sampling = {"sample_warps": (0, 2), "sample_programs": 4, "every": 3}
    with proton.profile("run", **sampling) as run:
        rounds[2,](x, 5)
    facts = run.summary().facts["kernel rounds"]
    assert facts.endswith("only one program of 4, one iteration of 3, warps 0, 2")


@proton.jit
def on_the_cpu(x_ptr):
    lane = tl.arange(0, 16)
    with proton.scope("add"):
        tl.store(x_ptr + lane, tl.load(x_ptr + lane) + 1.0)


@pytest.mark.parametrize("is_known", [True, False])
def test_a_gpu_that_is_in_use_elsewhere_is_no_part_of_a_run_on_the_cpu(
    driver: ProfilingDriver, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, is_known: bool
) -> None:
    driver.in_use = 0
    if not is_known:
        unknown = LaunchError("GPU 0 has compute capability 3.5")
        monkeypatch.setattr(gpu_profile, "calibrate", lambda *_: _raise(unknown))
    with proton.profile("run") as run:
        on_the_cpu[4,](np.zeros(16, np.float32))
    assert run.totals.slices == 4
    assert run.raw.gpus == []
    assert not any(fact.startswith("GPU") for fact in run.summary().facts)
    run.save(tmp_path / "run.pftrace")
    assert proton.Run.load(run.save(tmp_path / "run.proton")).frame.equals(run.frame)
    assert not driver.host


def _raise(error: Exception) -> Any:
    raise error


def test_a_capture_takes_no_more_memory_than_is_left(driver: ProfilingDriver) -> None:
    """It needs room for its buffer and one replay."""
    rounds, _ = kernels()
    x = driver.array("float32")
    size = BLOCK.bytes
    driver.in_use = 0
    need = gpu_graph.HEAD_BYTES + 2 * size
    for memory, count in ((need - 1, 0), (need, 1)):
        with proton.knobs.scope(profile_memory=memory), proton.profile("run") as run:
            driver.capturing = True
            kernel = rounds[1,](x, 5)
            driver.capturing = False
        assert len(driver.allocations) == count
        assert (kernel.metadata["profile"] is not None) == (count == 1)
        assert run.totals.dropped_launches == 1 - count


def test_a_launch_that_fails_has_no_run_time(
    driver: ProfilingDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    rounds, _ = kernels()
    x = driver.array("float32")

    def fail(status: int, doing: str) -> None:
        raise cuda.CUDAError(doing)

    monkeypatch.setattr(cuda, "raise_error", fail)
    with proton.profile("run", compare_run_time=True) as run:
        rounds[2,](x, 5)
        driver.status = 701
        for _ in range(2):
            with pytest.raises(cuda.CUDAError, match="launch of rounds"):
                rounds[2,](x, 5)
        driver.status = 0
        rounds[2,](x, 5)
    options = run.kernels[0].options
    assert (options["run_ns"], options["run_ns_off"]) == (3000, 1000)
    assert not driver.queued


@pytest.mark.parametrize("free", [0, 1, 3, 100])
def test_a_ring_begins_with_what_there_is(
    driver: ProfilingDriver, monkeypatch: pytest.MonkeyPatch, free: int
) -> None:
    """At most a 64th of the device, and less where others have the memory."""
    monkeypatch.setattr(cuda, "total_memory", lambda device: 64 * 8 * STEP)
    grow = FakeMemory.grow

    def limited(memory: FakeMemory, size: int) -> None:
        if memory.size + size > free * STEP:
            raise cuda.CUDAError("CUDA_ERROR_OUT_OF_MEMORY")
        grow(memory, size)

    monkeypatch.setattr(FakeMemory, "grow", limited)
    driver.in_use = 0
    with proton.profile("run"):
        (device,) = sessions.recorder_of("cuda").devices.values()
        assert device.ring.size == {0: 0, 1: 1, 3: 2, 100: 8}[free] * STEP
    assert not driver.allocations


@pytest.mark.parametrize("where", ["Memory", "allocate_host"])
def test_where_memory_is_short_launches_are_dropped(
    driver: ProfilingDriver, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    rounds, _ = kernels()
    x = driver.array("float32")
    short = cuda.CUDAError("CUDA_ERROR_OUT_OF_MEMORY")
    monkeypatch.setattr(cuda, where, lambda *_: _raise(short))
    with proton.profile("run") as run:
        for _ in range(3):
            rounds[2,](x, 5)
    assert [event[0] for event in driver.events] == ["launch"] * 3
    assert (run.totals.launches, run.totals.dropped_launches) == (0, 3)
    (warning,) = run.loss_warnings()
    assert warning.startswith("3 launches left no records: they did not fit; ")
    assert not driver.allocations


@pytest.mark.parametrize("broken_after", [0, 3, 9, 200])
def test_an_error_while_a_ring_is_in_use(
    driver: ProfilingDriver, monkeypatch: pytest.MonkeyPatch, broken_after: int
) -> None:
    """What was fetched before is there, and the rest is counted."""
    monkeypatch.setattr(cuda, "current_stream", lambda device: 0)
    rounds, _ = kernels()
    x = driver.array("float32")
    driver.in_use = 0
    with proton.profile("run") as run:
        (ring,) = (device.ring for device in sessions.recorder_of("cuda").devices.values())
        for number in range(broken_after + 3):
            while ring.buffers and (number == broken_after or number % 8 == 0):
                ring.wake()  # a ring that is half full grows first
                time.sleep(0.001)
            if number == broken_after:
                driver.broken = "cuCtxSynchronize: CUDA_ERROR_ILLEGAL_ADDRESS (an illegal access)"
            rounds[1,](x, 5)
    assert run.totals.launches == broken_after
    assert run.totals.dropped_launches == 3
    assert run.totals.slices == broken_after * WARPS * 5


def test_pieces_of_a_ring_never_overlap(
    driver: ProfilingDriver, monkeypatch: pytest.MonkeyPatch, rng: np.random.Generator
) -> None:
    monkeypatch.setattr(gpu_buffers, "STEP_BYTES", 4096)
    ring: RingBuffer[LaunchBuffer] = RingBuffer(0, driver, 4096, threading.Lock())
    taken: list[LaunchBuffer] = []
    most = 0
    for _ in range(2000):
        piece = LaunchBuffer(64 * int(rng.integers(1, 24)), PROFILE, 0)
        is_placed = ring.take(piece)
        if is_placed:
            assert piece.start + piece.size <= 4096
            for other in taken:
                assert (
                    piece.start + piece.size <= other.start
                    or other.start + other.size <= piece.start
                )
            taken.append(piece)
        if taken and (not is_placed or rng.random() < 0.3):
            ring._free(taken.pop(int(rng.integers(len(taken)))))
        taken = [p for p in ring.buffers if not p.is_free]
        most = max(most, sum(p.size for p in taken))
    assert most > 3000, "the ring is never nearly full"
    for piece in taken:
        ring._free(piece)
    assert ring.take(LaunchBuffer(4096, PROFILE, 0))
    assert not ring.take(LaunchBuffer(64, PROFILE, 0))
    assert not RingBuffer(0, driver, 4096, threading.Lock()).take(LaunchBuffer(4160, PROFILE, 0))


@pytest.mark.parametrize("replays", [0, 1, 3, 5])
def test_replays_of_a_graph_are_kept_apart(driver: ProfilingDriver, replays: int) -> None:
    """Also where its log has room for three only."""
    rounds, _ = kernels()
    x = driver.array("float32")
    size = BLOCK.bytes * 2
    driver.in_use = 0
    with proton.knobs.scope(profile_memory=5 * size - 1), proton.profile("run") as run:
        driver.capturing = True
        rounds[2,](x, 5)
        driver.capturing = False
        for number in range(replays):
            for node in driver.graph:
                node()
            driver.graph[0] = functools.partial(
                ctypes.memmove,
                next(iter(reversed(driver.allocations))) + gpu_graph.HEAD_BYTES + 3 * size,
                written((2, 1, 1), number).tobytes(),
                size,
            )
        rounds[2,](x, 5)  # too little is left
    assert [event[0] for event in driver.events] == ["launch", "launch"]
    kept = min(replays, 3)
    assert run.totals.launches == kept
    assert run.totals.dropped_launches == replays - kept + 1
    turns = [5, *range(4)][:replays][-3:]  # the newest
    scopes = run.frame[run.frame.kind == "scope"]
    found = [int((scopes.launch == number).sum()) for number in range(kept)]
    assert found == [2 * WARPS * count for count in turns]
    assert len(driver.allocations) == 1, "the graph may be replayed again"


def test_an_error_of_the_gpu_leaves_what_had_arrived(driver: ProfilingDriver) -> None:
    rounds, _ = kernels()
    x = driver.array("float32")
    with proton.profile("run") as run:
        rounds[2,](x, 5)
        wait_until(lambda: "copy" in [event[0] for event in driver.events])
        (device,) = sessions.recorder_of("cuda").devices.values()
        wait_until(lambda: not (device.ring.sent or device.ring.ended))
        driver.broken = "cuCtxSynchronize: CUDA_ERROR_ILLEGAL_ADDRESS (an illegal access)"
        rounds[2,](x, 5)
    assert (run.totals.launches, run.totals.dropped_launches) == (1, 1)
    why = "an error of the GPU came before these were fetched"
    assert run.loss_warnings() == [f"1 launch left no records: {why}"]
    assert "ILLEGAL_ADDRESS" in str(run.raw.machine["cuda_error"])
    assert run.totals.slices == 2 * WARPS * 5


def test_a_launch_that_fails_leaves_no_memory_behind(
    driver: ProfilingDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    from cuda.bindings import driver as real

    words = types.SimpleNamespace(
        CUresult=real.CUresult, cuGetErrorString=lambda code: (0, b"too much of something")
    )
    monkeypatch.setattr(cuda, "_driver", lambda: words)
    rounds, _ = kernels()
    x = driver.array("float32")
    with proton.profile("run") as run:
        rounds[2,](x, 5)
        driver.status = 701
        with pytest.raises(cuda.CUDAError, match="LAUNCH_OUT_OF_RESOURCES"):
            rounds[2,](x, 5)
        driver.status = 0
        rounds[2,](x, 5)
    assert not driver.allocations
    assert (run.totals.launches, run.totals.dropped_launches) == (2, 0)


def test_a_launch_that_outlives_its_session_is_no_part_of_the_run(driver: ProfilingDriver) -> None:
    rounds, _ = kernels()
    x, runs = driver.array("float32"), []
    proton.start("run")
    rounds[2,](x, 5)

    def finalize() -> None:
        runs.append(proton.finalize())
        assert bool(driver.allocations), "the launch is about to write there"

    driver.before_launch = finalize
    rounds[2,](x, 5)
    assert not driver.allocations
    assert not driver.host
    assert runs[0].totals.launches == 1


def test_what_is_not_there_yet_says_so(driver: ProfilingDriver) -> None:
    rounds, _ = kernels()
    x = driver.array("float32")
    driver.capturing = True
    with proton.profile("run"), pytest.raises(ProfileError, match="captured into a CUDA graph"):
        rounds[1,](x, 5)
    with pytest.raises(ProfileError, match="clock_bits must be one of"):
        proton.start("run", clock_bits=48)
    with pytest.raises(ProfileError, match=r"granularity must be one of warp, .*got 'lane'"):
        proton.start("run", granularity="lane")
    with pytest.raises(ProfileError, match=r"buffer must be one of auto, .*got 'l2'"):
        proton.start("run", buffer="l2")
    with pytest.raises(ProfileError, match="strategy 'flush' has no buffer in shared memory"):
        proton.start("run", strategy="flush", buffer="shared")
    for warps in (3, (-1,), (32,), ("0",), (True,)):
        with pytest.raises(ProfileError, match="sample_warps must be numbers of warps"):
            proton.start("run", sample_warps=warps)
    for count in (0, -1, 1.5, True):
        with pytest.raises(ProfileError, match="sample_programs must be an integer in"):
            proton.start("run", sample_programs=count)


@pytest.mark.parametrize("turns", [1, 7, 8, 9, 16, 100])
@pytest.mark.parametrize("grid", [1, 3])
def test_flush_loses_nothing_while_the_slab_lasts(
    driver: ProfilingDriver, turns: int, grid: int
) -> None:
    rounds, _ = kernels()
    x, driver.turns, driver.flush = driver.array("float32"), turns, True
    with proton.profile("run", strategy="flush", capacity=FLUSH_CAPACITY) as run:
        for _ in range(2):
            rounds[grid,](x, 5)
    frame = run.frame
    scopes = frame[frame.kind == "scope"]
    assert len(scopes) == 2 * grid * WARPS * turns
    for _, group in scopes.groupby(["launch", "program", "warp"]):
        assert list(group.iteration) == list(range(turns))
    assert run.totals.lost == 0
    assert not driver.allocations
    assert not driver.host
    assert not driver.streams


def test_slabs_are_emptied_while_launches_go_on(driver: ProfilingDriver) -> None:
    """Much more than what slabs hold; each is used again, and no byte is sent that nobody took."""
    rounds, _ = kernels()
    x, driver.turns, driver.flush = driver.array("float32"), 100, True
    driver.in_use = 0
    chunks = 13 * WARPS  # of a launch
    slab = 3 * chunks * CHUNK_BYTES
    with proton.knobs.scope(profile_flush_memory=slab):
        with proton.profile("run", strategy="flush", capacity=FLUSH_CAPACITY) as run:
            for _ in range(40):
                rounds[1,](x, 5)
                (device,) = sessions.recorder_of("cuda").devices.values()
                device.ring.wake()
                wait_until(lambda ring=device.ring: not ring.buffers)
            assert len(driver.allocations) == 1 + 1, "the ring and the slabs"
    assert run.totals.lost == 0
    assert run.totals.slices == 40 * WARPS * 100
    sent = sum(event[2] for event in driver.events if event[0] == "copy")
    blocks = 40 * FLUSH_BLOCK.bytes
    assert sent <= blocks + 40 * (chunks * CHUNK_BYTES + 4 * 16)


def test_a_look_at_a_slab_fetches_nothing_else(
    driver: ProfilingDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gpu_buffers, "ALONE_NS", 1 << 60)
    rounds, _ = kernels()
    x, driver.turns, driver.flush = driver.array("float32"), 1, True
    with proton.profile("run", strategy="flush", capacity=FLUSH_CAPACITY) as run:
        for _ in range(gpu_buffers.EVENT_EVERY):
            rounds[1,](x, 5)
        recorder = sessions.recorder_of("cuda")
        (device,), (kernel,) = recorder.devices.values(), recorder.kernels.values()
        device.ring.look()
        wait_until(lambda: kernel.taker.is_known)
        copies = {event[2] for event in driver.events if event[0] == "copy"}
        assert copies == {wire.SLAB_HEAD_BYTES}
        assert len(device.ring.buffers) == gpu_buffers.EVENT_EVERY
    assert run.totals.slices == gpu_buffers.EVENT_EVERY * WARPS


def test_slabs_are_made_first_and_the_last_one_goes_on(
    driver: ProfilingDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the thread waits for a kernel that does not end, launches go on with the last slab."""
    makers: list[int] = []
    allocate = cuda.allocate_device

    def noted(size: int) -> int:
        makers.append(threading.get_ident())
        return allocate(size)

    launches, looks = 0, []
    look = RingBuffer.look
    monkeypatch.setattr(RingBuffer, "look", lambda ring: (looks.append(launches), look(ring)))
    monkeypatch.setattr(cuda, "allocate_device", noted)
    monkeypatch.setattr(gpu_buffers, "ALONE_NS", 1 << 60)  # nothing is fetched
    monkeypatch.setattr(cuda, "current_stream", lambda device: 0)
    rounds, _ = kernels()
    x, driver.turns, driver.flush = driver.array("float32"), 1, True
    users = []
    with proton.profile("run", strategy="flush", capacity=FLUSH_CAPACITY) as run:
        driver.arrived.clear()
        try:
            for _ in range(6):
                for _ in range(gpu_slabs.FIRST_LAUNCHES):
                    launches += 1
                    rounds[1,](x, 5)
                    assert makers == [threading.get_ident()], "all at once"
                (device,) = sessions.recorder_of("cuda").devices.values()
                users.append(device.slabs.current.users)
        finally:
            driver.arrived.set()
    assert users == [15, 15, 15, 31, 47, 63], "the first launch had a slab for itself"
    # By the last one of each slab, as nobody knows what they take; by the one that takes the last
    # slab, and seldom behind it.
    assert looks == [1, 17, 33, 34, 49, 65, 81]
    assert run.totals.launches == 6 * gpu_slabs.FIRST_LAUNCHES
    assert run.totals.lost == 0


@pytest.mark.parametrize("stream", [0, STREAM])
def test_launches_in_quick_succession_wake_nobody_while_slabs_last(
    driver: ProfilingDriver, monkeypatch: pytest.MonkeyPatch, stream: int
) -> None:
    """Each time that the thread runs holds up the one that launches, and so does an allocation."""
    monkeypatch.setattr(cuda, "current_stream", lambda device: stream)
    monkeypatch.setattr(gpu_buffers, "ALONE_NS", 1 << 60)
    turns = 3 * FLUSH_CAPACITY  # three chunks of each unit
    rounds, _ = kernels()
    x, driver.turns, driver.flush = driver.array("float32"), turns, True
    slab = 1 << 16
    monkeypatch.setattr(cuda, "total_memory", lambda device: gpu_profile.SHARE * 64 * slab)
    memory = proton.knobs.scope(profile_flush_memory=slab, profile_memory=1 << 40)
    with memory, proton.profile("run", strategy="flush", capacity=FLUSH_CAPACITY) as run:
        rounds[2,](x, 5)
        recorder = sessions.recorder_of("cuda")
        (device,), (kernel,) = recorder.devices.values(), recorder.kernels.values()
        wait_until(lambda: kernel.taker.is_known)
        assert kernel.taker.share == gpu_slabs.MARGIN * 3 * WARPS * CHUNK_BYTES / FLUSH_BLOCK.bytes
        looks: list[int] = []
        allocations = set(driver.allocations)
        monkeypatch.setattr(RingBuffer, "look", lambda ring: looks.append(len(looks)))
        of_launch = gpu_slabs.MARGIN * 2 * 3 * WARPS * CHUNK_BYTES + slab / 512
        count = 60 * int(slab / 2 / of_launch)
        for _ in range(count):
            rounds[2,](x, 5)
        assert len(device.slabs.retired) >= 45
        assert not looks
        assert not device.slabs.kept
        assert set(driver.allocations) == allocations
    assert run.totals.launches == 1 + count
    assert run.totals.slices == (1 + count) * 2 * WARPS * turns
    assert run.totals.lost == run.totals.dropped_launches == 0


def test_launches_in_quick_succession_use_the_memory_of_the_session(
    driver: ProfilingDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What slabs have is kept before launches have taken all memory for their blocks."""
    monkeypatch.setattr(gpu_buffers, "ALONE_NS", 1 << 60)
    monkeypatch.setattr(cuda, "current_stream", lambda device: 0)
    turns = 4 * FLUSH_CAPACITY
    rounds, _ = kernels()
    x, driver.turns, driver.flush = driver.array("float32"), turns, True
    slab, kept = 1 << 15, FLUSH_BLOCK.bytes + 4 * WARPS * CHUNK_BYTES
    monkeypatch.setattr(cuda, "total_memory", lambda device: gpu_profile.SHARE * 64 * slab)
    monkeypatch.setattr(gpu_profile, "MOST_BYTES", 32 * STEP)
    count = 300
    memory = proton.knobs.scope(profile_flush_memory=slab, profile_memory=count * kept)
    with memory, proton.profile("run", strategy="flush", capacity=FLUSH_CAPACITY) as run:
        for _ in range(2 * count):
            rounds[1,](x, 5)
            (device,) = sessions.recorder_of("cuda").devices.values()
            wait_until(lambda ring=device.ring: not ring.is_look_due)
    assert run.totals.launches + run.totals.dropped_launches == 2 * count
    assert run.totals.slices == run.totals.launches * WARPS * turns
    assert run.totals.lost == 0
    assert 0.8 * count <= run.totals.launches <= count


def test_what_slabs_had_is_looked_into_when_the_session_ends(
    driver: ProfilingDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Python's work on each chunk would hold up the thread that launches."""
    seen: list[bool] = []
    chunks_of = gpu_slabs.chunks_of

    def noted(slab: np.ndarray) -> dict[int, list[gpu_slabs.TakenChunks]]:
        seen.append(sessions.recorder_of("cuda") is not None)
        return chunks_of(slab)

    monkeypatch.setattr(gpu_slabs, "chunks_of", noted)
    rounds, _ = kernels()
    x, driver.turns, driver.flush = driver.array("float32"), 9, True
    with proton.profile("run", strategy="flush", capacity=FLUSH_CAPACITY) as run:
        for _ in range(4 * gpu_slabs.FIRST_LAUNCHES):
            rounds[1,](x, 5)
        (device,) = sessions.recorder_of("cuda").devices.values()
        wait_until(lambda: device.slabs.kept)
        assert not seen
        assert not device.slabs.chunks
    assert seen
    assert run.totals.slices == 4 * gpu_slabs.FIRST_LAUNCHES * WARPS * 9
    assert run.totals.lost == 0


LAUNCHES = 160  # in a row
# What each launch in a row adds: calls of Python functions, and questions to the driver.
ADDED_CALLS = {"circular": 6, "flush": 7}


@pytest.mark.parametrize("stream", [0, STREAM])
@pytest.mark.parametrize("strategy", ADDED_CALLS)
def test_what_a_launch_in_a_row_calls(
    driver: ProfilingDriver, monkeypatch: pytest.MonkeyPatch, strategy: str, stream: int
) -> None:
    """Each call takes time on the thread that launches, so their number is held. On a stream of the
    user's own the driver is asked whether it is captured, and an event is queued behind each
    sixteenth launch; else the driver is asked for nothing but the launch."""
    monkeypatch.setattr(cuda, "current_stream", lambda device: stream)
    monkeypatch.setattr(gpu_buffers, "ALONE_NS", 1 << 60)  # every launch is quick
    monkeypatch.setattr(gpu_profile, "MOST_BYTES", 32 * STEP)  # it is not half full here
    monkeypatch.setattr(cuda, "total_memory", lambda device: 64 * 32 * STEP)
    rounds, _ = kernels()
    x, driver.turns = driver.array("float32"), 1
    driver.flush = strategy == "flush"

    ours = str(Path(proton.__file__).parent)

    def calls(grid: int) -> tuple[int, Counter[str]]:
        """Of functions of Proton's, and of the driver's, in a row of launches."""
        found, asked, is_launching = 0, Counter[str](), False

        def note(frame: types.FrameType, event: str, argument: object) -> None:
            nonlocal found, is_launching
            code = frame.f_code
            if code is ProfilingDriver._launch.__code__:
                is_launching = event != "return"
            elif event == "call" and not is_launching:
                found += code.co_filename.startswith(ours) or code.co_name == "launch"
                asked[code.co_name] += code.co_filename == __file__

        sys.setprofile(note)
        try:
            for _ in range(LAUNCHES):
                rounds[grid,](x, 5)
        finally:
            sys.setprofile(None)
        return found, asked

    driver.flush = False
    rounds[1,](x, 5)
    off, _ = calls(1)
    driver.flush = strategy == "flush"
    added = []
    options = {"capacity": FLUSH_CAPACITY} if driver.flush else {}
    with proton.profile("run", strategy=strategy, **options) as run:
        for grid in (1, 3):  # nothing of it depends on the grid
            for _ in range(LAUNCHES):  # until slabs are there, and it is known what launches take
                rounds[grid,](x, 5)
            on, asked = calls(grid)
            assert asked["is_capturing"] == LAUNCHES * (stream != 0)
            events = LAUNCHES / gpu_buffers.EVENT_EVERY * (stream != 0)
            # ... and behind the launch that ends a slab.
            assert events <= asked["record"] <= events + driver.flush * (stream != 0)
            assert asked["new_event"] <= asked["record"]
            others = asked.keys() & (vars(Queue).keys() - {"is_capturing", "record", "new_event"})
            assert not any(asked[name] for name in others), others
            added.append((on - off) / LAUNCHES)
    assert run.totals.dropped_launches == 0
    # Besides, events, and slabs that are left for the next ones.
    assert max(added) <= ADDED_CALLS[strategy] + 0.25, added
    if strategy == "circular":
        assert added == [ADDED_CALLS[strategy] + events / LAUNCHES] * 2


def test_slabs_are_looked_at_as_often_as_launches_take_of_them(
    driver: ProfilingDriver, rng: np.random.Generator
) -> None:
    """Seldom where they take nothing, and in time where they take a twentieth."""
    size = 1 << 20
    for _ in range(20):
        ring: RingBuffer[LaunchBuffer] = RingBuffer(0, driver, STEP, threading.Lock())
        ring.grow()
        slabs, looks, largest = Slabs(ring), 0, 0.0
        slabs.make(size, gpu_slabs.LEAST_SLABS)
        most = rng.choice([0.0, 0.001, 0.05], 3)  # of three kernels, parts of a slab
        takers = [Taker(size) for _ in most]
        for _ in range(600):
            kernel = int(rng.integers(3))
            grid = rng.integers(1, 9) / 8  # of the largest
            blocks = int(grid * size / 100)
            slab = slabs.take(size, takers[kernel], blocks, 1 << 40)
            assert slab is not None
            head = np.frombuffer((ctypes.c_char * 16).from_address(slab.address), wire.SLAB_HEAD)
            part = grid * rng.uniform(0.7, 1.0) * most[kernel]
            head["taken"] += int(part * head["room"][0])
            largest = max(largest, head["taken"][0] / head["room"][0])
            slabs.end([(slab, takers[kernel], blocks)])
            if slab.is_looked_for and not (slabs.free and takers[kernel].is_known):
                looks += 1
                slabs.keep(1 << 40)
        assert largest <= 1.0, "somebody found no room"
        if not most.any():
            assert looks <= 5
        slabs.release()
        ring.release()
    assert set(driver.allocations) == set(), "all memory was given back"


def test_slabs_are_emptied_before_they_hold_more_than_there_is_memory_for(
    driver: ProfilingDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else launches would take all memory for their blocks, and lose what slabs have."""
    size, blocks = 1 << 20, 1 << 15
    ring: RingBuffer[LaunchBuffer] = RingBuffer(0, driver, STEP, threading.Lock())
    ring.grow()
    slabs, taker, looks = Slabs(ring), Taker(size), list[int]()
    assert slabs.make(size, 16)
    monkeypatch.setattr(ring, "look", lambda: looks.append(len(slabs.retired)))
    taker.is_new = False
    taker.learn(blocks, blocks)
    for memory_left in (6 * size, 3 * size, size):
        looks.clear()
        while not looks:
            slab = slabs.take(size, taker, blocks, memory_left)
            assert slab is not None
            slabs.end([(slab, taker, blocks)])
        assert looks == [memory_left // size]
        monkeypatch.setattr(ring, "is_busy", lambda: True)
        slabs.keep(memory_left)
        assert len(slabs.free) == 15, "those that were retired are free again"
        assert slabs.retired_bytes == 0
    slabs.release()
    ring.release()


def test_the_last_slab_is_not_taken_away_from_launches(driver: ProfilingDriver) -> None:
    """While it is emptied, and others are in use, a launch would have to make one."""
    size, blocks = 1 << 20, 1 << 12
    ring: RingBuffer[LaunchBuffer] = RingBuffer(0, driver, STEP, threading.Lock())
    ring.grow()
    slabs, takers = Slabs(ring), [Taker(size), Taker(size)]
    assert slabs.make(size, 2)
    first, last = (slabs.take(size, taker, blocks, 1 << 40) for taker in takers)
    slabs.end([(last, takers[1], blocks)])  # the first one runs on
    slabs.keep(1 << 40)
    assert slabs.take(size, takers[1], blocks, 1 << 40) is last
    assert len(slabs.pieces) == 1
    slabs.end([(first, takers[0], blocks), (last, takers[1], blocks)])
    slabs.keep(1 << 40)
    assert slabs.current is None
    assert slabs.free == [first, last]
    slabs.release()
    ring.release()


def test_what_is_known_of_a_kernel_stays_where_others_share_its_slab(
    driver: ProfilingDriver,
) -> None:
    size, blocks = 1 << 20, 1 << 12
    ring: RingBuffer[LaunchBuffer] = RingBuffer(0, driver, STEP, threading.Lock())
    ring.grow()
    slabs = Slabs(ring)
    assert slabs.make(size, 8)

    def launch(taker: Taker, taken: int) -> gpu_slabs.Slab:
        slab = slabs.take(size, taker, blocks, 1 << 40)
        assert slab is not None
        head = np.frombuffer((ctypes.c_char * 16).from_address(slab.address), wire.SLAB_HEAD)
        head["taken"] += taken // wire.RECORD_ALIGNMENT
        slabs.end([(slab, taker, blocks)])
        return slab

    small, large = Taker(size), Taker(size)
    firsts = [launch(small, 1 << 10), launch(large, 1 << 15)]
    assert firsts[0] is not firsts[1]
    slabs.keep(1 << 40)
    assert (small.share, large.share) == (gpu_slabs.MARGIN / 4, gpu_slabs.MARGIN * 8)
    assert len({launch(small, 1 << 10), launch(large, 1 << 15)}) == 1
    slabs.current.left = 0.0
    slabs.keep(1 << 40)
    assert (small.share, large.share) == (gpu_slabs.MARGIN / 4, gpu_slabs.MARGIN * 8)
    # More than was expected of both: it may have been either.
    launch(small, 1 << 18)
    launch(large, 1 << 15)
    slabs.current.left = 0.0
    slabs.keep(1 << 40)
    taken = (1 << 18) + (1 << 15)
    assert small.share == large.share == gpu_slabs.MARGIN * taken / blocks
    slabs.release()
    ring.release()


def test_where_all_slabs_are_in_use_the_last_one_goes_on(driver: ProfilingDriver) -> None:
    """Nothing arrives while these run: a fifth slab is not made, and what is lost is counted."""
    rounds, _ = kernels()
    x, driver.turns, driver.flush = driver.array("float32"), 8, True
    driver.in_use = 0
    driver.arrived.clear()
    with proton.knobs.scope(profile_flush_memory=WARPS * CHUNK_BYTES):
        with proton.profile("run", strategy="flush", capacity=FLUSH_CAPACITY) as run:
            for _ in range(9):
                rounds[1,](x, 5)
            assert len(driver.allocations) == 1 + 1, "the ring and the slabs"
            driver.arrived.set()
    assert run.totals.launches == 9
    assert run.totals.written == 9 * WARPS * 8
    # The slab has room for one launch; the others have the newest records in their segments.
    assert run.totals.lost == 0


@pytest.mark.parametrize("chunks", [1, 4, 9])
def test_what_a_slab_had_no_room_for_is_counted(driver: ProfilingDriver, chunks: int) -> None:
    """Each unit needs four chunks for 27 records; the last three are in its segment."""
    rounds, _ = kernels()
    x, driver.turns, driver.flush = driver.array("float32"), 27, True
    room = chunks * CHUNK_BYTES
    with proton.knobs.scope(profile_flush_memory=room):
        with proton.profile("run", strategy="flush", capacity=FLUSH_CAPACITY) as run:
            rounds[1,](x, 5)
    assert run.totals.written == WARPS * 27
    # Units take chunks in turn, so the first `chunks` are of records 0 to 7, then 8 to 15, ...
    kept = 8 * min(chunks, 3 * WARPS) + 3 * WARPS
    assert run.totals.kept == kept
    assert run.totals.lost == WARPS * 27 - kept
    frame = run.frame
    last = frame[(frame.kind == "scope") & (frame.iteration >= 24)]
    assert len(last) == 3 * WARPS


def test_a_launch_whose_chunks_find_no_memory_is_dropped(driver: ProfilingDriver) -> None:
    rounds, _ = kernels()
    x, driver.turns, driver.flush = driver.array("float32"), 80, True
    blocks = FLUSH_BLOCK.bytes
    chunks = 10 * WARPS * CHUNK_BYTES
    for memory, launches in ((blocks + chunks, 1), (blocks + chunks - 1, 0)):
        with proton.knobs.scope(profile_memory=memory):
            with proton.profile("run", strategy="flush", capacity=FLUSH_CAPACITY) as run:
                rounds[1,](x, 5)
        assert (run.totals.launches, run.totals.dropped_launches) == (launches, 1 - launches)
        assert run.totals.kept == launches * 80 * WARPS
        assert run.totals.lost == 0


@pytest.mark.parametrize("replays", [1, 2])
def test_each_replay_of_a_graph_has_a_slab_of_its_own(
    driver: ProfilingDriver, replays: int
) -> None:
    rounds, _ = kernels()
    x, driver.turns, driver.flush = driver.array("float32"), 20, True
    driver.in_use = 0
    with proton.knobs.scope(profile_flush_memory=100 * CHUNK_BYTES):
        with proton.profile("run", strategy="flush", capacity=FLUSH_CAPACITY) as run:
            driver.capturing = True
            rounds[1,](x, 5)
            driver.capturing = False
            first, keep = driver.graph
            launch, values = driver.launches[-1]
            first()  # its chunks were taken when it was captured
            keep()
            for _ in range(replays - 1):
                data = flushed(launch.grid, 20, *values[-2:])
                ctypes.memmove(values[2], data.tobytes(), data.size)
                keep()
    assert run.totals.launches == replays
    assert run.totals.slices == replays * WARPS * 20
    assert run.totals.lost == 0
