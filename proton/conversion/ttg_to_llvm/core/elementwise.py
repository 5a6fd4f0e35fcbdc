"""Arithmetic that is not what upstream makes of it: constants, division, functions, 8-bit floats.

Everything else of `arith` works on vectors as it is.
"""

import functools
import math

from proton.conversion.ttg_to_llvm.core import values as v
from proton.conversion.ttg_to_llvm.core.float8 import narrow_float8, widen_float8
from proton.conversion.ttg_to_llvm.core.lowering import (
    INTEGER_DIVISIONS,
    REMAINDERS,
    WIDE_BITS,
    Lowering,
    Site,
    is_float8,
    llvm_type,
    lowers,
    once,
    remainder,
)
from proton.dialect import Kind, by_name, isa, tt
from proton.dialect.emit import emit_if, intrinsic, remade
from proton.dialect.mlir import Type, Value, arith, ir, llvm, vector
from proton.dialect.mlir import math as mlir_math
from proton.dialect.ttg import is_tensor
from proton.dialect.walk import constant_in, defining_op


def scalar_type(type_: Type) -> Type:
    """The element type of a tensor or vector, or the type itself."""
    return type_.element_type if is_tensor(type_) or v.is_vector(type_) else type_


@lowers(arith.ConstantOp)
def _constant(ctx: Lowering, site: Site) -> list[Value]:
    type_ = site.result_type
    target = llvm_type(type_)
    attribute = site.op.attributes["value"]
    if is_tensor(type_):
        attribute = ir.DenseElementsAttr(attribute).get_splat_value()
    if is_float8(scalar_type(type_)):
        wide = ir.FloatAttr.get(v.floating(32), float(ir.FloatAttr(attribute).value))
        value = v.create(llvm.ConstantOp, v.floating(32), value=wide)
        return [_spread(narrow_float8(ctx, value, scalar_type(type_), is_constant=True), target)]
    if isinstance(target, ir.VectorType):
        attribute = ir.DenseElementsAttr.get_splat(target, attribute)
    elif not isinstance(target, ir.IntegerType | ir.FloatType):
        return [site.op.results[0]]
    return [v.create(llvm.ConstantOp, target, value=attribute)]


def _spread(value: Value, target: Type) -> Value:
    return v.splat(value, v.count_of_type(target)) if v.is_vector(target) else value


@lowers(arith.FPToSIOp, arith.FPToUIOp)
def _to_integer(ctx: Lowering, site: Site) -> list[Value]:
    """To the nearest integer that the type has, of NaN 0; one of 8 bits is the low byte of one of
    16. `cvt.rzi` saturates to 16 bits and more, and NaN becomes 0 on the way from fp32 to at most
    32 bits, else the upper bit (an H200, all pairs of types). LLVM leaves open what is outside of
    the type, and knows that of constants."""
    (value,), target = site.operands, llvm_type(site.result_type)
    bits = scalar_type(target).width
    whole_type = v.like(value, v.integer(max(16, bits)))
    kind = llvm.FPToSIOp if isa(site.op, arith.FPToSIOp) else llvm.FPToUIOp
    source = site.op.operands[0].owner
    if isinstance(source, ir.Operation | ir.OpView) and isa(source, arith.ConstantOp):
        whole = intrinsic(f"{kind.OPERATION_NAME}.sat", whole_type, value)
    else:
        whole = v.create(kind, whole_type, value)
        if bits == 64 or v.element(value).width == 64:
            is_nan = arith.CmpFOp(arith.CmpFPredicate.UNO, value, value).result
            whole = v.create(arith.SelectOp, whole_type, is_nan, v.constant(0, whole_type), whole)
    return [whole if bits >= 16 else v.create(llvm.TruncOp, target, whole)]


# Comparison


@lowers(arith.CmpIOp)
def _compare_narrow(ctx: Lowering, site: Site) -> list[Value]:
    """Of 8 and 16 bits: in scalars, with what is behind them. As vectors several share a register,
    of which NVPTX takes each element out before it compares, once for every operand."""
    count = v.count_of(site.operands[0])
    first = site.equal or tuple(range(count))
    found: dict[int, Value] = {}
    for index in dict.fromkeys(first):
        left, right = (ctx.scalars.element(operand, index) for operand in site.operands)
        found[index] = remade(site.op, [v.integer(1)], [left, right]).result
    return [v.from_elements([found[index] for index in first])]


# Division and remainder


@lowers(arith.DivFOp)
def _divide(ctx: Lowering, site: Site) -> list[Value]:
    """fp32 with an error of 2 units in the last place (`div.full`); narrower ones through it.
    `arcp`: fp32, by divisors whose reciprocals are normal numbers."""
    left, right = site.operands
    element = v.element(left)
    if element.width == 64:
        return [v.binary(llvm.FDivOp, left, right)]
    if "arcp" in str(site.op.attributes["fastmath"]):
        return [v.binary(llvm.FMulOp, left, ctx.primitives.approximate("reciprocal", right))]
    if element.width == 32:
        return [ctx.primitives.approximate("divide", left, right)]
    wide = v.like(left, v.floating(32))
    quotient = ctx.primitives.approximate(
        "divide",
        v.create(llvm.FPExtOp, wide, left),
        v.create(llvm.FPExtOp, wide, right),
    )
    return [v.create(llvm.FPTruncOp, left.type, quotient)]


# What divides 64-bit integers, and their lower halves where the upper ones are zero.
_WIDE_AND_NARROW = by_name(
    {
        arith.DivSIOp: (llvm.SDivOp, llvm.UDivOp),
        arith.DivUIOp: (llvm.UDivOp, llvm.UDivOp),
        arith.RemSIOp: (llvm.SRemOp, llvm.URemOp),
        arith.RemUIOp: (llvm.URemOp, llvm.URemOp),
    }
)


@lowers(*INTEGER_DIVISIONS)
def _divide_integers(ctx: Lowering, site: Site) -> list[Value]:
    """64-bit divisions, which are calls: in 32 bits where all numbers of a thread have no more, as
    most offsets do. LLVM does that for scalars."""
    name = site.op.name
    is_shared = name in REMAINDERS and bool(site.equal)
    wide, narrow = _WIDE_AND_NARROW[REMAINDERS[name].OPERATION_NAME if is_shared else name]

    def divide(left: Value, right: Value) -> Value:
        if isa(defining_op(right), llvm.ConstantOp):  # becomes a product
            return v.binary(wide, left, right)
        return _in_halves(wide, narrow, left, right)

    return [(remainder if is_shared else once)(site.equal, divide, *site.operands)]


def _in_halves(wide: Kind, narrow: Kind, left: Value, right: Value) -> Value:
    """A division, in 32 bits where that is enough for all of a thread's numbers."""
    bits, type_ = v.constant(WIDE_BITS // 2, v.integer(WIDE_BITS)), left.type
    all_bits = v.to_elements(v.binary(llvm.OrOp, left, right))
    upper = functools.reduce(lambda a, b: v.binary(llvm.OrOp, a, b), all_bits)
    upper = v.binary(llvm.LShrOp, upper, bits)
    is_narrow = v.compare("eq", upper, v.constant(0, upper.type))
    half = v.like(left, v.integer(WIDE_BITS // 2))

    def in_half() -> list[Value]:
        halves = (v.create(llvm.TruncOp, half, value) for value in (left, right))
        return [v.create(llvm.ZExtOp, type_, v.binary(narrow, *halves))]

    return emit_if(is_narrow, [type_], in_half, lambda: [v.binary(wide, left, right)])[0]


@lowers(arith.MinNumFOp)
def _minimum(ctx: Lowering, site: Site) -> list[Value]:
    """The smaller number. Of fp32 it is one instruction with the maximum that it is of, where that
    keeps above the negative of a constant what this keeps below the constant."""
    value, bound = site.operands
    lower, most = defining_op(value), _float_in(bound)
    if ctx.chip.has_clamp and isa(lower, arith.MaxNumFOp) and v.element(value).width == 32:
        least = _float_in(lower.operands[1])
        if most is not None and least is not None and most == -least > 0:
            return [ctx.primitives.clamp(lower.operands[0], bound)]
    return [v.binary(llvm.MinNumOp, value, bound)]


def _float_in(value: Value) -> float | None:
    """The number that all elements are, where it is known."""
    number = constant_in(value)
    return number.value if isinstance(number, ir.FloatAttr) else None


@lowers(tt.PreciseDivFOp)
def _precise_divide(ctx: Lowering, site: Site) -> list[Value]:
    return [v.binary(llvm.FDivOp, *site.operands)]


@lowers(tt.PreciseSqrtOp)
def _precise_sqrt(ctx: Lowering, site: Site) -> list[Value]:
    (value,) = site.operands
    return [v.create(llvm.SqrtOp, value.type, value)]


@lowers(arith.RemFOp)
def _remainder(ctx: Lowering, site: Site) -> list[Value]:
    return [_in_float32(ctx, "fmod", *site.operands)]


@lowers(*tt.IN_ARITH)
def _in_arith(ctx: Lowering, site: Site) -> list[Value]:
    return [tt.IN_ARITH[site.op.name](*site.operands)]


# Functions


def _in_float32(ctx: Lowering, name: str, *values: Value) -> Value:
    """A mathematical function, on halves through fp32."""
    element = v.element(values[0])
    if element.width >= 32:
        return _function_of(ctx, name, *values)
    wide = v.like(values[0], v.floating(32))
    result = _function_of(ctx, name, *(v.create(llvm.FPExtOp, wide, value) for value in values))
    return v.create(llvm.FPTruncOp, values[0].type, result)


def _function_of(ctx: Lowering, name: str, *values: Value) -> Value:
    """A function of fp32 or fp64, on every element."""
    return v.each(lambda *scalars: ctx.primitives.function(ctx.module, name, *scalars), *values)


def _function(name: str, *, is_approximate: bool = False) -> None:
    """The rule of a `math` op: an approximating instruction for fp32 where there is one."""

    @lowers(f"math.{name}")
    def _(ctx: Lowering, site: Site) -> list[Value]:
        (value,) = site.operands
        if is_approximate and v.element(value).width == 32:
            return [ctx.primitives.approximate(name, value)]
        return [_in_float32(ctx, name, value)]


for _name in ("log", "log2", "sin", "cos", "erf"):
    _function(_name)
for _name in ("exp2", "sqrt", "rsqrt"):
    _function(_name, is_approximate=True)


@lowers(mlir_math.ExpOp)
def _exp(ctx: Lowering, site: Site) -> list[Value]:
    """2 to the power of x log2(e), as the hardware has it."""
    (value,) = site.operands
    if v.element(value).width != 32:
        return [_in_float32(ctx, "exp", value)]
    scaled = v.binary(llvm.FMulOp, value, v.constant(math.log2(math.e), value.type))
    return [ctx.primitives.approximate("exp2", scaled)]


# Conversions of 8-bit floats, and roundings that arith lacks


@lowers(arith.ExtFOp, arith.TruncFOp, tt.FpToFpOp)
def _float_conversion(ctx: Lowering, site: Site) -> list[Value]:
    source, target = scalar_type(site.operand_types[0]), scalar_type(site.result_type)
    (value,) = site.operands
    if is_float8(source) and is_float8(target):
        return [narrow_float8(ctx, widen_float8(ctx, value, source, v.floating(32)), target)]
    if is_float8(source):
        return [widen_float8(ctx, value, source, target)]
    if is_float8(target):
        return [narrow_float8(ctx, value, target, _rounding(site))]
    if _rounding(site) == "rtz":
        return [_towards_zero(ctx, value, target)]
    name = llvm.FPExtOp if source.width < target.width else llvm.FPTruncOp
    return [v.create(name, v.like(value, target), value)]


def _rounding(site: Site) -> str:
    return site.text("rounding") if isa(site.op, tt.FpToFpOp) else "rtne"


def _towards_zero(ctx: Lowering, value: Value, target: Type) -> Value:
    """fp32 (or fp64) to a narrower float, rounded towards zero."""
    if v.element(value).width == 64 and target.width != 32:
        # Through fp32, towards zero as well: truncating twice truncates once.
        value = _towards_zero(ctx, value, v.floating(32))
    return v.each(lambda scalar: ctx.primitives.narrowed_towards_zero(scalar, target), value)


@lowers(arith.BitcastOp)
def _arith_bitcast(ctx: Lowering, site: Site) -> list[Value]:
    """Between i8 and an 8-bit float: the same bits."""
    return site.operands


@lowers(arith.SelectOp)
def _arith_select(ctx: Lowering, site: Site) -> list[Value]:
    """In scalars where the condition was made in them: LLVM swaps values for the sake of that."""
    condition, *values = site.operands
    if isa(defining_op(condition), vector.FromElementsOp):
        count = range(v.count_of(condition))
        rows = [[ctx.scalars.element(x, i) for x in (condition, *values)] for i in count]
        return [v.from_elements([v.select(*row) for row in rows])]
    return [v.select(condition, *values)]
