"""The cases of `promotion.json`: `scripts/record_promotion.py` asks Triton what it makes of them,
and `test_promotion_of_triton.py` the front end."""

import math
from collections.abc import Callable, Sequence
from typing import Any

TYPES = (
    "int1 int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 bfloat16 float32 float64 "
    "float8e5 float8e4nv"
).split()
NUMBERS: list[Any] = [
    *(True, False, 0, 1, -1, 200, 70000, -70000, 1 << 31, 1 << 40, -(1 << 40), 1 << 63),
    *(0.5, 1e300, math.inf),
]
# symbol -> methods of the left operand, and of the right one where the left is a number
OPERATORS = {
    "+": ("__add__", "__radd__"),
    "-": ("__sub__", "__rsub__"),
    "*": ("__mul__", "__rmul__"),
    "/": ("__truediv__", "__rtruediv__"),
    "//": ("__floordiv__", "__rfloordiv__"),
    "%": ("__mod__", "__rmod__"),
    "&": ("__and__", "__rand__"),
    "^": ("__xor__", "__rxor__"),
    "<<": ("__lshift__", "__rlshift__"),
    ">>": ("__rshift__", "__rrshift__"),
    "==": ("__eq__", "__req__"),
    "<": ("__lt__", "__rlt__"),
    ">=": ("__ge__", "__rge__"),
}
# name -> what is called: the module of the language, and the operands
FUNCTIONS: dict[str, Callable[..., Any]] = {
    "maximum": lambda tl, x, y, **kw: tl.maximum(x, y, **kw),
    "where": lambda tl, x, y, **kw: tl.where(True, x, y, **kw),
    "fma": lambda tl, x, y, **kw: tl.fma(x, y, y, **kw),
    "clamp": lambda tl, x, y, **kw: tl.clamp(x, y, y, **kw),
    "fdiv": lambda tl, x, y, **kw: tl.fdiv(x, y, **kw),
    "div_rn": lambda tl, x, y, **kw: tl.div_rn(x, y, **kw),
    "umulhi": lambda tl, x, y, **kw: tl.umulhi(x, y, **kw),
}


def type_name(tl: Any, dtype: Any) -> str:
    """The name that a type of either language has in the table."""
    return next(name for name in TYPES if getattr(tl, name) == dtype)


def chain(casts: Sequence[tuple[str, str]], source: str) -> str:
    """`f32 fp < f16 sitofp < argument`: casts, the last one first. Those between floats have one
    name, and several of them are one, to the last type."""
    shown: list[str] = []
    for name, type_ in casts:
        short = name.split(".")[1]
        if short in ("extf", "truncf", "fp_to_fp"):
            short = "fp"
        is_again = short == "fp" and shown and shown[-1].endswith(" fp")
        if short != "bitcast" and not is_again:  # of integers that differ in their sign: nothing
            shown.append(f"{type_} {short}")
    return " < ".join([*shown, source])
