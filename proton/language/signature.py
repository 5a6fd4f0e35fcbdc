"""What one variant of a kernel is compiled for."""

from dataclasses import dataclass, field
from typing import Any

from proton.language import types as ty

MAX_VALUE_TEXT = 40  # letters of a constant in a signature's text


@dataclass(frozen=True)
class Signature:
    """What a kernel is compiled for.

    `types` maps the runtime parameters, in order, to their types; `constants` the others to
    their values; `divisible` names the runtime parameters known to be multiples of 16.
    """

    types: dict[str, ty.dtype]
    constants: dict[str, Any] = field(default_factory=dict)
    divisible: frozenset[str] = frozenset()

    def __str__(self) -> str:
        """`x: *fp32 % 16, n: i32, BLOCK=1024`; long values are cut."""
        types = (
            f"{name}: {type_.mangle()}{' % 16' * (name in self.divisible)}"
            for name, type_ in self.types.items()
        )
        constants = (f"{name}={_cut(repr(value))}" for name, value in self.constants.items())
        return ", ".join([*types, *constants])


def _cut(text: str) -> str:
    return text if len(text) <= MAX_VALUE_TEXT else f"{text[:MAX_VALUE_TEXT]}..."
