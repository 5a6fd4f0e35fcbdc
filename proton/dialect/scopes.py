"""Which scopes an op belongs to, and what a place in the source is called in a name."""

import os
from collections.abc import Sequence

from proton.dialect.mlir import Location, Operation, ir
from proton.dialect.proton import SCOPE_PREFIX
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
