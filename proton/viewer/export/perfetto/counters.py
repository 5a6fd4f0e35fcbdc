"""Counters of a Perfetto trace: below the track of each GPU those of its hardware; below that of
each unit one for each payload value, and one for each queue of asynchronous work.

A counter has its slice's or mark's value from where that begins. Values are annotations of their
slices, too; as counters they can be seen over time. That of a queue says how many pieces of work
are under way.
"""

from dataclasses import dataclass

import numpy as np
from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as pb

from proton.trace.model import RawRun, Scope
from proton.trace.records import RecordTable
from proton.viewer.export.perfetto.protobuf import Rows, fixed64, join, literal, tag, varint
from proton.viewer.export.perfetto.tracks import TrackTree
from proton.viewer.tables.flights import depths
from proton.viewer.tables.labels import UNDER_WAY

MARK_VALUE = "value"  # the field of a mark's one value

_TYPE = tag(pb.TrackEvent, "type")
_WHOLE = tag(pb.TrackEvent, "counter_value")
_REAL = tag(pb.TrackEvent, "double_counter_value")


@dataclass(frozen=True, kw_only=True)
class Counters:
    """Values to write, grouped by track (uuid), in order of time."""

    track: np.ndarray
    time: np.ndarray
    is_float: np.ndarray
    bits: np.ndarray  # u64

    def parts(self, rows: slice) -> list[Rows]:
        """The fields of the track events of some rows."""
        is_float, bits = self.is_float[rows], self.bits[rows]
        kind = np.full(bits.size, pb.TrackEvent.TYPE_COUNTER)
        parts = [join(literal(_TYPE), varint(kind))]
        whole = join(literal(_WHOLE), varint(np.where(is_float, np.uint64(0), bits)))
        parts.append(whole.only(~is_float))
        if is_float.any():
            parts.append(join(literal(_REAL), fixed64(bits)).only(is_float))
        return parts


def counter_name(scope: Scope, field: str) -> str:
    """`iteration.i` for the value i of scope iteration; the name alone for a mark's value."""
    if scope.kind == "mark" and field == MARK_VALUE:
        return scope.name
    return f"{scope.name}.{field}"


def hardware(raw: RawRun, tree: TrackTree) -> Counters:
    """What counters of GPUs' hardware said: from a sample's begin the value over it."""
    columns: list[list[np.ndarray]] = [[np.zeros(0, np.int64)] for _ in range(4)]
    for samples in raw.counters:
        pairs = zip(samples.names, samples.units, strict=True)
        for place, (name, unit) in enumerate(pairs):
            uuid = tree.hardware_track(samples.device, name, unit)
            count = len(samples.values)
            values = np.ascontiguousarray(samples.values[:, place], np.float64)
            own = (np.full(count, uuid), samples.start_ns - raw.origin_ns, np.ones(count, np.int64))
            for column, part in zip(columns, (*own, values.view(np.int64)), strict=True):
                column.append(part)
    return _ordered(columns)


def counters(records: RecordTable, tree: TrackTree) -> Counters:
    """The payload values of all records, and the depths of queues."""
    track, time, is_float, bits = ([np.zeros(0, np.int64)] for _ in range(4))
    for number, scope in enumerate(records.scopes):
        if not scope.payload:
            continue
        rows = np.flatnonzero(records.scope == number)
        for slot, field in enumerate(scope.payload):
            units = records.track[rows]
            track.append(tree.counter_tracks(units, counter_name(scope, field.name)))
            time.append(records.start_ns[rows])
            is_float.append(np.full(rows.size, field.kind == "float"))
            bits.append(records.payload[rows, slot].view(np.int64))
    for queue, (units, when, depth) in depths(records).items():
        track.append(tree.counter_tracks(units, f"{queue} {UNDER_WAY}"))
        time.append(when)
        is_float.append(np.zeros(units.size, np.int64))
        bits.append(depth)
    return _ordered([track, time, is_float, bits])


def _ordered(parts: list[list[np.ndarray]]) -> Counters:
    """The values by track and time."""
    columns = [np.concatenate(of) for of in parts]
    order = np.lexsort((columns[1], columns[0]))
    tracks, times, floats, values = (column[order] for column in columns)
    return Counters(
        track=tracks, time=times, is_float=floats.astype(bool), bits=values.view(np.uint64)
    )
