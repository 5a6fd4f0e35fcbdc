"""A program's block in the profile buffer: its header, and what its ring buffers held.

The bytes are those of proton/trace/wire.py.
"""

from proton.base.targets import WARP_SIZE
from proton.conversion.ttg_to_llvm.core import values as v
from proton.conversion.ttg_to_llvm.core.primitives import RecordPrimitives
from proton.dialect.mlir import Value, llvm
from proton.trace import wire

COMMENT = "// proton"  # on every instruction that records
_AT_ONCE = 4  # accesses of a lane that are under way when a ring buffer is copied
_TURN = wire.RECORD_ALIGNMENT * WARP_SIZE  # bytes that the lanes copy at a time


def byte_at(base: Value, offset: int | Value) -> Value:
    """The address `offset` (a number or an i64) bytes behind `base`."""
    if isinstance(offset, int):
        offset = v.constant(offset, v.integer(64))
    return v.offset_pointer(base, offset, v.integer(8))


Now = tuple[Value, Value]  # the global timer and the clock of the SM


def now(primitives: RecordPrimitives) -> Now:
    """Both, always read in this order, so that the time between does not count as time."""
    return primitives.timer(COMMENT), primitives.clock(64, COMMENT)


def begin(
    primitives: RecordPrimitives, block: Value, layout: wire.Block, start: Now | None = None
) -> None:
    """The header, in as few stores as its fields allow; its magic comes last: a block that has it
    has a whole header. `start`: when the program began; now if None."""
    place = [primitives.program_id(axis) for axis in range(3)]
    sm = primitives.multiprocessor(COMMENT)
    timer, clock = now(primitives) if start is None else start
    version_and_state = v.i32(wire.VERSION | int(wire.ProgramState.STARTED) << 16)
    units, capacity = v.i32(layout.units), v.i32(layout.capacity)
    slots, bits = v.i32(layout.schema.payload_slots), v.i32(layout.schema.clock_bits)
    _store_fields(primitives, block, "program_z", [place[2], sm, v.i32(0), units])
    _store_fields(primitives, block, "capacity", [capacity, slots])
    _store_fields(primitives, block, "clock_bits", [bits])
    _store_fields(primitives, block, "clock_start", [clock])
    _store_fields(primitives, block, "timer_start", [timer])
    _store_fields(
        primitives, block, "magic", [v.i32(wire.MAGIC), version_and_state, place[0], place[1]]
    )


def _store_fields(
    primitives: RecordPrimitives, block: Value, first: str, values: list[Value]
) -> None:
    """Stores consecutive fields at once."""
    primitives.store(byte_at(block, wire.header_offset(first)), values, note=COMMENT)


def finish(primitives: RecordPrimitives, block: Value) -> None:
    """The end of the program in its header."""
    timer, clock = now(primitives)
    _store_fields(primitives, block, "clock_end", [clock])
    _store_fields(primitives, block, "timer_end", [timer])
    state = v.constant(int(wire.ProgramState.FINISHED), v.integer(16))
    _store_fields(primitives, block, "state", [state])


def copy_ring(
    primitives: RecordPrimitives, ring: Value, segment: Value, lane: Value, size: Value, most: int
) -> None:
    """Copies `size` bytes of a ring buffer in shared memory, which has `most`, to global memory: 16
    a lane at a time. Several loads are under way before the first is stored, since nothing else
    goes on at the end of a program."""
    at_once = next(n for n in (_AT_ONCE, 2, 1) if most % (n * _TURN) == 0 or n == 1)

    def copy(offset: Value) -> None:
        source, target = (
            byte_at(ring, offset),
            byte_at(segment, v.create(llvm.ZExtOp, v.integer(64), offset)),
        )
        places = [number * _TURN for number in range(at_once)]
        found = [
            primitives.load(byte_at(source, place), v.integer(32), 4, space="shared", note=COMMENT)
            for place in places
        ]
        for place, words in zip(places, found, strict=True):
            is_in = v.compare("ult", v.add(offset, v.i32(place)), size) if place else None
            primitives.store(target, words, offset=place, predicate=is_in, note=COMMENT)

    first = v.binary(llvm.MulOp, lane, v.i32(wire.RECORD_ALIGNMENT))
    v.repeat(first, size, v.i32(_TURN * at_once), copy)
