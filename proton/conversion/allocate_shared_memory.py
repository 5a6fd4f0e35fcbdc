"""Writes down where the shared memory of every op lies: what `ttg-to-llvm` reads."""

import functools
from dataclasses import dataclass
from typing import ClassVar

from proton.analysis.allocation import Allocation, allocate
from proton.analysis.call_graph import call_graph
from proton.analysis.pressure import Crowded
from proton.analysis.scratch import conversion_parts, scratch_bytes
from proton.base.targets import GPUTarget
from proton.dialect import isa, ttg
from proton.dialect.attributes import EXCHANGE_PARTS, SHARED_BYTES, SHARED_OFFSET
from proton.dialect.builtin import i32_attr
from proton.dialect.mlir import Module, Operation
from proton.layout.conversion import in_parts
from proton.passes import Pass, register


@register
@dataclass(frozen=True)
class AllocateSharedMemory(Pass):
    """`ttg.offset` (bytes) on every op with a buffer, `ttg.shared` (bytes) on every function.

    Where a function would need more than `limit` bytes, conversions that reach beyond that are done
    in parts (`ttg.exchange_parts`), as far as they can be. 0: there is no limit.

    On a `target`, programs of so many `warps` take more where as many of them fit on an SM
    nevertheless, so that their threads meet less often.
    """

    name: ClassVar[str] = "allocate-shared-memory"

    limit: int = 0
    target: GPUTarget | None = None
    warps: int = 0

    def run(self, module: Module) -> None:
        graph = call_graph(module)
        found = allocate(graph)
        while self._divided(found):
            found = allocate(graph)
        if self.target is not None:
            found = allocate(graph, functools.partial(self._room, module), found)
        for name, allocation in found.items():
            graph.functions[name].attributes[SHARED_BYTES] = i32_attr(allocation.size)
            for op, offset in allocation.offsets.items():
                op.attributes[SHARED_OFFSET] = i32_attr(offset)

    def _room(self, module: Module, function: Operation, size: int) -> int:
        """What leaves an SM as many programs, of those that it has registers for, and as much of
        its first-level cache."""
        assert self.target is not None
        facts, crowded = self.target.facts, Crowded(module, function, self.target)
        threads = self.target.warp_size * self.warps
        most = facts.most_shared(crowded.programs(size, threads, beside=0))
        return min(most, facts.most_beside_cache(crowded.programs(size, threads), size))

    def _divided(self, found: dict[str, Allocation]) -> int:
        """Gives the conversions beyond the limit twice as many parts; how many there were."""
        return sum(
            _divided(op)
            for allocation in found.values()
            for op, offset in allocation.offsets.items()
            if isa(op, ttg.ConvertLayoutOp) and 0 < self.limit < offset + allocation.sizes[op]
        )


def _divided(op: Operation) -> bool:
    """Gives a conversion twice as many parts, if it can have them and is smaller then."""
    before, parts = scratch_bytes(op), conversion_parts(op)
    count = 2 * (1 if parts is None else len(parts.registers))
    source, target = ttg.layout_of(op.operands[0].type), ttg.layout_of(op.results[0].type)
    if in_parts(source, target, count) is None:
        return False
    op.attributes[EXCHANGE_PARTS] = i32_attr(count)
    return scratch_bytes(op) < before
