"""`tl.constexpr`: values that are known while compiling. Triton's name and meaning."""

import operator
from typing import Any


class constexpr:
    """A value known while compiling. Arithmetic on constexprs gives constexprs.

    Also the annotation of a kernel parameter that is specialized on its value.
    """

    def __init__(self, value: Any) -> None:
        self.value: Any = value.value if isinstance(value, constexpr) else value

    def __repr__(self) -> str:
        return f"constexpr[{self.value!r}]"

    def __hash__(self) -> int:
        return hash(("constexpr", self.value))

    def __index__(self) -> int:
        return self.value.__index__()

    def __bool__(self) -> bool:
        return bool(self.value)

    def __iter__(self) -> Any:
        return iter(self.value)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.value(*args, **kwargs)

    def __getitem__(self, key: Any) -> "constexpr":
        return constexpr(self.value[unwrap(key)])

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name == "value":
            raise AttributeError(name)
        return getattr(self.value, name)

    def logical_and(self, other: object) -> "constexpr":
        return constexpr(self.value and unwrap(other))

    def logical_or(self, other: object) -> "constexpr":
        return constexpr(self.value or unwrap(other))

    def __not__(self) -> "constexpr":
        return constexpr(not self.value)


def unwrap(value: object) -> Any:
    """The Python value of a constexpr; anything else unchanged."""
    return value.value if isinstance(value, constexpr) else value


def _define_operators() -> None:
    for name in "add sub mul truediv floordiv mod pow lshift rshift and xor or".split():
        function = getattr(operator, f"__{name}__")
        setattr(
            constexpr,
            f"__{name}__",
            lambda self, other, f=function: constexpr(f(self.value, unwrap(other))),
        )
        setattr(
            constexpr,
            f"__r{name}__",
            lambda self, other, f=function: constexpr(f(unwrap(other), self.value)),
        )
    for name in "eq ne lt le gt ge".split():
        function = getattr(operator, f"__{name}__")
        setattr(
            constexpr,
            f"__{name}__",
            lambda self, other, f=function: constexpr(f(self.value, unwrap(other))),
        )
    for name in "neg pos invert".split():
        function = getattr(operator, f"__{name}__")
        setattr(constexpr, f"__{name}__", lambda self, f=function: constexpr(f(self.value)))


_define_operators()
