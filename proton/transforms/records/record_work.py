"""Records that the compiler places by itself: around what the option `auto` names.

The pass runs when the schedule is final, behind `place-records`, and puts a record around each op,
or run of ops, of the kinds of work that are asked for:

    loads      a load of a block
    dots       a product; one that goes on by itself has an issue and a wait
    copies     asynchronous copies: an issue, and a wait
    barriers   a barrier, and an op that meets the other warps inside, such as a reduction; of an
               mbarrier at which only threads arrive an arrival is an issue, a wait its wait;
               so are loops that wait for other programs, and what those wait for
    loops      a loop, and each of its iterations
    stages     of a software pipeline: prologue, steady state, epilogue

Names say what it is and where it stands in the source, as in `load softmax.py:31`. An issue and the
waits for it have the name of the work behind their own: `issue copy matmul.py:55,56`.

Records nest as those of `with` do. What lies inside of a scope of the user's has that in its path.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

from proton.analysis.handovers import copy_queues, handovers, is_wait
from proton.base.errors import SourceSpan
from proton.dialect import isa, proton, traits, ttng
from proton.dialect.asynchronous import AsyncQueue, Issues, Retires, WorkIteration
from proton.dialect.attributes import AHEAD, SHARED_OFFSET, SOURCE_LOOP
from proton.dialect.builtin import string_attr, strings_attr
from proton.dialect.emit import emit_when, number_of
from proton.dialect.mlir import Block, Location, Module, Operation, Value, func, ir, scf
from proton.dialect.proton import RecordOp
from proton.dialect.records import ITERATION_FIELD, Origin, is_start, scope_of
from proton.dialect.regions import If, WhileLoop, block_of, end_of
from proton.dialect.scopes import place_of
from proton.dialect.traits import has
from proton.dialect.walk import all_ops, before, defining_op, functions, parent_of, source_span
from proton.passes import Pass, register
from proton.trace.model import LOCKS, ONE
from proton.trace.scope_path import ScopePath

SEPARATOR = "+"  # between the words in the pass's text


@register
@dataclass(frozen=True)
class RecordWork(Pass):
    """Brackets what the words name, which `+` separates. Barriers are found where `membar` has put
    them. `marked`: of loops those that `label-work` has marked."""

    name: ClassVar[str] = "record-work"

    work: str = ""
    marked: bool = False

    def run(self, module: Module) -> None:
        words = self.work.split(SEPARATOR)
        for function in functions(module):
            pieces = _Finder(function, words, self.marked).found
            # The longest first: what is placed later stands closer to the work.
            for piece in sorted(pieces, key=lambda piece: -piece.size):
                _place(piece)


@dataclass(frozen=True)
class _Piece:
    """Ops of a block, from `first` to `last`, that are one piece of work. `is_body` means all of
    their block, whatever stands there."""

    first: Operation
    last: Operation
    name: str
    origin: Origin
    location: Location
    size: int  # ops, those inside of the ops too
    is_body: bool = False


class _Finder:
    """Finds the pieces of work of a function."""

    def __init__(self, function: Operation, words: Sequence[str], marked: bool) -> None:
        self.words, self.found, self.marked = words, list[_Piece](), marked
        self.issues: dict[tuple[str, SourceSpan], str] = {}  # names of what was issued so far
        self.handed, self.rings = handovers(function), copy_queues(function)
        if "barriers" not in words:  # a loop that waits is a loop
            self.handed = {op: q for op, q in self.handed.items() if q.work != LOCKS}
        blocks = [block for op in all_ops(function) for region in op.regions for block in region]
        runs = [run for block in (*function.regions[0], *blocks) for run in self._issued(block)]
        self.every = {(queue.name, _name(run, queue)) for run, queue in runs}
        self._block(function.regions[0].blocks[0])

    def _block(self, block: Block) -> None:
        ops = [view.operation for view in block.operations]
        for run, queue in self._issued(block):
            self._issue(run, queue)
        for op in ops:
            self._op(op)
            is_open = op.name.startswith(("scf.", "ttg.")) and op not in self.handed
            for region in op.regions if is_open else ():
                for inner in region.blocks:
                    self._block(inner)
        if "stages" in self.words:
            self._stages(ops)

    def _issued(self, block: Block) -> list[tuple[list[Operation], AsyncQueue]]:
        """The ops of a block that issue one piece of work each, from its first to the one that
        closes it. Copies behind the op that said how many bytes arrive at their barrier are of its
        piece."""
        begun: dict[AsyncQueue, list[Operation]] = {}
        found = list[tuple[list[Operation], AsyncQueue]]()
        expected: dict[Value, list[Operation]] = {}  # by barrier
        for op in (view.operation for view in block.operations):
            if (issue := Issues.of(op)) is not None:
                queue = self.rings.get(op, issue.queue)
                if isa(op, ttng.AsyncTMACopyOp) and (run := expected.get(op.operands[1])):
                    if run[0].operands[1] == op.operands[3]:  # both happen, or none
                        run.append(op)
                    continue
                run = begun.setdefault(queue, [])
                run.append(op)
                if issue.closes:
                    found.append((begun.pop(queue), queue))
                    if isa(op, ttng.BarrierExpectOp) and run == [op]:
                        expected[op.operands[0]] = run
            elif Retires.of(op) is not None or len(op.regions):
                expected.clear()
        return found

    def _op(self, op: Operation) -> None:
        """What one op is."""
        if (handed := self.handed.get(op)) is not None:
            if "barriers" in self.words:
                self._hand_over(op, handed)
        elif (wait := Retires.of(op)) is not None:
            self._wait(op, self.rings.get(op, wait.queue))
        elif has(op, traits.Loop) and "loops" in self.words:
            self._loop(op)
        elif has(op, traits.Loads) and "loads" in self.words and not _is_scalar(op):
            self._add([op], f"load {place_of([op])}", Origin(work="loads"))
        elif has(op, traits.Multiplies) and "dots" in self.words and Issues.of(op) is None:
            self._add([op], f"dot {place_of([op])}", Origin(work="dots"))
        elif "barriers" in self.words and _waits_for_warps(op):
            name = "barrier" if has(op, traits.Barrier) else op.name.partition(".")[2]
            self._add([op], f"{name} {place_of([op])}", Origin("wait", "barriers"))

    def _hand_over(self, op: Operation, queue: AsyncQueue) -> None:
        """An arrival, or a wait for arrivals."""
        kind, pendings = ("wait", ONE) if is_wait(op) else ("issue", 0)
        origin = Origin(kind, queue.work, queue.name, pendings)
        self._add([op], f"{kind} {queue.noun}", origin)

    def _issue(self, run: list[Operation], queue: AsyncQueue) -> None:
        name = _name(run, queue)
        self.issues[queue.name, source_span(run[-1].location)] = name
        if self._is_asked(queue):
            _bring_under_condition(run)
            self._add(run, f"issue {name}", Origin("issue", queue.work, queue.name))

    def _wait(self, op: Operation, queue: AsyncQueue) -> None:
        if self._is_asked(queue):
            name = self._retired(op, queue)
            origin = Origin("wait", queue.work, queue.name, Retires.pendings(op))
            self._add([op], f"wait {name}", origin)

    def _retired(self, op: Operation, queue: AsyncQueue) -> str:
        """What a wait is for: what was issued at its place, or all that was issued so far, or, by
        another role, will be."""
        here = source_span(op.location)
        names = {name for (of, _), name in self.issues.items() if of == queue.name}
        names = names or {name for of, name in self.every if of == queue.name}
        only = next(iter(names)) if len(names) == 1 else f"{queue.noun} {place_of([op])}"
        return self.issues.get((queue.name, here), only)

    def _is_asked(self, queue: AsyncQueue) -> bool:
        """Loads that became asynchronous copies are loads as well."""
        return queue.work in self.words or (queue.loads and "loads" in self.words)

    def _loop(self, loop: Operation) -> None:
        if self.marked and SOURCE_LOOP not in loop.attributes:
            return
        place, origin = place_of([loop]), Origin(work="loops")
        self._add([loop], f"loop {place}", origin)
        body = WhileLoop(loop).after if isa(loop, scf.WhileOp) else block_of(loop, 0)
        assert body is not None
        ops = [view.operation for view in body.operations]
        if len(ops) > 1:
            self._add(ops[:-1], f"iteration {place}", origin, is_body=True)

    def _stages(self, ops: list[Operation]) -> None:
        """The parts of the software pipelines of a block."""
        for number, loop in enumerate(ops):
            if not isa(loop, scf.ForOp) or not any(AHEAD in op.attributes for op in _body(loop)):
                continue
            place, origin = place_of([loop]), Origin(work="stages")
            begun = [
                op
                for op in ops[:number]
                if (iteration := WorkIteration.of(op)) and iteration.is_before
            ]
            previous = [n for n, op in enumerate(ops[:number]) if isa(op, scf.ForOp)]
            begun = [op for op in begun if op not in ops[: max(previous, default=-1) + 1]]
            if begun:
                whole = ops[ops.index(begun[0]) : ops.index(begun[-1]) + 1]
                self._add(whole, f"prologue {place}", origin)
            self._add([loop], f"steady {place}", origin)
            drained = list(_drained(loop, ops[number + 1 :]))
            if drained:
                self._add(drained, f"epilogue {place}", origin)

    def _add(
        self, run: Sequence[Operation], name: str, origin: Origin, is_body: bool = False
    ) -> None:
        size = sum(1 + len(all_ops(op)) for op in run) + is_body
        location = parent_of(run[-1]).location if is_body else run[0].location
        piece = _Piece(run[0], run[-1], name, origin, location, size, is_body)
        self.found.append(piece)


def _name(run: list[Operation], queue: AsyncQueue) -> str:
    """What a piece of work is called."""
    copies = [op for op in run if isa(op, ttng.AsyncTMACopyOp)]
    return f"{queue.noun} {place_of(copies or run)}"


def _bring_under_condition(run: list[Operation]) -> None:
    """Puts what issues a piece of work into a branch of its own, where it has a condition: what was
    not issued has no records, for nothing will wait for it."""
    (closing,) = [op for op in run if (issue := Issues.of(op)) is not None and issue.closes]
    issue = Issues.of(closing)
    if issue is None or issue.condition is None:
        return
    condition = closing.operands[issue.condition]
    if number_of(condition):
        return
    with before(run[-1]):
        emit_when(condition, lambda: None)
    ops = [view.operation for view in run[-1].block.operations]
    end = end_of(If(ops[ops.index(run[-1]) - 1]).blocks[0])
    for op in run:
        op.move_before(end)


def _drained(loop: Operation, behind: list[Operation]) -> Iterator[Operation]:
    """The waits right behind a loop for what it left under way."""
    for op in behind:
        if Retires.of(op) is not None:
            if defining_op(op.operands[0]) == loop:
                yield op
        elif has(op, traits.TileWork) and not has(op, traits.Pure, traits.Records):
            return


def _body(loop: Operation) -> list[Operation]:
    return [view.operation for view in loop.regions[0].blocks[0].operations]


def _is_scalar(op: Operation) -> bool:
    return not isinstance(op.results[0].type, ir.RankedTensorType)


def _waits_for_warps(op: Operation) -> bool:
    """Whether the program's warps meet at an op, or inside of it: it has memory to exchange data
    by, and none of its own."""
    if has(op, traits.Barrier):
        return True
    has_scratch = SHARED_OFFSET in op.attributes and not isa(op, func.CallOp)
    return has_scratch and not has(op, traits.AllocatesShared)


# Placing


def _place(piece: _Piece) -> None:
    """Records around a piece of work, and around the records that it would tear apart."""
    block = piece.first.block
    ops = [view.operation for view in block.operations]
    first, last = ops.index(piece.first), ops.index(piece.last)
    if piece.is_body:
        first, last = 0, len(ops) - 2
    else:
        first, last = _balanced(ops, first, last)
    path = ScopePath.of((_context(ops[first]), piece.name))
    scope, nothing = string_attr(path), ir.ArrayAttr.get([])
    iteration = WorkIteration.of(piece.first) if piece.origin.queue else None
    end = ops[last + 1]
    with before(ops[first]), piece.location:
        number = _given_number(piece.last) if iteration is None else iteration.number(piece.first)
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
    if issue is None or issue.iteration is None or issue.iteration >= len(op.operands):
        return None
    return op.operands[issue.iteration]


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
