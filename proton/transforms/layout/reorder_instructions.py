"""Puts ops that make values larger, or move them, next to the first op that needs the result.

A conversion to a wider type doubles the registers that its operand takes, and a layout conversion
needs its operand and its result at once. Loads stay where they are: early is good for them.
"""

from dataclasses import dataclass
from typing import ClassVar

from proton.analysis.cost import widens
from proton.dialect import isa, ttg
from proton.dialect.mlir import Module, Operation
from proton.dialect.walk import all_ops, parent_of, users
from proton.passes import Pass, register


@register
@dataclass(frozen=True)
class ReorderInstructions(Pass):
    """Sinks conversions of tensors within their block, to right before the first use."""

    name: ClassVar[str] = "tritongpu-reorder-instructions"
    makes: ClassVar[frozenset[str] | None] = frozenset()

    def run(self, module: Module) -> None:
        # The last first, so that a chain of conversions sinks as one.
        for op in reversed(all_ops(module)):
            if _sinks(op):
                first = _first_use(op)
                if first is not None:
                    op.move_before(first)


def _sinks(op: Operation) -> bool:
    return isa(op, ttg.LocalAllocOp, ttg.ConvertLayoutOp) or widens(op)


def _first_use(op: Operation) -> Operation | None:
    """The first op of `op`'s block that uses its result, itself or somewhere inside of it."""
    first = None
    for user in users(op.results[0]):
        while user.block != op.block:
            user = parent_of(user)
        if first is None or user.is_before_in_block(first):
            first = user
    return first
