"""What control flow leaves behind: a value that was returned, a variable that may be unbound."""

from dataclasses import dataclass
from typing import Any


@dataclass
class Returned:
    """The function has returned `value` (None, one value, or a tuple)."""

    value: Any


@dataclass(frozen=True)
class Undefined:
    """Stands for a variable that only some paths assign."""

    name: str
    why: str
