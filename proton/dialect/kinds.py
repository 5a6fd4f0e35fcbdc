"""Which op an operation is: asked by the op's class.

The bindings give an operation as `Operation` or as a view of its class, as it happens, and making
the view takes longer than asking for the name. So classes are compared by the names they stand for.
"""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, TypeGuard, TypeVar

if TYPE_CHECKING:
    from proton.dialect.mlir import Operation, OpView

Kind = type["OpView"] | str  # a name, where a class is not at hand: of text, or made of parts
_T = TypeVar("_T")


def name_of(kind: Kind) -> str:
    """The name of the ops of a class."""
    return kind if isinstance(kind, str) else kind.OPERATION_NAME


def names_of(*kinds: Kind) -> frozenset[str]:
    """The names of the ops of classes."""
    return frozenset(map(name_of, kinds))


class OpRules(dict[str, _T]):
    """What is said of each op, by the op's name, as looking that up is quick."""

    def of(self, *kinds: Kind) -> Callable[[_T], _T]:
        """A decorator: the rule of ops of these classes."""

        def add(rule: _T) -> _T:
            self.update(dict.fromkeys(names_of(*kinds), rule))
            return rule

        return add


def by_name(rules: Mapping[Kind, _T]) -> OpRules[_T]:
    """A table of classes as one to look an op's name up in."""
    return OpRules({name_of(kind): rule for kind, rule in rules.items()})


def isa(
    op: "Operation | None", kind: type["OpView"], *others: type["OpView"]
) -> "TypeGuard[Operation]":
    """True if an operation is of one of the classes; None is of none."""
    if op is None:
        return False
    name = op.name
    if name == kind.OPERATION_NAME:
        return True
    for other in others:  # noqa: SIM110 - `any` takes three times as long, and passes ask of each op
        if name == other.OPERATION_NAME:
            return True
    return False
