"""A run as slices on tracks: what every picture of time is drawn from.

Tracks are the places of `proton.viewer.tables.places`: host threads, threads of the CPU, and below
a GPU its launches, then SM, slot and warp. On a track a slice has a *level*: how many lie around
it. Slices of one track and one level follow each other and never overlap, so a picture draws each
such row from left to right.

    level 0   [softmax (17, 0)             ]   a program
    level 1     [load   ][compute        ]     its scopes
    level 2                [exp ]
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from proton.base.symbols import shortened
from proton.base.units import duration
from proton.trace.model import HostSlice
from proton.trace.nesting import lanes, nest
from proton.trace.records import NONE
from proton.trace.wire import RecordKind as RecordKind
from proton.viewer.pictures.selection import EVERYTHING, Selection, matching
from proton.viewer.tables import Tables
from proton.viewer.tables.first_view import first_launch, first_view
from proton.viewer.tables.labels import (
    COMPILATIONS,
    EVENTS,
    gpu_name,
    host_thread_names,
    kernel_labels,
    program_name,
    stream_name,
)
from proton.viewer.tables.places import Place, Places
from proton.viewer.tables.rows import launch_times

if TYPE_CHECKING:
    import pandas as pd

HOST, THREADS, GPUS = 0, 1, 2  # groups of tracks, from above
STREAMS = -(1 << 20)  # of a GPU, above its launches
LAUNCHES = ("launches", -1)  # of a GPU, above its SMs
AFTER = 0.5  # what the rank of a place's events is higher than the place's


class SliceKind(enum.IntEnum):
    """What a slice is."""

    HOST = 0
    COMPILE = 1
    LAUNCH = 2
    CALL = 3  # the host's part of a GPU's launch
    PROGRAM = 4
    SCOPE = 5
    MARK = 6
    EVENT = 7


@dataclass(frozen=True)
class Name:
    """What slices are called: the last name, the whole path, and where it is written. `number` is
    that of the colour, which names of equal text share, in whatever kernel or variant."""

    text: str
    path: str
    source: str = ""
    number: int = 0

    @property
    def shown(self) -> str:
        """The name in pictures: a long one in its short form."""
        return shortened(self.text)


@dataclass(frozen=True, kw_only=True)
class Slices:
    """Columns, a row a slice. `name` is a row of the timeline's names, `record` one of
    `tables.records`; -1 stands for none."""

    track: np.ndarray
    kind: np.ndarray
    name: np.ndarray
    start: np.ndarray
    end: np.ndarray
    launch: np.ndarray
    program: np.ndarray
    record: np.ndarray

    def __getitem__(self, rows: np.ndarray) -> Slices:
        return Slices(**{name: column[rows] for name, column in vars(self).items()})

    @staticmethod
    def join(parts: Sequence[Slices]) -> Slices:
        """One after another."""
        names = vars(parts[0])
        return Slices(**{n: np.concatenate([getattr(p, n) for p in parts]) for n in names})


class Timeline:
    """The chosen slices of a run, in order of track, level and start.

    `tracks` are paths of names; `level` is a column beside those of `slices`; `span` are the times
    from which to which the slices go, or as asked for, and `view` those that are drawn at first.
    """

    def __init__(self, tables: Tables, where: Selection = EVERYTHING) -> None:
        self.tables, self.where = tables, where
        builder = _Builder(tables)
        slices = builder.slices()
        slices = slices[_chosen(slices, builder, where)]
        first: dict[str, int] = {}
        self.names = tuple(
            replace(name, number=first.setdefault(name.text, row))
            for row, name in enumerate(builder.names)
        )
        used = np.flatnonzero(np.bincount(slices.track))
        rank = sorted(used.tolist(), key=lambda track: builder.ranks[track])
        number = np.zeros(len(builder.paths), np.int64)
        number[rank] = np.arange(len(rank))
        self.tracks = tuple(builder.paths[track] for track in rank)
        moved = number[slices.track] if slices.track.size else slices.track
        level = _levels(moved, slices.start, slices.end)
        order = np.lexsort((slices.start, level, moved))
        self.slices = Slices(**{**vars(slices), "track": moved})[order]
        self.level = level[order]

    def __len__(self) -> int:
        return int(self.slices.track.size)

    @cached_property
    def heights(self) -> np.ndarray:
        """How many levels each track has."""
        found = np.zeros(len(self.tracks), np.int64)
        np.maximum.at(found, self.slices.track, self.level + 1)
        return found

    @cached_property
    def row(self) -> np.ndarray:
        """Of each slice the row of its track and level, counted from above."""
        return (np.cumsum(self.heights) - self.heights)[self.slices.track] + self.level

    @cached_property
    def span(self) -> tuple[int, int]:
        """From when to when."""
        start, end = self.where.start_ns, self.where.end_ns
        if start is None:
            start = int(self.slices.start.min(initial=np.iinfo(np.int64).max)) if len(self) else 0
        if end is None:
            end = int(self.slices.end.max(initial=start)) if len(self) else start
        return start, max(end, start + 1)

    @cached_property
    def view(self) -> tuple[int, int]:
        """From when to when a picture of the span shows at first; all that was asked for, if
        anything was."""
        start, end = self.span
        found = None if self.where.is_of_a_part else first_view(self.tables)
        if found is None or min(end, found[1]) <= max(start, found[0]):
            return start, end
        return max(start, found[0]), min(end, found[1])

    @property
    def heading(self) -> str:
        """A line on what a picture shows, and what is missing."""
        name, lost = self.tables.name, self.tables.totals.lost
        if not len(self):
            return f"{name}: no slices"
        (start, end), (first, last) = self.span, self.view
        text = f"{name}: {len(self)} slices in {duration(end - start)}"
        if (first, last) != (start, end):
            number = first_launch(self.tables)
            what = "GPUs" if number is None else f"launch {number}, its kernel's median"
            part = "" if number is None else f"--launch {number}: its whole, "
            text += f"; here {duration(last - first)} of {what} ({part}--start 0: all)"
        return text + (f"; {lost} records lost" if lost else "")

    def table(self) -> pd.DataFrame:
        """One row a slice: its track, its level there, what it is, its name and its times."""
        import pandas as pd

        slices = self.slices
        tracks = np.array([" > ".join(path) for path in self.tracks], object)
        return pd.DataFrame(
            {
                "track": tracks[slices.track],
                "level": self.level,
                "kind": [SliceKind(kind).name.lower() for kind in slices.kind.tolist()],
                "name": [self.name(row) for row in range(len(self))],
                "start_ns": slices.start,
                "dur_ns": slices.end - slices.start,
            }
        )

    def label(self, row: int) -> str:
        """What a slice is called in pictures."""
        return shortened(self.name(row))

    def name(self, row: int) -> str:
        """What a slice is called; a program with its coordinates."""
        if self.slices.kind[row] != SliceKind.PROGRAM:
            return self.names[self.slices.name[row]].text
        launch = self.tables.raw.launches[self.slices.launch[row]]
        kernel = self.tables.raw.kernels[launch.kernel]
        return program_name(kernel, launch.grid, int(self.slices.program[row]))


class _Builder:
    """All slices of a run, the names that they have and the tracks that they are on.

    `ranks` sort tracks from above.
    """

    def __init__(self, tables: Tables) -> None:
        self.tables, self.raw, self.records = tables, tables.raw, tables.records
        self.places = Places(tables.raw, tables.records, tables.residency)
        self.host_threads = host_thread_names(tables.raw)
        self.paths: list[tuple[str, ...]] = []
        self.ranks: list[tuple[float, ...]] = []
        self._tracks: dict[tuple[str, ...], int] = {}
        labels = kernel_labels(self.raw.kernels)
        sources = [f"{s.file}:{s.line}" if s.file else "" for s in self.records.scopes]
        self.names = [
            *(Name(s.name, s.path, f) for s, f in zip(self.records.scopes, sources, strict=True)),
            *(Name(label, label) for label in labels),
        ]
        self.first_kernel = len(sources)
        self.kernel_of_launch = np.array([x.kernel for x in self.raw.launches], np.int64)
        self.of_place = np.array([self._place(place) for place in self.places.all], np.int64)

    def slices(self) -> Slices:
        """All. Of two that cover the same time the later one lies around the other."""
        return Slices.join(
            [self._records(), self._programs(), *self._events(), *self._launches(), self._host()]
        )

    def _track(self, group: int, path: Sequence[tuple[str, float]]) -> int:
        """The number of the track of this path of names and ranks."""
        names = tuple(name for name, _ in path)
        if names not in self._tracks:
            self._tracks[names] = len(self.paths)
            self.paths.append(names)
            self.ranks.append((group, *(rank for _, rank in path)))
        return self._tracks[names]

    def _place(self, place: Place) -> int:
        return self._track(THREADS if len(place.path) == 1 else GPUS, place.path)

    def _track_beside(self, number: int, what: str) -> int:
        """The track of what a place has beside its own."""
        place = self.places.all[number]
        name, rank = place.path[-1]
        group = THREADS if len(place.path) == 1 else GPUS
        return self._track(group, [*place.path[:-1], (f"{name} {what}", rank + AFTER)])

    def _host_track(self, thread: int, *inner: tuple[str, float]) -> int:
        order = list(self.host_threads).index(thread)
        return self._track(HOST, [(self.host_threads[thread], order), *inner])

    def _track_of(self, slice_: HostSlice) -> int:
        """The track of a slice of the host, or of a GPU's stream. Compilations have one of their
        own: they take a thousand times as long as what else is there."""
        if slice_.device < 0:
            inner = [(COMPILATIONS, 0.0)] if slice_.kind == "compile" else []
            return self._host_track(slice_.thread, *inner)
        stream = stream_name(slice_.thread), STREAMS + slice_.thread
        return self._track(GPUS, [(gpu_name(self.raw, slice_.device), slice_.device), stream])

    def _records(self) -> Slices:
        """Scopes and marks."""
        records, tracks = self.records, self.records.tracks
        is_mark = records.kind == RecordKind.MARK
        rows = np.flatnonzero((records.kind == RecordKind.SLICE) | is_mark)
        on = records.track[rows]
        return Slices(
            track=_taken(self.of_place, self.places.of_unit[on]),
            kind=np.where(is_mark[rows], SliceKind.MARK, SliceKind.SCOPE),
            name=records.scope[rows].astype(np.int64),
            start=records.start_ns[rows],
            end=np.where(is_mark[rows], records.start_ns[rows], records.end_ns[rows]),
            launch=tracks.launch[on],
            program=tracks.program[on],
            record=rows,
        )

    def _programs(self) -> Slices:
        found, tracks = self.tables.residency, self.records.tracks
        place = self.places.of_unit[found.first]
        place[self.places.programs] = self.places.of_program
        launch = tracks.launch[found.first]
        return Slices(
            track=_taken(self.of_place, place),
            kind=np.full(launch.size, SliceKind.PROGRAM),
            name=self.first_kernel + _taken(self.kernel_of_launch, launch),
            start=found.start_ns,
            end=found.end_ns,
            launch=launch,
            program=tracks.program[found.first],
            record=np.full(launch.size, NONE),
        )

    def _events(self) -> list[Slices]:
        """Events and asynchronous work, on tracks beside that of the unit that started them."""
        events, flights, records = self.records.events, self.records.flights, self.records
        ended = records.start_ns[events.end]
        found = [self._beside(events.start, ended, EVENTS)]
        queue = np.array([scope.queue for scope in records.scopes], object)
        for name in sorted({scope.queue for scope in records.scopes if scope.queue}):
            rows = np.flatnonzero(queue[records.scope[flights.issue]] == name)
            ended = records.end_ns[flights.wait[rows]]
            found.append(self._beside(flights.issue[rows], ended, name))
        return found

    def _beside(self, rows: np.ndarray, end: np.ndarray, what: str) -> Slices:
        """What these records started, on a track of its own beside that of their unit."""
        records, on = self.records, self.records.track[rows]
        place, inverse = np.unique(self.places.of_unit[on], return_inverse=True)
        tracks = np.array([self._track_beside(number, what) for number in place.tolist()], np.int64)
        return Slices(
            track=_taken(tracks, inverse.ravel()),
            kind=np.full(on.size, SliceKind.EVENT),
            name=records.scope[rows].astype(np.int64),
            start=records.start_ns[rows],
            end=end,
            launch=records.tracks.launch[on],
            program=records.tracks.program[on],
            record=rows,
        )

    def _launches(self) -> list[Slices]:
        """Launches, and the host's part of those that have times of their own on a GPU."""
        start, duration = launch_times(self.raw, self.records)
        on_gpu = self.tables.launches["clock"].to_numpy() == "gpu"
        is_called = np.array([launch.is_called for launch in self.raw.launches], bool)
        on_host = [self._host_track(x.thread) if x.is_called else NONE for x in self.raw.launches]
        track = list(on_host)
        for number in np.flatnonzero(on_gpu).tolist():
            device = self.raw.launches[number].device
            track[number] = self._track(GPUS, [(gpu_name(self.raw, device), device), LAUNCHES])
        count = np.arange(len(track))
        launches = self._by_launch(SliceKind.LAUNCH, track, start, start + duration, count)
        called = [launch.host_start - self.raw.origin_ns for launch in self.raw.launches]
        ended = [launch.host_end - self.raw.origin_ns for launch in self.raw.launches]
        calls = self._by_launch(SliceKind.CALL, on_host, called, ended, count)
        return [launches, calls[np.flatnonzero(on_gpu & is_called)]]

    def _by_launch(
        self,
        kind: SliceKind,
        track: list[int],
        start: Iterable[int],
        end: Iterable[int],
        n: np.ndarray,
    ) -> Slices:
        return Slices(
            track=np.array(track, np.int64),
            kind=np.full(n.size, kind),
            name=self.first_kernel + self.kernel_of_launch,
            start=np.array(start, np.int64),
            end=np.array(end, np.int64),
            launch=n,
            program=np.full(n.size, NONE),
            record=np.full(n.size, NONE),
        )

    def _host(self) -> Slices:
        """Scopes of the host, and compilations."""
        host, known = self.raw.host, {}
        for slice_ in host:
            if (slice_.name, slice_.path) not in known:
                known[slice_.name, slice_.path] = len(self.names)
                self.names.append(Name(slice_.name, slice_.path))
        kinds = {"host": SliceKind.HOST, "compile": SliceKind.COMPILE}
        none = np.full(len(host), NONE)

        def column(values: Iterable[int]) -> np.ndarray:
            return np.array(list(values), np.int64)

        return Slices(
            track=column(map(self._track_of, host)),
            kind=column(kinds.get(slice_.kind, SliceKind.HOST) for slice_ in host),
            name=column(known[slice_.name, slice_.path] for slice_ in host),
            start=column(slice_.start - self.raw.origin_ns for slice_ in host),
            end=column(slice_.end - self.raw.origin_ns for slice_ in host),
            launch=none,
            program=none,
            record=none,
        )


def _taken(values: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """values[rows], also where both are empty."""
    return values[rows] if rows.size else np.zeros(0, np.int64)


def _chosen(slices: Slices, builder: _Builder, where: Selection) -> np.ndarray:
    """Which slices a selection shows."""
    shown = np.ones(slices.track.size, bool)
    of_launch = slices.launch != NONE
    if where.of_kernels:
        shown &= of_launch
    if where.kernel:
        good = matching(where.kernel, kernel_labels(builder.raw.kernels))
        shown[of_launch] &= np.array(good, bool)[builder.kernel_of_launch[slices.launch[of_launch]]]
    if where.launches:
        shown &= np.isin(slices.launch, list(where.launches))
    if where.start_ns is not None:
        shown &= slices.end >= where.start_ns
    if where.end_ns is not None:
        shown &= slices.start < where.end_ns
    if where.inside_programs:
        inside = shown & _inside(slices, builder, where)
        pair = slices.launch * (slices.program.max(initial=0) + 1) + slices.program
        around = (slices.kind == SliceKind.PROGRAM) & np.isin(pair, np.unique(pair[inside]))
        shown &= inside | around
    return shown


def _inside(slices: Slices, builder: _Builder, where: Selection) -> np.ndarray:
    """Which records meet the conditions on scope, SM and warp."""
    found = slices.record != NONE
    rows = np.flatnonzero(found)
    good = np.ones(rows.size, bool)
    if where.scope:
        fits = matching(where.scope, [name.path for name in builder.names])
        good &= np.array(fits, bool)[slices.name[rows]]
    tracks, on = builder.records.tracks, builder.records.track[slices.record[rows]]
    if where.sms:
        good &= np.isin(tracks.sm[on], list(where.sms))
    if where.warps:
        good &= np.isin(tracks.warp[on], list(where.warps))
    found[rows] = good
    return found


def _sorted(numbers: np.ndarray) -> np.ndarray:
    """Where numbers stand in their order, equal ones as they were. 16 bits are sorted by digits."""
    is_small = numbers.size and numbers.min() >= 0 and numbers.max() < 1 << 16
    return np.argsort(numbers.astype(np.uint16) if is_small else numbers, kind="stable")


def _levels(track: np.ndarray, start: np.ndarray, end: np.ndarray) -> np.ndarray:
    """The level of each slice. What overlaps without nesting lies below the rest, in lanes."""
    order = _sorted(track)
    on, lane = track[order], np.zeros(track.size, np.int64)
    walk = nest(on, start[order], end[order])
    if walk.crossed.any():
        lane[order] = lanes(on, walk)
        pair = track * (lane.max() + 1) + lane
        order = _sorted(pair)
        walk = nest(pair[order], start[order], end[order])
    depth = np.empty_like(lane)
    by_begin = np.argsort(walk.begin_at)
    depth[order[by_begin]] = 2 * np.arange(by_begin.size) - walk.begin_at[by_begin]
    if not lane.any():
        return depth
    height = np.zeros((track.max() + 1, lane.max() + 1), np.int64)
    np.maximum.at(height, (track, lane), depth + 1)
    return depth + (np.cumsum(height, axis=1) - height)[track, lane]
