"""What control flow leaves behind: a value that was returned, a variable that may be unbound."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from proton.language.value import tensor


class _FellOff:
    """What a path returns that reaches a function's end without `return`: no value, or, where
    other paths return one, any."""


FELL_OFF = _FellOff()


@dataclass(frozen=True)
class Returned:
    """Every path has returned; `value` is what it returned (None, one value, or a tuple)."""

    value: Any


@dataclass(frozen=True)
class MayReturn:
    """Some paths have returned `value`; the others go on: at run time, where `goes_on` is true."""

    goes_on: tensor
    value: Any


@dataclass(frozen=True)
class Undefined:
    """Stands for a variable that only some paths assign."""

    name: str
    why: str


@dataclass(frozen=True)
class EndedLoop(Undefined):
    """The variable of a loop that has ended: `last` emits the value of its last iteration, any
    value where it had none."""

    last: Callable[[], object]


# How a list of statements ends; None where every path reaches its end. `break` and `continue`
# return from a loop's body.
Outcome = Returned | MayReturn | None
