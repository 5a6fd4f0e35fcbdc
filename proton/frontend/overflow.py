"""Overflows of integers, which debug mode checks: Triton's `sanitize_overflow`.

A sum, a difference or a product of integers below 64 bits is computed in 64 bits, too, and has to
lie within its type.
"""

from typing import Any

from proton.frontend.arithmetic import binary, logical, with_types
from proton.frontend.interface import CodeGenerator
from proton.frontend.promotion import binary_operands, cast
from proton.frontend.rules import generator_rule
from proton.language import core
from proton.language import types as ty
from proton.language.function import Builtin
from proton.language.value import tensor

_NAMES = {"+": "add", "-": "sub", "*": "mul"}
_WIDE = 64  # bits


def binary_checked(g: CodeGenerator, symbol: str, x: object, y: object) -> Any:
    """`x symbol y`, with an assertion in debug mode that it does not overflow."""
    result = binary(symbol, x, y)
    checked = g.debug and g.sanitize_overflow and symbol in _NAMES
    if checked and _may_overflow(result):
        type_ = result.dtype
        wide = ty.uint64 if symbol == "*" and type_.is_int_unsigned() else ty.int64
        exact = binary(symbol, *(cast(v, wide) for v in binary_operands(x, y, symbol=symbol)))
        low, high = type_.get_int_min_value(), type_.get_int_max_value()
        fits = logical("and", binary(">=", exact, low), binary("<=", exact, high))
        g.device_assert(fits, f"{type_.name} overflow detected for operation {_NAMES[symbol]}")
    return result


def _sum_rule(op: Builtin, symbol: str) -> None:
    @generator_rule(op)
    def compute(g: CodeGenerator, x: object, y: object, sanitize_overflow: object = True) -> object:
        x, y = with_types((x, y))
        return binary_checked(g, symbol, x, y) if sanitize_overflow else binary(symbol, x, y)


_sum_rule(core.add, "+")
_sum_rule(core.sub, "-")
_sum_rule(core.mul, "*")


def _may_overflow(value: object) -> bool:
    if not isinstance(value, tensor) or not value.dtype.is_int():
        return False
    return 1 < value.dtype.primitive_bitwidth < _WIDE
