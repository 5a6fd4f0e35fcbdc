"""Where the profile buffers of launches lie, and how they get to the host while others run.

A *ring buffer* is memory of the device from which launches take their buffers, one behind the
other, and that is all that they do. Nothing is copied on their streams, so what follows there does
not wait for it; on a stream of the user's own an event is queued now and then, on a default stream
not even that.

A thread fetches the buffers of kernels that have ended, by a stream of the ring's own, clears them
for the next launches, and keeps what it got. Python runs one thread at a time, and each time that
this one runs costs the one that launches some microseconds; so does waking it. So it looks by
itself now and then. While launches come in quick succession it puts off what it has to fetch and
lets the ring grow, and fetches only when the ring may not grow any more and half of it is taken;
else it fetches a part at a time, and stops where launches come again. A launch that finds no room
runs without records: nobody ever waits.

Of a large buffer the heads of its blocks are fetched first, and then what they say was written
(`Sparse`).
"""

import contextlib
import ctypes
import itertools
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Generic, TypeVar

import numpy as np

from proton.runtime.nvidia import cuda
from proton.runtime.nvidia.queue import Queue
from proton.trace import wire
from proton.trace.profile import KernelProfile

STEP_BYTES = 128 << 20  # by which a ring grows
STAGING_BYTES = 16 << 20  # of pinned memory on the host, through which buffers are fetched
PART_BYTES = 16 << 20  # of buffers are fetched at a time, where one has not more
# Launches on a stream of the user's own; and behind a launch that comes alone, or ends a slab.
EVENT_EVERY = 16
ALONE_NS = 1_000_000  # such a launch comes so long after the one before
PAUSE_S = 0.016  # of the thread, before it sees by itself whether there is something to fetch
SHORT_BYTES = 4 << 10  # are copied under Python's lock: to take it back costs others more
SPARSE_BYTES = 256 << 10  # of larger buffers only what was written is fetched
# The default stream of a context, by its two names: nobody can destroy it, and it is the same for
# all threads, so an event may be recorded there at any time.
LASTING_STREAMS = (0, 1)


@dataclass(slots=True, frozen=True)
class Arrived:
    """The blocks of a launch on the host; `capacity` may be less than that of the launch."""

    data: np.ndarray
    capacity: int


class LaunchBuffer:
    """What a launch has of a ring buffer: blocks of a kernel whose `profile` says how they are laid
    out.

    `start` is where they lie, `event` what is queued behind the kernel, if anything is, and
    `arrived` what the launch left there; `is_held` until the kernel is queued. It is made anew for
    each launch, so what a launch begins with is a default of the class.
    """

    start = 0
    event = 0
    is_held = True
    is_free = False
    arrived: Arrived | None = None

    def __init__(self, size: int, profile: KernelProfile, stream: int) -> None:
        """`size` bytes, a multiple of the alignment of blocks."""
        self.size, self.profile, self.stream = size, profile, stream

    @property
    def is_sparse(self) -> bool:
        """True if only what was written of it is fetched."""
        return self.size >= SPARSE_BYTES and self.profile.is_ring


Taken = TypeVar("Taken", bound=LaunchBuffer)


class Sparse:
    """What is written of the blocks of a large buffer, given their heads.

    A block is a head (header and table) and the segments of its units, and the same parts of all
    blocks lie as far apart as blocks do: what is written of one part is rows of one width. The
    result is a buffer with room for as many records per unit as one of the units wrote, if that is
    less than the capacity.
    """

    def __init__(self, heads: np.ndarray, block: wire.Block) -> None:
        self.heads, self.block = heads, block  # (blocks, bytes)
        written = wire.table_columns(heads, block.units)
        self.most = np.minimum(written.max(axis=0), block.capacity).astype(np.int64)
        # One that was killed may lack in its table what it wrote.
        if (wire.header_column(heads, "state") == wire.ProgramState.STARTED).any():
            self.most[:] = block.capacity

    @cached_property
    def kept(self) -> wire.Block:
        """The layout of the result."""
        most = int(self.most.max(initial=0))
        capacity = min(self.block.capacity, 1 << max(0, most - 1).bit_length())
        return replace(self.block, capacity=capacity)

    def parts(self) -> list[tuple[int, int, int]]:
        """(offset in a block, offset in a block of the result, bytes) of what else was written."""
        size = self.block.schema.bytes
        return [
            (self.block.segment(unit), self.kept.segment(unit), int(most) * size)
            for unit, most in enumerate(self.most)
            if most
        ]

    def blocks(self) -> np.ndarray:
        """The result, with the heads only; (blocks, bytes)."""
        found = np.zeros((len(self.heads), self.kept.bytes), np.uint8)
        found[:, : self.heads.shape[1]] = self.heads
        begun = np.asarray(self.heads.any(axis=1))
        wire.set_header(found, begun, "capacity", self.kept.capacity)
        return found


def _runs(buffers: list[Taken]) -> list[list[Taken]]:
    """The buffers in runs that are fetched at once: they lie one behind the other; where only what
    was written is fetched, they are of one kernel."""
    found: list[list[Taken]] = []
    for buffer in sorted(buffers, key=lambda buffer: buffer.start):
        last = found[-1][-1] if found else None
        if (
            last is not None
            and last.start + last.size == buffer.start
            and last.is_sparse == buffer.is_sparse
            and (last.profile is buffer.profile or not buffer.is_sparse)
        ):
            found[-1].append(buffer)
        else:
            found.append([buffer])
    return found


def _fits(first: int, size: int, end: int, room: int) -> bool:
    """A head that met the oldest buffer would look like an empty ring's."""
    return first + size < end or first + size == end == room


class RingBuffer(Generic[Taken]):
    """The buffers of one device, and the thread that fetches them. Who launches holds `lock`; the
    thread takes it where the two meet, and never while it waits for the driver."""

    def __init__(
        self,
        device: int,
        queue: Queue,
        most: int,
        lock: threading.Lock,
        on_end: Callable[[list[Taken]], None] = lambda buffers: None,
    ) -> None:
        """`most` bytes are what it grows to; `on_end` is told of buffers whose kernels ended."""
        self.device, self.queue, self.lock, self.on_end = device, queue, lock, on_end
        self.memory: cuda.Memory | None = None  # until the first buffer is taken
        self.most, self.size = most, 0
        self.address = 0  # of the first buffer
        self.growing = threading.Lock()
        self.fetching = threading.Lock()  # the thread calls the driver only under it
        self.host = 0  # the staging memory
        self.stream = 0
        self.head = self.used = 0  # where the next one lies; bytes of `buffers`
        self.limit = 0  # a buffer that ends before is known to have room
        self.buffers: deque[Taken] = deque()  # in use, oldest first
        self.sent: deque[Taken] = deque()  # whose kernels are queued, oldest first
        self.ended: deque[Taken] = deque()  # whose kernels have ended: to be fetched
        self.sent_ns = 0  # when a launch came last
        self.spared_bytes = 0  # of large buffers, which are kept without what was not written
        self.events: list[int] = []  # to be used again
        self.unmarked: dict[int, list[int]] = {}  # by stream: launches since an event, when
        self.bell = threading.Lock()  # held while the thread has nothing new to do
        self.bell.acquire()
        self.is_look_due = False  # ... which is that
        self.is_over = self.is_closed = False
        self.thread: threading.Thread | None = None

    # On the thread that launches, under the lock

    def take(self, buffer: Taken) -> bool:
        """Gives a buffer a place, which is all zeros; False where there is no room, and no memory
        for more."""
        size = buffer.size
        first = self.head
        head = first + size
        if head >= self.limit:
            found = self._room(size)
            if found is None:
                return False
            first, head = found, found + size
        buffer.start, self.head = first, head
        self.used += size
        self.buffers.append(buffer)
        return True

    def _room(self, size: int) -> int | None:
        """Where so many bytes lie that nobody has; None where there are none, and no memory for
        more. Notes how far the room goes on."""
        if self.thread is None:
            self.thread = threading.Thread(target=self._run, daemon=True)
            self.thread.start()
        first, room, buffers = self.head, self.size, self.buffers
        oldest = buffers[0].start if buffers else -1
        # The room ends at the oldest buffer, or at the end, and then goes on at the beginning.
        end = oldest if oldest >= first else room
        if not _fits(first, size, end, room):
            end = oldest if oldest >= 0 else room
            if oldest >= first or not _fits(0, size, end, room):
                return self._room(size) if self.grow(size, room) else None
            first = 0
        self.limit = end
        return first

    def send(self, buffer: Taken, now: int, is_marked: bool = False) -> None:
        """The kernel of a buffer is queued, at `now` (ns); where it `is_marked` an event is queued
        behind it in any case."""
        stream = buffer.stream
        if stream not in LASTING_STREAMS:
            mark = self.unmarked.get(stream)
            if mark is None:
                mark = self.unmarked[stream] = [0, 0]
            mark[0] += 1
            if mark[0] >= EVENT_EVERY or now - mark[1] > ALONE_NS or is_marked:
                buffer.event, mark[0] = self._event(stream), 0
            mark[1] = now
        buffer.is_held = False
        self.sent.append(buffer)
        self.sent_ns = now
        if 2 * self.used > self.size:
            self.wake()

    def wake(self) -> None:
        """Has the thread fetch what it can. (An event of Python's takes ten times as long.)"""
        if self.bell.locked():
            with contextlib.suppress(RuntimeError):  # another thread was quicker
                self.bell.release()

    def look(self) -> None:
        """Has the thread see which kernels have ended."""
        self.is_look_due = True
        self.wake()

    @property
    def held(self) -> int:
        """Buffers that were taken and not sent yet."""
        return sum(buffer.is_held for buffer in self.buffers)

    def give_back(self, buffer: Taken) -> None:
        """A buffer that nothing was queued for."""
        buffer.is_held = False
        self._free(buffer)
        if self.is_closed:
            self._release()

    def abandon(self, buffer: Taken) -> None:
        """A buffer will not be sent. What is queued may touch it all the same, so nobody gets it
        any more; where the ring is closed, its memory goes with the last of such buffers."""
        buffer.is_held = False
        if self.is_closed:
            self._release()

    def _event(self, stream: int) -> int:
        event = self.events.pop() if self.events else self.queue.new_event()
        self.queue.record(event, stream)
        return event

    def _free(self, buffer: Taken) -> None:
        """Gives a buffer back: at once if it is the oldest, else with the older ones."""
        buffer.is_free = True
        while self.buffers and self.buffers[0].is_free:
            self.used -= self.buffers.popleft().size

    # On any thread, with the lock or without

    def grow(self, size: int = 0, room: int | None = None) -> bool:
        """Makes the ring larger by `size`, and by a step at least; False where it has all that it
        may have, or the device has no more. Nothing is to do where it has grown beyond `room`."""
        size = wire.aligned(max(size, 1), STEP_BYTES)
        with self.growing, cuda.capture_aside():  # another thread may be capturing a graph
            if room is not None and self.size > room:
                return True
            if self.size + size > self.most:
                return False
            try:
                if self.memory is None:
                    self.stream = cuda.new_stream()
                    self.host = cuda.allocate_host(STAGING_BYTES)
                    self.memory = cuda.Memory(self.device, self.most)
                    self.address = self.memory.address
                memory: cuda.Memory = self.memory
                memory.grow(size)
            except cuda.CUDAError:
                if size == STEP_BYTES:
                    self.most = self.size
                return False
            self.size += size
        return True

    # On the thread that fetches

    def _run(self) -> None:
        cuda.enter_primary_context(self.device)
        with cuda.capture_aside():  # another thread may be capturing a graph
            while not self.is_over:
                self.bell.acquire(timeout=PAUSE_S)
                goes_on = True
                while goes_on:
                    with self.fetching:
                        goes_on = self._go_on()

    def _go_on(self) -> bool:
        """Sees which kernels have ended, and waits for one if none has; fetches a part of their
        buffers, unless launches come. A ring that is half full grows, if it can, and that is all.
        Gives whether to go on at once."""
        is_half_full = 2 * self.used > self.size
        if self.is_over or not (self.sent or self.ended) or (is_half_full and self.grow()):
            return False
        fetches = is_half_full or not self.is_busy()
        if not fetches and not self.is_look_due:
            return False
        self.is_look_due = False
        with contextlib.suppress(cuda.CUDAError):  # the end of the session says what is wrong
            self._find_ended()
            if fetches and self.ended:
                self._fetch_part()
                return True
        return False

    def is_busy(self) -> bool:
        """True if launches come in quick succession."""
        return time.perf_counter_ns() - self.sent_ns <= ALONE_NS

    def _find_ended(self) -> None:
        """Moves buffers whose kernels are known to have ended from `sent` to `ended`. If some are
        known to end, and none has, it waits for the first."""
        with self.lock:
            sent = list(self.sent)
        ended = self._ended(sent)
        if not ended:
            return
        gone = set(map(id, ended))
        with self.lock:
            self.sent = deque(buffer for buffer in self.sent if id(buffer) not in gone)
            self.events += [buffer.event for buffer in ended if buffer.event]
        self.ended += ended
        self.on_end(ended)

    def _ended(self, buffers: list[Taken]) -> list[Taken]:
        streams: dict[int, list[Taken]] = {}
        for buffer in buffers:
            streams.setdefault(buffer.stream, []).append(buffer)
        known: list[tuple[int, list[Taken]]] = []  # (event, the buffers that it is behind)
        made = []
        for stream, own in streams.items():
            if stream in LASTING_STREAMS:
                with self.lock:
                    made.append(self._event(stream))
                known.append((made[-1], own))
            elif marked := [number for number, buffer in enumerate(own) if buffer.event]:
                known.append((own[marked[-1]].event, own[: marked[-1] + 1]))
        done = [of for event, of in known if self.queue.is_done(event)]
        if known and not done and not self.ended:
            self.queue.wait(known[0][0])
            done = [known[0][1]]
        with self.lock:
            self.events += made
        return [buffer for of in done for buffer in of]

    def _fetch_part(self) -> None:
        """Fetches some buffers whose kernels have ended, and gives them back."""
        part: list[Taken] = []
        size = 0
        for buffer in self.ended:
            size += buffer.size
            if part and size > PART_BYTES:
                break
            part.append(buffer)
        for run in _runs(part):
            if run[0].is_sparse:
                self._fetch_written(run)
            else:
                self._fetch_all(run)
        self.queue.synchronize(self.stream)  # until all is clear
        with self.lock:
            for buffer in part:
                self.ended.popleft()
                self._free(buffer)

    def _fetch_all(self, run: list[Taken]) -> None:
        data = np.empty(sum(buffer.size for buffer in run), np.uint8)
        self.copy(data, self.address + run[0].start)
        self._clear(run)
        for buffer in run:
            first = buffer.start - run[0].start
            blocks = data[first : first + buffer.size]
            buffer.arrived = Arrived(blocks, buffer.profile.capacity)

    def _fetch_written(self, run: list[Taken]) -> None:
        """Of launches of one kernel: the heads of all blocks first."""
        block = run[0].profile.block
        counts = [buffer.size // block.bytes for buffer in run]
        heads = np.empty((sum(counts), block.segments), np.uint8)
        self._copy_rows(heads, self.address + run[0].start, block.bytes)
        sparse = Sparse(heads, block)
        blocks, ends = sparse.blocks(), np.cumsum(counts).tolist()
        first, step = self.address + run[0].start, run[0].profile.sample_programs
        # Where each program records, the blocks of all launches have the same distance.
        bounds = [0, ends[-1]] if step == 1 else [0, *ends]
        for begin, end in itertools.pairwise(bounds):
            place, pitch = first + begin * block.bytes, step * block.bytes
            for source, target, width in sparse.parts():
                rows = blocks[begin:end:step, target : target + width]
                self._copy_rows(rows, place + source, pitch)
            rest = place + block.segments, pitch, block.bytes - block.segments
            self.queue.clear_rows(*rest, -(-(end - begin) // step), self.stream)
        self.queue.clear_rows(first, block.bytes, block.segments, ends[-1], self.stream)
        for buffer, count, end in zip(run, counts, ends, strict=True):
            own = blocks[end - count : end].reshape(-1)
            buffer.arrived = Arrived(own, sparse.kept.capacity)
            self.spared_bytes += buffer.size - own.size

    def _clear(self, run: list[Taken]) -> None:
        size = run[-1].start + run[-1].size - run[0].start
        self.queue.clear(self.address + run[0].start, size, self.stream)

    def copy(self, data: np.ndarray, address: int) -> None:
        """Copies from the device, through the staging memory; what takes long not under Python's
        lock. On the thread that fetches, or when it is over."""
        for start in range(0, data.size, STAGING_BYTES):
            size = min(STAGING_BYTES, data.size - start)
            self.queue.copy_to_host(self.host, address + start, size, self.stream)
            self.queue.synchronize(self.stream)
            if size <= SHORT_BYTES:
                data[start : start + size] = cuda.host_bytes(self.host, size)
            else:
                ctypes.memmove(data.ctypes.data + start, self.host, size)

    def _copy_rows(self, rows: np.ndarray, address: int, pitch: int) -> None:
        """Copies rows of bytes from the device, where the first has this address, and each lies
        `pitch` bytes behind the one before."""
        width = rows.shape[1]
        count = max(1, STAGING_BYTES // width)
        for first in range(0, len(rows), count):
            some = rows[first : first + count]
            place = address + first * pitch
            self.queue.copy_rows(self.host, place, pitch, width, len(some), self.stream)
            self.queue.synchronize(self.stream)
            some[:] = cuda.host_bytes(self.host, some.size).reshape(some.shape)

    # At the end

    def finish(self, is_broken: bool = False) -> None:
        """Fetches the rest, when the device has done everything; nothing if it is broken."""
        self.is_over = True
        self.wake()
        if self.thread is not None:
            self.thread.join()
        if not is_broken:
            sent = list(self.sent)
            self.sent.clear()
            self.events += [buffer.event for buffer in sent if buffer.event]
            self.on_end(sent)
            self.ended += sent
            while self.ended:
                self._fetch_part()

    def release(self) -> None:
        """Gives the memory back, unless a launch that outlives the session still has a buffer."""
        with self.lock:
            self.is_closed = True
            self._release()

    def _release(self) -> None:
        if self.held or self.memory is None:
            return
        for event in self.events:
            self.queue.release_event(event)
        self.events = []
        self.memory.release()
        cuda.release_host(self.host)
        cuda.release_stream(self.stream)
        self.memory, self.host, self.stream = None, 0, 0
