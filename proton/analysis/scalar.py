"""Symbolic integer expressions over SSA scalars, built without touching the IR.

An expression is a Python int, or a frozen `Node`. Constructors fold constants, so `0` and `1`
are seen as such; `Materializer` turns expressions into `index` arithmetic when a transform has
decided to use them.
"""

from dataclasses import dataclass
from typing import Protocol

from proton.dialect.emit import constant, create
from proton.dialect.mlir import Value, arith, ir


class Awaited(Protocol):
    """What stands for a number of a tensor until a transform has made that."""

    @property
    def tensor(self) -> Value: ...


Substitutes = dict[Value | Awaited, Value]


@dataclass(frozen=True, eq=False)
class Leaf:
    """A value of the IR: an integer, an index, a pointer, or (for `cond`) an i1; or what
    `Materializer` has one in the place of."""

    value: Value | Awaited

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Leaf) and self.value == other.value

    def __hash__(self) -> int:
        return hash(self.value)


@dataclass(frozen=True)
class Node:
    """`op` applied to expressions: add, sub, mul, rem, min, max, or select(cond, a, b)."""

    op: str
    args: "tuple[Expr, ...]"


Expr = int | Leaf | Node


def add(a: Expr, b: Expr) -> Expr:
    """a + b"""
    if isinstance(a, int) and isinstance(b, int):
        return a + b
    if a == 0 or b == 0:
        return b if a == 0 else a
    return Node("add", (a, b))


def sub(a: Expr, b: Expr) -> Expr:
    """a - b"""
    if isinstance(a, int) and isinstance(b, int):
        return a - b
    if b == 0:
        return a
    return 0 if a == b else Node("sub", (a, b))


def mul(a: Expr, b: Expr) -> Expr:
    """a * b"""
    if isinstance(a, int) and isinstance(b, int):
        return a * b
    if a == 0 or b == 0:
        return 0
    if a == 1 or b == 1:
        return b if a == 1 else a
    return Node("mul", (a, b))


def rem(a: Expr, b: Expr) -> Expr:
    """The remainder of a / b, with the sign of a."""
    if isinstance(a, int) and isinstance(b, int) and b != 0:
        return abs(a) % abs(b) * (1 if a >= 0 else -1)
    return Node("rem", (a, b))


def minimum(a: Expr, b: Expr) -> Expr:
    """The lesser of a and b."""
    if isinstance(a, int) and isinstance(b, int):
        return min(a, b)
    return a if a == b else Node("min", (a, b))


def maximum(a: Expr, b: Expr) -> Expr:
    """The greater of a and b."""
    if isinstance(a, int) and isinstance(b, int):
        return max(a, b)
    return a if a == b else Node("max", (a, b))


def select(condition: Leaf, a: Expr, b: Expr) -> Expr:
    """a where the i1 is true, else b."""
    return Node("select", (condition, a, b))


_INDEX_OPS = {
    "add": arith.AddIOp,
    "sub": arith.SubIOp,
    "mul": arith.MulIOp,
    "rem": arith.RemSIOp,
    "min": arith.MinSIOp,
    "max": arith.MaxSIOp,
}


def not_zero(divisor: Value) -> Value:
    """An index value, 1 where it is 0: a division by zero would end the process."""
    zero, one = (constant(value, divisor.type) for value in (0, 1))
    is_zero = arith.CmpIOp(arith.CmpIPredicate.eq, divisor, zero).result
    return arith.SelectOp(is_zero, one, divisor).result


class Materializer:
    """Emits expressions as `index` values at the current insertion point.

    `substitutes` maps leaf values to the values that stand for them.
    """

    def __init__(self, substitutes: Substitutes | None = None) -> None:
        self.index = ir.IndexType.get()
        self.substitutes = substitutes or {}
        self.emitted: dict[Expr, Value] = {}

    def __call__(self, expr: Expr) -> Value:
        """The SSA value of an expression; equal ones are emitted once."""
        key = ("int", expr) if isinstance(expr, int) else expr
        if key not in self.emitted:
            self.emitted[key] = self._emit(expr)  # type: ignore[index]
        return self.emitted[key]  # type: ignore[index]

    def _emit(self, expr: Expr) -> Value:
        if isinstance(expr, int):
            return constant(expr, self.index)
        if isinstance(expr, Leaf):
            value = self.substitutes.get(expr.value)
            if value is None:
                assert isinstance(expr.value, Value), "the transform makes it first"
                value = expr.value
            is_number = isinstance(value.type, ir.IntegerType) and value.type.width > 1
            if not is_number:  # an index, a condition, a pointer, or a tensor of them
                return value
            return arith.IndexCastOp(self.index, value).result
        operands = [self(argument) for argument in expr.args]
        if expr.op == "select":
            return arith.SelectOp(*operands).result
        if expr.op == "rem":
            operands[1] = not_zero(operands[1])
        return create(_INDEX_OPS[expr.op], self.index, *operands)
