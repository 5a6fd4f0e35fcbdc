"""Functions of libdevice that C's library lacks, from those that it has, in fp64: inverse error
functions, the modified Bessel functions, sines of multiples of pi."""

import math
from collections.abc import Callable

from proton.conversion.triton_arith_to_linalg.numbers import Number, of_bits
from proton.dialect.emit import constant
from proton.dialect.mlir import Type, Value, arith

_STEPS = 3  # of Halley's iteration: each triples the digits, and the first guess has three
_HALF_PI = math.pi / 2


def _in_double(function: Callable[[Number], Number]) -> Callable[..., Value]:
    """A rule that computes in fp64 and rounds once."""

    def rule(x: Value, type_: Type) -> Value:
        return function(Number(x).wide()).to(type_).value

    return rule


# Inverse error functions


def _inverse_near_zero(y: Number) -> Number:
    """erfinv up to 0.5."""
    x = y * (math.sqrt(math.pi) / 2)
    for _ in range(2 * _STEPS):
        x = _halley(x, x.function("erf") - y)
    return x


def _inverse_of_tail(y: Number) -> Number:
    """erfcinv from 0 to 0.5. First a guess (Abramowitz and Stegun, 26.2.23, within 4.5e-4)."""
    t = (-2.0 * (y * 0.5).function("log")).function("sqrt")
    above = t.polynomial((2.515517, 0.802853, 0.010328))
    below = t.polynomial((1.0, 1.432788, 0.189269, 0.001308))
    x = (t - above / below) * math.sqrt(0.5)
    for _ in range(_STEPS):
        x = _halley(x, y - x.c_function("erfc"))
    return Number(x._of(math.inf)).where(y.compare("OEQ", 0.0), x)


def _halley(x: Number, error: Number) -> Number:
    """A better x, where erf(x) is too large by `error`: its slope is 2 / sqrt(pi) e^(-x^2)."""
    step = error * (x * x).function("exp") * (math.sqrt(math.pi) / 2)
    return x - step / (1.0 + x * step)


def _inverse_erfc(y: Number) -> Number:
    middle = 1.0 - y  # exact where it is used
    upper = y.compare("OGT", 1.0)
    tail = _inverse_of_tail((2.0 - y).where(upper, y))
    tail = (-tail).where(upper, tail)
    return _inverse_near_zero(middle).where(abs(middle).compare("OLE", 0.5), tail)


def _inverse_erf(y: Number) -> Number:
    tail = _inverse_of_tail(1.0 - abs(y))
    x = _inverse_near_zero(y).where(abs(y).compare("OLE", 0.5), tail)
    return x.function("copysign", y)


def _inverse_normal(p: Number) -> Number:
    return _inverse_erfc(2.0 * p) * -math.sqrt(2.0)


def _scaled_erfc(x: Number) -> Number:
    """e^(x^2) erfc(x). The square is split so that its error does not reach the exponent; from 10
    on, where erfc gets small, by the asymptotic series."""
    high = of_bits(arith.AndIOp(x.bits(), constant(-1 << 32, x.bits().type)).result, x.type)
    power = (high * high).function("exp") * ((x - high) * (x + high)).function("exp")
    near = power * x.c_function("erfc")
    inverse, coefficients = 1.0 / (x * x), [1.0]
    for n in range(1, 13):
        coefficients.append(coefficients[-1] * -(2 * n - 1) / 2)
    far = inverse.polynomial(coefficients) / (x * math.sqrt(math.pi))
    return far.where(x.compare("OGE", 10.0), near)


# Modified Bessel functions of the first kind


def _bessel(order: int) -> Callable[[Number], Number]:
    """I0 or I1: the series where x is below 20, which takes 50 terms, else the asymptotic one."""

    def function(x: Number) -> Number:
        magnitude = abs(x)
        quarter, near = x * x * 0.25, Number(x._of(1.0))
        for k in range(50, 0, -1):
            near = near * quarter * (1.0 / (k * (k + order))) + 1.0
        far, four = Number(x._of(1.0)), 4 * order * order
        for k in range(25, 0, -1):
            far = 1.0 - far * (four - (2 * k - 1) ** 2) / (magnitude * (8 * k))
        half = (magnitude * 0.5).function("exp")  # e^x alone would be infinite too early
        far = half * (half * far / (magnitude * (2 * math.pi)).function("sqrt"))
        if order:
            near, far = near * x * 0.5, far.function("copysign", x)
        value = near.where(magnitude.compare("OLT", 20.0), far)
        is_infinite = magnitude.compare("OEQ", math.inf)
        return (x if order else magnitude).where(is_infinite, value)

    return function


# Sines of multiples of pi


def _sin_pi(x: Number) -> Number:
    """Of what is left after whole periods, folded to a quarter of one: all of that is exact."""
    phase = x - 2.0 * (x * 0.5).function("roundeven")  # from -1 to 1
    folded = phase.where(abs(phase).compare("OLE", 0.5), _reflected(phase))
    return (
        (folded * math.pi)
        .function("sin")
        .function("copysign", folded)
        .where(folded.compare("UNE", 0.0), folded.function("copysign", x))
    )


def _reflected(phase: Number) -> Number:
    """The point with the same sine on the other side of a quarter period."""
    return (1.0 - abs(phase)).function("copysign", phase)


def _cos_pi(x: Number) -> Number:
    phase = abs(x - 2.0 * (x * 0.5).function("roundeven"))
    from_quarter = 0.5 - phase
    return (from_quarter * math.pi).function("sin")


# Reciprocals


def _high_reciprocal(x: Number) -> Number:
    """1 / x with the upper half of its bits."""
    value = 1.0 / x
    bits = value.bits()
    return of_bits(arith.AndIOp(bits, constant(-1 << 32, bits.type)).result, value.type)


RULES: dict[str, Callable[..., Value]] = {
    name: _in_double(function)
    for name, function in {
        "erfinv": _inverse_erf,
        "erfcinv": _inverse_erfc,
        "erfcx": _scaled_erfc,
        "normcdfinv": _inverse_normal,
        "cyl_bessel_i0": _bessel(0),
        "cyl_bessel_i1": _bessel(1),
        "sinpi": _sin_pi,
        "cospi": _cos_pi,
        "rsqrt_rn": lambda x: 1.0 / x.function("sqrt"),
        "rcp64h": _high_reciprocal,
    }.items()
}
