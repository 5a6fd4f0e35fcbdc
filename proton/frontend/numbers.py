"""Numbers that a kernel has given a name.

A number that is written in an expression, or that is a constexpr, takes the type of what it meets:
`x * 0.5` is fp16 if x is. One that is assigned to a variable is a scalar of a type of its own, as
in Triton: after `half = 0.5`, `x * half` is fp32. It stays known while compiling all the same, so
that it may be a size or decide an `if`. Here such a number is an int or a float with a `dtype`. A
bool is one of one bit, and so is what a comparison with such a number gives: `-flag` is a bool.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from proton.language import types as ty

COMPARISONS = ("==", "!=", "<", "<=", ">", ">=")
_SHIFTS = ("<<", ">>")


def _quotient(x: int, y: int) -> int:
    """x / y, rounded towards zero."""
    return x // y if (x < 0) == (y < 0) else -(-x // y)


def _remainder(x: int, y: int) -> int:
    """What `_quotient` leaves; it has the sign of x."""
    return x - _quotient(x, y) * y


DIVISIONS = {"//": _quotient, "%": _remainder}


class TypedInt(int):
    """An integer with a type; what Python computes with it has none."""

    dtype: ty.dtype


class TypedBool(TypedInt):
    """A number of one bit, which is shown as a bool."""

    def __repr__(self) -> str:
        return repr(bool(self))

    __str__ = __repr__


class TypedFloat(float):
    """A number with a type; what Python computes with it has none."""

    dtype: ty.dtype


def is_typed(value: object) -> bool:
    """True if a value is a number that has a type of its own."""
    return isinstance(value, TypedInt | TypedFloat)


def typed(value: int | float, dtype: ty.dtype) -> Any:
    """A number of this type: an integer modulo its width, a float as near as it gets."""
    if dtype.is_floating():
        return _with(TypedFloat(_rounded(float(value), dtype)), dtype)
    number = int(value) & ((1 << dtype.primitive_bitwidth) - 1)
    if dtype.is_bool():
        return _with(TypedBool(number), dtype)
    if number > dtype.get_int_max_value():
        number -= 1 << dtype.primitive_bitwidth
    return _with(TypedInt(number), dtype)


def _with(number: Any, dtype: ty.dtype) -> Any:
    number.dtype = dtype
    return number


def _rounded(value: float, dtype: ty.dtype) -> float:
    with np.errstate(over="ignore"):
        return float(np.float32(value)) if dtype.is_fp32() else value


def untyped(value: Any) -> Any:
    """A number, or those in a tuple, as a constexpr has them."""
    if isinstance(value, TypedBool):
        return bool(value)
    if isinstance(value, TypedInt):
        return int(value)
    if isinstance(value, TypedFloat):
        return float(value)
    if type(value) in (tuple, list):
        return type(value)(map(untyped, value))
    return value


def same_number(left: object, right: object) -> bool:
    """True if two values that are known while compiling are the same, whatever their types."""
    left, right = untyped(left), untyped(right)
    if isinstance(left, float) and isinstance(right, float):
        return repr(left) == repr(right)  # 0.0 and -0.0 differ
    return type(left) is type(right) and bool(left == right)


def of_unary(function: Callable[[Any], Any], x: Any) -> Any:
    """What Python computes of a number, with the number's type if it has one."""
    value = function(x)
    if not is_typed(x):
        return value
    return typed(value, ty.int1 if isinstance(value, bool) else x.dtype)


def of_binary(
    symbol: str,
    function: Callable[[Any, Any], Any],
    x: Any,
    y: Any,
    meeting: Callable[..., ty.dtype],
) -> Any:
    """What `function` computes of two values that are known while compiling. If one of them is a
    number with a type, both are numbers of the type in which they meet, as `meeting` says, and so
    is the result."""
    if not (is_typed(x) or is_typed(y)) or not all(isinstance(v, int | float) for v in (x, y)):
        return function(x, y)
    dtype = meeting(x, y, symbol)
    if dtype.is_floating():
        if symbol == "//":
            raise TypeError("floats have no quotient without a rest")
        function = math.fmod if symbol == "%" else function
    elif symbol in DIVISIONS:
        function = DIVISIONS[symbol]
    elif symbol in COMPARISONS and not (is_typed(x) and is_typed(y)):
        return typed(function(x, y), ty.int1)  # also with one that has no place in the type
    if symbol not in _SHIFTS:  # which have the sign and the bits of their left side
        x, y = typed(x, dtype), typed(y, dtype)
    elif symbol == ">>" and not is_typed(x) and not y.dtype.is_int_signed():
        x &= (1 << dtype.primitive_bitwidth) - 1  # a number has the sign of the other side
    value = function(x, y)
    if isinstance(value, bool):
        return typed(value, ty.int1)
    if isinstance(value, float) and not dtype.is_floating():
        return value
    return typed(value, dtype)
