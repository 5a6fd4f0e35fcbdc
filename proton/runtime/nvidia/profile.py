"""Launches on a GPU while a session records: their buffers, and what is made of them.

The buffer of a launch is cut from a ring buffer (buffers.py), so that a launch costs no allocation
and no copy on its stream. Under strategy flush launches also share slabs (slabs.py). The
session's limit of memory holds for all that is kept, and a launch beyond it, or for which the
device has no memory, runs without records and is counted. Launches that are captured into a CUDA
graph are in graph.py.
"""

import time
from dataclasses import dataclass

import numpy as np

from proton.base.errors import ProfileError
from proton.base.knobs import knobs
from proton.runtime.grid import host_thread
from proton.runtime.nvidia import cuda
from proton.runtime.nvidia.buffers import (
    LASTING_STREAMS,
    STEP_BYTES,
    Arrived,
    LaunchBuffer,
    RingBuffer,
)
from proton.runtime.nvidia.calibration import GPUCalibration, TimerPair, calibrate, timer_pair
from proton.runtime.nvidia.graph import CapturedLaunch, capture
from proton.runtime.nvidia.slabs import Slab, Slabs, TakenChunks, chunks_of, slab_bytes
from proton.trace import wire
from proton.trace.model import Chunk, GPUClock, Launch
from proton.trace.profile import KernelProfile

MOST_BYTES = 2 << 30  # of the buffers of launches on a device at one time
FIRST_SHARE = 64  # a ring buffer begins with at most one part of so many of the device's memory


class GPURecording(LaunchBuffer):
    """A launch and its profile buffer, which is cut from a ring buffer, unless the launch is
    `captured` into a graph; `slab` is what it takes segments from."""

    __slots__ = (
        *("address", "captured", "grid", "slab", "host_end", "host_start", "kernel", "number"),
        *("path", "taken", "thread"),
    )

    def __init__(
        self,
        number: int,
        kernel: "ProfiledKernel",
        grid: tuple[int, int, int],
        size: int,
        path: str,
        stream: int,
    ) -> None:
        """`number` is what slabs know it by; `size` is in bytes."""
        super().__init__(size, kernel.profile, stream)
        self.number, self.kernel, self.grid, self.path = number, kernel, grid, path
        self.thread = host_thread()
        self.taken = size  # of the session's memory
        self.host_start = self.host_end = self.address = 0
        self.slab: Slab | None = None
        self.captured: CapturedLaunch | None = None

    @property
    def arguments(self) -> tuple[int, ...]:
        """What the instrumented kernel takes behind the arguments of the plain one."""
        if not self.kernel.slab_bytes:
            return (self.address,)
        if self.slab is not None:
            return self.address, self.slab.address, self.number
        return self.address, self.address + self.size, self.number  # captured: behind the blocks

    def launch(self, arrived: Arrived, chunks: list[TakenChunks], start: int = 0) -> Launch:
        """What the run says of it, given its blocks, which it keeps, and its chunks; `start` is
        when it was launched where that is not when it was captured."""
        launch = Launch(
            kernel=self.kernel.number,
            grid=self.grid,
            capacity=arrived.capacity,
            host_start=start or self.host_start,
            host_end=start or self.host_end,
            buffer=arrived.data,
            path=self.path,
            thread=self.thread,
            device=self.kernel.device.device,
        )
        _take_chunks(launch, self.profile.block, chunks)
        return launch


class _Device:
    """What a session has of one GPU: its memory, and what its clocks said at first."""

    def __init__(self, device: int, clock_bits: int, queue: cuda.Queue) -> None:
        self.device, self.queue = device, queue
        self.calibration: GPUCalibration = calibrate(device, clock_bits)
        most = min(MOST_BYTES, wire.aligned(knobs.profile_memory, STEP_BYTES))
        self.ring: RingBuffer[GPURecording] = RingBuffer(device, queue, most, self._on_arrival)
        first = min(most, cuda.total_memory(device) // FIRST_SHARE)
        while not self.ring.grow(first) and first > STEP_BYTES:  # others have the memory
            first //= 2
        self.slabs: Slabs | None = None  # until a launch takes one
        self.memory_left = 0  # of the session, when a launch began last
        self.pairs: list[TimerPair] = [timer_pair(device)]

    def take_slab(self, size: int, kernel: int) -> Slab | None:
        """The slab of a launch of a kernel."""
        if self.slabs is None:
            self.slabs = Slabs(self.queue, cuda.new_stream())
        return self.slabs.take(size, kernel)

    def give_slab(self, slab: Slab | None) -> None:
        """A launch has ended, or will never be."""
        if slab is not None and self.slabs is not None:
            self.slabs.done(slab)

    def _on_arrival(self, launches: list[GPURecording]) -> None:
        if self.slabs is not None:
            for launch in launches:
                self.give_slab(launch.slab)
            if not self.ring.is_over:
                self.slabs.keep(self.memory_left)


@dataclass(frozen=True, slots=True)
class ProfiledKernel:
    """What all launches of an instrumented kernel on one GPU have in common in a session."""

    number: int  # in the run
    device: _Device
    profile: KernelProfile
    block_bytes: int
    slab_bytes: int  # 0 where the kernel takes no slab


@dataclass(frozen=True)
class Timing:
    """Events around a launch of a kernel, with records or without."""

    kernel: int
    device: int
    is_recorded: bool
    begin: int
    end: int


class GPURecorder:
    """The GPU launches of one session."""

    def __init__(self, clock_bits: int) -> None:
        self.clock_bits = clock_bits
        self.flush_memory: int = knobs.profile_flush_memory
        self.queue = cuda.Queue()
        self.devices: dict[int, _Device] = {}
        self.pending: list[GPURecording] = []
        self.timings: list[Timing] = []
        self.number = 0  # of the last launch
        self.lost = 0  # launches whose records did not arrive
        self.error = ""  # what the driver said when the session ended

    def settle(self) -> int:
        """Bytes of the session's memory that are free again since the last call, less those that
        chunks took."""
        found = 0
        for device in self.devices.values():
            found += device.ring.spared_bytes
            device.ring.spared_bytes = 0
            if device.slabs is not None:
                found -= device.slabs.kept_bytes
                device.slabs.kept_bytes = 0
        return found

    def prepare(self, device: int, stream: int = 0) -> None:
        """Before the first launch on a device: clocks, calibration, the ring buffer."""
        if device in self.devices:
            return
        if stream and self.queue.is_capturing(stream):
            raise ProfileError(
                f"the first launch of this session on GPU {device} would be captured into a CUDA "
                "graph, and the session has to measure the clocks of the GPU before; start the "
                "session where CUDA is in use already, or launch a kernel in it before the capture"
            )
        self.devices[device] = _Device(device, self.clock_bits, self.queue)

    def profiled(self, number: int, profile: KernelProfile, device: int) -> ProfiledKernel:
        """An instrumented kernel, the `number` of the run, on a device that is prepared."""
        slab = slab_bytes(profile, self.flush_memory)
        return ProfiledKernel(number, self.devices[device], profile, profile.block.bytes, slab)

    def begin(
        self,
        kernel: ProfiledKernel,
        grid: tuple[int, int, int],
        path: str,
        stream: int,
        memory_left: int,
    ) -> GPURecording | None:
        """A launch with a zeroed profile buffer, whose kernel is queued next; None where that takes
        more than is left of the session's memory."""
        size = grid[0] * grid[1] * grid[2] * kernel.block_bytes
        self.number += 1
        recording = GPURecording(self.number, kernel, grid, size, path, stream)
        if stream not in LASTING_STREAMS and self.queue.is_capturing(stream):
            is_placed = self._capture(recording, memory_left)
        else:
            is_placed = size <= memory_left and self._place(recording, memory_left)
        recording.host_start = time.perf_counter_ns()
        return recording if is_placed else None

    def _capture(self, recording: GPURecording, memory_left: int) -> bool:
        """A buffer of the graph's own; False where there is no memory."""
        kernel, size, stream = recording.kernel, recording.size, recording.stream
        size_and_slab = size + kernel.slab_bytes
        found = capture(self.queue, kernel.device.device, stream, size_and_slab, memory_left)
        if found is None:
            return False
        recording.captured, recording.address, recording.taken = found, found.buffer, found.bytes
        if kernel.slab_bytes:
            place = found.buffer + size + wire.slab_room_offset()
            self.queue.set_word(place, wire.slab_room(kernel.slab_bytes), stream)
        return True

    def _place(self, recording: GPURecording, memory_left: int) -> bool:
        """A zeroed buffer, and a slab, if the kernel takes one; False where there is no memory."""
        device, slab_bytes = recording.kernel.device, recording.kernel.slab_bytes
        if slab_bytes:
            device.memory_left = memory_left
            recording.slab = device.take_slab(slab_bytes, recording.kernel.number)
            if recording.slab is None:
                return False
        ring = device.ring
        if not ring.take(recording):
            device.give_slab(recording.slab)
            return False
        recording.address = ring.address + recording.start
        return True

    def end(self, recording: GPURecording) -> None:
        """Has the records fetched, behind the kernel."""
        now = recording.host_end = time.perf_counter_ns()
        self.pending.append(recording)
        if recording.captured is not None:
            recording.captured.keep(recording.stream)
            return
        device = recording.kernel.device
        device.ring.send(recording, now)
        slab = recording.slab
        if slab is not None and slab.is_looked_for:
            device.ring.wake(now)

    def begin_timing(self, kernel: int, device: int, is_recorded: bool, stream: int) -> Timing:
        """Queues the event before a launch."""
        begin, end = (self.queue.new_event(is_timed=True) for _ in range(2))
        self.queue.record(begin, stream)
        return Timing(kernel, device, is_recorded, begin, end)

    def end_timing(self, timing: Timing, stream: int, counts: bool) -> None:
        """Queues the event behind the launch, if its time `counts`."""
        if counts:
            self.queue.record(timing.end, stream)
            self.timings.append(timing)
        else:
            self._release(timing)

    def _release(self, timing: Timing) -> None:
        self.queue.release_event(timing.begin)
        self.queue.release_event(timing.end)

    def run_times(self) -> dict[int, dict[str, int]]:
        """Of each kernel that was timed the median run time, ns, with records (`run_ns`) and
        without (`run_ns_off`); after `finish`."""
        if self.error:
            return {}
        found: dict[int, dict[str, list[int]]] = {}
        for timing in self.timings:
            name = "run_ns" if timing.is_recorded else "run_ns_off"
            times = found.setdefault(timing.kernel, {}).setdefault(name, [])
            with cuda.on_device(timing.device):
                times.append(self.queue.elapsed_ns(timing.begin, timing.end))
                self._release(timing)
        return {
            kernel: {name: round(float(np.median(times))) for name, times in by_name.items()}
            for kernel, by_name in found.items()
        }

    def abandon(self, recording: GPURecording, is_queued: bool) -> None:
        """Gives the memory of a launch back whose records nobody wants; where its kernel may be
        queued, when nobody can tell."""
        device = recording.kernel.device
        if recording.captured is not None:
            return
        if is_queued:
            device.ring.abandon()
        else:
            device.give_slab(recording.slab)
            device.ring.give_back(recording)

    def finish(self, memory_left: int) -> tuple[list[Launch], list[GPUClock]]:
        """The launches whose records have arrived, and the clocks of their devices.

        After an error of a kernel the driver copies nothing more: those launches are not among
        them, and `error` says what it said.
        """
        clocks = {}
        used = {recording.kernel.device.device for recording in self.pending}
        for number, device in self.devices.items():
            with cuda.on_device(number):
                if number in used:
                    try:
                        cuda.synchronize(number)
                        device.pairs.append(timer_pair(number))
                    except cuda.CUDAError as problem:
                        self.error = str(problem)
                    clocks[number] = _clock(device)
                device.ring.finish(is_broken=bool(self.error))
                if device.slabs is not None and not self.error:
                    device.slabs.finish(memory_left)
        launches = [launch for recording in self.pending for launch in self._launches(recording)]
        if not self.error:
            self._release_memory()
        return launches, list(clocks.values())

    def _launches(self, recording: GPURecording) -> list[Launch]:
        """What became of a launch: nothing, one, or the replays of a graph."""
        device = recording.kernel.device
        if recording.captured is not None:
            return self._replays(recording, _clock(device))
        arrived, slabs, chunks = recording.arrived, device.slabs, []
        if slabs is not None:
            chunks = slabs.chunks.pop(recording.number, [])
            if recording.number in slabs.dropped:
                arrived = None
        if arrived is None:
            self.lost += 1
            return []
        return [recording.launch(arrived, chunks)]

    def _release_memory(self) -> None:
        for number, device in self.devices.items():
            with cuda.on_device(number):
                device.ring.release()
                if device.slabs is not None:
                    device.slabs.release()

    def _replays(self, recording: GPURecording, clock: GPUClock) -> list[Launch]:
        """The replays of a launch that went into a graph, in their order."""
        assert recording.captured is not None
        if self.error:  # nothing can be read from the device any more
            self.lost += 1
            return []
        with cuda.on_device(recording.kernel.device.device):
            count, buffers = recording.captured.replays()
        self.lost += count - len(buffers)
        behind = int(clock.host_ns[0] - clock.timer_ns[0])
        launches = []
        for data in buffers:
            began = int(wire.header_column(data[None], "timer_start")[0])
            blocks = Arrived(data[: recording.size], recording.profile.capacity)
            slab = data[recording.size :]
            chunks = chunks_of(slab).get(recording.number, []) if slab.size else []
            launches.append(recording.launch(blocks, chunks, began + behind))
        return launches


def _take_chunks(launch: Launch, block: wire.Block, taken: list[TakenChunks]) -> None:
    """Gives a launch its chunks, as the flush strategy leaves them: those that are full. What a
    chunk that is not full holds is what is left in the unit's segment."""
    if not taken:
        return
    launch.buffer = launch.buffer.copy()  # it may lie in a buffer with others
    programs = max(1, launch.grid[0] * launch.grid[1] * launch.grid[2])
    blocks = launch.buffer.reshape(programs, -1)
    capacity, record = block.capacity, block.schema.bytes
    written = wire.table_columns(blocks, block.units)
    for chunks in taken:
        heads = chunks.heads
        counts = written[heads["program"], heads["unit"]] - heads["first"]
        counts = np.minimum(counts.astype(np.int64), capacity)
        columns = (heads[name].tolist() for name in ("program", "unit", "first"))
        for *of, count, data in zip(*columns, counts.tolist(), chunks.data, strict=True):
            program, unit, first = of
            records = data[: max(0, count) * record]
            if count == capacity:
                launch.chunks.append(Chunk(program=program, unit=unit, first=first, data=records))
            elif count > 0:
                segment = block.segment(unit)
                blocks[program, segment : segment + records.size] = records


def _clock(device: _Device) -> GPUClock:
    return GPUClock(
        device=device.device,
        name=cuda.device_name(device.device),
        timer_ns=np.array([pair.timer_ns for pair in device.pairs], np.int64),
        host_ns=np.array([pair.host_ns for pair in device.pairs], np.int64),
        error_ns=max(pair.error_ns for pair in device.pairs),
        slice_cost_cycles=device.calibration.slice_cost_cycles,
        edge_cost_cycles=device.calibration.edge_cost_cycles,
    )
