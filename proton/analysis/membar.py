"""Where the threads of a program must meet so that shared memory holds what is read from it.

A forward dataflow over each function: the bytes read and written since the last barrier. An op
that touches bytes with a pending write, or writes bytes with a pending read, needs a barrier
before it. Ops that exchange data have a barrier inside: they write, meet, and read. Callees come
first; a caller sees what a callee touches before its first barrier, whether every way through it
meets one, and what it leaves pending. Loops are followed until nothing changes.
"""

from dataclasses import dataclass, replace
from typing import Any

from proton.analysis.allocation import Allocation
from proton.analysis.call_graph import CallGraph, callee_name, function_name
from proton.analysis.dataflow import ForwardDataflow
from proton.analysis.shared_alias import Aliases, shared_aliases
from proton.dialect.traits import Barrier, has
from proton.dialect.ttg import MemDescType

Interval = tuple[int, int]  # bytes [start, end) of the function's shared memory
Intervals = frozenset[Interval]
_NONE: Intervals = frozenset()


@dataclass(frozen=True)
class State:
    """What is pending at a point. `fresh`: some way from the function's entry met no barrier."""

    reads: Intervals = _NONE
    writes: Intervals = _NONE
    fresh: bool = False

    def join(self, other: "State") -> "State":
        """What may be pending, whichever way was taken."""
        return State(
            self.reads | other.reads, self.writes | other.writes, self.fresh or other.fresh
        )


@dataclass(frozen=True)
class Summary:
    """A function as its callers see it; `first_*` is touched before any barrier of its own."""

    first_reads: Intervals
    first_writes: Intervals
    end: State


def _overlap(left: Intervals, right: Intervals) -> bool:
    return any(a < d and c < b for a, b in left for c, d in right)


def _shifted(intervals: Intervals, offset: int) -> Intervals:
    return frozenset((start + offset, end + offset) for start, end in intervals)


def missing_barriers(graph: CallGraph, allocations: dict[str, Allocation]) -> list[Any]:
    """The ops of a module before which a barrier must go."""
    summaries: dict[str, Summary] = {}
    needed: list[Any] = []
    for function in graph.callees_first():
        name = function_name(function)
        dataflow = _Dataflow(allocations[name], shared_aliases(function), summaries)
        end = dataflow.block(function.regions[0].blocks[0], State(fresh=True))
        summaries[name] = Summary(
            frozenset(dataflow.first_reads), frozenset(dataflow.first_writes), end
        )
        needed += dataflow.barriers
    return needed


class _Dataflow(ForwardDataflow[State]):
    """The state through one function."""

    def __init__(
        self, allocation: Allocation, aliases: Aliases, summaries: dict[str, Summary]
    ) -> None:
        self.allocation, self.aliases, self.summaries = allocation, aliases, summaries
        self.barriers: dict[Any, None] = {}
        self.first_reads: set[Interval] = set()
        self.first_writes: set[Interval] = set()

    def join(self, left: State, right: State) -> State:
        return left.join(right)

    def transfer(self, op: Any, state: State) -> State:
        if op.name == "func.call":
            return self._call(op, state)
        if has(op, Barrier):
            return State()
        reads, writes = self._touched(op)
        if not reads and not writes:
            return state
        state = self._meet(op, state, reads, writes)
        if op.name == "ttg.local_alloc" or not writes:  # no barrier inside
            return replace(state, reads=state.reads | reads, writes=state.writes | writes)
        return State(reads=writes)  # written, met, and now being read

    def _touched(self, op: Any) -> tuple[Intervals, Intervals]:
        """(reads, writes) of an op's own: buffers among its operands, and its scratch memory."""
        reads: set[Interval] = set()
        if op.name.startswith("ttg."):
            for operand in op.operands:
                if isinstance(operand.type, MemDescType):
                    reads |= {self._interval(made) for made in self.aliases[operand]}
        writes = frozenset([self._interval(op)]) if op in self.allocation.offsets else _NONE
        return frozenset(reads), writes

    def _interval(self, op: Any) -> Interval:
        start = self.allocation.offsets[op]
        return start, start + self.allocation.sizes[op]

    def _meet(self, op: Any, state: State, reads: Intervals, writes: Intervals) -> State:
        """The state right before the op touches memory: with a barrier where it needs one."""
        if (
            op in self.barriers
            or _overlap(state.writes, reads | writes)
            or _overlap(state.reads, writes)
        ):
            self.barriers[op] = None
            return State()
        if state.fresh:
            self.first_reads |= reads
            self.first_writes |= writes
        return state

    def _call(self, op: Any, state: State) -> State:
        callee = self.summaries[callee_name(op)]
        offset = self.allocation.offsets.get(op, 0)
        first_reads = _shifted(callee.first_reads, offset)
        first_writes = _shifted(callee.first_writes, offset)
        state = self._meet(op, state, first_reads, first_writes)
        end = State(
            _shifted(callee.end.reads, offset),
            _shifted(callee.end.writes, offset),
            state.fresh and callee.end.fresh,
        )
        return replace(state.join(end), fresh=end.fresh) if callee.end.fresh else end
