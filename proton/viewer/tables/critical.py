"""The critical path of a program: the chain of work and waits that its time is made of.

It is followed backwards from the program's last slice. A unit's time is its own work until, further
back, a wait that was long: there the path goes to what was waited for. For asynchronous work that
is its flight, and before that whoever issued it; at a barrier it is the unit that came last.

    unit 0   [ load ][ issue ]                  [ load ] ...
    unit 1                    \\..flight..[wait][ compute ]      path: load, issue, flight, compute

A wait that was short (`LEAST_NS`, and what recording it costs) did not hold anybody up, and the
path stays with the unit.

That of a launch begins with the program that ended last, and goes on with the one that was before
it in the same place (a slot of an SM, or a thread), and so on: a tail waits for its waves.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from proton.trace.flights import WAIT
from proton.trace.records import RecordTable
from proton.trace.wire import RecordKind
from proton.viewer.tables.flights import flight_names
from proton.viewer.tables.places import Residency

if TYPE_CHECKING:
    import pandas as pd

LEAST_NS = 20  # a wait that is shorter finds what it waits for: some ten cycles to see that
OUTSIDE = ""  # the name of a unit's time in no slice
COLUMNS = ("program", "unit", "warp", "kind", "scope", "start_ns", "dur_ns")


@dataclass(frozen=True)
class _Step:
    """A part of the path, on a unit (a row of tracks)."""

    track: int
    kind: str  # "work", "flight" or "barrier"
    scope: str
    start: int
    end: int


def critical_path(records: RecordTable, programs: Sequence[int]) -> pd.DataFrame:
    """The path of programs one after another (rows of `records.programs`), from its beginning: one
    row a step. Between two programs there is one of the kind "start"."""
    import pandas as pd

    steps: list[_Step] = []
    for program in programs:
        own = _Walk(records, program).steps()
        if own and steps and steps[-1].end < own[0].start:
            steps.append(_Step(own[0].track, "start", OUTSIDE, steps[-1].end, own[0].start))
        steps += own
    tracks = records.tracks
    return pd.DataFrame(
        {
            "program": [int(tracks.program[step.track]) for step in steps],
            "unit": [int(tracks.unit[step.track]) for step in steps],
            "warp": [int(tracks.warp[step.track]) for step in steps],
            "kind": [step.kind for step in steps],
            "scope": [step.scope for step in steps],
            "start_ns": np.array([step.start for step in steps], np.int64),
            "dur_ns": np.array([step.end - step.start for step in steps], np.int64),
        },
        columns=list(COLUMNS),
    )


def shares(path: pd.DataFrame) -> pd.DataFrame:
    """How much of a path each scope has, flights and barriers apart: ns, and percent of it."""
    table = path.groupby(["kind", "scope"])["dur_ns"].agg(["count", "sum"]).reset_index()
    table = table.rename(columns={"sum": "sum_ns"})
    table["share"] = 100 * table["sum_ns"] / max(int(table["sum_ns"].sum()), 1)
    return table.sort_values("sum_ns", ascending=False, kind="stable").reset_index(drop=True)


def longest(
    records: RecordTable, ran: Residency, launch: int | None, program: int | None
) -> list[int]:
    """The program, as a row of `records.programs`: of those that are meant the one that took
    longest; none where none has slices."""
    rows = _with_slices(records, launch, program)
    return [int(rows[np.argmax(ran.length(rows))])] if rows.size else []


def waves(records: RecordTable, ran: Residency, launch: int | None) -> list[int]:
    """The program of a launch that ended last, and those before it in the same place, the first of
    them first; of the launch of the program that took longest where none is named."""
    if launch is None:
        launch = int(records.programs.launch[(longest(records, ran, None, None) or [0])[0]])
    rows = _with_slices(records, launch, None)
    if not rows.size:
        return []
    at = np.searchsorted(ran.row, rows)
    last = at[np.argmax(ran.end_ns[at])]
    own = at[(ran.place[at] == ran.place[last]) & (ran.slot[at] == ran.slot[last])]
    return [int(row) for row in ran.row[own[np.argsort(ran.end_ns[own], kind="stable")]]]


def _with_slices(records: RecordTable, launch: int | None, program: int | None) -> np.ndarray:
    """The programs that are meant and have slices, as rows of `records.programs`."""
    tracks = records.tracks
    some = np.zeros(tracks.kept.size, bool)
    some[records.track[records.kind == RecordKind.SLICE]] = True
    if launch is not None:
        some &= tracks.launch == launch
    if program is not None:
        some &= tracks.program == program
    return np.unique(tracks.row[some])


class _Walk:
    """One program's slices, and the way back through them."""

    def __init__(self, records: RecordTable, program: int) -> None:
        self.records = records
        own = np.isin(records.track, np.flatnonzero(records.tracks.row == program))
        self.rows = np.flatnonzero(own & (records.kind == RecordKind.SLICE))
        self.start, self.end = records.start_ns, records.end_ns
        self.of_track = {
            int(track): self.rows[records.track[self.rows] == track]
            for track in np.unique(records.track[self.rows])
        }
        flights = records.flights
        self.issued = dict(zip(flights.wait.tolist(), flights.issue.tolist(), strict=True))
        self.leaves = {track: self._leaves(rows) for track, rows in self.of_track.items()}
        self.waits = {track: self._long_waits(rows) for track, rows in self.of_track.items()}
        self.names = flight_names(records)

    def _long_waits(self, rows: np.ndarray) -> np.ndarray:
        """The waits that held a unit up, by their ends."""
        scopes = self.records.scopes
        is_wait = np.array([s.kind == WAIT or s.is_meeting for s in scopes], bool)
        cost = self.records.edge_cost_ns[self.records.track[rows]]
        long = self.end[rows] - self.start[rows] >= LEAST_NS + cost
        found = rows[is_wait[self.records.scope[rows]] & long]
        # Where the issue of what was waited for is not on record, the path cannot follow it.
        is_barrier = np.array([s.is_meeting or not s.queue for s in scopes], bool)
        has_flight = np.isin(found, self.records.flights.wait)
        found = found[is_barrier[self.records.scope[found]] | has_flight]
        return found[np.argsort(self.end[found], kind="stable")]

    def _leaves(self, rows: np.ndarray) -> list[tuple[int, int, int]]:
        """The times of a unit's innermost slices: (start, end, scope), in order."""
        rows = rows[self.end[rows] > self.start[rows]]
        edges = [(int(self.start[r]), 1, -int(self.end[r]), int(r)) for r in rows]
        edges += [(int(self.end[r]), 0, -int(self.start[r]), int(r)) for r in rows]
        found: list[tuple[int, int, int]] = []
        opened: list[int] = []
        last = 0
        for time, is_start, _, row in sorted(edges):
            if opened and time > last:
                found.append((last, time, int(self.records.scope[opened[-1]])))
            if is_start:
                opened.append(row)
            elif row in opened:
                opened.remove(row)
            last = time
        return found

    def steps(self) -> list[_Step]:
        """The path, from its beginning."""
        if not self.rows.size:
            return []
        row = int(self.rows[np.argmax(self.end[self.rows])])
        track, now = int(self.records.track[row]), int(self.end[row])
        begin = int(self.start[self.rows].min())
        found: list[_Step] = []
        passed = set[int]()
        while now > begin:
            wait = self._wait_before(track, now)
            wait = None if wait in passed else wait
            until = begin if wait is None else int(self.end[wait])
            found += self._work(track, until, now)
            now = until
            if wait is None:
                break
            passed.add(wait)
            step, track = self._across(wait)
            found += step
            now = step[-1].start
        return [step for step in reversed(found) if step.end > step.start]

    def _wait_before(self, track: int, now: int) -> int | None:
        waits = self.waits.get(track, self.rows[:0])
        place = int(np.searchsorted(self.end[waits], now, side="right"))
        return int(waits[place - 1]) if place else None

    def _work(self, track: int, first: int, last: int) -> list[_Step]:
        """A unit's own time, backwards."""
        steps, now = [], last
        leaves = self.leaves[track]
        for place in reversed(range(bisect_left(leaves, (last,)))):
            start, end, scope = leaves[place]
            if end <= first:
                break
            start, end = max(start, first), min(end, last)
            if end < now:
                steps.append(_Step(track, "work", OUTSIDE, end, now))
            steps.append(_Step(track, "work", self.records.scopes[scope].path, start, end))
            now = start
        if now > first:
            steps.append(_Step(track, "work", OUTSIDE, first, now))
        return steps

    def _across(self, wait: int) -> tuple[list[_Step], int]:
        """What was waited for, and the unit that the path goes on with, where that ends."""
        records = self.records
        track, end = int(records.track[wait]), int(self.end[wait])
        issue = self.issued.get(wait)
        if issue is not None:
            source, since = int(records.track[issue]), int(self.end[issue])
            name = self.names[records.scope[issue]]
            return [_Step(track, "flight", name, min(since, end), end)], source
        last = self._last_to_come(wait)
        scope = records.scopes[records.scope[wait]]
        kind = "work" if last == wait and scope.kind != WAIT else "barrier"
        since = max(int(self.start[last]), int(self.start[wait]))
        return [_Step(track, kind, scope.path, since, end)], int(records.track[last])

    @cache  # noqa: B019 - of a walk, which nothing keeps
    def _slices(self, scope: int) -> dict[int, np.ndarray]:
        """The slices of a scope on each track, in order."""
        of = self.records.scope
        return {track: rows[of[rows] == scope] for track, rows in self.of_track.items()}

    def _last_to_come(self, wait: int) -> int:
        """Of a barrier's slices in all units, those of one meeting, the one that begins last;
        meetings are counted from the newest."""
        slices = self._slices(int(self.records.scope[wait]))
        own = slices[int(self.records.track[wait])]
        back = own.size - int(np.searchsorted(own, wait))
        found = [wait]
        for others in slices.values():
            if back <= others.size and self.start[others[-back]] < self.end[wait]:
                found.append(int(others[-back]))
        return max(found, key=lambda row: int(self.start[row]))
