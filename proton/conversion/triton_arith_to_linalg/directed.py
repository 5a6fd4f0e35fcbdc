"""Arithmetic and conversions that round towards zero, down or up.

Each is a result that was rounded to nearest, and the error of that, of which the sign says whether
the neighbour of the result is the one that was asked for. Errors are exact (Dekker, Knuth), or
have the right sign: where one of fp64 may be below the least fp64 it is computed of scaled numbers.
fp32 is computed in fp64.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

from proton.conversion.triton_arith_to_linalg.numbers import Number, of_bits
from proton.dialect.emit import constant, create
from proton.dialect.mlir import Type, Value, arith, ir

MODES = ("rz", "rd", "ru")
Rounded = tuple[Number, Number]  # to nearest, and what is missing to the exact result


# Results with their errors


def _sum(x: Number, y: Number) -> Rounded:
    total = x + y
    part = total - x
    return total, (x - (total - part)) + (y - part)


def _difference(x: Number, y: Number) -> Rounded:
    return _sum(x, -y)


def _scale(condition: Value, like: Number, power: int) -> Number:
    """A power of two where the condition holds, else 1."""
    return Number(like._of(2.0**power)).where(condition, 1.0)


def _product(x: Number, y: Number) -> Rounded:
    value = x * y
    scale = _scale(abs(value).compare("OLT", 2.0**-900), x, 600)
    return value, (x * scale).function("fma", y * scale, -(value * scale * scale))


def _quotient(x: Number, y: Number) -> Rounded:
    """The remainder has the sign of the error times that of the divisor."""
    value = x / y
    is_small = arith.AndIOp(abs(x).compare("OLT", 2.0**-600), abs(y).compare("OLT", 2.0**700))
    scale = _scale(is_small.result, x, 300)
    rest = (-value).function("fma", y * scale, x * scale)
    return value, rest * Number(y._of(1.0)).function("copysign", y)


def _reciprocal(x: Number) -> Rounded:
    return _quotient(Number(x._of(1.0)), x)


def _square_root(x: Number) -> Rounded:
    value = x.function("sqrt")
    scale = _scale(x.compare("OLT", 2.0**-500), x, 300)
    return value, (-(value * scale)).function("fma", value * scale, x * scale * scale)


def _fused(x: Number, y: Number, z: Number) -> Rounded:
    value = x.function("fma", y, z)
    is_tiny = abs(x * y).compare("OLT", 2.0**-900)
    is_small = arith.AndIOp(is_tiny, abs(z).compare("OLT", 2.0**-700)).result
    # Beside a larger z all that matters of a tiny product is its sign.
    stands_in = arith.AndIOp(is_tiny, arith.XOrIOp(is_small, is_tiny).result).result
    for factor in (x, y):
        stands_in = arith.AndIOp(stands_in, factor.compare("UNE", 0.0)).result
    scale = _scale(is_small, x, 600)
    x, y = (
        Number(f._of(2.0**-450)).function("copysign", f).where(stands_in, f * scale) for f in (x, y)
    )
    z, whole = z * scale * scale, value * scale * scale
    product = x * y
    low = x.function("fma", y, -product)
    total, rest = _sum(product, z)
    return value, ((total - whole) + rest) + low


_ARITHMETIC: dict[str, Callable[..., Rounded]] = {
    "add": _sum,
    "sub": _difference,
    "mul": _product,
    "div": _quotient,
    "rcp": _reciprocal,
    "sqrt": _square_root,
    "fma": _fused,
}


# Rounding


def _neighbour(value: Number, *, up: bool) -> Number:
    """The next float in a direction; of bits that are those of a sign and a magnitude."""
    bits, width = value.bits(), value.width
    one = constant(1, bits.type)
    grows = value.compare("OGT" if up else "OLT", 0.0)
    away, back = arith.AddIOp(bits, one).result, arith.SubIOp(bits, one).result
    moved = arith.SelectOp(grows, away, back).result
    least = constant(1 if up else 1 - (1 << (width - 1)), bits.type)
    moved = arith.SelectOp(value.compare("OEQ", 0.0), least, moved).result
    return of_bits(moved, value.type)


def _directed(nearest: Number, error: Number, mode: str) -> Number:
    """The result by a mode; `error` has the sign of what is missing to the exact one."""
    below = _neighbour(nearest, up=False).where(error.compare("OLT", 0.0), nearest)
    above = _neighbour(nearest, up=True).where(error.compare("OGT", 0.0), nearest)
    if mode == "rd":
        return below
    if mode == "ru":
        return above
    return below.where(
        nearest.compare("OGT", 0.0), above.where(nearest.compare("OLT", 0.0), nearest)
    )


def _narrowed(exact: Rounded, type_: Type, mode: str) -> Number:
    """An fp64 and its error, as a narrower float: what narrowing loses outweighs the error."""
    value, error = exact
    nearest = value.to(type_)
    lost = value - nearest.wide()
    return _directed(nearest, lost.where(lost.compare("UNE", 0.0), error), mode)


def _not_infinite(exact: Rounded, operands: Sequence[Number], name: str) -> Rounded:
    """Where finite operands gave infinity, the exact result is below it; 1 / 0 is exact."""
    value, error = exact
    is_below = abs(value).compare("OEQ", math.inf)
    for operand in operands:
        finite = abs(operand).compare("OLT", math.inf)
        is_below = arith.AndIOp(is_below, finite).result
    if name in ("div", "rcp"):
        divides = operands[-1].compare("UNE", 0.0)
        is_below = arith.AndIOp(is_below, divides).result
    return value, (-value).where(is_below, error)


def _sum_of_opposites(value: Number, exact: Rounded, x: Number, y: Number) -> Number:
    """A sum rounded down: of numbers of different signs it is -0 where it is 0, and not where it
    is rounded to that."""
    signs = Number(x._of(1.0)).function("copysign", x) * Number(x._of(1.0)).function("copysign", y)
    differ = signs.compare("OLT", 0.0)
    is_zero = differ
    for part in exact:
        is_zero = arith.AndIOp(is_zero, part.compare("OEQ", 0.0)).result
    return Number(value._of(-0.0)).where(is_zero, value)


def _arithmetic(name: str, mode: str) -> Callable[..., Value]:
    def rule(*x: Value, type_: Type) -> Value:
        operands = [Number(value).wide() for value in x]
        exact = _ARITHMETIC[name](*operands)
        if type_.width == 64:
            value = _directed(*_not_infinite(exact, operands, name), mode)
        else:
            value = _narrowed(exact, type_, mode)
        if mode == "rd" and name in ("add", "sub", "fma"):
            first = operands[0] * operands[1] if name == "fma" else operands[0]
            last = -operands[-1] if name == "sub" else operands[-1]
            value = _sum_of_opposites(value, exact, first, last)
        return value.value

    return rule


# Conversions


def _of_integer(mode: str, *, signed: bool) -> Callable[..., Any]:
    """An integer in two parts that fp64 has, and their sum with its error."""

    def rule(x: Value, type_: Type) -> Value:
        f64 = ir.F64Type.get()
        name = arith.SIToFPOp if signed else arith.UIToFPOp
        if x.type.width == 64:
            low_bits = constant((1 << 11) - 1, x.type)
            low = arith.AndIOp(x, low_bits).result
            parts = arith.SubIOp(x, low).result, low
            exact = _sum(*[Number(create(name, f64, part)) for part in parts])
        else:
            value = Number(create(name, f64, x))
            exact = value, Number(value._of(0.0))
        if type_ == f64:
            return _directed(*exact, mode).value
        return _narrowed(exact, type_, mode).value

    return rule


def _of_double(mode: str) -> Callable[..., Value]:
    def rule(x: Value, type_: Type) -> Value:
        value = Number(x)
        error = Number(value._of(0.0))
        return _narrowed((value, error), type_, mode).value

    return rule


# fp64 has all integers of 32 bits.
_CONVERSIONS = {
    **dict.fromkeys(("int", "uint"), ("float",)),
    **dict.fromkeys(("ll", "ull"), ("float", "double")),
}
RULES: dict[str, Callable[..., Value]] = {
    **{f"{name}_{mode}": _arithmetic(name, mode) for name in _ARITHMETIC for mode in MODES},
    **{
        f"{source}2{target}_{mode}": _of_integer(mode, signed=not source.startswith("u"))
        for source, targets in _CONVERSIONS.items()
        for target in targets
        for mode in MODES
    },
    **{f"double2float_{mode}": _of_double(mode) for mode in MODES},
}
