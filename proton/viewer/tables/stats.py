"""Durations of visits, grouped and described.

A *visit* is a run of a scope, and may be several slices, its pieces (proton/trace/visits.py). Sums
are of slices; counts, means and percentiles of visits, each of which took what its pieces took
together.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from proton.base.errors import ProtonError
from proton.base.words import did_you_mean
from proton.trace.nesting import Nesting, apart, levels, nest, some_tracks
from proton.trace.scope_path import ScopePath
from proton.trace.visits import Visits
from proton.viewer.tables.columns import Columns, Key, of_frame
from proton.viewer.tables.rates import Peaks, rates
from proton.viewer.tables.rows import METRICS, PAYLOAD, SCOPE

if TYPE_CHECKING:
    import pandas as pd

GROUPS = (
    "scope",
    "kernel",
    "variant",
    "program",
    "thread",
    "core",
    "device",
    "sm",
    "warp",
    "unit",
    "role",
    "launch",
    "iteration",
    "tile",
    "name",
    "kind",
    "operator",
)


class CountedKind(enum.Enum):
    """What slices are counted."""

    SCOPE = SCOPE
    LAUNCH = "launch"
    HOST = "host"
    COMPILE = "compile"
    OPERATOR = "operator"
    KERNEL = "kernel"
    MEMCPY = "memcpy"
    MEMSET = "memset"


PERCENTILES = {"p1": 0.01, "p50": 0.5, "p90": 0.9, "p99": 0.99}
COLUMNS = ("count", "total", "self", "share", "mean", "std", "min", *PERCENTILES, "max")
OF_PIECES = ("pieces", "span", "wait")  # where visits have several: means of a visit
TIMES = tuple(name for name in COLUMNS if name not in ("count", "share"))  # in ns, or in cycles


@dataclass(frozen=True, kw_only=True)
class Filter:
    """Which slices count, and which groups are shown.

    `include` and `exclude` are regular expressions, looked for in `kernel/scope`; a slice must
    begin from `start_ns` on and before `end_ns`. Groups whose total is below the part `threshold`
    of all time are left out.
    """

    include: str = ""
    exclude: str = ""
    start_ns: int | None = None
    end_ns: int | None = None
    threshold: float = 0.0

    def begins(self, start: np.ndarray) -> np.ndarray:
        """Of each time whether a slice that begins then counts."""
        limits = np.iinfo(np.int64)
        low = limits.min if self.start_ns is None else self.start_ns
        high = limits.max if self.end_ns is None else self.end_ns
        return np.asarray((start >= low) & (start < high))

    def chosen(self, columns: Columns) -> np.ndarray | None:
        """The slices that count; None for all."""
        masks = []
        for text, wanted in ((self.include, True), (self.exclude, False)):
            if text:
                masks.append(_in_path(columns, text) == wanted)
        if self.start_ns is not None or self.end_ns is not None:
            masks.append(self.begins(columns.start))
        return np.logical_and.reduce(masks) if masks else None


def _in_path(columns: Columns, text: str) -> np.ndarray:
    """The slices with the pattern in `kernel/scope`."""
    try:
        pattern = re.compile(text)
    except re.error as error:
        raise ProtonError(f"{text!r} is no regular expression: {error}") from None
    kernel, scope = columns.key("kernel"), columns.key("scope")
    pair, inverse = np.unique(kernel.codes * len(scope.values) + scope.codes, return_inverse=True)
    of = [divmod(number, len(scope.values)) for number in pair.tolist()]
    paths = [ScopePath(f"{kernel.values[k]}/{scope.values[s]}") for k, s in of]
    found = [bool(pattern.search(path) or pattern.search(path.shown)) for path in paths]
    return np.array(found, bool)[inverse.ravel()]


def stats(
    frame: pd.DataFrame,
    by: str | Sequence[str] = ("kernel", "scope"),
    metric: str = "corrected_ns",
    kind: str | None = SCOPE,
    where: Filter | None = None,
    peaks: Mapping[int, Peaks] | None = None,
    *,
    pieces: bool = False,
) -> pd.DataFrame:
    """Count, total, self, share, mean, std, min, percentiles and max of a metric, in ns or cycles,
    one row a group.

    What is counted are visits, runs of a scope: one takes what its slices take together. Where some
    have several slices there are, in the mean of a group's visits, how many (`pieces`), the time
    from the first one's start to the last one's end (`span`), and the time in slices that only
    wait for asynchronous work (`wait`), both in ns. A visit that lacks slices, since a ring buffer
    lost them, is not counted. With `pieces` each slice is counted by itself.

    No time is counted twice: `total` is that of the group's outermost slices, those that lie in no
    other slice of the group; `self` that of all its slices, less what lies in slices inside them,
    and `share` its part of the self time of all groups, in percent. The others are of each visit by
    itself: percentiles interpolate linearly and std divides by n - 1, as numpy's and pandas'
    defaults do (0 for one slice). `kind` picks the slices ("scope", "launch", "host",
    "compile", "operator", or of what CUPTI saw "kernel", "memcpy", "memset"; None for all, each
    kind in groups of its own). `operator` groups what a GPU did, and launches, by the operator of
    torch that asked for it. A group of a kernel that has several variants is
    split by them. `payload.k` groups by the value k of the payload, of the slices that have one.
    Rows come with the largest total first. `peaks`, by device, asks for rates, too
    (proton/viewer/tables/rates.py); it may be empty.
    """
    by = check_groups(by)
    if kind is not None and kind not in (known := [each.value for each in CountedKind]):
        kinds = f"kind must be one of {', '.join(known)} or None"
        raise ProtonError(f"{kinds}, got {kind}{did_you_mean(kind, known)}")
    rows = frame if kind is None else frame[frame["kind"] == kind]
    if metric == "cycles":
        rows = rows[rows["cycles"] >= 0]  # the host's have none
    if kind is None and "kind" not in by:
        by.insert(0, "kind")
    return describe(of_frame(rows), by, metric, where, peaks, pieces=pieces)


def visits(
    columns: Columns, by: Sequence[str], metric: str
) -> list[tuple[tuple[object, ...], np.ndarray]]:
    """A metric of the visits that lack no piece, in ascending order, by group."""
    keys = [columns.key(name) for name in by]
    group, groups = _groups(keys)
    count = len(groups[0]) if groups else 0
    runs = _runs(columns, group, count, columns.metric(metric))
    labels = [np.asarray(k.values)[codes] for k, codes in zip(keys, groups, strict=True)]
    ends = np.searchsorted(runs.group, np.arange(count), side="right")
    return list(zip(zip(*labels, strict=True), np.split(runs.values, ends[:-1]), strict=True))


def describe(
    columns: Columns,
    by: Sequence[str],
    metric: str,
    where: Filter | None = None,
    peaks: Mapping[int, Peaks] | None = None,
    *,
    pieces: bool = False,
) -> pd.DataFrame:
    """The same of columns."""
    import pandas as pd

    if pieces:
        none = np.full(columns.start.size, -1)
        columns.visits = Visits.of(none, none >= 0)
    by, where = check_groups(by), where or Filter()
    if metric not in METRICS:
        known = ", ".join(METRICS)
        raise ProtonError(
            f"metric must be one of {known}, got {metric}{did_you_mean(metric, METRICS)}"
        )
    keys = {name: columns.key(name) for name in by}
    if "kernel" in by and "variant" not in by:
        variant = columns.key("variant")
        if (np.asarray(variant.values) > 1).any():
            at = by.index("kernel") + 1
            by.insert(at, "variant")
            keys["variant"] = variant
    group, groups = _groups([keys[name] for name in by])
    chosen = where.chosen(columns)
    group = group if chosen is None else np.where(chosen, group, -1)
    count = len(groups[0]) if groups else 0
    numbers = _describe(columns, group, count, columns.metric(metric))
    if peaks is not None:
        numbers |= rates(columns, group, count, peaks)
    table = pd.DataFrame(
        {
            **{name: _labels(keys[name], codes) for name, codes in zip(by, groups, strict=True)},
            **numbers,
        }
    )
    everything = table["self"].sum()
    table.insert(
        table.columns.get_loc("mean"), "share", 100 * table["self"] / max(int(everything), 1)
    )
    table = table[(table["count"] > 0) & (table["total"] >= where.threshold * everything)]
    return table.sort_values("total", ascending=False, kind="stable", ignore_index=True)


def check_groups(by: object) -> list[str]:
    """The columns to group by, which a text separates by commas; raises ProtonError where one is
    none."""
    given = by.split(",") if isinstance(by, str) else by
    names: list[Any] = list(given) if isinstance(given, Iterable) else [given]
    names = [name.strip() if isinstance(name, str) else name for name in names]
    unknown = [n for n in names if n not in GROUPS and not str(n).startswith(PAYLOAD)]
    if unknown or not names or len(set(names)) < len(names):
        hint = "".join(did_you_mean(str(name), GROUPS) for name in unknown[:1])
        given = ", ".join(map(str, names)) or "none"
        known = f"{', '.join(GROUPS)} or {PAYLOAD}NAME"
        raise ProtonError(f"by must be some of {known}, got {given}{hint}")
    return names


def _groups(keys: Sequence[Key]) -> tuple[np.ndarray, list[np.ndarray]]:
    """The group of each slice, -1 for none; of each group the code in each key."""
    there = np.logical_and.reduce([key.codes >= 0 for key in keys])
    some = slice(None) if there.all() else np.flatnonzero(there)
    group = np.full(there.size, -1)
    part = np.zeros(int(there.sum()), np.int64)
    codes: list[np.ndarray] = []
    for key in keys:
        base = max(len(key.values), 1)
        pair = Key.of(part * base + key.codes[some])
        before, own = np.divmod(pair.values, base)
        codes, part = [*(column[before] for column in codes), own], pair.codes
    group[some] = part
    return group, codes


def _labels(key: Key, codes: np.ndarray) -> pd.Categorical | np.ndarray:
    """What the codes of groups stand for."""
    import pandas as pd

    if key.values.dtype.kind != "O":
        return np.asarray(key.values)[codes]
    return pd.Categorical.from_codes(codes, pd.Index(list(key.values), dtype="str"))


@dataclass(frozen=True, kw_only=True)
class _Runs:
    """The visits of groups, in order of the groups and their values: a visit's pieces in a group
    are one row. `parts` has columns of their pieces by the names of OF_PIECES; it is empty where
    each has one."""

    group: np.ndarray
    values: np.ndarray
    parts: Mapping[str, np.ndarray] = field(default_factory=dict)


def _runs(columns: Columns, group: np.ndarray, count: int, values: np.ndarray) -> _Runs:
    """Those that lack no piece."""
    some = np.flatnonzero((group >= 0) & ~columns.visits.cut)
    if not columns.visits.is_split:
        of, own = group[some], values[some]
        order = np.lexsort((own, of))
        return _Runs(group=of[order], values=own[order])
    key = columns.visits.number[some] * count + group[some]
    by_visit = np.argsort(key, kind="stable")
    rows, key = some[by_visit], key[by_visit]
    heads = np.flatnonzero(np.diff(key, prepend=-1)) if rows.size else rows
    sizes = np.diff(np.append(heads, rows.size))

    def added(column: np.ndarray) -> np.ndarray:
        return np.add.reduceat(column[rows], heads) if rows.size else column[rows]

    first, end = columns.start[rows], columns.start[rows] + columns.dur[rows]
    if rows.size:
        first, end = np.minimum.reduceat(first, heads), np.maximum.reduceat(end, heads)
    of, sums = group[rows[heads]], added(values)
    order = np.lexsort((sums, of))
    waited = added(np.where(columns.waits, columns.dur, 0))
    parts = zip(OF_PIECES, (sizes, end - first, waited), strict=True)
    return _Runs(group=of[order], values=sums[order], parts={n: c[order] for n, c in parts})


def _describe(
    columns: Columns, group: np.ndarray, count: int, values: np.ndarray
) -> dict[str, np.ndarray]:
    """The statistics of each group: sums of slices, the rest of visits."""
    totals = _totals(columns, group, count, values)
    runs = _runs(columns, group, count, values)
    ordered, size = runs.values, np.bincount(runs.group, minlength=count)
    first = np.cumsum(size) - size
    there = np.maximum(size, 1)
    sums, heads = _sums(ordered, size), np.minimum(first, max(ordered.size - 1, 0))
    mean = sums / there
    away = ordered - np.repeat(mean, size)
    std = np.sqrt(_sums(away * away, size) / np.maximum(size - 1, 1))
    ends = np.maximum(heads + size - 1, 0)
    nothing = np.zeros(1, values.dtype) if not ordered.size else ordered
    found = {
        "count": size,
        **totals,
        "mean": mean,
        "std": std,
        "min": nothing[heads],
    }
    for name, part in PERCENTILES.items():
        at = part * (size - 1).clip(0)
        low = np.floor(at).astype(np.int64)
        below, above = nothing[heads + low], nothing[np.minimum(heads + low + 1, ends)]
        found[name] = below + (at - low) * (above - below)
    found["max"] = nothing[ends]
    if runs.parts and (runs.parts["pieces"] > 1).any():
        found |= {name: _sums(column, size) / there for name, column in runs.parts.items()}
    return found


def _totals(
    columns: Columns, group: np.ndarray, count: int, values: np.ndarray
) -> dict[str, np.ndarray]:
    """The sums of slices of each group; what they take of memory is free behind it."""
    outer, own = _parts(columns, group, values)
    some = np.flatnonzero(group >= 0)
    by_group = some[np.argsort(group[some], kind="stable")]
    slices = np.bincount(group[some], minlength=count)
    return {"total": _sums(outer[by_group], slices), "self": _sums(own[by_group], slices)}


def _sums(values: np.ndarray, size: np.ndarray) -> np.ndarray:
    """The sum of each of consecutive parts of these sizes."""
    before = np.concatenate([np.zeros(1, values.dtype), np.cumsum(values)])
    ends = np.cumsum(size)
    if values.dtype.kind == "i":
        return before[ends] - before[ends - size]
    found = np.zeros(size.size)
    there = np.flatnonzero(size)
    if there.size:
        found[there] = np.add.reduceat(values, (ends - size)[there])
    return found


def _parts(
    columns: Columns, group: np.ndarray, values: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Each slice's part of its group's total and self; some tracks at a time, as in `nest`."""
    outer, own = np.empty_like(values), np.empty_like(values)
    track, order = columns.track, None
    if (np.diff(track) < 0).any():
        order = np.argsort(track, kind="stable")
        track = track[order]
    for part in some_tracks(track):
        rows = part if order is None else order[part]
        times = columns.walk[0][rows], columns.walk[1][rows]
        outer[rows], own[rows] = _parts_of(track[part], *times, group[rows], values[rows])
    return outer, own


def _parts_of(
    track: np.ndarray, start: np.ndarray, end: np.ndarray, group: np.ndarray, values: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The same of slices that are grouped by track."""
    track, order, walk = apart(track, start, end, nest(track, start, end))
    if not walk.inside.any():
        return values, values
    own = np.empty_like(values)
    own[order] = _less_children(values[order], walk)
    same = np.empty(group.size, np.int64)
    same[order] = track * (group.max() + 2) + group[order] + 1
    return np.where(_is_outermost(Key.of(same).codes, start, end), values, 0), own


def own_values(
    track: np.ndarray, start: np.ndarray, end: np.ndarray, values: np.ndarray
) -> np.ndarray:
    """Values of intervals that are grouped by track, each less those of the intervals right inside
    it; never below 0."""
    own = np.empty_like(values)
    for rows in some_tracks(track):
        times = start[rows], end[rows]
        _, order, walk = apart(track[rows], *times, nest(track[rows], *times))
        own[rows.start + order] = _less_children(values[rows][order], walk)
    return own


def right_inside(
    track: np.ndarray, start: np.ndarray, end: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Of intervals that are grouped by track those that lie in another, and for each the one right
    around it."""
    found = [np.zeros((2, 0), np.int64)]
    for rows in some_tracks(track):
        times = start[rows], end[rows]
        _, order, walk = apart(track[rows], *times, nest(track[rows], *times))
        found += [rows.start + order[np.stack(pair)] for pair in levels(walk)]
    inner, around = np.concatenate(found, axis=1)
    return inner, around


def _is_outermost(track: np.ndarray, start: np.ndarray, end: np.ndarray) -> np.ndarray:
    """The rows that lie in no other of their track."""
    order = np.argsort(track, kind="stable")
    walk = nest(track[order], start[order], end[order])
    found = np.ones(track.size, bool)
    for inner, _ in levels(walk):
        found[order[inner]] = False
    return found


def _less_children(values: np.ndarray, walk: Nesting) -> np.ndarray:
    """Each value less those of the slices right inside; never below 0."""
    inside = np.zeros(values.size, values.dtype)
    for inner, around in levels(walk):
        np.add.at(inside, around, values[inner])
    return np.maximum(values - inside, 0)
