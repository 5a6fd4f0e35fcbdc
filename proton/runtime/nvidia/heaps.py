"""The heaps that launches take full segments from under strategy flush.

A session has a few heaps on each GPU. Launches share one of them: a unit takes a chunk of it by an
atomic, and the chunk says of which launch, program and unit it is. A heap that is half full, or
that so many launches have taken that it may be, is *retired*: launches that come take the next one,
and when those that had it have ended, a thread copies what was taken of it, clears that, and it is
free again. Nothing of this is queued on the streams of the launches, and what is not taken is not
sent.

How many launches may share a heap depends on what launches of their kernels took before: twice that
is expected. A kernel that is new is expected to fill half a heap with FIRST_LAUNCHES.
"""

import threading
from collections import deque
from dataclasses import dataclass, field

import numpy as np

from proton.runtime.nvidia import cuda
from proton.trace import wire
from proton.trace.profile import KernelProfile

MOST_HEAPS = 4  # of a device; where all are retired, the last one goes on until it is full
FIRST_LAUNCHES = 16  # of a new kernel, before somebody looks what they took
MOST_LAUNCHES = 256  # share a heap, whatever they take


@dataclass(frozen=True)
class TakenChunks:
    """Chunks of one size of a heap, of one launch: room for a unit's records."""

    heads: np.ndarray  # of wire.CHUNK_HEAD, (chunks,)
    data: np.ndarray  # their records, (chunks, bytes)


def heap_bytes(profile: KernelProfile, size: int) -> int:
    """Bytes of a heap with its head, for launches of a kernel with this profile, where `size` bytes
    of chunks were asked for; 0 where it takes none."""
    if not profile.strategy.moves:
        return 0
    return wire.heap_bytes(max(size, wire.chunk_bytes(profile.block)))


def chunks_of(heap: np.ndarray) -> dict[int, list[TakenChunks]]:
    """The chunks in a heap's bytes, head included, by the number of their launch."""
    found: dict[int, list[TakenChunks]] = {}
    for heads, records in wire.chunks(heap):
        for launch in np.unique(heads["launch"]).tolist():
            of = heads["launch"] == launch
            found.setdefault(launch, []).append(TakenChunks(heads[of], records[of]))
    return found


@dataclass(slots=True)
class Heap:
    """Memory of the device; `users` are launches that may still write there."""

    address: int
    size: int
    is_retired: bool = False
    users: int = 0
    launches: int = 0  # that took it since it was empty
    kernels: dict[int, int] = field(default_factory=dict)  # of these launches: how many
    expected: float = 0.0  # what they take, bytes
    is_due: bool = False  # by that it may be half full

    @property
    def is_looked_for(self) -> bool:
        """Whether the thread should see what was taken; where the heap goes on as no other one is
        free, now and then."""
        return self.is_due and (not self.is_retired or self.launches % FIRST_LAUNCHES == 0)

    def empty(self) -> None:
        """Nobody has anything of it any more."""
        self.is_retired, self.launches, self.expected, self.is_due = False, 0, 0.0, False
        self.kernels.clear()


@dataclass
class Heaps:
    """The heaps of one device."""

    queue: "cuda.Queue"
    stream: int  # of its own: it waits for no launch
    expected: dict[int, float] = field(default_factory=dict)  # bytes of a launch, by kernel
    current: Heap | None = None
    free: list[Heap] = field(default_factory=list)
    retired: deque[Heap] = field(default_factory=deque)
    count: int = 0
    chunks: dict[int, list[TakenChunks]] = field(default_factory=dict)  # by launch
    kept_bytes: int = 0  # of chunks, since somebody set this to 0
    dropped: set[int] = field(default_factory=set)  # launches that the session had no memory for
    host: int = 0  # pinned memory, as large as a heap
    host_size: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def take(self, size: int, kernel: int) -> Heap | None:
        """The heap that a launch of a kernel (its number) writes to, of `size` bytes or more; None
        where there is no memory for one. `done` ends that."""
        with self.lock:
            heap = self.current
            if heap is None or heap.is_due or heap.is_retired or heap.size < size:
                if heap is not None and heap.is_due:
                    heap.is_retired = True
                self._renew(size)
                heap = self.current
                if heap is None:
                    return None
            heap.users += 1
            heap.launches += 1
            heap.kernels[kernel] = heap.kernels.get(kernel, 0) + 1
            expected = self.expected.get(kernel)
            heap.expected += heap.size / (2 * FIRST_LAUNCHES) if expected is None else expected
            heap.is_due = 2 * heap.expected >= heap.size
            return heap

    def _expected(self, kernel: int, heap: Heap) -> float:
        """Bytes that a launch of a kernel takes."""
        return self.expected.get(kernel, heap.size / (2 * FIRST_LAUNCHES))

    def _learn(self, heap: Heap, taken: int) -> None:
        """What launches took, bytes, says what the next ones of their kernels will take. Nobody
        knows which took how much, so it may have been all of one kernel's."""
        ended = heap.launches - heap.users
        for kernel, count in heap.kernels.items():
            if ended:
                of_one = taken * heap.launches / (count * ended)
                self.expected[kernel] = max(2 * of_one, heap.size / (2 * MOST_LAUNCHES))
        most = max((self._expected(kernel, heap) for kernel in heap.kernels), default=0.0)
        heap.expected = taken + heap.users * most
        heap.is_due = 2 * heap.expected >= heap.size

    def _renew(self, size: int) -> None:
        """Makes a free heap the current one, or a new one; else the current one goes on."""
        fitting = [heap for heap in self.free if heap.size >= size]
        old = self.current
        if fitting:
            self.free.remove(fitting[0])
            self.current = fitting[0]
        elif self.count < MOST_HEAPS or old is None or old.size < size:
            with cuda.capture_aside():
                try:
                    address = cuda.allocate_device(size)
                except cuda.CUDAError:
                    return
                self.current = Heap(address, size)
                self.count += 1
                cuda.write_word(self._room_of(self.current), wire.heap_room(size))
        if old is not None and old is not self.current:
            old.is_retired = True
            self.retired.append(old)

    @staticmethod
    def _room_of(heap: Heap) -> int:
        return heap.address + wire.heap_room_offset()

    def done(self, heap: Heap) -> None:
        """A launch has ended, or will never be."""
        with self.lock:
            heap.users -= 1

    # On the thread that keeps what arrives

    def keep(self, memory_left: int) -> None:
        """Retires the current heap where half of it is taken, and keeps what those that are retired
        have, if nobody writes there any more: no more than `memory_left` bytes in all."""
        current = self.current
        if current is not None and not current.is_retired:
            taken = wire.taken_bytes(self._fetch(current, wire.HEAP_HEAD_BYTES))
            current.is_retired = 2 * taken > current.size - wire.HEAP_HEAD_BYTES
            with self.lock:
                self._learn(current, taken)
        with self.lock:
            current = self.current
            if current is not None and current.is_retired and not current.users:
                self.retired.append(current)
                self.current = None
        while self.retired and not self.retired[0].users:
            heap = self.retired.popleft()
            self._empty(heap, memory_left)
            with self.lock:
                heap.empty()
                self.free.append(heap)

    def _fetch(self, heap: Heap, size: int) -> np.ndarray:
        """The first bytes of a heap, in memory that is used again."""
        if self.host_size < size:
            with cuda.capture_aside():
                if self.host:
                    cuda.release_host(self.host)
                self.host_size = max(size, heap.size)
                self.host = cuda.allocate_host(self.host_size)
        self.queue.copy_to_host(self.host, heap.address, size, self.stream)
        self.queue.synchronize(self.stream)
        return cuda.host_bytes(self.host, size)

    def _empty(self, heap: Heap, memory_left: int) -> None:
        head = wire.HEAP_HEAD_BYTES
        used = wire.used_bytes(self._fetch(heap, head), heap.size)
        with self.lock:
            self._learn(heap, used - head)
        data = self._fetch(heap, used)
        if self.kept_bytes + used - head > memory_left:
            self.dropped |= set(chunks_of(data))
        else:
            self.kept_bytes += used - head
            for launch, chunks in chunks_of(data).items():
                self.chunks.setdefault(launch, []).extend(chunks)
        self.queue.clear(heap.address, used, self.stream)
        self.queue.set_word(self._room_of(heap), wire.heap_room(heap.size), self.stream)
        self.queue.synchronize(self.stream)

    def finish(self, memory_left: int) -> None:
        """Keeps what all heaps have; the device has done everything."""
        for heap in [*self.retired, *([self.current] if self.current is not None else [])]:
            self._empty(heap, memory_left)

    def release(self) -> None:
        """Gives the memory back, but for heaps that launches that outlive the session may use."""
        heaps = [*self.free, *self.retired, *([self.current] if self.current is not None else [])]
        for heap in heaps:
            if not heap.users:
                cuda.release_device(heap.address)
        if self.host:
            cuda.release_host(self.host)
        cuda.release_stream(self.stream)
        self.current, self.free, self.retired, self.host = None, [], deque(), 0
