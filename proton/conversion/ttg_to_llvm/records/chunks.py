"""Chunks of a slab that launches share: where the records of a unit go under strategy flush.

Record k lies in slot k mod capacity of the chunk that the unit took for it. What a loop writes at
once is no more than a chunk holds, so it has at most two: the end of one, and the beginning of the
next.
"""

from proton.conversion.ttg_to_llvm.core import values as v
from proton.conversion.ttg_to_llvm.records.blocks import COMMENT, byte_at
from proton.conversion.ttg_to_llvm.records.units import (
    ChunkSpan,
    FlushSlab,
    Unit,
    wide,
)
from proton.dialect.mlir import Value, llvm
from proton.trace import wire


def take_span(unit: Unit, loop_first: Value, first: Value, end: Value) -> ChunkSpan:
    """Where the records of a loop from `first` up to `end` go, i32, counted from the loop's first,
    which has the number `loop_first`: at most a chunk's. All lanes come along."""
    assert unit.slab is not None, "of units that take chunks"
    slab, number = unit.slab, v.add(loop_first, first)
    # None where the first record begins a chunk.
    behind = v.binary(llvm.SubOp, v.i32(0), number)
    room = v.binary(llvm.AndOp, behind, v.i32(unit.profile.capacity - 1))
    old = _of_first_lane(unit, v.load(unit.chunk, v.pointer(v.GLOBAL), 8))
    is_more = v.compare("ult", room, v.binary(llvm.SubOp, end, first))
    due = v.binary(llvm.AndOp, unit.is_writer, is_more)
    v.when(due, lambda: take_chunk(unit, slab, v.add(number, room)))
    new = _of_first_lane(unit, v.load(unit.chunk, v.pointer(v.GLOBAL), 8))
    return ChunkSpan(loop_first, v.add(first, room), old, new)


def _of_first_lane(unit: Unit, pointer: Value) -> Value:
    """An address that the first lane of each warp has."""
    number = v.create(llvm.PtrToIntOp, v.integer(64), pointer)
    words = unit.primitives.shuffle_lanes("idx", v.splat(number, 1), v.i32(0), COMMENT)
    return v.create(llvm.IntToPtrOp, pointer.type, v.extract(words, 0))


def take_chunk(unit: Unit, of_slab: FlushSlab, record: Value) -> None:
    """A chunk of the slab, with its head, for records from `record` on; the unit's own segment
    where there is no room left."""
    slab = v.load(of_slab.address, v.pointer(v.GLOBAL), 8)
    size = wire.chunk_bytes(unit.profile.block)
    words = size // wire.RECORD_ALIGNMENT
    taken = unit.primitives.fetch_add(slab, words, COMMENT)
    place = byte_at(slab, wire.slab_room_offset())
    (room,) = unit.primitives.load(place, v.integer(32), 1, note=COMMENT)
    fits = v.compare("ule", v.add(taken, v.i32(words)), room)
    offset = v.binary(llvm.MulOp, wide(taken), v.constant(wire.RECORD_ALIGNMENT, v.integer(64)))
    chunk = byte_at(byte_at(slab, wire.SLAB_HEAD_BYTES), offset)
    of = [v.create(llvm.TruncOp, v.integer(32), n) for n in (unit.program, unit.number)]
    launch = v.load(of_slab.launch, v.integer(32), 4)
    for field, pair in (("program", of), ("launch", [launch, v.i32(size)])):
        place = byte_at(chunk, wire.offset_of(wire.CHUNK_HEAD, field))
        unit.primitives.store(place, pair, predicate=fits, note=COMMENT)
    first = byte_at(chunk, wire.offset_of(wire.CHUNK_HEAD, "first"))
    unit.primitives.store(first, [wide(record)], predicate=fits, note=COMMENT)
    records = byte_at(chunk, wire.CHUNK_HEAD_BYTES)
    v.store(unit.chunk, v.select(fits, records, unit.segment), 8)
