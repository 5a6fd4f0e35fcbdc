"""What units wait for, who waits more than others, and how much of the copies products hide.

All of it is of slices that the compiler placed (option `auto`): waits say what they are for.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from proton.trace.flights import WAIT
from proton.trace.model import RawRun
from proton.trace.records import RecordTable
from proton.trace.wire import RecordKind
from proton.viewer.tables.places import Residency
from proton.viewer.tables.rows import kernel_columns, text_column

if TYPE_CHECKING:
    import pandas as pd

STALL_COLUMNS = ("kernel", "variant", "work", "wait", "count", "sum_ns", "mean_ns", "max_ns",
                 "share")  # fmt: skip
IMBALANCE_COLUMNS = ("kernel", "variant", "wait", "unit", "warp", "count", "mean_ns", "others_ns",
                     "more_ns")  # fmt: skip
OVERLAP_COLUMNS = ("kernel", "variant", "copies_ns", "dots_ns", "hidden_ns", "hidden")
Intervals = tuple[np.ndarray, np.ndarray]  # starts and ends, in order, none overlapping another


def waits_of(records: RecordTable) -> pd.DataFrame:
    """One row a wait: where, for what, and how long."""
    import pandas as pd

    is_wait = np.array([scope.kind == WAIT for scope in records.scopes], bool)
    rows = np.flatnonzero(records.kind == RecordKind.SLICE)
    rows = rows[is_wait[records.scope[rows]]] if is_wait.any() else rows[:0]
    track, tracks = records.track[rows], records.tracks
    return pd.DataFrame(
        {
            "row": rows,
            "launch": tracks.launch[track],
            "program": tracks.row[track],
            "unit": tracks.unit[track],
            "warp": tracks.warp[track],
            "work": text_column([s.work for s in records.scopes], records.scope[rows]),
            "wait": text_column([s.path for s in records.scopes], records.scope[rows]),
            "start_ns": records.start_ns[rows],
            "dur_ns": records.end_ns[rows] - records.start_ns[rows],
        }
    )


def stalls(raw: RawRun, records: RecordTable, found: Residency) -> pd.DataFrame:
    """One row a wait of a kernel, the longest first: `share` is the part of the time of all units
    of the kernel, in percent."""
    waits = waits_of(records)
    waits = waits.assign(**kernel_columns(raw, waits["launch"].to_numpy()))
    keys = ["kernel", "variant", "work", "wait"]
    table = waits.groupby(keys, observed=True)["dur_ns"].agg(["count", "sum", "mean", "max"])
    table = table.reset_index().rename(
        columns={"sum": "sum_ns", "mean": "mean_ns", "max": "max_ns"}
    )
    whole = _unit_time(raw, records, found)
    names = zip(table["kernel"], table["variant"], strict=True)
    total = np.array([whole.get(key, 0.0) for key in names], np.float64)
    table["share"] = 100 * table["sum_ns"] / np.maximum(total, 1.0)
    order = table.sort_values("sum_ns", ascending=False, kind="stable")
    return order[list(STALL_COLUMNS)].reset_index(drop=True)


def _unit_time(raw: RawRun, records: RecordTable, found: Residency) -> dict[tuple[str, int], float]:
    """How long the units of each kernel ran, by its name and variant."""
    import pandas as pd

    some = np.flatnonzero(records.tracks.kept > 0)
    time = found.length(records.tracks.row[some])
    owners = kernel_columns(raw, records.tracks.launch[some])
    table = pd.DataFrame({**owners, "ns": time}).groupby(["kernel", "variant"], observed=True)
    return {(str(name), int(number)): float(ns) for (name, number), ns in table["ns"].sum().items()}


def imbalance(raw: RawRun, records: RecordTable) -> pd.DataFrame:
    """One row a wait and unit: how long it waits in the mean, how long the others do in theirs (the
    median of them), and the difference; the largest first."""
    import pandas as pd

    found = waits_of(records)
    found = found.assign(**kernel_columns(raw, found["launch"].to_numpy()))
    keys = ["kernel", "variant", "wait"]
    units = found.groupby([*keys, "unit", "warp"], observed=True)["dur_ns"]
    table = units.agg(["count", "mean"]).reset_index().rename(columns={"mean": "mean_ns"})
    parts = []
    for _, group in table.groupby(keys, observed=True):
        means = group["mean_ns"].to_numpy()
        if means.size > 1:
            rest = [float(np.median(np.delete(means, n))) for n in range(means.size)]
            parts.append(group.assign(others_ns=rest, more_ns=means - np.array(rest)))
    if not parts:
        return pd.DataFrame(columns=list(IMBALANCE_COLUMNS))
    order = pd.concat(parts)
    order = order.iloc[np.argsort(-order["more_ns"].abs().to_numpy(), kind="stable")]
    return order[list(IMBALANCE_COLUMNS)].reset_index(drop=True)


# What hides what


def overlap(raw: RawRun, records: RecordTable) -> pd.DataFrame:
    """One row a kernel with asynchronous copies: how long copies of its programs were under way,
    how long products were, and how long both at once; `hidden` is the part of the copies' time, in
    percent, in which products of the same program were under way."""
    import pandas as pd

    rows = []
    for launch, copies, dots in _by_program(records):
        both = _intersection(copies, dots)
        rows.append((launch, _length(copies), _length(dots), _length(both)))
    table = pd.DataFrame(rows, columns=["launch", "copies_ns", "dots_ns", "hidden_ns"])
    table = table.assign(**kernel_columns(raw, table["launch"].to_numpy(np.int64)))
    sums = table.groupby(["kernel", "variant"], observed=True)[
        ["copies_ns", "dots_ns", "hidden_ns"]
    ]
    found = sums.sum().reset_index()
    found["hidden"] = 100 * found["hidden_ns"] / np.maximum(found["copies_ns"], 1)
    return found[list(OVERLAP_COLUMNS)]


def _by_program(records: RecordTable) -> Iterator[tuple[int, Intervals, Intervals]]:
    """(launch, when copies were under way, when products were) of the programs with copies."""
    work = np.array([scope.work for scope in records.scopes], object)
    flights = records.flights
    kind = work[records.scope[flights.issue]]
    program = records.tracks.row[records.track[flights.issue]]
    start, end = records.start_ns[flights.issue], records.end_ns[flights.wait]
    is_dot = np.array([s.work == "dots" and s.kind == "slice" for s in records.scopes], bool)
    own = np.flatnonzero(is_dot[records.scope])
    of_own = records.tracks.row[records.track[own]]
    for number in np.unique(program[kind == "copies"]).tolist():
        mine = program == number
        copies, dots = (np.flatnonzero(mine & (kind == what)) for what in ("copies", "dots"))
        slices = own[of_own == number]
        launch = int(records.programs.launch[number])
        yield (
            launch,
            union(start[copies], end[copies]),
            union(
                np.append(start[dots], records.start_ns[slices]),
                np.append(end[dots], records.end_ns[slices]),
            ),
        )


def union(start: np.ndarray, end: np.ndarray) -> Intervals:
    """When at least one of some intervals is open."""
    order = np.argsort(start, kind="stable")
    start, latest = start[order], np.maximum.accumulate(end[order])
    begins = np.ones(start.size, bool)
    begins[1:] = start[1:] > latest[:-1]
    ends = np.append(begins[1:], True)[: start.size]
    return start[begins], latest[ends]


def _intersection(a: Intervals, b: Intervals) -> Intervals:
    """When both are open."""
    times = np.concatenate([a[0], b[0], a[1], b[1]])
    change = np.repeat([1, -1], [a[0].size + b[0].size, a[1].size + b[1].size])
    order = np.lexsort((change, times))
    times, depth = times[order], np.cumsum(change[order])
    inside = np.flatnonzero(depth[:-1] == 2) if depth.size else np.zeros(0, np.int64)
    return times[inside], times[inside + 1]


def _length(intervals: Intervals) -> int:
    return int((intervals[1] - intervals[0]).sum())
