"""Where a scope is among others: `outer/inner`, or for fused work `outer/load + store`.

The only place that knows this grammar. A path is text, so that it travels in locations,
attributes and files as it is; "" is the path of what is in no scope.
"""

import itertools
from collections.abc import Iterable

from proton.base.symbols import shortened

SEPARATOR = "/"
FUSED = " + "  # between the names of scopes whose work is one
INSIDE = ": "  # in such a name, between a scope's and those around it


def is_name(text: str) -> bool:
    """Whether text can be one scope's name: a path of one part."""
    return bool(text) and SEPARATOR not in text and FUSED not in text


class ScopePath(str):
    """A path; compares and sorts as its text does."""

    __slots__ = ()

    @classmethod
    def of(cls, names: Iterable[str]) -> "ScopePath":
        """The path of scopes inside each other, outermost first; empty names are left out."""
        return cls(SEPARATOR.join(name for name in names if name))

    @property
    def parts(self) -> tuple[str, ...]:
        """The names, outermost first."""
        return tuple(self.split(SEPARATOR)) if self else ()

    @property
    def name(self) -> str:
        """The innermost name."""
        return self.rpartition(SEPARATOR)[2]

    @property
    def shown(self) -> str:
        """The path as tables and sentences have it: with long names in their short forms."""
        return SEPARATOR.join(map(shortened, self.parts))

    @property
    def first(self) -> str:
        """The outermost name."""
        return self.partition(SEPARATOR)[0]

    @property
    def rest(self) -> "ScopePath":
        """The path inside the outermost scope."""
        return ScopePath(self.partition(SEPARATOR)[2])

    @property
    def around(self) -> tuple["ScopePath", ...]:
        """The paths of the scopes around it, outermost first."""
        parts = self.parts
        return tuple(ScopePath.of(parts[:count]) for count in range(1, len(parts)))

    def inside(self, outer: str) -> "ScopePath":
        """This path, in the scope `outer`."""
        return ScopePath.of((outer, self))

    def below(self, outer: str) -> "ScopePath":
        """The part below the scope `outer`; all of a path that is not in it."""
        if not outer or not (self + SEPARATOR).startswith(outer + SEPARATOR):
            return self
        return ScopePath(self[len(outer) + 1 :])


def fused(paths: Iterable[ScopePath]) -> ScopePath:
    """The name of work that scopes share: theirs, in order, each once; with what is around them
    below what is around them all, `load: load a.py:5 + store`."""
    parts = [path.parts for path in paths]
    around = zip(*(names[:-1] for names in parts), strict=False)
    shared = len(list(itertools.takewhile(lambda names: len(set(names)) == 1, around)))
    return ScopePath(FUSED.join(dict.fromkeys(INSIDE.join(names[shared:]) for names in parts)))
