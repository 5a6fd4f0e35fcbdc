"""Does elementwise work before its operands are filled or broadcast, on fewer elements."""

from dataclasses import dataclass
from typing import ClassVar

from proton.dialect import Kind, isa, tt
from proton.dialect.diagnostics import element_of, shape_of
from proton.dialect.emit import create, remade
from proton.dialect.mlir import Attribute, Module, Operation, Type, Value, arith, ir
from proton.dialect.walk import all_ops, before, constant_in, defining_op, producer_of, replace
from proton.passes import Pass, register


@register
@dataclass(frozen=True)
class ReorderBroadcast(Pass):
    """Moves `tt.splat` and `tt.broadcast` behind the elementwise ops that use them.

        %r = arith.addi (tt.splat %a), (tt.splat %b)  : tensor<128x64xi32>
    becomes
        %r = tt.splat (arith.addi %a, %b : i32)
    and, from one shape, with `tt.broadcast` in place of splats or beside them,
        %r = tt.broadcast (arith.addi %x, (tt.splat %b) : tensor<128x1xi32>)
    """

    name: ClassVar[str] = "tt-reorder-broadcast"

    def run(self, module: Module) -> None:
        for op in all_ops(module):
            if _is_elementwise(op):
                _reorder(op)


def _is_elementwise(op: Operation) -> bool:
    """True if an op does the same to each element, and carries no hint about its shape.

    A hint (`tt.divisibility`, ...) has a number for each dimension: such an op stays.
    """
    dialect, _, name = op.name.partition(".")
    return (
        (dialect in ("arith", "math") or isa(op, tt.AddPtrOp))
        and name != "constant"
        and len(op.regions) == 0
        and not any(attribute.startswith("tt.") for attribute in op.attributes)
        and all(_is_plain_tensor(result.type) for result in op.results)
    )


def _is_plain_tensor(type_: Type) -> bool:
    """True if a type is a tensor without a layout."""
    return isinstance(type_, ir.RankedTensorType) and type_.encoding is None


def _reorder(op: Operation) -> None:
    """Rewrites an op if all its tensors are fills, or broadcasts from one shape and fills."""
    tensors = [value for value in op.operands if shape_of(value)]
    shapes = set()
    for value in tensors:
        producer = defining_op(value)
        if isa(producer, tt.BroadcastOp):
            shapes.add(shape_of(producer.operands[0]))
        elif _fill(value) is None:
            return
    if tensors and len(shapes) <= 1:
        with before(op):
            if shapes:
                _compute(op, shapes.pop(), tt.BroadcastOp)
            else:
                _compute(op, (), tt.SplatOp)


def _fill(value: Value) -> Value | Attribute | None:
    """The scalar, a Value or an Attribute, that fills a tensor; None where elements differ."""
    op = defining_op(value)
    if isa(op, tt.SplatOp):
        return op.operands[0]
    return constant_in(value)


def _compute(op: Operation, shape: tuple[int, ...], widen: Kind) -> None:
    """Puts a copy of the op on tensors of `shape`, widened afterwards, in the op's place."""
    types = [_typed(shape, element_of(result)) for result in op.results]
    narrow = remade(op, types, [_narrow(value, shape) for value in op.operands])
    wide = [
        create(widen, result.type, value)
        for result, value in zip(op.results, narrow.results, strict=True)
    ]
    replace(op, wide)


def _narrow(value: Value, shape: tuple[int, ...]) -> Value:
    """The operand as a tensor of `shape`, or as a scalar; scalars stay."""
    if not shape_of(value):
        return value
    producer = producer_of(value)
    if isa(producer, tt.BroadcastOp):
        return producer.operands[0]
    fill, type_ = _fill(value), _typed(shape, element_of(value))
    assert fill is not None, "asked before"
    if isinstance(fill, ir.Attribute):
        constant = ir.DenseElementsAttr.get_splat(type_, fill) if shape else fill
        return arith.ConstantOp(type_, constant).result
    return create(tt.SplatOp, type_, fill) if shape else fill


def _typed(shape: tuple[int, ...], element: Type) -> Type:
    return ir.RankedTensorType.get(shape, element) if shape else element
