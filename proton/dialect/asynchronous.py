"""Asynchronous work, said once: which ops begin it, and which wait until it is there.

An op says so where it is defined, among its traits. Work is issued to a *queue*, of which there is
one for each kind of hardware that works by itself, and a queue ends its work in the order in which
that was issued:

    ttg.async_copy_global_to_local     Issues(COPIES, closes=False)
    ttg.async_commit_group %token, ..., %iteration?    Issues(COPIES, iteration=...)
    ttg.async_wait {pendings}          Retires(COPIES)
    ttng.async_tma_copy_global_to_local    Issues(COPIES, closes=False)
    ttng.barrier_expect %barrier, %pred, %iteration?    Issues(COPIES, condition=..., iteration=...)
    ttng.arrive_behind_copies %barrier    Issues(COPIES)
    ttng.wait_barrier                  Retires(COPIES)
    ttng.async_tma_copy_local_to_global    Issues(STORES)
    ttng.tma_store_wait {pendings}     Retires(STORES)
    ttng.warp_group_dot                Issues(DOTS)
    ttng.warp_group_dot_wait           Retires(DOTS)

What is issued up to an op that closes is one piece of work. A wait retires all pieces but the
newest `pendings`; one without that attribute retires the oldest that nothing has waited for, as a
wait for an mbarrier does.

A pass that moves work to another iteration than its own says so on the op: it is of `AHEAD`
iterations after that of the loop around it, or, ahead of the loop, of `ITERATION` of it, or, behind
the loop, of `AFTER` iterations behind its last but one.
Where that is known only when the kernel runs, an operand is the number of the iteration.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import ClassVar

from proton.dialect.attributes import AFTER, AHEAD, ITERATION, MOVED
from proton.dialect.builtin import i32_attr, integer
from proton.dialect.emit import constant, iteration_count, iteration_number
from proton.dialect.mlir import Operation, Value, arith, ir
from proton.dialect.regions import ForLoop, innermost_loop
from proton.dialect.walk import parent_of
from proton.trace.model import ONE


@dataclass(frozen=True)
class AsyncQueue:
    """A queue of asynchronous work; `work` is the kind of work, a word of the option `auto`, and
    `noun` what names call a piece of it. `loads`: it fetches data."""

    name: str
    work: str
    noun: str
    loads: bool = False


COPIES = AsyncQueue("copies", "copies", "copy", loads=True)
STORES = AsyncQueue("stores", "copies", "store")  # copies to global memory
DOTS = AsyncQueue("dots", "dots", "dot")


@dataclass(frozen=True)
class Issues:
    """Begins work of a queue, which goes on by itself. A piece of work ends with an op that
    `closes`; nothing has begun where its operand of the name `condition` is false. Where it has one
    of the name `iteration`, the work is of the iteration of that number."""

    queue: AsyncQueue
    closes: bool = True
    condition: str = ""
    iteration: str = ""
    _known: ClassVar[dict[str, "Issues"]] = {}

    def attach(self, name: str) -> None:
        """What the bindings call for each op of ours that lists it."""
        self._known[name] = self

    @classmethod
    def of(cls, op: Operation) -> "Issues | None":
        """What an op begins; None for most."""
        return cls._known.get(op.name)

    def condition_of(self, op: Operation) -> Value | None:
        """That of an op that begins this; None for one that always does."""
        return getattr(op.opview, self.condition) if self.condition else None

    def iteration_of(self, op: Operation) -> Value | None:
        """The number of the iteration that the work of an op is of, where the op has it."""
        return getattr(op.opview, self.iteration) if self.iteration else None


@dataclass(frozen=True)
class Retires:
    """Waits for work of a queue."""

    queue: AsyncQueue
    _known: ClassVar[dict[str, "Retires"]] = {}

    def attach(self, name: str) -> None:
        """What the bindings call for each op of ours that lists it."""
        self._known[name] = self

    @classmethod
    def of(cls, op: Operation) -> "Retires | None":
        """What an op waits for; None for most."""
        return cls._known.get(op.name)

    @staticmethod
    def pendings(op: Operation) -> int:
        """How many of the newest pieces a wait leaves under way; ONE for all but the oldest."""
        return int(op.attributes["pendings"].value) if "pendings" in op.attributes else ONE


# The iteration that work belongs to


def set_ahead(op: Operation, iterations: int) -> None:
    """The work of an op in a loop belongs to a later iteration."""
    op.attributes[AHEAD] = i32_attr(iterations)


def set_iteration(op: Operation, number: int) -> None:
    """The work of an op ahead of a loop belongs to this iteration of it."""
    op.attributes[ITERATION] = i32_attr(number)


class Where(Enum):
    """Where work is, seen from the loop that an iteration of it belongs to."""

    INSIDE = AHEAD
    BEFORE = ITERATION
    BEHIND = AFTER


@dataclass(frozen=True)
class WorkIteration:
    """Which iteration of a loop work belongs to: one that comes `ahead` iterations after that which
    runs, after none of it, where the loop is still to come, or after the loop's last one. Work that
    `is_moved` is there with all else of its iteration that its scopes hold."""

    ahead: int
    where: Where = Where.INSIDE
    is_moved: bool = False

    @classmethod
    def of(cls, op: Operation) -> "WorkIteration | None":
        """The iteration of an op; None for one that says nothing."""
        for where in Where:
            if where.value in op.attributes:
                return cls(int(op.attributes[where.value].value), where, MOVED in op.attributes)
        return None

    @property
    def is_before(self) -> bool:
        """True if the loop is still to come."""
        return self.where is Where.BEFORE

    @property
    def is_other(self) -> bool:
        """True if it is not the iteration that runs."""
        return self.where is not Where.INSIDE or self.ahead != 0

    def write(self, op: Operation) -> None:
        """Has an op say it."""
        op.attributes[self.where.value] = i32_attr(self.ahead)
        if self.is_moved:
            op.attributes[MOVED] = ir.UnitAttr.get()

    def number(self, op: Operation, known: Value | None = None) -> Value | None:
        """Emits the number of that iteration, an i64, for an op; None outside of loops
        that count. `known` is the number of the iteration that runs, if something else counts
        it."""
        loop = _LOOP_OF[self.where](op)
        if loop is None:
            return None
        ahead = self.ahead * ForLoop(loop).unrolled
        if self.is_before:
            return constant(ahead, integer(64))
        if self.where is Where.BEHIND:
            number = iteration_count(loop, 64)
        else:
            number = iteration_number(loop, 64) if known is None else known
        return arith.AddIOp(number, constant(ahead, integer(64))).result if ahead else number


def following_loop(op: Operation) -> Operation | None:
    """The first loop that counts behind an op in its block, or behind the branch that it is in."""
    return _nearest(op, lambda ops, place: ops[place + 1 :])


def _preceding_loop(op: Operation) -> Operation | None:
    """The last loop that counts ahead of an op, likewise."""
    return _nearest(op, lambda ops, place: ops[:place][::-1])


def _nearest(
    op: Operation, side: Callable[[list[Operation], int], list[Operation]]
) -> Operation | None:
    while True:
        ops = [view.operation for view in op.block.operations]
        found = next((o for o in side(ops, ops.index(op)) if o.name == "scf.for"), None)
        if found is not None or parent_of(op).name != "scf.if":
            return found
        op = parent_of(op)


_LOOP_OF = {
    Where.INSIDE: innermost_loop,
    Where.BEFORE: following_loop,
    Where.BEHIND: _preceding_loop,
}
