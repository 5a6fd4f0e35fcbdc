"""The table from an op of the language to the rule that emits its IR."""

from collections.abc import Callable
from typing import Any

from proton.language.function import Builtin
from proton.language.profiling import _HostOp

RULES: dict[Builtin, Callable[..., Any]] = {}
# Rules that also need the code generator (they compile a function, or read its options).
GENERATOR_RULES: dict[Builtin | _HostOp, Callable[..., Any]] = {}


def rule(op: Builtin) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Registers the rule of `op`; it takes the op's arguments."""

    def add(fn: Callable[..., Any]) -> Callable[..., Any]:
        RULES[op] = fn
        return fn

    return add


def generator_rule(op: Builtin | _HostOp) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Registers a rule that takes the code generator before the op's arguments."""

    def add(fn: Callable[..., Any]) -> Callable[..., Any]:
        GENERATOR_RULES[op] = fn
        return fn

    return add
