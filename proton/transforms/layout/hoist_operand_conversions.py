"""Operands of products that are computed from copied blocks are computed where they are multiplied.

    %x = tt.load %p               : #copied           %x = tt.load %p               : #copied
    %e = math.exp2 %x             : #copied     =>    %y = ttg.convert_layout %x    : #operand
    %y = ttg.convert_layout %e    : #operand          %e = math.exp2 %y             : #operand
    %d = ttng.mma_sync %y, %z, %c                     %d = ttng.mma_sync %e, %z, %c

A pipelined load reads shared memory in the layout that is asked for (proton/schedule/loads.py), so
that the conversion of what it loads is free. The conversion of what is computed from it writes
shared memory once more, waits for all threads, and reads it.

Where several warps have the same elements of an operand, each computes them. So the pass weighs the
instructions of a thread: those that are computed more often against those of the exchange.
"""

import functools
from dataclasses import dataclass
from typing import ClassVar

from proton.analysis.alias import Roots
from proton.analysis.axis_info import AxisInfos
from proton.analysis.reloads import stages_of
from proton.analysis.scratch import is_exchanged
from proton.base.targets import GPUTarget
from proton.dialect import isa, names_of, tt
from proton.dialect.mlir import Block, Module, Operation, Type, Value, ir, scf
from proton.dialect.regions import ForLoop
from proton.dialect.ttg import ConvertLayoutOp, is_tensor, layout_of
from proton.dialect.walk import defining_op, functions, ops_named
from proton.layout import LinearLayout
from proton.passes import Pass, register
from proton.schedule.loads import PRODUCTS, candidates, is_innermost, unwritten
from proton.transforms.layout.computed_again import (
    Again,
    Chains,
    ComputedAgain,
)


@register
@dataclass(frozen=True)
class HoistOperandConversions(Pass):
    """Conversions of operands move to the loads that a loop of `num_stages` stages copies."""

    name: ClassVar[str] = "tritongpu-hoist-operand-conversions"
    only_for: ClassVar[frozenset[str]] = names_of(scf.ForOp, ConvertLayoutOp)

    target: GPUTarget
    num_stages: int = 3

    def run(self, module: Module) -> None:
        chip = self.target.facts
        if not chip.has_async_copies:
            return
        infos: AxisInfos | None = None
        for function in functions(module):
            roots: Roots | None = None
            for loop in filter(is_innermost, ops_named(function, scf.ForOp)):
                stages, is_asked = stages_of(loop, self.num_stages)
                body = ForLoop(loop).body
                conversions = [op for op in ops_named(loop, ConvertLayoutOp) if _is_operand(op)]
                if stages < 2 or not conversions:
                    continue
                infos, roots = infos or AxisInfos(module), roots or Roots(function)
                loads = candidates(loop, infos, unwritten(loop, roots), is_asked)
                copied = {load.op for load in loads if not load.is_tma and load.other is None}
                again = ComputedAgain(functools.partial(_converted, copied))
                for conversion in conversions:
                    (value,) = conversion.operands
                    layout = layout_of(conversion.results[0].type)
                    found = _gain(value, layout, body, copied, chip.special_weight)
                    if found is not None:
                        again.replace(conversion, found.kept)


def _is_operand(conversion: Operation) -> bool:
    """True if a product takes a value that is computed, and moves between threads."""
    (value,) = conversion.operands
    if isa(defining_op(value), tt.LoadOp):
        return False
    layout = layout_of(conversion.results[0].type)
    uses = conversion.results[0].uses
    if not any(isa(use.owner.operation, *PRODUCTS) and use.operand_number < 2 for use in uses):
        return False
    return is_exchanged(value, layout)


def _converted(copied: set[Operation], op: Operation, type_: Type) -> Value | None:
    if op not in copied:
        return None
    with ir.InsertionPoint.after(op), op.location:
        return ConvertLayoutOp(op.results[0], type_).result


def _gain(
    value: Value, layout: LinearLayout, body: Block, copied: set[Operation], special: int
) -> Again | None:
    """What it takes if a value is computed from copied blocks, and costs less in the layout: in
    instructions, of which a special function is so many. Conversions of a few scales may stay."""
    accesses = layout_of(value.type).in_size("register") + layout.in_size("register")
    chains = Chains(
        copied.__contains__, lambda op: not _is_kept(op, body), special=special, keeps=True
    )
    found = chains.of(value, layout)
    return found if found is not None and found.more < accesses else None


def _is_kept(op: Operation, body: Block) -> bool:
    """True if an op ahead of the loop is more than a constant: registers would hold it twice."""
    return op.block != body and any(is_tensor(operand.type) for operand in op.operands)
