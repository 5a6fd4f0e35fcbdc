"""Operators by their methods: those of aggregates, which classes have, and those of tensors."""

import ast
from collections.abc import Callable

from proton.frontend import aggregates
from proton.frontend.builder import error
from proton.frontend.interface import CodeGenerator
from proton.frontend.overflow import binary_checked
from proton.frontend.rules import generator_rule
from proton.language.aggregate import Aggregate
from proton.language.function import Builtin
from proton.language.value import tensor

Call = Callable[[object, list[object], dict[str, object]], object]

METHODS: dict[type, tuple[str, str]] = {  # of an aggregate on the left, on the right
    ast.Add: ("__add__", "__radd__"),
    ast.Sub: ("__sub__", "__rsub__"),
    ast.Mult: ("__mul__", "__rmul__"),
    ast.Div: ("__truediv__", "__rtruediv__"),
    ast.FloorDiv: ("__floordiv__", "__rfloordiv__"),
    ast.Mod: ("__mod__", "__rmod__"),
    ast.BitAnd: ("__and__", "__rand__"),
    ast.BitOr: ("__or__", "__ror__"),
    ast.BitXor: ("__xor__", "__rxor__"),
    ast.LShift: ("__lshift__", "__rlshift__"),
    ast.RShift: ("__rshift__", "__rrshift__"),
    ast.Lt: ("__lt__", "__gt__"),
    ast.LtE: ("__le__", "__ge__"),
    ast.Gt: ("__gt__", "__lt__"),
    ast.GtE: ("__ge__", "__le__"),
    ast.And: ("logical_and", "logical_and"),
    ast.Or: ("logical_or", "logical_or"),
}
UNARY_METHODS: dict[type, str] = {
    ast.USub: "__neg__",
    ast.UAdd: "__pos__",
    ast.Invert: "__invert__",
    ast.Not: "logical_not",
}

SYMBOLS: dict[type, str] = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.Div: "/",
    ast.FloorDiv: "//",
    ast.Mod: "%",
    ast.Pow: "**",
    ast.BitAnd: "&",
    ast.BitOr: "|",
    ast.BitXor: "^",
    ast.LShift: "<<",
    ast.RShift: ">>",
    ast.Eq: "==",
    ast.NotEq: "!=",
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
    ast.USub: "-",
    ast.UAdd: "+",
    ast.Invert: "~",
    ast.Not: "not",
}
# Those of tensors, by name: `x.__rsub__(y)` is `y - x`.
OF_TENSORS: dict[str, Builtin] = {}


def _of_tensors(name: str, symbol: str, is_reflected: bool) -> None:
    def method(self, other):  # type: ignore[no-untyped-def]
        """The operator of this name."""

    method.__name__ = name
    OF_TENSORS[name] = Builtin(method, member=True)

    @generator_rule(OF_TENSORS[name])
    def _(g: CodeGenerator, self: object, other: object) -> object:
        pair = (other, self) if is_reflected else (self, other)
        return binary_checked(g, symbol, *pair)


for _op, (_mine, _theirs) in METHODS.items():
    if _op in SYMBOLS:
        _of_tensors(_mine, SYMBOLS[_op], is_reflected=False)
    if _theirs.startswith("__r"):
        _of_tensors(_theirs, SYMBOLS[_op], is_reflected=True)
_of_tensors("__eq__", "==", is_reflected=False)
_of_tensors("__ne__", "!=", is_reflected=False)


def by_method(call: Call, op: ast.AST, symbol: str, left: object, right: object) -> object:
    """What a method of an aggregate says, of the left one first, that does not decline."""
    mine, theirs = METHODS[type(op)]
    for owner, method, other in ((left, mine, right), (right, theirs, left)):
        if isinstance(owner, Aggregate) and has_method(owner, method):
            result = call(aggregates.member(owner, method)[0], [owner, other], {})
            if result is not NotImplemented:
                return result
    names = " and ".join(f"'{type(value).__name__}'" for value in (left, right))
    raise error(
        f"unsupported operand type(s) for {symbol}: {names}",
        f"an aggregate has {mine} where it stands on the left, {theirs} on the right",
    )


def has_method(owner: Aggregate, name: str) -> bool:
    """True of what a class says itself: all have comparisons from `object`."""
    return getattr(type(owner), name, None) is not getattr(object, name, None)


def kind_of(value: object) -> type:
    """Of what `and` has a meaning beside Python's: a tensor, or an aggregate."""
    return next((kind for kind in (tensor, Aggregate) if isinstance(value, kind)), object)
