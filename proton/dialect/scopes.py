"""Which scopes an op belongs to, and what a place in the source is called in a name.

    loc("scope:outer/inner"("entry:1/3"("kernels.py":55:9)))

A path says which scopes, the entries which opening of each: a kernel may open a scope of one path
at several places, and what lies in one opening is one run of the scope, a *visit*.
"""

import os
from collections.abc import Iterator, Sequence

from proton.base.errors import SourceSpan
from proton.dialect.mlir import Location, Operation, ir
from proton.dialect.proton import ENTRY_PREFIX, SCOPE_PREFIX
from proton.dialect.walk import source_span
from proton.trace.scope_path import FUSED, SEPARATOR, ScopePath

Paths = frozenset[ScopePath]
MOST_LINES = 3  # that a name lists


def scope_paths(location: Location) -> Paths:
    """The scope paths in a location."""
    if isinstance(location, ir.NameLoc):
        if location.name_str.startswith(SCOPE_PREFIX):
            return frozenset({ScopePath(location.name_str[len(SCOPE_PREFIX) :])})
        return scope_paths(location.child_loc)
    if isinstance(location, ir.FusedLoc):
        return frozenset().union(*(scope_paths(inner) for inner in location.locations))
    if isinstance(location, ir.CallSiteLoc):
        return scope_paths(location.callee) or scope_paths(location.caller)
    return frozenset()


class ScopeEntry(str):
    """The name of a scope that is open while a kernel is compiled, which opening it is, and where
    that stands."""

    __slots__ = ("entry", "span")
    entry: int
    span: SourceSpan

    def __new__(cls, name: str, entry: int, span: SourceSpan) -> "ScopeEntry":
        made = super().__new__(cls, name)
        made.entry, made.span = entry, span
        return made


def located(scopes: Sequence[ScopeEntry], plain: Location) -> Location:
    """The location of what is compiled while these scopes are open, outermost first."""
    entries = SEPARATOR.join(str(scope.entry) for scope in scopes)
    inner = ir.Location.name(f"{ENTRY_PREFIX}{entries}", plain)
    return ir.Location.name(f"{SCOPE_PREFIX}{ScopePath.of(scopes)}", inner)


def scope_entries(location: Location, path: ScopePath) -> Iterator[int]:
    """Which openings of a scope a location lies in; none where that is not known."""
    if isinstance(location, ir.FusedLoc):
        for inner in location.locations:
            yield from scope_entries(inner, path)
    elif isinstance(location, ir.CallSiteLoc):
        yield from scope_entries(location.callee, path)
        yield from scope_entries(location.caller, path)
    elif isinstance(location, ir.NameLoc):
        own = location.name_str.removeprefix(SCOPE_PREFIX)
        if own == location.name_str or not (own + SEPARATOR).startswith(path + SEPARATOR):
            yield from scope_entries(location.child_loc, path)
            return
        yield from _entries(location, path)


def _entries(location: Location, path: ScopePath) -> Iterator[int]:
    """The same of a location of scopes, which are in this one. Passes may have put scopes around
    those that were opened, or others inside: of these there is no entry."""
    parts = opened = tuple[str, ...]()
    while isinstance(location, ir.NameLoc) and not location.name_str.startswith(ENTRY_PREFIX):
        if location.name_str.startswith(SCOPE_PREFIX):
            opened = ScopePath(location.name_str.removeprefix(SCOPE_PREFIX)).parts
            parts = parts or opened
        location = location.child_loc
    if not isinstance(location, ir.NameLoc):
        return
    entries = location.name_str.removeprefix(ENTRY_PREFIX).split(SEPARATOR)
    spare = range(len(parts) - len(opened), -1, -1)
    around = next((n for n in spare if parts[n : n + len(opened)] == opened), len(parts))
    place = len(path.parts) - 1 - around
    if 0 <= place < len(entries):
        yield int(entries[place])


def place_of(ops: Sequence[Operation]) -> str:
    """`file.py:55,56`: the lines of ops, where they are known."""
    spans = [span for op in ops if (span := source_span(op.location)).file]
    if not spans:
        return "?"
    file = os.path.basename(spans[0].file).replace(SEPARATOR, "_").replace(FUSED, "_")
    lines = sorted({span.line for span in spans if span.file == spans[0].file})
    if len(lines) > MOST_LINES:
        return f"{file}:{lines[0]}-{lines[-1]}"
    return f"{file}:{','.join(map(str, lines))}"
