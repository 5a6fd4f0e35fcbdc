"""Forms fused multiply-adds: one rounding, one instruction.

It is done here, once, before anything measures values or keeps them in place, so that what is
computed does not depend on what is measured: LLVM fuses nothing by itself.
"""

from dataclasses import dataclass
from typing import ClassVar

from proton.dialect import isa, names_of, tt
from proton.dialect.attributes import FUSED
from proton.dialect.diagnostics import element_of
from proton.dialect.emit import create, remade
from proton.dialect.mlir import Module, Operation, Value, arith, ir, math
from proton.dialect.walk import before, defining_op, ops_named, replace
from proton.passes import Pass, register


@register
@dataclass(frozen=True)
class FuseMultiplyAdd(Pass):
    """`a * b + c` becomes `math.fma a, b, c`, and so do `c + a * b`, `a * b - c` and `c - a * b`,
    for products that are used once. A sum of such products in fp32 or fp64 is marked `ttg.fused`:
    each thread adds up its own with multiply-adds."""

    name: ClassVar[str] = "fuse-multiply-add"
    only_for: ClassVar[frozenset[str]] = names_of(arith.AddFOp, arith.SubFOp, tt.ReduceOp)

    def run(self, module: Module) -> None:
        ops = ops_named(module, arith.AddFOp, arith.SubFOp, tt.ReduceOp)
        reductions = [op for op in ops if isa(op, tt.ReduceOp)]  # asked before some ops are gone
        for op in ops:
            if isa(op, tt.ReduceOp):
                continue
            left, right = op.operands
            if (product := _product(left)) is not None:
                _fuse(op, product, right, negate=("addend" if isa(op, arith.SubFOp) else ""))
            elif (product := _product(right)) is not None:
                _fuse(op, product, left, negate=("factor" if isa(op, arith.SubFOp) else ""))
        for op in reductions:
            if _is_sum(op):
                _multiply_reshaped(op)
            if _is_sum(op) and (product := _product(op.operands[0], least_bits=32)) is not None:
                op.attributes[FUSED] = ir.UnitAttr.get()
                product.move_before(op)
                product.location = op.location  # the work is the reduction's


def _is_sum(op: Operation) -> bool:
    body = [view.operation for view in op.regions[0].blocks[0].operations]
    return len(op.operands) == 1 and len(body) == 2 and isa(body[0], arith.AddFOp)


def _multiply_reshaped(op: Operation) -> None:
    """Has a reduction of a product that was reshaped take the product of what is reshaped."""
    reshape = defining_op(op.operands[0])
    if not isa(reshape, tt.ReshapeOp) or len(list(reshape.results[0].uses)) != 1:
        return
    product = _product(reshape.operands[0], least_bits=32)
    if product is not None:
        type_ = reshape.results[0].type
        with before(op):
            sides = [remade(reshape, [type_], [side]).result for side in product.operands]
            op.operands[0] = remade(product, [type_], sides).result
        reshape.erase()
        product.erase()


def _product(value: Value, least_bits: int = 16) -> Operation | None:
    """The multiplication behind a value of so many bits that nothing else uses."""
    op = defining_op(value)
    if not isa(op, arith.MulFOp) or len(list(value.uses)) != 1:
        return None
    return op if element_of(value).width >= least_bits else None


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
    product.erase()


def _negated(value: Value) -> Value:
    return create(arith.NegFOp, value.type, value)
