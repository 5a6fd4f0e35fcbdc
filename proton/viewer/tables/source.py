"""Time by line of the source: a slice is of the line at which its scope, or what the compiler
recorded, stands."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from proton.trace.model import RawRun
from proton.trace.records import RecordTable
from proton.trace.wire import RecordKind
from proton.viewer.tables.labels import unit_roles
from proton.viewer.tables.rows import kernel_columns
from proton.viewer.tables.stats import own_values

if TYPE_CHECKING:
    import pandas as pd

COLUMNS = ("kernel", "variant", "file", "line", "scope", "visits", "total_ns", "self_ns",
           "wait_ns", "share")  # fmt: skip
PLACES = ("role", "warp", "unit", "launch", "sm")  # what `by` may be


def lines_of(
    raw: RawRun, records: RecordTable, by: str = "", rows: np.ndarray | None = None
) -> pd.DataFrame:
    """One row a kernel and line, and each value of `by`: `total_ns` is of slices with what is
    inside of them, `self_ns` without, and of that `wait_ns` in slices that only wait; `share` is
    the percentage of all self time of the kernel. `rows` are the slices that count, of records in
    order; None for all."""
    import pandas as pd

    if rows is None:
        rows = np.flatnonzero(records.kind == RecordKind.SLICE)
    track, scope = records.track[rows], records.scope[rows]
    own = own_values(
        track, records.start_ns[rows], records.end_ns[rows], records.corrected_ns[rows]
    )
    scopes = records.scopes
    waits = np.array([s.waits or s.kind == "wait" for s in scopes], bool)
    table = pd.DataFrame(
        {
            **kernel_columns(raw, records.tracks.launch[track]),
            "file": _text([s.file for s in scopes], scope),
            "line": np.array([s.line for s in scopes], np.int64)[scope],
            "scope": _text([s.path for s in scopes], scope),
            **({by: _places(raw, records, by, track)} if by else {}),
            "visit": records.visits.number[rows],
            "total_ns": records.corrected_ns[rows],
            "self_ns": own,
            "wait_ns": np.where(waits[scope], own, 0),
        }
    )
    keys = ["kernel", "variant", "file", "line", *([by] if by else [])]
    groups = table.groupby(keys, observed=True, sort=False)
    found = groups[["total_ns", "self_ns", "wait_ns"]].sum()
    found["visits"] = groups["visit"].nunique()
    found["scope"] = groups["scope"].agg(lambda names: ", ".join(dict.fromkeys(names)))
    found = found.reset_index()
    whole = found.groupby(["kernel", "variant"], observed=True)["self_ns"].transform("sum")
    found["share"] = 100 * found["self_ns"] / np.maximum(whole.to_numpy(np.float64), 1.0)
    order = found.sort_values("self_ns", ascending=False, kind="stable", ignore_index=True)
    return order[[*keys, *COLUMNS[4:]]]


def _places(
    raw: RawRun, records: RecordTable, by: str, track: np.ndarray
) -> np.ndarray | pd.Categorical:
    tracks = records.tracks
    if by == "role":
        return _text(*unit_roles(raw, tracks.launch[track], tracks.unit[track]))
    found: np.ndarray = getattr(tracks, by)
    return found[track]


def _text(strings: list[str], code: np.ndarray) -> pd.Categorical:
    import pandas as pd

    values = list(dict.fromkeys(strings))
    number = np.array([values.index(text) for text in strings] or [0], np.int64)
    return pd.Categorical.from_codes(number[code], pd.Index(values, dtype="str"))


def is_at(records: RecordTable, line: int, file: str = "") -> np.ndarray:
    """Of each slice whether it is of a line; `file` may be the end of its path."""
    rows = np.flatnonzero(records.kind == RecordKind.SLICE)
    of = [s.line == line and s.file.endswith(file) for s in records.scopes]
    return np.array([*of, False], bool)[records.scope[rows]]


def end_of_block(text: Sequence[str], number: int) -> int:
    """The last line of the block that a line opens: of `with proton.scope("load"):` that of what is
    inside; of other lines the line itself."""
    if not 1 <= number <= len(text) or not re.search(r":\s*(#.*)?$", text[number - 1]):
        return number
    depth, end = depth_of(text[number - 1]), number
    for at in range(number, len(text)):
        if text[at].strip():
            if depth_of(text[at]) <= depth:
                break
            end = at + 1
    return end


def depth_of(line: str) -> int:
    line = line.expandtabs(4)
    return len(line) - len(line.lstrip())
