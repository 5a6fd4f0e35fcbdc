"""The slabs that launches take chunks from under strategy flush.

A session has a few slabs on each GPU. Launches share one of them: a unit takes a chunk of it by an
atomic, and the chunk says of which launch, program and unit it is. Once so many launches have taken
a slab that it may be half full, a thread looks what was taken. If that is much the slab is
*retired*: launches that come take the next one, and when those that had it have ended, the thread
copies what was taken, clears that, and the slab is free again. It also makes slabs, before they are
needed: a launch that finds none goes on with the old one, and makes one itself only where that may
be full, as the thread waits for a long kernel. Nothing of this is queued on the streams of the
launches, and what is not taken is not sent.

How many launches may share a slab depends on what launches of their kernels took before: twice that
is expected. A kernel that is new is expected to fill half a slab with FIRST_LAUNCHES. A launch only
takes what is expected of it off what the slab has left; the thread counts which kernels took the
slab when they have ended.
"""

import threading
from collections import Counter, deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import numpy as np

from proton.runtime.nvidia import cuda
from proton.runtime.nvidia.queue import Queue
from proton.trace import wire
from proton.trace.profile import KernelProfile

MOST_SLABS = 4  # of a device; where all are retired, the last one goes on until it is full
MUCH = 1 / 4  # of a slab: there is room for what launches take until the thread has seen them
FIRST_LAUNCHES = 16  # of a new kernel, before somebody looks what they took
MOST_LAUNCHES = 256  # share a slab, whatever they take


@dataclass(frozen=True)
class TakenChunks:
    """Chunks of one size of a slab, of one launch: room for a unit's records."""

    heads: np.ndarray  # of wire.CHUNK_HEAD, (chunks,)
    data: np.ndarray  # their records, (chunks, bytes)


def slab_bytes(profile: KernelProfile, size: int) -> int:
    """Bytes of a slab with its head, for launches of a kernel with this profile, where `size` bytes
    of chunks were asked for; 0 where it takes none."""
    if not profile.strategy.moves:
        return 0
    return wire.slab_bytes(max(size, wire.chunk_bytes(profile.block)))


def chunks_of(slab: np.ndarray) -> dict[int, list[TakenChunks]]:
    """The chunks in a slab's bytes, head included, by the number of their launch."""
    found: dict[int, list[TakenChunks]] = {}
    for heads, records in wire.chunks(slab):
        for launch in np.unique(heads["launch"]).tolist():
            of = heads["launch"] == launch
            found.setdefault(launch, []).append(TakenChunks(heads[of], records[of]))
    return found


class Taker:
    """A kernel that takes chunks of slabs of `size` bytes: how many bytes a launch is expected to
    take, which is known once somebody has seen what launches took."""

    __slots__ = ("expected", "is_known")

    def __init__(self, size: int) -> None:
        self.expected, self.is_known = size / (2 * FIRST_LAUNCHES), False


@dataclass(slots=True, eq=False)
class Slab:
    """Memory of the device. Once nothing is `left` it may be half full."""

    address: int
    size: int
    left: float = 0.0  # of one half, without what is expected of the launches that took it
    launches: int = 0  # that took it since it was empty
    last: Taker | None = None  # of these
    takers: set[Taker] = field(default_factory=set)  # all of them
    over: int = 0  # of the launches: will never be, or have ended
    ended: Counter[Taker] = field(default_factory=Counter)  # of which kernels; the thread's
    is_retired: bool = False

    def __post_init__(self) -> None:
        self.empty()

    @property
    def users(self) -> int:
        """Launches that may still write there."""
        return self.launches - self.over

    @property
    def is_looked_for(self) -> bool:
        """Whether the thread should see what was taken; where the slab goes on as no other one is
        free, now and then."""
        return self.left <= 0 and (not self.is_retired or self.launches % FIRST_LAUNCHES == 0)

    def retire(self) -> None:
        """Launches that come take another one, if there is one."""
        self.is_retired, self.left = True, min(self.left, 0.0)

    def empty(self) -> None:
        """Nobody has anything of it any more."""
        self.is_retired, self.left, self.launches, self.over = False, self.size / 2, 0, 0
        self.last = None
        self.takers.clear()
        self.ended.clear()


@dataclass
class Slabs:
    """The slabs of one device. Who launches holds `lock`; the thread that keeps what arrives takes
    it where the two meet."""

    queue: Queue
    stream: int  # of its own: it waits for no launch
    lock: threading.Lock = field(default_factory=threading.Lock)
    look: Callable[[], None] = lambda: None  # has the thread call `spare` and `keep`
    current: Slab | None = None
    free: list[Slab] = field(default_factory=list)
    retired: deque[Slab] = field(default_factory=deque)
    count: int = 0
    chunks: dict[int, list[TakenChunks]] = field(default_factory=dict)  # by launch
    kept_bytes: int = 0  # of chunks, since somebody set this to 0
    dropped: set[int] = field(default_factory=set)  # launches that the session had no memory for
    host: int = 0  # pinned memory, as large as a slab
    host_size: int = 0

    # Under the lock

    def take(self, size: int, taker: Taker) -> Slab | None:
        """The slab that a launch of a kernel writes to, of `size` bytes or more; None where there
        is no memory for one. `give_back` or `end` ends that."""
        slab = self.current
        if slab is None or slab.left <= 0 or slab.size < size:
            if slab is None or slab.size < size or self._has_next(slab):
                slab = self._next(size)
            if slab is None:
                return None
        slab.left -= taker.expected
        slab.launches += 1
        if taker is not slab.last:
            slab.last = taker
            slab.takers.add(taker)
        return slab

    def _has_next(self, slab: Slab) -> bool:
        """Retires a slab that may be half full; whether to take another one, which is free, or has
        to be made as this one may be full."""
        slab.retire()
        return bool(self.free) or (self._is_full(slab) and self.count < MOST_SLABS)

    @staticmethod
    def _is_full(slab: Slab) -> bool:
        """By what is expected of the launches that took it."""
        return slab.left <= -slab.size / 2

    def _next(self, size: int) -> Slab | None:
        """The slab to take from now on: where there is no other one yet, the same."""
        slab = self.current
        found = next((slab for slab in self.free if slab.size >= size), None)
        if found is not None:
            self.free.remove(found)
        elif slab is None or slab.size < size or self._is_full(slab):
            found = self._new(size)
        if found is not None:
            self.current = found
            if slab is not None:
                slab.retire()
                self.retired.append(slab)
                if not self.free:
                    self.look()
        return self.current

    @staticmethod
    def give_back(slab: Slab) -> None:
        """A launch will never be."""
        slab.over += 1

    @staticmethod
    def _learn(slab: Slab, taken: int) -> None:
        """What launches took, bytes, says what the next ones of their kernels will take. Nobody
        knows which took how much, so it may have been all of one kernel's."""
        for taker, count in slab.ended.items():
            taker.expected = max(2 * taken / count, slab.size / (2 * MOST_LAUNCHES))
            taker.is_known = True
        if not slab.is_retired:
            most = max((taker.expected for taker in slab.takers), default=0.0)
            slab.left = slab.size / 2 - taken - slab.users * most

    def _new(self, size: int) -> Slab | None:
        """A slab, if there is memory; with the lock or without."""
        with cuda.capture_aside():
            try:
                slab = Slab(cuda.allocate_device(size), size)
                cuda.write_word(self._room_of(slab), wire.slab_room(size))
            except cuda.CUDAError:
                return None
        self.count += 1
        return slab

    @staticmethod
    def _room_of(slab: Slab) -> int:
        return slab.address + wire.slab_room_offset()

    # On the thread that keeps what arrives

    def spare(self) -> None:
        """Makes slabs where launches are about to need one, as many as there may be: those that
        need a second one will need a third. It waits for no launch: thousands may be queued behind
        a long one."""
        current = self.current
        if current is None or self.free or not (self.retired or current.left <= 0):
            return
        while self.count < MOST_SLABS and (slab := self._new(current.size)) is not None:
            with self.lock:
                self.free.append(slab)

    def end(self, launches: Iterable[tuple[Slab | None, Taker]]) -> None:
        """Launches have ended, each with the slab that it took, if any."""
        ended = Counter(launches)
        with self.lock:
            for (slab, taker), count in ended.items():
                if slab is not None:
                    slab.over += count
                    slab.ended[taker] += count

    def keep(self, memory_left: int) -> None:
        """Retires the current slab where much of it is taken, and keeps what those that are retired
        have, if nobody writes there any more: no more than `memory_left` bytes in all."""
        current = self.current
        if current is not None and not current.is_retired:
            taken = wire.taken_bytes(self._fetch(current, wire.SLAB_HEAD_BYTES))
            with self.lock:
                self._learn(current, taken)
                if taken > MUCH * current.size or current.left <= 0:
                    current.retire()
        with self.lock:
            current = self.current
            if current is not None and current.is_retired and not current.users:
                self.retired.append(current)
                self.current = None
        while self.retired and not self.retired[0].users:
            slab = self.retired.popleft()
            self._empty(slab, memory_left)
            with self.lock:
                slab.empty()
                self.free.append(slab)

    def _fetch(self, slab: Slab, size: int) -> np.ndarray:
        """The first bytes of a slab, in memory that is used again."""
        if self.host_size < size:
            with cuda.capture_aside():
                if self.host:
                    cuda.release_host(self.host)
                self.host_size = max(size, slab.size)
                self.host = cuda.allocate_host(self.host_size)
        self.queue.copy_to_host(self.host, slab.address, size, self.stream)
        self.queue.synchronize(self.stream)
        return cuda.host_bytes(self.host, size)

    def _empty(self, slab: Slab, memory_left: int) -> None:
        head = wire.SLAB_HEAD_BYTES
        used = wire.used_bytes(self._fetch(slab, head), slab.size)
        with self.lock:
            self._learn(slab, used - head)
        data = self._fetch(slab, used)
        if self.kept_bytes + used - head > memory_left:
            self.dropped |= set(chunks_of(data))
        else:
            self.kept_bytes += used - head
            for launch, chunks in chunks_of(data).items():
                self.chunks.setdefault(launch, []).extend(chunks)
        self.queue.clear(slab.address, used, self.stream)
        self.queue.set_word(self._room_of(slab), wire.slab_room(slab.size), self.stream)
        self.queue.synchronize(self.stream)

    def finish(self, memory_left: int) -> None:
        """Keeps what all slabs have; the device has done everything."""
        for slab in [*self.retired, *([self.current] if self.current is not None else [])]:
            self._empty(slab, memory_left)

    def release(self) -> None:
        """Gives the memory back, but for slabs that launches that outlive the session may use.
        Under the lock."""
        slabs = [*self.free, *self.retired, *([self.current] if self.current is not None else [])]
        for slab in slabs:
            if not slab.users:
                cuda.release_device(slab.address)
        if self.host:
            cuda.release_host(self.host)
        cuda.release_stream(self.stream)
        self.current, self.free, self.retired, self.host = None, [], deque(), 0
