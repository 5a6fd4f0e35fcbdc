"""The tree of tracks of a Perfetto trace: process > thread of execution > program on the CPU,
process > GPU > SM > program > warp on a GPU, whose launches have a track beside its SMs. Counters
lie below the units whose values they are."""

from collections.abc import Callable

import numpy as np
from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as pb

from proton.trace.model import RawRun
from proton.trace.records import NONE, Records
from proton.viewer.export.perfetto.protobuf import tag, varint_bytes
from proton.viewer.tables.labels import (
    EVENTS,
    LAUNCHES,
    gpu_name,
    program_name,
    sm_name,
    thread_name,
    unit_name,
)

SEQUENCE = 1  # the one packet sequence that everything is on
PROCESS_ID = 1  # a RawRun does not know its process id, and a trace needs one
MAX_RANK = (1 << 31) - 1  # sibling_order_rank is an int32
FIRST_PLACE = 1  # places come after the host threads, whose rank is 0
FIRST_GPU = 1 << 20  # and GPUs after those
_PACKET = tag(pb.Trace, "packet")


def packet_bytes(packet: pb.TracePacket) -> bytes:
    """The packet as a trace holds it."""
    body = packet.SerializeToString()
    return _PACKET + varint_bytes(len(body)) + body


class TrackTree:
    """Gives out track uuids; `descriptors` has the packets of those not yet written."""

    def __init__(self, raw: RawRun, records: Records) -> None:
        self._pending: list[bytes] = []
        self._count = 0
        self._packet = pb.TracePacket(trusted_packet_sequence_id=SEQUENCE)
        self._main: dict[int, tuple[str, int, int]] = {}
        self._lanes: dict[tuple[int, int], int] = {}
        self._inner: dict[tuple[int, str], int] = {}
        self._raw = raw
        self._events: dict[int, int] = {}
        self._first: dict[tuple[str, int, int], int] = {}  # of the tracks that are drawn as one
        self.process = self._process(raw.name)
        self.program_tracks = self._programs(records)

    def descriptors(self) -> bytes:
        """The packets of the tracks made since the last call."""
        pending = b"".join(self._pending)
        self._pending.clear()
        return pending

    def host_track(self, thread: int) -> int:
        """The track of a host thread."""
        return self._shared(f"host {thread_name(thread)}", self.process, 0)

    def launch_track(self, device: int) -> int:
        """The track of a GPU's launches."""
        return self._shared(LAUNCHES, self._gpu(device), 0)

    def event_tracks(self, tracks: np.ndarray) -> np.ndarray:
        """The tracks of the events that these units started, each beside its unit's."""
        return self._of_units(tracks, self._event_track)

    def counter_tracks(self, tracks: np.ndarray, name: str) -> np.ndarray:
        """The counters of this name of these units: one for all launches of a unit, below the track
        of its first."""
        return self._of_units(tracks, lambda unit: self._counter(unit, name))

    def _counter(self, unit: int, name: str) -> int:
        first = self._first.setdefault(self._main[unit], unit)
        return self._shared(name, first, 0, is_counter=True)

    def _of_units(self, tracks: np.ndarray, track_of: Callable[[int], int]) -> np.ndarray:
        units, number = np.unique(self.program_tracks[tracks], return_inverse=True)
        return np.array([track_of(unit) for unit in units.tolist()], np.int64)[number]

    def _event_track(self, unit: int) -> int:
        if unit not in self._events:
            name, parent, rank = self._main[unit]
            self._events[unit] = self._add(f"{name} {EVENTS}", parent, min(rank + 1, MAX_RANK))
        return self._events[unit]

    def lane_tracks(self, track: np.ndarray, lane: np.ndarray) -> np.ndarray:
        """For each track and lane a track; lane 0 is the track itself, the others are siblings
        of the same name, which Perfetto draws as one."""
        out = track.copy()
        for row in np.flatnonzero(lane).tolist():
            key = int(track[row]), int(lane[row])
            if key not in self._lanes:
                self._lanes[key] = self._add(*self._main[key[0]])
            out[row] = self._lanes[key]
        return out

    def _process(self, name: str) -> int:
        self._count += 1
        packet = pb.TracePacket(trusted_packet_sequence_id=SEQUENCE)
        descriptor = packet.track_descriptor
        descriptor.uuid = self._count
        descriptor.child_ordering = pb.TrackDescriptor.EXPLICIT
        descriptor.process.pid = PROCESS_ID
        descriptor.process.process_name = name
        self._pending.append(packet_bytes(packet))
        return self._count

    def _add(self, name: str, parent: int, rank: int, is_counter: bool = False) -> int:
        """A new track; siblings are drawn in order of rank."""
        self._count += 1
        descriptor = self._packet.track_descriptor
        if is_counter:
            descriptor.counter.SetInParent()
        else:
            descriptor.ClearField("counter")
        descriptor.uuid = self._count
        descriptor.parent_uuid = parent
        descriptor.name = name
        descriptor.sibling_order_rank = rank
        descriptor.child_ordering = pb.TrackDescriptor.EXPLICIT
        self._pending.append(packet_bytes(self._packet))
        self._main[self._count] = name, parent, rank
        return self._count

    def _shared(self, name: str, parent: int, rank: int, is_counter: bool = False) -> int:
        """The track of this name below the parent, new where there is none."""
        key = parent, name
        if key not in self._inner:
            self._inner[key] = self._add(name, parent, rank, is_counter)
        return self._inner[key]

    def _gpu(self, device: int) -> int:
        rank = min(FIRST_GPU + device, MAX_RANK)
        return self._shared(gpu_name(self._raw, device), self.process, rank)

    def _programs(self, records: Records) -> np.ndarray:
        """The track of each row of `records.tracks` that has anything to show; 0 for others. The
        ranks leave room for each one's events behind it."""
        tracks = records.tracks
        uuids = np.zeros(tracks.kept.size, np.int64)
        rows = np.flatnonzero((tracks.kept > 0) | (tracks.lost > 0))
        places: dict[int, int] = {}  # of host threads
        columns = (tracks.launch, tracks.program, tracks.unit, tracks.thread, tracks.device)
        for row, number, program, unit, thread, device, sm in zip(
            rows.tolist(), *(column[rows].tolist() for column in (*columns, tracks.sm)), strict=True
        ):
            launch = self._raw.launches[number]
            kernel = self._raw.kernels[launch.kernel]
            name, own = program_name(kernel, launch, program), unit_name(kernel, unit)
            if device != NONE:
                place = self._shared(sm_name(sm), self._gpu(device), min(1 + sm, MAX_RANK))
                owner = self._shared(name, place, min(program, MAX_RANK))
                uuids[row] = self._add(own, owner, 2 * unit)
                continue
            if thread not in places:
                rank = FIRST_PLACE + len(places)
                places[thread] = self._add(thread_name(thread), self.process, rank)
            rank = min(2 * (program * kernel.units + unit), MAX_RANK)
            uuids[row] = self._add(f"{name} {own}" if own else name, places[thread], rank)
        return uuids
