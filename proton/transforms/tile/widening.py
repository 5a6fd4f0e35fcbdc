"""Functions of reductions and scans on fp16 and bf16, in fp32.

What they combine is rounded once, at the end, and not at each of many steps: 256 numbers of bf16,
added up one after the other, are 4 % off. A function that looks at bits stays as it is.
"""

import functools

from proton.dialect import isa, names_of, tt
from proton.dialect.diagnostics import element_of
from proton.dialect.emit import constant
from proton.dialect.linalg import convert_elements
from proton.dialect.mlir import Block, Operation, Type, Value, arith, ir
from proton.dialect.traits import FloatArithmetic, has
from proton.dialect.walk import all_ops, before, replace

OF_BITS = names_of(arith.BitcastOp, *tt.ASSEMBLY)
_CONVERSIONS = names_of(arith.ExtFOp, arith.TruncFOp, tt.FpToFpOp)


def is_narrow(type_: Type) -> bool:
    """True if it is fp16 or bf16."""
    return isinstance(type_, ir.FloatType) and type_.width == 16


def widen(region_op: Operation) -> bool:
    """Has the function of a `tt.reduce` or `tt.scan` compute in fp32 where it does in fp16 or bf16;
    whether it did. Its operands and results are as they were."""
    block = region_op.regions[0].blocks[0]
    ops = all_ops(region_op)
    if not any(is_narrow(a.type) for a in block.arguments) or not _is_widened(ops):
        return False
    for inner in _blocks(ops, block):
        for argument in inner.arguments:
            argument.set_type(_wide(argument.type))
    for op in ops:
        if isa(op, arith.ConstantOp) and is_narrow(op.results[0].type):
            with before(op):
                number = ir.FloatAttr(op.attributes["value"]).value
                replace(op, [constant(number, ir.F32Type.get())])
            continue
        for result in op.results:
            result.set_type(_wide(result.type))
    for op in all_ops(region_op):
        for place, value in enumerate(op.operands):
            if is_narrow(value.type):  # it comes from outside
                with before(op):
                    op.operands[place] = arith.ExtFOp(ir.F32Type.get(), value).result
        if op.name in _CONVERSIONS:
            _convert(op)
    return True


def _is_widened(ops: list[Operation]) -> bool:
    """True if anything is rounded, and nothing asks for bits."""
    rounds = any(has(op, FloatArithmetic) or op.name.startswith("math.") for op in ops)
    return rounds and not any(op.name in OF_BITS for op in ops)


def _blocks(ops: list[Operation], block: Block) -> list[Block]:
    return [block, *(inner for op in ops for region in op.regions for inner in region.blocks)]


@functools.cache
def _wide(type_: Type) -> Type:
    return ir.F32Type.get() if is_narrow(type_) else type_


def _convert(op: Operation) -> None:
    """A conversion whose types have changed."""
    value, target = op.operands[0], op.results[0].type
    if value.type == target:
        replace(op, [value])
    elif isa(op, arith.ExtFOp) and value.type.width > target.width:
        with before(op):
            replace(op, [arith.TruncFOp(target, value).result])


def widened(values: list[Value]) -> list[Value]:
    """Blocks of fp16 and bf16 as fp32."""
    return [
        convert_elements(v, ir.F32Type.get()) if is_narrow(element_of(v)) else v for v in values
    ]


def narrowed(values: list[Value], types: list[Type]) -> list[Value]:
    """Blocks with elements of these types."""
    return [convert_elements(value, type_) for value, type_ in zip(values, types, strict=True)]
