"""Conversions of 8-bit floats by integer arithmetic, which every architecture has, and by the
instruction where there is one; the formats are in proton/base/float8.py."""

from proton.base.float8 import BIAS_32, BY_TYPE, MANTISSA_32, Float8, bits_of
from proton.conversion.ttg_to_llvm.core import values as v
from proton.conversion.ttg_to_llvm.core.lowering import Lowering
from proton.dialect.mlir import Type, Value, arith, ir, llvm

_INSTRUCTION_NAMES = {"float8e5": "e5m2", "float8e4nv": "e4m3"}
_INFINITY_32, _NAN_32 = 0x7F800000, 0x7FC00000  # bits of fp32


def widen_float8(ctx: Lowering, value: Value, source: Type, target: Type) -> Value:
    """8-bit floats as wider ones: the two that GPUs know through fp16, which has them all, the
    others through fp32."""
    format_ = BY_TYPE[str(source)]
    if format_.name == "float8e4nv" and ctx.chip.has_float8_conversions:
        wide = _widened_by_instruction(ctx, value)
    elif format_.name in _INSTRUCTION_NAMES:
        wide = v.each(lambda byte: _half_of(byte, format_), value)
    else:
        wide = v.each(lambda byte: _float_of(byte, format_), value)
    if v.element(wide) == target:
        return wide
    if v.element(wide).width < 32:
        wide = v.create(llvm.FPExtOp, v.like(value, v.floating(32)), wide)
    if target.width == 32:
        return wide
    return v.create(
        llvm.FPExtOp if target.width > 32 else llvm.FPTruncOp, v.like(value, target), wide
    )


def _widened_by_instruction(ctx: Lowering, value: Value) -> Value:
    """Bytes of e4m3 as fp16, two at a time. (e5m2 is the upper half of fp16.)"""
    bytes_ = v.to_elements(value) if v.is_vector(value.type) else [value]
    count = len(bytes_)
    bytes_ += bytes_[len(bytes_) // 2 * 2 :]  # an odd one twice
    pairs = v.to_elements(
        v.bitcast(v.from_elements(bytes_), v.vector(len(bytes_) // 2, v.integer(16)))
    )
    name = _INSTRUCTION_NAMES["float8e4nv"]
    words = v.from_elements([ctx.primitives.widened_from_float8(pair, name) for pair in pairs])
    halves = v.bitcast(words, v.vector(len(bytes_), v.floating(16)))
    return v.shuffle(halves, range(count)) if v.is_vector(value.type) else v.to_elements(halves)[0]


def _half_of(byte: Value, format_: Float8) -> Value:
    """The fp16 with the value of a byte."""
    i16 = v.integer(16)
    wide = v.create(llvm.ZExtOp, i16, byte)
    if format_.name == "float8e5":  # the upper half of an fp16
        return v.bitcast(v.binary(llvm.ShlOp, wide, v.constant(8, i16)), v.floating(16))
    # e4m3: sign | exponent and mantissa, moved to where fp16 has them; its exponent is 8 less.
    top = v.binary(llvm.AndOp, wide, v.constant(0x80, i16))
    sign = v.binary(llvm.ShlOp, top, v.constant(8, i16))
    rest = v.binary(llvm.AndOp, wide, v.constant(0x7F, i16))
    moved = v.bitcast(v.binary(llvm.ShlOp, rest, v.constant(7, i16)), v.floating(16))
    scaled = v.bitcast(v.binary(llvm.FMulOp, moved, v.constant(256.0, v.floating(16))), i16)
    nan = v.compare("eq", rest, v.constant(0x7F, i16))
    magnitude = v.select(nan, v.constant(0x7FFF, i16), scaled)
    return v.bitcast(v.binary(llvm.OrOp, magnitude, sign), v.floating(16))


def _float_of(byte: Value, format_: Float8) -> Value:
    """The fp32 with the value of a byte, of a format without infinity: its bits moved to where
    fp32 has them, times a power of two that makes up for the biases."""
    i32, f32 = v.integer(32), v.floating(32)
    bits = v.create(llvm.ZExtOp, i32, byte)
    rest = v.binary(llvm.AndOp, bits, v.i32(0x7F))
    moved = v.bitcast(v.binary(llvm.ShlOp, rest, v.i32(MANTISSA_32 - format_.mantissa)), f32)
    scaled = v.binary(llvm.FMulOp, moved, v.constant(2.0 ** (BIAS_32 - format_.bias), f32))
    magnitude = v.bitcast(scaled, i32)
    if format_.nan_bits is not None:
        nan = v.compare("eq", bits, v.i32(format_.nan_bits))
        magnitude = v.select(nan, v.i32(_NAN_32), magnitude)
    sign = v.binary(llvm.ShlOp, v.binary(llvm.AndOp, bits, v.i32(0x80)), v.i32(24))
    return v.bitcast(v.binary(llvm.OrOp, magnitude, sign), f32)


def narrow_float8(
    ctx: Lowering,
    value: Value,
    target: Type,
    rounding: str = "rtne",
    *,
    is_constant: bool = False,
) -> Value:
    """To an 8-bit float, saturating; from other types through fp32. LLVM folds constants."""
    element = v.element(value)
    if isinstance(element, ir.FloatType) and element.width == 64:
        value = _odd_float32(ctx, value)  # an odd neighbour lies between the same codes
    elif element.width == 16:
        value = v.create(llvm.FPExtOp, v.like(value, v.floating(32)), value)
    format_ = BY_TYPE[str(target)]
    name = _INSTRUCTION_NAMES.get(format_.name)
    narrows = ctx.chip.has_float8_conversions and not is_constant
    if narrows and name is not None and rounding == "rtne":
        return _narrowed_by_instruction(ctx, value, name)
    return v.each(lambda scalar: _narrow(scalar, format_, rounding), value)


def _narrowed_by_instruction(ctx: Lowering, value: Value, name: str) -> Value:
    """fp32 as bytes, two at a time."""
    if not v.is_vector(value.type):
        pair = ctx.primitives.narrowed_to_float8(value, value, name)
        return v.create(llvm.TruncOp, v.integer(8), pair)
    numbers = v.to_elements(value)
    numbers += numbers[len(numbers) // 2 * 2 :]  # an odd one twice
    pairs = [
        ctx.primitives.narrowed_to_float8(low, high, name)
        for low, high in zip(numbers[::2], numbers[1::2], strict=True)
    ]
    bytes_ = v.bitcast(v.from_elements(pairs), v.vector(len(numbers), v.integer(8)))
    return v.shuffle(bytes_, range(v.count_of(value)))


def _odd_float32(ctx: Lowering, value: Value) -> Value:
    """fp64 to fp32 rounded to odd, so that rounding once more rounds once (Boldo, Melquiond)."""

    def one(wide: Value) -> Value:
        narrow = ctx.primitives.narrowed_towards_zero(wide, v.floating(32))
        back = v.create(llvm.FPExtOp, v.floating(64), narrow)
        inexact = arith.CmpFOp(arith.CmpFPredicate.ONE, back, wide).result
        bits = v.bitcast(narrow, v.integer(32))
        odd = v.binary(llvm.OrOp, bits, v.create(llvm.ZExtOp, v.integer(32), inexact))
        return v.bitcast(odd, v.floating(32))

    return v.each(one, value)


def _narrow(value: Value, format_: Float8, rounding: str) -> Value:
    """One fp32 as a byte: normal results by rounding the mantissa where it ends, subnormal ones
    as multiples of the least number."""
    bits = v.bitcast(value, v.integer(32))
    magnitude = v.binary(llvm.AndOp, bits, v.i32(0x7FFFFFFF))
    shift, rounded = MANTISSA_32 - format_.mantissa, magnitude
    if rounding == "rtne":
        odd = v.binary(llvm.AndOp, v.binary(llvm.LShrOp, magnitude, v.i32(shift)), v.i32(1))
        rounded = v.add(v.add(magnitude, v.i32((1 << (shift - 1)) - 1)), odd)
    rebias = (BIAS_32 - format_.bias) << format_.mantissa
    normal = v.binary(llvm.SubOp, v.binary(llvm.LShrOp, rounded, v.i32(shift)), v.i32(rebias))
    tiny = _multiple(magnitude, format_, rounding)
    is_tiny = v.compare("ult", magnitude, v.i32((BIAS_32 + format_.least) << MANTISSA_32))
    result = v.select(is_tiny, tiny, normal)
    beyond = v.compare("uge", magnitude, v.i32(bits_of(format_.largest)))
    result = v.select(beyond, v.i32(format_.largest_bits), result)
    sign = v.binary(llvm.AndOp, v.binary(llvm.LShrOp, bits, v.i32(24)), v.i32(0x80))
    if not format_.has_negative_zero:
        sign = v.select(v.compare("eq", result, v.i32(0)), v.i32(0), sign)
    is_nan = v.compare("ugt", magnitude, v.i32(_INFINITY_32))
    result = v.select(is_nan, v.i32(format_.not_a_number), result)
    return v.create(llvm.TruncOp, v.integer(8), v.binary(llvm.OrOp, result, sign))


def _multiple(magnitude: Value, format_: Float8, rounding: str) -> Value:
    """How often the least number is in the bits of a small one. To nearest by adding a power of
    two whose unit in the last place is that number."""
    i32, f32 = v.integer(32), v.floating(32)
    exponent = format_.least - format_.mantissa
    if rounding == "rtz":
        most = v.i32((BIAS_32 + format_.least) << MANTISSA_32)
        small = v.select(v.compare("ult", magnitude, most), magnitude, most)
        scaled = v.binary(llvm.FMulOp, v.bitcast(small, f32), v.constant(2.0**-exponent, f32))
        return v.create(llvm.FPToSIOp, i32, scaled)
    exponent += MANTISSA_32
    summed = v.binary(llvm.FAddOp, v.bitcast(magnitude, f32), v.constant(2.0**exponent, f32))
    magic_bits = (BIAS_32 + exponent) << MANTISSA_32
    return v.binary(llvm.SubOp, v.bitcast(summed, i32), v.i32(magic_bits))
