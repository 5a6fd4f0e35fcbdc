"""Which loops write batches of iterations (proton/trace/iterations.py) in the place of records.

The records of an iteration have to follow from its readings, of which it has four, and its number:
each iteration is a times the number of the iteration, and b, with a and b known.
"""

from collections.abc import Sequence

from proton.dialect import by_name, isa
from proton.dialect.emit import number_of
from proton.dialect.mlir import Operation, Value, arith
from proton.dialect.regions import ForLoop
from proton.dialect.traits import KeepsNumber, has
from proton.dialect.walk import defining_op
from proton.trace import wire
from proton.trace.iterations import MOST_READINGS, IterationRecords, Slot

_SIGNS = by_name({arith.AddIOp: 1, arith.SubIOp: -1})


def is_iteration_number(op: Operation, view: ForLoop, lower: Value) -> bool:
    """Whether an op of a loop computes the number of the iteration, as `emit.number_of_iteration`
    does; `lower` is where the loop began before it ran in chunks."""
    step, index = view.bounds[2], view.induction_var
    if isa(op, arith.SubIOp):
        return list(op.operands) == [index, lower] and number_of(step) == 1
    if not isa(op, arith.DivSIOp) or op.operands[1] != step:
        return False
    of = defining_op(op.operands[0])
    return isa(of, arith.SubIOp) and list(of.operands) == [index, lower]


def batch_iteration(
    records: Sequence[Operation],
    readings: Sequence[Value],
    view: ForLoop,
    schema: wire.RecordSchema,
) -> IterationRecords | None:
    """What the iterations of a loop are in batches, by the records of one and its readings; None
    for a loop that has to write records."""
    is_narrow = schema.bytes == wire.RECORD_ALIGNMENT and schema.clock_bits == 32
    if not is_narrow or len(records) < 2 or not 3 <= len(readings) <= MOST_READINGS:
        return None
    number = {reading: n for n, reading in enumerate(readings)}
    slots = []
    for record in records:
        op, iteration = record.opview, _by_iteration(record.opview.iteration, view)
        if iteration is None:
            return None
        tag = wire.tag(wire.RecordKind(op.kind.value), op.scope_id.value)
        slots.append(Slot(tag, number[op.start], number[op.end], *iteration))
    return tuple(slots)


def _by_iteration(value: Value, view: ForLoop) -> tuple[int, int] | None:
    """(a, b) of an integer that is a times the number of the iteration, and b; None of another
    one."""
    known = number_of(value)
    if known is not None:
        return 0, known
    if value == view.induction_var:
        lower, step = number_of(view.bounds[0]), number_of(view.bounds[2])
        return None if lower is None or step is None else (step, lower)
    op = defining_op(value)
    if op is None:
        return None
    if is_iteration_number(op, view, view.bounds[0]):
        return 1, 0
    if has(op, KeepsNumber):
        return _by_iteration(op.operands[0], view)
    if op.name not in _SIGNS:
        return None
    left, right = (_by_iteration(operand, view) for operand in op.operands)
    if left is None or right is None:
        return None
    sign = _SIGNS[op.name]
    return left[0] + sign * right[0], left[1] + sign * right[1]
