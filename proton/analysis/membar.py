"""Where the threads of a program must meet so that shared memory holds what is read from it.

A forward dataflow over each function: the bytes read and written since the last barrier. An op
that touches bytes with a pending write, or writes bytes with a pending read, needs a barrier
before it. Ops that exchange data have a barrier inside: they write, meet, and read. What a copy
writes that goes on is *in flight*: a barrier does not wait for it, and where its token is waited
for, it becomes a pending write of the threads that waited. What a product reads that goes on
becomes a pending read where the product is waited for: whoever made it may issue the write before
that only to another part of the memory. Groups of warps that run at once meet
before and behind, and each is looked at by itself: what they pass to each other they wait for by
other means. Callees come first; a caller sees what a callee touches before its first barrier,
whether every way through it meets one, and what it leaves pending. Loops are followed until nothing
changes. Where a barrier ahead of a loop makes one in it needless, it stands there, ahead of the
outermost such loop: an iteration meets nobody for what was written before the first one.
"""

import functools
from collections.abc import Collection
from dataclasses import dataclass, replace

from proton.analysis.allocation import Allocation
from proton.analysis.call_graph import CallGraph, callee_name, function_name
from proton.analysis.dataflow import ForwardDataflow
from proton.analysis.shared_alias import SharedAliases
from proton.dialect import isa
from proton.dialect.mlir import Operation, func
from proton.dialect.regions import If, loop_around
from proton.dialect.traits import (
    AllocatesShared,
    AwaitsOrder,
    Barrier,
    Concurrent,
    SharedEffects,
    has,
)
from proton.dialect.walk import parent_of

Interval = tuple[int, int]  # bytes [start, end) of the function's shared memory
Intervals = frozenset[Interval]
_NONE: Intervals = frozenset()


@dataclass(frozen=True)
class State:
    """What is pending at a point. `fresh`: some way from the function's entry met no barrier.
    `in_flight` are copies that may be under way: (op, its bytes); `being_read` is what products
    and copies under way may read: (which of the two, bytes)."""

    reads: Intervals = _NONE
    writes: Intervals = _NONE
    fresh: bool = False
    in_flight: frozenset[tuple[Operation, Interval]] = frozenset()
    being_read: frozenset[tuple[str, Interval]] = frozenset()

    def join(self, other: "State") -> "State":
        """What may be pending, whichever way was taken."""
        return State(
            self.reads | other.reads,
            self.writes | other.writes,
            self.fresh or other.fresh,
            self.in_flight | other.in_flight,
            self.being_read | other.being_read,
        )

    def behind_a_barrier(self) -> "State":
        """What is pending when all threads have met."""
        return State(in_flight=self.in_flight, being_read=self.being_read)


@dataclass(frozen=True)
class FunctionSummary:
    """A function as its callers see it; `first_*` is touched before any barrier of its own."""

    first_reads: Intervals
    first_writes: Intervals
    end: State


def _overlap(left: Intervals, right: Intervals) -> bool:
    return any(a < d and c < b for a, b in left for c, d in right)


def _shifted(intervals: Intervals, offset: int) -> Intervals:
    return frozenset((start + offset, end + offset) for start, end in intervals)


def missing_barriers(graph: CallGraph, allocations: dict[str, Allocation]) -> list[Operation]:
    """The ops of a module before which a barrier must go. One ahead of a loop takes the place of
    one in it that is there for what was written ahead of the loop."""
    if not any(allocation.offsets for allocation in allocations.values()):
        return []  # nothing is in shared memory
    flows = {
        name: _Dataflow(allocations[name], SharedAliases(function))
        for name, function in graph.functions.items()
    }
    missing = functools.partial(_missing, graph, flows)
    needed, ahead = missing(()), list[Operation]()
    loops = dict.fromkeys(loop for op in needed for loop in _loops_around(op))
    if not loops or len(missing(loops)) == len(needed):
        return needed  # as in most pipelines
    for loop in loops:
        found = missing((*ahead, loop))
        if len(found) < len(needed):
            needed = found
            ahead.append(loop)
    return [*ahead, *needed]


def _loops_around(op: Operation) -> list[Operation]:
    """The loops that an op is in, the outermost one first."""
    loop = loop_around(op)
    return [] if loop is None else [*_loops_around(parent_of(loop)), loop]


def _missing(
    graph: CallGraph, flows: dict[str, "_Dataflow"], ahead: Collection[Operation]
) -> list[Operation]:
    """The ops before which a barrier must go, with those of `ahead` behind one."""
    summaries: dict[str, FunctionSummary] = {}
    needed: list[Operation] = []
    for function in graph.callees_first():
        name = function_name(function)
        summaries[name] = flows[name].summary(function, summaries, ahead)
        needed += flows[name].barriers
    return needed


class _Dataflow(ForwardDataflow[State]):
    """The state through one function, any number of times."""

    def __init__(self, allocation: Allocation, aliases: SharedAliases) -> None:
        self.allocation, self.aliases = allocation, aliases
        # The ops that name shared memory, or a token: the others have no effect on it.
        named = [*aliases.memory, *aliases.copies]
        self.users = {use.owner.operation for value in named for use in value.uses}
        self.touched: dict[Operation, tuple[Intervals, Intervals]] = {}  # read, written

    def summary(
        self,
        function: Operation,
        summaries: dict[str, FunctionSummary],
        ahead: Collection[Operation],
    ) -> FunctionSummary:
        """The function with barriers ahead of some ops, by the summaries of those that it calls;
        `barriers` are the ops that need one besides."""
        self.summaries, self.ahead = summaries, ahead
        self.barriers: dict[Operation, None] = {}
        self.first_reads: set[Interval] = set()
        self.first_writes: set[Interval] = set()
        end = self.block(function.regions[0].blocks[0], State(fresh=True))
        return FunctionSummary(frozenset(self.first_reads), frozenset(self.first_writes), end)

    def join(self, left: State, right: State) -> State:
        return left.join(right)

    def visit(self, op: Operation, state: State) -> State:
        if op in self.ahead:
            state = state.behind_a_barrier()
        if not has(op, Concurrent):
            return super().visit(op, state)
        ends = [self.block(block, State()) for block in If(op).blocks]
        return functools.reduce(State.join, ends, State()).behind_a_barrier()

    def takes_part(self, op: Operation) -> bool:
        """True where threads meet, at a call, and for an effect on shared memory."""
        if op in self.users or op in self.allocation.offsets or isa(op, func.CallOp):
            return True
        return has(op, Barrier, AwaitsOrder) or bool(SharedEffects.of(op).ends_reads)

    def transfer(self, op: Operation, state: State) -> State:
        if isa(op, func.CallOp):
            return self._call(op, state)
        if has(op, Barrier, AwaitsOrder):
            return state.behind_a_barrier()
        if op in self.users or SharedEffects.of(op).ends_reads:
            state = self._named(op, state)
        if op not in self.allocation.offsets:
            return state
        own = frozenset([self._interval(op)])
        if has(op, AllocatesShared):  # which only one with an operand writes
            return self._touch(op, state, _NONE, own) if len(op.operands) else state
        state = self._meet(op, state, _NONE, own)
        # Written, met, and now being read.
        return replace(state.behind_a_barrier(), reads=own)

    def _named(self, op: Operation, state: State) -> State:
        """The state behind an op's effects on the memory that its operands name."""
        effects = SharedEffects.of(op)
        if op not in self.touched:
            self.touched[op] = self._bytes(op, effects.reads), self._bytes(op, effects.writes)
        reads, writes = self.touched[op]
        if effects.waits:
            copies = {c for v in op.operands for c in self.aliases.copies.get(v, ())}
            landed = frozenset(bytes_ for copy, bytes_ in state.in_flight if copy in copies)
            state = replace(state, writes=state.writes | landed)
        if effects.ends_reads:
            ended = frozenset(x for x in state.being_read if x[0] == effects.ends_reads)
            left = state.being_read - (frozenset() if op.attributes["pendings"].value else ended)
            found = frozenset(bytes_ for _, bytes_ in ended)
            state = replace(state, reads=state.reads | found, being_read=left)
        if effects.reads_later:
            state = self._meet(op, state, reads, writes)
            later = frozenset((effects.reads_later, bytes_) for bytes_ in reads)
            return replace(state, being_read=state.being_read | later)
        if effects.lands_later:
            state = self._meet(op, state, reads, writes)
            return replace(
                state,
                reads=state.reads | reads,
                in_flight=state.in_flight | {(op, bytes_) for bytes_ in writes},
            )
        return self._touch(op, state, reads, writes)

    def _touch(self, op: Operation, state: State, reads: Intervals, writes: Intervals) -> State:
        """The state behind an op that reads and writes, with no barrier inside."""
        state = self._meet(op, state, reads, writes)
        if reads <= state.reads and writes <= state.writes:
            return state
        return replace(state, reads=state.reads | reads, writes=state.writes | writes)

    def _bytes(self, op: Operation, operands: tuple[int, ...]) -> Intervals:
        """The bytes that operands of an op may name."""
        return frozenset(
            (start + part.start, start + part.start + part.size)
            for number in operands
            for part in self.aliases.memory.get(op.operands[number], ())
            for start in [self.allocation.offsets[part.op]]
        )

    def _interval(self, op: Operation) -> Interval:
        start = self.allocation.offsets[op]
        return start, start + self.allocation.sizes[op]

    def _meet(self, op: Operation, state: State, reads: Intervals, writes: Intervals) -> State:
        """The state right before the op touches memory: with a barrier where it needs one."""
        if (
            op in self.barriers
            or _overlap(state.writes, reads | writes)
            or _overlap(state.reads, writes)
        ):
            self.barriers[op] = None
            return state.behind_a_barrier()
        if state.fresh:
            self.first_reads |= reads
            self.first_writes |= writes
        return state

    def _call(self, op: Operation, state: State) -> State:
        callee = self.summaries[callee_name(op)]
        offset = self.allocation.offsets.get(op, 0)
        first_reads = _shifted(callee.first_reads, offset)
        first_writes = _shifted(callee.first_writes, offset)
        state = self._meet(op, state, first_reads, first_writes)
        end = State(
            _shifted(callee.end.reads, offset),
            _shifted(callee.end.writes, offset),
            state.fresh and callee.end.fresh,
            state.in_flight,
            state.being_read,
        )
        return replace(state.join(end), fresh=end.fresh) if callee.end.fresh else end
