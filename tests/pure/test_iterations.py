"""Batches of turns become the records that they stand for: a writer of them beside one of records,
number by number."""

from dataclasses import dataclass, field

import numpy as np
import pytest

from proton.trace import iterations, wire
from proton.trace.iterations import IterationRecords, Slot

RECORD = np.dtype([("start", "<u4"), ("end", "<u4"), ("tag", "<u4"), ("iteration", "<u4")])
LOOPS: tuple[IterationRecords, ...] = (
    (Slot(0, 0, 1, 1, 0), Slot(1, 1, 2, 1, 0), Slot(0, 2, 3, 1, 2)),
    (Slot(2, 0, 1, 0, -1), Slot(1 << wire.KIND_SHIFT | 3, 2, 2, -1, 7)),
    (Slot(4, 0, 3, 1, 0), Slot(4, 1, 2, 0, 5), Slot(2, 0, 0, 1, 1), Slot(5, 3, 3, 2, 0)),
)


@dataclass
class Unit:
    """A unit's ring buffer with records alone, and the one with batches."""

    plain: np.ndarray
    compact: np.ndarray
    written: int = 0
    batches: list[int] = field(default_factory=list)  # turns of each

    def record(self, values: tuple[int, ...]) -> None:
        for ring in (self.plain, self.compact):
            ring[self.written % ring.size] = values
        self.written += 1

    def batch(self, loop: int, first_turn: int, readings: np.ndarray) -> None:
        """`readings`: (turns, 4)."""
        turn, count, capacity = LOOPS[loop], len(readings), self.plain.size
        end = self.written + count * len(turn)
        for number, row in enumerate(readings.tolist()):
            for slot in turn:
                iteration = slot.step * (first_turn + number) + slot.ahead
                values = row[slot.start], row[slot.end], slot.tag, iteration % (1 << 32)
                self.plain[self.written % capacity] = values
                self.written += 1
            self.compact[(end - 1 - count + number) % capacity] = tuple(row)
        tag = 4 << 28 | loop << 16 | count
        last = turn[-1]
        whole = row[last.start], row[last.end], tag, first_turn + count - 1
        self.compact[(end - 1) % capacity] = whole
        self.batches.append(count)


def readings_of(count: int, rng: np.random.Generator) -> np.ndarray:
    """Of so many turns; some look like the tag of a batch."""
    found = rng.integers(0, 1 << 32, (count, 4))
    like = rng.random((count, 4)) < 0.2
    found[like] = 4 << 28 | rng.integers(0, 4, like.sum()) << 16 | rng.integers(0, 40, like.sum())
    return found


@pytest.mark.parametrize("capacity", [2, 4, 8, 16, 64, 256])
def test_a_buffer_of_batches(capacity: int, rng: np.random.Generator) -> None:
    block = wire.Block(units=3, capacity=capacity, schema=wire.RecordSchema(clock_bits=32))
    assert block.schema.bytes == RECORD.itemsize
    wrapped = 0
    for _ in range(40):
        programs = int(rng.integers(0, 5))
        plain = rng.integers(0, 256, programs * block.bytes).astype(np.uint8)
        compact = plain.copy()
        states = rng.choice([0, 1, 2, 2, 2], programs)
        for program in range(programs):
            for unit in range(block.units):
                start = program * block.bytes + block.segment(unit)
                segments = slice(start, start + block.segment_bytes)
                rings = Unit(*(of[segments].view(RECORD) for of in (plain, compact)))
                for _ in range(int(rng.integers(0, 8))):
                    fill(rings, rng)
                if rings.written == 0 and rng.random() < 0.5:
                    rings.compact["tag"] = 4 << 28 | 1  # of the launch before
                    rings.plain["tag"] = 4 << 28 | 1
                wrapped += rings.written > capacity and bool(rings.batches)
                for of in (plain, compact):
                    block.tables(of)[program, unit] = rings.written
        for of in (plain, compact):
            block.headers(of)["state"] = states
        before = compact.copy()
        iterations.expand(compact, block, LOOPS)
        for program in range(programs):
            rows = (x[program * block.bytes :][: block.bytes] for x in (plain, compact, before))
            expected, found, left = rows
            if states[program] != wire.ProgramState.FINISHED:
                assert np.array_equal(found, left)
                continue
            for unit in range(block.units):
                count = int(block.tables(expected)[0, unit])
                kept = np.arange(max(0, count - capacity), count) % capacity
                segment = slice(block.segment(unit), block.segment(unit) + block.segment_bytes)
                one, other = (x[segment].view(RECORD)[kept] for x in (expected, found))
                assert np.array_equal(one, other)
            assert np.array_equal(expected[: block.segments], found[: block.segments])
    assert wrapped > 10


def fill(unit: Unit, rng: np.random.Generator) -> None:
    """Some records, or a loop in batches, of which the last one may be short."""
    capacity = unit.plain.size
    loop = int(rng.integers(0, len(LOOPS)))
    most = min(32, capacity - 1)  # more records than the ring buffer has, maybe
    if rng.random() < 0.4 or not most:
        for _ in range(int(rng.integers(0, 5))):
            tag = int(rng.integers(0, 6))
            unit.record((*rng.integers(0, 1 << 32, 2).tolist(), tag, 0xFFFFFFFF))
        return
    left, done = int(rng.integers(0, 4 * most)), 0
    while left:
        count = min(left, most)
        unit.batch(loop, done, readings_of(count, rng))
        left, done = left - count, done + count


def test_of_a_kernel_without_batches_nothing_changes(rng: np.random.Generator) -> None:
    block = wire.Block(units=1, capacity=4, schema=wire.RecordSchema(clock_bits=32))
    buffer = rng.integers(0, 256, 2 * block.bytes).astype(np.uint8)
    before = buffer.copy()
    iterations.expand(buffer, block, ())
    assert np.array_equal(buffer, before)


def test_no_record_has_the_tag_of_a_batch() -> None:
    assert iterations.BATCH not in [kind.value for kind in wire.RecordKind]
    tags = [iterations.batch_tag(loop) | count for loop in (0, 1, 4095) for count in (1, 32)]
    assert {tag >> wire.KIND_SHIFT for tag in tags} == {iterations.BATCH}
    assert len(set(tags)) == len(tags)


def test_a_profile_keeps_its_loops() -> None:
    plain = [iterations.iteration_to_plain(turn) for turn in LOOPS]
    assert tuple(map(iterations.iteration_from_plain, plain)) == LOOPS


def test_what_no_unit_can_have_written_stays(rng: np.random.Generator) -> None:
    """More turns than slots, more records than the unit made, a loop that the kernel has not."""
    block = wire.Block(units=1, capacity=8, schema=wire.RecordSchema(clock_bits=32))
    for written, loop, count in [(6, 0, 3), (1, 1, 1), (90, 1, 8), (90, 0, 65535), (90, 3, 1),
                                 (90, 4095, 2), (90, 2, 0), (1 << 63, 0, 2)]:  # fmt: skip
        buffer = rng.integers(0, 256, block.bytes).astype(np.uint8)
        block.headers(buffer)["state"] = wire.ProgramState.FINISHED
        block.tables(buffer)[0, 0] = written
        ring = buffer[block.segment(0) :][: block.segment_bytes].view(RECORD)
        ring["tag"] = rng.integers(0, 6, block.capacity)
        ring["tag"][(written - 1) % block.capacity] = 4 << 28 | loop << 16 | count
        before = buffer.copy()
        iterations.expand(buffer, block, LOOPS)
        assert np.array_equal(buffer, before), (written, loop, count)
