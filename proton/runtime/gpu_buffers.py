"""Where the profile buffers of launches lie, and how they get to the host while others run.

A *ring* is memory of the device with pinned memory of the host beside it, in pieces: a launch takes
a piece of both for its buffer and for the copy. Pieces are used again, oldest first, once a thread
has kept what arrived in them. It begins when half of the ring is taken, and keeps many pieces at
once: Python runs one thread at a time, and each time that this one wants to run costs the one that
launches some microseconds. A launch that finds no piece takes memory of its own: nobody ever waits.
"""

import ctypes
import threading
from collections import deque
from dataclasses import dataclass

import numpy as np

from proton.runtime import cuda
from proton.trace import wire

RING_BYTES = 128 << 20  # of the device, and of the host


@dataclass(slots=True)
class Piece:
    """A piece of a ring: `is_clear` until it was used once, `data` is what arrived."""

    start: int
    size: int  # as taken: a multiple of the alignment
    is_clear: bool
    stream: int = 0
    event: int = 0
    bytes: int = 0
    is_free: bool = False
    data: np.ndarray | None = None


class Ring:
    """The pieces of one device, and the thread that empties them."""

    def __init__(self, device: int, queue: "cuda.Queue", size: int) -> None:
        self.device, self.queue, self.size = device, queue, size
        self.memory = self.host = 0  # until the first piece is taken
        self.held = 0  # pieces that were taken and not sent yet
        self.head = 0
        self.is_used = False  # whether the head has been at the end once
        self.pieces: deque[Piece] = deque()  # in use, oldest first
        self.arriving: deque[Piece] = deque()  # with copies under way, oldest first
        self.events: list[int] = []  # to be used again
        self.lock = threading.Lock()
        self.half_full = threading.Event()
        self.is_over = False
        self.thread: threading.Thread | None = None

    def take(self, size: int) -> Piece | None:
        """A piece; None where there is no room."""
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
                    if first != self.head:
                        self.is_used = True
                    piece = Piece(first, size, not self.is_used)
                    self.head = first + size
                    self.held += 1
                    self.pieces.append(piece)
                    return piece
        return None

    def _allocate(self) -> None:
        """The ring's memory; where there is not that much, the ring has no room for anything."""
        with cuda.capture_aside():  # another thread may be capturing a graph
            try:
                self.memory = cuda.allocate_device(self.size)
                self.host = cuda.allocate_host(self.size)
            except cuda.CUDAError:
                self.size = 0
                if self.memory:
                    cuda.release_device(self.memory)
                self.memory = 0

    def send(self, piece: Piece, size: int, stream: int) -> None:
        """Queues the copy of a piece to the host, behind the kernel."""
        start = piece.start
        piece.bytes, piece.stream = size, stream
        self.queue.copy_to_host(self.host + start, self.memory + start, size, stream)
        with self.lock:
            self.held -= 1
            piece.event = self.events.pop() if self.events else self.queue.new_event()
            self.queue.record(piece.event, stream)
            self.arriving.append(piece)
            oldest = self.pieces[0].start
            used = self.head - oldest if self.head > oldest else self.size + self.head - oldest
        if 2 * used > self.size:
            if self.thread is None:
                self.thread = threading.Thread(target=self._empty, daemon=True)
                self.thread.start()
            self.half_full.set()

    def abandon(self) -> None:
        """A piece will not be sent. What is queued may touch it all the same, so nobody gets it any
        more; where the ring is over, its memory goes with the last of such pieces."""
        with self.lock:
            self.held -= 1
        if self.is_over:
            self.release()

    def free(self, piece: Piece) -> None:
        """Gives a piece back: at once if it is the oldest, else with the older ones."""
        with self.lock:
            piece.is_free = True
            while self.pieces and self.pieces[0].is_free:
                self.pieces.popleft()

    def _empty(self) -> None:
        cuda.enter_primary_context(self.device)
        with cuda.capture_aside():  # another thread may be capturing a graph
            while not self.is_over:
                self.half_full.wait()
                self.half_full.clear()
                while self._keep_some():
                    pass

    def _keep_some(self) -> bool:
        """Waits for the copies that are under way and keeps them; False where there are none, the
        session is over, or the device is broken: what has arrived then is looked for at the end."""
        with self.lock:
            if not self.arriving or self.is_over:
                return False
            pieces = list(self.arriving)
        newest = {piece.stream: piece for piece in pieces}
        try:
            for piece in newest.values():
                self.queue.wait(piece.event)
        except cuda.CUDAError:
            return False
        self._keep(pieces)
        return True

    def _keep(self, pieces: list[Piece]) -> None:
        """Keeps the oldest of the pieces that were sent: each stretch of the ring at once."""
        stretches: list[list[Piece]] = []
        for piece in pieces:
            if stretches and stretches[-1][-1].start + stretches[-1][-1].size == piece.start:
                stretches[-1].append(piece)
            else:
                stretches.append([piece])
        for stretch in stretches:
            first, last = stretch[0], stretch[-1]
            data = np.empty(last.start + last.bytes - first.start, np.uint8)
            # Neither is under Python's lock. Zeros are how it is known what has not arrived.
            ctypes.memmove(data.ctypes.data, self.host + first.start, data.size)
            ctypes.memset(self.host + first.start, 0, data.size)
            for piece in stretch:
                start = piece.start - first.start
                piece.data = data[start : start + piece.bytes]
        with self.lock:
            for piece in pieces:
                self.arriving.popleft()
                self.events.append(piece.event)
        for piece in pieces:
            self.free(piece)

    def finish(self) -> None:
        """Keeps the rest, when the device has done everything or is broken."""
        self.is_over = True
        self.half_full.set()
        if self.thread is not None:
            self.thread.join()
        self._keep(list(self.arriving))

    def release(self) -> None:
        """Gives the memory back, unless a launch that outlives the session still has a piece."""
        if self.held or not self.memory:
            return
        for event in self.events:
            self.queue.release_event(event)
        cuda.release_device(self.memory)
        cuda.release_host(self.host)
        self.memory = self.host = 0
