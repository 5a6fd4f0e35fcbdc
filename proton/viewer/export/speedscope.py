"""Slices as profiles of speedscope (https://www.speedscope.app), one a track.

The format wants properly nested begins and ends in order of time. What overlaps on a track without
nesting is on lanes of its own, which are profiles of their own; instants have no place in it.
"""

import itertools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import numpy as np

from proton.base.progress import StepCounter, to_terminal
from proton.base.text import printable
from proton.trace.nesting import lanes, nest
from proton.viewer.formats import FileFormat
from proton.viewer.pictures.selection import EVERYTHING, Selection
from proton.viewer.pictures.timeline import SliceKind, Timeline
from proton.viewer.tables import Tables

SCHEMA = "https://www.speedscope.app/file-format-schema.json"


def write(tables: Tables, file: BinaryIO, target: Path, where: Selection = EVERYTHING) -> None:
    """Writes the file, a profile a line."""
    timeline = Timeline(tables, where)
    frames = [_frame(name.text, name.source) for name in timeline.names]
    head = {
        "$schema": SCHEMA,
        "name": printable("; ".join((tables.name, *tables.loss_warnings()))),
        "exporter": "proton",
        "activeProfileIndex": 0,
        "shared": {"frames": frames},
    }
    file.write(json.dumps(head)[:-1].encode() + b',\n"profiles": [')
    opening = "\n"
    count = int((timeline.slices.kind != SliceKind.MARK).sum())
    progress = StepCounter("slice", count, to_terminal)
    for profile, some in _profiles(timeline):
        file.write(f"{opening}{json.dumps(profile)}".encode())
        opening = ",\n"
        progress.step(some)
    file.write(b"\n]}\n")


def _frame(text: str, source: str) -> dict[str, object]:
    frame: dict[str, object] = {"name": printable(text)}
    if source:
        path, line = source.rsplit(":", 1)
        frame.update(file=printable(path), line=int(line))
    return frame


def _profiles(timeline: Timeline) -> Iterator[tuple[dict[str, object], int]]:
    """An evented profile for each track, and for each lane where slices cross; and of how many
    slices it is."""
    slices = timeline.slices
    rows = np.flatnonzero(slices.kind != SliceKind.MARK)
    # Of those that cover the same time, the outer one is recorded later: nest() expects that.
    rows = rows[np.lexsort((-timeline.level[rows], slices.track[rows]))]
    track, start, end = slices.track[rows], slices.start[rows], slices.end[rows]
    lane = lanes(track, nest(track, start, end))
    pair = track * (lane.max(initial=0) + 1) + lane
    order = np.argsort(pair, kind="stable")
    rows, pair = rows[order], pair[order]
    walk = nest(pair, slices.start[rows], slices.end[rows])
    at = np.concatenate([walk.begin_at, walk.end_at])
    times = np.concatenate([slices.start[rows], slices.end[rows]])
    both = np.argsort(at)
    on, index = np.concatenate([pair, pair])[both], np.concatenate([rows, rows])[both]
    kinds = (both >= rows.size).tolist()
    names, times = slices.name[index].tolist(), times[both].tolist()
    heads = np.flatnonzero(np.diff(on, prepend=-1)).tolist()
    for head, stop in itertools.pairwise([*heads, on.size]):
        events = [
            {"type": "C" if kinds[i] else "O", "frame": names[i], "at": times[i]}
            for i in range(head, stop)
        ]
        profile = {
            "type": "evented",
            "name": printable(" / ".join(timeline.tracks[slices.track[index[head]]])),
            "unit": "nanoseconds",
            "startValue": times[head],
            "endValue": max(times[head:stop]),
            "events": events,
        }
        yield profile, (stop - head) // 2


FORMAT = FileFormat(
    name="speedscope",
    suffixes=(".speedscope.json",),
    about="opens in speedscope.app",
    write=write,
    options=("where",),
)
