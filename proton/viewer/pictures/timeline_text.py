"""A timeline on a terminal: a line a track and level, a column a stretch of time.

A slice with room has its name, `[load   ]`; of narrower ones each column has the letter of what
took most of it, and the legend says which letter is what.
"""

from __future__ import annotations

import itertools
import textwrap

import numpy as np
from rich.cells import cell_len

from proton.base.text import printable
from proton.viewer.pictures.cells import cells, most
from proton.viewer.pictures.text import Line, axis, beginning, fitted, letters
from proton.viewer.pictures.timeline import SliceKind, Timeline
from proton.viewer.pictures.timeline_picture import fill

LEAST_LABEL, MOST_LABEL = 10, 26
_SIGNS = {"HOST": "-", "COMPILE": "~", "LAUNCH": "#", "CALL": "#", "PROGRAM": "=", "MARK": "!"}
FIXED = {SliceKind[name]: sign for name, sign in _SIGNS.items()}
WORDS = {"-": "host scope", "~": "compilation", "#": "launch", "=": "program", "!": "mark"}


def draw_text(timeline: Timeline, width: int, rows: int) -> list[Line]:
    """The lines; of as many rows from above, 0 for all."""
    heading = textwrap.wrap(printable(timeline.heading), width)
    head: list[Line] = [[(beginning(line, width), "")] for line in heading]
    if not len(timeline):
        return head
    labels = _labels(timeline)
    room = min(max(map(cell_len, labels)), MOST_LABEL, max(LEAST_LABEL, width // 4))
    columns = width - room - 1
    kept = _kept(timeline, labels)
    shown = kept[:rows] if rows else kept
    marks = _marks(timeline)
    lines = [*head, [(" " * (room + 1) + axis(timeline.view, columns), "")]]
    drawn = _rows(timeline, shown, columns, marks)
    for row, line in zip(shown.tolist(), drawn, strict=True):
        lines.append([(fitted(labels[row], room) + " ", ""), *line])
    if shown.size < kept.size:
        lines.append([(f"and {kept.size - shown.size} more rows: --rows 0 shows all", "")])
    return lines + _legend(timeline, marks, width)


def _kept(timeline: Timeline, labels: list[str]) -> np.ndarray:
    """The rows that are drawn: the first of each track, and inner levels with something in view."""
    start, end = timeline.view
    slices = timeline.slices
    kept = np.array([bool(label) for label in labels])
    kept[timeline.row[(slices.end >= start) & (slices.start <= end)]] = True
    return np.flatnonzero(kept)


def _labels(timeline: Timeline) -> list[str]:
    """What each row is called: its track on the first, nothing on those of inner levels."""
    labels: list[str] = []
    before: tuple[str, ...] = ()
    for path, height in zip(timeline.tracks, timeline.heights.tolist(), strict=True):
        pairs = zip(path[:-1], before, strict=False)
        same = sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], pairs))
        short = [part.split(" (")[0] for part in path[same:]]
        labels += [" " * same + printable(" ".join(short)), *[""] * (height - 1)]
        before = path
    return labels


def _marks(timeline: Timeline) -> dict[tuple[int, int], str]:
    """The character of each kind and name; scopes get letters, the longest in all first."""
    slices = timeline.slices
    style = slices.kind * len(timeline.names) + slices.name
    found, inverse = np.unique(style, return_inverse=True)
    time = np.bincount(inverse.ravel(), slices.end - slices.start, minlength=found.size)
    order = found[np.argsort(-time, kind="stable")].tolist()
    styles = [divmod(number, len(timeline.names)) for number in order]
    own = [timeline.names[name].text for kind, name in styles if SliceKind(kind) not in FIXED]
    letter = letters(list(dict.fromkeys(own)))
    return {
        (kind, name): FIXED.get(SliceKind(kind)) or letter[timeline.names[name].text]
        for kind, name in styles
    }


def _rows(
    timeline: Timeline, shown: np.ndarray, columns: int, marks: dict[tuple[int, int], str]
) -> list[Line]:
    """The lines without their labels."""
    slices, count = timeline.slices, len(timeline.names)
    some = np.flatnonzero(np.isin(timeline.row, shown))
    place = np.searchsorted(shown, timeline.row)  # of those that are shown
    cut = cells(slices.start[some], slices.end[some], timeline.view, columns)
    of = some[cut.index]
    # Of each column the slice that has most of it: runs of one slice have room for its name.
    cell, index = most(place[of] * columns + cut.column, of, cut.ns)
    style = slices.kind[of] * count + slices.name[of]
    _, by_style = most(place[of] * columns + cut.column, style, cut.ns)
    lines: list[Line] = [[] for _ in shown]
    row, column = np.divmod(cell, columns)
    changes = (np.diff(cell) != 1) | (np.diff(index) != 0) | (np.diff(row) != 0)
    bounds = [0, *(np.flatnonzero(changes) + 1).tolist(), cell.size] if cell.size else [0]
    at = [0] * shown.size
    for head, end in itertools.pairwise(bounds):
        line, first = lines[row[head]], int(column[head])
        if first > at[row[head]]:
            line.append((" " * (first - at[row[head]]), ""))
        kind, name = divmod(int(by_style[head]), count)
        text = timeline.label(int(index[head])) if end - head > 1 else ""
        line.append((_run(text, end - head, marks[kind, name]), fill(kind, timeline.names[name])))
        at[row[head]] = first + end - head
    return lines


def _run(text: str, length: int, mark: str) -> str:
    """A slice of so many columns."""
    text = printable(text)
    if length < 3 or cell_len(text) > length - 2:
        return mark * length
    return f"[{fitted(text, length - 2)}]"


def _legend(timeline: Timeline, marks: dict[tuple[int, int], str], width: int) -> list[Line]:
    """What each character is."""
    entries: dict[str, Line] = {}
    for (kind, name), mark in marks.items():
        word = WORDS.get(mark) or timeline.names[name].shown
        entries.setdefault(
            mark, [(mark, fill(kind, timeline.names[name])), (" " + beginning(word, width - 4), "")]
        )
    lines: list[Line] = [[]]
    used = 0
    for entry in entries.values():
        size = sum(cell_len(text) for text, _ in entry) + 2
        if used and used + size > width:
            lines.append([])
            used = 0
        lines[-1] += [*entry, ("  ", "")]
        used += size
    return [[], *lines]
