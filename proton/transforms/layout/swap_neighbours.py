"""Swaps neighbours along an axis of two, where their exclusive or said which they are.

Networks, as those that sort, find an element's partner so:

    %r = tt.reduce %x {axis}, xor
    %e = tt.expand_dims %r {axis}          =>     %y = ttg.swap %x {axis}
    %b = tt.broadcast %e
    %y = arith.xori %x, %b

A maximum of 64 bits is a comparison and a selection of each half. So lanes that put two such
elements in order compare once, and select once:

    %m = arith.maxui %x, %y                %g = arith.cmpi ugt, %x, %y
    %n = arith.minui %x, %y         =>     %o = arith.xori %g, %larger
    %z = arith.select %larger, %m, %n      %z = arith.select %o, %y, %x
"""

from dataclasses import dataclass
from typing import ClassVar

from proton.analysis.scratch import axis_of
from proton.dialect import by_name, isa, names_of, tt, ttg
from proton.dialect.builtin import i32_attr
from proton.dialect.diagnostics import element_of, shape_of
from proton.dialect.mlir import Module, Value, arith
from proton.dialect.ttg import is_tensor, layout_of
from proton.dialect.walk import all_ops, before, defining_op, replace, users
from proton.layout.reduction import plan_reduction
from proton.passes import Pass, register

_WIDE_BITS = 64
_ORDERS = by_name(
    {
        arith.MaxSIOp: (arith.MinSIOp, arith.CmpIPredicate.sgt),
        arith.MaxUIOp: (arith.MinUIOp, arith.CmpIPredicate.ugt),
    }
)


@register
@dataclass(frozen=True)
class SwapNeighbours(Pass):
    """Swaps what a warp has both of. What the swap replaces is left without uses."""

    name: ClassVar[str] = "tritongpu-swap-neighbours"
    only_for: ClassVar[frozenset[str]] = names_of(tt.ReduceOp)

    def run(self, module: Module) -> None:
        for op in all_ops(module):
            if not isa(op, arith.XOrIOp) or not is_tensor(op.results[0].type):
                continue
            for value, pairs in (op.operands, reversed(op.operands)):
                if (axis := _axis(value, pairs)) is not None:
                    with before(op):
                        swapped = ttg.SwapOp(value, i32_attr(axis), value.type).result
                    op.results[0].replace_all_uses_with(swapped)
                    if plan_reduction(layout_of(value.type), axis).lanes:
                        _compare_once(value, swapped)
                    break


def _compare_once(value: Value, swapped: Value) -> None:
    """Puts elements of 64 bits in order by one comparison."""
    if element_of(value).width != _WIDE_BITS:
        return
    for op in users(swapped):
        if op.name not in _ORDERS or set(op.operands) != {value, swapped}:
            continue
        least, predicate = _ORDERS[op.name]
        for select in users(op.results[0]):
            if not isa(select, arith.SelectOp) or select.operands[1] != op.results[0]:
                continue
            other = defining_op(select.operands[2])
            if isa(other, least) and set(other.operands) == {value, swapped}:
                with before(select):
                    greater = arith.CmpIOp(predicate, value, swapped).result
                    is_other = arith.XOrIOp(greater, select.operands[0]).result
                    found = arith.SelectOp(is_other, swapped, value).result
                replace(select, [found])


def _axis(value: Value, pairs: Value) -> int | None:
    """The axis of two along which `pairs` are the exclusive or of both elements of `value`; None
    where they are not, or several warps have them."""
    ops = []
    for kind in (tt.BroadcastOp, tt.ExpandDimsOp, tt.ReduceOp):
        op = defining_op(pairs)
        if not isa(op, kind):
            return None
        ops.append(op)
        pairs = op.operands[0]
    _, expand, reduction = ops
    axis = axis_of(reduction)
    first, *others = [view.operation for view in reduction.regions[0].blocks[0].operations]
    is_xor = isa(first, arith.XOrIOp) and len(others) == 1 and len(set(first.operands)) == 2
    if pairs != value or axis_of(expand) != axis or not is_xor or shape_of(value)[axis] != 2:
        return None
    return axis if plan_reduction(layout_of(value.type), axis).exchange is None else None
