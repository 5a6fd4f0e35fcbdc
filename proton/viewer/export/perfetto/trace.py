"""The run as a Perfetto trace: tracks as perfetto_tracks.py has them.

All packets share one sequence. Its clock is incremental, so a packet's time is the few bytes
that passed since the one before; a *switch* packet moves both to the next track (its step in
time may be backwards). Event and annotation names are interned. Times are the run's
`perf_counter_ns`, so ts = origin_ns + start_ns. A launch of a GPU is two slices, the host's call
and the GPU's own, and a flow from one to the other. An event is a slice on the track of the events
of the unit that started it, and an instant at each edge on the tracks of the units, with a flow
from one to the other. Payload values are annotations, and counters (perfetto_counters.py).
"""

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import BinaryIO, NamedTuple

import numpy as np
from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as pb

from proton.trace.model import RawRun
from proton.trace.nesting import Nesting, lanes, nest
from proton.trace.records import NONE, Records, launch_devices
from proton.trace.wire import Kind
from proton.viewer.export.perfetto.counters import Counters, counters
from proton.viewer.export.perfetto.protobuf import (
    Rows,
    fixed64,
    join,
    literal,
    message,
    pack,
    tag,
    varint,
)
from proton.viewer.export.perfetto.tracks import SEQUENCE, TrackTree, packet_bytes
from proton.viewer.tables.rows import launches

# Custom clocks of one sequence have ids 64 to 127 (clock_snapshot.proto).
CLOCK = 64
BLOCK_EVENTS = 1 << 15  # what 16 byte columns of it and their masks take stays in a core's cache
CATEGORIES = ("host", "launch", "fused", "mark", "loss", "run", "event", "edge")
CALL = "call"  # only of a GPU's launches: interned where there are some
LOST = "records lost"
ITERATION = "iteration"
COUNTS = ("programs", "partial", "written", "kept", "lost")  # annotations of a launch

_PACKET = tag(pb.Trace, "packet")
_TIME = tag(pb.TracePacket, "timestamp")
_SEQUENCE = literal(tag(pb.TracePacket, "trusted_packet_sequence_id") + bytes([SEQUENCE]))
_EVENT = tag(pb.TracePacket, "track_event")
_DEFAULTS = tag(pb.TracePacket, "trace_packet_defaults")
_DEFAULT_CLOCK = tag(pb.TracePacketDefaults, "timestamp_clock_id")
_EVENT_DEFAULTS = tag(pb.TracePacketDefaults, "track_event_defaults")
_DEFAULT_TRACK = tag(pb.TrackEventDefaults, "track_uuid")
_TYPE = tag(pb.TrackEvent, "type")
_NAME = tag(pb.TrackEvent, "name_iid")
_CATEGORY = tag(pb.TrackEvent, "category_iids")
_FLOW = tag(pb.TrackEvent, "flow_ids")
_NOTE = tag(pb.TrackEvent, "debug_annotations")
_NOTE_NAME = tag(pb.DebugAnnotation, "name_iid")
_NOTE_INT = tag(pb.DebugAnnotation, "int_value")
_NOTE_FLOAT = tag(pb.DebugAnnotation, "double_value")


@dataclass(frozen=True)
class Note:
    """One annotation of each of some intervals; name 0 where an interval has none."""

    name: np.ndarray
    is_float: np.ndarray
    bits: np.ndarray


@dataclass(frozen=True, kw_only=True)
class Batch:
    """Intervals to write, grouped by track; instants have no end of their own."""

    track: np.ndarray  # uuid
    start: np.ndarray
    end: np.ndarray
    name: np.ndarray
    category: np.ndarray  # 0 for none
    instant: np.ndarray
    flow: np.ndarray | None  # 0 for none; None where none has one
    notes: Callable[[np.ndarray], list[Note]]  # of these intervals
    nesting: Nesting


class Names:
    """Strings and their interned ids; 0 is no string."""

    def __init__(self, strings: Sequence[str] = ()) -> None:
        self.ids: dict[str, int] = {}
        self.of(strings)

    def of(self, strings: Sequence[str]) -> np.ndarray:
        """The ids of the strings, each known before or from now on."""
        return np.array([self.ids.setdefault(s, len(self.ids) + 1) for s in strings], np.int64)


def write(raw: RawRun, records: Records, file: BinaryIO) -> None:
    """Writes the trace to a binary file."""
    names, notes = Names(), Names([ITERATION])
    gpu = bool((launch_devices(raw) != NONE).any())
    categories = Names((*CATEGORIES, CALL) if gpu else CATEGORIES)
    tree = TrackTree(raw, records)
    host = _host_batch(raw, records, tree, names, notes)
    lost = _loss_batch(records, tree, names, notes)
    main = _record_batch(records, tree, names, notes, 1 + len(raw.launches))
    events = _event_batch(records, tree, names)
    values = counters(records, tree)
    names.of([raw.name])
    file.write(_head(raw, names, notes, categories))
    file.write(tree.descriptors())
    stream = _Stream(file, tree)
    for batch in (host, lost, main, events):
        stream.write(batch)
    stream.write_counters(values)
    file.write(_summary(raw, records, tree, stream.now, names, categories))


def _head(raw: RawRun, names: Names, notes: Names, categories: Names) -> bytes:
    """The first packet: clocks and interned strings."""
    packet = pb.TracePacket(
        trusted_packet_sequence_id=SEQUENCE,
        first_packet_on_sequence=True,
        sequence_flags=pb.TracePacket.SEQ_INCREMENTAL_STATE_CLEARED
        | pb.TracePacket.SEQ_NEEDS_INCREMENTAL_STATE,
    )
    clocks = packet.clock_snapshot
    clocks.primary_trace_clock = pb.BUILTIN_CLOCK_MONOTONIC
    clocks.clocks.add(clock_id=pb.BUILTIN_CLOCK_MONOTONIC, timestamp=raw.origin_ns)
    clocks.clocks.add(clock_id=pb.BUILTIN_CLOCK_REALTIME, timestamp=raw.origin_unix_ns)
    clocks.clocks.add(clock_id=CLOCK, timestamp=raw.origin_ns, is_incremental=True)
    packet.trace_packet_defaults.timestamp_clock_id = CLOCK
    interned = packet.interned_data
    for string, iid in names.ids.items():
        interned.event_names.add(iid=iid, name=string)
    for string, iid in notes.ids.items():
        interned.debug_annotation_names.add(iid=iid, name=string)
    for string, iid in categories.ids.items():
        interned.event_categories.add(iid=iid, name=string)
    return packet_bytes(packet)


def _summary(
    raw: RawRun,
    records: Records,
    tree: TrackTree,
    now: int,
    names: Names,
    categories: Names,
) -> bytes:
    """One instant on the process's track that carries the run's metadata and totals."""
    packet = pb.TracePacket(trusted_packet_sequence_id=SEQUENCE)
    last = int(max([now, *(launch.host_end - raw.origin_ns for launch in raw.launches)]))
    packet.timestamp = last - now
    event = packet.track_event
    event.type = pb.TrackEvent.TYPE_INSTANT
    event.track_uuid = tree.process
    event.name_iid = names.ids[raw.name]
    event.category_iids.append(categories.ids["run"])
    for name in ("written", "kept", "lost"):
        total = int(getattr(records.tracks, name).sum())
        event.debug_annotations.add(name=f"records_{name}", int_value=total)
    event.debug_annotations.add(name="dropped_launches", int_value=raw.dropped_launches)
    for key, value in raw.machine.items():
        text = value if isinstance(value, str) else json.dumps(value)
        event.debug_annotations.add(name=key, string_value=text)
    return packet_bytes(packet)


class _Row(NamedTuple):
    """One interval of the batch that is made one by one."""

    track: int
    start: int
    end: int
    name: str
    category: str
    flow: int
    payload: dict[str, int | float]


def _host_rows(raw: RawRun, records: Records, tree: TrackTree) -> Iterator[_Row]:
    """Launches and host scopes on the tracks of the host threads, launches of GPUs on theirs.

    A launch comes first because of two equal intervals the later one is the outer.
    """
    origin = raw.origin_ns
    table = launches(raw, records)
    columns = ("device", "start_ns", "dur_ns", *COUNTS)
    values = zip(*(table[name].tolist() for name in columns), strict=True)
    for number, (launch, row) in enumerate(zip(raw.launches, values, strict=True)):
        device, start, duration, *counts = row
        payload = dict(zip(COUNTS, counts, strict=True))
        host, name = tree.host_track(launch.thread), raw.kernels[launch.kernel].name
        called, returned = launch.host_start - origin, launch.host_end - origin
        if device == NONE:
            yield _Row(host, called, returned, name, "launch", 0, payload)
            continue
        flow, own = number + 1, tree.launch_track(device)
        yield _Row(host, called, returned, name, CALL, flow, {})
        yield _Row(own, start, start + duration, name, "launch", flow, payload)
    for s in raw.host:
        track = tree.host_track(s.thread)
        yield _Row(track, s.start - origin, s.end - origin, s.name, "host", 0, s.payload)


def _host_batch(
    raw: RawRun, records: Records, tree: TrackTree, names: Names, notes: Names
) -> Batch:
    """What `_host_rows` gives, by track."""
    rows = list(_host_rows(raw, records, tree))
    names.of([row.name for row in rows])
    rows.sort(key=lambda row: row.track)

    def column(values: Iterable[int]) -> np.ndarray:
        return np.array(list(values), np.int64)

    return _batch(
        track=column(row.track for row in rows),
        start=column(row.start for row in rows),
        end=column(row.end for row in rows),
        name=names.of([row.name for row in rows]),
        category=column(_category(row.category) for row in rows),
        instant=np.zeros(len(rows), bool),
        flow=column(row.flow for row in rows),
        notes=_dict_notes([row.payload for row in rows], notes),
    )


def _loss_batch(records: Records, tree: TrackTree, names: Names, notes: Names) -> Batch:
    """An instant at the beginning of each program that lost records."""
    tracks = np.flatnonzero(records.tracks.lost)
    began = records.began_ns(tracks)
    payloads: list[dict[str, int | float]] = [
        {"lost": int(lost), "kept": int(kept)}
        for lost, kept in zip(records.tracks.lost[tracks], records.tracks.kept[tracks], strict=True)
    ]
    return _batch(
        track=tree.program_tracks[tracks],
        start=began,
        end=began,
        name=np.repeat(names.of([LOST]), tracks.size),
        category=np.full(tracks.size, _category("loss")),
        instant=np.ones(tracks.size, bool),
        flow=None,
        notes=_dict_notes(payloads, notes),
    )


def _event_batch(records: Records, tree: TrackTree, names: Names) -> Batch:
    """The events, by the track of the unit that started them."""
    found = records.events
    track = tree.event_tracks(records.track[found.start])
    order = np.argsort(track, kind="stable")
    name = names.of([scope.name for scope in records.scopes])
    return _batch(
        track=track[order],
        start=records.start_ns[found.start][order],
        end=records.start_ns[found.end][order],
        name=name[records.scope[found.start]][order],
        category=np.full(order.size, _category("event")),
        instant=np.zeros(order.size, bool),
        flow=None,
        notes=_dict_notes([{}] * order.size, Names()),
    )


def _event_flows(records: Records, first: int) -> np.ndarray | None:
    """The flow of each record, from the start of an event to its end: their ids from `first` on,
    and 0 for none. One of no length has none, for its two instants have no order in time."""
    found = records.events
    long = records.start_ns[found.end] > records.start_ns[found.start]
    if not long.any():
        return None
    flow = np.zeros(records.kind.size, np.int64)
    numbers = first + np.arange(long.sum())
    flow[found.start[long]] = flow[found.end[long]] = numbers
    return flow


def _record_batch(
    records: Records, tree: TrackTree, names: Names, notes: Names, first_flow: int
) -> Batch:
    """The slices and marks of all programs, and the edges of events."""
    scopes = records.scopes
    name = names.of([scope.name for scope in scopes])
    category = np.array([_scope_category(s.kind, s.fused) for s in scopes], np.int64)
    slots = max((len(scope.payload) for scope in scopes), default=0)
    note_names = np.zeros((len(scopes), slots), np.int64)
    note_floats = np.zeros((len(scopes), slots), bool)
    for number, scope in enumerate(scopes):
        fields = len(scope.payload)
        note_names[number, :fields] = notes.of([field.name for field in scope.payload])
        note_floats[number, :fields] = [field.kind == "float" for field in scope.payload]
    iteration = notes.ids[ITERATION]

    def notes_of(rows: np.ndarray) -> list[Note]:
        turn, scope = records.iteration[rows], records.scope[rows]
        found = []
        if (turn != NONE).any():
            present = np.where(turn != NONE, iteration, 0)
            found.append(Note(present, np.zeros(rows.size, bool), turn.astype(np.uint64)))
        for slot in range(slots):
            bits = records.payload[rows, slot]
            found.append(Note(note_names[scope, slot], note_floats[scope, slot], bits))
        return found

    return Batch(
        track=tree.program_tracks[records.track],
        start=records.start_ns,
        end=records.end_ns,
        name=name[records.scope],
        category=category[records.scope],
        instant=records.kind != Kind.SLICE,
        flow=_event_flows(records, first_flow),
        notes=notes_of,
        nesting=records.nesting,
    )


def _category(name: str) -> int:
    """The interned id of a category; `write` interns them in this order."""
    return (*CATEGORIES, CALL).index(name) + 1


def _scope_category(kind: str, fused: bool) -> int:
    if kind == "mark":
        return _category("mark")
    if kind == "event":
        return _category("edge")
    return _category("fused") if fused else 0


def _batch(
    *,
    track: np.ndarray,
    start: np.ndarray,
    end: np.ndarray,
    name: np.ndarray,
    category: np.ndarray,
    instant: np.ndarray,
    flow: np.ndarray | None,
    notes: Callable[[np.ndarray], list[Note]],
) -> Batch:
    return Batch(
        track=track,
        start=start,
        end=end,
        name=name,
        category=category,
        instant=instant,
        flow=flow,
        notes=notes,
        nesting=nest(track, start, end),
    )


def _dict_notes(
    payloads: Sequence[dict[str, int | float]], names: Names
) -> Callable[[np.ndarray], list[Note]]:
    """Annotations out of one dict per interval."""
    slots = max((len(payload) for payload in payloads), default=0)
    name = np.zeros((len(payloads), slots), np.int64)
    is_float = np.zeros((len(payloads), slots), bool)
    bits = np.zeros((len(payloads), slots), np.uint64)
    for row, payload in enumerate(payloads):
        name[row, : len(payload)] = names.of(list(payload))
        for slot, value in enumerate(payload.values()):
            is_float[row, slot] = isinstance(value, float)
            whole = np.float64(value) if isinstance(value, float) else np.int64(value)
            bits[row, slot] = whole.view(np.uint64)

    def notes_of(rows: np.ndarray) -> list[Note]:
        return [Note(name[rows, s], is_float[rows, s], bits[rows, s]) for s in range(slots)]

    return notes_of


class _Stream:
    """Writes batches as packets; `now` is the time of the last one."""

    def __init__(self, file: BinaryIO, tree: TrackTree) -> None:
        self.file, self.tree = file, tree
        self.now = 0

    def write(self, batch: Batch) -> None:
        """Each track's begins, instants and ends in order of time."""
        batch = self._in_lanes(batch)
        row, is_end = _walk(batch)
        time = np.where(is_end, batch.end[row], batch.start[row])

        def parts(block: slice) -> list[Rows]:
            return _parts(batch, row[block], is_end[block])

        self._put(batch.track[row], time, parts)

    def write_counters(self, values: Counters) -> None:
        """Each track's values in order of time."""
        self._put(values.track, values.time, values.parts)

    def _put(
        self, track: np.ndarray, time: np.ndarray, parts: Callable[[slice], list[Rows]]
    ) -> None:
        """Writes track events, a packet each; `parts` has the fields of some of them."""
        heads = np.flatnonzero(np.diff(track, prepend=0))
        step = np.diff(time, prepend=self.now)
        switches, switch_ends = _switches(track[heads], step[heads])
        step[heads] = 0  # the switch before it has moved the clock already
        for first in range(0, track.size, BLOCK_EVENTS):
            block = slice(first, first + BLOCK_EVENTS)
            event = message(_EVENT, *parts(block))
            when = join(literal(_TIME), varint(step[block]))
            rows = step[block].size
            data, size = pack(message(_PACKET, when, _SEQUENCE, event), rows)
            low, high = np.searchsorted(heads, [first, first + BLOCK_EVENTS])
            cuts = (np.cumsum(size) - size)[heads[low:high] - first].tolist()
            ends = switch_ends[low : high + 1].tolist()
            self.file.write(_interleave(data.data, cuts, switches.data, ends))
        if track.size:
            self.now = int(time[-1])

    def _in_lanes(self, batch: Batch) -> Batch:
        """The batch itself, or with what crosses on a track moved to lanes of that track."""
        lane = lanes(batch.track, batch.nesting)
        if not lane.any():
            return batch
        track = self.tree.lane_tracks(batch.track, lane)
        self.file.write(self.tree.descriptors())
        order = np.argsort(track, kind="stable")
        walk = batch.nesting
        return Batch(
            track=track[order],
            start=batch.start[order],
            end=batch.end[order],
            name=batch.name[order],
            category=batch.category[order],
            instant=batch.instant[order],
            flow=None if batch.flow is None else batch.flow[order],
            notes=lambda rows: batch.notes(order[rows]),
            nesting=nest(track[order], walk.begin_at[order], walk.end_at[order]),
        )


def _walk(batch: Batch) -> tuple[np.ndarray, np.ndarray]:
    """The intervals of a batch in the order of its events, and which events are ends."""
    count = batch.track.size
    row = np.empty(2 * count, np.int64)
    row[batch.nesting.begin_at] = row[batch.nesting.end_at] = np.arange(count)
    is_end = np.zeros(2 * count, bool)
    is_end[batch.nesting.end_at] = True
    if not batch.instant.any():
        return row, is_end
    kept = ~(is_end & batch.instant[row])
    return row[kept], is_end[kept]


def _switches(track: np.ndarray, step: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The packets that move clock and default track on, and where each one begins and ends."""
    default = message(_EVENT_DEFAULTS, literal(_DEFAULT_TRACK), varint(track))
    defaults = message(_DEFAULTS, literal(_DEFAULT_CLOCK), varint(CLOCK), default)
    packet = message(_PACKET, literal(_TIME), varint(step.view(np.uint64)), _SEQUENCE, defaults)
    data, size = pack(packet, track.size)
    return data, np.concatenate([[0], np.cumsum(size)])


def _interleave(
    data: memoryview, cuts: Sequence[int], inserts: memoryview, ends: Sequence[int]
) -> bytes:
    """`data` with an insert at each cut; insert i is what lies between ends i and i + 1."""
    pieces = [data[: cuts[0]] if cuts else data]
    after = [*cuts[1:], len(data)]
    for number, (cut, following) in enumerate(zip(cuts, after, strict=False)):
        pieces += [inserts[ends[number] : ends[number + 1]], data[cut:following]]
    return b"".join(pieces)


def _parts(batch: Batch, row: np.ndarray, is_end: np.ndarray) -> list[Rows]:
    """The fields of the track events of these intervals."""
    begin = ~is_end
    kind = np.where(is_end, pb.TrackEvent.TYPE_SLICE_END, pb.TrackEvent.TYPE_SLICE_BEGIN)
    kind[begin & batch.instant[row]] = pb.TrackEvent.TYPE_INSTANT
    parts = [literal(_TYPE), varint(kind)]
    parts.append(join(literal(_NAME), varint(batch.name[row])).only(begin))
    category = batch.category[row]
    if category.any():
        parts.append(join(literal(_CATEGORY), varint(category)).only(begin & (category > 0)))
    if batch.flow is not None and batch.flow.any():
        flow = batch.flow[row]
        parts.append(join(literal(_FLOW), fixed64(flow.view(np.uint64))).only(begin & (flow > 0)))
    parts += [_note(note).only(begin & (note.name > 0)) for note in batch.notes(row)]
    return parts


def _note(note: Note) -> Rows:
    """One annotation in each row."""
    whole = join(literal(_NOTE_INT), varint(np.where(note.is_float, 0, note.bits)))
    parts = [literal(_NOTE_NAME), varint(note.name), whole.only(~note.is_float)]
    if note.is_float.any():
        real = join(literal(_NOTE_FLOAT), fixed64(note.bits))
        parts.append(real.only(note.is_float))
    return message(_NOTE, *parts)
