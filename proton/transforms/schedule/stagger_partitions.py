"""Groups of warps that share tensor cores begin their loops one after the other.

    warps 0 to 3: dots i │ work i │ dots i + 1 │ ...
    warps 4 to 7:        │ dots i │ work i     │ dots i + 1 │ ...

Groups that begin together ask for tensor cores together: the dots of one are queued between those
of the other, both compute what lies between dots at the same time, and tensor cores stand still
meanwhile. Nothing takes them out of step again. So each group waits, ahead of its loop, for as long
as tensor cores take for an iteration of those before it.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from proton.analysis.cost import dot_cycles, special_cycles
from proton.base.targets import GPUTarget
from proton.dialect import isa, names_of
from proton.dialect.builtin import i32_attr
from proton.dialect.mlir import Module, Operation, Region
from proton.dialect.traits import Loop, has
from proton.dialect.ttg import MeetOp, WarpSpecializeOp
from proton.dialect.ttng import DelayOp
from proton.dialect.walk import all_ops, before, ops_named, parent_of
from proton.passes import Pass, register
from proton.schedule.dots import DOT
from proton.schedule.partitions import LEAST_WORK


@register
@dataclass(frozen=True)
class StaggerPartitions(Pass):
    """Delays of groups of warps whose loops compute something between dots."""

    name: ClassVar[str] = "stagger-partitions"
    only_for: ClassVar[frozenset[str]] = names_of(WarpSpecializeOp)

    target: GPUTarget

    def run(self, module: Module) -> None:
        if not self.target.facts.dot_per_cycle:
            return
        for op in ops_named(module, WarpSpecializeOp):
            if not isa(parent_of(op), WarpSpecializeOp):
                own, others = (_between_meetings(_ops(region)) for region in op.regions)
                for default, workers in zip(own, others, strict=True):
                    self._stagger([default, *_partitions(workers)])

    def _stagger(self, partitions: list[list[Operation]]) -> None:
        """Delays groups of warps that run at once, given the ops of each."""
        cycles = 0.0
        for partition in partitions:
            ops = (inner for outer in partition for inner in (outer, *all_ops(outer)))
            loop = next((inner for inner in ops if _has_dots(inner)), None)
            if loop is None:
                continue
            if cycles:
                with before(loop):
                    DelayOp(i32_attr(round(cycles)))
            cycles += self._dots_of_iteration(loop)

    def _dots_of_iteration(self, loop: Operation) -> float:
        """What tensor cores take for an iteration of the innermost loop with dots; 0 where it
        computes hardly anything besides."""
        inner = next((op for op in all_ops(loop) if has(op, Loop) and _has_dots(op)), None)
        if inner is not None:
            return self._dots_of_iteration(inner)
        chip, ops = self.target.facts, list(all_ops(loop))
        dots = sum(dot_cycles(op, chip) for op in ops if isa(op, DOT))
        work = sum(special_cycles(op, chip) for op in ops)
        return dots if work >= LEAST_WORK * dots else 0


def _ops(region: Region) -> list[Operation]:
    return [view.operation for view in region.blocks[0].operations]


def _between_meetings(ops: list[Operation]) -> list[list[Operation]]:
    """The ops ahead of the first meeting of all groups, between each two, and behind the last."""
    found: list[list[Operation]] = [[]]
    for op in ops:
        if isa(op, MeetOp):
            found.append([])
        else:
            found[-1].append(op)
    return found


def _partitions(ops: list[Operation]) -> Iterator[list[Operation]]:
    """The ops of each group of warps, in the order of their warps."""
    nested = [op for op in ops if isa(op, WarpSpecializeOp)]
    yield [op for op in ops if op not in nested]
    for op in nested:
        for region in op.regions:
            yield from _partitions(_ops(region))


def _has_dots(op: Operation) -> bool:
    return has(op, Loop) and any(isa(inner, DOT) for inner in all_ops(op))
