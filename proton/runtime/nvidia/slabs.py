"""The slabs that launches take chunks from under strategy flush.

A session has some slabs on each GPU, one behind the other in memory that is made before the first
launch that takes one. Launches share a slab: a unit takes a chunk of it by an atomic, and the chunk
says of which launch, program and unit it is. Once so many launches have taken a slab that it may be
half full it is *retired*: launches that come take the next one. The thread that fetches
(buffers.py) copies what was taken of a retired slab when those that had it have ended, clears that,
and the slab is free again. It does so where launches do not come in quick succession, where the
last free one is taken, or where what slabs hold may not fit into the session's memory: until then a
launch wakes nobody. What it copied is looked into when the session has ended. Nothing of this is
queued on the streams of the launches, and what is not taken is not sent.

How many launches may share a slab depends on what launches of their kernels took before: MARGIN
times that is expected, in proportion to the grid. The first launch of a kernel has a slab for
itself, and the thread looks at its head when it has ended; until then, launches of that kernel are
expected to fill half a slab with FIRST_LAUNCHES, or with fewer where their grids are large. A
launch only takes what is expected of it off what the slab has left; the thread counts which kernels
took the slab when they have ended.
"""

import contextlib
from collections import Counter, deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from proton.runtime.nvidia import cuda
from proton.runtime.nvidia.buffers import RingBuffer
from proton.trace import wire
from proton.trace.profile import KernelProfile

# Of a device; where all are retired, the last one goes on until it is full.
LEAST_SLABS, MOST_SLABS = 4, 64
MUCH = 1 / 4  # of a slab: there is room for what launches take until the thread has seen them
MARGIN = 2  # what is expected of launches, by what others took
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
    """A kernel that takes chunks of slabs of `size` bytes. A launch is expected to take `share` of
    the bytes of its blocks, and `least`; it `is_known` once somebody has seen what launches took,
    and `is_new` before the first one."""

    __slots__ = ("is_known", "is_new", "least", "share", "size")

    def __init__(self, size: int) -> None:
        # The blocks have room for a chunk of each unit.
        self.size, self.share, self.least = size, 1.0, size / (2 * FIRST_LAUNCHES)
        self.is_new, self.is_known = True, False

    def learn(self, taken: int, blocks: int) -> None:
        """Launches with so many bytes of blocks took so many bytes of chunks."""
        self.share, self.least = MARGIN * taken / blocks, self.size / (2 * MOST_LAUNCHES)
        self.is_known = True


@dataclass(slots=True, eq=False)
class Slab:
    """Memory of the device. Once nothing is `left` it may be half full."""

    address: int
    size: int
    left: float = 0.0  # of one half, without what is expected of the launches that took it
    launches: int = 0  # that took it since it was empty
    over: int = 0  # of the launches: will never be, or have ended
    ended: Counter[Taker] = field(default_factory=Counter)  # bytes of their blocks; the thread's
    is_retired: bool = False

    def __post_init__(self) -> None:
        self.empty()

    @property
    def users(self) -> int:
        """Launches that may still write there."""
        return self.launches - self.over

    @property
    def is_looked_for(self) -> bool:
        """True if the thread should see what was taken; where the slab goes on as no other one is
        free, now and then."""
        return self.left <= 0 and (not self.is_retired or self.launches % FIRST_LAUNCHES == 0)

    def retire(self) -> None:
        """Launches that come take another one, if there is one."""
        self.is_retired, self.left = True, min(self.left, 0.0)

    def empty(self) -> None:
        """Nobody has anything of it any more."""
        self.is_retired, self.left, self.launches, self.over = False, self.size / 2, 0, 0
        self.ended.clear()


@dataclass
class Slabs:
    """The slabs of one device, fetched as the buffers of its ring are. Who launches holds the
    ring's lock; the thread that fetches takes it where the two meet."""

    ring: RingBuffer[Any]
    current: Slab | None = None
    free: list[Slab] = field(default_factory=list)
    retired: deque[Slab] = field(default_factory=deque)
    retired_bytes: int = 0  # their size
    pieces: list[tuple[int, list[Slab]]] = field(default_factory=list)  # of memory; what is there
    kept: list[np.ndarray] = field(default_factory=list)  # what was copied of slabs
    chunks: dict[int, list[TakenChunks]] = field(default_factory=dict)  # of `kept`, by launch
    kept_bytes: int = 0  # of chunks, since somebody set this to 0
    dropped: set[int] = field(default_factory=set)  # launches that the session had no memory for

    # Under the lock

    def make(self, size: int, count: int) -> bool:
        """Makes `count` slabs of `size` bytes, or as many as there is memory for; False where there
        is none. With the lock or without."""
        stride = wire.aligned(size, wire.BLOCK_ALIGNMENT)
        while count:
            with contextlib.suppress(cuda.CUDAError), cuda.capture_aside():
                first = cuda.allocate_device(stride * count)
                made = [Slab(first + number * stride, size) for number in range(count)]
                for slab in made:
                    cuda.write_word(self._room_of(slab), wire.slab_room(size))
                self.pieces.append((first, made))
                self.free += made
                return True
            count //= 2
        return False

    def take(self, size: int, taker: Taker, blocks: int, memory_left: int) -> Slab | None:
        """The slab, of `size` bytes or more, that a launch of a kernel with so many bytes of blocks
        writes to; None where there is no memory for one. `give_back` or `end` ends that. The
        session has `memory_left` bytes for records."""
        slab = self.current
        if slab is None or slab.left <= 0 or slab.size < size or taker.is_new:
            slab = self._next(size, memory_left)
            if slab is None:
                return None
            if taker.is_new:  # which shares it with nobody
                taker.is_new, slab.left = False, 0.0
        slab.left -= taker.share * blocks + taker.least
        slab.launches += 1
        return slab

    def _next(self, size: int, memory_left: int) -> Slab | None:
        """The slab to take from now on: where no other one is free, the same, if it is as large."""
        slab = self.current
        found = next((slab for slab in self.free if slab.size >= size), None)
        if found is None and (slab is None or slab.size < size):
            if not self.make(size, 1):
                return None
            found = self.free[-1]
        if slab is not None:
            slab.retire()
        if found is not None:
            self.free.remove(found)
            self.current = found
            if slab is not None:
                self._retire(slab)
                if self.is_short(memory_left):
                    self.ring.look()
        return self.current

    def _retire(self, slab: Slab) -> None:
        """What was the current slab is to be emptied."""
        self.retired.append(slab)
        self.retired_bytes += slab.size

    def is_short(self, memory_left: int) -> bool:
        """True if no slab is free, or what those have that are retired, which may be half full, may
        take half of the memory that is left."""
        return not self.free or self.retired_bytes >= memory_left

    def look_for(self, slab: Slab, taker: Taker) -> None:
        """Has the thread look at slabs where a launch took one that may be half full, and there is
        no other one to go on with, or nobody knows yet what launches of that kernel take."""
        if slab.is_looked_for and not (self.free and taker.is_known):
            self.ring.look()

    @staticmethod
    def give_back(slab: Slab) -> None:
        """A launch will never be."""
        slab.over += 1

    @staticmethod
    def _learn(slab: Slab, taken: int) -> None:
        """What launches took, bytes, says what the next ones of their kernels will take. Where they
        are of several, nobody knows which took how much: what is known of one stays, unless they
        took more than was expected. Then it may have been all of one kernel's."""
        ended = slab.ended
        expected = sum(taker.share * blocks for taker, blocks in ended.items())
        for taker, blocks in ended.items():
            if len(ended) == 1 or not taker.is_known or taken > expected:
                taker.learn(taken, blocks)

    @staticmethod
    def _room_of(slab: Slab) -> int:
        return slab.address + wire.slab_room_offset()

    # On the thread that fetches

    def end(self, launches: Iterable[tuple[Slab | None, Taker, int]]) -> None:
        """Launches have ended, each with the slab that it took, if any, and bytes of blocks."""
        ended = Counter(launches)
        with self.ring.lock:
            for (slab, taker, blocks), count in ended.items():
                if slab is not None:
                    slab.over += count
                    slab.ended[taker] += count * blocks

    def keep(self, memory_left: int) -> None:
        """Sees what launches of new kernels took, and while launches come in quick succession no
        more, unless slabs run short. Else it retires the current slab where much of it is taken,
        and keeps what those that are retired have, if nobody writes there any more: no more than
        `memory_left` bytes in all."""
        with self.ring.lock:
            used, current = self._used(), self.current
            is_short = self.is_short(memory_left)
        for slab in used:
            if not slab.users and not all(taker.is_known for taker in slab.ended):
                self._look_at(slab)
        if self.ring.is_busy() and not is_short:
            return
        if current is not None and not current.is_retired:
            taken = self._look_at(current)
            with self.ring.lock:
                if taken > MUCH * current.size or current.left <= 0:
                    current.retire()
        self._empty_retired(memory_left, is_short)
        with self.ring.lock:
            current = self.current
            # Launches go on with it where there is no other one: they would make one.
            can_spare = bool(self.free) or not self.retired
            if current is None or not current.is_retired or current.users or not can_spare:
                return
            self._retire(current)
            self.current = None
        self._empty_retired(memory_left, is_short)

    def _empty_retired(self, memory_left: int, is_short: bool) -> None:
        """Empties retired slabs until launches come again; where slabs run short, meanwhile."""
        while self.retired and not self.retired[0].users and (is_short or not self.ring.is_busy()):
            slab = self.retired.popleft()
            self._clear(slab, self._keep(slab, memory_left))
            with self.ring.lock:
                slab.empty()
                self.free.append(slab)
                self.retired_bytes -= slab.size

    def _used(self) -> list[Slab]:
        """The slabs that have something."""
        return [*self.retired, *([self.current] if self.current is not None else [])]

    def _look_at(self, slab: Slab) -> int:
        """Learns what launches took of a slab; bytes."""
        taken = wire.taken_bytes(self._fetch(slab, wire.SLAB_HEAD_BYTES))
        with self.ring.lock:
            self._learn(slab, taken)
        return taken

    def _fetch(self, slab: Slab, size: int) -> np.ndarray:
        """The first bytes of a slab."""
        data = np.empty(size, np.uint8)
        self.ring.copy(data, slab.address)
        return data

    def _keep(self, slab: Slab, memory_left: int) -> int:
        """Keeps what a slab has, if there is memory for it; bytes in use, its head among them."""
        head = wire.SLAB_HEAD_BYTES
        used = min(slab.size, head + self._look_at(slab))
        data = self._fetch(slab, used)
        if self.kept_bytes + used - head > memory_left:
            self.dropped |= set(chunks_of(data))
        else:
            self.kept_bytes += used - head
            self.kept.append(data)
        return used

    def _clear(self, slab: Slab, used: int) -> None:
        queue, stream = self.ring.queue, self.ring.stream
        queue.clear(slab.address, used, stream)
        queue.set_word(self._room_of(slab), wire.slab_room(slab.size), stream)
        queue.synchronize(stream)

    # At the end

    def finish(self, memory_left: int) -> None:
        """Keeps what all slabs have; the device has done everything."""
        for slab in self._used():
            self._keep(slab, memory_left)

    def chunks_of_launch(self, launch: int) -> list[TakenChunks]:
        """The records kept of a launch; once."""
        for data in self.kept:
            for number, chunks in chunks_of(data).items():
                self.chunks.setdefault(number, []).extend(chunks)
        self.kept = []
        return self.chunks.pop(launch, [])

    def release(self) -> None:
        """Gives the memory back, but for pieces with slabs that launches that outlive the session
        may use. Under the lock."""
        for address, slabs in self.pieces:
            if not any(slab.users for slab in slabs):
                cuda.release_device(address)
        self.current, self.free, self.retired, self.pieces = None, [], deque(), []
