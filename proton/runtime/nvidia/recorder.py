"""What NVIDIA's GPUs record in a session.

The session's limit of memory holds for all that is kept, and a launch beyond it, or for which the
device has no memory, runs without records and is counted. What a launch adds on the host is the way
through `begin` and `end`, with the session's lock taken once in each: nothing there depends on the
grid, and whatever can wait is left to the thread that fetches records (buffers.py).
"""

import contextlib
import functools
import sys
import time

import numpy as np

from proton.backends.nvidia.target import GPUKernel
from proton.base.errors import ProfileError, ProtonError
from proton.base.knobs import knobs
from proton.runtime.grid import host_thread
from proton.runtime.nvidia import cuda, cupti
from proton.runtime.nvidia.buffers import LASTING_STREAMS, Arrived
from proton.runtime.nvidia.counters import Sampler, check_counters
from proton.runtime.nvidia.cupti import Collector
from proton.runtime.nvidia.graph import capture
from proton.runtime.nvidia.peer_exchange import peer_pair
from proton.runtime.nvidia.profile import Device, GPURecording, ProfiledKernel
from proton.runtime.nvidia.queue import Queue
from proton.runtime.nvidia.run_times import RunTimes, Timing
from proton.runtime.nvidia.slabs import Taker, chunks_of, slab_bytes
from proton.runtime.nvidia.variant import InstrumentedVariant
from proton.runtime.recording import Recorded, Recorder, SessionState
from proton.trace import wire
from proton.trace.gpu_peers import PeerPair, aligned
from proton.trace.model import ACTIVITIES, CounterSamples, GPUClock, HostSlice, Launch

SETTLE_EVERY = 16  # launches after which it is asked what memory the thread gave back


class GPURecorder(Recorder):
    """The launches of one session on GPUs, and of what CUPTI sees its slices."""

    def __init__(self, state: SessionState) -> None:
        self.state, self.instrumentation = state, state.instrumentation
        self.compares_run_times = state.options.compare_run_time
        self.flush_memory: int = knobs.profile_flush_memory
        self.devices: dict[int, Device] = {}
        self.kernels: dict[InstrumentedVariant, ProfiledKernel] = {}
        self.pending: list[GPURecording] = []
        self.plain: list[Launch] = []  # of kernels without scopes
        self.number = 0  # of the last launch
        self.lost = 0  # launches whose records did not arrive
        self.error = ""  # what the driver said when the session ended
        self.met: dict[int, list[PeerPair]] = {}  # what GPUs and the first one told each other
        self.samplers: dict[int, Sampler] = {}  # of counters, by GPU
        device = cuda.device_in_use()
        if state.options.counters:
            check_counters()
        if device is not None:
            self._sample(device)
            with contextlib.suppress(ProtonError):  # a launch there says what is wrong
                self._prepare(device)
        self.activities, self.no_activities = _activities(state.options.activities)

    @functools.cached_property
    def queue(self) -> Queue:
        """The driver's calls, which only a process that uses a GPU has."""
        return Queue()

    @functools.cached_property
    def run_times(self) -> RunTimes:
        """What is measured where run times are compared."""
        return RunTimes(self.queue)

    # A launch of an instrumented kernel

    def begin(
        self, variant: InstrumentedVariant, grid: tuple[int, int, int], device: int, stream: int
    ) -> GPURecording | None:
        """A launch with a zeroed profile buffer, whose kernel is queued next; None where it runs
        without records, as the session is over or has no memory for it. `end` follows."""
        state = self.state
        with state.lock:
            if not state.begins():
                return None
            kernel = self.kernels.get(variant)
            if kernel is None:
                kernel = self._profiled(variant, device, stream)
            if self.compares_run_times and self.run_times.is_plain_turn(kernel.number, stream):
                return None
            if not self.number % SETTLE_EVERY:
                state.memory_left += sum(device.spared() for device in self.devices.values())
            self.number += 1
            size = grid[0] * grid[1] * grid[2] * kernel.block_bytes
            path = state.host.path()
            recording = GPURecording(self.number, kernel, grid, size, path, stream)
            if stream not in LASTING_STREAMS and self.queue.is_capturing(stream):
                is_placed = self._capture(recording)
            else:
                is_placed = size <= state.memory_left and kernel.device.place(recording)
            if not is_placed:
                state.dropped += 1
                return None
            state.memory_left -= size if recording.captured is None else recording.captured.bytes
            state.running.launches.add(recording)
        recording.host_start = time.perf_counter_ns()
        return recording

    def end(self, recording: GPURecording, launched: bool | None) -> None:
        """Has the launch's records fetched; one that failed, or that the session did not wait for,
        is no part of the run. `launched` is None where nobody knows."""
        state = self.state
        with state.lock:
            state.running.end(recording)
            if not launched or state.is_finished:
                self._abandon(recording, is_queued=launched is not False)
                return
            now = recording.host_end = time.perf_counter_ns()
            self.pending.append(recording)
            if recording.captured is None:
                recording.kernel.device.send(recording, now)
            else:
                recording.captured.keep(recording.stream)

    def _abandon(self, recording: GPURecording, is_queued: bool) -> None:
        """Gives the memory of a launch back whose records nobody wants; where its kernel may be
        queued, when nobody can tell."""
        if recording.captured is not None:
            return
        if is_queued:
            recording.kernel.device.ring.abandon()
        else:
            recording.kernel.device.give_back(recording)

    def _capture(self, recording: GPURecording) -> bool:
        """A buffer of the graph's own; False where there is no memory."""
        kernel, size = recording.kernel, recording.size
        size_and_slab = size + kernel.slab_bytes
        device, memory_left = kernel.device.device, self.state.memory_left
        slab = (size, wire.slab_room(kernel.slab_bytes)) if kernel.slab_bytes else None
        found = capture(device, size_and_slab, memory_left, slab)
        if found is None:
            return False
        recording.captured, recording.arguments = found, (found.buffer,)
        if kernel.slab_bytes:
            recording.arguments = found.buffer, found.buffer + size, recording.number
        return True

    def _profiled(self, variant: InstrumentedVariant, device: int, stream: int) -> ProfiledKernel:
        """What the launches of a kernel on a device have in common, at the first of them."""
        self._prepare(device, stream)
        profile = variant.variant.kernel.profile
        assert profile is not None
        slab = slab_bytes(profile, self.flush_memory)
        number, of = self._number(variant), self.devices[device]
        found = ProfiledKernel(number, of, profile, profile.block.bytes, slab, Taker(slab))
        self.kernels[variant] = found
        return found

    def _number(self, variant: InstrumentedVariant) -> int:
        kernel = variant.variant.kernel
        return self.state.kernel_number(kernel, self.instrumentation, variant.perturbation)

    def _prepare(self, device: int, stream: int = 0) -> None:
        """Before the first launch on a device: clocks, calibration, the ring buffer."""
        if device in self.devices:
            return
        if stream and self.queue.is_capturing(stream):
            raise ProfileError(
                f"the first launch of this session on GPU {device} would be captured into a CUDA "
                "graph, and the session has to measure the clocks of the GPU before; start the "
                "session where CUDA is in use already, or launch a kernel in it before the capture"
            )
        self._sample(device)
        self.devices[device] = Device(device, self.queue, self.state)
        self._meet(device)

    def _meet(self, device: int) -> None:
        """Has a GPU tell the first of the session its clock, and the other way round."""
        first = next(iter(self.devices))
        pair = peer_pair(first, device) if device != first else None
        if pair is not None:
            self.met.setdefault(device, []).append(pair)

    def _sample(self, device: int) -> None:
        """Has the counters of a GPU sampled from now on, if that is asked for."""
        options = self.state.options
        if options.counters and device not in self.samplers:
            interval = options.counter_interval_ns
            self.samplers[device] = Sampler(device, options.counters, interval)

    # Other launches

    def keep_plain(
        self,
        variant: InstrumentedVariant,
        kernel: GPUKernel,
        grid: tuple[int, int, int],
        device: int,
        start: int,
    ) -> None:
        """Keeps the launch of a kernel without scopes, with the times of the call."""
        end, state = time.perf_counter_ns(), self.state
        with state.lock:
            if not state.begins():
                return
            noted = variant.perturbation
            launch = Launch(
                kernel=state.kernel_number(kernel, self.instrumentation, noted),
                grid=grid,
                capacity=0,
                host_start=start,
                host_end=end,
                buffer=np.zeros(0, np.uint8),
                path=state.host.path(),
                thread=host_thread(),
                device=device,
            )
            self.plain.append(launch)

    def begin_timing(
        self, variant: InstrumentedVariant, is_recorded: bool, device: int, stream: int
    ) -> Timing | None:
        """Begins to time a launch, if that can be; then `end_timing` follows."""
        state = self.state
        with state.lock:
            kernel = self.kernels.get(variant)
            if kernel is None or state.is_finished:
                return None
            return self.run_times.begin(kernel.number, device, is_recorded, stream)

    def end_timing(self, timing: Timing, stream: int, launched: bool) -> None:
        """The launch is queued, or has failed."""
        with self.state.lock:
            self.run_times.end(timing, stream, launched and not self.state.is_finished)

    # The end

    def disown(self) -> None:
        self.devices, self.kernels, self.pending, self.plain = {}, {}, [], []
        self.samplers = {}

    def finish(self) -> Recorded:
        """The launches whose records have arrived, and the clocks of their devices.

        After an error of a kernel the driver copies nothing more: those launches are not among
        them, and `machine` says what the driver said.
        """
        machine: dict[str, object] = {ACTIVITIES: self.no_activities} if self.no_activities else {}
        counters = self._sampled(machine)
        gpus = self._synchronize()
        found = Recorded(
            launches=self.plain,
            counters=counters,
            host=self._seen(),
            gpus=gpus,
            machine=machine,
        )
        found.launches += [launch for pending in self.pending for launch in self._launches(pending)]
        found.dropped = self.lost
        if self.error:
            machine["cuda_error"] = self.error
            return found
        for number, device in self.devices.items():
            with cuda.on_device(number):
                device.release()
        if self.compares_run_times and self.devices:
            found.measured = self.run_times.medians()
        return found

    def _seen(self) -> list[HostSlice]:
        """What CUPTI saw, once the GPU of this thread has done what it was asked for."""
        if self.activities is None:
            return []
        device = cuda.device_in_use()
        if device is not None:
            with contextlib.suppress(cuda.CUDAError):  # `_synchronize` says what is wrong
                cuda.synchronize(device)
        return self.activities.stop()

    def _synchronize(self) -> list[GPUClock]:
        """Waits for the devices and fetches what is still there; the clocks of those in use."""
        clocks = []
        used = {recording.kernel.device.device for recording in self.pending}
        for number, device in self.devices.items():
            with cuda.on_device(number):
                if number in used:
                    try:
                        cuda.synchronize(number)
                        device.read_clock()
                        self._meet(number)
                    except cuda.CUDAError as problem:
                        self.error = str(problem)
                    clocks.append(device.clock())
                device.finish(is_broken=bool(self.error))
        return aligned(clocks, next(iter(self.devices), 0), self.met)

    def _sampled(self, machine: dict[str, object]) -> list[CounterSamples]:
        """What counters said until the GPUs had done everything; where they say nothing after all,
        `machine` says why, and so does a message: the rest of the run is worth keeping."""
        found = []
        for device, sampler in self.samplers.items():
            with cuda.on_device(device), contextlib.suppress(cuda.CUDAError):
                cuda.synchronize(device)  # `_synchronize` says what is wrong
            try:
                found.append(sampler.stop())
                if sampler.lost:
                    machine[f"counters of GPU {device}, lost"] = sampler.told_lost
                    print(f"proton: counters of GPU {device}: {sampler.told_lost}", file=sys.stderr)
            except ProfileError as error:
                machine[f"counters of GPU {device}"] = str(error)
                print(f"proton: {error}", file=sys.stderr)
        return found

    def _launches(self, recording: GPURecording) -> list[Launch]:
        """What became of a launch: nothing, one, or the replays of a graph."""
        device = recording.kernel.device
        if recording.captured is not None:
            return self._replays(recording)
        arrived, slabs, chunks = recording.arrived, device.slabs, []
        if slabs is not None:
            chunks = slabs.chunks.pop(recording.number, [])
            if recording.number in slabs.dropped:
                arrived = None
        if arrived is None:
            self.lost += 1
            return []
        return [recording.launch(arrived, chunks)]

    def _replays(self, recording: GPURecording) -> list[Launch]:
        """The replays of a launch that went into a graph, in their order."""
        assert recording.captured is not None
        if self.error:  # nothing can be read from the device any more
            self.lost += 1
            return []
        device = recording.kernel.device
        with cuda.on_device(device.device):
            count, buffers = recording.captured.replays()
        self.lost += count - len(buffers)
        behind = device.pairs[0].host_ns - device.pairs[0].timer_ns
        launches = []
        for data in buffers:
            began = int(wire.header_column(data[None], "timer_start")[0])
            blocks = Arrived(data[: recording.size], recording.profile.capacity)
            slab = data[recording.size :]
            chunks = chunks_of(slab).get(recording.number, []) if slab.size else []
            launches.append(recording.launch(blocks, chunks, began + behind))
        return launches


def _activities(asked: str) -> tuple[Collector | None, str]:
    """What listens to CUPTI, if that is asked for; else why nothing does, which is said, too."""
    if asked == "own":
        return None, ""
    try:
        return Collector(cupti.load()), ""
    except ProfileError as error:
        if not cuda.device_count():
            return None, ""  # nothing is missing
        print(f"proton: only Proton's own launches are recorded: {error}", file=sys.stderr)
        return None, str(error)
