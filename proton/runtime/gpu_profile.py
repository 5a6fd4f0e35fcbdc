"""Launches on a GPU while a session records: their buffers, and the copies that drain them.

Everything that a launch needs is queued on its own stream, and nobody waits: memory from a pool,
zeros, the kernel, a copy into pinned host memory, the memory's return to the pool. The session
looks at the copies when it ends. Pinned memory is taken in pieces of an arena, so that a launch
costs no allocation while the arena lasts; the session's limit of memory holds for it, too, and a
launch beyond it runs without records and is counted.
"""

import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from proton.base.errors import ProfileError
from proton.base.knobs import knobs
from proton.runtime import cuda
from proton.runtime.gpu_calibration import GPUCalibration, TimerPair, calibrate, timer_pair
from proton.runtime.grid import host_thread
from proton.trace import wire
from proton.trace.model import Chunk, GPUClock, Launch

PINNED_BYTES = 64 << 20


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
    size = wire.chunk_bytes(
        profile["capacity"], profile["payload_slots"], profile["clock_bits"]
    )
    return Heap(max(1, knobs.profile_flush_memory // size), size, record)


@dataclass
class GPURecording:
    """A launch and its profile buffer, blocks and heap; `host` is the pinned memory that the
    records go to."""

    launch: Launch
    address: int
    size: int  # of the blocks
    heap: Heap
    stream: int
    host: int = 0

    @property
    def bytes(self) -> int:
        return self.size + self.heap.size


class _Device:
    """What a session has of one GPU: its memory pool, and what its clocks said at first."""

    def __init__(self, device: int, clock_bits: int) -> None:
        self.device = device
        self.pool = cuda.memory_pool(device)
        self.calibration: GPUCalibration = calibrate(device, clock_bits)
        self.pairs: list[TimerPair] = [timer_pair(device)]


class GPURecorder:
    """The GPU launches of one session."""

    def __init__(self, clock_bits: int) -> None:
        self.clock_bits = clock_bits
        self.queue = cuda.Queue()
        self.devices: dict[int, _Device] = {}
        self.pending: list[GPURecording] = []
        self.arenas: list[int] = []
        self.used = 0  # of the last arena
        self.lost = 0  # launches whose records did not arrive
        self.error = ""  # what the driver said when the session ended

    def prepare(self, device: int) -> None:
        """Before the first launch on a device: clocks, calibration, the first arena."""
        if device not in self.devices:
            self.devices[device] = _Device(device, self.clock_bits)
            self._take(0)

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
    ) -> GPURecording:
        """A launch with a zeroed profile buffer, whose kernel is queued next."""
        if self.queue.is_capturing(stream):
            raise ProfileError(
                "a launch that is captured into a CUDA graph is not recorded; capture outside of "
                "the session"
            )
        address = self.queue.allocate(self.devices[device].pool, size + heap.size, stream)
        if heap.chunks:
            chunks = wire.offset_of(wire.HEAP_HEAD, "chunks")
            self.queue.set_word(address + size + chunks, heap.chunks, stream)
        now = time.perf_counter_ns()
        launch = Launch(
            kernel=kernel,
            grid=grid,
            capacity=capacity,
            host_start=now,
            host_end=now,
            buffer=np.zeros(0, np.uint8),
            path=path,
            thread=host_thread(),
            device=device,
        )
        return GPURecording(launch, address, size, heap, stream)

    def end(self, recording: GPURecording) -> None:
        """Queues the way of the records to the host, behind the kernel."""
        recording.launch.host_end = time.perf_counter_ns()
        size = recording.bytes
        recording.host = self._take(size)
        self.queue.copy_to_host(recording.host, recording.address, size, recording.stream)
        self.queue.release(recording.address, recording.stream)
        self.pending.append(recording)

    def abandon(self, recording: GPURecording) -> None:
        """Gives the memory of a launch back whose records nobody wants."""
        self.queue.release(recording.address, recording.stream)

    def _take(self, size: int) -> int:
        """Pinned memory of an arena."""
        if self.used + size > PINNED_BYTES or not self.arenas:
            self.arenas.append(cuda.allocate_host(max(PINNED_BYTES, size)))
            self.used = 0
        address = self.arenas[-1] + self.used
        self.used += -(-size // wire.BLOCK_ALIGNMENT) * wire.BLOCK_ALIGNMENT
        return address

    def finish(self) -> tuple[list[Launch], list[GPUClock]]:
        """The launches whose records have arrived, and the clocks.

        After an error of a kernel the driver copies nothing more: those launches are not among
        them, and `error` says what it said.
        """
        clocks = []
        for device in self.devices.values():
            try:
                cuda.synchronize(device.device)
                device.pairs.append(timer_pair(device.device))
            except cuda.CUDAError as problem:
                self.error = str(problem)
            clocks.append(_clock(device))
        launches = []
        for recording in self.pending:
            data = cuda.host_bytes(recording.host, recording.bytes)
            if self.error and not data[: recording.size].any():
                self.lost += 1
                continue
            recording.launch.buffer = data[: recording.size].copy()
            _take_chunks(recording, data[recording.size :])
            launches.append(recording.launch)
        if not self.error:
            for arena in self.arenas:
                cuda.release_host(arena)
        return launches, clocks


def _take_chunks(recording: GPURecording, data: np.ndarray) -> None:
    """Makes chunks of a heap, as the flush strategy leaves them: those that are full. What a
    chunk that is not full holds is what is left in the unit's segment."""
    heap, launch = recording.heap, recording.launch
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

