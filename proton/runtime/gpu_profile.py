"""Launches on a GPU while a session records: their buffers, and the copies that drain them.

Everything that a launch needs is queued on its own stream, and nobody waits: a profile buffer, the
kernel, a copy into pinned host memory. Buffers are pieces of a ring (gpu_buffers.py), so that a
launch costs no allocation; where the ring is full a launch takes its buffer from a pool and gives
it back behind the copy. The session's limit of memory holds for all that is kept, and a launch
beyond it runs without records and is counted. Launches that are captured into a CUDA graph are in
gpu_graph.py.
"""

import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from proton.base.errors import ProfileError
from proton.base.knobs import knobs
from proton.runtime import cuda
from proton.runtime.gpu_buffers import RING_BYTES, Piece, Ring
from proton.runtime.gpu_calibration import GPUCalibration, TimerPair, calibrate, timer_pair
from proton.runtime.gpu_graph import CapturedLaunch, capture
from proton.runtime.grid import host_thread
from proton.trace import wire
from proton.trace.model import Chunk, GPUClock, Launch

PINNED_BYTES = 64 << 20  # for launches that found no place in the ring


@dataclass(frozen=True)
class Heap:
    """The chunks behind the blocks of a launch, under strategy flush; none under others."""

    chunks: int = 0
    chunk_bytes: int = 0
    record_bytes: int = 0

    @property
    def size(self) -> int:
        return wire.HEAP_HEAD.itemsize + self.chunks * self.chunk_bytes if self.chunks else 0


def heap_of(profile: dict[str, Any]) -> Heap:
    """The heap of a launch of a kernel with this profile: as large as a knob says."""
    if profile["strategy"] != "flush":
        return Heap()
    record = wire.record_bytes(profile["payload_slots"], profile["clock_bits"])
    size = wire.chunk_bytes(profile["capacity"], profile["payload_slots"], profile["clock_bits"])
    return Heap(max(1, knobs.profile_flush_memory // size), size, record)


@dataclass(slots=True)
class GPURecording:
    """A launch and its profile buffer, blocks and heap.

    The buffer is a `piece` of the ring, or it is of the pool and goes to the pinned memory `host`,
    or the launch is `captured` into a graph.
    """

    kernel: int
    grid: tuple[int, int, int]
    capacity: int
    path: str
    device: int
    stream: int
    size: int  # of the blocks
    heap: Heap
    thread: int
    host_start: int = 0
    host_end: int = 0
    address: int = 0
    host: int = 0
    piece: Piece | None = None
    captured: CapturedLaunch | None = None

    @property
    def bytes(self) -> int:
        return self.size + self.heap.size

    @property
    def taken(self) -> int:
        """Bytes of the session's memory."""
        return self.bytes if self.captured is None else self.captured.bytes

    def launch(self, data: np.ndarray, start: int = 0) -> Launch:
        """What the run says of it, given the bytes of the whole buffer, which it keeps; `start` is
        when it was launched where that is not when it was captured."""
        launch = Launch(
            kernel=self.kernel,
            grid=self.grid,
            capacity=self.capacity,
            host_start=start or self.host_start,
            host_end=start or self.host_end,
            buffer=data[: self.size],
            path=self.path,
            thread=self.thread,
            device=self.device,
        )
        _take_chunks(self.heap, launch, data[self.size :])
        return launch


class _Device:
    """What a session has of one GPU: its memory, and what its clocks said at first."""

    def __init__(self, device: int, clock_bits: int, queue: cuda.Queue) -> None:
        self.device = device
        self.pool = cuda.memory_pool(device)
        self.calibration: GPUCalibration = calibrate(device, clock_bits)
        self.ring = Ring(device, queue, RING_BYTES)
        self.pairs: list[TimerPair] = [timer_pair(device)]


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
        self.queue = cuda.Queue()
        self.devices: dict[int, _Device] = {}
        self.pending: list[GPURecording] = []
        self.arenas: list[int] = []
        self.used = 0  # of the last arena
        self.timings: list[Timing] = []
        self.lost = 0  # launches whose records did not arrive
        self.error = ""  # what the driver said when the session ended

    def prepare(self, device: int, stream: int = 0) -> None:
        """Before the first launch on a device: clocks, calibration, the ring."""
        if device in self.devices:
            return
        if stream and self.queue.is_capturing(stream):
            raise ProfileError(
                f"the first launch of this session on GPU {device} would be captured into a CUDA "
                "graph, and the session has to measure the clocks of the GPU before; start the "
                "session where CUDA is in use already, or launch a kernel in it before the capture"
            )
        self.devices[device] = _Device(device, self.clock_bits, self.queue)

    def begin(
        self,
        kernel: int,
        grid: tuple[int, int, int],
        capacity: int,
        size: int,
        heap: Heap,
        path: str,
        device: int,
        stream: int,
        memory_left: int,
    ) -> GPURecording | None:
        """A launch with a zeroed profile buffer, whose kernel is queued next; None where that takes
        more than is left of the session's memory."""
        found = GPURecording(
            kernel, grid, capacity, path, device, stream, size, heap, host_thread()
        )
        if self.queue.is_capturing(stream):
            found.captured = capture(self.queue, device, stream, found.bytes, memory_left)
            if found.captured is None:
                return None
            found.address = found.captured.buffer
        elif found.bytes > memory_left:
            return None
        else:
            self._place(found)
        if heap.chunks:
            chunks = wire.offset_of(wire.HEAP_HEAD, "chunks")
            self.queue.set_word(found.address + size + chunks, heap.chunks, stream)
        found.host_start = time.perf_counter_ns()
        return found

    def _place(self, recording: GPURecording) -> None:
        """A zeroed buffer: a piece of the ring, or memory of the pool."""
        device, stream, size = self.devices[recording.device], recording.stream, recording.bytes
        piece = recording.piece = device.ring.take(size)
        if piece is None:
            recording.address = self.queue.allocate(device.pool, size, stream)
            return
        recording.address = device.ring.memory + piece.start
        if not piece.is_clear:
            self.queue.clear(recording.address, size, stream)

    def end(self, recording: GPURecording) -> None:
        """Queues the way of the records to the host, behind the kernel."""
        recording.host_end = time.perf_counter_ns()
        self.pending.append(recording)
        size, stream = recording.bytes, recording.stream
        if recording.captured is not None:
            recording.captured.keep(stream)
        elif recording.piece is not None:
            self.devices[recording.device].ring.send(recording.piece, size, stream)
        else:
            recording.host = self._take(size)
            self.queue.copy_to_host(recording.host, recording.address, size, stream)
            self.queue.release(recording.address, stream)

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

    def abandon(self, recording: GPURecording) -> None:
        """Gives the memory of a launch back whose records nobody wants."""
        if recording.piece is not None:
            self.devices[recording.device].ring.abandon()
        elif recording.captured is None:
            self.queue.release(recording.address, recording.stream)

    def _take(self, size: int) -> int:
        """Pinned memory of an arena."""
        if self.used + size > PINNED_BYTES or not self.arenas:
            with cuda.capture_aside():
                self.arenas.append(cuda.allocate_host(max(PINNED_BYTES, size)))
            self.used = 0
        address = self.arenas[-1] + self.used
        self.used += wire.aligned(size, wire.BLOCK_ALIGNMENT)
        return address

    def finish(self) -> tuple[list[Launch], list[GPUClock]]:
        """The launches whose records have arrived, and the clocks of their devices.

        After an error of a kernel the driver copies nothing more: those launches are not among
        them, and `error` says what it said.
        """
        clocks = {}
        used = {recording.device for recording in self.pending}
        for number, device in self.devices.items():
            if number in used:
                try:
                    cuda.synchronize(number)
                    device.pairs.append(timer_pair(number))
                except cuda.CUDAError as problem:
                    self.error = str(problem)
                clocks[number] = _clock(device)
            device.ring.finish()
        launches = []
        for recording in self.pending:
            if recording.captured is not None:
                launches += self._replays(recording, clocks[recording.device])
                continue
            if recording.piece is not None:
                assert recording.piece.data is not None
                data = recording.piece.data
            else:
                data = cuda.host_bytes(recording.host, recording.bytes).copy()
            if self.error and not data[: recording.size].any():
                self.lost += 1
            else:
                launches.append(recording.launch(data))
        if not self.error:
            self._release_memory()
        return launches, list(clocks.values())

    def _release_memory(self) -> None:
        """In the contexts of the devices; pinned memory belongs to all of them."""
        for number, device in self.devices.items():
            with cuda.on_device(number):
                device.ring.release()
                while self.arenas:
                    cuda.release_host(self.arenas.pop())

    def _replays(self, recording: GPURecording, clock: GPUClock) -> list[Launch]:
        """The replays of a launch that went into a graph, in their order."""
        assert recording.captured is not None
        if self.error:  # nothing can be read from the device any more
            self.lost += 1
            return []
        with cuda.on_device(recording.device):
            count, buffers = recording.captured.replays()
        self.lost += count - len(buffers)
        behind = int(clock.host_ns[0] - clock.timer_ns[0])
        timer = wire.header_offset("timer_start")
        launches = []
        for data in buffers:
            began = int(data[timer : timer + 8].view("<i8")[0])
            launches.append(recording.launch(data, began + behind))
        return launches


def _take_chunks(heap: Heap, launch: Launch, data: np.ndarray) -> None:
    """Makes chunks of a heap, as the flush strategy leaves them: those that are full. What a
    chunk that is not full holds is what is left in the unit's segment."""
    if not heap.chunks:
        return
    taken = min(int(data[:4].view("<u4")[0]), heap.chunks)
    places = wire.HEAP_HEAD.itemsize + np.arange(taken) * heap.chunk_bytes
    heads = np.ndarray(
        (taken,), wire.CHUNK_HEAD, data, wire.HEAP_HEAD.itemsize, (heap.chunk_bytes,)
    )
    programs = max(1, launch.grid[0] * launch.grid[1] * launch.grid[2])
    block = launch.buffer.size // programs
    units = int(launch.buffer[wire.header_offset("units") :][:4].view("<u4")[0])
    for place, head in zip(places.tolist(), heads.tolist(), strict=True):
        program, unit, first = head
        base = program * block
        table = base + wire.table_offset() + 8 * unit
        written = int(launch.buffer[table : table + 8].view("<u8")[0])
        count = min(launch.capacity, written - first)
        start = place + wire.CHUNK_HEAD.itemsize
        records = data[start : start + max(0, count) * heap.record_bytes]
        if count == launch.capacity:
            chunk = Chunk(program=program, unit=unit, first=first, data=records.copy())
            launch.chunks.append(chunk)
        elif count > 0:
            segment = wire.segments_offset(units) + unit * launch.capacity * heap.record_bytes
            launch.buffer[base + segment :][: records.size] = records


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

