"""Where the profile buffers of launches lie, and how they get to the host behind the launches' backs.

A *ring* is memory of the device with pinned memory of the host beside it, in pieces: a launch takes
a piece of both for its buffer and for the copy. Pieces are used again, oldest first, once a thread
has kept what arrived in them; it begins when half of the ring is taken, so that few launches have
nothing beside them. A launch that finds no piece takes memory of its own: nobody ever waits.
"""

import ctypes
import threading
from collections import deque
from dataclasses import dataclass

import numpy as np

from proton.runtime import cuda
from proton.trace import wire

RING_BYTES = 64 << 20  # of the device, and of the host


@dataclass(slots=True)
class Piece:
    """A piece of a ring: `is_clear` until it was used once, `data` what has arrived and was kept."""

    start: int
    size: int  # as taken: a multiple of the alignment
    is_clear: bool
    event: int = 0
    bytes: int = 0
    is_free: bool = False
    data: np.ndarray | None = None


class Ring:
    """The pieces of one device, and the thread that empties them."""

    def __init__(self, device: int, queue: "cuda.Queue", size: int) -> None:
        self.device, self.queue, self.size = device, queue, size
        self.memory = cuda.allocate_device(size) if size else 0
        self.host = cuda.allocate_host(size) if size else 0
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
        size = -(-size // wire.BLOCK_ALIGNMENT) * wire.BLOCK_ALIGNMENT
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
                    self.pieces.append(piece)
                    return piece
        return None

    def send(self, piece: Piece, size: int, stream: int) -> None:
        """Queues the copy of a piece to the host, behind the kernel."""
        start = piece.start
        piece.bytes = size
        self.queue.copy_to_host(self.host + start, self.memory + start, size, stream)
        with self.lock:
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
                while self._keep_oldest():
                    pass

    def _keep_oldest(self) -> bool:
        """Waits for the oldest copy and keeps it; False where nothing is under way, the session is
        over, or the device is broken: what has arrived then is looked for at the end."""
        with self.lock:
            if not self.arriving or self.is_over:
                return False
            piece = self.arriving[0]
        try:
            self.queue.wait(piece.event)
        except cuda.CUDAError:
            return False
        self._keep(piece)
        with self.lock:
            self.arriving.popleft()
            self.events.append(piece.event)
        self.free(piece)
        return True

    def _keep(self, piece: Piece) -> None:
        address = self.host + piece.start
        piece.data = np.empty(piece.bytes, np.uint8)
        ctypes.memmove(piece.data.ctypes.data, address, piece.bytes)  # not under Python's lock
        ctypes.memset(address, 0, piece.bytes)  # so that what has not arrived is known by its zeros

    def finish(self) -> None:
        """Keeps the rest, when the device has done everything or is broken."""
        self.is_over = True
        self.half_full.set()
        if self.thread is not None:
            self.thread.join()
        for piece in self.arriving:
            self._keep(piece)
            self.events.append(piece.event)
        self.arriving.clear()

    def release(self) -> None:
        """Gives the memory back."""
        for event in self.events:
            self.queue.release_event(event)
        if self.size:
            cuda.release_device(self.memory)
            cuda.release_host(self.host)
