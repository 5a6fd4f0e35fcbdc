"""Records that the compiler places by itself: around what the option `auto` names.

The pass runs when the schedule is final, behind `place-records`, and puts a record around each op,
or run of ops, of the kinds of work that are asked for (proton/analysis/work.py).

Records nest as those of `with` do. What lies inside of a scope of the user's has that in its path.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from proton.analysis.work import WorkPiece, pieces_of_work
from proton.dialect import isa, proton
from proton.dialect.asynchronous import Issues, WorkIteration
from proton.dialect.builtin import string_attr, strings_attr
from proton.dialect.emit import emit_when, number_of
from proton.dialect.mlir import Module, Operation, Value, func, ir
from proton.dialect.proton import RecordOp
from proton.dialect.records import ITERATION_FIELD, is_start, scope_of
from proton.dialect.regions import If, end_of
from proton.dialect.walk import before, functions
from proton.passes import Pass, register
from proton.trace.scope_path import ScopePath

SEPARATOR = "+"  # between the words in the pass's text


@register
@dataclass(frozen=True)
class RecordWork(Pass):
    """Brackets what the words name, which `+` separates. Barriers are found where `membar` has put
    them. `marked`: where work is loops over buffers, as in `pieces_of_work`."""

    name: ClassVar[str] = "record-work"

    work: str = ""
    marked: bool = False

    def run(self, module: Module) -> None:
        words = self.work.split(SEPARATOR)
        for function in functions(module):
            pieces = pieces_of_work(function, words, marked=self.marked)
            issued = [piece for piece in pieces if piece.origin.kind == "issue"]
            has_moved = [_bring_under_condition(piece.ops) for piece in issued]
            if any(has_moved):
                pieces = pieces_of_work(function, words, marked=self.marked)
            # The longest first: what is placed later stands closer to the work.
            for piece in sorted(pieces, key=lambda piece: -piece.size):
                _place(piece)


def _bring_under_condition(run: Sequence[Operation]) -> bool:
    """Puts what issues a piece of work into a branch of its own, where it has a condition: what was
    not issued has no records, for nothing will wait for it. Says whether it has."""
    closing = next((op for op in run if (issue := Issues.of(op)) and issue.closes), None)
    issue = None if closing is None else Issues.of(closing)
    condition = None if closing is None or issue is None else issue.condition_of(closing)
    if condition is None or number_of(condition):
        return False
    with before(run[-1]):
        emit_when(condition, lambda: None)
    ops = [view.operation for view in run[-1].block.operations]
    end = end_of(If(ops[ops.index(run[-1]) - 1]).blocks[0])
    for op in run:
        op.move_before(end)
    return True


# Placing


def _place(piece: WorkPiece) -> None:
    """Records around a piece of work, and around the records that it would tear apart."""
    opening, closing = piece.ops[0], piece.ops[-1]
    ops = [view.operation for view in opening.block.operations]
    first, last = ops.index(opening), ops.index(closing)
    if piece.is_body:
        first, last = 0, len(ops) - 2
    else:
        first, last = _balanced(ops, first, last)
    path = ScopePath.of((_context(ops[first]), piece.name))
    scope, nothing = string_attr(path), ir.ArrayAttr.get([])
    iteration = WorkIteration.of(opening) if piece.origin.queue else None
    end = ops[last + 1]
    with before(ops[first]), piece.location:
        number = _given_number(closing) if iteration is None else iteration.number(opening)
        payload = [] if number is None else [number]
        names, kinds = ([ITERATION_FIELD], ["int"]) if payload else ([], [])
        listed = strings_attr(names), strings_attr(kinds)
        start = RecordOp(payload, scope, string_attr("start"), *listed)
    piece.origin.write(start.operation)
    with before(end), piece.location:
        RecordOp([], scope, string_attr("end"), nothing, nothing)


def _given_number(op: Operation) -> Value | None:
    """The number of the iteration that is an operand of what issues work."""
    issue = Issues.of(op)
    return None if issue is None else issue.iteration_of(op)


def _edge(op: Operation) -> int:
    """1 at a start, -1 at an end, 0 for what is no record of a scope."""
    if not isa(op, proton.RecordOp):
        return 0
    return 1 if is_start(op) else -1


def _balanced(ops: list[Operation], first: int, last: int) -> tuple[int, int]:
    """The least range of ops around this one that has both edges of each scope, or none."""
    while True:
        depth = lowest = 0
        for op in ops[first : last + 1]:
            depth += _edge(op)
            lowest = min(lowest, depth)
        if lowest < 0:
            first = _previous(ops, first, lowest)
        elif depth > 0:
            last = _next(ops, last, depth)
        else:
            return first, last


def _previous(ops: list[Operation], place: int, lowest: int) -> int:
    """Where so many scopes begin that are open at a place."""
    while lowest < 0:
        place -= 1
        lowest += _edge(ops[place])
    return place


def _next(ops: list[Operation], place: int, depth: int) -> int:
    """Where so many scopes end that are open behind a place."""
    while depth > 0:
        place += 1
        depth += _edge(ops[place])
    return place


def _context(op: Operation) -> str:
    """The path of the innermost scope that is open at an op: in its block, or in one around it."""
    place: Operation | None = op
    while place is not None and not isa(place, func.FuncOp):
        opened: list[str] = []
        for view in place.block.operations:
            other = view.operation
            if other == place:
                break
            if _edge(other) > 0:
                opened.append(scope_of(other))
            elif _edge(other) < 0:
                opened.pop()
        if opened:
            return opened[-1]
        place = place.parent.operation if place.parent is not None else None
    return ""
