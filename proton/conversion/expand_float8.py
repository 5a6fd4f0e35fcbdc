"""8-bit floats become bytes, and conversions of them integer arithmetic: LLVM has no such type.

A value of `f8E5M2` or the like (proton/base/float8.py) is an `i8` from here on. Conversions to them
round to nearest even, or towards zero, and saturate, infinities included.
"""

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from proton.base.errors import CompilationError
from proton.base.float8 import BY_TYPE, Float8
from proton.conversion.float8 import narrow, widen
from proton.conversion.rounding import to_odd_f32
from proton.dialect import isa, tt
from proton.dialect.abi import update_type
from proton.dialect.builtin import integer
from proton.dialect.diagnostics import element_of
from proton.dialect.emit import constant
from proton.dialect.linalg import map_elements
from proton.dialect.mlir import Module, Operation, Type, Value, arith, ir
from proton.dialect.walk import all_ops, before, functions, replace
from proton.passes import Pass, register


@register
@dataclass(frozen=True)
class ExpandFloat8(Pass):
    """Turns 8-bit floats into bytes."""

    name: ClassVar[str] = "expand-float8"

    def run(self, module: Module) -> None:
        for function in functions(module):
            _expand(function)


def _expand(function: Operation) -> None:
    ops = all_ops(function)
    # What converts is known by the types that are about to change.
    rules = [_rule(op) for op in ops]
    blocks = list(function.regions[0].blocks)
    blocks += [block for op in ops for region in op.regions for block in region.blocks]
    for block in blocks:
        for argument in block.arguments:
            argument.set_type(_bytes(argument.type))
    for op in ops:
        for result in op.results:
            result.set_type(_bytes(result.type))
    for op, rule in zip(ops, rules, strict=True):
        if rule is not None:
            with before(op):
                rule(op)
    update_type(function)


@functools.cache  # most values of a kernel have one of a few types
def _bytes(type_: Type) -> Type:
    """The type with i8 in the place of 8-bit floats."""
    if isinstance(type_, ir.RankedTensorType):
        return ir.RankedTensorType.get(type_.shape, _bytes(type_.element_type))
    if isinstance(type_, tt.PointerType):
        return tt.PointerType.get(_bytes(type_.target))
    return integer(8) if str(type_) in BY_TYPE else type_


def _format(value: Value) -> Float8 | None:
    return _format_of(element_of(value))


@functools.cache
def _format_of(element: Type) -> Float8 | None:
    return BY_TYPE.get(str(element))


def _rule(op: Operation) -> Callable[..., object] | None:
    """How to rewrite an op once its types have changed; None where that is all."""
    operands = [_format(value) for value in op.operands]
    results = [_format(value) for value in op.results]
    if not any(operands) and not any(results):
        return None
    if isa(op, arith.ConstantOp):
        return lambda op: _constant(op, results[0])
    if isa(op, arith.ExtFOp):
        return lambda op: replace(op, [_widened(op.operands[0], operands[0], op.results[0])])
    if isa(op, tt.FpToFpOp) and results[0] is None:
        return lambda op: replace(op, [_widened(op.operands[0], operands[0], op.results[0])])
    if isa(op, arith.TruncFOp, tt.FpToFpOp):
        rounding = op.attributes["rounding"].value if isa(op, tt.FpToFpOp) else "rtne"
        return lambda op: replace(op, [_narrowed(op.operands[0], results[0], rounding)])
    if isa(op, arith.BitcastOp):
        return lambda op: replace(op, [op.operands[0]])
    if isa(op, tt.DotOp):
        return lambda op: _dot(op, operands)
    if op.name.startswith(("arith.", "math.")) and not isa(op, arith.SelectOp):
        raise CompilationError(
            f"{op.name} on 8-bit floats (at {op.location})",
            hint="convert with .to(tl.float16) or .to(tl.float32) first",
        )
    return None


def _constant(op: Operation, format_: Float8 | None) -> None:
    assert format_ is not None
    type_, attribute = op.results[0].type, op.attributes["value"]
    i8 = integer(8)
    is_tensor = isinstance(type_, ir.RankedTensorType)
    if is_tensor:
        attribute = ir.DenseElementsAttr(attribute)
        if not attribute.is_splat:
            raise CompilationError(f"a constant of several 8-bit floats (at {op.location})")
        attribute = attribute.get_splat_value()
    bits = format_.encode(float(ir.FloatAttr(attribute).value))
    number = ir.IntegerAttr.get(i8, bits - 256 if bits > 127 else bits)
    value = ir.DenseElementsAttr.get_splat(type_, number) if is_tensor else number
    replace(op, [constant(value, type_)])


def _dot(op: Operation, formats: list[Float8 | None]) -> None:
    """8-bit operands are widened to fp32."""
    for number, format_ in enumerate(formats[:2]):
        if format_ is not None:
            value = op.operands[number]
            f32 = ir.F32Type.get()
            op.operands[number] = map_elements(lambda x, f=format_: widen(x, f), [value], f32)


def _widened(value: Value, format_: Float8 | None, like: Value) -> Value:
    assert format_ is not None
    target = element_of(like)

    def body(byte: Value) -> Value:
        wide = widen(byte, format_)
        if target.width == 32:
            return wide
        op = arith.ExtFOp if target.width > 32 else arith.TruncFOp
        return op(target, wide).result

    return map_elements(body, [value], target)


def _narrowed(value: Value, format_: Float8 | None, rounding: str) -> Value:
    assert format_ is not None
    f32 = ir.F32Type.get()

    def body(wide: Value) -> Value:
        if wide.type.width == 64:  # an odd neighbour lies between the same codes
            wide = to_odd_f32(wide)
        elif wide.type.width < 32:
            wide = arith.ExtFOp(f32, wide).result
        return narrow(wide, format_, rounding)

    return map_elements(body, [value], integer(8))
