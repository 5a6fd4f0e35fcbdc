"""The work in a function of which records are made: by kind, with the names of its slices.

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
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from proton.analysis.handovers import copy_queues, end_of_queue, handovers
from proton.base.errors import SourceSpan
from proton.dialect import isa, traits, ttng
from proton.dialect.asynchronous import AsyncQueue, Issues, Retires, WorkIteration
from proton.dialect.attributes import AHEAD, SHARED_OFFSET, SOURCE_LOOP
from proton.dialect.mlir import Block, Location, Operation, Value, func, ir, scf
from proton.dialect.records import Origin
from proton.dialect.regions import WhileLoop, block_of
from proton.dialect.scopes import place_of
from proton.dialect.traits import has
from proton.dialect.walk import all_ops, defining_op, parent_of, source_span
from proton.trace.model import LOCKS


@dataclass(frozen=True)
class WorkPiece:
    """Ops of a block that are one piece of work, with what stands between them. `is_body` means all
    of their block, whatever stands there."""

    ops: Sequence[Operation]
    name: str
    origin: Origin
    location: Location
    size: int  # ops, those inside of the ops too
    is_body: bool = False


def pieces_of_work(
    function: Operation,
    words: Sequence[str],
    *,
    marked: bool = False,
) -> list[WorkPiece]:
    """The pieces of work of a function, of the kinds that the words name; `marked`: of loops those
    that `label-work` has marked, and no barriers of threads, as there a program has one."""
    return _Finder(function, words, marked).found


class _Finder:
    def __init__(self, function: Operation, words: Sequence[str], marked: bool) -> None:
        self.words, self.found, self.marked = words, list[WorkPiece](), marked
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
                self._add([op], *end_of_queue(op, handed))
        elif (wait := Retires.of(op)) is not None:
            self._wait(op, self.rings.get(op, wait.queue))
        elif has(op, traits.Loop) and "loops" in self.words:
            self._loop(op)
        elif has(op, traits.Loads) and "loads" in self.words and not _is_scalar(op):
            self._add([op], f"load {place_of([op])}", Origin(work="loads"))
        elif has(op, traits.Multiplies) and "dots" in self.words and Issues.of(op) is None:
            self._add([op], f"dot {place_of([op])}", Origin(work="dots"))
        elif "barriers" in self.words and not self.marked and _waits_for_warps(op):
            name = "barrier" if has(op, traits.Barrier) else op.name.partition(".")[2]
            self._add([op], f"{name} {place_of([op])}", Origin("wait", "barriers"))

    def _issue(self, run: list[Operation], queue: AsyncQueue) -> None:
        name = _name(run, queue)
        self.issues[queue.name, source_span(run[-1].location)] = name
        if self._is_asked(queue):
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
        self.found.append(WorkPiece(run, name, origin, location, size, is_body))


def _name(run: list[Operation], queue: AsyncQueue) -> str:
    """What a piece of work is called."""
    copies = [op for op in run if isa(op, ttng.AsyncTMACopyOp)]
    return f"{queue.noun} {place_of(copies or run)}"


def _drained(loop: Operation, behind: list[Operation]) -> Iterator[Operation]:
    """The waits right behind a loop for what it left under way."""
    for op in behind:
        if Retires.of(op) is not None:
            if any(defining_op(operand) == loop for operand in op.operands):
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
