"""The ops of `tt` whose result at one place depends on many elements: reductions, scans,
histograms, gathers.
"""

from typing import Any

from proton.dialect.builtin import integer
from proton.dialect.diagnostics import (
    block_type,
    check_block,
    check_element,
    check_shape,
    check_types,
    element_of,
    reject,
    shape_of,
)
from proton.dialect.mlir import (
    AnyType,
    Attribute,
    Block,
    Operand,
    Operation,
    OpView,
    Region,
    Result,
    ir,
)
from proton.dialect.traits import Combines, LayoutAnchor, Pure, Speculatable, Terminates
from proton.dialect.tt_core import TT

MAX_REDUCED = 8  # sources of one reduction or scan

# The bindings bind the constraint of a variadic group once per op, so its operands could not
# differ in type; a reduction has up to MAX_REDUCED optional operands and results in its place.


def segments(count: int, most: int = MAX_REDUCED) -> Attribute:
    """The segment sizes of the first `count` of `most` optional operands or results."""
    return ir.DenseI32ArrayAttr.get([1] * count + [0] * (most - count))


def add_optional(body: dict[str, Any], most: int, **kinds: Any) -> None:
    """Declares in a class's body `name0`, `name1`, ...: optional operands or results."""
    annotations = body.setdefault("__annotations__", {})
    for position in range(most):
        for name, kind in kinds.items():
            annotations[f"{name}{position}"] = kind[AnyType] | None
            body[f"{name}{position}"] = None


class ReduceOp(TT.Operation, name="reduce", traits=[Combines, Pure, Speculatable]):
    """`tt.reduce %src0, %src1, ... {axis}` with a region that combines two elements of each."""

    axis: ir.IntegerAttr
    combine: Region
    add_optional(locals(), MAX_REDUCED, src=Operand, result=Result)

    @staticmethod
    def verify_invariants(op: "ReduceOp") -> bool:
        if not _verify_sources(op):
            return False
        shape, axis = shape_of(op.operation.operands[0]), op.axis.value
        return _verify_combine(op, (*shape[:axis], *shape[axis + 1 :]), "tt.reduce_return")


class ReduceReturnOp(
    TT.Operation, name="reduce_return", traits=[Pure, ir.IsTerminatorTrait, Terminates]
):
    """`tt.reduce_return %value0, %value1, ...`: ends the region of a reduce."""

    add_optional(locals(), MAX_REDUCED, value=Operand)


class ScanOp(TT.Operation, name="scan", traits=[Combines, Pure, Speculatable, LayoutAnchor]):
    """`tt.scan %src0, %src1, ... {axis, reverse}`: each element combined with all before it along
    the axis (behind it, if `reverse`); the region combines what came first with the next.
    """

    axis: ir.IntegerAttr
    reverse: ir.IntegerAttr
    combine: Region
    add_optional(locals(), MAX_REDUCED, src=Operand, result=Result)

    @staticmethod
    def verify_invariants(op: "ScanOp") -> bool:
        return _verify_sources(op) and _verify_combine(
            op, shape_of(op.operation.operands[0]), "tt.scan_return"
        )


class ScanReturnOp(
    TT.Operation, name="scan_return", traits=[Pure, ir.IsTerminatorTrait, Terminates]
):
    """`tt.scan_return %value0, %value1, ...`: ends the region of a scan."""

    add_optional(locals(), MAX_REDUCED, value=Operand)


def _verify_sources(op: OpView) -> bool:
    """There is a source, all have one shape, and the axis is one of its dimensions."""
    sources = list(op.operation.operands)
    if not sources:
        return reject(op, "must have a source, got none")
    shape, axis = shape_of(sources[0]), op.axis.value
    if not 0 <= axis < len(shape):
        return reject(op, f"axis must lie in [0, {len(shape)}), got {axis}")
    return all(shape_of(source) == shape for source in sources) or reject(
        op, "all sources must have one shape"
    )


def _verify_combine(op: OpView, shape: tuple[int, ...], terminator: str) -> bool:
    """The results are blocks of `shape`, and the region combines two elements of each source.

    Layouts are free: on a GPU the sources have one and the results another.
    """
    elements = [element_of(source) for source in op.operation.operands]
    found = [(shape_of(result), element_of(result)) for result in op.operation.results]
    if found != [(shape, element) for element in elements]:
        return check_types(
            op, "results", op.operation.results, [block_type(shape, e) for e in elements]
        )
    if len(op.combine.blocks) != 1:
        return reject(op, f"the region must have one block, got {len(op.combine.blocks)}")
    block = op.combine.blocks[0]
    if not check_types(op, "the region's arguments", block.arguments, elements * 2):
        return False
    end = end_of_region(op, block, terminator)
    return end is not None and check_types(op, "the region's values", end.operands, elements)


def end_of_region(op: Operation, block: Block, terminator: str) -> Operation | None:
    """The terminator of a region, which must be of that name; None where it is rejected."""
    last = list(block.operations)[-1:]
    if last and last[0].operation.name == terminator:
        return last[0].operation
    reject(op, f"the region must end with {terminator}")
    return None


class HistogramOp(TT.Operation, name="histogram", traits=[Pure, Speculatable, LayoutAnchor]):
    """`tt.histogram %src, %mask?`: how often each of 0, 1, ... is in a block of integers.

    The result is tensor<bins x i32>; what lies in no bin, or is masked off, is not counted.
    """

    src: Operand[AnyType]
    result: Result[AnyType]
    mask: Operand[AnyType] | None = None

    @staticmethod
    def verify_invariants(op: "HistogramOp") -> bool:
        i1, i32 = (integer(bits) for bits in (1, 32))
        if len(shape_of(op.src)) != 1 or not isinstance(element_of(op.src), ir.IntegerType):
            return reject(op, f"operand 0 must be a row of integers, got {op.src.type}")
        if len(shape_of(op.result)) != 1:
            return reject(op, f"result must have one dimension, got {shape_of(op.result)}")
        return check_element(op, "result", op.result, i32) and (
            op.mask is None or check_block(op, "mask", op.mask, shape_of(op.src), i1)
        )


class GatherOp(TT.Operation, name="gather", traits=[Pure, Speculatable]):
    """`tt.gather %src, %index {axis}`: result[i, j] = src[index[i, j], j] along axis 0."""

    src: Operand[AnyType]
    index: Operand[AnyType]
    axis: ir.IntegerAttr
    result: Result[AnyType]

    @staticmethod
    def verify_invariants(op: "GatherOp") -> bool:
        source, index, axis = shape_of(op.src), shape_of(op.index), op.axis.value
        if not 0 <= axis < len(source):
            return reject(op, f"axis must lie in [0, {len(source)}), got {axis}")
        if (*index[:axis], source[axis], *index[axis + 1 :]) != source:
            return reject(op, f"only sizes along axis {axis} may differ, got {source} and {index}")
        if not isinstance(element_of(op.index), ir.IntegerType):
            return reject(op, f"index must be integers, got {element_of(op.index)}")
        return check_shape(op, "result", op.result, index) and check_element(
            op, "result", op.result, element_of(op.src)
        )
