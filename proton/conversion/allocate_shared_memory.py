"""Writes down where the shared memory of every op lies: what `ttg-to-llvm` reads."""

import functools
from dataclasses import dataclass
from typing import ClassVar

from proton.analysis.allocation import Allocation, allocate
from proton.analysis.call_graph import CallGraph, call_graph
from proton.analysis.pressure import Crowded
from proton.analysis.scratch import conversion_parts, scratch_bytes
from proton.base.targets import GPUTarget
from proton.dialect import isa, ttg
from proton.dialect.attributes import EXCHANGE_PARTS, SHARED_BYTES, SHARED_OFFSET
from proton.dialect.builtin import i32_attr
from proton.dialect.mlir import Attribute, Module, Operation
from proton.dialect.regions import loop_around
from proton.dialect.traits import Loop, has
from proton.dialect.walk import all_ops
from proton.layout.conversion import in_parts
from proton.passes import Pass, register

_HALVINGS = 2  # of the largest conversions


@register
@dataclass(frozen=True)
class AllocateSharedMemory(Pass):
    """`ttg.offset` (bytes) on every op with a buffer, `ttg.shared` (bytes) on every function.

    Where a function would need more than `limit` bytes, conversions that reach beyond that are done
    in parts (`ttg.exchange_parts`), as far as they can be. 0: there is no limit.

    On a `target`, conversions outside of loops are done in parts, too, where loops of programs of
    so many `warps` spill registers, of which more fit into the first-level cache then. Programs
    take more where as many of them fit nevertheless, so that their threads meet less often.
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
            for name in graph.functions:
                self._make_room(module, graph, name)
            found = allocate(graph, functools.partial(self._room, module))
        for name, allocation in found.items():
            graph.functions[name].attributes[SHARED_BYTES] = i32_attr(allocation.size)
            for op, offset in allocation.offsets.items():
                op.attributes[SHARED_OFFSET] = i32_attr(offset)

    def _make_room(self, module: Module, graph: CallGraph, name: str) -> None:
        """Gives conversions outside of loops the fewest parts with which most fits on an SM, where
        a loop spills registers."""
        assert self.target is not None
        facts, threads = self.target.facts, self.target.warp_size * self.warps
        function, now = graph.functions[name], allocate(graph)[name]
        ops = [op for op in now.offsets if isa(op, ttg.ConvertLayoutOp) and not loop_around(op)]
        loops = [op for op in all_ops(function) if has(op, Loop)]
        if not ops or not loops:
            return
        crowded = Crowded(module, function, self.target)
        if not any(crowded.between(loop, all_ops(loop)[-1:]) for loop in loops):
            return

        def fits(size: int) -> tuple[int, int]:
            programs = crowded.programs(size, threads)
            return programs, -facts.carveout(programs, size)

        def parts() -> list[Attribute | None]:
            return [op.attributes.get(EXCHANGE_PARTS) for op in ops]

        best, chosen = fits(now.size), parts()
        for _ in range(_HALVINGS):
            most = max(map(scratch_bytes, ops))
            divided = [_divided(op) for op in ops if scratch_bytes(op) == most]
            if best == fits(0) or not all(divided):
                break
            if (found := fits(allocate(graph)[name].size)) > best:
                best, chosen = found, parts()
        for op, attribute in zip(ops, chosen, strict=True):
            if attribute is not None:
                op.attributes[EXCHANGE_PARTS] = attribute
            elif EXCHANGE_PARTS in op.attributes:
                del op.attributes[EXCHANGE_PARTS]

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
