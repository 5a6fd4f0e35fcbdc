"""The kernel that keeps what a launch in a CUDA graph leaves, run on a machine of numpy's."""

from typing import Any

import numpy as np
import pytest

from proton.base.targets import GPUTarget
from proton.runtime.nvidia import cuda, graph, graph_keep, hand_written
from proton.trace import wire
from tests.compile.ptx.machine import run
from tests.compile.ptx.memory import Heap

PTX = "\n.version 8.4\n.target sm_90a\n" + graph_keep._PTX.format(**graph_keep.PARTS)
THREADS, SLOTS = 64, 3


class Kept:
    """A launch in a graph, and what replays left: the bytes that its log has to have, and those
    that it may have."""

    def __init__(self, programs: int, block: wire.Block, slab: int, rng: np.random.Generator):
        self.programs, self.block, self.rng, self.heap = programs, block, rng, Heap()
        size = wire.aligned(programs * block.bytes + slab, wire.BLOCK_ALIGNMENT)
        log = self.heap.allocate(graph.HEAD_BYTES + SLOTS * size)
        buffer = self.heap.allocate(size)
        self.launch = graph.CapturedLaunch(0, buffer, log, size, SLOTS, programs, block)
        self.buffer = self.heap.bytes(buffer, size)
        self.log = self.heap.bytes(log, graph.HEAD_BYTES + SLOTS * size)
        self.slab = self.buffer[self.launch.slab :]
        self.room = wire.slab_room(slab) if slab else 0
        if slab:
            self.slab[: wire.SLAB_HEAD_BYTES].view(wire.SLAB_HEAD)["room"] = self.room

    def write(self) -> tuple[np.ndarray, np.ndarray]:
        """What a launch writes; what of the buffer is kept then, and how far that may be more."""
        rng, block = self.rng, self.block
        must = np.zeros(self.launch.size, bool)
        blocks = self.buffer[: self.launch.slab]
        blocks[:] = rng.integers(1, 256, blocks.size, np.uint8)  # all but counts and room
        most = rng.choice([0, 1, 3, block.capacity, 3 * block.capacity + 1])
        counts = rng.integers(0, most, (self.programs, block.units), np.uint64, endpoint=True)
        block.tables(blocks)[:] = counts
        held = np.minimum(counts, block.capacity).astype(int) * block.schema.bytes
        for program in range(self.programs):
            first = program * block.bytes
            must[first : first + block.segments] = True
            for unit in range(block.units):
                place = first + block.segment(unit)
                must[place : place + held[program, unit]] = True
        if self.room:
            head = self.slab[: wire.SLAB_HEAD_BYTES].view(wire.SLAB_HEAD)
            assert head["taken"][0] == 0, "each replay begins with an empty slab"
            taken = int(rng.choice([0, 1, self.room - 1, self.room, self.room + 9]))
            head["taken"] = taken
            chunks = self.slab[wire.SLAB_HEAD_BYTES :]
            chunks[:] = rng.integers(1, 256, chunks.size, np.uint8)
            used = wire.SLAB_HEAD_BYTES + 16 * min(taken, self.room)
            must[self.launch.slab : self.launch.slab + used] = True
        # Whole sectors of 32 bytes are copied of blocks.
        may = must.copy()
        sectors = may[: self.launch.slab].reshape(-1, 32)
        sectors[:] = sectors.any(axis=1, keepdims=True)
        return must, may

    def replay(self, programs: int) -> None:
        """Runs the kernel that keeps."""
        launch = self.launch
        of = launch.programs, launch.block
        given = graph_keep.arguments(launch.buffer, launch.log, launch.size, SLOTS, *of)
        parameters = [bytes(kind(value)) for value, kind in given]
        # Where rows share a sector, both write the same there.
        run(PTX, (programs, 1, 1), THREADS, 0, parameters, self.heap, self.rng, checks_races=False)


BLOCKS = [
    wire.Block(1, 0, wire.RecordSchema(0, 32)),  # counts alone
    wire.Block(1, 1, wire.RecordSchema(0, 32)),
    wire.Block(3, 1, wire.RecordSchema(1, 32)),  # records of 24 bytes
    wire.Block(8, 4, wire.RecordSchema(0, 32)),
    wire.Block(8, 8, wire.RecordSchema(1, 64)),
    wire.Block(2, 64, wire.RecordSchema(0, 64)),
    wire.Block(64, 2, wire.RecordSchema(16, 32)),
]


@pytest.mark.parametrize("slab", [0, 16 + 16, 16 + 16 * 1000])
@pytest.mark.parametrize("block", BLOCKS, ids=lambda b: f"{b.units}x{b.capacity}x{b.schema.bytes}")
def test_replays_keep_what_was_written_and_no_more(
    block: wire.Block, slab: int, rng: np.random.Generator
) -> None:
    kept = Kept(int(rng.integers(1, 30)), block, slab, rng)
    launch, programs = kept.launch, int(rng.integers(1, 4))
    for number in range(SLOTS + 2):
        must, may = kept.write()
        before, log = kept.buffer.copy(), kept.log.copy()
        kept.replay(programs)
        slots = log[graph.HEAD_BYTES :].reshape(SLOTS, launch.size)
        slot = number % SLOTS
        found = kept.log[graph.HEAD_BYTES :].reshape(SLOTS, launch.size)[slot]
        assert np.array_equal(found[must], before[must])
        assert np.array_equal(found[~may], slots[slot][~may]), "what nobody wrote is not copied"
        slots[slot] = found
        log[:8].view("<u4")[:] = number + 1, 0
        assert np.array_equal(kept.log, log), "nothing else changes"
        if slab:
            before[launch.slab : launch.slab + 4] = 0
        assert np.array_equal(kept.buffer, before), "nothing is cleared but the slab"


def test_as_many_programs_as_there_are_rows_and_no_more_than_fit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(cuda, "attribute", lambda device, name: 132)
    block = wire.Block(8, 4, wire.RecordSchema(0, 32))
    assert graph_keep.rows_of(block) == (8 + 3, 3), "192 bytes of head, 64 each"
    found = [graph_keep.programs_for(0, n, block, False) for n in (1, 11, 12, 132, 4096)]
    assert found == [1, 1, 2, 12, 132]
    assert graph_keep.programs_for(0, 1, block, True) == 132


def test_a_launch_whose_rows_cannot_be_counted_is_not_captured() -> None:
    block = wire.Block(64, 0, wire.RecordSchema(0, 32))
    programs = graph_keep.MOST_ROWS // graph_keep.rows_of(block)[0] + 1
    assert graph.capture(0, programs, block, 0, 1 << 60) is None


@pytest.mark.parametrize("arch", [80, 86, 89, 90, 100, 120])
def test_it_is_assembled_for_every_architecture(monkeypatch: pytest.MonkeyPatch, arch: int) -> None:
    codes: list[Any] = []
    monkeypatch.setattr(cuda, "target_of", lambda device: GPUTarget("cuda", arch))
    monkeypatch.setattr(cuda, "load", lambda code, name, shared: codes.append(code) or 1)
    assert hand_written.loaded(0, "keep", graph_keep._PTX, **graph_keep.PARTS) == 1
    assert codes[0][:4] == b"\x7fELF"
