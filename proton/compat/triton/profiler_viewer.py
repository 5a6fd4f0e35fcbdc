"""`triton.profiler.viewer`: the functions by which programs read a Hatchet file and print its tree.

    frame, metrics = parse(["time/ms"], "step.hatchet")
    print_tree(frame, metrics)

Triton's functions need the library Hatchet; these have a frame of their own, with `dataframe`.
"""

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pandas as pd

from proton.base.errors import ProtonError
from proton.compat.triton.profiler_scopes import (
    COMPUTE_METADATA_SCOPE_NAME,
    COMPUTE_METADATA_SCOPE_PREFIX,
)
from proton.viewer.tables.metrics import (
    FORMATS,
    UTIL,
    MetricNode,
    Values,
    checked_metrics,
    diff,
    formatted,
    hatchet_of,
    known_metrics,
    of_hatchet,
)

INCLUSIVE = " (inc)"  # behind the names of metrics that count what is inside
_OF_DEVICES = ("device_id", "device_type")


@dataclass(frozen=True)
class GraphFrame:
    """A tree of frames, and the metrics that are shown of them."""

    root: MetricNode
    metrics: tuple[str, ...] = ()
    least: float = 0.0  # of the first metric

    @property
    def dataframe(self) -> pd.DataFrame:
        """A row a frame, from the root on: its name, how deep it lies, its metrics."""
        rows = [(node.name, depth, *values) for depth, node, values in self.rows()]
        columns = ["name", "depth", *map(_column, self.metrics)]
        return pd.DataFrame(rows, columns=columns)

    def rows(self) -> Iterator[tuple[int, MetricNode, list[float]]]:
        """The frames with their depths and metrics. One below the threshold is there if one inside
        of it is not."""
        values = Values(self.root)

        def below(node: MetricNode, depth: int) -> list[tuple[int, MetricNode, list[float]]]:
            inner = [row for child in node.inner for row in below(child, depth + 1)]
            numbers = [values.of(node, name) for name in self.metrics]
            is_small = bool(self.least and numbers) and not numbers[0] >= self.least
            is_small = is_small and not inner and depth > 0
            return [] if is_small else [(depth, node, numbers), *inner]

        return iter(below(self.root, 0))


def _column(metric: str) -> str:
    return metric if metric == UTIL else metric + INCLUSIVE


def read(filename: str) -> tuple[GraphFrame, list[str], list[str], dict[str, Any]]:
    """A file's tree, the metrics that count what is inside, those that do not, and what it says of
    devices: nothing, as frames have what metrics need of theirs."""
    return _with_metrics(_tree(filename))


def get_raw_metrics(
    database: list[Any],
) -> tuple[GraphFrame, list[str], list[str], dict[str, Any]]:
    """The same of what a file has, such as `data.get` gives."""
    return _with_metrics(_without_metadata(hatchet_of(database, "data").root))


def _with_metrics(root: MetricNode) -> tuple[GraphFrame, list[str], list[str], dict[str, Any]]:
    names = sorted(root.recorded() - {*_OF_DEVICES})
    return GraphFrame(root, tuple(names)), names, [], {}


def _tree(filename: str) -> MetricNode:
    return _without_metadata(of_hatchet(Path(filename)))


def _without_metadata(node: MetricNode) -> MetricNode:
    """A tree without what was launched to compute metrics."""
    inner = [_without_metadata(each) for each in node.inner if not _is_metadata(each.name)]
    return replace(node, inner=inner)


def _is_metadata(name: str) -> bool:
    return name == COMPUTE_METADATA_SCOPE_NAME or name.startswith(COMPUTE_METADATA_SCOPE_PREFIX)


def parse(
    metrics: Sequence[str],
    filename: str,
    include: str | None = None,
    exclude: str | None = None,
    threshold: float | None = None,
) -> tuple[GraphFrame, list[str]]:
    """A file's tree with these metrics, and what their columns are called. `include` and `exclude`
    are regular expressions of frames' names; raises ProtonError for a metric that is not there."""
    root = _tree(filename)
    chosen = checked_metrics(root, metrics)
    kept = filter_frames(GraphFrame(root, tuple(chosen), threshold or 0.0), include, exclude)
    return kept, [*map(_column, chosen)]


def filter_frames(
    gf: GraphFrame,
    include: str | None = None,
    exclude: str | None = None,
    threshold: float | None = None,
    metric: str | None = None,
) -> GraphFrame:
    """The tree without what is excluded, and of the rest what leads to what is included, or lies in
    it. The threshold is of the first metric; raises ProtonError where it is of another."""
    if metric is not None and metric.removesuffix(INCLUSIVE) not in gf.metrics[:1]:
        raise ProtonError(f"a threshold is of the first metric, {gf.metrics[:1]}, got {metric!r}")
    root = _kept(gf.root, re.compile(include or ""), re.compile(exclude) if exclude else None)
    least = gf.least if threshold is None else threshold
    return replace(gf, root=root or replace(gf.root, inner=[]), least=least)


def _kept(
    node: MetricNode, include: re.Pattern[str], exclude: re.Pattern[str] | None
) -> MetricNode | None:
    if exclude is not None and exclude.fullmatch(node.name):
        return None
    is_included = include.pattern == "" or include.fullmatch(node.name) is not None
    within = re.compile("") if is_included else include
    found = [_kept(inner, within, exclude) for inner in node.inner]
    inner = [child for child in found if child is not None]
    return replace(node, inner=inner) if inner or is_included else None


def apply_diff_profile(
    gf: GraphFrame,
    derived_metrics: Sequence[str],
    diff_file: str,
    metrics: Sequence[str],
    include: str | None = None,
    exclude: str | None = None,
    threshold: float | None = None,
) -> GraphFrame:
    """The tree less that of another file."""
    other, _ = parse(metrics, diff_file, include, exclude, threshold)
    return replace(gf, root=diff(other.root, gf.root))


def print_tree(
    gf: GraphFrame,
    metrics: Sequence[str],
    depth: int = 100,
    format: str | None = None,
    print_sorted: bool = False,
) -> None:
    """Prints a line a frame, metrics first, and a list of the frames where that is asked for, the
    largest first."""
    if format not in (None, *FORMATS):
        raise ProtonError(f"format must be one of {', '.join(FORMATS)}, got {format!r}")
    rows = [row for row in gf.rows() if row[0] < depth]
    chosen = [gf.metrics.index(name.removesuffix(INCLUSIVE)) for name in metrics]
    for level, node, values in rows:
        shown = " ".join(f"{values[number]:.3f}" for number in chosen)
        name = formatted(node.name, format or FORMATS[0])
        print(f"{'   ' * (level - 1)}{'└─ ' * bool(level)}{shown} {name}")
    if print_sorted:
        print(f"Sorted kernels by metric {metrics[0]}")
        for _, node, values in sorted(rows[1:], key=lambda row: _largest(row[2][chosen[0]])):
            print(f"{node.name:105} {values[chosen[0]]:.4g}")


def _largest(value: float) -> tuple[bool, float]:
    """What sorts the largest first, and what is not there last."""
    return math.isnan(value), -value


def show_metrics(file_name: str) -> None:
    """Prints what can be shown of a file."""
    print("Available metrics:", *known_metrics(_tree(file_name)), sep="\n- ")
