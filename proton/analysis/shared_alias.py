"""Which allocations of shared memory a value may name.

A `!ttg.memdesc` comes from a `ttg.local_alloc`; loops, branches and selections pass it on. The
answer goes forward to a fixpoint, so a buffer that a loop rotates is known to be any of those it
rotates with.
"""

from collections.abc import Sequence
from typing import Any

from proton.analysis.dataflow import ForwardDataflow
from proton.dialect.regions import Branch
from proton.dialect.ttg import MemDescType

Aliases = dict[Any, frozenset[Any]]  # value -> the `ttg.local_alloc` ops it may name


def shared_aliases(function: Any) -> Aliases:
    """The allocations behind every value of type `!ttg.memdesc` in a function."""
    found = _Dataflow()
    found.block(function.regions[0].blocks[0], None)
    return found.known


class _Dataflow(ForwardDataflow[None]):
    def __init__(self) -> None:
        self.known: Aliases = {}

    def transfer(self, op: Any, state: None) -> None:
        if op.name == "ttg.local_alloc":
            self.known[op.results[0]] = frozenset([op])
        elif op.name == "arith.select":
            _, *chosen = op.operands
            self._pass(chosen, [op.results[0]] * 2)

    def flow(self, branch: Branch) -> bool:
        return self._pass(branch.passed, branch.received)

    def _pass(self, sources: Sequence[Any], targets: Sequence[Any]) -> bool:
        is_new = False
        for source, target in zip(sources, targets, strict=True):
            if isinstance(source.type, MemDescType):
                known = self.known.get(target, frozenset())
                both = known | self.known.get(source, frozenset())
                if both != known:
                    self.known[target], is_new = both, True
        return is_new
