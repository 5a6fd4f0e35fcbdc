"""Products of several pairs of matrices become as many products of one pair."""

from dataclasses import dataclass
from typing import ClassVar

from proton.dialect import names_of, tt, ttg
from proton.dialect.diagnostics import element_of, shape_of
from proton.dialect.mlir import Attribute, Module, Operation, Value, ir
from proton.dialect.walk import before, ops_named, replace
from proton.passes import Pass, register


@register
@dataclass(frozen=True)
class SplitBatchedDot(Pass):
    """Takes operands of three dimensions apart along the first one, and puts results together.

        %d = tt.dot %a, %b, %c : tensor<2x16x8xf16>, tensor<2x8x16xf16>, tensor<2x16x16xf32>
    becomes
        %a0, %a1 = tt.split (tt.trans %a {order = [1, 2, 0]}); so for %b and %c
        %d0 = tt.dot %a0, %b0, %c0;  %d1 = tt.dot %a1, %b1, %c1
        %d = tt.trans (tt.join %d0, %d1) {order = [2, 0, 1]}
    """

    name: ClassVar[str] = "split-batched-dot"
    only_for: ClassVar[frozenset[str]] = names_of(tt.DotOp)

    def run(self, module: Module) -> None:
        for op in ops_named(module, tt.DotOp):
            if len(shape_of(op.results[0])) == 3:
                with before(op):
                    _split(op)


def _split(op: Operation) -> None:
    view = op.opview
    attributes = view.inputPrecision, view.maxNumImpreciseAcc
    sides = [
        _matrices(_trans(_in_layout(side, None), (1, 2, 0))) for side in (view.a, view.b, view.acc)
    ]
    products = [
        tt.DotOp(*matrices, *attributes, matrices[2].type).result
        for matrices in zip(*sides, strict=True)
    ]
    result = _trans(_joined(products), (2, 0, 1))
    replace(op, [_in_layout(result, op.results[0].type.encoding)])


def _in_layout(value: Value, layout: Attribute | None) -> Value:
    """A block of which an author chose the layout in none, and back: pairs have others."""
    if (value.type.encoding is None) == (layout is None):
        return value
    type_ = ir.RankedTensorType.get(shape_of(value), element_of(value), layout)
    return ttg.ConvertLayoutOp(value, type_).result


def _matrices(value: Value) -> list[Value]:
    """The matrices that lie along the last dimension, in order: even ones and odd ones."""
    *matrix, count = shape_of(value)
    if count == 1:
        return [_reshape(value, matrix)]
    half = ir.RankedTensorType.get([*matrix, count // 2], element_of(value))
    op = tt.SplitOp(_reshape(value, [*matrix, count // 2, 2]), half, half)
    pairs = zip(_matrices(op.lhs), _matrices(op.rhs), strict=True)
    return [matrix for pair in pairs for matrix in pair]


def _joined(values: list[Value]) -> Value:
    """Matrices along a new last dimension: what `_matrices` takes apart."""
    shape = shape_of(values[0])
    if len(values) == 1:
        return _reshape(values[0], [*shape, 1])
    even, odd = _joined(values[::2]), _joined(values[1::2])
    type_ = ir.RankedTensorType.get([*shape_of(even), 2], element_of(even))
    return _reshape(tt.JoinOp(even, odd, type_).result, [*shape, len(values)])


def _reshape(value: Value, shape: list[int]) -> Value:
    return tt.ReshapeOp(value, ir.RankedTensorType.get(shape, element_of(value))).result


def _trans(value: Value, order: tuple[int, ...]) -> Value:
    shape = shape_of(value)
    type_ = ir.RankedTensorType.get([shape[axis] for axis in order], element_of(value))
    return tt.TransOp(value, ir.DenseI64ArrayAttr.get(order), type_).result
