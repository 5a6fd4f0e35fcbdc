"""What loops carry for nobody but themselves is carried no more.

    %most = scf.for ... iter_args(%m = %zero) {     nobody takes %most
      %r = tt.reduce(%x) ...
      %n = arith.maxui %m, %r
      scf.yield %n                                  becomes scf.yield %m
    }

The canonicalizer then drops %m, and what was computed for it. MLIR's `remove-dead-values` does so,
too, but asks ops for their effects, which those of ours cannot tell it; LLVM cannot drop exchanges
between threads, which a reduction has.
"""

from collections import defaultdict
from dataclasses import dataclass
from typing import ClassVar

from proton.dialect import names_of
from proton.dialect.mlir import Module, Operation, Value, scf
from proton.dialect.regions import BRANCHING, OUTSIDE, ForLoop, branches, end_of
from proton.dialect.traits import Combines, Pure, has
from proton.dialect.walk import all_ops, defining_op, functions, ops_named
from proton.passes import Pass, register


@register
@dataclass(frozen=True)
class DropDeadValues(Pass):
    """Has loops yield what they were given, where no effect follows from what they yield."""

    name: ClassVar[str] = "drop-dead-values"
    only_for: ClassVar[frozenset[str]] = names_of(scf.ForOp)

    def run(self, module: Module) -> None:
        for function in functions(module):
            used = _used(function)
            for op in ops_named(function, scf.ForOp):
                loop = ForLoop(op)
                end = end_of(loop.body)
                for number, pair in enumerate(zip(loop.iter_args, op.results, strict=True)):
                    if used.isdisjoint(pair):
                        end.operands[number] = pair[0]


def _used(function: Operation) -> set[Value]:
    """The values that effects follow from: operands of ops that have one, what decides the way of
    control, and what these are computed of."""
    sources = defaultdict[Value, list[Value]](list)  # of what a branch passes
    work: list[Value] = []
    ends = set[Operation]()
    for op in all_ops(function):
        if op.name in BRANCHING:
            ways = branches(op) or []
            for way in ways:
                for passed, received in zip(way.passed, way.received, strict=True):
                    sources[received].append(passed)
            terminators = [end_of(block) for region in op.regions for block in region.blocks]
            ends.update(terminators)
            for source, each in enumerate((op, *terminators), OUTSIDE):
                # What is not passed on decides the way: it comes first.
                most = max((len(way.passed) for way in ways if way.source == source), default=0)
                work += list(each.operands)[: len(each.operands) - most]
        elif not has(op, Pure, Combines) and op not in ends:
            work += op.operands
    used = set[Value]()
    while work:
        value = work.pop()
        if value in used:
            continue
        used.add(value)
        if value in sources:
            work += sources[value]
        elif (maker := defining_op(value)) is not None:
            work += maker.operands
    return used
