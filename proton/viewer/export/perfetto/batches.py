"""What a Perfetto trace shows of a run, as intervals on tracks.

A program is a slice around its scopes: on the CPU on the same track, on a GPU on that of its slot,
above those of its warps. A launch is a slice with all that is known of its kernel: on a GPU beside
the host's call (category "call"), with a flow from one to the other; on the CPU with a flow to the
first program of it on each thread. An event is a slice on the track of the events of the unit that
started it, and an instant at each edge on the tracks of the units, with a flow from one to the
other. Asynchronous work is a slice on the track of its queue beside the unit that issued it, and a
flow from its issue to the wait that retired it.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np

from proton.trace.nesting import Nesting, nest
from proton.trace.operators import NO_ONE, Operators
from proton.trace.records import NONE
from proton.trace.wire import ProgramState, RecordKind
from proton.viewer.export.perfetto.colours import of_scopes
from proton.viewer.export.perfetto.stream import FLOAT, INT, TEXT, Batch, Note
from proton.viewer.export.perfetto.tracks import TrackTree
from proton.viewer.tables import Tables
from proton.viewer.tables.flights import flight_names
from proton.viewer.tables.labels import launch_facts, program_name

NO_FLOWS = np.zeros((0, 0), np.int64)
LOST = "records lost"
COUNTS = ("programs", "partial", "written", "kept", "lost")  # annotations of a launch
K = TypeVar("K", bound=Hashable)
Value = int | float | str


class Names(Generic[K]):
    """Things and their interned ids; 0 is none."""

    def __init__(self) -> None:
        self.ids: dict[K, int] = {}

    def id(self, key: K) -> int:
        """The id of a thing, known before or from now on."""
        return self.ids.setdefault(key, len(self.ids) + 1)

    def of(self, keys: Iterable[K]) -> np.ndarray:
        """The ids of things."""
        return np.array([self.id(key) for key in keys], np.int64)


class Interned:
    """What a trace says once and then by number."""

    def __init__(self) -> None:
        self.names: Names[str] = Names()
        self.notes: Names[str] = Names()  # names of annotations
        self.texts: Names[str] = Names()  # and their text
        self.categories: Names[str] = Names()
        self.sources: Names[tuple[str, int]] = Names()


class _Row(NamedTuple):
    """One interval of the batch that is made one by one."""

    track: int
    start: int
    end: int
    name: str
    category: str
    flows: Sequence[int]
    notes: dict[str, Value]


class Batches:
    """The intervals of a run. Flows are numbered from 1: those of launches of GPUs by the launch,
    then those from operators to what they asked a GPU for, then those to the first programs, then
    those of events, then those of asynchronous work."""

    def __init__(self, tables: Tables, tree: TrackTree, interned: Interned) -> None:
        self.raw, self.records, self.tables = tables.raw, tables.records, tables
        self.tree, self.interned = tree, interned
        self.colours = of_scopes(tables.records.scopes)
        self.first_programs = self._first_programs()
        askers = Operators(tables.raw).of_slices(tables.raw.host)
        self.asked = {row: asker for row, asker in enumerate(askers) if asker != NO_ONE}
        self.first_flow = 1 + len(tables.raw.launches) + len(self.asked)  # to first programs

    def all(self) -> list[Batch]:
        """Everything, in the order in which it is written."""
        return [self._host(), self._losses(), self._slices(), self._events(), *self._flights()]

    def _host(self) -> Batch:
        """What `_host_rows` gives, by track."""
        rows = sorted(self._host_rows(), key=lambda row: row.track)
        names, categories = self.interned.names, self.interned.categories

        def column(values: Iterable[int]) -> np.ndarray:
            return np.array(list(values), np.int64)

        return _batch(
            track=column(row.track for row in rows),
            start=column(row.start for row in rows),
            end=column(row.end for row in rows),
            name=names.of(row.name for row in rows),
            category=categories.of(row.category for row in rows),
            instant=np.zeros(len(rows), bool),
            flows=self._columns([row.flows for row in rows]),
            notes=self._dict_notes([row.notes for row in rows]),
        )

    def _host_rows(self) -> Iterator[_Row]:
        """Launches and host scopes on the tracks of the host threads, launches of GPUs on theirs.

        A launch comes first because of two equal intervals the later one is the outer.
        """
        raw, tree = self.raw, self.tree
        started: dict[int, list[int]] = {}
        launches = self.records.tracks.launch[tree.places.residency.first[self.first_programs]]
        for place, launch_number in enumerate(launches.tolist()):
            started.setdefault(launch_number, []).append(self.first_flow + place)
        columns = ("device", "clock", "variant", "start_ns", "dur_ns", *COUNTS)
        values = zip(*(self.tables.launches[name].tolist() for name in columns), strict=True)
        for number, (launch, row) in enumerate(zip(raw.launches, values, strict=True)):
            device, clock, variant, start, duration, *counts = row
            kernel = raw.kernels[launch.kernel]
            notes: dict[str, Value] = {"launch": number, "variant": variant}
            notes |= launch_facts(kernel, launch) | dict(zip(COUNTS, counts, strict=True))
            if not launch.is_called:
                own = tree.launch_track(device)
                yield _Row(own, start, start + duration, kernel.name, "launch", [], notes)
                continue
            host, called = tree.host_track(launch.thread), launch.host_start - raw.origin_ns
            returned = launch.host_end - raw.origin_ns
            if clock == "host":
                flows = started.get(number, [])
                yield _Row(host, called, returned, kernel.name, "launch", flows, notes)
                continue
            own = tree.launch_track(device)
            yield _Row(
                host, called, returned, kernel.name, "call", [number + 1], {"launch": number}
            )
            yield _Row(own, start, start + duration, kernel.name, "launch", [number + 1], notes)
        asked = self._asked_flows()
        for place, s in enumerate(raw.host):
            start, end = s.start - raw.origin_ns, s.end - raw.origin_ns
            flows = asked.get(place, [])
            yield _Row(tree.slice_track(s), start, end, s.name, s.kind, flows, dict(s.payload))

    def _asked_flows(self) -> dict[int, list[int]]:
        """A flow from each operator to each thing that it asked a GPU for, at both ends."""
        flows: dict[int, list[int]] = {}
        for number, pair in enumerate(self.asked.items(), 1 + len(self.raw.launches)):
            for row in pair:
                flows.setdefault(row, []).append(number)
        return flows

    def _losses(self) -> Batch:
        """An instant at the beginning of each program that lost records."""
        tracks = np.flatnonzero(self.records.tracks.lost)
        began = self.records.began_ns(tracks)
        counts = self.records.tracks.lost[tracks], self.records.tracks.kept[tracks]
        notes: list[dict[str, Value]] = [
            {"lost": lost, "kept": kept}
            for lost, kept in zip(*(c.tolist() for c in counts), strict=True)
        ]
        order = np.argsort(self.tree.unit_tracks[tracks], kind="stable")
        return _batch(
            track=self.tree.unit_tracks[tracks][order],
            start=began[order],
            end=began[order],
            name=np.full(tracks.size, self.interned.names.id(LOST)),
            category=np.full(tracks.size, self.interned.categories.id("loss")),
            instant=np.ones(tracks.size, bool),
            flows=NO_FLOWS,
            notes=self._dict_notes([notes[row] for row in order.tolist()]),
        )

    def _events(self) -> Batch:
        """The events, by the track of the unit that started them."""
        records, found = self.records, self.records.events
        track = self.tree.event_tracks(records.track[found.start])
        order = np.argsort(track, kind="stable")
        name = self.interned.names.of(scope.name for scope in records.scopes)
        return _batch(
            track=track[order],
            start=records.start_ns[found.start][order],
            end=records.start_ns[found.end][order],
            name=name[records.scope[found.start]][order],
            category=np.full(order.size, self.interned.categories.id("event")),
            instant=np.zeros(order.size, bool),
            flows=NO_FLOWS,
            colour=self.colours[records.scope[found.start]][order],
            notes=lambda rows: [],
        )

    def _flights(self) -> list[Batch]:
        """Asynchronous work, a batch for each queue."""
        records, found = self.records, self.records.flights
        names = self.interned.names.of(flight_names(records))
        queue = np.array([scope.queue for scope in records.scopes], object)
        batches = []
        for name in sorted({scope.queue for scope in records.scopes if scope.queue}):
            rows = np.flatnonzero(queue[records.scope[found.issue]] == name)
            issue, wait = found.issue[rows], found.wait[rows]
            track = self.tree.flight_tracks(records.track[issue], name)
            order = np.argsort(track, kind="stable")
            issue, wait = issue[order], wait[order]
            batches.append(
                _batch(
                    track=track[order],
                    start=records.start_ns[issue],
                    end=records.end_ns[wait],
                    name=names[records.scope[issue]],
                    category=np.full(order.size, self.interned.categories.id("flight")),
                    instant=np.zeros(order.size, bool),
                    flows=NO_FLOWS,
                    colour=self.colours[records.scope[issue]],
                    notes=self._flight_notes(issue, wait),
                )
            )
        return batches

    def _flight_notes(
        self, issue: np.ndarray, wait: np.ndarray
    ) -> Callable[[np.ndarray], list[Note]]:
        """The iteration of asynchronous work, and how long was waited for it."""
        records, notes = self.records, self.interned.notes
        iteration, waited = notes.id("iteration"), notes.id("wait_ns")

        def notes_of(rows: np.ndarray) -> list[Note]:
            kind, number = np.full(rows.size, INT), records.iteration[issue[rows]]
            time = records.end_ns[wait[rows]] - records.start_ns[wait[rows]]
            known = np.where(number != NONE, iteration, 0)
            return [
                Note(known, kind, number.view(np.uint64)),
                Note(np.full(rows.size, waited), kind, time.view(np.uint64)),
            ]

        return notes_of

    def _slices(self) -> Batch:
        """Slices and marks of all programs, edges of events, and then the programs themselves."""
        records, tree = self.records, self.tree
        residency, wraps = tree.places.residency, _Wraps(tree)
        scopes, of, kinds = records.scopes, records.scope, records.kind
        categories = np.array([self._category(s.kind, s.fused) for s in scopes], np.int64)
        names = self.interned.names.of(scope.name for scope in scopes)
        sources = np.array([self._source(s.file, s.line) for s in scopes], np.int64)
        nothing = np.zeros(wraps.program.size, np.int64)
        program = self.interned.categories.id("program")
        return Batch(
            track=np.append(tree.unit_tracks[records.track], wraps.track),
            start=np.append(records.start_ns, residency.start_ns[wraps.program]),
            end=np.append(records.end_ns, residency.end_ns[wraps.program]),
            name=np.append(names[of], self._program_names()[wraps.program]),
            category=np.append(categories[of], nothing + program),
            instant=np.append(kinds != RecordKind.SLICE, nothing > 0),
            flows=self._flows(wraps),
            source=np.append(sources[of], nothing),
            colour=np.append(self.colours[of], nothing),
            notes=self._slice_notes(wraps),
            nesting=_on_places(records.nesting, records.track, wraps, residency.start_ns),
        )

    def _program_names(self) -> np.ndarray:
        """The name of each program that began."""
        row = self.tree.places.residency.first
        columns = (
            self.records.tracks.launch[row].tolist(),
            self.records.tracks.program[row].tolist(),
        )
        kernels, launches = self.raw.kernels, self.raw.launches
        return self.interned.names.of(
            program_name(kernels[launches[launch].kernel], launches[launch].grid, program)
            for launch, program in zip(*columns, strict=True)
        )

    def _category(self, kind: str, fused: bool) -> int:
        """Of what a scope leaves; 0 for a plain slice."""
        name = {"mark": "mark", "event": "edge"}.get(kind, "fused" if fused else "")
        return self.interned.categories.id(name) if name else 0

    def _source(self, file: str, line: int) -> int:
        return self.interned.sources.id((file, line)) if file else 0

    def _first_programs(self) -> np.ndarray:
        """The first program of each launch on each thread of the CPU, as rows of `residency`."""
        residency, tracks = self.tree.places.residency, self.records.tracks
        cpu = np.flatnonzero(tracks.device[residency.first] == NONE)
        launch, thread = (c[residency.first[cpu]] for c in (tracks.launch, tracks.thread))
        order = np.lexsort((residency.start_ns[cpu], thread, launch))
        keys = np.stack([launch, thread])[:, order]
        is_first = np.ones(order.size, bool)
        is_first[1:] = (keys[:, 1:] != keys[:, :-1]).any(axis=0)
        return cpu[order[is_first]]

    def _flows(self, wraps: "_Wraps") -> np.ndarray:
        """The flows of each record and program, a column each; 0 for none."""
        records, found = self.records, self.records.events
        first = self.first_flow
        programs = np.zeros(self.tree.places.residency.row.size, np.int64)
        programs[self.first_programs] = first + np.arange(self.first_programs.size)
        own = programs[wraps.program]
        own[1:][wraps.program[1:] == wraps.program[:-1]] = 0  # of several units the first has it
        flow = np.append(np.zeros(records.kind.size, np.int64), own)
        # of an event of no length the two instants have no order in time
        long = records.start_ns[found.end] > records.start_ns[found.start]
        numbers = first + self.first_programs.size + np.arange(long.sum())
        flow[found.start[long]] = flow[found.end[long]] = numbers
        return self._with_flights(flow, first + self.first_programs.size + numbers.size)

    def _with_flights(self, flow: np.ndarray, first: int) -> np.ndarray:
        """The flows with those of asynchronous work, whose numbers begin at `first`: a wait may
        retire several pieces, and a piece may have several waits. Where a wait began before the
        issue, Perfetto draws the arrow the other way."""
        records, found = self.records, self.records.flights
        long = records.start_ns[found.wait] != records.start_ns[found.issue]
        issue, wait = found.issue[long], found.wait[long]
        numbers = first + np.arange(issue.size)
        columns = [(edge, _ranks(edge)) for edge in (issue, wait)]
        width = 1 + max((int(rank.max(initial=0)) for _, rank in columns), default=0)
        flows = np.zeros((flow.size, width), np.int64)
        flows[:, 0] = flow
        for edge, rank in columns:
            flows[edge, rank] = numbers
        return self._with_visits(flows, first + issue.size)

    def _with_visits(self, flows: np.ndarray, first: int) -> np.ndarray:
        """The flows with those from piece to piece of a visit, whose numbers begin at `first`."""
        visits = self.records.visits
        if not visits.is_split:
            return flows
        column = np.zeros((len(flows), 1), np.int64)
        column[: visits.number.size, 0] = np.where(visits.joined, first + visits.number, 0)
        return np.hstack([flows, column])

    def _slice_notes(self, wraps: "_Wraps") -> Callable[[np.ndarray], list[Note]]:
        """Launch, program, cycles and error of each record and program; of a record its iteration
        and payload, too."""
        records, tracks, notes = self.records, self.records.tracks, self.interned.notes
        count, first = records.kind.size, self.tree.places.residency.first[wraps.program]
        track = np.append(records.track, first)
        cycles = records.end_ticks.astype(np.int64) - records.start_ticks.astype(np.int64)
        whole = tracks.ended[first].astype(np.int64) - tracks.began[first].astype(np.int64)
        killed = records.programs.state[tracks.row[first]] != ProgramState.FINISHED
        cycles = np.append(np.where(records.kind == RecordKind.SLICE, cycles, NONE), whole)
        cycles[count:][killed] = NONE
        error = np.ceil(np.append(records.error_ns, np.full(first.size, float(NONE))))
        columns = {
            "launch": tracks.launch[track],
            "program": tracks.program[track],
            "cycles": cycles,
            "error_ns": error.astype(np.int64),
            "iteration": np.append(records.iteration, np.full(first.size, NONE)),
        }
        if records.visits.is_split:
            visit = np.where(records.visits.joined, records.visits.number, NONE)
            columns["visit"] = np.append(visit, np.full(first.size, NONE))
        whole_columns = [(notes.id(name), column) for name, column in columns.items()]
        payload = self._payload_notes()

        def notes_of(rows: np.ndarray) -> list[Note]:
            kind, found = np.full(rows.size, INT), []
            for name, column in whole_columns:
                value = column[rows]
                found.append(Note(np.where(value != NONE, name, 0), kind, value.view(np.uint64)))
            return found + payload(rows, rows < count)

        return notes_of

    def _payload_notes(self) -> Callable[[np.ndarray, np.ndarray], list[Note]]:
        """The payload of some rows, of those that are records."""
        records, scopes = self.records, self.records.scopes
        slots = max((len(scope.payload) for scope in scopes), default=0)
        name = np.zeros((len(scopes), slots), np.int64)
        kind = np.full((len(scopes), slots), INT)
        for number, scope in enumerate(scopes):
            for slot, field in enumerate(scope.payload):
                name[number, slot] = self.interned.notes.id(field.name)
                kind[number, slot] = FLOAT if field.kind == "float" else INT

        def notes_of(rows: np.ndarray, real: np.ndarray) -> list[Note]:
            if not slots or not real.any():
                return []
            record = np.where(real, rows, 0)
            scope, bits = records.scope[record], records.payload[record]
            return [
                Note(np.where(real, name[scope, s], 0), kind[scope, s], bits[:, s])
                for s in range(slots)
            ]

        return notes_of

    def _dict_notes(
        self, rows: Sequence[Mapping[str, Value]]
    ) -> Callable[[np.ndarray], list[Note]]:
        """Annotations out of one dict per interval."""
        slots = max((len(row) for row in rows), default=0)
        name = np.zeros((len(rows), slots), np.int64)
        kind = np.full((len(rows), slots), INT)
        bits = np.zeros((len(rows), slots), np.uint64)
        for number, row in enumerate(rows):
            name[number, : len(row)] = self.interned.notes.of(row)
            for slot, value in enumerate(row.values()):
                kind[number, slot], bits[number, slot] = self._bits(value)
        return lambda some: [
            Note(name[some, s], kind[some, s], bits[some, s]) for s in range(slots)
        ]

    @staticmethod
    def _columns(rows: Sequence[Sequence[int]]) -> np.ndarray:
        """Lists of numbers as rows of one array, filled up with 0."""
        table = np.zeros((len(rows), max(map(len, rows), default=0)), np.int64)
        for number, row in enumerate(rows):
            table[number, : len(row)] = row
        return table

    def _bits(self, value: Value) -> tuple[int, np.uint64]:
        """What an annotation's value is, and its bits."""
        if isinstance(value, str):
            return TEXT, np.uint64(self.interned.texts.id(value))
        if isinstance(value, float):
            return FLOAT, np.float64(value).view(np.uint64)
        return INT, np.int64(value).view(np.uint64)


def _ranks(rows: np.ndarray) -> np.ndarray:
    """How many equal ones come before each of some numbers."""
    order = np.argsort(rows, kind="stable")
    ordered = rows[order]
    ranks = np.empty(rows.size, np.int64)
    ranks[order] = np.arange(rows.size) - np.searchsorted(ordered, ordered)
    return ranks


class _Wraps:
    """The slices of programs: the row in `residency` and the track of each, and around which unit's
    records it lies (a row of tracks), NONE for those of GPUs."""

    def __init__(self, tree: TrackTree) -> None:
        places = tree.places
        programs = places.program_of_unit
        on_gpu = np.zeros(places.residency.row.size + 1, bool)  # the last one is for NONE
        on_gpu[places.programs] = on_gpu[-1] = True
        self.programs_of_units, self.unit_tracks = programs, tree.unit_tracks
        self.units = np.flatnonzero(~on_gpu[programs])
        self.program = np.append(programs[self.units], places.programs)
        self.track = np.append(tree.unit_tracks[self.units], tree.slot_tracks)
        self.unit = np.append(self.units, np.full(places.programs.size, NONE))


def _on_places(walk: Nesting, track: np.ndarray, wraps: _Wraps, start: np.ndarray) -> Nesting:
    """One walk over all records and programs, track by track, each program's in order of time.

    Each unit's part of the walk over records moves as a whole to where its program has its turn,
    inside of the program's own begin and end where these are on the same track.
    """
    units = wraps.unit_tracks.size
    kept = np.bincount(track, minlength=units)
    wrapped = np.zeros(units, np.int64)
    wrapped[wraps.units] = 1
    alone = np.flatnonzero(wraps.unit == NONE)
    program = np.append(wraps.programs_of_units, wraps.program[alone])
    on = np.append(wraps.unit_tracks, wraps.track[alone])
    size = 2 * np.append(kept + wrapped, np.ones(alone.size, np.int64))
    order = np.lexsort((np.arange(on.size), np.append(start, 0)[program], on))
    offset = np.empty_like(size)
    offset[order] = np.cumsum(size[order]) - size[order]
    shift = offset[:units] + wrapped - 2 * (np.cumsum(kept) - kept)
    block = wraps.unit.copy()
    block[alone] = units + np.arange(alone.size)
    return Nesting(
        begin_at=np.append(walk.begin_at + shift[track], offset[block]),
        end_at=np.append(walk.end_at + shift[track], offset[block] + size[block] - 1),
        crossed=np.append(walk.crossed, np.zeros(wraps.unit.size, bool)),
        inside=np.append(walk.inside, np.zeros(wraps.unit.size, np.int64)),
    )


def _batch(
    *, track: np.ndarray, start: np.ndarray, end: np.ndarray, flows: np.ndarray, **columns: Any
) -> Batch:
    """Intervals without places in the source, nested by their times."""
    flows = flows if flows.size else np.zeros((track.size, 0), np.int64)
    walk = nest(track, start, end)
    return Batch(
        track=track, start=start, end=end, flows=flows, source=None, nesting=walk, **columns
    )
