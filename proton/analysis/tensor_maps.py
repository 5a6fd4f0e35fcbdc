"""Tensor maps: which the host makes before a launch, and what of a kernel's arguments they are made
of. The others the kernel makes.

A map describes a tensor by its address, sizes and strides. Where the host can compute all of these
TMA reads the map from the kernel's parameters: the address is an argument, and the others are sums
and products of arguments and constants. `formula` finds that out, `plan_of` says what the host has
to do.
"""

from collections.abc import Sequence

from proton.analysis.call_graph import function_of
from proton.analysis.scratch import stored_bytes
from proton.dialect import by_name, isa, tt, ttng
from proton.dialect.mlir import Block, Operation, Type, Value, arith, ir
from proton.dialect.traits import KeepsNumber, has
from proton.dialect.ttg import shared_layout
from proton.dialect.walk import defining_op
from proton.layout.tensor_map import (
    MAX_BOX,
    MAX_PIXELS,
    Box,
    Formula,
    TensorMapPlan,
    box_in,
    box_of,
)

_OPERATORS = by_name({arith.AddIOp: "+", arith.SubIOp: "-", arith.MulIOp: "*"})


def formula(value: Value, entry: Block) -> Formula | None:
    """An integer as the host computes it from the arguments of the block `entry`; None where that
    takes more than sums and products."""
    op = defining_op(value)
    if op is None:
        return ["argument", ir.BlockArgument(value).arg_number] if value.owner == entry else None
    if isa(op, arith.ConstantOp):
        return int(ir.IntegerAttr(op.attributes["value"]).value)
    if isa(op, arith.TruncIOp):
        kept = formula(op.operands[0], entry)
        return None if kept is None else ["low", op.results[0].type.width, kept]
    # A size or stride of an argument's is an argument once descriptors are unpacked.
    if has(op, KeepsNumber) or isa(op, tt.DescriptorSizeOp, tt.DescriptorStrideOp):
        return formula(op.operands[0], entry)
    if op.name not in _OPERATORS:
        return None
    sides = _formulas(op.operands, entry)
    return None if sides is None else [_OPERATORS[op.name], *sides]


def _formulas(values: Sequence[Value], entry: Block) -> list[Formula] | None:
    """Those of several integers; None where one has none."""
    found = [formula(value, entry) for value in values]
    known = [each for each in found if each is not None]
    return known if len(known) == len(found) else None


def box_of_map(type_: Type) -> Box | None:
    """How TMA copies blocks of a map, or of a descriptor; None where it cannot."""
    block = type_.target
    element = block.element_type
    if not isinstance(element, ir.FloatType | ir.IntegerType) or element.width < 8:
        return None
    # Of floats that TMA does not know it cannot make a NaN.
    if type_.outside == "nan" and not (isinstance(element, ir.FloatType) and element.width > 8):
        return None
    shape, size = tuple(block.shape), stored_bytes(element)
    if block.encoding is not None:  # the author says how blocks lie in memory
        rows = MAX_PIXELS if isinstance(type_, ttng.TensorMapIm2colType) else MAX_BOX
        return box_in(shape, size, shared_layout(block.encoding, shape), rows)
    return box_of(shape, size)


def plan_of(op: Operation) -> TensorMapPlan | None:
    """What the host makes the map of a `ttng.tensor_map` of; None where it cannot."""
    entry = _entry(op)
    base, *numbers = op.operands
    type_ = op.results[0].type
    rank, box = type_.rank, box_of_map(type_)
    if defining_op(base) is not None or base.owner != entry or box is None:
        return None
    formulas = _formulas(numbers, entry)
    if formulas is None:
        return None
    plan: TensorMapPlan = {
        "base": int(ir.BlockArgument(base).arg_number),
        "sizes": formulas[:rank],
        "strides": [*formulas[rank : 2 * rank - 1], 1],
        "element": type_.loaded,
        "bytes": box.element_bytes,
        "box": list(box.sizes),
        "swizzle": box.swizzle,
        "padding": type_.outside,
    }
    if pixels := formulas[2 * rank - 1 :]:
        plan["pixels"] = pixels
    return plan


def is_made_by_kernel(op: Operation) -> bool:
    """True if an op is a `ttng.tensor_map` that the host cannot make."""
    return isa(op, ttng.TensorMapOp) and plan_of(op) is None


def _entry(op: Operation) -> Block:
    """The first block of the function that an op is in."""
    return function_of(op).regions[0].blocks[0]
