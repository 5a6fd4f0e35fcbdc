"""The critical path of a program: the chain of work and waits that its time is made of.

It is followed backwards from the program's last slice. A unit's time is its own work until, further
back, a wait that was long: there the path goes to what was waited for. For asynchronous work that
is its flight, and before that whoever issued it; at a barrier it is the unit that came last; at a
lock it is the program that released it, whose time the path is then made of.

    unit 0   [ load ][ issue ]                  [ load ] ...
    unit 1                    \\..flight..[wait][ compute ]      path: load, issue, flight, compute

A wait that was short (`LEAST_NS`, and what recording it costs) did not hold anybody up, and the
path stays with the unit.

That of a launch begins with the program that ended last, and goes on with the one that was before
it in the same place (a slot of an SM, or a thread), and so on: a tail waits for its waves.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from proton.trace.flights import WAIT
from proton.trace.records import NONE, RecordTable
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


def critical_path(
    records: RecordTable, ran: Residency, program: int, whole: bool = False
) -> pd.DataFrame:
    """The path of a program (a row of `records.programs`; -1 for none), from its beginning: one row
    a step. With `whole` it goes on with what was before it in its place; between two programs there
    is a step of the kind "start"."""
    import pandas as pd

    steps: list[_Step] = []
    while program >= 0:
        own = _Walk(records, program).steps()
        if own and steps and own[-1].end < steps[0].start:
            own.append(_Step(steps[0].track, "start", OUTSIDE, own[-1].end, steps[0].start))
        steps = own + steps
        first = int(records.tracks.row[steps[0].track]) if steps else program
        program = _before(records, ran, first) if whole else NONE
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


def longest(records: RecordTable, ran: Residency, launch: int | None, program: int | None) -> int:
    """The program, as a row of `records.programs`: of those that are meant the one that took
    longest; -1 where none has slices."""
    rows = _with_slices(records, launch, program)
    return int(rows[np.argmax(ran.length(rows))]) if rows.size else NONE


def last(records: RecordTable, ran: Residency, launch: int | None) -> int:
    """The program of a launch that ended last; of the launch of the program that took longest where
    none is named; -1 where none has slices."""
    if launch is None:
        found = longest(records, ran, None, None)
        launch = int(records.programs.launch[found]) if found >= 0 else None
    rows = _with_slices(records, launch, None)
    return int(rows[np.argmax(ran.end_ns[np.searchsorted(ran.row, rows)])]) if rows.size else NONE


def _before(records: RecordTable, ran: Residency, program: int) -> int:
    """The program of the same launch that was last in the place of another one before it; -1 for
    none."""
    at = int(np.searchsorted(ran.row, program))
    launch = records.programs.launch
    same = (ran.place == ran.place[at]) & (ran.slot == ran.slot[at])
    same &= (launch[ran.row] == launch[program]) & (ran.start_ns < ran.start_ns[at])
    found = np.flatnonzero(same)
    return int(ran.row[found[np.argmax(ran.start_ns[found])]]) if found.size else NONE


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
    """The way back through the slices of a program, and of others that it waited for."""

    def __init__(self, records: RecordTable, program: int) -> None:
        self.records, self.program = records, program
        self.start, self.end = records.start_ns, records.end_ns
        flights = records.flights
        self.issued = dict(zip(flights.wait.tolist(), flights.issue.tolist(), strict=True))
        self.names = flight_names(records)

    @cache  # noqa: B019 - of a walk, which nothing keeps
    def rows(self, track: int) -> np.ndarray:
        """The slices of a unit."""
        low, high = np.searchsorted(self.records.track, [track, track + 1])
        rows = np.arange(low, high)
        return rows[self.records.kind[rows] == RecordKind.SLICE]

    @cache  # noqa: B019
    def units(self, program: int) -> list[int]:
        """The units of a program that have slices."""
        tracks = np.flatnonzero(self.records.tracks.row == program).tolist()
        return [track for track in tracks if self.rows(track).size]

    def _begin(self, program: int) -> int:
        return min(int(self.start[self.rows(track)].min()) for track in self.units(program))

    def _program(self, track: int) -> int:
        return int(self.records.tracks.row[track])

    @cache  # noqa: B019
    def _long_waits(self, track: int) -> np.ndarray:
        """The waits that held a unit up, by their ends."""
        rows = self.rows(track)
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

    @cache  # noqa: B019
    def _leaves(self, track: int) -> list[tuple[int, int, int]]:
        """The times of a unit's innermost slices: (start, end, scope), in order."""
        rows = self.rows(track)
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
        units = self.units(self.program)
        if not units:
            return []
        track = max(units, key=lambda unit: int(self.end[self.rows(unit)].max()))
        now, begin = int(self.end[self.rows(track)].max()), self._begin(self.program)
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
            now, begin = step[-1].start, self._begin(self._program(track))
        return [step for step in reversed(found) if step.end > step.start]

    def _wait_before(self, track: int, now: int) -> int | None:
        waits = self._long_waits(track)
        place = int(np.searchsorted(self.end[waits], now, side="right"))
        return int(waits[place - 1]) if place else None

    def _work(self, track: int, first: int, last: int) -> list[_Step]:
        """A unit's own time, backwards."""
        steps, now = [], last
        leaves = self._leaves(track)
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

    @cache  # noqa: B019
    def _slices(self, scope: int, program: int) -> dict[int, np.ndarray]:
        """The slices of a scope on each track of a program, in order."""
        of, units = self.records.scope, self.units(program)
        return {track: rows[of[rows] == scope] for track in units for rows in [self.rows(track)]}

    def _last_to_come(self, wait: int) -> int:
        """Of a barrier's slices in all units, those of one meeting, the one that begins last;
        meetings are counted from the newest."""
        program = self._program(int(self.records.track[wait]))
        slices = self._slices(int(self.records.scope[wait]), program)
        own = slices[int(self.records.track[wait])]
        back = own.size - int(np.searchsorted(own, wait))
        found = [wait]
        for others in slices.values():
            if back <= others.size and self.start[others[-back]] < self.end[wait]:
                found.append(int(others[-back]))
        return max(found, key=lambda row: int(self.start[row]))
