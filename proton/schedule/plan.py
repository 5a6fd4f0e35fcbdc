"""The schedule of a loop.

A schedule is what the decisions leave and what the expander reads. It says of a loop

    how deep its pipeline is     `stages`: copies begin stages - 1 iterations before they are used
    in which order its ops run   `order`: ops of the body, and marks where something is emitted
    where dots have ended        `waits`: in their own iteration, or in the next one
    which warps do it            `groups`: all together, or groups of warps that alternate

`print(schedule)` shows it, an op a line.
"""

from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property

from proton.dialect.attributes import SCHEDULE
from proton.dialect.mlir import Block, Operation, Value, ir
from proton.dialect.regions import ForLoop
from proton.dialect.traits import Terminates, has
from proton.dialect.walk import functions, source_span
from proton.schedule.loads import Load, Slice, Tiles


class SyncPoint(Enum):
    """What the expander emits between two ops of a body."""

    LANDED = "wait for copies"  # of this iteration
    COPIES = "begin copies"  # of a later one
    TELL = "tell the other group"  # that its copies of the next iteration have landed
    RELEASE = "release the tensor cores"
    ACQUIRE = "acquire the tensor cores"


Item = Operation | SyncPoint


@dataclass
class DotWait:
    """A wait for a dot that was issued in the same iteration, or in the one before (`is_later`).
    `pendings` dots are under way behind it. Of a later one, `kept` are the allocations in the loop
    that hold the dot's operands: all iterations share their memory; and the last dot is waited for
    ahead of `asked_by`, an op behind the loop. One that is implied by another of the loop has no op
    there."""

    op: Operation
    dot: Operation
    pendings: int
    is_later: bool = False
    kept: list[Operation] = field(default_factory=list)
    asked_by: Operation | None = None  # the end of its block
    is_implied: bool = False


@dataclass
class _Copied:
    """Loads that go by way of buffers, by who copies them."""

    loads: list[Load]

    @property
    def by_threads(self) -> list[Load]:
        """Those that threads copy, in groups that they wait for."""
        return [load for load in self.loads if not load.is_tma]

    @property
    def by_tma(self) -> list[Load]:
        """Those that TMA copies, which arrive at a barrier."""
        return [load for load in self.loads if load.is_tma]

    @property
    def inputs(self) -> list[Value]:
        """What has to be known to begin the copies."""
        return [value for load in self.loads for value in load.inputs]


@dataclass
class Copies(_Copied):
    """The loads of a loop that go by way of buffers, in `stages`, and what they take: `consumers`,
    of each load the first op that takes its data; `slice`, what they are computed from; `tiles`,
    the loop around, with whose next tile the copies go on, or None. A loop that `may_be_empty` is
    entered behind a branch. Where each iteration has a buffer (`are_ahead`), all
    copies begin ahead of the loop. With a buffer less than stages (`is_tight`) a copy begins behind
    all reads of its iteration, whose buffer it takes."""

    stages: int
    consumers: list[Operation]
    slice: Slice
    tiles: Tiles | None = None
    may_be_empty: bool = False
    are_ahead: bool = False
    is_tight: bool = False

    def taken(self, loop: Operation) -> list[Value]:
        """What the copies of all iterations of a loop are computed from, op by op."""
        view, carried = ForLoop(loop), self.slice.carried
        found = [*(view.init_args[number] for number in carried), *self.inputs]
        found += [value for op in self.slice.ops for value in op.operands]
        return [*found, *(view.yielded[number] for number in carried)]

    @property
    def distance(self) -> int:
        """The iterations from the beginning of a copy to its use."""
        return self.stages - (not self.are_ahead)

    @property
    def buffers(self) -> int:
        """How many there are for each load."""
        return self.stages - self.is_tight

    @property
    def consumer(self) -> Operation:
        """The first op of the body that takes data."""
        ops = [view.operation for view in self.consumers[0].block.operations]
        return min(self.consumers, key=ops.index)

    @cached_property
    def removed(self) -> set[Operation]:
        """The ops of the loop that give way to the buffers."""
        return {op for load in self.loads for op in (load.op, *load.replaced)}


@dataclass
class Channel(_Copied):
    """Buffers between the warp that copies and those that compute. Loads with one first consumer
    share them: ahead of `filled` it waits for the copies. A buffer is empty behind `emptied`, the
    last op that reads it or that waits for a dot to have read it (None: behind the reads that stand
    ahead of `filled`), and where `is_later` that is an iteration later."""

    filled: Operation
    emptied: Operation | None
    is_later: bool = False


@dataclass
class Schedule:
    """The order of a block's items, its terminator left out, and its waits for dots. Where the
    block is the body of `loop`, an innermost one: the loads whose copies begin early, if any do,
    and how many groups of warps alternate. With `channels` a warp of its own begins the copies;
    `delayed` are then the dots that run beside those of the next iteration."""

    order: list[Item]
    loop: Operation | None = None
    waits: list[DotWait] = field(default_factory=list)
    copies: Copies | None = None
    groups: int = 1
    channels: list[Channel] = field(default_factory=list)
    delayed: list[Operation] = field(default_factory=list)
    moved: set[Operation] = field(default_factory=set)  # computations that have another place

    @classmethod
    def of(cls, block: Block, loop: Operation | None = None) -> "Schedule":
        """The order that a block has."""
        ops: list[Item] = [view.operation for view in block.operations]
        return cls(ops[:-1], loop)

    def insert(self, item: Item, at: Item, *, behind: bool = False) -> None:
        """Puts an item ahead of another one, or behind it; ahead of the terminator, at the end."""
        is_end = not isinstance(at, SyncPoint) and has(at, Terminates)
        place = len(self.order) if is_end else self.order.index(at) + behind
        self.order.insert(place, item)

    @property
    def ops(self) -> list[Operation]:
        """The ops in order."""
        return [item for item in self.order if not isinstance(item, SyncPoint)]

    def ahead_of(self, item: Item) -> list[Operation]:
        """The ops up to an item."""
        return [o for o in self.order[: self.order.index(item)] if not isinstance(o, SyncPoint)]

    def behind(self, item: Item) -> list[Operation]:
        """The ops behind an item."""
        return [o for o in self.order[self.order.index(item) + 1 :] if not isinstance(o, SyncPoint)]

    def __str__(self) -> str:
        assert self.loop is not None
        stages = self.copies.stages if self.copies is not None else 1
        roles = "producer and consumer" if self.channels else f"groups {self.groups}"
        lines = [f"{_place(self.loop)}: stages {stages}, {roles}"]
        later = {wait.op for wait in self.waits if wait.is_later or wait.dot in self.delayed}
        later |= set(self.delayed)
        ahead = set(self.copies.slice.ops) if self.copies is not None else set()
        loaded = {load.op: load for load in self.copies.loads} if self.copies is not None else {}
        pendings = {wait.op: wait.pendings for wait in self.waits}
        removed = self.copies.removed - loaded.keys() if self.copies is not None else set()
        removed |= {wait.op for wait in self.waits if wait.is_implied}
        for item in self.order:
            if item in removed:
                continue
            if isinstance(item, SyncPoint):
                stage = 0 if item is SyncPoint.COPIES else stages - 1
                lines.append(f"  {stage}  {item.value}")
                continue
            stage = stages if item in later else stages - 1
            stage = 0 if item in ahead or item in loaded else stage
            note = f"  {stages} buffers" if item in loaded else ""
            note = f"  {pendings[item]} under way" if item in pendings else note
            filled = [n for n, channel in enumerate(self.channels) if channel.filled == item]
            emptied = [n for n, c in enumerate(self.channels) if (c.emptied or c.filled) == item]
            lines += [f"  {stage}  wait until channel {n} is filled" for n in filled]
            lines.append(f"  {stage}  {item.name}  {_place(item)}{note}")
            lines += [f"  {stage}  channel {n} is empty" for n in emptied]
        return "\n".join(lines)


def take_texts(*modules: Operation) -> str:
    """Removes the schedules from the functions of a module, and of copies of it; their text."""
    found: dict[str, None] = {}
    for module in modules:
        for function in functions(module):
            if SCHEDULE in function.attributes:
                texts = ir.ArrayAttr(function.attributes[SCHEDULE])
                found |= dict.fromkeys(text.value for text in texts)
                del function.attributes[SCHEDULE]
    return "\n\n".join(found)


def _place(op: Operation) -> str:
    """Where an op stands in its source: `kernel.py:12`."""
    span = source_span(op.location)
    return f"{span.file.rpartition('/')[2]}:{span.line}"
