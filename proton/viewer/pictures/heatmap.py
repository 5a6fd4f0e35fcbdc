"""Heat maps: how many units are in the chosen scopes at once, program by program or SM by SM, over
time. Where there are more programs or SMs than rows, neighbours share one, and it has their mean.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass

import numpy as np

from proton.base.units import moment
from proton.trace.records import NONE
from proton.viewer.pictures.cells import cells
from proton.viewer.pictures.picture import FAINT, FONT, Picture, Rectangle, shade, time_axis
from proton.viewer.pictures.selection import Selection
from proton.viewer.pictures.text import Line, axis, beginning, fitted
from proton.viewer.pictures.text import shade as character
from proton.viewer.pictures.timeline import SliceKind, Timeline
from proton.viewer.tables import Tables

WIDTH, LEFT, ROW, HEAD = 1200, 120, 12, 44  # pixels
COLUMNS, ROWS = 270, 64  # of a picture
TEXT_ROWS, LABEL = 32, 18


class By(enum.Enum):
    """What a row is."""

    PROGRAM = "program"
    SM = "sm"
    THREAD = "thread"


def once(
    unit: np.ndarray, start: np.ndarray, end: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The intervals without what an earlier one of their unit has, too: no time is there twice."""
    order = np.lexsort((start, unit))
    unit, start, end = unit[order], start[order], end[order]
    low, length = int(start.min(initial=0)), int(end.max(initial=0)) - int(start.min(initial=0)) + 1
    rank = np.unique(unit, return_inverse=True)[1].ravel()
    after = np.maximum.accumulate(end - low + rank * length)  # units lie one after another
    before = np.append(np.zeros(1, np.int64), after)[: unit.size] - rank * length + low
    start = np.maximum(start, before)
    some = np.flatnonzero(start < end)
    return unit[some], start[some], end[some]


NAMES = {By.PROGRAM: "program", By.SM: "SM", By.THREAD: "thread"}


@dataclass(frozen=True, kw_only=True)
class Heat:
    """Mean numbers of units, rows by columns of time; `of` is what one of them is called."""

    title: str
    labels: list[str]
    span: tuple[int, int]
    value: np.ndarray
    of: str = "unit"

    @property
    def most(self) -> float:
        """The hottest cell's."""
        return float(self.value.max(initial=0.0))

    def said(self, value: float) -> str:
        """A value of a cell."""
        shown = f"{value:.3g}"
        return f"{shown} {self.of}{'s' * (shown != '1')}"

    def numbers(self) -> dict[str, object]:
        """The same for JSON; `span_ns` is from the first column's begin to the last one's end."""
        return {"rows": self.labels, "span_ns": self.span, "units": self.value.tolist()}


def heat(tables: Tables, by: By | None, where: Selection, rows: int, columns: int) -> Heat:
    """By SM where a GPU ran it, else by program, unless told otherwise."""
    timeline, tracks = Timeline(tables, where), tables.records.tracks
    slices = timeline.slices[np.flatnonzero(timeline.slices.kind == SliceKind.SCOPE)]
    unit = tables.records.track[slices.record]
    if by is None:
        by = By.SM if (tracks.sm[unit] != NONE).any() else By.PROGRAM
    span = timeline.view
    is_there = getattr(tracks, by.value)[unit] != NONE
    if by is By.PROGRAM:  # one that ran at another time is no row; an SM that idles is one
        is_there &= (slices.start < span[1]) & (slices.end > span[0])
    there = np.flatnonzero(is_there)
    unit, start, end = once(unit[there], slices.start[there], slices.end[there])
    device = tracks.device[unit] if by is By.SM else np.zeros(unit.size, np.int64)
    pairs = np.stack([device, getattr(tracks, by.value)[unit]])
    values, place = np.unique(pairs, axis=1, return_inverse=True)
    size = values.shape[1]
    each = max(-(-size // max(rows, 1)), 1)  # values a row
    count = -(-size // each)
    cut = cells(start, end, span, columns)
    cell = (place.ravel()[cut.index] // each) * columns + cut.column
    spent = np.bincount(cell, cut.ns, minlength=count * columns)[: count * columns]
    members = np.minimum(each, size - each * np.arange(count))[:, None]
    width = (span[1] - span[0]) / columns
    several = by is By.SM and len(tables.raw.gpus) > 1
    labels = [_label(by, values[:, k * each : (k + 1) * each], several) for k in range(count)]
    value = spent.reshape(count, columns) / width / np.maximum(members, 1)
    title = f"{tables.name}: units in scopes at once, by {by.value}"
    if count and span != timeline.span:
        title += "; while launches run (--start 0: all)"
    return Heat(title=title, labels=labels, span=span, value=value)


def _label(by: By, places: np.ndarray, several: bool) -> str:
    """What a row is called: its number, or the first and the last of several."""
    (device, first), (_, last) = places[:, 0].tolist(), places[:, -1].tolist()
    shown = f"{NAMES[by]} {first}" + (f"-{last}" if places.shape[1] > 1 else "")
    return f"GPU {device} {shown}" if several else shown


def draw(found: Heat) -> Picture:
    """The map as a picture."""
    bottom = HEAD + ROW * len(found.labels)
    steps = [k / 4 for k in range(5)]
    legend = [(shade(part), found.said(part * found.most)) for part in steps]
    picture = Picture(WIDTH, bottom + 30, left=LEFT, legend=legend, is_scale=True)
    if not found.labels:
        picture.write(4, 16, f"{found.title}: no slices", size=13)
        return picture
    picture.write(
        4, 16, f"{found.title}; at most {found.said(found.most)}", width=WIDTH - 8, size=13
    )
    time_axis(picture, found.span, left=LEFT, top=HEAD - FONT - 6, bottom=bottom)
    columns = found.value.shape[1]
    size = (WIDTH - LEFT) / columns
    step = (found.span[1] - found.span[0]) / columns
    for k, label in enumerate(found.labels):
        y = HEAD + k * ROW
        picture.write(LEFT - 6, y + FONT - 1, label, anchor="end", size=10, fill=FAINT)
        for column in np.flatnonzero(found.value[k]).tolist():
            value = float(found.value[k, column])
            title = f"{label}\n{found.said(value)} at {moment(found.span[0] + column * step, step)}"
            fill = shade(value / found.most)
            picture.boxes.append(
                Rectangle(LEFT + column * size, y, size + 0.2, ROW - 1, fill, title)
            )
    return picture


def draw_text(found: Heat, width: int) -> list[Line]:
    """The map in characters."""
    if not found.labels:
        return [[(beginning(f"{found.title}: no slices", width), "")]]
    room = width - LABEL
    lines: list[Line] = [[(beginning(found.title, width), "")]]
    lines.append([(" " * LABEL + axis(found.span, room), "")])
    for label, row in zip(found.labels, found.value.tolist(), strict=True):
        drawn = "".join(character(value / found.most) for value in row)
        lines.append([(f"{fitted(label, LABEL - 1)} {drawn}", "")])
    lines.append([(f"blank: none, @: {found.said(found.most)} at once", "")])
    return lines
