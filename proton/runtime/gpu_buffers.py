"""Where the profile buffers of launches lie, and how they get to the host while others run.

A *ring* is memory of the device with pinned memory of the host beside it, in pieces: a launch takes
a piece for its buffer. Nothing of this is queued on the stream of the launch, so that what follows
there does not wait for it, but an event behind the kernel, and on the default streams not even that
for each launch. The ring's own stream waits for the event, copies the piece to the host and clears
it for the next launch. Launches in quick succession share these calls: they are sent in batches.

Of a small piece all is sent. Of a large one the heads of its blocks are sent first, and then what
they say was written (`Sparse`).

Pieces are used again, oldest first, once a thread has kept what arrived in them. It begins when
half of the ring is taken, and keeps many pieces at once: Python runs one thread at a time, and each
time that this one wants to run costs the one that launches some microseconds. A launch that finds
no piece takes memory of its own: nobody ever waits.
"""

import ctypes
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from proton.runtime import cuda
from proton.trace import wire

RING_BYTES = 128 << 20  # of the device, and of the host
BATCH = 16  # launches that are sent together at most
BATCH_BYTES = 1 << 20
QUIET_NS = 1_000_000  # a launch that comes so long after what was sent last is sent at once
EAGER = 64  # and so are the first launches: what has arrived survives a kernel that faults
SPARSE_BYTES = 256 << 10  # from here on only what was written is sent
# The default stream of a context, by its two names: nobody can destroy it, and it is the same for
# all threads, so an event may be recorded there at any time.
LASTING_STREAMS = (0, 1)


@dataclass(slots=True, frozen=True)
class Arrived:
    """The blocks of a launch on the host; `capacity` may be less than that of the launch."""

    data: np.ndarray
    capacity: int


@dataclass(slots=True)
class Piece:
    """A piece of a ring; `arrived` is what a launch left there."""

    start: int
    size: int  # as taken: a multiple of the alignment
    stream: int = 0
    event: int = 0  # behind the kernel; 0 on a lasting stream
    bytes: int = 0
    profile: dict[str, Any] = field(default_factory=dict)  # the layout of a block
    is_free: bool = False
    arrived: Arrived | None = None

    @property
    def is_sparse(self) -> bool:
        """Whether only what was written of it is sent."""
        return self.bytes >= SPARSE_BYTES and self.profile["strategy"] == "circular"


@dataclass(slots=True)
class Batch:
    """Pieces on their way to the host; `event` is behind their copies."""

    pieces: list[Piece]
    event: int
    passed: list[int]  # events that are used up then


class Sparse:
    """What is written of the blocks of a large piece, given their heads on the host.

    Blocks are `block_bytes` apart, and so are their heads (header and table) and the segments of
    one unit: each of these is a copy of rows. The result is a buffer with room for as many records
    a unit as one of the units wrote, if that is less than the capacity.
    """

    def __init__(self, data: np.ndarray, profile: dict[str, Any]) -> None:
        self.stride, self.units = profile["block_bytes"], profile["units"]
        self.slots, self.clock_bits = profile["payload_slots"], profile["clock_bits"]
        self.capacity = profile["capacity"]
        self.record = wire.record_bytes(self.slots, self.clock_bits)
        self.head = wire.segments_offset(self.units)
        self.blocks = data.reshape(-1, self.stride)
        table = wire.table_offset()
        written = np.ascontiguousarray(self.blocks[:, table : table + 8 * self.units]).view("<u8")
        finished = wire.header_offset("state")
        state = np.ascontiguousarray(self.blocks[:, finished : finished + 2]).view("<u2")
        self.most = np.minimum(written.max(axis=0), self.capacity).astype(np.int64)
        if (state == wire.State.STARTED).any():  # killed: its table may lack what it wrote
            self.most[:] = self.capacity

    def rows(self) -> list[tuple[int, int]]:
        """(offset in each block, bytes) of what is still to be copied."""
        return [
            (self.head + unit * self.capacity * self.record, int(most) * self.record)
            for unit, most in enumerate(self.most)
            if most
        ]

    def packed(self) -> Arrived:
        """The blocks, with no more room than the records need."""
        most = int(self.most.max(initial=0))
        capacity = min(self.capacity, 1 << max(0, most - 1).bit_length())
        size = wire.block_bytes(self.units, capacity, self.slots, self.clock_bits)
        packed = np.zeros((len(self.blocks), size), np.uint8)
        packed[:, : self.head] = self.blocks[:, : self.head]
        place = wire.header_offset("capacity")
        begun = packed[:, : wire.HEADER_BYTES].any(axis=1)
        packed[begun, place : place + 4] = np.array([capacity], "<u4").view(np.uint8)
        for unit, count in enumerate(self.most):
            source = self.head + unit * self.capacity * self.record
            target = self.head + unit * capacity * self.record
            width = int(count) * self.record
            packed[:, target : target + width] = self.blocks[:, source : source + width]
        return Arrived(packed.reshape(-1), capacity)


class Ring:
    """The pieces of one device, the stream that sends them, and the thread that keeps them."""

    def __init__(
        self,
        device: int,
        queue: "cuda.Queue",
        size: int,
        on_arrival: Callable[[list[Piece]], None] = lambda pieces: None,
    ) -> None:
        self.device, self.queue, self.size = device, queue, size
        self.on_arrival = on_arrival  # is told of the pieces of each batch
        self.memory = self.host = 0  # until the first piece is taken
        self.stream = 0  # of the ring's own
        self.held = 0  # pieces that were taken and not sent yet
        self.head = 0
        self.pieces: deque[Piece] = deque()  # in use, oldest first
        self.waiting: list[Piece] = []  # to be sent
        self.waiting_bytes = 0
        self.sent = 0  # launches
        self.sent_ns = 0  # when something was sent last
        self.spared_bytes = 0  # of large pieces, which are kept without what was not written
        self.arriving: deque[Batch] = deque()  # with copies under way, oldest first
        self.events: list[int] = []  # to be used again
        self.lock = threading.Lock()
        self.is_due = threading.Event()
        self.is_over = False
        self.thread: threading.Thread | None = None

    def take(self, size: int) -> Piece | None:
        """A piece of zeros; None where there is no room."""
        size = wire.aligned(size, wire.BLOCK_ALIGNMENT)
        if not self.memory and size <= self.size:
            self._allocate()
        with self.lock:
            if not self.pieces:
                room = [(self.head, self.size), (0, self.size)]
            elif self.pieces[0].start < self.head:
                room = [(self.head, self.size), (0, self.pieces[0].start)]
            else:
                room = [(self.head, self.pieces[0].start)]
            for first, end in room:
                # A head that met the oldest piece would look like an empty ring's.
                if first + size < end or (first + size == end == self.size):
                    piece = Piece(first, size)
                    self.head = first + size
                    self.held += 1
                    self.pieces.append(piece)
                    return piece
        return None

    def own_stream(self) -> int:
        """The stream that records are sent on."""
        if not self.stream:
            self.stream = cuda.new_stream()
        return self.stream

    def _allocate(self) -> None:
        """The ring's memory; where there is not that much, the ring has no room for anything."""
        with cuda.capture_aside():  # another thread may be capturing a graph
            try:
                self.memory = cuda.allocate_device(self.size)
                self.host = cuda.allocate_host(self.size)
                self.own_stream()
            except cuda.CUDAError:
                self.size = 0
                if self.memory:
                    cuda.release_device(self.memory)
                self.memory = 0

    # On the thread that launches

    def send(self, piece: Piece, size: int, stream: int, profile: dict[str, Any], now: int) -> None:
        """The kernel is queued, at `now` (ns): sends the piece, or lets it wait for a batch."""
        piece.bytes, piece.stream, piece.profile = size, stream, profile
        with self.lock:
            self.held -= 1
            if stream not in LASTING_STREAMS:
                piece.event = self._event(stream)
            self.waiting.append(piece)
            self.waiting_bytes += piece.size
            self.sent += 1
            if (
                self.sent <= EAGER
                or now - self.sent_ns > QUIET_NS
                or len(self.waiting) >= BATCH
                or self.waiting_bytes >= BATCH_BYTES
            ):
                self._dispatch()
            oldest = self.pieces[0].start
            used = self.head - oldest if self.head > oldest else self.size + self.head - oldest
        if 2 * used > self.size:
            self.wake()

    def wake(self) -> None:
        """Has the thread keep what has arrived."""
        if self.thread is None:
            self.thread = threading.Thread(target=self._empty, daemon=True)
            self.thread.start()
        self.is_due.set()

    def abandon(self) -> None:
        """A piece will not be sent. What is queued may touch it all the same, so nobody gets it any
        more; where the ring is over, its memory goes with the last of such pieces."""
        with self.lock:
            self.held -= 1
        if self.is_over:
            self.release()

    def _event(self, stream: int) -> int:
        event = self.events.pop() if self.events else self.queue.new_event()
        self.queue.record(event, stream)
        return event

    def _dispatch(self, is_idle: bool = False) -> None:
        """Queues the copies of all that waits, behind its kernels; those have run if the device
        `is_idle`. The lock is held."""
        pieces, self.waiting, self.waiting_bytes = self.waiting, [], 0
        self.sent_ns = time.perf_counter_ns()
        newest = {piece.stream: piece for piece in pieces}
        for stream, piece in newest.items() if not is_idle else ():
            if not piece.event:
                piece.event = self._event(stream)
            self.queue.wait_on(self.stream, piece.event)
        small = [piece for piece in pieces if not piece.is_sparse]
        for first, size in _stretches(small):
            self.queue.copy_to_host(self.host + first, self.memory + first, size, self.stream)
            self.queue.clear(self.memory + first, size, self.stream)
        for piece in pieces:
            if piece.is_sparse:
                self._send_rows(piece, [(0, wire.segments_offset(piece.profile["units"]))])
        passed = [piece.event for piece in pieces if piece.event]
        self.arriving.append(Batch(pieces, self._event(self.stream), passed))
        if len(small) < len(pieces):
            self.wake()

    def _send_rows(self, piece: Piece, rows: list[tuple[int, int]]) -> None:
        """Queues the copies of parts of each block."""
        stride = piece.profile["block_bytes"]
        for offset, width in rows:
            place = piece.start + offset
            self.queue.copy_rows(
                *(self.host + place, self.memory + place, stride, width, piece.bytes // stride),
                self.stream,
            )

    # On the thread that keeps what arrives

    def _empty(self) -> None:
        cuda.enter_primary_context(self.device)
        with cuda.capture_aside():  # another thread may be capturing a graph
            while not self.is_over:
                self.is_due.wait()
                self.is_due.clear()
                while self._keep_some():
                    pass

    def _keep_some(self) -> bool:
        """Waits for the copies that are under way and keeps them; False where there are none, the
        session is over, or the device is broken: what has arrived then is looked for at the end."""
        with self.lock:
            if not self.arriving or self.is_over:
                return False
            batches = list(self.arriving)
        try:
            self.queue.wait(batches[-1].event)
            self._keep(batches)
        except cuda.CUDAError:
            return False
        return True

    def _keep(self, batches: list[Batch]) -> None:
        """Keeps the oldest of the batches, which have arrived."""
        pieces = [piece for batch in batches for piece in batch.pieces]
        small = [piece for piece in pieces if not piece.is_sparse]
        for first, size in _stretches(small):
            data = np.empty(size, np.uint8)
            # Neither is under Python's lock. Zeros are how it is known what has not arrived.
            ctypes.memmove(data.ctypes.data, self.host + first, size)
            ctypes.memset(self.host + first, 0, size)
            for piece in small:
                if first <= piece.start < first + size:
                    start = piece.start - first
                    capacity = piece.profile["capacity"]
                    piece.arrived = Arrived(data[start : start + piece.bytes], capacity)
        for piece in pieces:
            if piece.is_sparse:
                self._keep_written(piece)
        with self.lock:
            for batch in batches:
                self.arriving.popleft()
                self.events += [batch.event, *batch.passed]
        self.on_arrival(pieces)
        for piece in pieces:
            self.free(piece)

    def _keep_written(self, piece: Piece) -> None:
        """Fetches what the heads of a large piece say was written, and clears it."""
        host = cuda.host_bytes(self.host + piece.start, piece.bytes)
        sparse = Sparse(host, piece.profile)
        with self.lock:
            self._send_rows(piece, sparse.rows())
            self.queue.clear(self.memory + piece.start, piece.bytes, self.stream)
            event = self._event(self.stream)
        self.queue.wait(event)
        piece.arrived = sparse.packed()
        self.spared_bytes += piece.bytes - piece.arrived.data.size
        for offset, width in [(0, sparse.head), *sparse.rows()]:
            sparse.blocks[:, offset : offset + width] = 0
        with self.lock:
            self.events.append(event)

    def free(self, piece: Piece) -> None:
        """Gives a piece back: at once if it is the oldest, else with the older ones."""
        with self.lock:
            piece.is_free = True
            while self.pieces and self.pieces[0].is_free:
                self.pieces.popleft()

    # At the end

    def finish(self, is_broken: bool = False) -> None:
        """Keeps the rest, when the device has done everything or is broken."""
        self.is_over = True
        self.is_due.set()
        if self.thread is not None:
            self.thread.join()
        if not is_broken:
            with self.lock:
                if self.waiting:
                    self._dispatch(is_idle=True)
            if self.arriving:
                self.queue.wait(self.arriving[-1].event)
            self._keep(list(self.arriving))
            return
        for batch in self.arriving:
            for piece in batch.pieces:
                if piece.is_sparse:
                    continue  # no more than its heads have arrived
                data = cuda.host_bytes(self.host + piece.start, piece.bytes).copy()
                piece.arrived = Arrived(data, piece.profile["capacity"])

    def release(self) -> None:
        """Gives the memory back, unless a launch that outlives the session still has a piece."""
        if self.held:
            return
        for event in self.events:
            self.queue.release_event(event)
        self.events = []
        if self.memory:
            cuda.release_device(self.memory)
            cuda.release_host(self.host)
        if self.stream:
            cuda.release_stream(self.stream)
        self.memory = self.host = self.stream = 0


def _stretches(pieces: list[Piece]) -> list[tuple[int, int]]:
    """(first byte, size) of the runs of pieces that lie one behind the other."""
    found: list[tuple[int, int]] = []
    for piece in sorted(pieces, key=lambda piece: piece.start):
        if found and sum(found[-1]) == piece.start:
            found[-1] = found[-1][0], found[-1][1] + piece.size
        else:
            found.append((piece.start, piece.size))
    return found
