"""Intervals on tracks as packets of a Perfetto trace.

All packets share one sequence. A *switch* packet names the track of those that follow. Names,
annotations' names and text are interned. What a trace repeats is then deflated: packets go out
inside of packets of compressed ones.

Times are absolute, and say no clock: a trace with a clock of its own, whose times could be the few
bytes since the packet before, opens in Perfetto with a group for that clock and all others closed.
"""

import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import BinaryIO

import numpy as np
from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as pb

from proton.base.progress import StepCounter, to_terminal
from proton.trace.nesting import Nesting, lanes, nest
from proton.viewer.export.perfetto.counters import Counters
from proton.viewer.export.perfetto.protobuf import (
    Rows,
    fixed64,
    join,
    literal,
    message,
    pack,
    tag,
    varint,
    varint_bytes,
)
from proton.viewer.export.perfetto.tracks import SEQUENCE, TrackTree

BLOCK_EVENTS = 1 << 15  # what 16 byte columns of it and their masks take stays in a core's cache
INT, FLOAT, TEXT = 0, 1, 2  # what an annotation's bits are; of text an interned id
PACK_BYTES = 1 << 20  # packets are deflated so many bytes at a time
PACK_LEVEL = 1

_PACKET = tag(pb.Trace, "packet")
_TIME = tag(pb.TracePacket, "timestamp")
_SEQUENCE = literal(tag(pb.TracePacket, "trusted_packet_sequence_id") + bytes([SEQUENCE]))
_EVENT = tag(pb.TracePacket, "track_event")
_DEFAULTS = tag(pb.TracePacket, "trace_packet_defaults")
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
_SOURCE = tag(pb.TrackEvent, "source_location_iid")
_COLOUR = tag(pb.TrackEvent, "correlation_id_str_iid")
_NOTE_TEXT = tag(pb.DebugAnnotation, "string_value_iid")
_COMPRESSED = tag(pb.TracePacket, "compressed_packets")


@dataclass(frozen=True)
class Note:
    """One annotation of each of some intervals; name 0 where an interval has none."""

    name: np.ndarray
    kind: np.ndarray
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
    flows: np.ndarray  # a column a flow, as many as any has; 0 for none
    source: np.ndarray | None  # of source locations, 0 for none; None where none has one
    notes: Callable[[np.ndarray], list[Note]]  # of these intervals
    nesting: Nesting
    colour: np.ndarray | None = None  # of colours.SEEDS, from 1 on; 0 for none


class Packer:
    """Writes packets to a file, deflated where that is asked for."""

    def __init__(self, file: BinaryIO, deflate: bool) -> None:
        self.file, self.deflate = file, deflate
        self.pending: list[bytes] = []
        self.size = 0

    def write(self, packets: bytes) -> None:
        """Whole packets."""
        self.pending.append(packets)
        self.size += len(packets)
        if self.size >= PACK_BYTES:
            self.flush()

    def flush(self) -> None:
        """Writes what is left."""
        data, self.pending, self.size = b"".join(self.pending), [], 0
        if data and self.deflate:
            packed = zlib.compress(data, PACK_LEVEL)
            inner = _COMPRESSED + varint_bytes(len(packed)) + packed
            data = _PACKET + varint_bytes(len(inner)) + inner
        self.file.write(data)


class Stream:
    """Writes batches as packets; `origin` is the time zero of their intervals, `last` the latest
    time written."""

    def __init__(self, file: Packer, tree: TrackTree, origin: int) -> None:
        self.file, self.tree, self.origin = file, tree, origin
        self.last = 0

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
        switches, switch_ends = _switches(track[heads])
        time = time + self.origin
        progress = StepCounter("event", track.size, to_terminal)
        for first in range(0, track.size, BLOCK_EVENTS):
            block = slice(first, first + BLOCK_EVENTS)
            event = message(_EVENT, *parts(block))
            when = join(literal(_TIME), varint(time[block]))
            rows = time[block].size
            data, size = pack(message(_PACKET, when, _SEQUENCE, event), rows)
            low, high = np.searchsorted(heads, [first, first + BLOCK_EVENTS])
            cuts = (np.cumsum(size) - size)[heads[low:high] - first].tolist()
            ends = switch_ends[low : high + 1].tolist()
            self.file.write(_interleave(data.data, cuts, switches.data, ends))
            progress.step(rows)
        if track.size:
            self.last = max(self.last, int(time.max()))

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
            flows=batch.flows[order],
            source=None if batch.source is None else batch.source[order],
            colour=None if batch.colour is None else batch.colour[order],
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


def _switches(track: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The packets that name the track of those after, and where each one begins and ends."""
    default = message(_EVENT_DEFAULTS, literal(_DEFAULT_TRACK), varint(track))
    defaults = message(_DEFAULTS, default)
    packet = message(_PACKET, _SEQUENCE, defaults)
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
    for flow in batch.flows[row].T:
        if flow.any():
            some = begin & (flow > 0)
            parts.append(join(literal(_FLOW), fixed64(flow.view(np.uint64))).only(some))
    if batch.source is not None and batch.source.any():
        source = batch.source[row]
        parts.append(join(literal(_SOURCE), varint(source)).only(begin & (source > 0)))
    if batch.colour is not None:
        colour = batch.colour[row]
        parts.append(join(literal(_COLOUR), varint(colour)).only(begin & (colour > 0)))
    parts += [_note(note).only(begin & (note.name > 0)) for note in batch.notes(row)]
    return parts


def _note(note: Note) -> Rows:
    """One annotation in each row."""
    parts = [literal(_NOTE_NAME), varint(note.name)]
    for kind, key in ((INT, _NOTE_INT), (TEXT, _NOTE_TEXT)):
        chosen = note.kind == kind
        if chosen.any():
            parts.append(join(literal(key), varint(np.where(chosen, note.bits, 0))).only(chosen))
    real = note.kind == FLOAT
    if real.any():
        parts.append(join(literal(_NOTE_FLOAT), fixed64(note.bits)).only(real))
    return message(_NOTE, *parts)
