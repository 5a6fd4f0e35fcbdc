"""What records launches while sessions are active (proton/runtime/open_sessions.py says which).

It hands each instrumented launch a part of a slab whose pages have been touched already, so that
page faults do not show as work, and keeps all records until the end, up to `knobs.profile_memory`
bytes; launches beyond that run and are counted.

A run has the launches that began in the session: its end waits for those that other threads have
under way. Launches in processes that were forked meanwhile are counted.
"""

import contextlib
import ctypes
import sys
import threading
import time
from collections.abc import Callable

import numpy as np

from proton.backends.compiler import CompiledKernel
from proton.backends.nvidia.target import GPUKernel
from proton.base.errors import ProfileError, ProtonError
from proton.base.knobs import knobs
from proton.language import profiling
from proton.runtime.cpu.calibration import Calibration, calibrate, clock_pair
from proton.runtime.described import kernel_model, machine_facts
from proton.runtime.grid import host_thread
from proton.runtime.host_scopes import HostRecorder
from proton.runtime.nvidia import cuda, cupti
from proton.runtime.nvidia.cupti import Collector
from proton.runtime.nvidia.profile import GPURecorder, GPURecording, ProfiledKernel, Timing
from proton.runtime.recording import SLAB_BYTES, ForkedCounts, Recording, Running, Slab
from proton.trace.instrumentation import Instrumentation, SessionOptions
from proton.trace.model import (
    ACTIVITIES,
    FORKED,
    UNFINISHED,
    Chunk,
    Clock,
    GPUClock,
    Kernel,
    Launch,
    RawRun,
)

SETTLE_EVERY = 16  # launches after which it is asked what memory the thread gave back
_FLUSH = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64)

_current: "Session | None" = None


def current() -> "Session | None":
    """The one that records now."""
    return _current


def install(session: "Session | None") -> None:
    """Makes this the one that launches ask for a buffer."""
    global _current
    _current = session


def leave(session: "Session") -> None:
    """Ends what a forked process has of a session."""
    if _current is session:
        install(None)
        profiling.set_host_recorder(None)


class Session:
    """Records launches, under the scopes that are open on the host; `finish` gives the raw run,
    without host scopes; of what CUPTI sees its slices."""

    def __init__(self, options: SessionOptions, host: HostRecorder) -> None:
        self.name, self.options = options.name, options
        # What instrumented code depends on, for a GPU and for the CPU.
        self.instrumentation = options.instrumentation
        self.on_cpu = self.instrumentation.on_cpu()
        self.compare_run_time = options.compare_run_time
        self.turns: dict[int, int] = {}  # launches of each kernel so far, where times are compared
        self.gpu: GPURecorder | None = None
        self.slab = Slab()
        self.memory_left: int = knobs.profile_memory
        self.kernels: list[Kernel] = []
        self.kernel_numbers: dict[str, int] = {}
        self.profiled: dict[tuple[str, int], ProfiledKernel] = {}  # by kernel and GPU
        self.launches: list[Launch] = []
        self.dropped = 0
        self.host = host
        self.lock = threading.Lock()
        self.running = Running(self.lock)
        self.forked_counts = ForkedCounts()
        self.is_forked = False  # this is a copy of the session, in a process that was forked
        self.begun = 0
        self.finished = False
        self.calibration: Calibration = calibrate()
        self.slab.take(1)
        device = cuda.device_in_use()
        if device is not None:
            recorder = GPURecorder(self.instrumentation.clock_bits)
            with contextlib.suppress(ProtonError):  # a launch there says what is wrong
                recorder.prepare(device)
                self.gpu = recorder
        self.activities, self.no_activities = _activities(options)
        self.pairs = [clock_pair()]
        self.origin_ns, self.origin_unix_ns = time.perf_counter_ns(), time.time_ns()

    def begin_launch(self, kernel: CompiledKernel, grid: tuple[int, int, int]) -> Recording:
        """The buffer for a launch of a kernel; an empty one where that has no scopes."""
        profile = kernel.profile
        block_bytes = 0 if profile is None else profile.block.bytes
        size = grid[0] * grid[1] * grid[2] * block_bytes
        with self.lock:
            number = self._kernel_number(kernel, self.on_cpu)
            kept = self._begin() and size <= self.memory_left
            if kept:
                self.memory_left -= size
                buffer = self.slab.take(size)
            else:
                buffer = np.zeros(size, np.uint8)  # the code writes somewhere; nobody reads it
            capacity = 0 if profile is None else profile.capacity
            path, thread = self.host.path(), host_thread()
            recording = Recording(number, grid, capacity, buffer, path, thread, kept)
            self.running.begin(recording)
        if profile is not None and profile.strategy.moves:
            recording.callback = self._flush_callback(recording, block_bytes)
        recording.start = time.perf_counter_ns()
        return recording

    def end_launch(self, recording: Recording) -> None:
        """Keeps the launch's records."""
        end = time.perf_counter_ns()
        recording.callback = None
        with self.lock:
            self.running.end(recording)
            if self.finished or self.is_forked:
                return  # the session does not wait for it: it was counted
            if not recording.kept:
                self.dropped += 1
                return
            self._keep(recording, end)

    def _keep(self, recording: Recording, end: int, device: int = 0) -> None:
        self.launches.append(
            Launch(
                kernel=recording.kernel,
                grid=recording.grid,
                capacity=recording.capacity,
                host_start=recording.start,
                host_end=end,
                buffer=recording.buffer,
                chunks=recording.chunks,
                path=recording.path,
                thread=recording.thread,
                device=device,
            )
        )

    def plain_gpu_launch(
        self,
        kernel: GPUKernel,
        grid: tuple[int, int, int],
        device: int,
        start: int,
        options: dict[str, int],
    ) -> None:
        """Keeps the launch of a kernel without scopes, with the times of the call."""
        end = time.perf_counter_ns()
        with self.lock:
            if not self._begin():
                return
            number = self._kernel_number(kernel, self.instrumentation, options)
            nothing = np.zeros(0, np.uint8)
            launch = Recording(number, grid, 0, nothing, self.host.path(), host_thread())
            launch.start = start
            self._keep(launch, end, device)

    def begin_gpu_launch(
        self,
        kernel: GPUKernel,
        grid: tuple[int, int, int],
        device: int,
        stream: int,
        options: dict[str, int],
    ) -> GPURecording | None:
        """The buffer for a launch of an instrumented kernel, None where memory is used up;
        `options` says what instrumentation did to the kernel."""
        with self.lock:
            if not self._begin():
                return None
            profiled = self.profiled.get((kernel.key, device))
            if profiled is None:
                profiled = self._profiled(kernel, device, stream, options)
            gpu = self.gpu
            assert gpu is not None
            if self.compare_run_time and self._is_plain_turn(gpu, profiled.number, stream):
                return None
            if not gpu.number % SETTLE_EVERY:
                self.memory_left += gpu.settle()
            recording = gpu.begin(profiled, grid, self.host.path(), stream, self.memory_left)
            if recording is None:
                self.dropped += 1
            else:
                self.memory_left -= recording.taken
                self.running.begin(recording)
            return recording

    def _profiled(
        self, kernel: GPUKernel, device: int, stream: int, options: dict[str, int]
    ) -> ProfiledKernel:
        """What the launches of a kernel on a device have in common, at the first of them."""
        if self.gpu is None:
            self.gpu = GPURecorder(self.instrumentation.clock_bits)
        self.gpu.prepare(device, stream)
        profile = kernel.profile
        assert profile is not None
        number = self._kernel_number(kernel, self.instrumentation, options)
        found = self.profiled[kernel.key, device] = self.gpu.profiled(number, profile, device)
        return found

    def _begin(self) -> bool:
        """Whether a launch that begins now is part of the run. One in a forked process is counted
        there."""
        if self.is_forked:
            if self.forked_counts.is_over:
                leave(self)
            else:
                self.forked_counts.add()
        self.begun += 1
        return not self.finished and not self.is_forked

    def disown(self) -> None:
        """Makes this the copy of a session in a process that was just forked: other threads are
        gone, and what they held."""
        self.lock = threading.Lock()
        self.running = Running(self.lock)
        self.slab, self.gpu, self.is_forked = Slab(), None, True

    def _is_plain_turn(self, gpu: GPURecorder, number: int, stream: int) -> bool:
        """Whether a launch runs without records, for its time: each second one of a kernel, but for
        those that are captured."""
        if gpu.queue.is_capturing(stream):
            return False
        turn = self.turns.get(number, 0)
        self.turns[number] = turn + 1
        return turn % 2 == 1

    def begin_timing(
        self, kernel: GPUKernel, recording: GPURecording | None, device: int, stream: int
    ) -> Timing | None:
        """Begins to time a launch, if that can be; then `end_timing` follows."""
        with self.lock:
            number = self.kernel_numbers.get(kernel.key)
            if self.gpu is None or number is None or self.finished:
                return None
            if self.gpu.queue.is_capturing(stream):
                return None
            return self.gpu.begin_timing(number, device, recording is not None, stream)

    def end_timing(self, timing: Timing, stream: int, launched: bool) -> None:
        """The launch is queued, or has failed."""
        with self.lock:
            assert self.gpu is not None
            self.gpu.end_timing(timing, stream, launched and not self.finished)

    def end_gpu_launch(self, recording: GPURecording, launched: bool | None) -> None:
        """Has the launch's records fetched; one that failed, or that the session did not wait for,
        is no part of the run. `launched` is None where nobody knows."""
        with self.lock:
            assert self.gpu is not None
            self.running.end(recording)
            if launched and not self.finished:
                self.gpu.end(recording)
            else:
                self.gpu.abandon(recording, is_queued=launched is not False)

    def _flush_callback(self, recording: Recording, block_bytes: int) -> Callable[..., None]:
        base = recording.address

        def keep(block: int, first: int, data: int, size: int) -> None:
            with self.lock:
                if size > self.memory_left:
                    return  # the decoder counts the missing records as lost
                self.memory_left -= size
            copy = np.frombuffer(ctypes.string_at(data, size), np.uint8)
            program = (block - base) // block_bytes
            recording.chunks.append(Chunk(program=program, unit=0, first=first, data=copy))

        return _FLUSH(keep)

    def _kernel_number(
        self,
        kernel: CompiledKernel,
        instrumentation: Instrumentation,
        options: dict[str, int] | None = None,
    ) -> int:
        if kernel.key not in self.kernel_numbers:
            self.kernel_numbers[kernel.key] = len(self.kernels)
            self.kernels.append(kernel_model(kernel, instrumentation.noted() | (options or {})))
        return self.kernel_numbers[kernel.key]

    def finish(self) -> RawRun:
        """Everything recorded; the session is over."""
        with self.lock:
            unfinished = self.running.wait()
            self.finished = True
        self.pairs.append(clock_pair())
        activities = [] if self.activities is None else self.activities.stop()
        with self.lock:
            launches = [_compact(launch) for launch in self.launches]
            launches.sort(key=lambda launch: launch.host_start)
            machine: dict[str, object] = machine_facts()
            forked = self.forked_counts.close()
            self.dropped += unfinished + forked
            if self.no_activities:
                machine[ACTIVITIES] = self.no_activities
            machine |= {name: n for name, n in ((UNFINISHED, unfinished), (FORKED, forked)) if n}
            gpus: list[GPUClock] = []
            if self.gpu is not None:
                arrived, gpus = self.gpu.finish(self.memory_left)
                launches = sorted([*launches, *arrived], key=lambda launch: launch.host_start)
                self.dropped += self.gpu.lost
                for number, times in self.gpu.run_times().items():
                    self.kernels[number].options.update(times)
                if self.gpu.error:
                    machine["cuda_error"] = self.gpu.error
        clock = Clock(
            ticks=np.array([pair.ticks for pair in self.pairs], np.uint64),
            host_ns=np.array([pair.host_ns for pair in self.pairs], np.int64),
            error_ns=max(pair.error_ns for pair in self.pairs),
            slice_cost_ns=self.calibration.slice_cost_ns,
            edge_cost_ns=self.calibration.edge_cost_ns,
        )
        return RawRun(
            name=self.name,
            origin_ns=self.origin_ns,
            origin_unix_ns=self.origin_unix_ns,
            clock=clock,
            gpus=gpus,
            kernels=self.kernels,
            launches=launches,
            host=activities,
            dropped_launches=self.dropped,
            machine=machine,
        )


def _activities(options: SessionOptions) -> tuple[Collector | None, str]:
    """What listens to CUPTI, if that is asked for; else why nothing does, which is said, too."""
    if options.activities == "own":
        return None, ""
    try:
        return Collector(cupti.load()), ""
    except ProfileError as error:
        print(f"proton: only Proton's own launches are recorded: {error}", file=sys.stderr)
        return None, str(error)


def _compact(launch: Launch) -> Launch:
    """A launch with records of its own: a small one must not keep a whole slab alive."""
    if launch.buffer.size < SLAB_BYTES // 4:
        launch.buffer = launch.buffer.copy()
    return launch
