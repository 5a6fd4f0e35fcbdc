"""Barriers of a kernel in Gluon on which a wait certainly never ends, or ends too early.

The kernel is run as it is written, each loop for its first iteration, with the numbers that are
known then. A barrier that one group of warps uses alone has a state there:

    init(count=1)            1 arrival left, 0 bytes
    expect(4096)             0 arrivals left, 4096 bytes
    async_load of 4096       0 arrivals left, 0 bytes: phase 0 has ended
    wait(phase=0)            ends, since a phase of this parity is the last that ended

What depends on data is not known; nothing is said of it. Of barriers that groups share, the
arrivals that there are at all are counted; proton/analysis/role_rounds.py runs the groups side by
side.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from math import inf

from proton.analysis.loop_iterations import iterations_of
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
    wrong,
)
from proton.analysis.role_rounds import check_rounds
from proton.base.errors import CompilationError
from proton.dialect import isa, ttg, ttng
from proton.dialect.emit import number_of
from proton.dialect.mlir import Block, Module, Operation, Value, func, scf
from proton.dialect.walk import all_ops, kernel_functions

_ARRIVALS = (
    ttng.ArriveOnceOp,
    ttng.ArriveOfWarpsOp,
    ttng.BarrierExpectOp,
    ttng.ArriveBehindCopiesOp,
    ttng.ArriveWithCopiesOp,
)
_OTHERS = (ttng.InitBarrierOp, ttng.InvalBarrierOp, ttng.BarrierCompleteOp)
_USES = (*_ARRIVALS, *WAITS, *_OTHERS)


def check_barriers(module: Module | Operation) -> None:
    """Raises CompilationError for what is certainly wrong."""
    for kernel in kernel_functions(module):
        uses = [_Use.of(op) for op in all_ops(kernel) if isa(op, *_USES)]
        known = [use for use in uses if use is not None]
        if len(known) < len(uses) or _hands_memory_on(kernel):
            continue  # who else uses which barrier is not known
        for base in dict.fromkeys(use.base for use in known):
            _check_counts(base, [use for use in known if use.base == base])
        roles: dict[Value, set[Operation | None]] = {}
        for use in known:
            if not isa(use.op, ttng.InitBarrierOp):
                roles.setdefault(use.base, set()).add(use.role)
        own = {base for base, found in roles.items() if len(found) == 1}
        _Run(own).walk(kernel.regions[0].blocks[0])
        check_rounds(kernel)


def _hands_memory_on(kernel: Operation) -> bool:
    return any(
        ttg.is_mem_desc(operand.type)
        for op in all_ops(kernel)
        if isa(op, func.CallOp)
        for operand in op.operands
    )


# Counts


@dataclass(frozen=True)
class _Use:
    """An op of a barrier."""

    op: Operation
    place: MemoryPlace
    role: Operation | None
    repeats: bool

    @staticmethod
    def of(op: Operation) -> "_Use | None":
        """None where the barrier is not known."""
        place, role, repeats = barrier_place(op.operands[0], {}), None, False
        outer = op.parent
        while outer is not None and not isa(outer.operation, func.FuncOp):
            if isa(outer.operation, ttg.WorkerOp):
                role = outer.operation
            repeats = repeats or isa(outer.operation, scf.ForOp, scf.WhileOp)
            outer = outer.operation.parent
        return None if place is None else _Use(op, place, role, repeats)

    @property
    def base(self) -> Value:
        """The allocation."""
        return self.place.base

    @property
    def count(self) -> int:
        """Arrivals of one execution, or, of an init, those that a phase has."""
        return count_of(self.op)

    def meets(self, other: "_Use") -> bool:
        """May be of the same barrier."""
        return self.place.meets(other.place)


def _of(uses: Iterable[_Use], *kinds: type) -> list[_Use]:
    return [use for use in uses if isa(use.op, *kinds)]


def _check_counts(base: Value, uses: list[_Use]) -> None:
    """Of all uses of the barriers of an allocation: enough arrivals, and not too many at once."""
    inits, arrivals = _of(uses, ttng.InitBarrierOp), _of(uses, *_ARRIVALS)
    for wait in _of(uses, *WAITS):
        counts = [init.count for init in inits if init.meets(wait)]
        if not counts:
            hint = "call mbarrier.init(barrier, count=...) before"
            raise wrong(wait.op, base, "the barrier is waited for, and never initialised", hint)
        if isa(wait.op, ttng.WaitBarrierIfOp) or number_of(wait.op.operands[1]) != 0:
            continue
        own = [arrival for arrival in arrivals if arrival.meets(wait)]
        most = sum(inf if arrival.repeats else arrival.count for arrival in own)
        if any(isa(arrival.op, ttng.ArriveBehindCopiesOp) for arrival in own):
            continue
        if most < min(counts):
            raise _too_few(wait.op, base, int(most), min(counts))
    for arrival in _of(arrivals, ttng.ArriveOnceOp):
        counts = [init.count for init in inits if init.meets(arrival)]
        if counts and arrival.count > max(counts):
            raise wrong(
                arrival.op,
                base,
                f"{arrival.count} arrivals at once at a barrier whose phase has {max(counts)}",
                f"arrive with count={max(counts)} at most, or initialise it with a larger count",
            )


def _too_few(wait: Operation, base: Value, found: int, count: int) -> CompilationError:
    arrivals = "nothing arrives" if not found else f"only {found} of {count} arrivals come"
    return wrong(
        wait,
        base,
        f"this wait never ends: {arrivals} at its barrier",
        "let mbarrier.arrive, or mbarrier.expect and its copies, come to it, or lower its count",
    )


# A run


@dataclass
class _Run:
    """`own` are the allocations of barriers that one group of warps uses alone. `states` has the
    barriers, `copies` the memory with a copy under way: by it the barrier's allocation, or None of
    a copy that a group of copies waits for."""

    own: set[Value]
    numbers: Numbers = field(default_factory=dict)
    states: dict[MemoryPlace, BarrierState] = field(default_factory=dict)
    copies: dict[MemoryPlace, Value | None] = field(default_factory=dict)
    is_certain: bool = True  # outside of loops that may be empty

    def walk(self, block: Block) -> None:
        """Runs the ops of a block."""
        for op in block.operations:
            if isa(op, scf.ForOp):
                self._loop(op)
            elif isa(op, scf.IfOp):
                self._branch(op)
            elif isa(op, ttg.WorkerOp):
                copies, self.copies = self.copies, {}
                self.walk(op.regions[0].blocks[0])
                self.copies = copies
            elif len(op.regions):
                self._forget_all(op)
            else:
                self._op(op)

    def _loop(self, op: Operation) -> None:
        count = iterations_of(op)
        if count == 0:
            return
        body = op.regions[0].blocks[0]
        first = [op.operands[0], *list(op.operands)[3:]]
        for argument, value in zip(body.arguments, first, strict=True):
            number = known_number(value, self.numbers)
            if number is not None:
                self.numbers[argument] = number
        was_certain, self.is_certain = self.is_certain, self.is_certain and count is not None
        self.walk(body)
        self.is_certain = was_certain
        self._forget_all(op)

    def _branch(self, op: Operation) -> None:
        condition = known_number(op.operands[0], self.numbers)
        if condition is None:
            self._forget_all(op)
            return
        region = op.regions[0 if condition else 1]
        if len(region.blocks):
            self.walk(region.blocks[0])

    def _forget_all(self, op: Operation) -> None:
        """What an op may have changed is not known behind it."""
        for inner in all_ops(op):
            for operand in inner.operands:
                if ttg.is_mem_desc(operand.type):
                    self._forget(memory_place(operand, self.numbers))
            if isa(inner, *WAITS, ttg.AsyncWaitGroupOp):
                self.copies.clear()

    def _forget(self, place: MemoryPlace | None) -> None:
        for kept in (self.states, self.copies):
            for other in list(kept):
                if place is None or other.base == place.base:
                    del kept[other]

    def _op(self, op: Operation) -> None:
        if isa(op, ttng.AsyncTMACopyOp):
            self._copy(op)
        elif isa(op, ttg.AsyncCopyOp):
            self._begin(memory_place(op.operands[1], self.numbers), None)
        elif isa(op, ttg.AsyncWaitGroupOp):
            self.copies = {place: base for place, base in self.copies.items() if base is not None}
        elif isa(op, ttg.JoinWorkersOp):
            self.copies.clear()  # a worker may have waited for them
        elif isa(op, *READS):
            self._read(op)
        elif isa(op, *_USES):
            self._use(op)

    def _begin(self, target: MemoryPlace | None, barrier: Value | None) -> None:
        if target is not None and not target.is_part:
            self.copies[target] = barrier

    def _copy(self, op: Operation) -> None:
        _, barrier, memory, condition, *_ = op.operands
        is_done = known_number(condition, self.numbers)
        if is_done == 0:
            return
        place = barrier_place(barrier, self.numbers)
        state = self._state(place)
        if is_done is None or place is None:
            self._forget(place)
            return
        self._begin(memory_place(memory, self.numbers), place.base)
        if state is not None:
            state.bytes -= copied_bytes(memory)
            state.end()

    def _state(self, place: MemoryPlace | None) -> BarrierState | None:
        if place is None or place.base not in self.own:
            return None
        if place.is_part:
            self._forget(place)
        return self.states.get(place)

    def _read(self, op: Operation) -> None:
        for operand in op.operands:
            if not ttg.is_mem_desc(operand.type):
                continue
            place = memory_place(operand, self.numbers)
            if place is None or place not in self.copies:
                continue
            base = self.copies[place]
            what = "mbarrier.wait on the copy's barrier" if base else "async_copy.wait_group"
            problem = wrong(
                op,
                place.base,
                "the memory is read while a copy to it may be under way: nothing has waited for it",
                f"call {what} before",
            )
            say(problem, self.is_certain)

    def _use(self, op: Operation) -> None:
        place = barrier_place(op.operands[0], self.numbers)
        if isa(op, *WAITS):
            self._wait(op, place)
            return
        if isa(op, ttng.InitBarrierOp):
            count = count_of(op)
            if place is not None and place.base in self.own and not place.is_part:
                self.states[place] = BarrierState(count, count)
            return
        state = self._state(place)
        if state is None:
            return
        if isa(op, ttng.InvalBarrierOp, ttng.ArriveBehindCopiesOp, ttng.ArriveWithCopiesOp):
            self._forget(place)
            return
        arrives = known_number(op.operands[1], self.numbers)
        if arrives == 0:
            return
        state.left -= count_of(op)
        state.bytes += expected_bytes(op)
        if arrives is None or state.left < 0:
            self._forget(place)
            return
        state.end()

    def _wait(self, op: Operation, place: MemoryPlace | None) -> None:
        state, parity = self._state(place), known_number(op.operands[1], self.numbers)
        waits = known_number(op.operands[2], self.numbers) if len(op.operands) > 2 else 1
        if waits == 0:
            return
        if waits and state is not None and parity is not None and place is not None:
            self._check(op, place.base, state, parity & 1)
        if place is None or place.base not in self.own:  # another group may have waited for them
            self.copies.clear()
        self.copies = {
            memory: base
            for memory, base in self.copies.items()
            if place is not None and base is not None and base != place.base
        }

    def _check(self, op: Operation, base: Value, state: BarrierState, parity: int) -> None:
        if state.phases & 1 != parity:
            return
        if state.left == state.count and not state.bytes:
            if not state.phases:
                why = f"phase {parity} is the first, and nothing has arrived at its barrier before"
                hint = "arrive, or begin the copy, before the wait; a wait for phase 1 ends at once"
            else:
                why = f"the last phase that ended at its barrier is {1 - parity}, not {parity}"
                hint = f"wait for phase {1 - parity}: phases are 0, 1, 0, 1, from the init on"
        elif state.left:
            why = f"{state.count - state.left} of {state.count} arrivals have come to its barrier"
            hint = "arrive so often before the wait, or initialise the barrier with a lower count"
        else:
            more = "more" if state.bytes > 0 else "fewer"
            why = f"its barrier expects {abs(state.bytes)} bytes {more} than the copies bring"
            hint = "expect desc.block_type.nbytes of each copy to the barrier"
        say(wrong(op, base, f"this wait never ends: {why}", hint), self.is_certain)
