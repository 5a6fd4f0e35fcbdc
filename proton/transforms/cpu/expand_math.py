"""`math.exp`, `exp2`, `log` and `log2` of f32 scalars become polynomials that LLVM vectorises.

A call of the C library handles one element at a time, eight times slower than this. The method
is the textbook one (Cody and Waite, *Software Manual for the Elementary Functions*): reduce the
argument by a power of two, evaluate a minimax polynomial, put the power back. Coefficients were
fitted by Lawson's algorithm to the relative error given beside them (`docs/math.md`). NaN,
infinities, zeros and denormals come out as IEEE 754 has it; the measured error is below 1.1 ulp
for exp and exp2, 0.9 ulp for log and 1.2 ulp for log2 (tests/cpu/test_math.py asserts it).
"""

import math as python_math
import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from proton.dialect import by_name
from proton.dialect.builtin import integer
from proton.dialect.emit import constant, create
from proton.dialect.mlir import Module, Value, arith, ir, llvm, math
from proton.dialect.walk import all_ops, before, replace
from proton.passes import Pass, register

# (exp(r) - 1 - r) / r^2 on [-ln2/2, ln2/2], relative error of exp 3.1e-9
EXP = (
    0.4999999403953552,
    0.1666652113199234,
    0.04166838899254799,
    0.008368716575205326,
    0.001381459878757596,
)
# (log(1 + f) - f) / f^2 on [sqrt(1/2) - 1, sqrt(2) - 1], relative error of log 4.1e-9
LOG = (
    -0.49999988079071045,
    0.33333325386047363,
    -0.25001582503318787,
    0.20001976191997528,
    -0.16609077155590057,
    0.14181779325008392,
    -0.13242976367473602,
    0.12904690206050873,
    -0.07622108608484268,
)
LN2_HIGH, LN2_LOW = 0.693145751953125, 1.42860682030941723212e-6  # 15 bits, and the rest
ROUND = 12582912.0  # 1.5 * 2^23: adding it leaves the nearest integer in the low bits


def _f32_bits(value: float) -> int:
    return int(struct.unpack("<i", struct.pack("<f", value))[0])


@register
@dataclass(frozen=True)
class ExpandMath(Pass):
    """Expands transcendental functions of f32 scalars.

    `scales` says that the CPU has an instruction for x * 2^n (`vscalefps`, of AVX-512), to which
    LLVM lowers `ldexp`; elsewhere that would be a call.
    """

    name: ClassVar[str] = "expand-math"

    scales: bool = False

    def run(self, module: Module) -> None:
        scale = _ldexp if self.scales else _scale
        for op in all_ops(module):
            if op.name in _RULES and op.operands[0].type == ir.F32Type.get():
                with before(op):
                    replace(op, [_RULES[op.name](_F32(op.operands[0]), scale).value])


class _Scalar:
    """A scalar in the IR with Python's operators."""

    def __init__(self, value: Value) -> None:
        self.value = value


class _I32(_Scalar):
    def __add__(self, other: "int | _I32") -> "_I32":
        return _I32(arith.AddIOp(self.value, _i32(other)).result)

    def __sub__(self, other: "int | _I32") -> "_I32":
        return _I32(arith.SubIOp(self.value, _i32(other)).result)

    def __and__(self, other: int) -> "_I32":
        return _I32(arith.AndIOp(self.value, _i32(other)).result)

    def __lshift__(self, bits: int) -> "_I32":
        return _I32(arith.ShLIOp(self.value, _i32(bits)).result)

    def __rshift__(self, bits: int) -> "_I32":
        return _I32(arith.ShRSIOp(self.value, _i32(bits)).result)

    def as_float(self) -> "_F32":
        """The same bits."""
        return _F32(arith.BitcastOp(ir.F32Type.get(), self.value).result)

    def to_float(self) -> "_F32":
        """The same number."""
        return _F32(arith.SIToFPOp(ir.F32Type.get(), self.value).result)


class _F32(_Scalar):
    def __add__(self, other: "float | _F32") -> "_F32":
        return _F32(arith.AddFOp(self.value, _f32(other)).result)

    def __sub__(self, other: "float | _F32") -> "_F32":
        return _F32(arith.SubFOp(self.value, _f32(other)).result)

    def __mul__(self, other: "float | _F32") -> "_F32":
        return _F32(arith.MulFOp(self.value, _f32(other)).result)

    def fma(self, factor: "float | _F32", addend: "float | _F32") -> "_F32":
        """self * factor + addend, rounded once."""
        return _F32(math.FmaOp(self.value, _f32(factor), _f32(addend)).result)

    def bits(self) -> "_I32":
        """The same bits."""
        return _I32(arith.BitcastOp(integer(32), self.value).result)

    def where(self, predicate: str, other: float, chosen: "float | _F32") -> "_F32":
        """`chosen` where self compares so with `other`; comparisons with NaN are false."""
        code = getattr(arith.CmpFPredicate, predicate)
        condition = arith.CmpFOp(code, self.value, _f32(other)).result
        return _F32(arith.SelectOp(condition, _f32(chosen), self.value).result)


_Scale = Callable[[_F32, _I32], _F32]  # value * 2^power, rounded once


def _f32(value: "float | _F32") -> Value:
    if isinstance(value, _F32):
        return value.value
    return constant(value, ir.F32Type.get())


def _i32(value: "int | _I32") -> Value:
    i32 = integer(32)
    return value.value if isinstance(value, _I32) else constant(value, i32)


def _polynomial(x: _F32, coefficients: tuple[float, ...]) -> _F32:
    """By Horner's rule."""
    result = x.fma(coefficients[-1], coefficients[-2])
    for coefficient in reversed(coefficients[:-2]):
        result = result.fma(x, coefficient)
    return result


def _scale(value: _F32, power: _I32) -> _F32:
    """value * 2^power in two steps, so that denormal results round once."""
    half = power >> 1
    first = ((half + 127) << 23).as_float()
    second = ((power - half + 127) << 23).as_float()
    return value * first * second


def _ldexp(value: _F32, power: _I32) -> _F32:
    """The same by one instruction."""
    result = create(llvm.LoadExpOp, ir.F32Type.get(), value.value, power.value)
    return _F32(result)


def _exp_reduced(r: _F32) -> _F32:
    """exp(r) for |r| <= ln2 / 2."""
    return _polynomial(r, EXP).fma(r * r, r) + 1.0


def _exp(x: _F32, scale: _Scale) -> _F32:
    x = x.where("OLT", -104.0, -104.0).where("OGT", 89.0, 89.0)  # exp is 0 and infinite there
    shifted = x.fma(python_math.log2(python_math.e), ROUND)
    power, rounded = shifted.bits() - _f32_bits(ROUND), shifted - ROUND
    r = rounded.fma(-LN2_LOW, rounded.fma(-LN2_HIGH, x))
    return scale(_exp_reduced(r), power)


def _exp2(x: _F32, scale: _Scale) -> _F32:
    x = x.where("OLT", -151.0, -151.0).where("OGT", 129.0, 129.0)
    shifted = x + ROUND
    power, rounded = shifted.bits() - _f32_bits(ROUND), shifted - ROUND
    return scale(_exp_reduced((x - rounded) * python_math.log(2)), power)


def _split(x: _F32) -> tuple[_F32, _F32]:
    """(power, f) with x = 2^power * (1 + f), 1 + f in [sqrt(1/2), sqrt(2)); x normal or not."""
    smallest_normal = 2.0**-126
    large = x.where("OLT", smallest_normal, x * 2.0**23)
    bias = arith.SelectOp(
        arith.CmpFOp(arith.CmpFPredicate.OLT, x.value, _f32(smallest_normal)).result,
        _i32(-23),
        _i32(0),
    ).result
    # Subtracting the bits of sqrt(1/2) makes the exponent field count from there.
    offset = large.bits() - _f32_bits(python_math.sqrt(0.5))
    power = offset >> 23
    mantissa = (large.bits() - (power << 23)).as_float()
    return (power + _I32(bias)).to_float(), mantissa - 1.0


def _log_special(x: _F32, result: _F32) -> _F32:
    """log's values at 0, below, at infinity and at NaN."""
    zero, infinity = _f32(0.0), _f32(python_math.inf)

    def select(predicate: str, other: Value, chosen: Value, otherwise: _F32) -> _F32:
        code = getattr(arith.CmpFPredicate, predicate)
        condition = arith.CmpFOp(code, x.value, other).result
        return _F32(arith.SelectOp(condition, chosen, otherwise.value).result)

    result = select("OEQ", zero, _f32(-python_math.inf), result)
    result = select("UEQ", infinity, x.value, result)  # infinity, and NaN
    return select("OLT", zero, _f32(python_math.nan), result)


def _log(x: _F32, _: _Scale) -> _F32:
    power, f = _split(x)
    tail = power.fma(LN2_LOW, _polynomial(f, LOG) * (f * f))
    return _log_special(x, power.fma(LN2_HIGH, f + tail))


def _log2(x: _F32, _: _Scale) -> _F32:
    power, f = _split(x)
    log2e = 1 / python_math.log(2)
    high = struct.unpack("<f", struct.pack("<i", _f32_bits(log2e) & ~0xFFF))[0]
    tail = _polynomial(f, LOG) * (f * f)
    # log2(1 + f) = (f + tail) * log2(e), with the constant in two parts.
    small = f.fma(log2e - high, tail * log2e)
    return _log_special(x, f.fma(high, small) + power)


_RULES = by_name({math.ExpOp: _exp, math.Exp2Op: _exp2, math.LogOp: _log, math.Log2Op: _log2})
