"""Which readings of an iteration are stored to shared memory together (compact_iterations.py), and
where: not where such a store would hold up other work."""

from collections.abc import Sequence

from proton.dialect.asynchronous import Retires
from proton.dialect.mlir import Operation, Value
from proton.dialect.traits import Asynchronous, AwaitsOrder, Barrier, Loop, has

_STORE_BITS = 128  # at most, of the readings that are stored together


def stores(readings: Sequence[Value], clock_bits: int) -> list[list[Value]]:
    """The readings of each store: as many as it has room for, of those that are left the last one
    again where they are three."""
    most = _STORE_BITS // clock_bits
    groups = [list(readings[n : n + most]) for n in range(0, len(readings), most)]
    return [group + group[-1:] * (len(group) == 3) for group in groups]


def keeping_place(records: list[Operation], readings: list[Value]) -> Operation:
    """The op ahead of which readings are kept: the first record by which all have been needed, or
    what comes behind the copies that follow it with no wait in between. A store to shared memory
    would stand behind those that have begun, and the others behind it."""
    found = _first_that_has_all(records, readings)
    ops = [view.operation for view in found.block.operations]
    for number, op in enumerate(ops[ops.index(found) :], ops.index(found)):
        if Retires.of(op) is not None or has(op, Barrier, Loop, AwaitsOrder):
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
