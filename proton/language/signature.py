"""What one variant of a kernel is compiled for."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from proton.language import types as ty

MAX_VALUE_TEXT = 40  # letters of a constant in a signature's text


@dataclass(frozen=True)
class TupleForm:
    """What a tuple is: its class, which a named tuple has its own of, and its length."""

    kind: type
    count: int

    def names(self, name: str) -> list[str]:
        """The names of the elements of the tuple of that name: `x[0]`, `x.shape`."""
        fields = getattr(self.kind, "_fields", None)
        if fields is not None:
            return [f"{name}.{field}" for field in fields]
        return [f"{name}[{number}]" for number in range(self.count)]

    def made_of(self, elements: list[object]) -> Any:
        """The tuple of these elements."""
        return self.kind._make(elements) if hasattr(self.kind, "_make") else tuple(elements)


class Specialization(NamedTuple):
    """What `repr=` of `proton.jit` makes a name of: the values of constants and the short names of
    types, "constexpr" of constants, by parameter."""

    constants: dict[str, object]
    signature: dict[str, str]


@dataclass(frozen=True)
class Signature:
    """What a kernel is compiled for.

    `types` maps the runtime parameters, in order, to their types; `constants` the others to
    their values; `divisible` names the runtime parameters known to be multiples of 16, and
    `non_negative` the signed integers known to be 0 or above. Of a tuple each element is a
    parameter of its own; `tuples` maps the tuple's name to its form.
    """

    types: dict[str, ty.dtype]
    constants: dict[str, Any] = field(default_factory=dict)
    divisible: frozenset[str] = frozenset()
    non_negative: frozenset[str] = frozenset()
    tuples: dict[str, TupleForm] = field(default_factory=dict)

    @property
    def specialization(self) -> Specialization:
        """The same, for `repr=` of a kernel."""
        types = {name: type_.mangle() for name, type_ in self.types.items()}
        names = dict.fromkeys(self.constants, "constexpr") | types
        return Specialization(dict(self.constants), names)

    def assembled(self, values: Mapping[str, object]) -> dict[str, object]:
        """The values of the kernel's own parameters, from those of all of `types` and
        `constants`."""
        names = [name for name in (*self.tuples, *values) if name.isidentifier()]
        return {name: self._assembled(name, values) for name in names}

    def _assembled(self, name: str, values: Mapping[str, object]) -> object:
        form = self.tuples.get(name)
        if form is None:
            return values[name]
        return form.made_of([self._assembled(part, values) for part in form.names(name)])

    def __str__(self) -> str:
        """`x: *fp32 % 16, n: i32 >= 0, BLOCK=1024`; long values are cut."""
        types = (
            f"{name}: {type_.mangle()}{' % 16' * (name in self.divisible)}"
            f"{' >= 0' * (name in self.non_negative)}"
            for name, type_ in self.types.items()
        )
        constants = (f"{name}={_cut(repr(value))}" for name, value in self.constants.items())
        return ", ".join([*types, *constants])


def _cut(text: str) -> str:
    return text if len(text) <= MAX_VALUE_TEXT else f"{text[:MAX_VALUE_TEXT]}..."
