"""What groups of warps hand each other by barriers, followed for a few rounds of their rings.

Each group's code is run op by op with the numbers that are known, until it waits for a phase that
has not ended; then the next one is. Copies land at once. Where all groups wait the kernel hangs:

    fetch    k = 0, 1: waits for empty[k] (ends at once), copies to x[k]; k = 2: waits for empty[0]
    double   k = 0: waits for phase 1 of ready[0], which is phase 0 since the copy has landed

A group knows of another's copy, or of its reads, by the barriers that it has waited for: what it
reads must have been copied before in that sense, and what it copies to must have been read. A dot
has read its operands when its group has waited for it.

A loop whose iterations are not known runs on until `_ROUNDS` times as many as the ring has slots;
then, or where a number or a condition is not known, nothing more is said. Of loops that groups run
in step it must be known that they have the same bounds.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from proton.analysis.memory_places import (
    READS,
    WAITS,
    BarrierState,
    MemoryPlace,
    Numbers,
    barrier_place,
    copied_bytes,
    count_of,
    expected_bytes,
    known_number,
    memory_place,
    say,
    written,
    wrong,
)
from proton.dialect import isa, tt, ttg, ttng
from proton.dialect.mlir import Block, Operation, Value, scf
from proton.dialect.regions import ForLoop
from proton.dialect.walk import all_ops, defining_op

_ROUNDS = 3
_MOST_STEPS = 20_000
# Other ways by which groups may hear of each other.
_UNKNOWN = (
    ttg.ThreadAssemblyOp,
    tt.InlineAsmWithEffectsOp,
    ttng.ArriveBehindCopiesOp,
    ttg.MeetOp,
)
_ARRIVALS = ttng.ArriveOnceOp, ttng.ArriveOfWarpsOp, ttng.BarrierExpectOp, ttng.BarrierCompleteOp
_BY_THREADS = (ttg.AsyncCopyOp, ttg.AsyncCommitGroupOp, ttng.ArriveWithCopiesOp)
_BEGUN = (ttng.AsyncTMACopyOp, *_BY_THREADS)
_MATTERS = (*WAITS, *READS, *_UNKNOWN, *_ARRIVALS, *_BEGUN, ttng.WarpGroupDotWaitOp)
_MATTERS_TOO = (ttng.InitBarrierOp, ttg.StartWorkersOp, ttg.WorkerOp)
_CONTROL = (scf.ForOp, scf.IfOp, ttg.JoinWorkersOp)


def check_rounds(kernel: Operation) -> None:
    """Raises CompilationError for groups that wait for each other for good, and for memory that one
    reads before another's copy to it, or copies to before it is read. Warns of what is so only if a
    loop runs that may be empty."""
    if not any(isa(op, ttg.WorkerOp) for op in all_ops(kernel)):
        return
    try:
        _Rounds(kernel).run()
    except _NothingKnown:
        return


class _NothingKnown(Exception):
    """What a group does from here on is not known."""


@dataclass
class _Barrier(BarrierState):
    """A barrier, and what who waits for it hears: of this phase, and of the last that ended."""

    gathered: "_Known" = field(default_factory=lambda: _Known())
    heard: "_Known" = field(default_factory=lambda: _Known())

    def settle(self) -> None:
        """Ends the phase where it has all."""
        before = self.phases
        self.end()
        if self.phases != before:
            self.heard, self.gathered = self.gathered, _Known()


@dataclass
class _Known:
    """Of each group, by its number, how much of what it did is known; copies that have landed."""

    steps: dict[int, int] = field(default_factory=dict)
    copies: set[int] = field(default_factory=set)

    def add(self, other: "_Known") -> None:
        """Adds what another knows."""
        for group, step in other.steps.items():
            self.steps[group] = max(step, self.steps.get(group, 0))
        self.copies |= other.copies


@dataclass
class _Read:
    """A read of memory by a group, and when it was done: None while a dot is under way."""

    group: int
    op: Operation
    step: int | None


@dataclass
class _Memory:
    """Of a place: the copy to it that was the last, and who has read it since."""

    copy: int
    op: Operation
    reads: list[_Read] = field(default_factory=list)


@dataclass
class _Loop:
    """A loop whose iterations are not known."""

    bounds: tuple[object, ...]
    iteration: int = 0


@dataclass
class _Group:
    """A group of warps, and how far it is."""

    number: int
    role: str
    block: Block
    numbers: Numbers
    known: _Known
    loops: list[_Loop] = field(default_factory=list)
    dots: list[list[_Read]] = field(default_factory=list)  # what those under way read
    copies: list[set[int]] = field(default_factory=lambda: [set()])  # by group, the last one open
    waits: Operation | None = None
    goes_on: Iterator[None] = field(default_factory=lambda: iter(()))
    has_ended: bool = False

    def step(self) -> int:
        """The number of what it does now."""
        now = self.known.steps.get(self.number, 0) + 1
        self.known.steps[self.number] = now
        return now


class _Rounds:
    """All groups of a kernel."""

    def __init__(self, kernel: Operation) -> None:
        block = kernel.regions[0].blocks[0]
        self.groups = [_Group(0, "the default group", block, {}, _Known())]
        self.workers: list[Operation] = []
        self.barriers: dict[MemoryPlace, _Barrier] = {}
        self.inits: list[tuple[MemoryPlace, int]] = []
        self.memory: dict[MemoryPlace, _Memory] = {}
        self.slots: dict[Operation, set[MemoryPlace]] = {}  # the barriers that an op has had
        self.listed: dict[Block, list[Operation]] = {}
        self.copies = self.steps = 0
        # Without, who reads copies by threads has waited for them itself.
        self.hands_over = any(isa(op, ttng.ArriveWithCopiesOp) for op in all_ops(kernel))

    def run(self) -> None:
        """Runs all until none goes on."""
        first = self.groups[0]
        first.goes_on = self._ops(first, first.block)
        # The last of them is as far as it may be before another goes on: who copies is ahead of who
        # reads.
        while any(not group.has_ended and self._goes_on(group) for group in self.groups[::-1]):
            pass
        if not all(group.has_ended for group in self.groups):
            self._hang()

    def _goes_on(self, group: _Group) -> bool:
        """Runs a group to its next wait, if that which it is at ends."""
        if group.waits is not None and not self._ends(group, group.waits):
            return False
        group.waits = None
        try:
            next(group.goes_on)
        except StopIteration:
            group.has_ended = True
        return True

    def _ends(self, group: _Group, op: Operation) -> bool:
        """Whether a wait ends; the group has heard then what it was for."""
        if isa(op, ttg.JoinWorkersOp):
            if not all(other.has_ended for other in self.groups[1:]):
                return False
            for other in self.groups[1:]:
                group.known.add(other.known)
            return True
        barrier = self._barrier(group, op, op.operands[0])
        if barrier.phases & 1 == self._number(group, op.operands[1]) & 1:
            return False
        group.known.add(barrier.heard)
        return True

    # Control

    def _ops(self, group: _Group, block: Block) -> Iterator[None]:
        """Runs the ops of a block; stops at each wait."""
        for op in self._list(block):
            self.steps += 1
            if self.steps > _MOST_STEPS or isa(op, *_UNKNOWN):
                raise _NothingKnown
            if isa(op, scf.ForOp):
                yield from self._loop(group, op)
            elif isa(op, scf.IfOp):
                yield from self._branch(group, op)
            elif isa(op, ttg.WorkerOp):
                self.workers.append(op)
            elif isa(op, ttg.StartWorkersOp):
                self._start(group, op)
            elif isa(op, *WAITS, ttg.JoinWorkersOp):
                if self._waits(group, op):
                    group.waits = op
                    yield
            elif len(op.regions):
                raise _NothingKnown
            else:
                self._op(group, op)

    def _list(self, block: Block) -> list[Operation]:
        """The ops of a block that are loops or branches, or of which something is to be known."""
        if block not in self.listed:
            self.listed[block] = [
                op
                for op in (view.operation for view in block.operations)
                if isa(op, *_MATTERS, *_MATTERS_TOO, *_CONTROL)
                or (len(op.regions) and _matters(op))
            ]
        return self.listed[block]

    def _start(self, group: _Group, op: Operation) -> None:
        group.role = op.opview.role.value or group.role
        for worker in self.workers:
            known = _Known(dict(group.known.steps), set(group.known.copies))
            block = worker.regions[0].blocks[0]
            role = worker.opview.role.value
            made = _Group(len(self.groups), role, block, dict(group.numbers), known)
            made.goes_on = self._ops(made, block)
            self.groups.append(made)
        self.workers = []

    def _loop(self, group: _Group, op: Operation) -> Iterator[None]:
        loop, numbers = ForLoop(op), group.numbers
        lower, upper, step = (known_number(bound, numbers) for bound in loop.bounds)
        count = None
        if lower is not None and upper is not None and step is not None and step > 0:
            count = max(0, -(-(upper - lower) // step))
        carried = loop.body.arguments[1:]
        values = [known_number(value, numbers) for value in list(op.operands)[3:]]
        if count is None:
            group.loops.append(_Loop(tuple(_expression(bound) for bound in loop.bounds)))
        iteration = 0
        while count is None or iteration < count:
            slots = max(map(len, self.slots.values()), default=0)
            if count is None and iteration > _ROUNDS * max(2, slots):
                raise _NothingKnown
            index = None if lower is None or step is None else lower + iteration * step
            _set(numbers, [loop.body.arguments[0], *carried], [index, *values])
            yield from self._ops(group, loop.body)
            end = list(loop.body.operations)[-1].operation
            values = [known_number(value, numbers) for value in end.operands]
            iteration += 1
            if count is None:
                group.loops[-1].iteration = iteration
        _set(numbers, list(op.results), values)

    def _branch(self, group: _Group, op: Operation) -> Iterator[None]:
        condition = known_number(op.operands[0], group.numbers)
        if condition is None:
            if _matters(op):
                raise _NothingKnown
            _set(group.numbers, list(op.results), [None] * len(op.results))
            return
        region = op.regions[0 if condition else 1]
        if not len(region.blocks):
            return
        block = region.blocks[0]
        yield from self._ops(group, block)
        end = list(block.operations)[-1].operation
        values = [known_number(value, group.numbers) for value in end.operands]
        _set(group.numbers, list(op.results), values)

    # Ops

    def _number(self, group: _Group, value: Value) -> int:
        found = known_number(value, group.numbers)
        if found is None:
            raise _NothingKnown
        return found

    def _waits(self, group: _Group, op: Operation) -> bool:
        return not isa(op, ttng.WaitBarrierIfOp) or bool(self._number(group, op.operands[2]))

    def _barrier(self, group: _Group, op: Operation, value: Value) -> _Barrier:
        place = barrier_place(value, group.numbers)
        if place is None or place.is_part:
            raise _NothingKnown
        self.slots.setdefault(op, set()).add(place)
        if place not in self.barriers:
            count = next((count for made, count in reversed(self.inits) if made.meets(place)), None)
            if count is None:
                raise _NothingKnown
            self.barriers[place] = _Barrier(count, count)
        return self.barriers[place]

    def _op(self, group: _Group, op: Operation) -> None:
        if isa(op, ttng.InitBarrierOp):
            place = barrier_place(op.operands[0], group.numbers)
            if place is None:
                raise _NothingKnown
            self.inits.append((place, count_of(op)))
        elif isa(op, *_ARRIVALS):
            if not self._number(group, op.operands[1]):
                return
            self._arrive(group, op)
        elif isa(op, ttng.ArriveWithCopiesOp):
            landed = len(group.copies) - 1 - int(op.opview.pendings.value)
            while landed > 0:
                group.known.copies |= group.copies.pop(0)
                landed -= 1
            self._arrive(group, op)
        elif isa(op, ttng.AsyncTMACopyOp):
            self._copy(group, op)
        elif isa(op, *_BY_THREADS):
            if isa(op, ttg.AsyncCommitGroupOp):
                group.copies.append(set())
            elif self.hands_over:
                self._begin(group, op, op.operands[1])
                group.copies[-1].add(self.copies)
        elif isa(op, *READS):
            read = [x for x in op.operands if ttg.is_mem_desc(x.type)]
            reads = [found for operand in read if (found := self._read(group, op, operand))]
            if isa(op, ttng.WarpGroupDotOp):
                group.dots.append(reads)
            else:
                _end(group, reads)
        elif isa(op, ttng.WarpGroupDotWaitOp):
            while len(group.dots) > int(op.opview.pendings.value):
                _end(group, group.dots.pop(0))

    def _arrive(self, group: _Group, op: Operation) -> None:
        barrier = self._barrier(group, op, op.operands[0])
        barrier.left -= count_of(op)
        barrier.bytes += expected_bytes(op)
        if barrier.left < 0:
            raise _NothingKnown
        group.step()
        barrier.gathered.add(group.known)
        barrier.settle()

    def _copy(self, group: _Group, op: Operation) -> None:
        _, barrier_value, target, condition, *_ = op.operands
        if not self._number(group, condition):
            return
        barrier = self._barrier(group, op, barrier_value)
        self._begin(group, op, target)
        barrier.gathered.add(_Known(copies={self.copies}))
        barrier.bytes -= copied_bytes(target)
        barrier.settle()

    def _begin(self, group: _Group, op: Operation, target: Value) -> None:
        """A copy to memory, number `self.copies`."""
        place = memory_place(target, group.numbers)
        if place is None or place.is_part:
            raise _NothingKnown
        self._check_free(group, op, place)
        self.copies += 1
        self.memory[place] = _Memory(self.copies, op)
        group.step()

    def _check_free(self, group: _Group, op: Operation, place: MemoryPlace) -> None:
        """What a copy writes: an earlier copy to it has landed, and was read."""
        before = self.memory.get(place)
        if before is None:
            return
        hint = "wait for the phase that the reader's arrival ends, before the copy"
        is_unread = self.hands_over and not before.reads
        if is_unread or before.copy not in group.known.copies:
            line = written(before.op.location).line
            problem = (
                f"{group.role} copies to memory while the copy of line {line} to it may be under "
                "way, or still to be read: no phase that it has waited for says that it is not"
            )
            self._say([group], op, place.base, problem, hint)
        for read in before.reads:
            reader = self.groups[read.group]
            if read.step is None or group.known.steps.get(read.group, 0) < read.step:
                role, line = reader.role, written(read.op.location).line
                problem = (
                    f"{group.role} copies to memory that {role} may still read in line {line}: no "
                    "phase that it has waited for says that this is done"
                )
                self._say([group, reader], op, place.base, problem, hint)

    def _read(self, group: _Group, op: Operation, value: Value) -> _Read | None:
        """None where it is not of what was copied."""
        place = memory_place(value, group.numbers)
        found = None if place is None else self.memory.get(place)
        if place is None or found is None:
            return None
        if found.copy not in group.known.copies:
            line = written(found.op.location).line
            self._say(
                [group],
                op,
                place.base,
                f"{group.role} reads memory while the copy of line {line} to it may be under way: "
                "no phase that it has waited for is this copy's",
                "wait for the phase that the copy ends: phases are 0, 1, 0, 1, from the init on",
            )
        found.reads.append(_Read(group.number, op, None))
        return found.reads[-1]

    # What is said

    def _hang(self) -> None:
        stuck = [group for group in self.groups if group.waits is not None]
        held = [group for group in stuck if not isa(group.waits, ttg.JoinWorkersOp)]
        if not held:
            raise _NothingKnown
        group, op = held[0], held[0].waits
        assert op is not None
        place = barrier_place(op.operands[0], group.numbers)
        assert place is not None
        phase = self._number(group, op.operands[1]) & 1
        others = "".join(f", {self._where(other)}" for other in held[1:])
        self._say(
            held,
            op,
            place.base,
            f"this wait never ends: {group.role} waits for phase {phase}{_round(group)}, and "
            f"nobody is left to end it{others}",
            "phases are 0, 1, 0, 1, from the init on; a wait for phase 1 ends at once on a barrier "
            "of which no phase has ended",
        )

    @staticmethod
    def _where(group: _Group) -> str:
        assert group.waits is not None
        line = written(group.waits.location).line
        return f"{group.role} waits in line {line}{_round(group)}"

    def _say(
        self, groups: list[_Group], op: Operation, base: Value, problem: str, hint: str
    ) -> None:
        """An error; a warning where a loop that may be empty is at its first iteration. Nothing
        where it is not known that the loops of all groups run as often."""
        depth = max((len(group.loops) for group in self.groups), default=0)
        for level in range(depth):
            bounds = {g.loops[level].bounds for g in self.groups if len(g.loops) > level}
            if len(bounds) > 1:
                raise _NothingKnown
        loops = [loop for group in groups for loop in group.loops[-1:]]
        say(wrong(op, base, problem, hint), all(loop.iteration for loop in loops))
        raise _NothingKnown


def _matters(op: Operation) -> bool:
    """Whether groups do in it what others hear of."""
    return any(isa(inner, *_MATTERS, *_MATTERS_TOO) for inner in all_ops(op))


def _end(group: _Group, reads: list[_Read]) -> None:
    """Reads are done."""
    for read in reads:
        read.step = group.step()


def _round(group: _Group) -> str:
    return f" in iteration {group.loops[-1].iteration}" if group.loops else ""


def _set(numbers: Numbers, values: list[Value], found: list[int | None]) -> None:
    for value, number in zip(values, found, strict=True):
        numbers.pop(value, None)
        if number is not None:
            numbers[value] = number


def _expression(value: Value) -> object:
    """What a value is computed by: equal for those that two groups compute alike."""
    op = defining_op(value)
    if op is None or len(op.regions) or len(op.results) != 1:
        return value
    number = known_number(value, {})
    if number is not None:
        return number
    said = tuple((name, str(op.attributes[name])) for name in op.attributes)
    return op.name, said, *map(_expression, op.operands)
