"""Where the threads of a program must meet because several of them load one element.

A scalar is loaded by every thread, and of a small tensor several threads hold each element; one of
them stores it. The program's source has no threads: what it loads is what was there before its next
store, and after its last one, for all copies. So a barrier goes between such a load and a store, or
atomic, through a pointer from the same argument, in either order. It does not where only the
thread that stores uses what it loaded. Different elements are not followed: what a program loads
from where it has stored other elements, `tl.debug_barrier` orders; so it does for two arguments
that point into one array, and for pointers that are loaded.
"""

import functools
from dataclasses import dataclass

from proton.analysis.alias import UNKNOWN, Roots
from proton.analysis.dataflow import ForwardDataflow
from proton.dialect import isa, tt
from proton.dialect.mlir import Operation, Value, scf
from proton.dialect.regions import ForLoop, If, branches
from proton.dialect.traits import Accesses, Barrier, Concurrent, Elementwise, Loop, Writes, has
from proton.dialect.ttg import is_tensor, layout_of
from proton.dialect.walk import ops_named, parent_of

Arguments = frozenset[int]
_NONE: Arguments = frozenset()


@dataclass(frozen=True)
class CopyState:
    """The arguments through which copies were loaded, and those through which something was
    stored, since the last barrier."""

    loaded: Arguments = _NONE
    stored: Arguments = _NONE

    def join(self, other: "CopyState") -> "CopyState":
        return CopyState(self.loaded | other.loaded, self.stored | other.stored)


def missing_barriers(function: Operation) -> list[Operation]:
    """The accesses of a function before which its threads must meet."""
    loads = ops_named(function, tt.LoadOp)
    if not any(_has_copies(load.results[0]) for load in loads):
        return []
    dataflow = _Dataflow(function)
    dataflow.block(function.regions[0].blocks[0], CopyState())
    return list(dataflow.barriers)


def _has_copies(value: Value) -> bool:
    """True if several threads hold one element."""
    if not is_tensor(value.type):
        return True
    free = layout_of(value.type).free_bits()
    return bool(free.get("lane") or free.get("warp"))


def _copies_matter(value: Value) -> bool:
    """True if more than the thread that stores an element uses it."""
    pending, seen = [value], {value}
    while pending:
        source = pending.pop()
        for use in source.uses:
            user = use.owner.operation
            if isa(user, tt.StoreOp):
                continue
            new = list(user.results) if has(user, Elementwise) else _passed_on(source, user)
            if not new:
                return True
            pending += [result for result in new if result not in seen]
            seen |= set(new)
    return False


def _passed_on(value: Value, user: Operation) -> list[Value]:
    """What a value becomes that a loop or a branch passes on; none where it decides on the way."""
    if isa(user, scf.ForOp) and value in ForLoop(user).bounds:
        return []
    if isa(user, scf.ConditionOp) and value == user.operands[0]:
        return []
    if not (has(user, Loop) or isa(user, scf.YieldOp, scf.ConditionOp)):
        return []
    around = user if has(user, Loop) else parent_of(user)
    return [
        received
        for branch in branches(around) or ()
        for passed, received in zip(branch.passed, branch.received, strict=True)
        if passed == value
    ]


class _Dataflow(ForwardDataflow[CopyState]):
    """The state through one function."""

    def __init__(self, function: Operation) -> None:
        self.roots = Roots(function)
        self.barriers: dict[Operation, None] = {}

    def join(self, left: CopyState, right: CopyState) -> CopyState:
        return left.join(right)

    def visit(self, op: Operation, state: CopyState) -> CopyState:
        if not has(op, Concurrent):
            return super().visit(op, state)
        ends = [self.block(block, CopyState()) for block in If(op).blocks]
        return functools.reduce(CopyState.join, ends, CopyState())

    def takes_part(self, op: Operation) -> bool:
        """True if an op is a place where threads meet, or accesses memory."""
        return has(op, Barrier, Accesses)

    def transfer(self, op: Operation, state: CopyState) -> CopyState:
        if has(op, Barrier):
            return CopyState()
        arguments = self.roots.of(op.operands[0]) - {UNKNOWN}
        if has(op, Writes):
            if op in self.barriers or state.loaded & arguments:
                self.barriers[op] = None
                state = CopyState()
            return CopyState(state.loaded, state.stored | arguments)
        if isa(op, tt.LoadOp) and _has_copies(op.results[0]) and _copies_matter(op.results[0]):
            if op in self.barriers or state.stored & arguments:
                self.barriers[op] = None
                state = CopyState()
            return CopyState(state.loaded | arguments, state.stored)
        return state
