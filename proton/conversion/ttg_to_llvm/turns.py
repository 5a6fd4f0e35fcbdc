"""Loops that keep only the readings of their records while they run: the ops of `compact-turns`.

In the loop a record is one store of 8 bytes (16 with clocks of 64 bits), whose place follows from
the number of the turn. Later the lanes of the unit's first warp write the loop's newest records,
neighbours side by side, to where the ring buffer has them: the same bytes as without this. Records
that came behind the loop may have taken the places of its oldest.
"""

from proton.base.targets import WARP_SIZE
from proton.conversion.ttg_to_llvm import nvidia
from proton.conversion.ttg_to_llvm import values as v
from proton.conversion.ttg_to_llvm.blocks import COMMENT, byte_at
from proton.conversion.ttg_to_llvm.lowering import Lowering, Site, lowers
from proton.conversion.ttg_to_llvm.units import (
    Turns,
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
    assert profile.turns is not None
    rings = byte_at(ctx.program_shared(), v.i32(profile.turns))
    number = v.create("llvm.trunc", v.integer(32), unit.number)
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
    found = v.i32(0)  # what later ops find it by
    unit.turns = ctx.mapped[found] = turns
    return [found]


def _variable(ctx: Lowering, type_: Type) -> Value:
    """The address of a variable of the function."""
    with ir.InsertionPoint.at_block_begin(ctx.function.regions[0].blocks[0]):
        of = ir.TypeAttr.get(type_)
        return v.create("llvm.alloca", v.pointer(0), v.i32(1), elem_type=of)


def _turns_of(ctx: Lowering, site: Site) -> Turns:
    turns: Turns = ctx.mapped[site.op.operands[0]]
    return turns


@lowers("proton_gpu.turn_record")
def _turn_record(ctx: Lowering, site: Site) -> list[Value]:
    turns = _turns_of(ctx, site)
    if STORES in site.op.attributes:
        store_pending(unit_of(ctx))
    turn = v.load(turns.number, v.integer(32), 4)
    v.store(turns.offset, turns.place(turn, v.i32(site.number("slot"))), 4)
    for variable, value in zip(turns.edges, site.operands[1:], strict=True):
        v.store(variable, value, 4)
    return []


@lowers("proton_gpu.end_turn")
def _end_turn(ctx: Lowering, site: Site) -> list[Value]:
    turns = _turns_of(ctx, site)
    if STORES in site.op.attributes:
        store_pending(unit_of(ctx))
    v.store(turns.number, v.add(v.load(turns.number, v.integer(32), 4), v.i32(1)), 4)
    return []


@lowers("proton_gpu.end_turns")
def _end_turns(ctx: Lowering, site: Site) -> list[Value]:
    unit, turns = unit_of(ctx), _turns_of(ctx, site)
    if STORES in site.op.attributes:
        store_pending(unit)
    unit.turns = None
    number = v.load(turns.number, v.integer(32), 4)
    turns.records = v.binary("llvm.mul", number, v.i32(turns.slots))
    turns.first = v.load(unit.count, v.integer(32), 4)
    count = v.add(turns.first, turns.records)
    v.store(unit.count, count, 4)
    v.store(unit.cursor, v.add(unit.first, place_of(unit, ring_slot(unit, count))), 4)
    return []


@lowers("proton_gpu.kept_records")
def _kept_records(ctx: Lowering, site: Site) -> list[Value]:
    """A lane that has nothing to write finds no record below the end."""
    unit, turns = unit_of(ctx), _turns_of(ctx, site)
    nvidia.warp_barrier()
    count = v.binary("llvm.sub", v.load(unit.count, v.integer(32), 4), turns.first)
    oldest = _saturated(count, unit.profile.capacity)
    end = turns.records
    if unit.profile.unit_warps > 1:
        in_first = v.compare("ult", unit.lane, v.i32(WARP_SIZE))
        end = v.select(in_first, end, v.i32(0))
    if unit.is_sampled is not None:
        end = v.select(unit.is_sampled, end, v.i32(0))
    turns.end = end
    return [v.add(oldest, unit.lane), end]


def _saturated(number: Value, less: int) -> Value:
    """A u32 less a number; 0 where it is smaller."""
    return v.create("llvm.intr.usub.sat", v.integer(32), number, v.i32(less))


@lowers("proton_gpu.kept_readings")
def _kept_readings(ctx: Lowering, site: Site) -> list[Value]:
    turns, record = _turns_of(ctx, site), site.operands[1]
    turn, slot = _turn_and_slot(turns, record)
    source = byte_at(turns.ring, turns.place(turn, slot))
    return nvidia.load(source, turns.clock, 2, space="shared", note=COMMENT)


def _turn_and_slot(turns: Turns, record: Value) -> tuple[Value, Value]:
    """Where a record of a loop is, by its number."""
    turn = v.binary("llvm.udiv", record, v.i32(turns.slots))
    return turn, v.binary("llvm.sub", record, v.binary("llvm.mul", turn, v.i32(turns.slots)))


@lowers("proton_gpu.write_record")
def _write_record(ctx: Lowering, site: Site) -> list[Value]:
    unit, turns = unit_of(ctx), _turns_of(ctx, site)
    _, record, start, end, *iterations = site.operands
    _, slot = _turn_and_slot(turns, record)
    numbers = zip(*(site.op.attributes[name] for name in ("kinds", "scope_ids")), strict=True)
    tags = [wire.tag(wire.Kind(kind.value), scope.value) for kind, scope in numbers]
    values = {
        "start": start,
        "end": end,
        "tag": _of_slot(slot, [v.i32(signed(tag)) for tag in tags]),
        "iteration": _of_slot(slot, iterations),
    }
    number = v.add(turns.first, record)
    place = v.add(unit.first, place_of(unit, ring_slot(unit, number)))
    target, is_there = byte_at(unit.segments, wide(place)), v.compare("ult", record, turns.end)
    for offset, names in unit.schema.stores:
        of = [values[name] for name in names]
        nvidia.store(target, of, predicate=is_there, offset=offset, note=COMMENT)
    return []


def _of_slot(slot: Value, values: list[Value]) -> Value:
    """The value of a slot."""
    found = values[0]
    for number, value in enumerate(values[1:], 1):
        if value != values[0]:
            found = v.select(v.compare("eq", slot, v.i32(number)), value, found)
    return found


@lowers("proton_gpu.forget_turns")
def _forget_turns(ctx: Lowering, site: Site) -> list[Value]:
    nvidia.warp_barrier()
    return []
