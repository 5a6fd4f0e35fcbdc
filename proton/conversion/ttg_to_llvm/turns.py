"""Loops that keep only the readings of their records while they run: the ops of `compact-turns`.

In the loop a record is one store of 8 bytes (16 with clocks of 64 bits), whose place follows from
the number of the turn. Behind it each lane of the unit's first warp takes a turn and writes its
records, whole, to where the ring buffer has them: the same bytes as without this.
"""

from proton.base.targets import WARP_SIZE
from proton.conversion.ttg_to_llvm import nvidia
from proton.conversion.ttg_to_llvm import values as v
from proton.conversion.ttg_to_llvm.blocks import COMMENT, byte_at
from proton.conversion.ttg_to_llvm.lowering import Lowering, Site, lowers
from proton.conversion.ttg_to_llvm.units import (
    Turns,
    Unit,
    place_of,
    ring_slot,
    signed,
    store_pending,
    unit_of,
    wide,
)
from proton.dialect.attributes import STORES
from proton.dialect.mlir import Type, Value, ir
from proton.trace import wire


@lowers("proton_gpu.begin_turns")
def _begin_turns(ctx: Lowering, site: Site) -> list[Value]:
    unit = unit_of(ctx)
    if STORES in site.op.attributes:
        store_pending(unit)
    profile, clock = unit.profile, v.integer(unit.schema.clock_bits)
    threads = v.i32((WARP_SIZE * profile.unit_warps).bit_length() - 1)
    number = v.binary("llvm.lshr", ctx.threads.number, threads)
    assert profile.turns is not None
    rings = byte_at(ctx.program_shared(), v.i32(profile.turns))
    turns = Turns(
        slots=site.number("slots"),
        most=site.number("turns"),
        ring=byte_at(rings, v.binary("llvm.mul", number, v.i32(profile.turn_bytes))),
        number=_variable(ctx, v.integer(32)),
        offset=_variable(ctx, v.integer(32)),
        edges=[_variable(ctx, clock) for _ in range(2)],
        clock=clock,
    )
    for variable in (turns.number, turns.offset):
        v.store(variable, v.i32(0), 4)
    for variable in turns.edges:
        v.store(variable, v.constant(0, clock), 4)
    unit.turns = turns
    return []


def _variable(ctx: Lowering, type_: Type) -> Value:
    """The address of a variable of the function."""
    with ir.InsertionPoint.at_block_begin(ctx.function.regions[0].blocks[0]):
        of = ir.TypeAttr.get(type_)
        return v.create("llvm.alloca", v.pointer(0), v.i32(1), elem_type=of)


def _turns_of(unit: Unit) -> Turns:
    assert unit.turns is not None
    return unit.turns


@lowers("proton_gpu.turn_record")
def _turn_record(ctx: Lowering, site: Site) -> list[Value]:
    unit = unit_of(ctx)
    turns = _turns_of(unit)
    if STORES in site.op.attributes:
        store_pending(unit)
    turn = v.load(turns.number, v.integer(32), 4)
    v.store(turns.offset, turns.place(turn, site.number("slot")), 4)
    for variable, value in zip(turns.edges, site.operands[1:], strict=True):
        v.store(variable, value, 4)
    return []


@lowers("proton_gpu.end_turn")
def _end_turn(ctx: Lowering, site: Site) -> list[Value]:
    turns = _turns_of(unit_of(ctx))
    v.store(turns.number, v.add(v.load(turns.number, v.integer(32), 4), v.i32(1)), 4)
    return []


@lowers("proton_gpu.kept_turns")
def _kept_turns(ctx: Lowering, site: Site) -> list[Value]:
    """A lane that has nothing to write finds no turn below the end."""
    unit = unit_of(ctx)
    turns = _turns_of(unit)
    if STORES in site.op.attributes:
        store_pending(unit)
    nvidia.warp_barrier()
    number = v.load(turns.number, v.integer(32), 4)
    oldest = v.create("llvm.intr.usub.sat", v.integer(32), number, v.i32(turns.most))
    end = number
    if unit.profile.unit_warps > 1:
        in_first = v.compare("ult", unit.lane, v.i32(WARP_SIZE))
        end = v.select(in_first, end, v.i32(0))
    if unit.is_sampled is not None:
        end = v.select(unit.is_sampled, end, v.i32(0))
    return [v.add(oldest, unit.lane), end]


@lowers("proton_gpu.write_record")
def _write_record(ctx: Lowering, site: Site) -> list[Value]:
    unit = unit_of(ctx)
    turns = _turns_of(unit)
    _, turn, iteration = site.operands
    slot = site.number("slot")
    index = v.add(v.binary("llvm.mul", turn, v.i32(turns.slots)), v.i32(slot))
    left = v.binary("llvm.sub", _records(turns), index)
    is_kept = v.compare("ule", left, v.i32(unit.profile.capacity))
    number = v.add(v.load(unit.count, v.integer(32), 4), index)
    place = v.add(unit.first, place_of(unit, ring_slot(unit, number)))
    source = byte_at(turns.ring, turns.place(turn, slot))
    start, end = nvidia.load(source, turns.clock, 2, space="shared", note=COMMENT)
    tag = v.i32(signed(wire.tag(wire.Kind(site.number("kind")), site.number("scope_id"))))
    values = {"start": start, "end": end, "tag": tag, "iteration": iteration}
    target = byte_at(unit.segments, wide(place))
    for offset, names in unit.schema.stores:
        of = [values[name] for name in names]
        nvidia.store(target, of, predicate=is_kept, offset=offset, note=COMMENT)
    return []


def _records(turns: Turns) -> Value:
    """Of the loop, so far."""
    number = v.load(turns.number, v.integer(32), 4)
    return v.binary("llvm.mul", number, v.i32(turns.slots))


@lowers("proton_gpu.end_turns")
def _end_turns(ctx: Lowering, site: Site) -> list[Value]:
    """The next loop may write where lanes have read."""
    unit = unit_of(ctx)
    turns, unit.turns = _turns_of(unit), None
    count = v.add(v.load(unit.count, v.integer(32), 4), _records(turns))
    v.store(unit.count, count, 4)
    v.store(unit.cursor, v.add(unit.first, place_of(unit, ring_slot(unit, count))), 4)
    nvidia.warp_barrier()
    return []
