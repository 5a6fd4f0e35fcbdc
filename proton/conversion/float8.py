"""Conversions of one number from an 8-bit float and to one, in integer arithmetic and fp32."""

from proton.base.float8 import BIAS_32, MANTISSA_32, Float8, bits_of
from proton.dialect.builtin import integer
from proton.dialect.emit import constant
from proton.dialect.mlir import Value, arith, ir

_INFINITY_32, _NAN_32 = 0x7F800000, 0x7FC00000  # bits of fp32


def _i32(value: int) -> Value:
    return constant(value, integer(32))


def widen(byte: Value, format_: Float8) -> Value:
    """The fp32 with the byte's value: its bits moved to where fp32 has them, times a power of two
    that makes up for the biases (and normalises what is subnormal)."""
    i32, f32 = integer(32), ir.F32Type.get()
    bits = arith.ExtUIOp(i32, byte).result
    rest = arith.AndIOp(bits, _i32(0x7F)).result
    moved = arith.ShLIOp(rest, _i32(MANTISSA_32 - format_.mantissa)).result
    scale = constant(2.0 ** (BIAS_32 - format_.bias), f32)
    scaled = arith.MulFOp(arith.BitcastOp(f32, moved).result, scale).result
    magnitude = arith.BitcastOp(i32, scaled).result
    if format_.has_top_nan:  # above the greatest finite number
        beyond = _compare("ugt", rest, format_.largest_bits)
        special = _i32(_NAN_32)
        if format_.infinity_bits is not None:
            is_infinity = _compare("eq", rest, format_.infinity_bits)
            special = arith.SelectOp(is_infinity, _i32(_INFINITY_32), special).result
        magnitude = arith.SelectOp(beyond, special, magnitude).result
    elif format_.nan_bits is not None:
        is_nan = _compare("eq", bits, format_.nan_bits)
        magnitude = arith.SelectOp(is_nan, _i32(_NAN_32), magnitude).result
    sign = arith.ShLIOp(arith.AndIOp(bits, _i32(0x80)).result, _i32(24)).result
    return arith.BitcastOp(f32, arith.OrIOp(magnitude, sign).result).result


def narrow(value: Value, format_: Float8, rounding: str) -> Value:
    """An fp32 as a byte: normal results by rounding the mantissa where it ends, subnormal ones
    as multiples of the least number."""
    i8, i32 = integer(8), integer(32)
    bits = arith.BitcastOp(i32, value).result
    magnitude = arith.AndIOp(bits, _i32(0x7FFFFFFF)).result
    shift = MANTISSA_32 - format_.mantissa
    rounded = magnitude
    if rounding == "rtne":
        odd = arith.AndIOp(arith.ShRUIOp(magnitude, _i32(shift)).result, _i32(1)).result
        half = arith.AddIOp(odd, _i32((1 << (shift - 1)) - 1)).result
        rounded = arith.AddIOp(magnitude, half).result
    rebias = (BIAS_32 - format_.bias) << format_.mantissa
    normal = arith.SubIOp(arith.ShRUIOp(rounded, _i32(shift)).result, _i32(rebias)).result
    tiny = _multiple(magnitude, format_, rounding)
    is_tiny = _compare("ult", magnitude, (BIAS_32 + format_.least) << MANTISSA_32)
    result = arith.SelectOp(is_tiny, tiny, normal).result
    beyond = _compare("uge", magnitude, bits_of(format_.largest))
    result = arith.SelectOp(beyond, _i32(format_.largest_bits), result).result
    sign = arith.AndIOp(arith.ShRUIOp(bits, _i32(24)).result, _i32(0x80)).result
    if not format_.has_negative_zero:
        sign = arith.SelectOp(_compare("eq", result, 0), _i32(0), sign).result
    is_nan = _compare("ugt", magnitude, _INFINITY_32)
    result = arith.SelectOp(is_nan, _i32(format_.not_a_number), result).result
    return arith.TruncIOp(i8, arith.OrIOp(result, sign).result).result


def _multiple(magnitude: Value, format_: Float8, rounding: str) -> Value:
    """How often the least number is in the bits of a small one. To nearest by adding a power of
    two whose unit in the last place is that number."""
    i32, f32 = integer(32), ir.F32Type.get()
    exponent = format_.least - format_.mantissa
    number = arith.BitcastOp(f32, magnitude).result
    if rounding == "rtz":
        small = arith.MinNumFOp(number, constant(2.0**format_.least, f32)).result
        return arith.FPToSIOp(i32, arith.MulFOp(small, constant(2.0**-exponent, f32)).result).result
    exponent += MANTISSA_32
    summed = arith.AddFOp(number, constant(2.0**exponent, f32)).result
    magic_bits = _i32((BIAS_32 + exponent) << MANTISSA_32)
    return arith.SubIOp(arith.BitcastOp(i32, summed).result, magic_bits).result


def _compare(predicate: str, value: Value, number: int) -> Value:
    return arith.CmpIOp(getattr(arith.CmpIPredicate, predicate), value, _i32(number)).result
