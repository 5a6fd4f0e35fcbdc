"""The slabs that launches take chunks from under strategy flush.

A session has a few slabs on each GPU, made before the first launch that takes one. Launches share
one of them: a unit takes a chunk of it by an atomic, and the chunk says of which launch, program
and unit it is. Once so many launches have taken a slab that it may be half full it is *retired*:
launches that come take the next one. The thread that fetches (buffers.py) copies what was taken of
a retired slab when those that had it have ended, clears that, and the slab is free again. It does
so where launches do not come in quick succession, or the last free one is taken: until then a
launch wakes nobody. What it copied is looked into when the session has ended. Nothing of this is
queued on the streams of the launches, and what is not taken is not sent.

How many launches may share a slab depends on what launches of their kernels took before: twice that
is expected. A kernel that is new is expected to fill half a slab with FIRST_LAUNCHES. A launch only
takes what is expected of it off what the slab has left; the thread counts which kernels took the
slab when they have ended.
"""

from collections import Counter, deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from proton.runtime.nvidia import cuda
from proton.runtime.nvidia.buffers import RingBuffer
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
    if not profile.takes_chunks:
        return 0
    return wire.slab_bytes(max(size, wire.chunk_bytes(profile.block)))


def chunks_of(slab: np.ndarray) -> dict[int, list[TakenChunks]]:
    """The chunks in a slab's bytes, head included, by the number of their launch."""
    found: dict[int, list[TakenChunks]] = {}
    for heads, records in wire.chunks(slab):
        order = np.argsort(heads["launch"], kind="stable")
        launches, firsts = np.unique(heads["launch"][order], return_index=True)
        for launch, of in zip(launches.tolist(), np.split(order, firsts[1:]), strict=True):
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
    """The slabs of one device, fetched as the buffers of its ring are. Who launches holds the
    ring's lock; the thread that fetches takes it where the two meet."""

    ring: RingBuffer[Any]
    current: Slab | None = None
    free: list[Slab] = field(default_factory=list)
    retired: deque[Slab] = field(default_factory=deque)
    count: int = 0
    kept: list[np.ndarray] = field(default_factory=list)  # what was copied of slabs
    chunks: dict[int, list[TakenChunks]] = field(default_factory=dict)  # of `kept`, by launch
    kept_bytes: int = 0  # of chunks, since somebody set this to 0
    dropped: set[int] = field(default_factory=set)  # launches that the session had no memory for

    # Under the lock

    def make(self, size: int) -> None:
        """Makes slabs of `size` bytes, as many as there may be and there is memory for."""
        while self.count < MOST_SLABS and (slab := self._new(size)) is not None:
            self.free.append(slab)

    def take(self, size: int, taker: Taker) -> Slab | None:
        """The slab that a launch of a kernel writes to, of `size` bytes or more; None where there
        is no memory for one. `give_back` or `end` ends that."""
        slab = self.current
        if slab is None or slab.left <= 0 or slab.size < size:
            slab = self._next(size)
            if slab is None:
                return None
        slab.left -= taker.expected
        slab.launches += 1
        if taker is not slab.last:
            slab.last = taker
            slab.takers.add(taker)
        return slab

    def _next(self, size: int) -> Slab | None:
        """The slab to take from now on: where no other one is free, the same, if it is as large."""
        slab = self.current
        found = next((slab for slab in self.free if slab.size >= size), None)
        if found is not None:
            self.free.remove(found)
        elif slab is None or slab.size < size:
            found = self._new(size)
            if found is None:
                return None
        if slab is not None:
            slab.retire()
        if found is not None:
            self.current = found
            if slab is not None:
                self.retired.append(slab)
                if not self.free:
                    self.ring.look()
        return self.current

    def look_for(self, slab: Slab) -> None:
        """Has the thread empty slabs where a launch took one that may be half full, and there is
        no other one to go on with."""
        if slab.is_looked_for and not self.free:
            self.ring.look()

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

    # On the thread that fetches

    def end(self, launches: Iterable[tuple[Slab | None, Taker]]) -> None:
        """Launches have ended, each with the slab that it took, if any."""
        ended = Counter(launches)
        with self.ring.lock:
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
            with self.ring.lock:
                self._learn(current, taken)
                if taken > MUCH * current.size or current.left <= 0:
                    current.retire()
        with self.ring.lock:
            current = self.current
            if current is not None and current.is_retired and not current.users:
                self.retired.append(current)
                self.current = None
        while self.retired and not self.retired[0].users:
            slab = self.retired.popleft()
            self._empty(slab, memory_left)
            with self.ring.lock:
                slab.empty()
                self.free.append(slab)

    def _fetch(self, slab: Slab, size: int) -> np.ndarray:
        """The first bytes of a slab."""
        data = np.empty(size, np.uint8)
        self.ring.copy(data, slab.address)
        return data

    def _empty(self, slab: Slab, memory_left: int) -> None:
        head, queue, stream = wire.SLAB_HEAD_BYTES, self.ring.queue, self.ring.stream
        used = wire.used_bytes(self._fetch(slab, head), slab.size)
        with self.ring.lock:
            self._learn(slab, used - head)
        data = self._fetch(slab, used)
        if self.kept_bytes + used - head > memory_left:
            self.dropped |= set(chunks_of(data))
        else:
            self.kept_bytes += used - head
            self.kept.append(data)
        queue.clear(slab.address, used, stream)
        queue.set_word(self._room_of(slab), wire.slab_room(slab.size), stream)
        queue.synchronize(stream)

    # At the end

    def finish(self, memory_left: int) -> None:
        """Keeps what all slabs have; the device has done everything."""
        for slab in [*self.retired, *([self.current] if self.current is not None else [])]:
            self._empty(slab, memory_left)

    def chunks_of_launch(self, launch: int) -> list[TakenChunks]:
        """What was kept of a launch; once."""
        for data in self.kept:
            for number, chunks in chunks_of(data).items():
                self.chunks.setdefault(number, []).extend(chunks)
        self.kept = []
        return self.chunks.pop(launch, [])

    def release(self) -> None:
        """Gives the memory back, but for slabs that launches that outlive the session may use.
        Under the lock."""
        slabs = [*self.free, *self.retired, *([self.current] if self.current is not None else [])]
        for slab in slabs:
            if not slab.users:
                cuda.release_device(slab.address)
        self.current, self.free, self.retired = None, [], deque()
