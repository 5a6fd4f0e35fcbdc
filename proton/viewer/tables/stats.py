"""Durations of slices, grouped and described."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from proton.base.errors import ProtonError
from proton.base.words import did_you_mean
from proton.trace.nesting import Nesting, lanes, nest
from proton.viewer.tables.rows import SCOPE

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
    "launch",
    "name",
    "kind",
)
METRICS = ("corrected_ns", "dur_ns", "cycles")
PERCENTILES = {"p50": 0.5, "p90": 0.9, "p99": 0.99}
COLUMNS = ("count", "total", "self", "mean", "std", "min", *PERCENTILES, "max")
_TRACK = ["kind", "launch", "program", "unit", "thread"]  # slices of one nest in each other
_OUTER, _OWN = "_total", "_self"


def stats(
    frame: pd.DataFrame,
    by: str | Sequence[str] = ("kernel", "scope"),
    metric: str = "corrected_ns",
    kind: str | None = SCOPE,
) -> pd.DataFrame:
    """Count, total, self, mean, std, min, percentiles and max of a metric, in ns or cycles, one row
    a group.

    No time is counted twice: `total` is that of the group's outermost slices, those that lie in no
    other slice of the group; `self` that of all its slices, less what lies in slices inside them.
    The others are of each slice by itself: percentiles interpolate linearly and std divides by
    n - 1, as numpy's and pandas' defaults do (0 for one slice). `kind` picks the slices ("scope",
    "launch" or "host"; None for all, each kind in groups of its own). A group of a kernel that has
    several variants is split by them. Rows come with the largest total first.
    """
    by = check_groups(by)
    if metric not in METRICS:
        known = ", ".join(METRICS)
        raise ProtonError(
            f"metric must be one of {known}, got {metric}{did_you_mean(metric, METRICS)}"
        )
    rows = frame if kind is None else frame[frame["kind"] == kind]
    if metric == "cycles":
        rows = rows[rows["cycles"] >= 0]  # the host's have none
    if kind is None and "kind" not in by:
        by.insert(0, "kind")
    if "kernel" in by and "variant" not in by and (rows["variant"] > 1).any():
        by.insert(by.index("kernel") + 1, "variant")
    rows = _with_parts(rows, by, metric)
    return _describe(rows.groupby(by, observed=True, sort=True), metric)


def check_groups(by: str | Sequence[str]) -> list[str]:
    """The columns to group by; raises ProtonError where one is none."""
    names = [by] if isinstance(by, str) else list(by)
    unknown = [name for name in names if name not in GROUPS]
    if unknown or not names or len(set(names)) < len(names):
        hint = "".join(did_you_mean(str(name), GROUPS) for name in unknown[:1])
        given = ", ".join(map(str, names)) or "none"
        raise ProtonError(f"by must be some of {', '.join(GROUPS)}, got {given}{hint}")
    return names


def _describe(groups: pd.api.typing.DataFrameGroupBy, metric: str) -> pd.DataFrame:
    """The statistics of each group."""
    table = groups[metric].agg(["count", "mean", "std", "min", "max"])
    table["total"], table["self"] = groups[_OUTER].sum(), groups[_OWN].sum()
    table["std"] = table["std"].fillna(0.0)
    quantiles = groups[metric].quantile(list(PERCENTILES.values())).unstack()
    for name, share in PERCENTILES.items():
        table[name] = quantiles[share] if len(table) else table["mean"]
    table = table[list(COLUMNS)].reset_index()
    return table.sort_values("total", ascending=False, kind="stable", ignore_index=True)


def _with_parts(rows: pd.DataFrame, by: list[str], metric: str) -> pd.DataFrame:
    """The columns of the groups and the metric, with each slice's part of its group's total and
    self."""
    values = rows[metric].to_numpy()
    group = rows.groupby(by, observed=True).ngroup().to_numpy()
    start = rows["start_ns"].to_numpy()
    end = start + rows["dur_ns"].to_numpy()
    track = rows.groupby(_TRACK, observed=True).ngroup().to_numpy()
    track, walk, order = _nest(track, start, end)
    lane = lanes(track, walk)
    if lane.any():  # what overlaps without nesting is apart
        apart = np.empty_like(lane)
        apart[order] = track * (lane.max() + 1) + lane
        track, walk, order = _nest(apart, start, end)
    own, outer = values.copy(), values
    depth, by_begin = _depths(walk)
    if depth.any():
        own[order] = _less_children(values[order], depth, by_begin)
        same = np.empty_like(group)
        same[order] = track * (group.max() + 1) + group[order]
        outer = np.where(_is_outermost(same, start, end), values, 0)
    table = rows[[*by, metric]].copy()
    table[_OUTER], table[_OWN] = outer, own
    return table


def _nest(
    track: np.ndarray, start: np.ndarray, end: np.ndarray
) -> tuple[np.ndarray, Nesting, np.ndarray]:
    """The tracks, nested slices and places of rows in the order of their tracks."""
    order = np.argsort(track, kind="stable")
    track = track[order]
    return track, nest(track, start[order], end[order]), order


def _depths(walk: Nesting) -> tuple[np.ndarray, np.ndarray]:
    """How many slices lie around each, in the order of their begins, and that order."""
    by_begin = np.argsort(walk.begin_at)
    return 2 * np.arange(by_begin.size) - walk.begin_at[by_begin], by_begin


def _is_outermost(track: np.ndarray, start: np.ndarray, end: np.ndarray) -> np.ndarray:
    """The rows that lie in no other of their track."""
    _, walk, order = _nest(track, start, end)
    depth, by_begin = _depths(walk)
    found = np.empty(track.size, bool)
    found[order[by_begin]] = depth == 0
    return found


def _less_children(values: np.ndarray, depth: np.ndarray, by_begin: np.ndarray) -> np.ndarray:
    """Each value less those of the slices right inside; never below 0.

    In the order of begins the slice around one is the last before it that is one less deep.
    """
    inside = np.zeros(values.size, values.dtype)
    outer = np.flatnonzero(depth == 0)
    for level in range(1, int(depth.max()) + 1):
        inner = np.flatnonzero(depth == level)
        parents = by_begin[outer[np.searchsorted(outer, inner) - 1]]
        np.add.at(inside, parents, values[by_begin[inner]])
        outer = inner
    return np.maximum(values - inside, 0)
