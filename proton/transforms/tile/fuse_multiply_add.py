"""Forms fused multiply-adds: one rounding, one instruction.

It is done here, once, before anything measures values or keeps them in place, so that what is
computed does not depend on what is measured: LLVM fuses nothing by itself.
"""

from dataclasses import dataclass
from typing import ClassVar, TypeGuard

from proton.dialect import isa, names_of, tt
from proton.dialect.attributes import FUSED
from proton.dialect.diagnostics import element_of
from proton.dialect.emit import create
from proton.dialect.mlir import Module, Operation, Value, arith, ir, math
from proton.dialect.walk import before, defining_op, ops_named, replace, users
from proton.passes import Pass, register


@register
@dataclass(frozen=True)
class FuseMultiplyAdd(Pass):
    """`a * b + c` becomes `math.fma a, b, c`, and so do `c + a * b`, `a * b - c` and `c - a * b`,
    for fp32 and fp64 products that are used once. A sum of such products is marked `ttg.fused`:
    each thread adds up its own with multiply-adds. A product that is used elsewhere, too, is
    computed again by a multiply-add if its factors stay in registers anyway: it need not stay."""

    name: ClassVar[str] = "fuse-multiply-add"
    only_for: ClassVar[frozenset[str]] = names_of(arith.AddFOp, arith.SubFOp, tt.ReduceOp)

    def run(self, module: Module) -> None:
        ops = ops_named(module, arith.AddFOp, arith.SubFOp, tt.ReduceOp)
        reductions = [op for op in ops if isa(op, tt.ReduceOp)]  # asked before some ops are gone
        for op in ops:
            if isa(op, tt.ReduceOp):
                continue
            if (found := _fusable(op)) is not None:
                product, number = found
                negate = ("addend", "factor")[number] if isa(op, arith.SubFOp) else ""
                _fuse(op, product, op.operands[1 - number], negate=negate)
        for op in reductions:
            if _is_sum(op) and (factors := _product(op.operands[0])) is not None:
                op.attributes[FUSED] = ir.UnitAttr.get()
                factors.move_before(op)
                factors.location = op.location  # the work is the reduction's


def _is_sum(op: Operation) -> bool:
    body = [view.operation for view in op.regions[0].blocks[0].operations]
    return len(op.operands) == 1 and len(body) == 2 and isa(body[0], arith.AddFOp)


def _product(value: Value) -> Operation | None:
    """The multiplication behind a value that nothing else uses."""
    op = defining_op(value)
    return op if _is_product(op) and len(list(value.uses)) == 1 else None


def _is_product(op: Operation | None) -> "TypeGuard[Operation]":
    return isa(op, arith.MulFOp) and bool(element_of(op.results[0]).width >= 32)


def _fusable(addition: Operation) -> tuple[Operation, int] | None:
    """The multiplication that becomes part of an addition, and which operand it is: rather one that
    is gone then."""
    operands = list(enumerate(addition.operands))
    for number, value in operands:
        if (product := _product(value)) is not None:
            return product, number
    for number, value in operands:
        op = defining_op(value)
        is_near = _is_product(op) and op.block == addition.block
        if op is None or not is_near or operands[0][1] == operands[1][1]:
            continue
        if all(_is_held(factor, op, addition) for factor in op.operands):
            return op, number
    return None


def _is_held(factor: Value, product: Operation, addition: Operation) -> bool:
    """True if a factor of a product is in a register behind an addition, or takes none there."""
    op = defining_op(factor)
    if isa(op, arith.ConstantOp, tt.SplatOp):
        return True
    block = ir.BlockArgument(factor).owner if op is None else op.block
    if block != addition.block:
        return True  # a loop keeps what comes from outside
    others = [user for user in users(factor) if user != product and user.block == block]
    return any(addition.is_before_in_block(user) for user in others)


def _fuse(op: Operation, product: Operation, addend: Value, negate: str) -> None:
    first, second = product.operands
    with before(op):
        if negate == "addend":
            addend = _negated(addend)
        elif negate == "factor":
            first = _negated(first)
        fused = ir.Operation.create(
            math.FmaOp.OPERATION_NAME,
            results=[op.results[0].type],
            operands=[first, second, addend],
        )
    replace(op, [fused.result])
    if not list(product.results[0].uses):
        product.erase()


def _negated(value: Value) -> Value:
    return create(arith.NegFOp, value.type, value)
