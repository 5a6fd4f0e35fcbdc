"""A timeline as a picture: a strip a track, a row a level, time from left to right.

Slices as wide as a pixel are drawn as they are. Of narrower ones each pixel has what took most of
it, so a picture has no more boxes than pixels, however many slices there are.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np

from proton.base.text import printable
from proton.base.units import duration, moment
from proton.viewer.pictures.cells import cells, most
from proton.viewer.pictures.picture import (
    FAINT,
    FONT,
    HOST,
    LAUNCH,
    LETTER,
    MARK,
    PROGRAM,
    Picture,
    Rectangle,
    colour,
    fitting,
    time_axis,
)
from proton.viewer.pictures.timeline import Name, SliceKind, Timeline

WIDTH, LEFT, ROW, GAP = 1200, 190, 16, 5  # pixels; a row is of one level
HEAD, FOOT = 46, 8
MOST_TRACKS = 60
MOST_LEVELS = 16  # of a track
MOST_LABELS = 1500  # on slices, the widest ones
MOST_NAMES = 24  # of the legend
TICK, TICK_WIDTH = 5, 1.5  # pixels of a mark
LINK = 1.5  # pixels of a line from piece to piece
NARROW = 3  # pixels: a name has no room in less than some of these
FIXED = {
    SliceKind.HOST: HOST,
    SliceKind.COMPILE: "#e9d8a6",
    SliceKind.LAUNCH: LAUNCH,
    SliceKind.CALL: LAUNCH,
    SliceKind.PROGRAM: PROGRAM,
    SliceKind.MARK: MARK,
}


def fill(kind: int, name: Name) -> str:
    """The colour of a slice."""
    return FIXED.get(SliceKind(kind)) or colour(name.number)


def draw(timeline: Timeline, width: int = WIDTH, tracks: int = MOST_TRACKS) -> Picture:
    """The picture, of as many tracks from above."""
    heights = np.minimum(timeline.heights[:tracks], MOST_LEVELS)
    tops = HEAD + np.cumsum(heights * ROW + GAP) - (heights * ROW + GAP)
    bottom = int(HEAD + (heights * ROW + GAP).sum())
    left_out = len(timeline.tracks) - len(heights)
    legend = _legend(timeline, width)
    picture = Picture(width, bottom + FOOT + (FONT + FOOT) * (bool(left_out) + len(legend)))
    _write_head(picture, timeline)
    time_axis(picture, timeline.view, left=LEFT, top=HEAD - FONT - 8, bottom=bottom)
    _write_tracks(picture, timeline, tops)
    _Drawing(picture, timeline, tops, (width - LEFT) / (timeline.view[1] - timeline.view[0])).draw()
    if left_out:
        picture.write(4, bottom + FONT, f"and {left_out} more tracks", fill=FAINT)
    y = bottom + FOOT + (FONT + FOOT) * bool(left_out)
    for number, line in enumerate(legend):
        for x, text, colour_ in line:
            top = y + number * (FONT + FOOT)
            picture.boxes.append(Rectangle(x, top, FONT, FONT, colour_))
            picture.write(x + FONT + 5, top + FONT - 1, text)
    return picture


def _legend(timeline: Timeline, width: int) -> list[list[tuple[float, str, str]]]:
    """Which colour is which scope, in lines: where each entry begins, its name and its colour."""
    slices = timeline.slices
    scopes = np.flatnonzero((slices.kind == SliceKind.SCOPE) | (slices.kind == SliceKind.EVENT))
    numbers = np.array([name.number for name in timeline.names], np.int64)
    names, inverse = np.unique(numbers[slices.name[scopes]], return_inverse=True)
    time = np.bincount(inverse.ravel(), (slices.end - slices.start)[scopes], names.size)
    lines: list[list[tuple[float, str, str]]] = []
    x = float(width)
    for number in names[np.argsort(-time, kind="stable")[:MOST_NAMES]].tolist():
        text = fitting(printable(timeline.names[number].shown), width / 4)
        size = FONT + 5 + LETTER * FONT * len(text) + 14
        if x + size > width:
            lines.append([])
            x = 4.0
        lines[-1].append((x, text, colour(number)))
        x += size
    return lines


def _write_head(picture: Picture, timeline: Timeline) -> None:
    picture.write(4, 16, timeline.heading, width=picture.width - 8, size=13)


def _write_tracks(picture: Picture, timeline: Timeline, tops: np.ndarray) -> None:
    """What each track is called: its path without what the one above it begins with, too."""
    before: tuple[str, ...] = ()
    for path, top in zip(timeline.tracks, tops.tolist(), strict=False):
        same = sum(1 for _ in itertools.takewhile(lambda p: p[0] == p[1], zip(path, before)))  # noqa: B905
        text = "  " * min(same, len(path) - 1) + " > ".join(path[min(same, len(path) - 1) :])
        room = LEFT - 10 - 8 * min(same, len(path) - 1)
        picture.write(
            4 + 8 * min(same, len(path) - 1), top + FONT + 1, _cut_left(text.strip(), room)
        )
        before = path


def _cut_left(text: str, width: float) -> str:
    """A path of tracks whose last part says most."""
    while fitting(text, width) != text and " > " in text:
        text = text.split(" > ", 1)[1]
    return fitting(text, width)


@dataclass
class _Drawing:
    """Slices as boxes."""

    picture: Picture
    timeline: Timeline
    tops: np.ndarray
    scale: float  # pixels a ns

    def draw(self) -> None:
        """All of them: first what is around others."""
        slices, view = self.timeline.slices, self.timeline.view
        there = (slices.track < self.tops.size) & (self.timeline.level < MOST_LEVELS)
        there &= (slices.end >= view[0]) & (slices.start <= view[1])
        is_mark = slices.kind == SliceKind.MARK
        wide = (slices.end - slices.start) * self.scale >= 1
        self._narrow(np.flatnonzero(there & ~wide & ~is_mark))
        rows = np.flatnonzero(there & wide & ~is_mark)
        length = (slices.end - slices.start)[rows]
        named = np.zeros(rows.size, bool)
        named[np.argsort(-length, kind="stable")[:MOST_LABELS]] = True
        for row, name in zip(rows.tolist(), named.tolist(), strict=True):
            self._wide(row, name)
        self._links(rows)
        self._marks(np.flatnonzero(there & is_mark))

    def _marks(self, rows: np.ndarray) -> None:
        """Ticks at the foot of what they lie in, the first one of each pixel."""
        timeline, start = self.timeline, self.timeline.slices.start[rows] - self.timeline.view[0]
        pixel = (start * self.scale).astype(np.int64)
        _, first = np.unique(timeline.row[rows] * self.picture.width + pixel, return_index=True)
        for row, at in zip(rows[first].tolist(), start[first].tolist(), strict=True):
            y = self._top(row) + ROW - 1.5 - TICK
            box = Rectangle(LEFT + at * self.scale, y, TICK_WIDTH, TICK, MARK,
                      f"{timeline.label(row)}\nat {self._when(row)}")  # fmt: skip
            self.picture.boxes.append(box)

    def _links(self, rows: np.ndarray) -> None:
        """Thin lines from piece to piece of one run of a scope."""
        slices, visits = self.timeline.slices, self.timeline.tables.records.visits
        rows = rows[slices.kind[rows] == SliceKind.SCOPE]
        rows = rows[visits.joined[slices.record[rows]]]
        number = visits.number[slices.record[rows]]
        order = np.lexsort((slices.start[rows], number))
        rows, number = rows[order], number[order]
        follows = np.flatnonzero(number[1:] == number[:-1])
        for one, next_ in zip(rows[follows].tolist(), rows[follows + 1].tolist(), strict=True):
            if self._top(one) != self._top(next_):
                continue
            ends = np.clip((slices.end[one], slices.start[next_]), *self.timeline.view)
            x, end = LEFT + (ends - self.timeline.view[0]) * self.scale
            shade = fill(SliceKind.SCOPE, self.timeline.names[int(slices.name[one])])
            y = self._top(one) + ROW - LINK - 1.5
            title = f"{self.timeline.label(one)}: pieces of one run"
            self.picture.boxes.append(Rectangle(x, y, max(end - x, 0), LINK, shade, title))

    def _when(self, row: int) -> str:
        start, view = int(self.timeline.slices.start[row]), self.timeline.view
        return moment(start, (view[1] - view[0]) / 1000)

    def _wide(self, row: int, named: bool) -> None:
        timeline, slices = self.timeline, self.timeline.slices
        view = timeline.view
        start, end = (int(np.clip(x[row], *view)) for x in (slices.start, slices.end))
        x, y = LEFT + (start - view[0]) * self.scale, self._top(row)
        width = (end - start) * self.scale
        kind, name = int(slices.kind[row]), int(slices.name[row])
        label = timeline.label(row)
        length = duration(int(slices.end[row] - slices.start[row]))
        gap = 0.6 if width > NARROW else 0  # neighbours are told apart
        title = f"{label}\n{length} at {self._when(row)}"
        if timeline.names[name].source and kind != SliceKind.PROGRAM:
            title += f"\n{timeline.names[name].source}"
        self.picture.boxes.append(
            Rectangle(x, y, width - gap, ROW - 1.5, fill(kind, timeline.names[name]), title)
        )
        if named and width > NARROW * FONT:
            self.picture.write(x + 3, y + FONT, label, width=width - 5)

    def _narrow(self, rows: np.ndarray) -> None:
        """Pixel by pixel what took most of each, runs of one name as one box."""
        if not rows.size:
            return
        timeline, slices = self.timeline, self.timeline.slices
        pixels = self.picture.width - LEFT
        cut = cells(slices.start[rows], slices.end[rows], timeline.view, pixels)
        of = rows[cut.index]
        style = slices.kind[of] * len(timeline.names) + slices.name[of]
        cell, found = most(timeline.row[of] * pixels + cut.column, style, cut.ns)
        heads = np.flatnonzero(
            np.append(True, (np.diff(cell) != 1) | (np.diff(found) != 0) | (cell[1:] % pixels == 0))
        )
        length = np.diff(np.append(heads, cell.size))
        first_row = np.cumsum(timeline.heights) - timeline.heights
        for head, count in zip(heads.tolist(), length.tolist(), strict=True):
            row, column = divmod(int(cell[head]), pixels)
            kind, name = divmod(int(found[head]), len(timeline.names))
            track = int(np.searchsorted(first_row, row, side="right")) - 1
            y = self.tops[track] + (row - first_row[track]) * ROW
            of_name = timeline.names[name]
            shade = fill(kind, of_name)
            title = f"mostly {of_name.shown}"
            box = Rectangle(LEFT + column, float(y), count, ROW - 1.5, shade, title)
            self.picture.boxes.append(box)

    def _top(self, row: int) -> float:
        return float(self.tops[self.timeline.slices.track[row]] + self.timeline.level[row] * ROW)
