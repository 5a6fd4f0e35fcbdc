"""Profiled launches in CUDA graphs: every replay is kept apart.

A graph replays what was captured, with the same addresses. So a captured launch has a profile
buffer of its own, and a *log* on the device with room for some replays, the newest; a kernel
(graph_keep.py) copies what the launch wrote into the log's next slot, and counts. It follows the
launch in the graph, and nothing follows it: what the stream runs next does not wait for it. No host
is involved while the graph runs. When the session ends it reads the log; a monitor reads the newest
slot now and then. The memory is never given back: a graph may be replayed for as long as the
process lives.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from proton.runtime.nvidia import cuda, graph_keep
from proton.runtime.nvidia.graph_keep import HEAD_BYTES
from proton.trace import wire

LOG_BYTES = 64 << 20  # of the log of one captured launch, at most
_COUNTS = (1 << 32) - 1  # of replays, modulo this and one
Read = Callable[[int, int], np.ndarray]  # bytes of the device: (address, how many)


@dataclass
class CapturedLaunch:
    """A launch of some programs in a graph: its buffer of `size` bytes, which are a block of each
    program and then its slab, if the kernel takes chunks; and its log."""

    device: int
    buffer: int
    log: int
    size: int
    slots: int
    programs: int
    block: wire.Block
    seen: int = 0  # replays, at the last look

    @property
    def slab(self) -> int:
        """Where the slab lies in the buffer; behind its end where there is none."""
        return self.programs * self.block.bytes

    @property
    def bytes(self) -> int:
        """Of the buffer and of the log."""
        return HEAD_BYTES + (1 + self.slots) * self.size

    def keep(self, stream: int) -> None:
        """Captures the copying and counting behind the kernel."""
        of = self.programs, self.block
        programs = graph_keep.programs_for(self.device, *of, self.slab < self.size)
        given = graph_keep.arguments(self.buffer, self.log, self.size, self.slots, *of)
        function = graph_keep.keep(self.device)
        cuda.capture_beside(function, programs, graph_keep.THREADS, stream, given)

    def replays(self) -> tuple[int, list[np.ndarray]]:
        """How often the graph ran since the last look, and the buffers of the newest replays: of
        what is behind a unit's records, or what was taken of a slab, nothing is known."""
        count, since = self._look(cuda.read_device)
        kept = min(since, self.slots)
        if not kept:
            return since, []
        data = cuda.read_device(self.log + HEAD_BYTES, min(count, self.slots) * self.size)
        slots = data.reshape(-1, self.size)
        return since, [slots[number % self.slots] for number in range(count - kept, count)]

    def newest(self, read: Read) -> tuple[int, list[np.ndarray]]:
        """The same while the graph may run, of the newest replay alone; not that either where so
        many followed meanwhile that one may have written over it."""
        count, since = self._look(read)
        if not since:
            return 0, []
        newest = (count - 1) % self.slots
        data = read(self.log + HEAD_BYTES + newest * self.size, self.size)
        followed = (self._count(read) - count) & _COUNTS
        return since, [data] if followed + 1 < self.slots else []

    def _look(self, read: Read) -> tuple[int, int]:
        """The replays so far, and those since the last look."""
        count, before = self._count(read), self.seen
        self.seen = count
        return count, (count - before) & _COUNTS

    def _count(self, read: Read) -> int:
        return int(read(self.log, HEAD_BYTES)[:4].view("<u4")[0])


def capture(
    device: int,
    programs: int,
    block: wire.Block,
    slab_bytes: int,
    memory_left: int,
    most_slots: int = _COUNTS,
) -> CapturedLaunch | None:
    """Memory for a launch of so many programs that is captured next, all zeros but for the head of
    its slab, of `slab_bytes` with its head, if it takes one; None where `memory_left` (bytes) has
    no room for the buffer and one replay, or the kernel that keeps it cannot count its rows."""
    size = wire.aligned(programs * block.bytes + slab_bytes, wire.BLOCK_ALIGNMENT)
    slots = min(max(LOG_BYTES, size), memory_left - HEAD_BYTES - size) // size
    slots = min(slots, most_slots)
    if slots < 1 or programs * graph_keep.rows_of(block)[0] >= graph_keep.MOST_ROWS:
        return None
    with cuda.capture_aside():
        graph_keep.keep(device)
        log = cuda.allocate_device(HEAD_BYTES + (1 + slots) * size)
        found = CapturedLaunch(
            device, log + HEAD_BYTES + slots * size, log, size, slots, programs, block
        )
        if slab_bytes:
            place = found.buffer + found.slab + wire.slab_room_offset()
            cuda.write_word(place, wire.slab_room(slab_bytes))
    return found
