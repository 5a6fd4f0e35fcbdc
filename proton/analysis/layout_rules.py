"""How the layouts of an op's operands and results belong together.

`result_layout` goes forward, `operand_layouts` backward; None where an op has no such rule, or
none in that direction. The rules are those of `proton/layout/shapes.py`, found by the op's name.
"""

from proton.dialect import isa, tt
from proton.dialect.diagnostics import shape_of
from proton.dialect.mlir import Operation, arith, ir
from proton.dialect.traits import Elementwise, has
from proton.dialect.ttg import is_tensor
from proton.layout import LinearLayout, shapes


def _axis(op: Operation) -> int:
    return int(ir.IntegerAttr(op.attributes["axis"]).value)


def _order(op: Operation) -> tuple[int, ...]:
    return tuple(ir.DenseI64ArrayAttr(op.attributes["order"]))


def result_layout(op: Operation, source: LinearLayout) -> LinearLayout | None:
    """The layout of the op's results, if its tensor operands have `source`."""
    if has(op, Elementwise):
        return source
    match op.name:
        case tt.ExpandDimsOp.OPERATION_NAME:
            return shapes.expand_dims(source, _axis(op))
        case tt.TransOp.OPERATION_NAME:
            return shapes.trans(source, _order(op))
        case tt.ReshapeOp.OPERATION_NAME:
            return shapes.reshape(source, shape_of(op.results[0]))
        case tt.JoinOp.OPERATION_NAME:
            return shapes.join(source)
        case tt.SplitOp.OPERATION_NAME:
            return None if shapes.split_bit(source) is None else shapes.split(source)
        case tt.ReduceOp.OPERATION_NAME:
            return shapes.reduce(source, _axis(op))
    return None


def operand_layouts(op: Operation, result: LinearLayout) -> list[LinearLayout] | None:
    """The layouts of the op's tensor operands that give its results the layout `result`."""
    if has(op, Elementwise):
        return [result for operand in op.operands if is_tensor(operand.type)]
    if isa(op, arith.ConstantOp, tt.MakeRangeOp, tt.SplatOp):
        return []
    match op.name:
        case tt.ExpandDimsOp.OPERATION_NAME:
            return [shapes.expand_dims_source(result, _axis(op))]
        case tt.BroadcastOp.OPERATION_NAME:
            return [shapes.broadcast_source(result, shape_of(op.operands[0]))]
        case tt.TransOp.OPERATION_NAME:
            return [shapes.trans_source(result, _order(op))]
        case tt.ReshapeOp.OPERATION_NAME:
            return [shapes.reshape(result, shape_of(op.operands[0]))]
        case tt.JoinOp.OPERATION_NAME if shapes.split_bit(result) == 0:
            return [shapes.split(result)] * 2
    return None
