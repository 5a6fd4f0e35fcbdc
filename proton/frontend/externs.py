"""Calls of a target library's functions (`tl.extra.libdevice`) on blocks and scalars."""

from collections.abc import Sequence
from typing import Any

from proton.base.words import shown
from proton.dialect import tt
from proton.dialect.builtin import string_attr
from proton.dialect.mlir import ir
from proton.frontend import trees
from proton.frontend.builder import (
    as_tensor,
    broadcast_all,
    constant,
    error,
    is_number,
    to_ir,
    wrap,
)
from proton.frontend.numbers import is_typed
from proton.frontend.promotion import cast, to_bool
from proton.language import types as ty
from proton.language.constants import constexpr
from proton.language.function import BuiltinPython, ExternFunction, ExternPython
from proton.language.value import tensor


def call_extern(function: ExternFunction, args: Sequence[Any]) -> tensor:
    """The function applied to each element; arguments are broadcast to one shape.

    The entry of its table is the one of the arguments' dtypes. Python numbers have no dtype:
    they take the entry's. Raises CompilationError where no entry fits.
    """
    dtypes = _entry(function, args)
    symbol, result = function.table[dtypes]
    values = broadcast_all(
        *[
            cast(value, dtype) if isinstance(value, tensor) else constant(value, dtype)
            for value, dtype in zip(args, dtypes, strict=True)
        ]
    )
    type_ = ty.with_scalar(values[0].type, result)
    op = tt.ExternElementwiseOp(
        string_attr(symbol),
        string_attr(function.library),
        string_attr(""),
        ir.BoolAttr.get(True),
        to_ir(type_),
        **{f"src{n}": value.handle for n, value in enumerate(values)},
    )
    value = wrap(op, type_)
    return to_bool(value) if function.is_test else value


def _entry(function: ExternFunction, args: Sequence[object]) -> tuple[ty.dtype, ...]:
    """The dtypes of the entry to call: the one of these dtypes, else the first that fits."""
    for value in args:
        if not isinstance(value, tensor) and not is_number(value):
            as_tensor(value, f"an argument of {function.__name__}")  # raises
    for fits in (_is, _fits, _widens):
        for dtypes in function.table:
            if all(fits(value, dtype) for value, dtype in zip(args, dtypes, strict=True)):
                return dtypes
    found = ", ".join(
        repr(value.dtype) if isinstance(value, tensor) else shown(value) for value in args
    )
    kinds = " or ".join(f"({', '.join(map(repr, dtypes))})" for dtypes in function.table)
    raise error(
        f"{function.library}.{function.__name__} takes {kinds}, got ({found})",
        "convert the arguments with .to(...)",
    )


def _widens(value: object, dtype: ty.dtype) -> bool:
    """A narrower float, or what fits: functions of fp32 take fp16 and bf16."""
    if not isinstance(value, tensor) or not (value.dtype.is_floating() and dtype.is_floating()):
        return _fits(value, dtype)
    return value.dtype.primitive_bitwidth <= dtype.primitive_bitwidth


def _is(value: object, dtype: ty.dtype) -> bool:
    """The dtype itself; a number is of any."""
    return value.dtype == dtype if isinstance(value, tensor) else _fits(value, dtype)


def _fits(value: object, dtype: ty.dtype) -> bool:
    """The dtype itself, or an integer of its width: the function sees the bits."""
    if not isinstance(value, tensor):
        return dtype.is_floating() or isinstance(value, int)
    same_width = value.dtype.primitive_bitwidth == dtype.primitive_bitwidth
    return value.dtype == dtype or (value.dtype.is_int() and dtype.is_int() and same_width)


def passed(
    function: ExternPython, args: list[Any], kwargs: dict[str, Any]
) -> tuple[list[Any], dict[str, Any]]:
    """The arguments as Python gets them that is called in a kernel."""
    if not isinstance(function, BuiltinPython):
        return args, kwargs
    return [*map(_wrapped, args)], {name: _wrapped(value) for name, value in kwargs.items()}


def _wrapped(value: Any) -> Any:
    """A value with what is known in it as constexprs, but for numbers with a type."""
    if is_typed(value):
        return as_tensor(value)
    if isinstance(value, tuple | list):
        return trees.with_parts(value, map(_wrapped, value))
    return constexpr(value) if value is None or isinstance(value, int | float | str) else value
