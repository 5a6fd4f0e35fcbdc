"""What the records of a function know, and the record that is not stored yet."""

from dataclasses import dataclass

from proton.conversion.ttg_to_llvm.core import values as v
from proton.conversion.ttg_to_llvm.core.primitives import RecordPrimitives
from proton.conversion.ttg_to_llvm.records.blocks import COMMENT, byte_at
from proton.dialect.mlir import Operation, Type, Value, ir, llvm
from proton.trace import wire
from proton.trace.profile import KernelProfile


@dataclass(frozen=True)
class RingCursor:
    """Where the next record of a ring buffer in global memory goes."""

    place: Value  # where that is kept, i32
    first: Value  # the place of the unit's first record, i32


@dataclass(frozen=True)
class FlushSlab:
    """What chunks are taken from."""

    address: Value  # where the address of the slab is
    launch: Value  # where the number of the launch is


@dataclass
class Unit:
    """What the records of a function know: made by `proton_gpu.init`."""

    primitives: RecordPrimitives
    profile: KernelProfile
    block: Value  # address of the program's block
    segment: Value  # address of this unit's ring buffer in the block
    segments: Value  # address of the first unit's
    ring: Value | None  # of this unit's ring buffer in shared memory; None where it has none
    chunk: Value  # where the address of the present chunk is, under strategy flush
    slab: FlushSlab | None  # None where no chunks are taken
    program: Value  # linear number, i64
    number: Value  # of this unit, i64
    table: Value  # address of this unit's number of records
    count: Value  # where that number is meanwhile
    cursor: RingCursor | None  # None where the number of a record says its place
    pending: "Pending"
    lane: Value  # in the unit
    is_sampled: Value | None  # whether the unit records; None: each does
    is_writer: Value  # whether this lane writes
    iterations: "KeptIterations | None" = None  # while a loop is lowered that keeps readings alone

    @property
    def schema(self) -> wire.RecordSchema:
        return self.profile.schema


@dataclass
class Pending:
    """The record that is not stored yet: variables, which LLVM makes registers of.

    Before there is any, it is a record of nothing, in the place before the first. A record may be
    stored twice, along ways that meet, and where the next one's condition does not hold. Behind a
    loop that keeps readings it may not, for the loop's records have followed: `live` says so.
    """

    offset: Value  # where its place is; in a chunk, bytes behind that
    values: dict[str, Value]  # by field of the record
    types: dict[str, Type]
    # Where it is whether the record may be stored, i1; None: it always may.
    live: Value | None = None


@dataclass(frozen=True)
class ChunkSpan:
    """Where some records of a loop go that take chunks, the same in all lanes: those below `end` to
    the chunk that the unit had, the others to the next one."""

    loop_first: Value  # the number of the loop's first record, i32
    end: Value  # counted from that one, i32
    old: Value  # the address of the records of a chunk
    new: Value

    def place(self, unit: Unit, record: Value) -> Value:
        """The address of a record, counted from the loop's first."""
        chunk = v.select(v.compare("ult", record, self.end), self.old, self.new)
        slot = ring_slot(unit, v.add(self.loop_first, record))
        return byte_at(chunk, wide(place_of(unit, slot)))


@dataclass(frozen=True)
class LoopRecords:
    """The records of a loop that keeps readings, behind it."""

    first: Value  # the number of the first, i32
    count: Value  # how many there are, i32


@dataclass
class KeptIterations:
    """What a loop keeps while it runs: of each iteration the readings of its records, one after the
    other. Its variables become registers, as those of `Pending` do."""

    slots: int  # records of an iteration
    words: int  # readings of an iteration that there is room for
    most: int  # iterations that are kept, a power of two
    ring: Value | None  # the unit's, in shared memory; None where registers have it
    lanes: list[Value]  # there, the variables with the readings of the iteration that a lane keeps
    number: (
        Value  # where the number of iterations is, so far, or with `kept` of those that are written
    )
    kept: Value | None  # where that of the others is, if the loop writes its records itself
    offset: Value  # where the place of the readings is that are not stored yet
    pending: list[Value]  # where they are
    clock: Type  # the type of a reading
    count: int  # how many these are
    made: LoopRecords | None = None  # None in the loop
    span: ChunkSpan | None = None  # while records are written to chunks

    def row(self, iteration: Value) -> Value:
        """Where among the iterations that are kept one is."""
        return v.binary(llvm.AndOp, iteration, v.i32(self.most - 1))

    def place(self, row: Value, word: Value) -> Value:
        """Where a reading of an iteration lies, bytes."""
        size = int(self.clock.width) // 8
        row = v.binary(llvm.MulOp, row, v.i32(self.words * size))
        return v.add(row, v.binary(llvm.MulOp, word, v.i32(size)))

    def store(self, primitives: RecordPrimitives, is_writer: Value) -> None:
        """Stores what is pending. Before there is any, that is nothing, where the first will be."""
        if self.ring is None:
            return
        place = byte_at(self.ring, v.load(self.offset, v.integer(32), 4))
        values = [v.load(value, self.clock, 4) for value in self.pending[: self.count]]
        primitives.store(place, values, space="shared", predicate=is_writer, note=COMMENT)


def variable(function: Operation, type_: Type) -> Value:
    """The address of a variable of the function."""
    with ir.InsertionPoint.at_block_begin(function.regions[0].blocks[0]):
        of = ir.TypeAttr.get(type_)
        return v.create(llvm.AllocaOp, v.pointer(0), v.i32(1), elem_type=of)


def _moved_on(unit: Unit, place: Value, first: Value) -> Value:
    """The place behind a record, around at the end of the ring buffer that begins at `first`."""
    size, ring = unit.schema.bytes, unit.profile.block.segment_bytes
    following = v.add(place, v.i32(size))
    if ring & (ring - 1):
        is_last = v.compare("eq", place, v.add(first, v.i32(ring - size)))
        return v.select(is_last, first, following)
    # Rings lie one after the other, so the low bits are the place in this one.
    return v.binary(llvm.OrOp, first, v.binary(llvm.AndOp, following, v.i32(ring - 1)))


def store_pending(unit: Unit) -> None:
    """Stores the pending record: 16 bytes at once where it is as long as that. In a loop that keeps
    readings alone it is one of that loop."""
    if unit.iterations is not None:
        unit.iterations.store(unit.primitives, unit.is_writer)
        return
    pending = unit.pending
    offset = v.load(pending.offset, v.integer(32), 4)
    if unit.ring is not None:
        place = byte_at(unit.ring, offset)
    elif unit.slab is not None:
        place = byte_at(v.load(unit.chunk, v.pointer(v.GLOBAL), 8), wide(offset))
    else:
        place = byte_at(unit.segments, wide(offset))
    is_writer = unit.is_writer
    if pending.live is not None:
        live = v.load(pending.live, v.integer(1), 1)
        is_writer = v.binary(llvm.AndOp, is_writer, live)
    if unit.cursor is not None:
        following = _moved_on(unit, offset, unit.cursor.first)
        if pending.live is not None:
            following = v.select(live, following, v.load(unit.cursor.place, v.integer(32), 4))
        v.store(unit.cursor.place, following, 4)
    values = {n: v.load(pending.values[n], type_, 4) for n, type_ in pending.types.items()}
    in_ring = unit.ring is not None
    for start, names in unit.schema.stores:  # in shared memory an address each (decision 98)
        unit.primitives.store(
            byte_at(place, start) if in_ring and start else place,
            [values[name] for name in names],
            space="shared" if in_ring else "global",
            predicate=is_writer,
            offset=0 if in_ring else start,
            note=COMMENT,
        )


def ring_place(unit: Unit, number: Value) -> Value:
    """Where the record of a number lies among the ring buffers in global memory, bytes."""
    assert unit.cursor is not None, "the ring buffer lies in shared memory"
    return v.add(unit.cursor.first, place_of(unit, ring_slot(unit, number)))


def ring_slot(unit: Unit, number: Value) -> Value:
    """The slot of a record by its number: one of `capacity`, which is a power of two."""
    return v.binary(llvm.AndOp, number, v.i32(unit.profile.capacity - 1))


def place_of(unit: Unit, slot: Value) -> Value:
    """Where a slot lies in a ring buffer or a chunk, bytes."""
    return v.binary(llvm.MulOp, slot, v.i32(unit.schema.bytes))


def wide(value: Value) -> Value:
    """An i32 that is not negative, as i64."""
    return v.create(llvm.ZExtOp, v.integer(64), value)


def signed(number: int) -> int:
    """The number as which a constant of MLIR has the bits of a u32."""
    return number - (1 << 32) if number >> 31 else number
