"""The state of one GPU in a session, and of a launch there.

The buffer of a launch is cut from a ring buffer (buffers.py), so that a launch costs no allocation
and no copy on its stream. Under strategy flush launches also share slabs (slabs.py). Launches that
are captured into a CUDA graph are in graph.py.
"""

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter

import numpy as np

from proton.base.knobs import knobs
from proton.runtime.nvidia import cuda
from proton.runtime.nvidia.buffers import STEP_BYTES, Arrived, LaunchBuffer, RingBuffer
from proton.runtime.nvidia.calibration import GPUCalibration, calibrate
from proton.runtime.nvidia.clock_exchange import TimerPair, timer_pair
from proton.runtime.nvidia.graph import CapturedLaunch
from proton.runtime.nvidia.queue import Queue
from proton.runtime.nvidia.slabs import LEAST_SLABS, MOST_SLABS, Slab, Slabs, TakenChunks, Taker
from proton.runtime.session.recording import SessionState
from proton.trace import iterations, wire
from proton.trace.model import Chunk, GPUClock, Launch
from proton.trace.profile import KernelProfile

_TAKEN = attrgetter("slab", "kernel.taker", "size")
# Of (grid, stream, values of the parameters, what an instrumented kernel takes besides).
Launching = Callable[[tuple[int, int, int], int, Sequence[object], tuple[int, ...]], None]
MOST_BYTES = 2 << 30  # of the buffers of launches on a device at one time
# At most one part of so many of the device's memory is what a ring buffer begins with, and what
# slabs have in all.
SHARE = 64
READ_BYTES = 1 << 20  # of pinned memory, where a monitor reads what graphs left


class Device:
    """The state of one GPU in a session: its memory, and what its clocks said at first."""

    def __init__(self, device: int, queue: Queue, state: SessionState) -> None:
        self.device, self.queue, self.state = device, queue, state
        clock_bits = state.instrumentation.clock_bits
        self.calibration: GPUCalibration = calibrate(device, clock_bits)
        most = min(MOST_BYTES, wire.aligned(knobs.profile_memory, STEP_BYTES))
        ring: RingBuffer[GPURecording] = RingBuffer(device, queue, most, state.lock, self._on_end)
        self.ring = ring
        self.share = first = min(most, cuda.total_memory(device) // SHARE)
        while not ring.grow(first) and first > STEP_BYTES:  # others have the memory
            first //= 2
        self.slabs: Slabs | None = None  # until a launch takes one
        self.pairs: list[TimerPair] = [timer_pair(device)]

    def take_slabs(self, size: int) -> Slabs:
        """The slabs, which are made for the first kernel that takes one, of `size` bytes each."""
        if self.slabs is None:
            self.slabs = Slabs(self.ring)
            self.slabs.make(size, max(LEAST_SLABS, min(MOST_SLABS, self.share // size)))
        return self.slabs

    def give_back(self, recording: "GPURecording") -> None:
        """A launch will never be."""
        if recording.slab is not None:
            Slabs.give_back(recording.slab)
        self.ring.give_back(recording)

    def settle(self) -> None:
        """Notes in the session what memory the thread gave back since the last call, and what
        chunks took. Under the lock."""
        state, ring = self.state, self.ring
        state.memory_left += ring.spared_bytes
        ring.spared_bytes = 0
        if self.slabs is not None:
            state.memory_left -= self.slabs.kept_bytes
            self.slabs.kept_bytes = 0

    def _on_end(self, launches: "list[GPURecording]") -> None:
        if self.slabs is None:
            return
        self.slabs.end(map(_TAKEN, launches))  # without a line of Python for each
        if not self.ring.is_over:
            self.slabs.keep(self.state.memory_left)
            with self.state.lock:
                self.settle()

    def finish(self, is_broken: bool) -> None:
        """Fetches what is still there, when the device has done everything; nothing if it is
        broken."""
        self.ring.finish(is_broken)
        if self.slabs is not None and not is_broken:
            self.slabs.finish(self.state.memory_left)

    def release(self) -> None:
        """Gives the memory back."""
        self.ring.release()
        if "_side" in self.__dict__:
            stream, host = self._side
            cuda.release_stream(stream)
            cuda.release_host(host)
        if self.slabs is not None:
            with self.state.lock:
                self.slabs.release()

    @functools.cached_property
    def _side(self) -> tuple[int, int]:
        """A stream, and memory on the host, through which `read` goes."""
        return cuda.new_stream(), cuda.allocate_host(READ_BYTES)

    def read(self, address: int, size: int) -> np.ndarray:
        """Bytes of the device as they are now: no stream of others' is waited for."""
        stream, host = self._side
        data = np.empty(size, np.uint8)
        for first in range(0, size, READ_BYTES):
            some = data[first : first + READ_BYTES]
            self.queue.copy_to_host(host, address + first, some.size, stream)
            self.queue.synchronize(stream)
            some[:] = cuda.host_bytes(host, some.size)
        return data

    def read_clock(self) -> None:
        """Notes what the clocks say now."""
        self.pairs.append(timer_pair(self.device))

    def clock(self) -> GPUClock:
        """The device's clock by the host's."""
        return GPUClock(
            device=self.device,
            name=cuda.device_name(self.device),
            timer_ns=np.array([pair.timer_ns for pair in self.pairs], np.int64),
            host_ns=np.array([pair.host_ns for pair in self.pairs], np.int64),
            error_ns=max(pair.error_ns for pair in self.pairs),
            slice_cost_cycles=self.calibration.slice_cost_cycles,
            edge_cost_cycles=self.calibration.edge_cost_cycles,
        )


@dataclass(frozen=True, slots=True)
class ProfiledKernel:
    """What all launches of an instrumented kernel on one GPU have in common in a session."""

    number: int  # in the run
    launch: Launching  # of the instrumented kernel
    device: Device
    ring: RingBuffer["GPURecording"]  # the device's
    profile: KernelProfile
    block_bytes: int
    slabs: Slabs | None  # the device's, where the kernel takes chunks
    slab_bytes: int  # 0 where it does not
    taker: Taker

    def place(self, recording: "GPURecording") -> tuple[int, ...] | None:
        """Gives a launch a buffer of zeros, and a slab where its kernel takes one: what the
        instrumented kernel takes behind the arguments of the plain one; None where there is no
        memory. Under the lock."""
        device, ring, size = self.device, self.ring, recording.size
        state = device.state
        if size > state.memory_left:
            device.settle()
        if size > state.memory_left or not ring.take(recording):
            return None
        state.memory_left -= size
        if self.slabs is None:
            return (ring.address + recording.start,)
        slab = recording.slab = self.slabs.take(
            self.slab_bytes, self.taker, size, state.memory_left
        )
        if slab is None:
            ring.give_back(recording)
            state.memory_left += size
            return None
        return ring.address + recording.start, slab.address, recording.number


class GPURecording(LaunchBuffer):
    """A launch and its profile buffer, which is cut from a ring buffer, unless the launch is
    `captured` into a graph; `slab` is what it takes chunks from.
    """

    host_start = host_end = 0
    slab: Slab | None = None
    captured: CapturedLaunch | None = None

    def __init__(
        self,
        number: int,
        kernel: ProfiledKernel,
        grid: tuple[int, int, int],
        size: int,
        path: str,
        thread: int,
        stream: int,
    ) -> None:
        """`number` is what slabs know it by; `size` is in bytes."""
        self.size = size
        self.profile = kernel.profile
        self.stream = stream
        self.number = number
        self.kernel = kernel
        self.grid = grid
        self.path = path
        self.thread = thread

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
        if self.profile.loops:
            block = replace(self.profile.block, capacity=arrived.capacity)
            iterations.expand(launch.buffer, block, self.profile.loops)
        return launch


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
