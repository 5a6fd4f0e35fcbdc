"""The ops of `tt` that compute each element by itself: arithmetic that `arith` and `math` lack, and
what the kernel's author wrote, a device function or inline assembly. The latter take and give
several blocks of one shape, or scalars.

An op that is nothing but other ops says so by `in_arith`, a function of its operands: that is all
that the lowerings and the interpreter need of it.
"""

from proton.dialect import traits as t
from proton.dialect.builtin import integer, with_element
from proton.dialect.diagnostics import check_types, element_of, reject, shape_of
from proton.dialect.emit import filled
from proton.dialect.mlir import (
    AnyType,
    Operand,
    Operation,
    OpView,
    Region,
    Result,
    Value,
    arith,
    ir,
)
from proton.dialect.tt_collective import add_optional, end_of_region
from proton.dialect.tt_core import TT, verify_same_type

MAX_ELEMENTWISE = 16  # operands, or results, of one op


def _verify_shapes(op: Operation) -> bool:
    if not op.operation.operands:
        return reject(op, "must have an operand, got none")
    return _verify_one_shape(op)


def _verify_one_shape(op: Operation) -> bool:
    """Of what has no operands, results are scalars."""
    values = [*op.operation.operands, *op.operation.results]
    shape = shape_of(op.operation.operands[0]) if op.operation.operands else ()
    return all(shape_of(value) == shape for value in values) or reject(
        op, "all operands and results must have one shape"
    )


class MulhiUIOp(TT.Operation, name="mulhiui", traits=[t.Pure, t.Speculatable, t.Elementwise]):
    """`tt.mulhiui %x, %y`: the upper half of the unsigned product."""

    lhs: Operand[AnyType]
    rhs: Operand[AnyType]
    result: Result[AnyType]

    verify_invariants = staticmethod(verify_same_type)

    @staticmethod
    def in_arith(left: Value, right: Value) -> Value:
        """In twice the width."""
        bits = element_of(left).width
        wide = with_element(left.type, integer(2 * bits))
        product = arith.MulIOp(arith.ExtUIOp(wide, left).result, arith.ExtUIOp(wide, right).result)
        upper = arith.ShRUIOp(product.result, filled(wide, bits)).result
        return arith.TruncIOp(left.type, upper).result


class PreciseSqrtOp(
    TT.Operation, name="precise_sqrt", traits=[t.Pure, t.Speculatable, t.Elementwise]
):
    """`tt.precise_sqrt %x`: rounded to nearest on every target."""

    src: Operand[AnyType]
    result: Result[AnyType]

    verify_invariants = staticmethod(verify_same_type)


class PreciseDivFOp(
    TT.Operation, name="precise_divf", traits=[t.Pure, t.Speculatable, t.Elementwise]
):
    """`tt.precise_divf %x, %y`: rounded to nearest on every target."""

    lhs: Operand[AnyType]
    rhs: Operand[AnyType]
    result: Result[AnyType]

    verify_invariants = staticmethod(verify_same_type)


class MapElementwiseOp(
    TT.Operation, name="map_elementwise", traits=[t.Combines, t.Pure, t.Elementwise]
):
    """`tt.map_elementwise %src0, %src1, ...` with a region that computes the results' elements of
    one element of each source."""

    function: Region
    add_optional(locals(), MAX_ELEMENTWISE, src=Operand, result=Result)

    @staticmethod
    def verify_invariants(op: "MapElementwiseOp") -> bool:
        if not _verify_shapes(op):
            return False
        if len(op.function.blocks) != 1:
            return reject(op, f"the region must have one block, got {len(op.function.blocks)}")
        block = op.function.blocks[0]
        inputs, outputs = (
            [element_of(value) for value in values]
            for values in (op.operation.operands, op.operation.results)
        )
        if not check_types(op, "the region's arguments", block.arguments, inputs):
            return False
        end = end_of_region(op, block, "tt.map_elementwise_return")
        return end is not None and check_types(op, "the region's values", end.operands, outputs)


class MapElementwiseReturnOp(
    TT.Operation, name="map_elementwise_return", traits=[t.Pure, ir.IsTerminatorTrait, t.Terminates]
):
    """`tt.map_elementwise_return %value0, ...`: ends the region of a `tt.map_elementwise`."""

    add_optional(locals(), MAX_ELEMENTWISE, value=Operand)


class InlineAsmOp(TT.Operation, name="inline_asm", traits=[t.Pure, t.Elementwise]):
    """`tt.inline_asm %src0, ... {asm_string, constraints, packed_element}`: assembly of the target
    on `packed_element` elements at a time, of which those below 32 bits share registers."""

    asm_string: ir.StringAttr
    constraints: ir.StringAttr
    packed_element: ir.IntegerAttr
    add_optional(locals(), MAX_ELEMENTWISE, src=Operand, result=Result)

    verify_invariants = staticmethod(_verify_one_shape)


class InlineAsmWithEffectsOp(
    TT.Operation, name="inline_asm_with_effects", traits=[t.Writes, t.Orders, t.Elementwise]
):
    """`tt.inline_asm_with_effects`: as `tt.inline_asm`, and it does more than computing: it runs
    as often as the program gets there. The bindings cannot give an op its effects by an attribute.
    """

    asm_string: ir.StringAttr
    constraints: ir.StringAttr
    packed_element: ir.IntegerAttr
    add_optional(locals(), MAX_ELEMENTWISE, src=Operand, result=Result)

    verify_invariants = staticmethod(_verify_one_shape)


ASSEMBLY: tuple[type[OpView], ...] = (InlineAsmOp, InlineAsmWithEffectsOp)
