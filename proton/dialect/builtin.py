"""Types and attributes of MLIR's own, in a word each."""

from collections.abc import Iterable
from typing import Any

from proton.dialect.mlir import ir


def integer(bits: int) -> Any:
    """The signless integer type of so many bits."""
    return ir.IntegerType.get_signless(bits)


def i32_attr(value: int) -> Any:
    """An i32 attribute."""
    return ir.IntegerAttr.get(integer(32), value)


def i64_attr(value: int) -> Any:
    """An i64 attribute."""
    return ir.IntegerAttr.get(integer(64), value)


def string_attr(value: str | bytes) -> Any:
    """A string, or bytes, as an attribute."""
    return ir.StringAttr.get(value)


def strings_attr(values: Iterable[str]) -> Any:
    """A list of strings as an attribute."""
    return ir.ArrayAttr.get([string_attr(value) for value in values])
