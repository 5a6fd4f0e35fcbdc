"""Which readings of a turn are stored to shared memory together (compact_turns.py), and where: not
where such a store would hold up other work."""

from collections.abc import Sequence
from itertools import groupby

from proton.dialect.asynchronous import Retires
from proton.dialect.mlir import Operation, Value
from proton.dialect.regions import ForLoop
from proton.dialect.traits import Asynchronous, Barrier, Loop, TakesTurn, has
from proton.dialect.walk import defining_op

_STORE_BITS = 128  # at most, of the readings that are stored together


def stores(readings: Sequence[Value], loop: ForLoop, clock_bits: int) -> list[list[Value]]:
    """The readings of each store: as many as it has room for, but none across the place where warp
    groups wait for their turn. Where there are fewer the last one again, of those that are left
    where they are three."""
    most = _STORE_BITS // clock_bits
    ops = [view.operation for view in loop.body.operations]
    turns = [number for number, op in enumerate(ops) if has(op, TakesTurn)]

    def is_ahead(reading: Value) -> bool:
        op = defining_op(reading)
        return bool(turns) and (op not in ops or ops.index(op) < turns[0])

    parts = [list(part) for _, part in groupby(readings, is_ahead)]
    groups = [part[n : n + most] for part in parts for n in range(0, len(part), most)]
    sizes = [most] * (len(groups) - 1) + [1 << (len(groups[-1]) - 1).bit_length()]
    return [
        group + group[-1:] * (size - len(group)) for group, size in zip(groups, sizes, strict=True)
    ]


def keeping_place(records: list[Operation], readings: list[Value]) -> Operation:
    """The op ahead of which readings are kept: the first record by which all have been needed, or
    what comes behind the copies that follow it with no wait in between. A store to shared memory
    would stand behind those that have begun, and the others behind it."""
    found = _first_that_has_all(records, readings)
    ops = [view.operation for view in found.block.operations]
    for number, op in enumerate(ops[ops.index(found) :], ops.index(found)):
        if Retires.of(op) is not None or has(op, Barrier, Loop, TakesTurn):
            break
        if has(op, Asynchronous):
            found = ops[number + 1]
    return found


def _first_that_has_all(records: list[Operation], readings: list[Value]) -> Operation:
    """The first record by which all of these readings have been needed."""
    left = set(readings)
    for record in records:
        left -= {record.opview.start, record.opview.end}
        if not left:
            break
    return record
