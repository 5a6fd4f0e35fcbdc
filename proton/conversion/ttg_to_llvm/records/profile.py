"""The records of a GPU's program: a unit is a warp or several, and its first lane writes for it.

A record is stored once, in the unit's own ring buffer, and not where its slice ends but behind the
next reading of the clock: until then it is *pending*, in registers. A store keeps the registers
that it reads for some time, and a clock that is read into one of them waits for it; stored later,
the record costs a loop of one scope 5 cycles per iteration where it costs 36 stored at once, and 3
where the ring is in shared memory (docs/decisions.md, 30). No arithmetic is done on a clock
value, for that would wait, too. Stores and readings are predicated, so nothing branches.

The number of records so far, the pending one among them, lives in a register. Its place in a ring
buffer in shared memory follows from that number; in global memory, where addresses have 64 bits,
the place of the next record, the *cursor*, is a variable that moves on by one record and around. It
is counted from the first unit's segment, so that it is another one in each unit: the assembler
keeps what all lanes share in uniform registers, whose arithmetic takes longer. Ring buffers in
shared memory are copied to where they belong at the end. The header and the table are those of
proton/trace/wire.py.
"""

from contextlib import nullcontext
from dataclasses import replace

from proton.base.targets import WARP_SIZE
from proton.conversion.strategies import CODE
from proton.conversion.ttg_to_llvm.core import values as v
from proton.conversion.ttg_to_llvm.core.lowering import Lowering, Site, lowers
from proton.conversion.ttg_to_llvm.core.memory import first_thread
from proton.conversion.ttg_to_llvm.records.blocks import (
    COMMENT,
    begin,
    byte_at,
    copy_ring,
    finish,
    now,
)
from proton.conversion.ttg_to_llvm.records.chunks import take_chunk
from proton.conversion.ttg_to_llvm.records.readings import mark_readings
from proton.conversion.ttg_to_llvm.records.units import (
    FlushSlab,
    Pending,
    RingCursor,
    Unit,
    place_of,
    ring_slot,
    signed,
    store_pending,
    variable,
    wide,
)
from proton.dialect import isa, ttng
from proton.dialect import proton_gpu as pg
from proton.dialect.abi import AddedArgument, argument
from proton.dialect.asynchronous import Issues
from proton.dialect.attributes import BEHIND_BARRIER, CARRIED, STORES
from proton.dialect.mlir import Operation, Type, Value, func, ir, llvm
from proton.dialect.profile import profile_of
from proton.dialect.traits import AllocatesShared, Loop, Pure, Records, has
from proton.dialect.walk import all_ops, functions, ops_named
from proton.layout.linear import log2
from proton.trace import wire
from proton.trace.profile import KernelProfile

NO_SCOPE = -1  # the tag of a record of nothing


def _program(ctx: Lowering) -> Value:
    """The linear number of this program, i64."""
    place, size = (
        [wide(number(axis)) for axis in range(3)]
        for number in (ctx.recording.program_id, ctx.recording.program_count)
    )
    row = v.add(v.binary(llvm.MulOp, place[2], size[1]), place[1])
    return v.add(v.binary(llvm.MulOp, row, size[0]), place[0])


@lowers(pg.InitOp)
def _init(ctx: Lowering, site: Site) -> list[Value]:
    profile = _profile(ctx)
    types = _variable_types(profile)
    struct = ir.TypeAttr.get(v.struct(types))
    state = v.create(llvm.AllocaOp, v.pointer(0), v.i32(1), elem_type=struct)
    buffer = argument(ctx.function, AddedArgument.PROFILE)
    unit = _attached(ctx, profile, buffer, state)
    pending = unit.pending
    nothing = {name: v.constant(0, type_) for name, type_ in pending.types.items()}
    if profile.schema.clock_bits == 64 and unit.ring is None:
        # Not the same in all lanes, or else the assembler keeps some of it in uniform registers.
        words = {32: ctx.threads.number, 64: wide(ctx.threads.number)}
        nothing = {name: words[type_.width] for name, type_ in pending.types.items()}
    nothing["tag"] = v.i32(NO_SCOPE)
    firsts = [v.i32(0), v.i32(0), *nothing.values(), unit.segment]
    variables = [unit.count, pending.offset, *pending.values.values(), unit.chunk]
    if unit.cursor is not None:
        # The record of nothing has the last place, behind which comes the first.
        end = profile.block.segment_bytes
        firsts[1] = v.add(unit.cursor.first, v.i32(end - profile.schema.bytes))
        firsts.append(unit.cursor.first)
        variables.append(unit.cursor.place)
    if unit.slab is not None:
        given = (
            argument(ctx.function, kind) for kind in (AddedArgument.SLAB, AddedArgument.LAUNCH)
        )
        firsts += given
        variables += [unit.slab.address, unit.slab.launch]
    # Where control has one way, LLVM knows what it is.
    if ops_named(ctx.function, pg.BeginIterationsOp):
        pending.live = variable(ctx.function, v.integer(1))
        v.store(pending.live, v.constant(1, v.integer(1)), 1)
    for place, first in zip(variables, firsts, strict=True):
        v.store(place, first, 4)
    mark_readings(ctx, profile.strategy, False)
    behind = _behind_first_copies(site.op)
    start = now(ctx.recording) if behind is not None else None
    with nullcontext() if behind is None else ir.InsertionPoint(behind):
        v.when(first_thread(ctx), lambda: begin(ctx.recording, unit.block, profile.block, start))
    return [unit.block]


def _behind_first_copies(init: Operation) -> Operation | None:
    """The op ahead of which a header is written, if copies begin before that, which hide it: the
    first behind them that may wait. None where a loop or a call comes first: a kernel that hangs
    has a header."""
    following = [view.operation for view in init.block.operations]
    copies = False
    for op in following[following.index(init) + 1 :]:
        inner = [op, *all_ops(op)]
        if any(has(each, Loop) or isa(each, func.CallOp) for each in inner):
            return op if copies else None
        if any((issue := Issues.of(each)) and issue.queue.loads for each in inner):
            copies = True
        elif copies and (not has(op, Pure, Records) or has(op, AllocatesShared)):
            return op
    return None


@lowers(pg.AttachOp)
def _attach(ctx: Lowering, site: Site) -> list[Value]:
    """In a function that is called: a record of the caller may be pending."""
    profile = _profile(ctx)
    unit = _attached(ctx, profile, *ctx.state)
    mark_readings(ctx, profile.strategy, True)
    return [unit.block]


def _profile(ctx: Lowering) -> KernelProfile:
    """The profile of the function, or of the kernel that calls it."""
    candidates = (profile_of(f) for f in (ctx.function, *functions(ctx.module)))
    return next(profile for profile in candidates if profile is not None)


def _record_types(schema: wire.RecordSchema) -> dict[str, Type]:
    return {field.name: v.integer(field.bits) for field in schema.all_fields}


def _variable_types(profile: KernelProfile) -> list[Type]:
    """Of the number of records, the pending record's place and values, the chunk's address; of the
    cursor, where there is one, and where chunks are taken of the slab's address and the number of
    the launch."""
    slab = [v.pointer(v.GLOBAL), v.integer(32)] if profile.takes_chunks else []
    record = _record_types(profile.schema).values()
    cursor = [v.integer(32)] if _has_cursor(profile) else []
    return [v.integer(32), v.integer(32), *record, v.pointer(v.GLOBAL), *cursor, *slab]


def _has_cursor(profile: KernelProfile) -> bool:
    return profile.is_ring and profile.ring is None


def _variables(profile: KernelProfile, state: Value) -> list[Value]:
    """The addresses of the kernel's variables."""
    types = _variable_types(profile)
    struct = ir.TypeAttr.get(v.struct(types))
    return [
        v.create(
            llvm.GEPOp,
            v.pointer(0),
            state,
            rawConstantIndices=ir.DenseI32ArrayAttr.get([0, number]),
            elem_type=struct,
        )
        for number in range(len(types))
    ]


def _attached(ctx: Lowering, profile: KernelProfile, buffer: Value, state: Value) -> Unit:
    """What the records of a function know, given the buffer and the kernel's variables."""
    layout = profile.block
    segment_bytes, i64 = layout.segment_bytes, v.integer(64)
    program, stride = _program(ctx), v.constant(layout.bytes, i64)
    block = byte_at(buffer, v.binary(llvm.MulOp, program, stride))
    threads = WARP_SIZE * profile.unit_warps
    unit_number = v.binary(llvm.LShrOp, ctx.threads.number, v.i32(threads.bit_length() - 1))
    number = wide(unit_number)
    place = v.binary(llvm.MulOp, number, v.constant(segment_bytes, i64))
    entry = v.binary(llvm.MulOp, number, v.constant(wire.COUNT_BYTES, i64))
    lane = v.binary(llvm.AndOp, ctx.threads.number, v.i32(threads - 1))
    ring = None
    if profile.ring is not None:
        offset = v.binary(llvm.MulOp, unit_number, v.i32(segment_bytes))
        ring = byte_at(byte_at(ctx.program_shared(), v.i32(profile.ring)), offset)
    segments = byte_at(block, layout.segments)
    is_sampled = _is_sampled(profile, unit_number, program)
    is_writer = v.compare("eq", lane, v.i32(0))
    if is_sampled is not None:
        is_writer = v.binary(llvm.AndOp, is_writer, is_sampled)
    variables = _variables(profile, state)
    slab = cursor = None
    if profile.takes_chunks:
        slab, variables = FlushSlab(*variables[-2:]), variables[:-2]
    if _has_cursor(profile):
        first = v.binary(llvm.MulOp, unit_number, v.i32(segment_bytes))
        cursor = RingCursor(variables.pop(), first)
    count, offset, *values, chunk = variables
    record = _record_types(profile.schema)
    pending = Pending(offset, dict(zip(record, values, strict=True)), record)
    ctx.state = buffer, state
    ctx.unit = Unit(
        primitives=ctx.recording,
        profile=profile,
        block=block,
        segment=byte_at(segments, place),
        segments=segments,
        ring=ring,
        chunk=chunk,
        slab=slab,
        program=program,
        number=number,
        table=byte_at(byte_at(block, layout.table), entry),
        count=count,
        cursor=cursor,
        pending=pending,
        lane=lane,
        is_sampled=is_sampled,
        is_writer=is_writer,
    )
    return ctx.unit


def _is_sampled(profile: KernelProfile, unit: Value, program: Value) -> Value | None:
    """Whether a unit (i32) of a program (i64) records; None where each does."""
    found = None
    if profile.sampled_units not in (0, (1 << profile.units) - 1):
        bits = v.constant(signed(profile.sampled_units), v.integer(32))
        bit = v.binary(llvm.AndOp, v.binary(llvm.LShrOp, bits, unit), v.i32(1))
        found = v.compare("ne", bit, v.i32(0))
    if profile.sample_programs > 1:
        every = v.constant(profile.sample_programs, v.integer(64))
        left = v.binary(llvm.URemOp, program, every)
        is_one = v.compare("eq", left, v.constant(0, v.integer(64)))
        found = is_one if found is None else v.binary(llvm.AndOp, found, is_one)
    return found


@lowers(pg.WritePendingOp)
def _write_pending(ctx: Lowering, site: Site) -> list[Value]:
    if STORES in site.op.attributes:
        store_pending(ctx.unit)
    return []


@lowers(pg.SampledOp)
def _sampled(ctx: Lowering, site: Site) -> list[Value]:
    profile = ctx.unit.profile
    if ops_named(ctx.function, ttng.WarpGroupDotOp):  # all warps go together
        profile = replace(profile, sampled_units=0)
    unit = v.binary(llvm.LShrOp, ctx.threads.warp, v.i32(log2(profile.unit_warps)))
    found = _is_sampled(profile, unit, ctx.unit.program)
    return [v.constant(1, v.integer(1)) if found is None else found]


@lowers(pg.FinalizeOp)
def _finalize(ctx: Lowering, site: Site) -> list[Value]:
    """Each unit leaves its number of records; the clock at the end is later than all of them."""
    unit = ctx.unit
    if STORES in site.op.attributes:
        store_pending(unit)
    number = v.load(unit.count, v.integer(32), 4)
    ctx.recording.store(unit.table, [wide(number)], predicate=unit.is_writer, note=COMMENT)
    if unit.ring is not None:
        _copy_ring(unit, unit.ring, number)
    ctx.recording.barrier(0, ctx.threads.count)  # which PTX tells from the kernel's own
    v.when(first_thread(ctx), lambda: finish(ctx.recording, unit.block))
    return []


def _copy_ring(unit: Unit, ring: Value, number: Value) -> None:
    """What the ring buffer in shared memory holds goes to the unit's segment: the unit's first warp
    copies it."""
    capacity = unit.profile.capacity
    records = v.create(llvm.UMinOp, number.type, number, v.i32(capacity))
    size = v.binary(llvm.MulOp, records, v.i32(unit.schema.bytes))
    if unit.profile.unit_warps > 1:
        in_first = v.compare("ult", unit.lane, v.i32(WARP_SIZE))
        size = v.select(in_first, size, v.i32(0))
    if unit.is_sampled is not None:
        size = v.select(unit.is_sampled, size, v.i32(0))
    unit.primitives.warp_barrier()
    copy_ring(unit.primitives, ring, unit.segment, unit.lane, size, capacity * unit.schema.bytes)


@lowers(pg.ReadCounterOp)
def _read_counter(ctx: Lowering, site: Site) -> list[Value]:
    unit = ctx.unit
    bits = unit.schema.clock_bits
    if BEHIND_BARRIER in site.op.attributes:
        ctx.recording.warp_barrier()
    if CARRIED in site.op.attributes:
        now = ctx.recording.clock_of_lane(bits, COMMENT, unit.is_writer)
    else:
        now = ctx.recording.clock(bits, COMMENT)
    if STORES in site.op.attributes:
        store_pending(unit)
    return [now]


@lowers(*pg.RECORDS)
def _record(ctx: Lowering, site: Site) -> list[Value]:
    unit = ctx.unit
    if STORES in site.op.attributes:
        store_pending(unit)
    CODE[site.op.name].on_gpu(_Record(unit, site))
    return []


class _Record:
    """A record while it is lowered."""

    def __init__(self, unit: Unit, site: Site) -> None:
        self.unit, self.site = unit, site
        # The last operand is the condition; None where the record is always kept.
        self.when = None if site.op.opview.when is None else site.operands[-1]

    def count(self) -> Value:
        """The number of this record, i32; the next one is stored, if there is a record."""
        number = v.load(self.unit.count, v.integer(32), 4)
        one = v.i32(1) if self.when is None else v.create(llvm.ZExtOp, v.integer(32), self.when)
        v.store(self.unit.count, v.add(number, one), 4)
        return number

    @property
    def takes_chunks(self) -> bool:
        """Whether full segments move."""
        return self.unit.slab is not None

    def slot(self, number: Value) -> Value:
        """Its slot in the ring buffer or the chunk."""
        return ring_slot(self.unit, number)

    def take_chunk(self, number: Value, slot: Value) -> None:
        """The first record of each `capacity` takes a chunk of the slab for all of them."""
        slab = self.unit.slab
        assert slab is not None, "asked before"
        is_first = v.compare("eq", slot, v.i32(0))
        begins = v.binary(llvm.AndOp, is_first, self.unit.is_writer)
        if self.when is not None:
            begins = v.binary(llvm.AndOp, begins, self.when)
        v.when(begins, lambda: take_chunk(self.unit, slab, number))

    def place(self, slot: Value) -> Value:
        """Where a slot lies in the chunk, bytes."""
        return place_of(self.unit, slot)

    def next_place(self, number: Value) -> Value:
        """Where the record goes in the ring buffer."""
        if self.unit.cursor is None:
            return self.place(self.slot(number))
        return v.load(self.unit.cursor.place, v.integer(32), 4)

    def keep(self, place: Value) -> None:
        """Keeps the record for its place until it is stored. Where its condition does not hold, the
        one before stays pending, and is stored once more."""
        pending, site = self.unit.pending, self.site
        tag = wire.tag(wire.RecordKind(site.number("kind")), site.number("scope_id"))
        operands = site.operands if self.when is None else site.operands[:-1]
        _, start, end, iteration, *payload = operands
        values = {"start": start, "end": end, "tag": v.i32(signed(tag)), "iteration": iteration}
        values |= {wire.payload_field(slot): value for slot, value in enumerate(payload)}
        self._set(pending.offset, place)
        if pending.live is not None:
            self._set(pending.live, v.constant(1, v.integer(1)))
        for name, of in pending.values.items():
            if name in values:
                self._set(of, values[name])

    def _set(self, place: Value, value: Value) -> None:
        if self.when is not None:
            value = v.select(self.when, value, v.load(place, value.type, 4))
        v.store(place, value, 4)
