"""Rounding fp64 so that it can be rounded again, to any narrower format.

Rounding twice to nearest is not rounding once: 1 + 2^-8 + 2^-40 would go to the tie 1 + 2^-8 in
fp32 and to 1 in bf16. So fp64 is first rounded *to odd* in fp32: of the two neighbours of an
inexact value the one whose last bit is set, which no later rounding takes for a tie.
"""

from proton.dialect.builtin import integer
from proton.dialect.emit import create
from proton.dialect.mlir import Value, arith, ir, math


def to_odd_f32(value: Value) -> Value:
    """fp64 to fp32, rounded to odd; infinities and NaN stay what they are."""
    i32 = integer(32)
    near = arith.TruncFOp(ir.F32Type.get(), value).result
    back = arith.ExtFOp(value.type, near).result
    inexact = arith.CmpFOp(arith.CmpFPredicate.ONE, back, value).result
    away = arith.CmpFOp(
        arith.CmpFPredicate.OGT, _magnitude(back), _magnitude(value)
    ).result  # also where it overflowed: one below infinity is the greatest number
    bits = arith.BitcastOp(i32, near).result
    bits = arith.SubIOp(bits, arith.ExtUIOp(i32, away).result).result
    bits = arith.OrIOp(bits, arith.ExtUIOp(i32, inexact).result).result
    return arith.BitcastOp(ir.F32Type.get(), bits).result


def _magnitude(value: Value) -> Value:
    return create(math.AbsFOp, value.type, value)
