"""The table from an op of the language to the rule that emits its IR."""

from collections.abc import Callable
from typing import Any, TypeVar

from proton.language.function import Builtin
from proton.language.profiling import _HostOp

Rule = Callable[..., Any]  # of the op's arguments; gives a tensor, a tuple of them, or None
RULES: dict[Builtin, Rule] = {}
# Rules that also need the code generator (they compile a function, or read its options).
GENERATOR_RULES: dict[Builtin | _HostOp, Rule] = {}

_Rule = TypeVar("_Rule", bound=Rule)


def rule(op: Builtin) -> Callable[[_Rule], _Rule]:
    """Registers the rule of `op`; it takes the op's arguments."""

    def add(fn: _Rule) -> _Rule:
        RULES[op] = fn
        return fn

    return add


def generator_rule(op: Builtin | _HostOp) -> Callable[[_Rule], _Rule]:
    """Registers a rule that takes the code generator before the op's arguments."""

    def add(fn: _Rule) -> _Rule:
        GENERATOR_RULES[op] = fn
        return fn

    return add
