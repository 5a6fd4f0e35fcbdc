"""Records of a loop, as short as can be while it runs.

Where each turn of a loop makes the same records in the same order, the number of the turn and the
record's place in it say what it is: its scope, its iteration, its place in the ring buffer. So the
loop keeps the two readings of each record alone, in shared memory, and the lanes of the unit's
first warp write the newest records later, whole: when the program has given out its results, or
before the next such loop:

                                            %l = proton_gpu.begin_turns %s {slots = 1, turns = 256}
    scf.for %i ... {                        scf.for %i ... {
      ...                                     ...
      circular_record %s, %a, %b, %n   ->     proton_gpu.turn_record %l, %a, %b {slot = 0}
    }                                         proton_gpu.end_turn %l
                                            }
                                            proton_gpu.end_turns %l
    ...                                     ...
                                            %first, %end = proton_gpu.kept_records %l
                                            scf.for %record = %first to %end step 128 {
                                              %c, %d = proton_gpu.kept_readings %l, %record
                                              %turn = arith.divui %record, %slots
                                              %n = ...
                                              proton_gpu.write_record %l, %record, %c, %d, %n {...}
                                            }
                                            proton_gpu.forget_turns %l

A ring buffer then lies in global memory, and what it holds is the same as without this pass. A
kernel with a loop whose records are not so (a condition, a payload, an iteration that the turn does
not say) stays as it is: its ring buffer is in shared memory, and costs such a loop less. So does
one whose loop is in another one: each time it would write what the next time overwrites.
"""

from dataclasses import dataclass, replace
from typing import Any, ClassVar

from proton.base.targets import WARP_SIZE
from proton.dialect import proton_gpu as pg
from proton.dialect.attributes import SHARED_BYTES
from proton.dialect.builtin import i32_attr, integer
from proton.dialect.emit import constant, create, loop, number_of
from proton.dialect.mlir import Module, Operation, Value, arith, ir
from proton.dialect.profile import profile_of, set_profile
from proton.dialect.regions import ForLoop, end_of, in_loop, is_inside, is_invariant
from proton.dialect.traits import Loop, has
from proton.dialect.walk import before, defining_op, kernel_functions, ops_named, producer_of
from proton.passes import Pass, register
from proton.trace.profile import KernelProfile
from proton.trace.strategy import Strategy

RECORD: str = pg.RECORD_OPS[Strategy.CIRCULAR].OPERATION_NAME
MOST_SLOTS = 16  # records of a turn
_AT_ONCE = 4  # records of a lane whose readings are loaded before the first is written
_EDGES = 2  # readings of a record


@register
@dataclass(frozen=True)
class CompactTurns(Pass):
    """Rewrites the loops of kernels that have their ring buffer in shared memory; it needs the
    profiles of `allocate-profile`."""

    name: ClassVar[str] = "compact-turns"

    def run(self, module: Module) -> None:
        if ops_named(module, "proton_gpu.attach"):
            return  # what is called records, too, in between
        for kernel in kernel_functions(module):
            profile = profile_of(kernel)
            if profile is not None and profile.ring is not None:
                _compact(kernel, profile)


def _compact(kernel: Operation, profile: KernelProfile) -> None:
    found = _loops(kernel)
    if not found:
        return
    sizes = [_turns(profile, len(turn.records)) * turn.bytes(profile) for turn in found]
    if max(sizes) > profile.block.segment_bytes:
        return
    loops = [turn.loop.op for turn in found]
    for turn in found:
        _rewrite(turn, _turns(profile, len(turn.records)), _next_user(turn.loop.op, loops))
    place, size = profile.ring, max(sizes)
    assert place is not None
    set_profile(kernel, replace(profile, ring=None, turns=place, turn_bytes=size))
    kernel.attributes[SHARED_BYTES] = i32_attr(place + profile.units * size)


@dataclass(frozen=True)
class _Turn:
    """A loop, and its records in order."""

    loop: ForLoop
    records: list[Operation]

    def bytes(self, profile: KernelProfile) -> int:
        """What a turn keeps."""
        return len(self.records) * _EDGES * profile.schema.clock_bits // 8


def _turns(profile: KernelProfile, slots: int) -> int:
    """The turns of a loop that have the newest records of a ring buffer, and are a power of two."""
    turns = -(-profile.capacity // slots)
    return 1 << (turns - 1).bit_length()


def _loops(kernel: Operation) -> list[_Turn]:
    """The innermost loops with records; none where one of them cannot be rewritten."""
    records = ops_named(kernel, RECORD)
    loops = dict.fromkeys(_loop_around(op) for op in records if in_loop(op))
    innermost = [op for op in loops if not any(is_inside(o, op) for o in loops if o != op)]
    found = []
    for op in innermost:
        own = [record for record in records if is_inside(record, op)]
        if op.name != "scf.for" or len(own) > MOST_SLOTS or in_loop(op.parent.operation):
            return []
        view = ForLoop(op)
        if not all(_is_plain(record, view) for record in own):
            return []
        found.append(_Turn(view, own))
    return found


def _loop_around(op: Operation) -> Operation:
    """The innermost loop around an op that is in one."""
    while not has(op, Loop):
        op = op.parent.operation
    return op


def _is_plain(record: Operation, view: ForLoop) -> bool:
    """Whether each turn makes a record, and its number says all but its edges."""
    op = record.opview
    is_bare = op.when is None and not len(op.payload)
    return is_bare and record.block == view.body and _follows(op.iteration, view)


def _follows(value: Value, view: ForLoop) -> bool:
    """Whether an integer follows from the number of the turn."""
    if is_invariant(value, view.op) or value == view.induction_var:
        return True
    op = defining_op(value)
    if op is None or not op.name.startswith("arith.") or op.block != view.body:
        return False
    return all(_follows(operand, view) for operand in op.operands)


class _Numbers:
    """Emits, behind a loop, what values of it were in a turn."""

    def __init__(self, view: ForLoop, turn: Value) -> None:
        self.view, self.turn = view, turn
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
            return arith.AddIOp(lower, arith.MulIOp(self._as(lower.type), step).result).result
        op = producer_of(value)
        if self._is_number(op):
            return self._as(value.type)
        operands = [self[operand] for operand in op.operands]
        copy = op.clone().operation
        for position, operand in enumerate(operands):
            copy.operands[position] = operand
        return copy.results[0]

    def _is_number(self, op: Operation) -> bool:
        """Whether an op computes the number of the turn, as `emit.number_of_iteration` does."""
        lower, _, step = self.view.bounds
        index = self.view.induction_var
        if op.name == "arith.subi":
            return list(op.operands) == [index, lower] and number_of(step) == 1
        if op.name != "arith.divsi" or op.operands[1] != step:
            return False
        of = defining_op(op.operands[0])
        return of is not None and of.name == "arith.subi" and list(of.operands) == [index, lower]

    def _as(self, type_: Any) -> Value:
        """The number of the turn as an integer of a type."""
        if type_ == self.turn.type:
            return self.turn
        if isinstance(type_, ir.IndexType):
            return arith.IndexCastOp(type_, self.turn).result
        narrow = type_.width < self.turn.type.width
        return create("arith.trunci" if narrow else "arith.extsi", type_, self.turn)


def _rewrite(found: _Turn, turns: int, next_user: Operation) -> None:
    """`next_user`: ahead of what the records are written."""
    view, records = found.loop, found.records
    slots = i32_attr(len(records))
    with before(view.op):
        segment, type_ = records[0].opview.segment, pg.TurnsType.get()
        of = pg.BeginTurnsOp(segment, slots, i32_attr(turns), loop=type_).loop
    for slot, record in enumerate(records):
        with before(record):
            pg.TurnRecordOp(of, record.opview.start, record.opview.end, i32_attr(slot))
    with before(end_of(view.body)):
        pg.EndTurnOp(of)
    with ir.InsertionPoint.after(view.op), view.op.location:
        pg.EndTurnsOp(of)
    with before(next_user), view.op.location:
        _write(view, records, of)
    for record in records:
        record.erase()


def _write(view: ForLoop, records: list[Operation], of: Value) -> None:
    """Writes the records of a loop."""
    views = [record.opview for record in records]
    i32, i64 = integer(32), integer(64)
    scope_ids, kinds = (
        ir.ArrayAttr.get([record.attributes[name] for record in records])
        for name in ("scope_id", "kind")
    )
    kept = pg.KeptRecordsOp(loop=of, first=i32, end=i32)
    with loop(kept.first, kept.end, constant(_AT_ONCE * WARP_SIZE, i32)) as first:
        numbers = [
            arith.AddIOp(first, constant(WARP_SIZE * n, i32)).result for n in range(_AT_ONCE)
        ]
        readings = [
            pg.KeptReadingsOp(loop=of, record=number, start=i64, end=i64) for number in numbers
        ]
        for number, read in zip(numbers, readings, strict=True):
            turn = arith.DivUIOp(number, constant(len(records), i32)).result
            values = _Numbers(view, turn)
            iterations = [values[record.iteration] for record in views]
            pg.WriteRecordOp(of, number, read.start, read.end, iterations, scope_ids, kinds)
    pg.ForgetTurnsOp(of)


def _next_user(op: Operation, loops: list[Operation]) -> Operation:
    """What follows a loop in its block and is, or has in it, another one; the end of the kernel's
    records, or of the block, where there is none."""
    block = op.block
    following = [view.operation for view in block.operations]
    following = following[following.index(op) + 1 :]
    return next(
        later
        for later in following
        if later.name == "proton_gpu.finalize"
        or later == end_of(block)
        or any(is_inside(other, later) for other in loops)
    )
