"""Changing the layout of a value that is already in use."""

from proton.dialect.mlir import Operation, Type, Value, ir
from proton.dialect.ttg_core import ConvertLayoutOp, with_layout
from proton.layout import LinearLayout


def set_constant_type(op: Operation, type_: Type | None = None) -> None:
    """Makes a constant's value agree with its result's type, or gives both another type."""
    result = op.results[0]
    if type_ is not None:
        result.set_type(type_)
    value = op.attributes["value"]
    if ir.DenseElementsAttr(value).is_splat:
        splat = ir.DenseElementsAttr(value).get_splat_value()
        op.attributes["value"] = ir.DenseElementsAttr.get_splat(result.type, splat)
        return
    raise ValueError("a constant tensor must be filled with one value")


def convert(value: Value, layout: LinearLayout) -> Value:
    """The value in a layout; a conversion at the insertion point if it has another one."""
    type_ = with_layout(value.type, layout)
    return value if type_ == value.type else ConvertLayoutOp(value, type_).result


def retype_result(op: Operation, number: int, layout: LinearLayout) -> None:
    """Gives a result the layout the op makes; users go on seeing the layout they know."""
    result = op.results[number]
    known, made = result.type, with_layout(result.type, layout)
    if known == made:
        return
    uses = list(result.uses)
    result.set_type(made)
    with ir.InsertionPoint.after(op), op.location:
        converted = ConvertLayoutOp(result, known).result
    for use in uses:
        use.owner.operation.operands[use.operand_number] = converted
