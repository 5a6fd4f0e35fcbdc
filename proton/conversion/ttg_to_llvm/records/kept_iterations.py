"""Loops that keep only the readings of their records while they run: the ops of
`compact-iterations`.

In the loop readings are stored as many as 16 bytes hold, at a place that follows from the number of
the iteration. Later the lanes of the unit's first warp write the loop's newest records,
neighbours side by side, to where the ring buffer has them: the same bytes as without this. Records
that came behind the loop may have taken the places of its oldest.

Some loops write them themselves, whenever no room is left. How many iterations are kept is counted,
not found by an address: unless the assembler sees that all lanes agree on a branch, what follows
leaves uniform registers.

Where shared memory has no room, lane n of the warp keeps the readings of iteration n in registers,
and others have them by shuffles, between barriers of the warp: LLVM copies no block that has one.

Loops whose iterations are batches (proton/trace/iterations.py) write the readings as they are, an
iteration for each lane.
"""

from proton.base.targets import WARP_SIZE
from proton.conversion.ttg_to_llvm.core import values as v
from proton.conversion.ttg_to_llvm.core.lowering import Lowering, Site, lowers
from proton.conversion.ttg_to_llvm.records.blocks import COMMENT, byte_at
from proton.conversion.ttg_to_llvm.records.chunks import take_span
from proton.conversion.ttg_to_llvm.records.readings import is_written_in_loop
from proton.conversion.ttg_to_llvm.records.units import (
    KeptIterations,
    LoopRecords,
    Unit,
    ring_place,
    signed,
    store_pending,
    variable,
    wide,
)
from proton.dialect import proton_gpu as pg
from proton.dialect.attributes import STORES
from proton.dialect.mlir import Value, llvm
from proton.trace import wire
from proton.trace.iterations import MOST_READINGS, batch_tag

_AT_ONCE = 4  # readings that a store has room for


@lowers(pg.BeginIterationsOp)
def _begin_iterations(ctx: Lowering, site: Site) -> list[Value]:
    unit = ctx.unit
    if STORES in site.op.attributes:
        store_pending(unit)
    profile, clock = unit.profile, v.integer(unit.schema.clock_bits)
    words = site.number("words")
    ring = None if profile.iterations is None else _ring(ctx, site, profile.iterations)
    if ring is None and unit.slab is not None:
        # A lane that took a chunk may come later than others, whose readings follow its own.
        ctx.recording.warp_barrier()
    iterations = KeptIterations(
        slots=site.number("slots"),
        words=words,
        most=site.number("iterations"),
        ring=ring,
        lanes=[variable(ctx.function, clock) for _ in range(0 if ring is not None else words)],
        number=variable(ctx.function, v.integer(32)),
        kept=variable(ctx.function, v.integer(32)) if is_written_in_loop(site.op) else None,
        offset=variable(ctx.function, v.integer(32)),
        pending=[variable(ctx.function, clock) for _ in range(_AT_ONCE)],
        count=min(words, _AT_ONCE),  # what a loop of one record carries
        clock=clock,
    )
    for place in filter(None, (iterations.number, iterations.kept, iterations.offset)):
        v.store(place, v.i32(0), 4)
    for place in (*iterations.pending, *iterations.lanes):
        v.store(place, v.constant(0, clock), 4)
    found = v.i32(0)  # what later ops find it by
    unit.iterations = ctx.iterations[found] = iterations
    return [found]


def _ring(ctx: Lowering, site: Site, iterations: int) -> Value:
    """Where shared memory has the unit's readings; those of all are from byte `iterations` on."""
    rings = byte_at(ctx.program_shared(), v.i32(iterations))
    number = v.create(llvm.TruncOp, v.integer(32), ctx.unit.number)
    ring = byte_at(rings, v.binary(llvm.MulOp, number, v.i32(ctx.unit.profile.iteration_bytes)))
    if not is_written_in_loop(site.op):
        return ring
    word = ctx.recording.copied(v.create(llvm.PtrToIntOp, v.integer(32), ring))
    return v.create(llvm.IntToPtrOp, ring.type, word)


def _iterations_of(ctx: Lowering, site: Site) -> KeptIterations:
    return ctx.iterations[site.op.operands[0]]


@lowers(pg.KeepReadingsOp)
def _keep_readings(ctx: Lowering, site: Site) -> list[Value]:
    iterations, readings = _iterations_of(ctx, site), site.operands[1:]
    if STORES in site.op.attributes:
        store_pending(ctx.unit)
    if iterations.kept is None:
        row = iterations.row(v.load(iterations.number, v.integer(32), 4))
    else:
        row = v.load(iterations.kept, v.integer(32), 4)
    if iterations.ring is None:
        is_own = v.compare("eq", _lane(ctx.unit), row)
        for place, value in zip(iterations.lanes[site.number("first") :], readings, strict=False):
            v.store(place, v.select(is_own, value, v.load(place, value.type, 4)), 4)
        return []
    v.store(iterations.offset, iterations.place(row, v.i32(site.number("first"))), 4)
    iterations.count = len(readings)
    for place, value in zip(iterations.pending, readings, strict=False):
        v.store(place, value, 4)
    return []


@lowers(pg.EndIterationOp)
def _end_iteration(ctx: Lowering, site: Site) -> list[Value]:
    iterations = _iterations_of(ctx, site)
    if STORES in site.op.attributes:
        store_pending(ctx.unit)
    count = iterations.number if iterations.kept is None else iterations.kept
    v.store(count, v.add(v.load(count, v.integer(32), 4), v.i32(1)), 4)
    return []


@lowers(pg.KeptIterationsOp)
def _kept_iterations(ctx: Lowering, site: Site) -> list[Value]:
    kept = _iterations_of(ctx, site).kept
    assert kept is not None, "of loops that write their records"
    return [v.load(kept, v.integer(32), 4)]


@lowers(pg.EndIterationsOp)
def _end_iterations(ctx: Lowering, site: Site) -> list[Value]:
    unit, iterations = ctx.unit, _iterations_of(ctx, site)
    if STORES in site.op.attributes:
        store_pending(unit)
    unit.iterations = None
    number = v.load(iterations.number, v.integer(32), 4)
    if iterations.kept is not None:
        number = v.add(number, v.load(iterations.kept, v.integer(32), 4))
    records = v.binary(llvm.MulOp, number, v.i32(iterations.slots))
    iterations.made = LoopRecords(v.load(unit.count, v.integer(32), 4), records)
    count = v.add(iterations.made.first, records)
    v.store(unit.count, count, 4)
    if unit.pending.live is not None:
        v.store(unit.pending.live, v.constant(0, v.integer(1)), 1)
    if unit.cursor is not None:
        v.store(unit.cursor.place, ring_place(unit, count), 4)
    return []


@lowers(pg.KeptRecordsOp)
def _kept_records(ctx: Lowering, site: Site) -> list[Value]:
    """A lane that has nothing to write finds no record below the end."""
    unit, iterations = ctx.unit, _iterations_of(ctx, site)
    ctx.recording.warp_barrier()
    if iterations.kept is None:
        assert iterations.made is not None, "of loops that write no records, behind them"
        oldest, end = _oldest(unit, iterations.made.first), iterations.made.count
    else:  # no record of the loop is older than a ring buffer is long
        slots, written = v.i32(iterations.slots), v.load(iterations.number, v.integer(32), 4)
        oldest = v.binary(llvm.MulOp, written, slots)
        if iterations.made is not None:
            end = iterations.made.count
        else:
            end = v.add(oldest, v.i32(iterations.most * iterations.slots))
    if unit.slab is not None:
        iterations.span = take_span(unit, _first_record(unit, iterations), oldest, end)
    if unit.profile.unit_warps > 1:
        in_first = v.compare("ult", unit.lane, v.i32(WARP_SIZE))
        end = v.select(in_first, end, v.i32(0))
    if unit.is_sampled is not None:
        end = v.select(unit.is_sampled, end, v.i32(0))
    return [v.add(oldest, unit.lane), end]


def _oldest(unit: Unit, first: Value) -> Value:
    """Of the records behind a number, the first that is still to be had: a ring buffer has the
    newest, chunks have all."""
    if unit.slab is not None:
        return v.i32(0)
    count = v.binary(llvm.SubOp, v.load(unit.count, v.integer(32), 4), first)
    return v.create(llvm.USubSat, v.integer(32), count, v.i32(unit.profile.capacity))


def _first_record(unit: Unit, iterations: KeptIterations) -> Value:
    """The number of the loop's first record, i32."""
    if iterations.made is None:
        return v.load(unit.count, v.integer(32), 4)
    return iterations.made.first


@lowers(pg.KeptReadingsOp)
def _kept_readings(ctx: Lowering, site: Site) -> list[Value]:
    iterations, (_, iteration, slot) = _iterations_of(ctx, site), site.operands
    starts, ends = ([n.value for n in site.op.attributes[name]] for name in ("starts", "ends"))
    if iterations.ring is None:
        row = iterations.row(iteration)
        kept = [
            v.extract(
                ctx.recording.shuffle_lanes("idx", v.splat(_kept(iterations, n), 1), row, COMMENT),
                0,
            )
            for n in range(1 + max(*starts, *ends))
        ]
        return [_of_slot(slot, [kept[n] for n in numbers]) for numbers in (starts, ends)]
    if (starts, ends) == ([0], [1]):
        source = byte_at(iterations.ring, iterations.place(iterations.row(iteration), v.i32(0)))
        return ctx.recording.load(source, iterations.clock, 2, space="shared", note=COMMENT)
    sources = []
    for numbers in (starts, ends):
        word = _number(slot, numbers)
        sources.append(byte_at(iterations.ring, iterations.place(iterations.row(iteration), word)))
    return [
        ctx.recording.load(s, iterations.clock, 1, space="shared", note=COMMENT)[0] for s in sources
    ]


def _kept(iterations: KeptIterations, number: int) -> Value:
    """Of the iteration that a lane keeps, a reading."""
    return v.load(iterations.lanes[number], iterations.clock, 4)


def _lane(unit: Unit) -> Value:
    """A lane's number in its warp."""
    return v.binary(llvm.AndOp, unit.lane, v.i32(WARP_SIZE - 1))


def _number(slot: Value, numbers: list[int]) -> Value:
    """The number of a slot; those of records that follow each other are a progression."""
    step = numbers[1] - numbers[0] if len(numbers) > 1 else 0
    if numbers != [numbers[0] + n * step for n in range(len(numbers))]:
        return _of_slot(slot, [v.i32(number) for number in numbers])
    return v.add(v.binary(llvm.MulOp, slot, v.i32(step)), v.i32(numbers[0]))


@lowers(pg.WriteRecordOp)
def _write_record(ctx: Lowering, site: Site) -> list[Value]:
    unit, iterations = ctx.unit, _iterations_of(ctx, site)
    _, iteration, slot, when, start, end, *slot_iterations = site.operands
    numbers = zip(*(site.op.attributes[name] for name in ("kinds", "scope_ids")), strict=True)
    tags = [wire.tag(wire.RecordKind(kind.value), scope.value) for kind, scope in numbers]
    values = {
        "start": start,
        "end": end,
        "tag": _of_slot(slot, [v.i32(signed(tag)) for tag in tags]),
        "iteration": _of_slot(slot, slot_iterations),
    }
    target = _target(
        unit, iterations, v.add(v.binary(llvm.MulOp, iteration, v.i32(iterations.slots)), slot)
    )
    for offset, names in unit.schema.stores:
        if not values.keys() >= set(names):
            continue  # payload, which records outside of loops have
        of = [values[name] for name in names]
        ctx.recording.store(target, of, predicate=when, offset=offset, note=COMMENT)
    return []


def _target(unit: Unit, iterations: KeptIterations, record: Value) -> Value:
    """Where a record of the loop goes, counted from its first: in the ring buffer or a chunk."""
    if iterations.span is not None:
        return iterations.span.place(unit, record)
    number = v.add(_first_record(unit, iterations), record)
    return byte_at(unit.segments, wide(ring_place(unit, number)))


@lowers(pg.WriteBatchOp)
def _write_batch(ctx: Lowering, site: Site) -> list[Value]:
    """A lane for each iteration. The last record is whole, by the lane that has the last
    iteration."""
    unit, iterations = ctx.unit, _iterations_of(ctx, site)
    number, i32 = site.number("number"), v.integer(32)
    last = unit.profile.loops[number][-1]
    ctx.recording.warp_barrier()
    kept = end = v.load(iterations.number if iterations.kept is None else iterations.kept, i32, 4)
    if iterations.kept is not None:
        end = v.add(v.load(iterations.number, i32, 4), kept)  # iterations since `begin_iterations`
    behind = v.binary(llvm.MulOp, end, v.i32(iterations.slots))  # the record behind its last
    iteration = v.binary(llvm.SubOp, v.add(site.operands[1], end), v.i32(1))
    lane = unit.lane
    writes = v.compare("ult", lane, kept)
    ends = v.compare("eq", v.add(lane, v.i32(1)), kept)
    if unit.is_sampled is not None:
        writes, ends = (v.binary(llvm.AndOp, of, unit.is_sampled) for of in (writes, ends))
    if iterations.ring is None:
        some = [_kept(iterations, n) for n in range(iterations.words)]
        readings = [*some, *some[-1:] * (MOST_READINGS - iterations.words)]
    else:
        source = byte_at(iterations.ring, iterations.place(iterations.row(lane), v.i32(0)))
        readings = ctx.recording.load(
            source, iterations.clock, MOST_READINGS, space="shared", note=COMMENT
        )
    record = v.add(v.binary(llvm.SubOp, behind, v.add(kept, v.i32(1))), lane)
    ctx.recording.store(_target(unit, iterations, record), readings, predicate=writes, note=COMMENT)
    tag = v.binary(llvm.OrOp, v.i32(signed(batch_tag(number))), kept)
    whole = [readings[last.start], readings[last.end], tag, iteration]
    record = v.binary(llvm.SubOp, behind, v.i32(1))
    ctx.recording.store(_target(unit, iterations, record), whole, predicate=ends, note=COMMENT)
    return []


def _of_slot(slot: Value, values: list[Value]) -> Value:
    """The value of a slot."""
    found = values[0]
    for number, value in enumerate(values[1:], 1):
        if value != values[0]:
            found = v.select(v.compare("eq", slot, v.i32(number)), value, found)
    return found


@lowers(pg.ForgetIterationsOp)
def _forget_iterations(ctx: Lowering, site: Site) -> list[Value]:
    iterations = _iterations_of(ctx, site)
    ctx.recording.warp_barrier()
    if iterations.kept is not None and iterations.made is None:  # in the loop
        v.store(iterations.kept, v.i32(0), 4)
        number = v.load(iterations.number, v.integer(32), 4)
        v.store(iterations.number, v.add(number, v.i32(iterations.most)), 4)
    return []
