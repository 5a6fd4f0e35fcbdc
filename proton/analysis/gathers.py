"""Loads whose addresses follow from data: no layout makes them wider.

    %x = tt.load %codes
    %p = tt.addptr %table, %x
    %y = tt.load %p             lanes read unrelated elements, in whichever order they have them

Addresses follow from data where they are computed, element by element, from what was loaded or
from floating-point numbers, and from no range of indices. What a choice by data is made of may be
constants, as in a bisection; a choice between offsets and a constant is no gather.
"""

from proton.analysis.cost import Cost, cost
from proton.dialect import isa, tt, ttg
from proton.dialect.mlir import Operation, Value, arith, ir, scf
from proton.dialect.regions import ForLoop
from proton.dialect.traits import Elementwise, has
from proton.dialect.ttg import is_tensor
from proton.dialect.walk import all_ops, defining_op


def gathered(function: Operation) -> set[Value]:
    """What is loaded, in a function, from addresses that follow from data alone."""
    loads = [op for op in all_ops(function) if isa(op, tt.LoadOp)]
    return {op.results[0] for op in loads if _Sources().are_data(op.operands[0])}


class _Sources:
    """What values are computed from."""

    def __init__(self) -> None:
        self.seen: set[Value] = set()
        self.has_data = self.has_ranges = False

    def are_data(self, value: Value) -> bool:
        self._visit(value)
        return self.has_data and not self.has_ranges

    def _visit(self, value: Value) -> None:
        if value in self.seen or not is_tensor(value.type):
            return
        self.seen.add(value)
        op = defining_op(value)
        if op is None:
            self._carried(ir.BlockArgument(value))
        elif isa(op, scf.ForOp):
            self._visit(ForLoop(op).iter_args[ir.OpResult(value).result_number])
        elif isa(op, tt.LoadOp) or (has(op, Elementwise) and cost(op) > Cost.INDEX):
            self.has_data = True
        elif has(op, Elementwise) or isa(op, ttg.ConvertLayoutOp, tt.ReshapeOp):
            for operand in op.operands:
                self._visit(operand)
        elif not isa(op, tt.SplatOp, arith.ConstantOp):
            # A range, rows or columns of one, or what nobody knows.
            self.has_ranges = True

    def _carried(self, argument: ir.BlockArgument) -> None:
        """What a loop carries: where it begins, and what an iteration makes of it."""
        parent = argument.owner.owner
        if not isa(parent, scf.ForOp):
            self.has_ranges = True
            return
        loop, number = ForLoop(parent), argument.arg_number - 1
        self._visit(loop.init_args[number])
        self._visit(loop.yielded[number])
