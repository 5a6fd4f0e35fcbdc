"""Records of a loop, as short as can be while it runs.

Where each iteration of a loop makes the same records in the same order, the number of the iteration
and the record's place in it say what it is: its scope, its iteration, its place in the ring buffer.
So the loop keeps the readings of its records alone, in shared memory, and the lanes of the unit's
first warp write the newest records later, whole: when the program has given out its results, or
before the next such loop. A reading that ends one record and starts the next is kept once, and as
many as 16 bytes hold are stored together:

                                            %l = proton_gpu.begin_iterations %s
                                                {slots = 2, words = 4, iterations = 128}
    scf.for %i ... {                        scf.for %i ... {
      ...                                     ...
      circular_record %s, %a, %b, %n          ...
      ...                              ->     ...
      circular_record %s, %b, %c, %n          proton_gpu.keep_readings %l, %a, %b, %c, %c
    }                                         proton_gpu.end_iteration %l
                                            }
                                            proton_gpu.end_iterations %l
    ...                                     ...
                                            %first, %end = proton_gpu.kept_records %l
                                            scf.for %record = %first to %end step 128 {
                                              %iteration, %slot = arith.divui, arith.remui
                                              %c, %d = proton_gpu.kept_readings %l, %iteration,
                                              %slot %n = ... proton_gpu.write_record %l, %iteration,
                                              %slot, ...
                                            }
                                            proton_gpu.forget_iterations %l

An iteration that multiplies large tiles, and does nothing else, leaves its threads idle. So such a
loop writes its records itself, each so many iterations, by all lanes, while products are under way.
Few are left behind the loop, where the last product is:

    scf.for %i ... {
      ...
      ttng.warp_group_dot ...
      %iterations = proton_gpu.kept_iterations %l
      scf.if %iterations == 32 {
        %first, %end = proton_gpu.kept_records %l
        ...
        proton_gpu.forget_iterations %l
      }
      ttng.warp_group_dot_wait ...
      ...
      proton_gpu.keep_readings %l, %a, %b, %c, %c
      proton_gpu.end_iteration %l
    }

Behind a product, as its threads wait there, before the copies of a later iteration, which loads and
stores to shared memory would stand behind; without such a product at the end of the iteration.

If the readings of an iteration are at most four, and say all of its records but their number
(iteration_batches.py), `proton_gpu.write_batch %l, %first` writes those in their place, and the
runtime makes records of them: 16 bytes of an iteration, not 16 of each record.

Where shared memory has no room for as many programs on an SM, lane n keeps the readings of
iteration n in registers, from which others have them by a shuffle.

Other loops run in chunks where the ring buffer is in global memory (`strip_mine`), each of which
keeps its readings, and writes its records or its batch at its end.

Where units take chunks (strategy flush) all loops run so: what a loop keeps is written to the chunk
of its unit, and to the next one, which it takes where the first has no room left.

A ring buffer then lies in global memory, and what it holds is the same as without this pass. A
kernel with a loop whose records are not so (a condition, a payload, an iteration that the iteration
does not say) stays as it is: a ring buffer in shared memory costs such a loop less. So does one
that has it there and a loop in another one that does not write its records itself: each time it
would write what the next time overwrites.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from math import prod
from typing import ClassVar, NamedTuple

from proton.base.targets import ARCHITECTURES, WARP_SIZE
from proton.dialect import isa, names_of
from proton.dialect import proton_gpu as pg
from proton.dialect.asynchronous import DOTS, Issues
from proton.dialect.attributes import SHARED_BYTES
from proton.dialect.builtin import i32_attr, integer
from proton.dialect.emit import cloned, constant, create, emit_when, loop
from proton.dialect.mlir import Module, Operation, Type, Value, arith, ir, scf
from proton.dialect.profile import profile_of, set_profile
from proton.dialect.regions import ForLoop, end_of, in_loop, is_inside, is_invariant, loop_around
from proton.dialect.traits import FloatArithmetic, Multiplies, has
from proton.dialect.ttg import is_mem_desc, is_tensor, mem_desc_block
from proton.dialect.walk import (
    all_ops,
    before,
    defining_op,
    kernel_functions,
    ops_named,
    parent_of,
    producer_of,
)
from proton.passes import Pass, register
from proton.trace.iterations import IterationRecords
from proton.trace.profile import KernelProfile
from proton.trace.strategy import Strategy
from proton.trace.wire import RECORD_ALIGNMENT, RecordSchema, aligned
from proton.transforms.records.iteration_batches import batch_iteration, is_iteration_number
from proton.transforms.records.kept_readings import keeping_place, stores
from proton.transforms.records.strip_mine import strip_mine

_RECORDS = names_of(pg.RECORD_OPS[Strategy.CIRCULAR], pg.RECORD_OPS[Strategy.FLUSH])
MOST_SLOTS = 16  # records of an iteration
_AT_ONCE = 4  # records of a lane whose readings are loaded before the first is written
_LONG = 1 << 18  # multiply-adds of an iteration that leave time to write records
_CHUNK = 2 * WARP_SIZE  # records of a chunk, or some more
_MOST_BYTES = 64  # of readings of an iteration that registers have room for


@register
@dataclass(frozen=True)
class CompactIterations(Pass):
    """Rewrites the loops of kernels; it needs the profiles of `allocate-profile`. On a GPU of
    compute capability `arch` / 10 no kernel that has its ring buffer in global memory takes so much
    shared memory that fewer programs fit on an SM.
    """

    name: ClassVar[str] = "compact-iterations"

    arch: int = 0

    def run(self, module: Module) -> None:
        if ops_named(module, pg.AttachOp):
            return  # what is called records, too, in between
        for kernel in kernel_functions(module):
            profile = profile_of(kernel)
            if profile is not None:
                self._compact(kernel, profile)

    def _compact(self, kernel: Operation, profile: KernelProfile) -> None:
        found = _loops(kernel, profile)
        if not found:
            return
        for records in (_CHUNK, _CHUNK // 4, _CHUNK // 16, 1):  # fewer where room is short
            found = [replace(iteration, at_once=records) for iteration in found]
            size = max(iteration.kept(profile.capacity) * iteration.bytes for iteration in found)
            place = self._place(kernel, profile, size)
            if place is not None:
                break
        else:
            if profile.ring is not None or any(
                iteration.bytes > _MOST_BYTES for iteration in found
            ):
                return
            found = [replace(iteration, in_lanes=True, at_once=_CHUNK) for iteration in found]
            size = 0
        loops, batches = [iteration.loop.op for iteration in found], list[IterationRecords]()
        for iteration in found:
            iterations = iteration.kept(profile.capacity)
            if iteration.batch is not None and iterations < profile.capacity:
                batches.append(iteration.batch)
                iteration = replace(iteration, number=len(batches) - 1)
            _rewrite(iteration, iterations, profile.capacity, _next_user(iteration.loop.op, loops))
        profile = replace(
            profile, ring=None, iterations=place, iteration_bytes=size, loops=tuple(batches)
        )
        set_profile(kernel, profile)
        if place is not None:
            kernel.attributes[SHARED_BYTES] = i32_attr(place + profile.units * size)

    def _place(self, kernel: Operation, profile: KernelProfile, size: int) -> int | None:
        """Where shared memory has `size` bytes for each unit: in the place of the ring buffers, or
        behind the kernel's own; None where they are longer than a ring buffer, or would leave fewer
        programs on an SM."""
        if profile.ring is not None:
            return profile.ring if size <= profile.block.segment_bytes else None
        if not self.arch:
            return None
        given = kernel.attributes.get(SHARED_BYTES)
        used = 0 if given is None else int(given.value)
        place = aligned(used, RECORD_ALIGNMENT)
        threads, facts = WARP_SIZE * profile.units * profile.unit_warps, ARCHITECTURES[self.arch]
        fits = facts.programs_per_sm(threads, place + profile.units * size)
        return place if fits == facts.programs_per_sm(threads, used) else None


@dataclass(frozen=True)
class _CompactLoop:
    """A loop, and its records in order."""

    loop: ForLoop
    records: list[Operation]
    schema: RecordSchema
    writes: bool  # each so many iterations the loop itself writes their records
    in_chunks: bool
    takes_chunks: bool = False  # of a slab: what is written at once is no more than one of them
    in_lanes: bool = False  # what is kept is in registers: an iteration in each lane's
    at_once: int = 0  # records that the loop writes, or some more
    number: int | None = None  # among the kernel's loops that write batches; None: it does not

    @property
    def is_written_soon(self) -> bool:
        """Whether the records are written in the loop or right behind it."""
        return self.writes or self.in_chunks

    def kept(self, capacity: int) -> int:
        """How many iterations are kept, a power of two: those with the newest records of a ring
        buffer, or a chunk; those that are written at once by the loop itself, or to a slab, are no
        more than a segment holds."""
        records = self.at_once if self.writes else _CHUNK if self.in_chunks else capacity
        iterations = 1 << (-(-records // len(self.records)) - 1).bit_length()
        is_limited = self.writes or self.takes_chunks
        while is_limited and iterations * len(self.records) > capacity:
            iterations //= 2
        return min(iterations, WARP_SIZE) if self.in_lanes else iterations

    @cached_property
    def readings(self) -> list[Value]:
        """What an iteration keeps: each reading once, in the order in which records need them."""
        edges = (edge for op in self.records for edge in (op.opview.start, op.opview.end))
        return list(dict.fromkeys(edges))

    @cached_property
    def batch(self) -> IterationRecords | None:
        """What its iterations are in batches; None if it writes records."""
        if self.takes_chunks or not self.is_written_soon:
            return None
        return batch_iteration(self.records, self.readings, self.loop, self.schema)

    @cached_property
    def stores(self) -> list[list[Value]]:
        """The readings that are stored together."""
        return stores(self.readings, self.schema.clock_bits)

    @property
    def words(self) -> int:
        """Readings that an iteration has room for: each store is aligned."""
        return aligned(sum(map(len, self.stores)), max(map(len, self.stores)))

    @property
    def bytes(self) -> int:
        """What an iteration keeps."""
        return self.words * self.schema.clock_bits // 8


def _loops(kernel: Operation, profile: KernelProfile) -> list[_CompactLoop]:
    """The innermost loops with records; none where one of them cannot be rewritten."""
    records = ops_named(kernel, *_RECORDS)
    around = (loop_around(op) for op in records)
    loops = dict.fromkeys(op for op in around if op is not None)
    innermost = [op for op in loops if not any(is_inside(o, op) for o in loops if o != op)]
    found = []
    for op in innermost:
        own = [record for record in records if is_inside(record, op)]
        if not isa(op, scf.ForOp) or len(own) > MOST_SLOTS:
            return []
        writes = _is_long(op) and len(own) <= profile.capacity
        if in_loop(parent_of(op)) and profile.ring is not None and not writes:
            return []
        in_chunks = not writes and profile.ring is None
        view = ForLoop(op)
        is_short = profile.takes_chunks and len(own) > profile.capacity
        if is_short or not all(_is_plain(record, view) for record in own):
            return []
        takes_chunks = profile.takes_chunks
        found.append(_CompactLoop(view, own, profile.schema, writes, in_chunks, takes_chunks))
    return found


def _is_long(loop: Operation) -> bool:
    """Whether an iteration multiplies large tiles, and its threads have nothing else to compute."""
    found = 0
    for op in all_ops(loop):
        if has(op, FloatArithmetic) and is_tensor(op.results[0].type):
            return False
        if has(op, Multiplies):
            type_ = op.operands[0].type
            shape = mem_desc_block(type_)[0] if is_mem_desc(type_) else tuple(type_.shape)
            found += prod(op.results[0].type.shape) * shape[-1]
    return found >= _LONG


def _is_plain(record: Operation, view: ForLoop) -> bool:
    """Whether each iteration makes a record, and its number says all but its edges."""
    op = record.opview
    is_bare = op.when is None and not len(op.payload)
    return is_bare and record.block == view.body and _follows(op.iteration, view)


def _follows(value: Value, view: ForLoop) -> bool:
    """Whether an integer follows from the number of the iteration."""
    if is_invariant(value, view.op) or value == view.induction_var:
        return True
    op = defining_op(value)
    if op is None or not op.name.startswith("arith.") or op.block != view.body:
        return False
    return all(_follows(operand, view) for operand in op.operands)


class _Origin(NamedTuple):
    """What a loop was before it ran in chunks: its lower bound; and the number of the first
    iteration of the chunk, if it runs in such."""

    lower: Value
    first: Value | None


class _Numbers:
    """Emits, behind a loop, what values of it were in an iteration."""

    def __init__(self, view: ForLoop, origin: _Origin, iteration: Value) -> None:
        self.view, self.origin, self.iteration = view, origin, iteration
        self.known: dict[Value, Value] = {}

    def __getitem__(self, value: Value) -> Value:
        if is_invariant(value, self.view.op):
            return value
        if value not in self.known:
            self.known[value] = self._emit(value)
        return self.known[value]

    def _emit(self, value: Value) -> Value:
        lower, _, step = self.view.bounds
        if value == self.view.induction_var:
            iteration = _converted(self.iteration, lower.type)
            return arith.AddIOp(lower, arith.MulIOp(iteration, step).result).result
        op = producer_of(value)
        if is_iteration_number(op, self.view, self.origin.lower):
            number = _converted(self.iteration, value.type)
            if self.origin.first is None:
                return number
            return arith.AddIOp(_converted(self.origin.first, value.type), number).result
        return cloned(op, [self[operand] for operand in op.operands]).results[0]


def _converted(number: Value, type_: Type) -> Value:
    """A number of an iteration as an integer of a type."""
    if type_ == number.type:
        return number
    if ir.IndexType.get() in (type_, number.type):
        return arith.IndexCastOp(type_, number).result
    narrow = type_.width < number.type.width
    return create(arith.TruncIOp if narrow else arith.ExtSIOp, type_, number)


def _rewrite(found: _CompactLoop, iterations: int, capacity: int, next_user: Operation) -> None:
    """`iterations` are kept, and the records of a ring buffer are `capacity`; `next_user`: ahead of
    what the records are written."""
    view, records = found.loop, found.records
    origin = _Origin(view.bounds[0], strip_mine(view.op, iterations) if found.in_chunks else None)
    numbers = map(i32_attr, (len(records), found.words, iterations))
    with before(view.op):
        segment, type_ = records[0].opview.segment, pg.IterationsType.get()
        of = pg.BeginIterationsOp(segment, *numbers, loop=type_).loop
    first = 0
    for group in found.stores:
        with before(keeping_place(records, group)):
            pg.KeepReadingsOp(of, group, i32_attr(first))
        first += len(group)
    with before(end_of(view.body)):
        pg.EndIterationOp(of)
    if found.writes:
        with before(_writing_place(found)):
            _write_iterations(found, origin, of, iterations, (arith.CmpIPredicate.eq, iterations))
    with ir.InsertionPoint.after(view.op), view.op.location:
        pg.EndIterationsOp(of)
        if found.writes:
            _write_iterations(found, origin, of, iterations, (arith.CmpIPredicate.ne, 0))
        elif found.in_chunks:
            _write_at_end(found, origin, of, iterations * len(records))
    if not found.is_written_soon:
        with before(next_user), view.op.location:
            _write_at_end(found, origin, of, min(iterations * len(records), capacity))
    for record in records:
        record.erase()


def _writing_place(found: _CompactLoop) -> Operation:
    """What a loop writes its iterations ahead of: what follows a product of an iteration, if the
    iteration keeps no reading before, or the end of the iteration."""
    body = [view.operation for view in found.loop.body.operations]
    products = [op for op in body if (issued := Issues.of(op)) is not None and issued.queue is DOTS]
    keeping = [keeping_place(found.records, group) for group in found.stores]
    place = body.index(products[-1]) + 1 if products else len(body)
    return body[place] if place <= min(map(body.index, keeping)) else end_of(found.loop.body)


def _write_iterations(
    found: _CompactLoop, origin: _Origin, of: Value, iterations: int, when: tuple[int, int]
) -> None:
    """Writes the records of the iterations that are kept, at most `iterations`, if their number
    compares with another one as `when` says."""
    i32, (predicate, number) = integer(32), when
    kept = pg.KeptIterationsOp(of, iterations=i32).iterations
    is_due = arith.CmpIOp(predicate, kept, constant(number, i32)).result

    def write() -> None:
        if found.number is not None:
            pg.WriteBatchOp(of, constant(0, i32), i32_attr(found.number))
        else:
            kept = pg.KeptRecordsOp(loop=of, first=i32, end=i32)
            count = -(-iterations * len(found.records) // WARP_SIZE)
            _write_records(found, origin, of, kept.first, kept.end, count)
        pg.ForgetIterationsOp(of)

    emit_when(is_due, write)


def _write_at_end(found: _CompactLoop, origin: _Origin, of: Value, most: int) -> None:
    """Writes the records of a loop that are not written yet, at most so many."""
    i32 = integer(32)
    if found.number is not None:
        assert origin.first is not None
        pg.WriteBatchOp(of, _converted(origin.first, i32), i32_attr(found.number))
        pg.ForgetIterationsOp(of)
        return
    kept = pg.KeptRecordsOp(loop=of, first=i32, end=i32)
    count = -(-most // WARP_SIZE)
    if count <= _AT_ONCE or found.in_lanes:  # whose lanes read others, so all are to come along
        _write_records(found, origin, of, kept.first, kept.end, count)
    else:
        with loop(kept.first, kept.end, constant(_AT_ONCE * WARP_SIZE, i32)) as first:
            _write_records(found, origin, of, first, kept.end, _AT_ONCE)
    pg.ForgetIterationsOp(of)


def _write_records(
    found: _CompactLoop, origin: _Origin, of: Value, first: Value, end: Value, count: int
) -> None:
    """Writes `count` records for each lane, those below `end`: all are loaded, then stored."""
    i32, slots = integer(32), len(found.records)
    records = []
    for n in range(count):
        number = arith.AddIOp(first, constant(WARP_SIZE * n, i32)).result
        iteration = arith.DivUIOp(number, constant(slots, i32)).result
        slot = arith.SubIOp(number, arith.MulIOp(iteration, constant(slots, i32)).result).result
        when = arith.CmpIOp(arith.CmpIPredicate.ult, number, end).result
        records.append(_Record(found, origin, of, iteration, slot, when))
    for record in records:
        record.write()


class _Record:
    """A record of a loop, while it is moved from what was kept to the ring buffer."""

    def __init__(
        self,
        found: _CompactLoop,
        origin: _Origin,
        of: Value,
        iteration: Value,
        slot: Value,
        when: Value,
    ) -> None:
        self.views = [record.opview for record in found.records]
        self.numbers = _Numbers(found.loop, origin, iteration)
        self.of, self.place = of, (iteration, slot, when)
        number = {reading: i32_attr(n) for n, reading in enumerate(found.readings)}
        starts = ir.ArrayAttr.get([number[record.start] for record in self.views])
        ends = ir.ArrayAttr.get([number[record.end] for record in self.views])
        i64 = integer(64)
        read = pg.KeptReadingsOp(of, iteration, slot, starts, ends, start=i64, end=i64)
        self.edges = read.start, read.end

    def write(self) -> None:
        slot_iterations = [self.numbers[record.iteration] for record in self.views]
        scope_ids, kinds = (
            ir.ArrayAttr.get([record.attributes[name] for record in self.views])
            for name in ("scope_id", "kind")
        )
        pg.WriteRecordOp(self.of, *self.place, *self.edges, slot_iterations, scope_ids, kinds)


def _next_user(op: Operation, loops: list[Operation]) -> Operation:
    """What follows a loop in its block and is, or has in it, another one; the end of the kernel's
    records, or of the block, where there is none."""
    block = op.block
    following = [view.operation for view in block.operations]
    following = following[following.index(op) + 1 :]
    return next(
        later
        for later in following
        if isa(later, pg.FinalizeOp)
        or later == end_of(block)
        or any(is_inside(other, later) for other in loops)
    )
