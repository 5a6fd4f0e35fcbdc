"""Histograms: how the durations of scopes are spread, a histogram a scope.

What is counted are visits, runs of a scope, each of which may be several slices."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from proton.base.units import duration
from proton.viewer.pictures.picture import FAINT, FONT, Picture, Rectangle, colour
from proton.viewer.pictures.selection import Selection
from proton.viewer.pictures.text import Line, bar, beginning
from proton.viewer.pictures.timeline import SliceKind, Timeline
from proton.viewer.tables import Tables
from proton.viewer.tables.labels import kernel_labels

WIDTH, LEFT, ROW, HEAD = 800, 190, 15, 24  # pixels
BINS, WIDE = 12, 20.0  # where the longest is so many times the shortest, bins grow: 1, 2, 5, 10


@dataclass(frozen=True)
class Histogram:
    """How many visits of a scope lie between two edges, in ns. A duration at an edge is counted
    above it."""

    name: str
    number: int
    edges: np.ndarray
    count: np.ndarray
    values: np.ndarray

    def numbers(self) -> dict[str, object]:
        """The same for JSON, times in ns."""
        return {"name": self.name, "edges_ns": self.edges.tolist(), "count": self.count.tolist()}

    @property
    def facts(self) -> str:
        """The percentiles."""
        parts = zip(("p50", "p90", "p99"), np.percentile(self.values, (50, 90, 99)), strict=True)
        shown = ", ".join(f"{name} {duration(value)}" for name, value in parts)
        return f"{self.values.size} visits, {shown}, max {duration(self.values.max())}"


def histograms(tables: Tables, where: Selection, limit: int) -> list[Histogram]:
    """Those of the chosen scopes, of what took most time in all first. Durations are without the
    cost of measuring."""
    timeline, records = Timeline(tables, where), tables.records
    rows = np.flatnonzero(timeline.slices.kind == SliceKind.SCOPE)
    slices = timeline.slices[rows]
    spent = records.corrected_ns[slices.record]
    kernels = np.array([launch.kernel for launch in tables.raw.launches], np.int64)
    of = kernels[slices.launch] if rows.size else slices.launch
    pair, group = np.unique(of * len(timeline.names) + slices.name, return_inverse=True)
    group = group.ravel()
    total = np.bincount(group, spent, minlength=pair.size)
    visits = records.visits
    group[visits.cut[slices.record]] = pair.size
    by_visit, piece = np.unique(
        np.stack([group, visits.number[slices.record]]), axis=1, return_inverse=True
    )
    group, spent = by_visit[0], np.bincount(piece.ravel(), spent, minlength=by_visit.shape[1])
    labels = kernel_labels(tables.raw.kernels)
    found = []
    for number in np.argsort(-total, kind="stable")[: limit or pair.size].tolist():
        kernel, name = divmod(int(pair[number]), len(timeline.names))
        values = spent[group == number]
        cuts = edges(values)
        count = np.histogram(values, cuts)[0]
        title = f"{labels[kernel]}/{timeline.names[name].path}"
        colour_of = timeline.names[name].number
        found.append(Histogram(title, colour_of, cuts, count, values))
    return found


def edges(values: np.ndarray) -> np.ndarray:
    """Round edges around all values: evenly spaced, or growing where values are far apart."""
    low, high = float(values.min()), float(values.max())
    if high > WIDE * max(low, 1.0):
        powers = 10.0 ** np.arange(np.ceil(np.log10(high)) + 1)
        series = np.unique(np.concatenate([[0.0], powers, 2 * powers, 5 * powers]))
        first = np.searchsorted(series, low, side="right") - 1
        return series[first : np.searchsorted(series, high, side="right") + 1]
    step = _round_up(max((high - low) / BINS, 1.0))
    first = np.floor(low / step)
    return step * np.arange(first, np.floor(high / step) + 2)


def _round_up(width: float) -> float:
    """The least of 1, 2, 5, 10, 20, ... that is no less."""
    power = 10.0 ** np.floor(np.log10(width))
    return float(next(step for step in (power, 2 * power, 5 * power, 10 * power) if step >= width))


def draw(found: list[Histogram], name: str) -> Picture:
    """One below the other."""
    height = sum(HEAD + ROW * h.count.size + 10 for h in found) + HEAD
    picture = Picture(WIDTH, height)
    if not found:
        picture.write(4, 16, f"{name}: no slices", size=13)
    y = 6
    for one in found:
        picture.write(4, y + 12, f"{one.name}: {one.facts}", width=WIDTH - 8)
        y += HEAD
        for k, count in enumerate(one.count.tolist()):
            text = f"{duration(one.edges[k])} - {duration(one.edges[k + 1])}"
            picture.write(LEFT - 6, y + FONT, text, anchor="end", fill=FAINT)
            width = (WIDTH - LEFT - 70) * count / one.count.max()
            title = f"{count} visits of {text}"
            picture.boxes.append(
                Rectangle(LEFT, y, max(width, 0.5), ROW - 2, colour(one.number), title)
            )
            picture.write(LEFT + width + 4, y + FONT, str(count), fill=FAINT)
            y += ROW
        y += 10
    return picture


def draw_text(found: list[Histogram], name: str, width: int) -> list[Line]:
    """One below the other."""
    if not found:
        return [[(beginning(f"{name}: no slices", width), "")]]
    lines: list[Line] = []
    for one in found:
        lines += [[(beginning(one.name, width), "")], [(beginning(f"  {one.facts}", width), "")]]
        room = width - 36
        for k, count in enumerate(one.count.tolist()):
            low, high = duration(one.edges[k]), duration(one.edges[k + 1])
            drawn = bar(count / one.count.max(), room)
            text = f"  {low:>9} - {high:>9} {count:>9} "
            lines.append([(text, ""), (drawn, colour(one.number) if count else "")])
        lines.append([])
    return lines[:-1]
