"""Which records are pieces of one run of a scope.

A scope that is opened once may be several records: its work stands at several places, or belongs to
iterations ahead of the one that runs (place_records.py). Those of one opening are the pieces of one
*visit*, numbered in the order in which they run for it:

    for k:  issue qk of k + 1    {ahead = 1}    piece 0
            softmax of k
            wait for qk of k + 1 {ahead = 1}    piece 1

so pieces that are ahead come before those that are not, and else they are in program order. Of the
branches of an `scf.if` one runs: pieces at the same place in each have one number. Each copy of the
body of an unrolled loop is a visit of its own, as its records have iterations of their own.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain

from proton.dialect import isa
from proton.dialect.asynchronous import WorkIteration
from proton.dialect.mlir import Block, Operation
from proton.dialect.proton import RecordOp
from proton.dialect.records import ENTRIES, is_start, iteration_of, scope_of
from proton.dialect.traits import Loop, has

Place = tuple[tuple[int, int], ...]  # of blocks, outermost first: (less the iterations ahead, op)


@dataclass(frozen=True)
class PieceOfVisit:
    """Which visit of a kernel a record is of, from 1 on, and its number in that."""

    visit: int
    piece: int


WHOLE = PieceOfVisit(0, 0)  # a visit by itself


def number_pieces(functions: Iterable[Operation]) -> dict[Operation, PieceOfVisit]:
    """The pieces among the records of functions: of openings that have more than one."""
    found: dict[Operation, PieceOfVisit] = {}
    visits = 0
    for function in functions:
        openings: dict[object, list[tuple[Place, Operation]]] = defaultdict(list)
        for place, record in _records(function.regions[0].blocks[0], ()):
            entries = tuple(entry.value for entry in record.attributes[ENTRIES])
            openings[scope_of(record), entries].append((place, record))
        for records in chain.from_iterable(map(_by_iteration, openings.values())):
            if len(records) > 1:
                visits += 1
                order = {place: n for n, place in enumerate(sorted({p for p, _ in records}))}
                found |= {record: PieceOfVisit(visits, order[place]) for place, record in records}
    return found


def _by_iteration(records: list[tuple[Place, Operation]]) -> list[list[tuple[Place, Operation]]]:
    """The records of an opening, those of each iteration that they name together. Where a pass
    moved all work of an iteration, copies of the body are of one loop."""
    iterations = [iteration_of(record) for _, record in records]
    moved = [own for _, record in records if (own := WorkIteration.of(record)) and own.is_moved]
    if moved or any(own is None for own in iterations):
        return [records]
    return [
        [record for record, own in zip(records, iterations, strict=True) if own == iteration]
        for iteration in dict.fromkeys(iterations)
    ]


def _records(block: Block, around: Place, loop: int = 0) -> Iterator[tuple[Place, Operation]]:
    """The starts of scopes that say their opening, each with its place; of that the entry number
    `loop` is of the innermost loop's body, where an iteration has what is ahead of it first."""
    for number, op in enumerate(view.operation for view in block.operations):
        place = (*around, (0, number))
        if isa(op, RecordOp) and is_start(op) and ENTRIES in op.attributes:
            own = WorkIteration.of(op)
            ahead = (-own.ahead if own else 0, place[loop][1])
            yield (*place[:loop], ahead, *place[loop + 1 :]), op
        for region in op.regions:
            for inner in region.blocks:
                yield from _records(inner, place, len(place) if has(op, Loop) else loop)
