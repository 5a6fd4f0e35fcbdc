"""A value of an interpreted kernel: a tensor with its elements, which a debugger can look at."""

from collections.abc import Callable
from typing import Any

import numpy as np

from proton.interpreter.formats import POINTER
from proton.language import types as ty
from proton.language.function import MEMBERS
from proton.language.value import tensor

_UNSIGNED = {f"uint{bits}" for bits in (8, 16, 32, 64)}


class Value(tensor):
    """A scalar or block, with its elements in `data`, as `proton.interpreter.formats` holds them.

    What Python computes with it goes by the rules of the language. `numpy()` gives its elements as
    an array; of bf16 and 8-bit floats as fp32, of pointers the addresses.
    """

    __slots__ = ("data",)
    evaluate: Callable[..., object]  # (source of an expression, its operands) -> its value

    def __init__(self, data: Any, type: ty.dtype) -> None:
        super().__init__(None, type)
        self.data = data

    def numpy(self) -> np.ndarray:
        """The elements as an array; of a scalar one without dimensions."""
        data = np.asarray(self.data)
        if data.dtype == POINTER:
            return data["address"].copy()
        name = self.dtype.name
        if name in _UNSIGNED:
            return data.view(name)
        return np.array(WIDEN[name](data)) if name in WIDEN else data.copy()

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        return self.numpy() if dtype is None else self.numpy().astype(dtype)

    def __repr__(self) -> str:
        if not isinstance(self.data, np.ndarray | np.generic):
            return f"tensor({self.type}, {self.data})"
        return f"tensor({self.type}, {np.array2string(self.numpy(), separator=', ')})"

    def __str__(self) -> str:
        return repr(self)

    def __format__(self, spec: str) -> str:
        return format(self.numpy()[()], spec) if spec and not self.shape else str(self)

    def __bool__(self) -> bool:
        return bool(self.evaluate("bool", self))

    def __index__(self) -> int:
        return self.numpy().__index__()

    def __int__(self) -> int:
        return int(self.numpy())

    def __float__(self) -> float:
        return float(self.numpy())

    def __getitem__(self, key: object) -> object:
        return self.evaluate("a[b]", self, key)

    def __hash__(self) -> int:
        return id(self)

    def __getattr__(self, name: str) -> object:
        if name == "T" or name in MEMBERS:
            return self.evaluate(f"a.{name}", self)
        raise AttributeError(name)


WIDEN: dict[
    str, Callable[[object], object]
] = {}  # how elements that numpy lacks become fp32, by dtype


def _define_operators() -> None:
    words = "add + sub - mul * truediv / floordiv // mod % lshift << rshift >> and & or | xor ^"
    pairs = words.split()
    for name, symbol in zip(pairs[::2], pairs[1::2], strict=True):
        setattr(Value, f"__{name}__", _operator(f"a {symbol} b"))
        setattr(Value, f"__r{name}__", _operator(f"b {symbol} a"))
    compares = "eq == ne != lt < le <= gt > ge >=".split()
    for name, symbol in zip(compares[::2], compares[1::2], strict=True):
        setattr(Value, f"__{name}__", _operator(f"a {symbol} b"))
    for name, text in {"neg": "-a", "pos": "+a", "invert": "~a", "abs": "abs(a)"}.items():
        setattr(Value, f"__{name}__", _operator(text))


def _operator(text: str) -> Callable[..., object]:
    def operator(self: Value, *other: object) -> Any:
        return self.evaluate(text, self, *other)

    return operator


_define_operators()
