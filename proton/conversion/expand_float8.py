"""8-bit floats become bytes, and conversions of them integer arithmetic: LLVM has no such type.

A value of `f8E5M2` or `f8E4M3FN` is an `i8` from here on. Conversions to them round to nearest
even and saturate, infinities included; both have NaNs.
"""

import struct
from dataclasses import dataclass
from typing import Any, ClassVar

from proton.base.errors import CompilationError
from proton.conversion.rounding import to_odd_f32
from proton.dialect import tt
from proton.dialect.abi import update_type
from proton.dialect.builtin import integer
from proton.dialect.diagnostics import element_of
from proton.dialect.emit import constant
from proton.dialect.linalg import map_elements
from proton.dialect.mlir import Module, Operation, Type, Value, arith, ir
from proton.dialect.walk import all_ops, before, kernel_functions, replace
from proton.passes import Pass, register


@dataclass(frozen=True)
class _Format:
    """An 8-bit float: its bits of mantissa, least normal exponent, and some bit patterns."""

    mantissa: int
    least: int
    largest_bits: int
    nan_bits: int
    largest: float

    @property
    def bias(self) -> int:
        return 1 - self.least


_FORMATS = {
    "f8E4M3FN": _Format(3, -6, 0x7E, 0x7F, 448.0),
    "f8E5M2": _Format(2, -14, 0x7B, 0x7F, 57344.0),
}
_BIAS_32, _MANTISSA_32 = 127, 23


@register
@dataclass(frozen=True)
class ExpandFloat8(Pass):
    """Turns 8-bit floats into bytes."""

    name: ClassVar[str] = "expand-float8"

    def run(self, module: Module) -> None:
        for function in kernel_functions(module):
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


def _bytes(type_: Type) -> Type:
    """The type with i8 in the place of 8-bit floats."""
    if isinstance(type_, ir.RankedTensorType):
        return ir.RankedTensorType.get(type_.shape, _bytes(type_.element_type))
    if isinstance(type_, tt.PointerType):
        return tt.PointerType.get(_bytes(type_.target))
    return integer(8) if str(type_) in _FORMATS else type_


def _format(value: Value) -> _Format | None:
    return _FORMATS.get(str(element_of(value)))


def _rule(op: Operation) -> Any:
    """How to rewrite an op once its types have changed; None where that is all."""
    operands = [_format(value) for value in op.operands]
    results = [_format(value) for value in op.results]
    if not any(operands) and not any(results):
        return None
    if op.name == "arith.constant":
        return lambda op: _constant(op, results[0])
    if op.name == "arith.extf":
        return lambda op: replace(op, [_widened(op.operands[0], operands[0], op.results[0])])
    if op.name in ("arith.truncf", "tt.fp_to_fp"):
        return lambda op: replace(op, [_narrowed(op.operands[0], results[0])])
    if op.name == "arith.bitcast":
        return lambda op: replace(op, [op.operands[0]])
    if op.name == "tt.dot":
        return lambda op: _dot(op, operands)
    if op.name.startswith(("arith.", "math.")) and op.name != "arith.select":
        raise CompilationError(
            f"{op.name} on 8-bit floats (at {op.location})",
            hint="convert with .to(tl.float16) or .to(tl.float32) first",
        )
    return None


def _constant(op: Operation, format_: _Format | None) -> None:
    assert format_ is not None
    type_, attribute = op.results[0].type, op.attributes["value"]
    i8 = integer(8)
    is_tensor = isinstance(type_, ir.RankedTensorType)
    if is_tensor:
        attribute = ir.DenseElementsAttr(attribute)
        if not attribute.is_splat:
            raise CompilationError(f"a constant of several 8-bit floats (at {op.location})")
        attribute = attribute.get_splat_value()
    bits = encode(float(ir.FloatAttr(attribute).value), format_)
    number = ir.IntegerAttr.get(i8, bits - 256 if bits > 127 else bits)
    value = ir.DenseElementsAttr.get_splat(type_, number) if is_tensor else number
    replace(op, [constant(value, type_)])


def encode(number: float, format_: _Format) -> int:
    """The bits of a number that the format has."""
    if number != number:
        return format_.nan_bits
    sign = 0x80 if struct.pack(">d", number)[0] & 0x80 else 0
    magnitude = abs(number)
    if magnitude >= format_.largest:
        return sign | format_.largest_bits
    unit = 2.0 ** (format_.least - format_.mantissa)
    if magnitude < 2.0**format_.least:
        return sign | round(magnitude / unit)
    (bits,) = struct.unpack(">I", struct.pack(">f", magnitude))
    rebias = (_BIAS_32 - format_.bias) << format_.mantissa
    return int(sign | ((bits >> (_MANTISSA_32 - format_.mantissa)) - rebias))


def _dot(op: Operation, formats: list[_Format | None]) -> None:
    """8-bit operands are widened to fp32."""
    for number, format_ in enumerate(formats[:2]):
        if format_ is not None:
            value = op.operands[number]
            f32 = ir.F32Type.get()
            op.operands[number] = map_elements(lambda x, f=format_: _widen(x, f), [value], f32)


def _widened(value: Value, format_: _Format | None, like: Value) -> Value:
    assert format_ is not None
    target = element_of(like)

    def body(byte: Value) -> Value:
        wide = _widen(byte, format_)
        if target.width == 32:
            return wide
        op = arith.ExtFOp if target.width > 32 else arith.TruncFOp
        return op(target, wide).result

    return map_elements(body, [value], target)


def _narrowed(value: Value, format_: _Format | None) -> Value:
    assert format_ is not None
    f32 = ir.F32Type.get()

    def body(wide: Value) -> Value:
        if wide.type.width == 64:
            wide = to_odd_f32(wide)
        elif wide.type.width < 32:
            wide = arith.ExtFOp(f32, wide).result
        return _narrow(wide, format_)

    return map_elements(body, [value], integer(8))


# Scalars


def _i32(value: int) -> Value:
    return constant(value, integer(32))


def _widen(byte: Value, format_: _Format) -> Value:
    """The fp32 with the byte's value: its bits moved to where fp32 has them, times a power of two
    that makes up for the biases (and normalises what is subnormal)."""
    i32, f32 = integer(32), ir.F32Type.get()
    bits = arith.ExtUIOp(i32, byte).result
    rest = arith.AndIOp(bits, _i32(0x7F)).result
    moved = arith.ShLIOp(rest, _i32(_MANTISSA_32 - format_.mantissa)).result
    scale = constant(2.0 ** (_BIAS_32 - format_.bias), f32)
    scaled = arith.MulFOp(arith.BitcastOp(f32, moved).result, scale).result
    magnitude = arith.BitcastOp(i32, scaled).result
    # What is above the greatest finite number: fp32's infinity where the format has one, or NaN.
    beyond = _compare("ugt", rest, format_.largest_bits)
    has_infinity = format_.largest_bits + 1 < format_.nan_bits
    special = _i32(0x7FC00000)
    if has_infinity:
        is_infinity = _compare("eq", rest, format_.largest_bits + 1)
        special = arith.SelectOp(is_infinity, _i32(0x7F800000), special).result
    magnitude = arith.SelectOp(beyond, special, magnitude).result
    sign = arith.ShLIOp(arith.AndIOp(bits, _i32(0x80)).result, _i32(24)).result
    return arith.BitcastOp(f32, arith.OrIOp(magnitude, sign).result).result


def _narrow(value: Value, format_: _Format) -> Value:
    """An fp32 as a byte: normal results by rounding the mantissa where it ends, subnormal ones by
    adding a power of two whose unit in the last place is theirs."""
    i8, i32, f32 = (
        integer(8),
        integer(32),
        ir.F32Type.get(),
    )
    bits = arith.BitcastOp(i32, value).result
    magnitude = arith.AndIOp(bits, _i32(0x7FFFFFFF)).result
    shift = _MANTISSA_32 - format_.mantissa
    odd = arith.AndIOp(arith.ShRUIOp(magnitude, _i32(shift)).result, _i32(1)).result
    half = arith.AddIOp(odd, _i32((1 << (shift - 1)) - 1)).result
    rounded = arith.ShRUIOp(arith.AddIOp(magnitude, half).result, _i32(shift)).result
    rebias = (_BIAS_32 - format_.bias) << format_.mantissa
    normal = arith.SubIOp(rounded, _i32(rebias)).result
    exponent = format_.least - format_.mantissa + _MANTISSA_32
    magic = constant(2.0**exponent, f32)
    summed = arith.AddFOp(arith.BitcastOp(f32, magnitude).result, magic).result
    magic_bits = _i32((_BIAS_32 + exponent) << _MANTISSA_32)
    tiny = arith.SubIOp(arith.BitcastOp(i32, summed).result, magic_bits).result
    is_tiny = _compare("ult", magnitude, (_BIAS_32 + format_.least) << _MANTISSA_32)
    result = arith.SelectOp(is_tiny, tiny, normal).result
    (largest,) = struct.unpack(">I", struct.pack(">f", format_.largest))
    beyond = _compare("uge", magnitude, largest)
    result = arith.SelectOp(beyond, _i32(format_.largest_bits), result).result
    is_nan = _compare("ugt", magnitude, 0x7F800000)
    result = arith.SelectOp(is_nan, _i32(format_.nan_bits), result).result
    sign = arith.AndIOp(arith.ShRUIOp(bits, _i32(24)).result, _i32(0x80)).result
    return arith.TruncIOp(i8, arith.OrIOp(result, sign).result).result


def _compare(predicate: str, value: Value, number: int) -> Value:
    return arith.CmpIOp(getattr(arith.CmpIPredicate, predicate), value, _i32(number)).result
