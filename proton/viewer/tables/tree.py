"""Statistics of scopes as a tree: a kernel, its scopes, and the scopes inside of those."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from proton.trace.scope_path import ScopePath

if TYPE_CHECKING:
    import pandas as pd

INDENT = "  "
KEYS = ("kernel", "variant", "scope")


@dataclass
class _Node:
    row: int | None = None  # of the table; None where a path has no slices of its own
    total: float = 0.0
    inner: dict[str, _Node] = field(default_factory=dict)


def tree(scopes: pd.DataFrame, kernels: pd.DataFrame) -> pd.DataFrame:
    """One table out of those by kernel and scope and by kernel: a column `scope` that is indented,
    what takes longest first on each level, and the numbers of both."""
    import pandas as pd

    both = pd.concat([kernels, scopes], ignore_index=True)
    root = _Node()
    variants = "variant" in scopes
    for number, row in enumerate(both.to_dict("records")):
        path = [f"{row['kernel']} #{row['variant']}" if variants else str(row["kernel"])]
        if number >= len(kernels):
            path += ScopePath(row["scope"]).parts
        node = root
        for name in path:
            node = node.inner.setdefault(name, _Node())
        node.row, node.total = number, row["total"]
    names: list[str] = []
    rows: list[int] = []
    _walk(root, 0, names, rows)
    found = both.reindex(rows).drop(columns=[key for key in KEYS if key in both])
    found["count"] = found["count"].astype("Int64")  # missing where a path has no slices of its own
    found.insert(0, "scope", names)
    return found.reset_index(drop=True)


def _walk(node: _Node, depth: int, names: list[str], rows: list[int]) -> None:
    """The nodes below one, each before those inside of it; -1 for one without a row."""
    for name, inner in sorted(node.inner.items(), key=lambda item: -item[1].total):
        names.append(INDENT * depth + name)
        rows.append(-1 if inner.row is None else inner.row)
        _walk(inner, depth + 1, names, rows)
