"""Forward dataflow through structured control flow.

The driver follows a function's ops in order, and at an op with branches (proton/dialect/regions.py)
goes along them, again and again where they lead back, until nothing changes. Two kinds of facts
take part, and an analysis may have either or both:

- a *state* goes from op to op, and is joined where ways meet (what is pending at a point);
- facts about *values* go from the values that a branch passes to those that receive them.

An analysis says which ops do anything (`takes_part`), what they do (`transfer`), how states are
joined (`join`), and what a branch hands on (`flow`), which must be monotone for the iteration to
end.
"""

from functools import cached_property
from typing import Generic, TypeVar

from proton.dialect.mlir import Block, Operation
from proton.dialect.regions import BRANCHING, OUTSIDE, Branch, branches

State = TypeVar("State")


class ForwardDataflow(Generic[State]):
    """The driver; `State` is None for an analysis of values alone."""

    def takes_part(self, op: Operation) -> bool:
        """False for an op that has no branches and changes nothing; asked once of each op."""
        return True

    def transfer(self, op: Operation, state: State) -> State:
        """The state behind an op that takes part and has no branches."""
        raise NotImplementedError

    def join(self, left: State, right: State) -> State:
        """What holds whichever way was taken."""
        return left

    def enter(self, op: Operation) -> None:
        """An op with branches begins."""

    def flow(self, branch: Branch) -> bool:
        """Values go along a branch; gives whether anything is known anew."""
        return False

    def block(self, block: Block, state: State) -> State:
        """The state at the end of a block."""
        if (ops := self._taking_part.get(block)) is None:
            every = [view.operation for view in block.operations]
            ops = [op for op in every if op.name in BRANCHING or self.takes_part(op)]
            self._taking_part[block] = ops
        for op in ops:
            state = self.visit(op, state)
        return state

    @cached_property
    def _taking_part(self) -> dict[Block, list[Operation]]:
        """The ops of each block so far that have branches, or take part."""
        return {}

    def visit(self, op: Operation, state: State) -> State:
        """The state behind an op."""
        ways = branches(op)
        if ways is None:
            return self.transfer(op, state)
        self.enter(op)
        entries: dict[int, State] = {}  # at the beginning of each region, and behind the op
        pending: set[int] = set()

        def leave(source: int, at: State) -> None:
            for branch in ways:
                if branch.source != source:
                    continue
                target, is_new = branch.target, self.flow(branch)
                if target in entries:
                    joined = self.join(entries[target], at)
                    is_new |= joined != entries[target]
                else:
                    joined, is_new = at, True
                if is_new:
                    entries[target] = joined
                    pending.add(target)

        leave(OUTSIDE, state)
        while regions := pending - {OUTSIDE}:
            region = min(regions)
            pending.remove(region)
            leave(region, self.block(op.regions[region].blocks[0], entries[region]))
        return entries[OUTSIDE]
