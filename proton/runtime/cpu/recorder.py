"""Records of the CPU in a session.

Each instrumented launch gets a part of a slab whose pages have been touched already, so that page
faults do not show as work, and all records stay there until the end.
"""

import ctypes
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from proton.backends.cpu import llvm
from proton.backends.cpu.target import CPUKernel
from proton.runtime.cpu.calibration import Calibration, calibrate, clock_pair
from proton.runtime.launch.grid import host_thread
from proton.runtime.session.recording import Recorded, Recorder, SessionState
from proton.trace import wire
from proton.trace.model import (
    CLOCK_STEP,
    RECORDER_MEAN_NS,
    RECORDER_NS,
    Chunk,
    Clock,
    Launch,
)

# Of the first slab of a session, and of one at most: each is twice the one before.
FIRST_BYTES, SLAB_BYTES = 512 << 10, 16 << 20
LATEST = 1000  # launches of a kernel of which the median is what recording takes of the host
_FLUSH = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64)


@dataclass(eq=False)
class LaunchRecording:
    """One launch while it runs. Where `kept` is False nobody will read its records: it has no
    buffer, and code that records nothing is what is to run."""

    kernel: int
    grid: tuple[int, int, int]
    capacity: int
    buffer: np.ndarray
    path: str
    thread: int
    kept: bool = True
    is_plain: bool = False  # it runs without records for its time
    called: int = 0  # when the recorder began with it
    start: int = 0
    chunks: list[Chunk] = field(default_factory=list)
    callback: Any = None

    @property
    def address(self) -> int:
        return int(self.buffer.ctypes.data)

    @property
    def flush_address(self) -> int:
        if self.callback is None:
            return 0
        return ctypes.cast(self.callback, ctypes.c_void_p).value or 0

    def launch(self, end: int) -> Launch:
        """The description in the run."""
        return Launch(
            kernel=self.kernel,
            grid=self.grid,
            capacity=self.capacity,
            host_start=self.start,
            host_end=end,
            buffer=self.buffer,
            chunks=self.chunks,
            path=self.path,
            thread=self.thread,
        )


class HostSlab:
    """Zeroed, touched memory that is handed out once."""

    def __init__(self) -> None:
        self.block = np.zeros(0, np.uint8)
        self.used, self.next_bytes = 0, FIRST_BYTES

    def take(self, size: int) -> np.ndarray:
        """`size` zero bytes, aligned to a cache line."""
        if self.used + size > self.block.size:
            room = max(self.next_bytes, size) + wire.BLOCK_ALIGNMENT
            self.next_bytes = min(2 * self.next_bytes, SLAB_BYTES)
            self.block = np.empty(room, np.uint8)
            self.block.fill(0)  # touches every page, unlike np.zeros
            self.used = -self.block.ctypes.data % wire.BLOCK_ALIGNMENT
        taken = self.block[self.used : self.used + size]
        self.used += wire.aligned(size, wire.BLOCK_ALIGNMENT)
        return taken


class HostTimes:
    """What begin and end took beside the launches of a kernel, ns, but for the first, which may
    make ready what others find."""

    def __init__(self) -> None:
        self.latest = deque[int](maxlen=LATEST)
        self.count = self.total = 0

    def add(self, ns: int) -> None:
        """That of a launch."""
        self.count += 1
        if self.count > 1:
            self.latest.append(ns)
            self.total += ns

    def facts(self) -> dict[str, int]:
        """What the run says of the kernel; nothing of one launch."""
        if self.count < 2:
            return {}
        mean = round(self.total / (self.count - 1))
        return {RECORDER_NS: round(float(np.median(self.latest))), RECORDER_MEAN_NS: mean}


class CPURecorder(Recorder):
    """The launches of one session on the CPU."""

    def __init__(self, state: SessionState) -> None:
        self.state = state
        self.instrumentation = state.instrumentation.on_cpu()
        self.calibration: Calibration = calibrate()
        self.slab = HostSlab()
        self.slab.take(1)
        self.launches: list[Launch] = []
        self.pairs = [clock_pair()]
        # By kernel: run times with records and without, where the session compares them.
        self.run_times: dict[int, tuple[list[int], list[int]]] = {}
        self.host_times: dict[int, HostTimes] = {}  # by kernel

    def begin(self, kernel: CPUKernel, grid: tuple[int, int, int]) -> LaunchRecording:
        """A launch of a kernel, with its buffer; an empty one where that has no scopes."""
        called, profile, state = time.perf_counter_ns(), kernel.profile, self.state
        block_bytes = 0 if profile is None else profile.block.bytes
        size = grid[0] * grid[1] * grid[2] * block_bytes
        with state.lock:
            number = state.kernel_number(kernel, self.instrumentation)
            kept = state.begins() and size <= state.memory_left
            is_plain = kept and profile is not None and self._is_plain(number)
            kept &= not is_plain
            if not kept:
                size = 0
            state.memory_left -= size
            buffer = self.slab.take(size)
            capacity = 0 if profile is None else profile.capacity
            path, thread = state.host.path(), host_thread()
            recording = LaunchRecording(
                number, grid, capacity, buffer, path, thread, kept, is_plain, called
            )
            state.running.begin(recording)
        if kept and profile is not None and profile.strategy.moves:
            recording.callback = self._flush_callback(recording, profile.block)
        recording.start = time.perf_counter_ns()
        return recording

    def end(self, recording: LaunchRecording) -> None:
        """Keeps the launch's records."""
        end, state = time.perf_counter_ns(), self.state
        recording.callback = None
        with state.lock:
            state.running.end(recording)
            if state.is_finished or state.is_forked:
                return  # the session does not wait for it: it was counted
            if recording.kept:
                self.launches.append(recording.launch(end))
            elif not recording.is_plain:
                state.dropped += 1
            if recording.kernel in self.run_times:
                self.run_times[recording.kernel][recording.is_plain].append(end - recording.start)
            if recording.kept:
                times = self.host_times.setdefault(recording.kernel, HostTimes())
                times.add(recording.start - recording.called + time.perf_counter_ns() - end)

    def _is_plain(self, kernel: int) -> bool:
        """Whether a launch of a kernel with scopes runs without records: each second one, where
        run times are compared."""
        if not self.state.options.compare_run_time:
            return False
        recorded, plain = self.run_times.setdefault(kernel, ([], []))
        return len(plain) < len(recorded)

    def _flush_callback(
        self, recording: LaunchRecording, layout: wire.Block
    ) -> Callable[..., None]:
        base, state = recording.address, self.state

        def keep(block: int, first: int, data: int, size: int) -> None:
            with state.lock:
                if size > state.memory_left:
                    return  # the decoder counts the missing records as lost
                state.memory_left -= size
            copy = np.frombuffer(ctypes.string_at(data, size), np.uint8)
            program = (block - base) // layout.bytes
            unit = (data - block - layout.segments) // layout.segment_bytes
            recording.chunks.append(Chunk(program=program, unit=unit, first=first, data=copy))

        return _FLUSH(keep)

    def take(self) -> Recorded:
        state = self.state
        with state.lock:
            ended, self.launches = self.launches, []
            state.memory_left += sum(map(_bytes, ended))
        self.pairs = [self.pairs[0], clock_pair()]
        return self._recorded(ended)

    def disown(self) -> None:
        self.slab = HostSlab()

    def finish(self) -> Recorded:
        self.pairs.append(clock_pair())
        found = self._recorded(self.launches)
        for kernel, times in self.run_times.items():
            found.measured.setdefault(kernel, {}).update(_medians(*times))
        return found

    def _recorded(self, launches: list[Launch]) -> Recorded:
        clock = Clock(
            ticks=np.array([pair.ticks for pair in self.pairs], np.uint64),
            host_ns=np.array([pair.host_ns for pair in self.pairs], np.int64),
            error_ns=max(pair.error_ns for pair in self.pairs),
            slice_cost_ns=self.calibration.slice_cost_ns,
            edge_cost_ns=self.calibration.edge_cost_ns,
        )
        kept = [_compact(launch) for launch in launches]
        machine: dict[str, object] = {"cpu": llvm.host_cpu()}
        if step := round(self.calibration.step_ns, 1):
            machine[CLOCK_STEP] = step
        measured = {kernel: times.facts() for kernel, times in self.host_times.items()}
        return Recorded(kept, clock=clock, machine=machine, measured=measured)


def _medians(recorded: list[int], plain: list[int]) -> dict[str, int]:
    """The median run times, ns, but for the first launch of each kind, which may compile."""
    kinds = (("run_ns", recorded), ("run_ns_off", plain))
    return {name: round(float(np.median(times[1:]))) for name, times in kinds if len(times) > 1}


def _bytes(launch: Launch) -> int:
    """The memory that the session was asked for."""
    return launch.buffer.size + sum(chunk.data.size for chunk in launch.chunks)


def _compact(launch: Launch) -> Launch:
    """A launch with records of its own: a small one must not keep a whole slab alive."""
    if launch.buffer.size < SLAB_BYTES // 4:
        launch.buffer = launch.buffer.copy()
    return launch
