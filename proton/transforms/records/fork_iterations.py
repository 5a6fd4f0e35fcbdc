"""Iterations that are not sampled run a loop's body without records, where one in `every` is.

    scf.for %i {                         scf.for %i {
      copy of %i + 2, recorded             scf.if (%i % every == 0) {
      dot of %i, recorded          =>        copy of %i + 2;           dot of %i, recorded
    }                                      } else { scf.if ((%i + 2) % every == 0) {
                                             copy of %i + 2, recorded; dot of %i
                                           } else {
                                             copy of %i + 2;           dot of %i
                                           } } }

Records under a condition cost more than records: each clock sample is a place that the assembler
moves nothing across, taken or not. So there is a body for each distance that records are ahead of
the iteration that runs, and one without. Ends of asynchronous work are recorded in all of them,
since they are paired later. A record that waits for the next sample is written where its body ends:
the others would carry it in registers.

Only innermost loops are forked: around others records are rare. A loop stays as it is, and its
records under their conditions, where a dot is under way from one iteration to the next, whose
accumulator no branch may give on, and where it was unrolled, so that one body has many numbers.
"""

import itertools
from dataclasses import dataclass
from typing import ClassVar

from proton.dialect import isa, proton, ttng
from proton.dialect.asynchronous import WorkIteration
from proton.dialect.builtin import integer
from proton.dialect.emit import constant, is_multiple, iteration_number
from proton.dialect.mlir import Module, Operation, arith, ir, scf
from proton.dialect.proton import RECORDS
from proton.dialect.proton_gpu import WritePendingOp
from proton.dialect.records import SAMPLED, Origin, is_start, iteration_of, scope_of
from proton.dialect.regions import ForLoop, If, end_of, yield_values
from proton.dialect.traits import Loop, has
from proton.dialect.walk import all_ops, before, ops_named
from proton.passes import Pass, register
from proton.transforms.records.hold_waits import hold_waits


@register
@dataclass(frozen=True)
class ForkIterations(Pass):
    """Gives loops a body with records for one iteration in `every`, and one without."""

    name: ClassVar[str] = "fork-iterations"
    only_for: ClassVar[frozenset[str]] = frozenset(RECORDS)

    every: int = 2

    def run(self, module: Module) -> None:
        for loop in ops_named(module, scf.ForOp):
            if not any(has(op, Loop) for op in all_ops(loop)) and _is_free(loop):
                ahead = _distances(ops_named(loop, *RECORDS))
                if ahead and all(map(_has_plain_number, ahead)):
                    _fork(loop, ahead, self.every)


def _is_free(loop: Operation) -> bool:
    """Whether a loop's iterations have numbers, and leave no dot under way."""
    dots = ops_named(loop, ttng.WarpGroupDotOp, ttng.WarpGroupDotWaitOp)
    is_waited = not dots or (
        isa(dots[-1], ttng.WarpGroupDotWaitOp) and not dots[-1].attributes["pendings"].value
    )
    return is_waited and ForLoop(loop).unrolled == 1


def _has_plain_number(record: Operation) -> bool:
    """Whether a record is of the iteration that runs, or of one so many later."""
    return iteration_of(record) is None or WorkIteration.of(record) is not None


def _fork(loop: Operation, ahead: dict[Operation, int], every: int) -> None:
    i32 = integer(32)
    for record, distance in ahead.items():
        record.attributes[SAMPLED] = ir.IntegerAttr.get(i32, distance % every)
    distances = sorted({distance % every for distance in ahead.values()})
    body = ForLoop(loop).body
    ops, end = [view.operation for view in body.operations][:-1], end_of(body)
    with before(loop), loop.location:
        WritePendingOp()
    with before(ops[0]), loop.location:
        number = iteration_number(loop, 32)
        own = [arith.AddIOp(number, constant(d, i32)).result if d else number for d in distances]
        chosen = [is_multiple(value, every) for value in own]
        fork = If.create(chosen[0], [value.type for value in end.operands])
        with ir.InsertionPoint(fork.add_block(0)):
            yield_values(list(end.operands))
    for op in ops:
        op.move_before(end_of(fork.blocks[0]))
    for place, value in enumerate(fork.op.results):
        end.operands[place] = value
    copies = [fork, *(If(fork.op.clone().operation) for _ in distances)]
    for copy, condition in zip(copies, chosen, strict=False):
        copy.op.operands[0] = condition
    for copy, kept in zip(copies, [*distances, None], strict=True):
        for record in ops_named(copy.op, *RECORDS):
            if SAMPLED in record.attributes and record.attributes[SAMPLED].value != kept:
                record.erase()
        hold_waits(copy.op)
        if kept is not None:
            with before(end_of(copy.blocks[0])), loop.location:
                WritePendingOp()
    _nest(copies)


def _distances(records: list[Operation]) -> dict[Operation, int]:
    """How many iterations records are ahead of the one that runs; the end of a scope as many as
    its start. Ends of asynchronous work and of events, which are all recorded, have none."""
    found: dict[Operation, int] = {}
    open_: dict[str, int | None] = {}
    distance: int | None
    for record in records:
        distance = 0
        if isa(record, proton.EventOp):
            distance = None
        elif isa(record, proton.RecordOp) and is_start(record):
            own = WorkIteration.of(record)
            distance = None if Origin.of(record).is_flight_edge else own.ahead if own else 0
            open_[scope_of(record)] = distance
        elif isa(record, proton.RecordOp):
            distance = open_.pop(scope_of(record))
        if distance is not None:
            found[record] = distance
    return found


def _nest(copies: list[If]) -> None:
    """Each copy becomes what the one before it does otherwise; of the last the body alone."""
    for outer, inner in itertools.pairwise(copies):
        otherwise = outer.add_block(1)
        if inner is not copies[-1]:
            otherwise.append(inner.op)
            with ir.InsertionPoint(otherwise), inner.op.location:
                yield_values(list(inner.op.results))
            continue
        for op in [view.operation for view in inner.blocks[0].operations]:
            otherwise.append(op)
        inner.op.erase()
