"""Formulas on scalar floats, written as such: `1.0 / (x * x)` emits `arith` and `math`."""

from collections.abc import Sequence
from typing import Any

from proton.dialect import Kind
from proton.dialect.builtin import integer
from proton.dialect.emit import call_c, constant, create
from proton.dialect.mlir import Type, Value, arith, ir, math


class Number:
    """A scalar float; Python's numbers beside it are constants of its type."""

    def __init__(self, value: Value) -> None:
        self.value = value

    @property
    def type(self) -> Type:
        return self.value.type

    @property
    def width(self) -> int:
        """Bits."""
        return int(self.value.type.width)

    def _of(self, other: Any) -> Value:
        if isinstance(other, Number):
            return other.value
        return constant(float(other), self.type)

    def _emit(self, kind: Kind, *others: object) -> "Number":
        return Number(create(kind, self.type, self.value, *map(self._of, others)))

    def __add__(self, other: object) -> "Number":
        return self._emit(arith.AddFOp, other)

    def __sub__(self, other: object) -> "Number":
        return self._emit(arith.SubFOp, other)

    def __mul__(self, other: object) -> "Number":
        return self._emit(arith.MulFOp, other)

    def __truediv__(self, other: object) -> "Number":
        return self._emit(arith.DivFOp, other)

    def __radd__(self, other: object) -> "Number":
        return Number(self._of(other)) + self

    def __rsub__(self, other: object) -> "Number":
        return Number(self._of(other)) - self

    def __rmul__(self, other: object) -> "Number":
        return self * other

    def __rtruediv__(self, other: object) -> "Number":
        return Number(self._of(other)) / self

    def __neg__(self) -> "Number":
        return self._emit(arith.NegFOp)

    def __abs__(self) -> "Number":
        return self._emit(math.AbsFOp)

    def function(self, name: str, *others: object) -> "Number":
        """An op of `math` on it."""
        return self._emit(f"math.{name}", *others)

    def c_function(self, name: str) -> "Number":
        """A function of C's math library, in fp64."""
        assert self.width == 64, "those of fp32 have other names"
        return Number(call_c(name, [self.value], self.type))

    def compare(self, predicate: str, other: object) -> Value:
        """`arith.cmpf`, as an i1."""
        chosen = getattr(arith.CmpFPredicate, predicate)
        return arith.CmpFOp(chosen, self.value, self._of(other)).result

    def where(self, condition: Value, other: object) -> "Number":
        """It where the condition holds, else the other."""
        return Number(arith.SelectOp(condition, self.value, self._of(other)).result)

    def to(self, type_: Type) -> "Number":
        """In another float type, rounded to nearest."""
        if type_ == self.type:
            return self
        wider = type_.width > self.width
        return Number((arith.ExtFOp if wider else arith.TruncFOp)(type_, self.value).result)

    def wide(self) -> "Number":
        """In fp64."""
        return self.to(ir.F64Type.get())

    def bits(self) -> Value:
        """The same bits as an integer."""
        return arith.BitcastOp(integer(self.width), self.value).result

    def polynomial(self, coefficients: Sequence[float]) -> "Number":
        """c[0] + c[1] x + c[2] x^2 + ..."""
        result = Number(self._of(coefficients[-1]))
        for coefficient in reversed(coefficients[:-1]):
            result = result * self + coefficient
        return result


def of_bits(bits: Value, type_: Type) -> Number:
    """The float with these bits."""
    return Number(arith.BitcastOp(type_, bits).result)
