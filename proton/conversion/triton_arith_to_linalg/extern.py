"""The rule of `tt.extern_elementwise` in `triton-arith-to-linalg`: libdevice's functions on a CPU.

What `math`, integer arithmetic or a C function can say is here; any other function is an error.
Rules work on scalars. A rule's name is that of the function in the language, which may stand for
several symbols (`tanh` for `__nv_tanh` and `__nv_tanhf`).
"""

import functools
from collections.abc import Callable
from typing import Any

from proton.base.errors import UnsupportedLanguageConstruct
from proton.conversion.triton_arith_to_linalg import directed, special
from proton.dialect import Kind
from proton.dialect.builtin import integer
from proton.dialect.diagnostics import element_of
from proton.dialect.emit import call_c, constant, create
from proton.dialect.linalg import map_elements
from proton.dialect.mlir import Operation, Type, Value, arith, ir, llvm, math
from proton.dialect.walk import replace
from proton.language.extra.libdevice import FUNCTIONS
from proton.language.types import dtype

Rule = Callable[..., Any]  # takes scalars and `type_`, the type of the result


@functools.cache
def _names() -> dict[str, tuple[str, tuple[dtype, ...]]]:
    """The function and the dtypes of its arguments, by symbol."""
    return {
        symbol: (name, dtypes)
        for name, function in FUNCTIONS.items()
        for dtypes, (symbol, _) in function.table.items()
    }


def lower_extern(op: Operation) -> None:
    """Replaces a `tt.extern_elementwise`; the insertion point is before it.

    Raises UnsupportedLanguageConstruct for functions that the CPU does not have.
    """
    rule = rule_of(op)
    type_ = element_of(op.results[0])
    value = map_elements(lambda *x: rule(*x, type_=type_), list(op.operands), type_)
    replace(op, [value])


def rule_of(op: Operation) -> Rule:
    """The rule of the function that a `tt.extern_elementwise` calls. Raises
    UnsupportedLanguageConstruct where there is none."""
    symbol = op.attributes["symbol"].value
    name, dtypes = _names().get(symbol, ("", ()))
    signed = bool(dtypes) and dtypes[0].is_int_signed()
    rule = RULES.get(name) or (SIGNED if signed else UNSIGNED).get(name)
    if rule is None:
        raise UnsupportedLanguageConstruct(
            f"{op.attributes['libname'].value}.{name or symbol} is not there on the CPU "
            f"(at {op.location})",
            hint="write it with functions of tl, or launch on a GPU, which has all of libdevice",
        )
    return rule


# Small steps


def _compare(predicate: str, left: Value, right: Value) -> Value:
    if isinstance(left.type, ir.FloatType):
        return arith.CmpFOp(getattr(arith.CmpFPredicate, predicate), left, right).result
    return arith.CmpIOp(getattr(arith.CmpIPredicate, predicate), left, right).result


def _resized(value: Value, type_: Type, *, signed: bool = False) -> Value:
    """An integer in another width."""
    if value.type.width == type_.width:
        return value
    if value.type.width > type_.width:
        return arith.TruncIOp(type_, value).result
    return (arith.ExtSIOp if signed else arith.ExtUIOp)(type_, value).result


def _of(value: int | float, like: Value) -> Value:
    return constant(value, like.type)


# Kinds of rules


def _emits(kind: Kind) -> Rule:
    """One op of the operands' type."""
    return lambda *x, type_: create(kind, x[0].type, *x)


def _calls(name: str) -> Rule:
    """A function of C's math library; that for fp32 has an f at its end."""

    def rule(*x: Any, type_: Type) -> Value:
        is_double = any(v.type == ir.F64Type.get() for v in x)
        return call_c(name if is_double else f"{name}f", list(x), type_)

    return rule


def _inverse(name: str) -> Rule:
    """One over a function of C's math library."""
    called = _calls(name)

    def rule(*x: Value, type_: Type) -> Value:
        value = called(*x, type_=type_)
        return arith.DivFOp(_of(1.0, value), value).result

    return rule


def _rounded(kind: Kind, *, signed: bool) -> Rule:
    """To an integer: rounded to one by an op of `math`, then converted, which saturates."""
    convert = arith.FPToSIOp if signed else arith.FPToUIOp
    return lambda x, type_: create(convert, type_, create(kind, x.type, x))


def _hypotenuse(*x: Value, type_: Type) -> Value:
    called = _calls("hypot")
    return functools.reduce(lambda a, b: called(a, b, type_=type_), x)


def _inverse_hypotenuse(*x: Value, type_: Type) -> Value:
    value = _hypotenuse(*x, type_=type_)
    return arith.DivFOp(_of(1.0, value), value).result


# Floating point


def _normal_distribution(x: Value, type_: Type) -> Value:
    scaled = arith.MulFOp(x, _of(-(0.5**0.5), x)).result
    return arith.MulFOp(_of(0.5, x), _calls("erfc")(scaled, type_=type_)).result


def _power(x: Value, n: Value, type_: Type) -> Value:
    """Of an integer exponent: in fp64, which has every i32."""
    f64 = ir.F64Type.get()
    wide = x if type_ == f64 else arith.ExtFOp(f64, x).result
    value = call_c("pow", [wide, arith.SIToFPOp(f64, n).result], f64)
    return value if type_ == f64 else arith.TruncFOp(type_, value).result


def _saturate(x: Value, type_: Type) -> Value:
    positive = arith.MaxNumFOp(x, _of(0.0, x)).result  # 0 for NaN
    return arith.MinNumFOp(positive, _of(1.0, x)).result


def _reciprocal(x: Value, type_: Type) -> Value:
    return arith.DivFOp(_of(1.0, x), x).result


# Bits


def _bits(value: Value) -> Value:
    return arith.BitcastOp(integer(value.type.width), value).result


def _cast_bits(x: Value, type_: Type) -> Value:
    return arith.BitcastOp(type_, x).result


def _low_word(x: Value, type_: Type) -> Value:
    return _resized(_bits(x), type_)


def _high_word(x: Value, type_: Type) -> Value:
    bits = _bits(x)
    return _resized(arith.ShRUIOp(bits, _of(32, bits)).result, type_)


def _double_of_words(high: Value, low: Value, type_: Type) -> Value:
    wide = integer(64)
    top = _resized(high, wide)
    top = arith.ShLIOp(top, _of(32, top)).result
    return arith.BitcastOp(type_, arith.OrIOp(top, _resized(low, wide)).result).result


def _is_nan(x: Value, type_: Type) -> Value:
    return _resized(_compare("UNO", x, x), type_)


def _magnitude(x: Value) -> Value:
    return create(math.AbsFOp, x.type, x)


def _is_infinite(x: Value, type_: Type) -> Value:
    return _resized(_compare("OEQ", _magnitude(x), _of(float("inf"), x)), type_)


def _is_finite(x: Value, type_: Type) -> Value:
    return _resized(_compare("OLT", _magnitude(x), _of(float("inf"), x)), type_)


def _sign_bit(x: Value, type_: Type) -> Value:
    bits = _bits(x)
    return _resized(_compare("slt", bits, _of(0, bits)), type_)


def _counted(kind: Kind) -> Rule:
    """A count of bits, as i32."""
    return lambda x, type_: _resized(create(kind, x.type, x), type_)


def _first_set(x: Value, type_: Type) -> Value:
    """The place of the lowest bit that is set, counted from 1; 0 where there is none."""
    place = arith.AddIOp(create(math.CountTrailingZerosOp, x.type, x), _of(1, x)).result
    none = _compare("eq", x, _of(0, x))
    return _resized(arith.SelectOp(none, _of(0, x), place).result, type_)


def _reversed_bits(x: Value, type_: Type) -> Value:
    return create(llvm.BitReverseOp, x.type, x)


def _absolute(x: Value, type_: Type) -> Value:
    return create(math.AbsIOp if isinstance(x.type, ir.IntegerType) else math.AbsFOp, x.type, x)


def _chosen_byte(bytes_: Value, selector: Value, number: int) -> Value:
    """Byte `number` of the result: the one of eight that three bits of the selector name."""
    place = arith.ShRUIOp(selector, _of(4 * number, selector)).result
    place = arith.AndIOp(place, _of(7, place)).result
    amount = _resized(arith.ShLIOp(place, _of(3, place)).result, bytes_.type)
    chosen = arith.ShRUIOp(bytes_, amount).result
    chosen = arith.AndIOp(chosen, _of(0xFF, chosen)).result
    return arith.ShLIOp(chosen, _of(8 * number, chosen)).result


def _permuted_bytes(x: Value, y: Value, selector: Value, type_: Type) -> Value:
    wide = integer(64)
    low, high = _resized(x, wide), _resized(y, wide)
    both = arith.OrIOp(low, arith.ShLIOp(high, _of(32, high)).result).result
    parts = [_chosen_byte(both, selector, number) for number in range(4)]
    return _resized(functools.reduce(lambda a, b: arith.OrIOp(a, b).result, parts), type_)


def _upper_half(*, signed: bool) -> Rule:
    def rule(x: Value, y: Value, type_: Type) -> Value:
        wide = integer(2 * type_.width)
        left, right = (_resized(value, wide, signed=signed) for value in (x, y))
        product = arith.MulIOp(left, right).result
        return _resized(arith.ShRUIOp(product, _of(type_.width, product)).result, type_)

    return rule


def _product_24(*, signed: bool) -> Rule:
    shift = arith.ShRSIOp if signed else arith.ShRUIOp

    def rule(x: Value, y: Value, type_: Type) -> Value:
        left, right = (
            shift(arith.ShLIOp(value, _of(8, value)).result, _of(8, value)).result
            for value in (x, y)
        )
        return arith.MulIOp(left, right).result

    return rule


def _mean(*, signed: bool, up: bool) -> Rule:
    """The mean of two integers, rounded down (or up), without overflow on the way."""
    shift = arith.ShRSIOp if signed else arith.ShRUIOp

    def rule(x: Value, y: Value, type_: Type) -> Value:
        half = shift(arith.XOrIOp(x, y).result, _of(1, x)).result
        if up:
            return arith.SubIOp(arith.OrIOp(x, y).result, half).result
        return arith.AddIOp(arith.AndIOp(x, y).result, half).result

    return rule


def _difference(*, signed: bool) -> Rule:
    """|x - y| + z"""
    greatest, least = ("maxsi", "minsi") if signed else ("maxui", "minui")

    def rule(x: Value, y: Value, z: Value, type_: Type) -> Value:
        high = create(f"arith.{greatest}", x.type, x, y)
        low = create(f"arith.{least}", x.type, x, y)
        return arith.AddIOp(arith.SubIOp(high, low).result, z).result

    return rule


def _from_integer(kind: Kind) -> Rule:
    return lambda x, type_: create(kind, type_, x)


RULES: dict[str, Rule] = {
    **special.RULES,
    **directed.RULES,
    **{name: _emits(f"math.{name}") for name in "ceil cos erf exp exp2 floor".split()},
    **{name: _emits(f"math.{name}") for name in "fma log log2 rsqrt sin sqrt trunc".split()},
    "copysign": _emits(math.CopySignOp),
    **{name: _emits(math.RoundEvenOp) for name in ("rint", "nearbyint")},
    "fma_rn": _emits(math.FmaOp),
    "sqrt_rn": _emits(math.SqrtOp),
    **{f"fast_{name}f": _emits(f"math.{name}") for name in "sin cos log log2 exp".split()},
    **{f"{name}_rn": _emits(f"arith.{name}f") for name in "add sub mul div".split()},
    "fast_dividef": _emits(arith.DivFOp),
    "fmax": _emits(arith.MaxNumFOp),
    "fmin": _emits(arith.MinNumFOp),
    **{
        name: _calls(name)
        for name in (
            "acos acosh asin asinh atan atan2 atanh cbrt cosh erfc exp10 expm1 fdim fmod hypot "
            "ilogb j0 j1 jn ldexp lgamma log10 log1p logb llround nextafter pow remainder round "
            "scalbn sinh tan tanh tgamma y0 y1 yn"
        ).split()
    },
    **{f"fast_{name}f": _calls(name) for name in "tan log10 exp10 pow".split()},
    "norm3d": _hypotenuse,
    "norm4d": _hypotenuse,
    "rnorm3d": _inverse_hypotenuse,
    "rnorm4d": _inverse_hypotenuse,
    "rhypot": _inverse("hypot"),
    "rcbrt": _inverse("cbrt"),
    "rcp_rn": _reciprocal,
    "normcdf": _normal_distribution,
    "powi": _power,
    "saturatef": _saturate,
    "isnan": _is_nan,
    "isinf": _is_infinite,
    "finitef": _is_finite,
    "isfinited": _is_finite,
    "signbit": _sign_bit,
    **dict.fromkeys(
        (
            "int_as_float float_as_int uint_as_float float_as_uint longlong_as_double "
            "double_as_longlong"
        ).split(),
        _cast_bits,
    ),
    "hiloint2double": _double_of_words,
    "double2loint": _low_word,
    "double2hiint": _high_word,
    **{
        f"{source}2{target}_{mode}": _rounded(name, signed=not target.startswith("u"))
        for source in ("float", "double")
        for target in ("int", "uint", "ll", "ull")
        for mode, name in (
            ("rn", math.RoundEvenOp),
            ("rz", math.TruncOp),
            ("rd", math.FloorOp),
            ("ru", math.CeilOp),
        )
    },
    "llrint": _rounded(math.RoundEvenOp, signed=True),
    **{
        f"{source}2{target}_rn": _from_integer(
            arith.UIToFPOp if source.startswith("u") else arith.SIToFPOp
        )
        for source in ("int", "uint", "ll", "ull")
        for target in ("float", "double")
    },
    "double2float_rn": _from_integer(arith.TruncFOp),
    "abs": _absolute,
    "clz": _counted(math.CountLeadingZerosOp),
    "popc": _counted(math.CtPopOp),
    "ffs": _first_set,
    "brev": _reversed_bits,
    "byte_perm": _permuted_bytes,
}
# Functions that mean something else on signed and on unsigned integers.
SIGNED, UNSIGNED = (
    {
        "mulhi": _upper_half(signed=signed),
        "mul24": _product_24(signed=signed),
        "hadd": _mean(signed=signed, up=False),
        "rhadd": _mean(signed=signed, up=True),
        "sad": _difference(signed=signed),
        "min": _emits(f"arith.min{letter}i"),
        "max": _emits(f"arith.max{letter}i"),
    }
    for signed, letter in ((True, "s"), (False, "u"))
)
