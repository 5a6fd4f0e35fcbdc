"""Durations of slices, grouped and described."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from proton.base.errors import ProtonError
from proton.viewer.tables import SCOPE

if TYPE_CHECKING:
    import pandas as pd

GROUPS = (
    "scope",
    "kernel",
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
COLUMNS = ("count", "total", "mean", "std", "min", *PERCENTILES, "max")


def stats(
    frame: pd.DataFrame,
    by: Sequence[str] = ("kernel", "scope"),
    metric: str = "corrected_ns",
    kind: str | None = SCOPE,
) -> pd.DataFrame:
    """Count, total, mean, std, min, percentiles and max of a metric, in ns or cycles, one row a
    group.

    `kind` picks the slices ("scope", "launch" or "host"; None for all). Percentiles interpolate
    linearly and std divides by n - 1, as numpy's and pandas' defaults do (0 for one slice).
    Rows come with the largest total first.
    """
    unknown = [name for name in by if name not in GROUPS]
    if unknown or not by or len(set(by)) < len(by):
        raise ProtonError(f"by must be some of {', '.join(GROUPS)}, got {', '.join(by) or 'none'}")
    if metric not in METRICS:
        raise ProtonError(f"metric must be one of {', '.join(METRICS)}, got {metric}")
    rows = frame if kind is None else frame[frame["kind"] == kind]
    if metric == "cycles":
        rows = rows[rows["cycles"] >= 0]  # the host's have none
    groups = rows.groupby(list(by), observed=True, sort=True)[metric]
    table = groups.agg(["count", "sum", "mean", "std", "min", "max"]).rename(
        columns={"sum": "total"}
    )
    table["std"] = table["std"].fillna(0.0)
    quantiles = groups.quantile(list(PERCENTILES.values())).unstack()
    for name, share in PERCENTILES.items():
        table[name] = quantiles[share] if len(table) else table["mean"]
    table = table[list(COLUMNS)].reset_index()
    return table.sort_values("total", ascending=False, kind="stable", ignore_index=True)
