"""Arithmetic that is not what upstream makes of it: constants, division, functions, 8-bit floats.

Everything else of `arith` works on vectors as it is.
"""

import math
import struct
from typing import Any

from proton.base.errors import UnsupportedLanguageConstruct
from proton.conversion.ttg_to_llvm import nvidia
from proton.conversion.ttg_to_llvm import values as v
from proton.conversion.ttg_to_llvm.libdevice import call_libdevice, symbol_of
from proton.conversion.ttg_to_llvm.lowering import (
    Lowering,
    Site,
    is_float8,
    llvm_type,
    lowers,
)
from proton.dialect.mlir import Type, Value, ir
from proton.dialect.ttg import is_tensor


def _f(bits: int) -> Any:
    return {16: ir.F16Type, 32: ir.F32Type, 64: ir.F64Type}[bits].get()


def scalar_type(type_: Type) -> Type:
    """The element type of a tensor or vector, or the type itself."""
    return type_.element_type if is_tensor(type_) or v.is_vector(type_) else type_


@lowers("arith.constant")
def _constant(ctx: Lowering, site: Site) -> list[Value]:
    type_ = site.result_type
    target = llvm_type(type_)
    attribute = site.op.attributes["value"]
    if is_tensor(type_):
        attribute = ir.DenseElementsAttr(attribute).get_splat_value()
    if is_float8(scalar_type(type_)):
        wide = ir.FloatAttr.get(_f(32), float(ir.FloatAttr(attribute).value))
        value = v.create("llvm.mlir.constant", _f(32), value=wide)
        return [_spread(_to_float8(value, scalar_type(type_)), target)]
    if isinstance(target, ir.VectorType):
        attribute = ir.DenseElementsAttr.get_splat(target, attribute)
    elif not isinstance(target, ir.IntegerType | ir.FloatType):
        return [site.op.results[0]]
    return [v.create("llvm.mlir.constant", target, value=attribute)]


def _spread(value: Any, target: Any) -> Any:
    return v.splat(value, v.count_of_type(target)) if v.is_vector(target) else value


# Division and remainder


@lowers("arith.divf")
def _divide(ctx: Lowering, site: Site) -> list[Value]:
    """fp32 with an error of 2 units in the last place (`div.full`); narrower ones through it."""
    left, right = site.operands
    element = v.element(left)
    if element.width == 64:
        return [v.binary("llvm.fdiv", left, right)]
    if element.width == 32:
        return [nvidia.approximate("divide", left, right)]
    wide = v.like(left, _f(32))
    quotient = nvidia.approximate(
        "divide",
        v.create("llvm.fpext", wide, left),
        v.create("llvm.fpext", wide, right),
    )
    return [v.create("llvm.fptrunc", left.type, quotient)]


@lowers("tt.precise_divf")
def _precise_divide(ctx: Lowering, site: Site) -> list[Value]:
    return [v.binary("llvm.fdiv", *site.operands)]


@lowers("tt.precise_sqrt")
def _precise_sqrt(ctx: Lowering, site: Site) -> list[Value]:
    (value,) = site.operands
    return [v.create("llvm.intr.sqrt", value.type, value)]


@lowers("arith.remf")
def _remainder(ctx: Lowering, site: Site) -> list[Value]:
    return [_in_float32(ctx, "fmod", *site.operands)]


@lowers("tt.mulhiui")
def _mulhi(ctx: Lowering, site: Site) -> list[Value]:
    left, right = site.operands
    bits = v.bits_of(v.element(left))
    wide = v.like(left, v.integer(2 * bits))
    product = v.binary(
        "llvm.mul", v.create("llvm.zext", wide, left), v.create("llvm.zext", wide, right)
    )
    upper = v.binary("llvm.lshr", product, v.constant(bits, wide))
    return [v.create("llvm.trunc", left.type, upper)]


# Functions


def _in_float32(ctx: Lowering, name: str, *values: Any) -> Any:
    """A libdevice function, on halves through fp32."""
    element = v.element(values[0])
    if element.width >= 32:
        return _libdevice(ctx, name, *values)
    wide = v.like(values[0], _f(32))
    result = _libdevice(ctx, name, *(v.create("llvm.fpext", wide, value) for value in values))
    return v.create("llvm.fptrunc", values[0].type, result)


def _libdevice(ctx: Lowering, name: str, *values: Any) -> Any:
    """A function of the library of fp32 or fp64, on every element."""
    symbol = symbol_of(name, v.element(values[0]))

    def one(*scalars: Any) -> Any:
        return call_libdevice(ctx, symbol, scalars[0].type, *scalars)

    return v.each(one, *values)


def _function(name: str, *, is_approximate: bool = False) -> None:
    """The rule of a `math` op: an approximating instruction for fp32 where there is one."""

    @lowers(f"math.{name}")
    def _(ctx: Lowering, site: Site) -> list[Value]:
        (value,) = site.operands
        if is_approximate and v.element(value).width == 32:
            return [nvidia.approximate(name, value)]
        return [_in_float32(ctx, name, value)]


for _name in ("log", "log2", "sin", "cos", "erf"):
    _function(_name)
for _name in ("exp2", "sqrt", "rsqrt"):
    _function(_name, is_approximate=True)


@lowers("math.exp")
def _exp(ctx: Lowering, site: Site) -> list[Value]:
    """2 to the power of x log2(e), as the hardware has it."""
    (value,) = site.operands
    if v.element(value).width != 32:
        return [_in_float32(ctx, "exp", value)]
    scaled = v.binary("llvm.fmul", value, v.constant(math.log2(math.e), value.type))
    return [nvidia.approximate("exp2", scaled)]


@lowers("tt.extern_elementwise")
def _extern(ctx: Lowering, site: Site) -> list[Value]:
    result = scalar_type(llvm_like(site))

    def one(*scalars: Any) -> Value:
        return call_libdevice(ctx, site.text("symbol"), result, *scalars)

    operands = site.operands
    if v.is_vector(operands[0].type):
        columns = zip(*map(v.to_elements, operands), strict=True)
        return [v.from_elements([one(*column) for column in columns])]
    return [one(*operands)]


def llvm_like(site: Site) -> Type:
    """The element type of an op's result."""
    type_ = site.result_type
    return llvm_type(scalar_type(type_))


# Conversions of 8-bit floats, and roundings that arith lacks

_FLOAT8 = {"f8E4M3FN": "e4m3", "f8E5M2": "e5m2"}


def _name8(type_: Any) -> str:
    name = _FLOAT8.get(str(type_))
    if name is None:
        raise UnsupportedLanguageConstruct(f"conversions of {type_} are not supported")
    return name


@lowers("arith.extf", "arith.truncf", "tt.fp_to_fp")
def _float_conversion(ctx: Lowering, site: Site) -> list[Value]:
    source, target = scalar_type(site.operand_types[0]), scalar_type(site.result_type)
    (value,) = site.operands
    if is_float8(source) and is_float8(target):
        return [_float8(widen_float8(value, source, _f(32)), target)]
    if is_float8(source):
        return [widen_float8(value, source, target)]
    if is_float8(target):
        return [_float8(value, target)]
    if site.op.name == "tt.fp_to_fp" and site.text("rounding") == "rtz":
        return [_towards_zero(value, target)]
    name = "llvm.fpext" if source.width < target.width else "llvm.fptrunc"
    return [v.create(name, v.like(value, target), value)]


def _towards_zero(value: Any, target: Any) -> Any:
    """fp32 (or fp64) to a narrower float, rounded towards zero."""
    if v.element(value).width == 64 and target.width != 32:
        # Through fp32, towards zero as well: truncating twice truncates once.
        value = _towards_zero(value, _f(32))
    return v.each(lambda scalar: nvidia.narrowed_towards_zero(scalar, target), value)


def widen_float8(value: Any, source: Any, target: Any) -> Any:
    """8-bit floats through fp16, which has them all."""
    kind = _name8(source)

    def one(byte: Any) -> Any:
        half = _half_of(byte, kind)
        if str(target) == "f16":
            return half
        wide = v.create("llvm.fpext", _f(32), half)
        return wide if target.width == 32 else _narrow_or_wide(wide, target)

    return v.each(one, value)


def _narrow_or_wide(value: Any, target: Any) -> Any:
    name = "llvm.fpext" if target.width > 32 else "llvm.fptrunc"
    return v.create(name, target, value)


def _half_of(byte: Any, kind: str) -> Any:
    """The fp16 with an 8-bit float's value, by integer arithmetic on every architecture."""
    i16 = v.integer(16)
    wide = v.create("llvm.zext", i16, byte)
    if kind == "e5m2":  # the upper half of an fp16
        return v.bitcast(v.binary("llvm.shl", wide, v.constant(8, i16)), _f(16))
    # e4m3: sign | exponent and mantissa, moved to where fp16 has them; its exponent is 8 less.
    top = v.binary("llvm.and", wide, v.constant(0x80, i16))
    sign = v.binary("llvm.shl", top, v.constant(8, i16))
    rest = v.binary("llvm.and", wide, v.constant(0x7F, i16))
    moved = v.bitcast(v.binary("llvm.shl", rest, v.constant(7, i16)), _f(16))
    scaled = v.bitcast(v.binary("llvm.fmul", moved, v.constant(256.0, _f(16))), i16)
    nan = v.compare("eq", rest, v.constant(0x7F, i16))
    magnitude = v.select(nan, v.constant(0x7FFF, i16), scaled)
    return v.bitcast(v.binary("llvm.or", magnitude, sign), _f(16))


def _float8(value: Any, target: Any) -> Any:
    """To an 8-bit float: to nearest even, saturating; from wider types through fp32."""
    element = v.element(value)
    if isinstance(element, ir.FloatType) and element.width == 64:
        value = _odd_float32(value)
    elif element.width == 16:
        value = v.create("llvm.fpext", v.like(value, _f(32)), value)
    return v.each(lambda scalar: _to_float8(scalar, target), value)


def _odd_float32(value: Any) -> Any:
    """fp64 to fp32 rounded to odd, so that rounding once more rounds once (Boldo, Melquiond)."""

    def one(wide: Any) -> Any:
        narrow = nvidia.narrowed_towards_zero(wide, _f(32))
        back = v.create("llvm.fpext", _f(64), narrow)
        inexact = v.create(
            "arith.cmpf",
            v.integer(1),
            back,
            wide,
            predicate=ir.IntegerAttr.get(v.integer(64), 6),
            fastmath=ir.Attribute.parse("#arith.fastmath<none>"),
        )
        bits = v.bitcast(narrow, v.integer(32))
        odd = v.binary("llvm.or", bits, v.create("llvm.zext", v.integer(32), inexact))
        return v.bitcast(odd, _f(32))

    return v.each(one, value)


# What rounding to an 8-bit float needs to know: mantissa bits, the least normal exponent, the
# largest finite value's bits, NaN's bits.
_FORMATS = {"e4m3": (3, -6, 0x7E, 0x7F, 448.0), "e5m2": (2, -14, 0x7B, 0x7F, 57344.0)}


def _to_float8(value: Any, target: Any) -> Any:
    """One fp32 to an 8-bit float by integer arithmetic, on every architecture.

    Adding a power of two whose unit in the last place is the target's rounds to nearest even, for
    normal and subnormal results alike; what is left are shifts.
    """
    kind = _name8(target)
    mantissa, least, largest, nan, most = _FORMATS[kind]
    i32, f32 = v.integer(32), _f(32)
    bits = v.bitcast(value, i32)
    magnitude = v.binary("llvm.and", bits, v.i32(0x7FFFFFFF))
    # Normal results: round the mantissa at its place, rebias the exponent.
    shift = 23 - mantissa
    odd = v.binary("llvm.and", v.binary("llvm.lshr", magnitude, v.i32(shift)), v.i32(1))
    rounded = v.add(v.add(magnitude, v.i32((1 << (shift - 1)) - 1)), odd)
    rebias = (127 + least - 1) << mantissa
    normal = v.binary("llvm.sub", v.binary("llvm.lshr", rounded, v.i32(shift)), v.i32(rebias))
    # Subnormal results: their unit is 2^(least - mantissa), that of fp32 numbers near `magic`.
    magic = 2.0 ** (least - mantissa + 23)
    absolute = v.bitcast(magnitude, f32)
    summed = v.binary("llvm.fadd", absolute, v.constant(magic, f32))
    magic_bits = (127 + least - mantissa + 23) << 23
    tiny = v.binary("llvm.sub", v.bitcast(summed, i32), v.i32(magic_bits))
    is_tiny = v.compare("ult", magnitude, v.i32((127 + least) << 23))
    chosen = v.select(is_tiny, tiny, normal)
    saturated = v.compare("ugt", chosen, v.i32(largest))
    too_large = v.compare("uge", magnitude, v.i32(_bits_of_float32(most)))
    beyond = v.binary("llvm.or", saturated, too_large)
    chosen = v.select(beyond, v.i32(largest), chosen)
    is_nan = v.compare("ugt", magnitude, v.i32(0x7F800000))
    chosen = v.select(is_nan, v.i32(nan), chosen)
    sign = v.binary("llvm.and", v.binary("llvm.lshr", bits, v.i32(24)), v.i32(0x80))
    return v.create("llvm.trunc", v.integer(8), v.binary("llvm.or", chosen, sign))


def _bits_of_float32(value: float) -> int:
    return int(struct.unpack("<I", struct.pack("<f", value))[0])


@lowers("arith.bitcast")
def _arith_bitcast(ctx: Lowering, site: Site) -> list[Value]:
    """Between i8 and an 8-bit float: the same bits."""
    return site.operands


@lowers("arith.select")
def _arith_select(ctx: Lowering, site: Site) -> list[Value]:
    condition, yes, no = site.operands
    return [v.select(condition, yes, no)]
