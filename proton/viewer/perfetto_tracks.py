"""The tree of tracks of a Perfetto trace: process > thread of execution (or SM) > program."""

from collections.abc import Sequence

import numpy as np
from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as pb

from proton.trace.model import RawRun
from proton.viewer.labels import place_name, program_name
from proton.viewer.protobuf import tag, varint_bytes
from proton.viewer.records import Records

SEQUENCE = 1  # the one packet sequence that everything is on
PROCESS_ID = 1  # a RawRun does not know its process id, and a trace needs one
MAX_RANK = (1 << 31) - 1  # sibling_order_rank is an int32
FIRST_PLACE = 1  # places come after the host threads, whose rank is 0
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
        self._hosts: dict[int, int] = {}
        self.process = self._process(raw.name)
        self.program_tracks = self._programs(raw, records)

    def descriptors(self) -> bytes:
        """The packets of the tracks made since the last call."""
        pending = b"".join(self._pending)
        self._pending.clear()
        return pending

    def host_tracks(self, threads: Sequence[int]) -> np.ndarray:
        """The track of each of these host threads."""
        for thread in threads:
            if thread not in self._hosts:
                self._hosts[thread] = self._add(f"host thread {thread}", self.process, 0)
        return np.array([self._hosts[thread] for thread in threads], np.int64)

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

    def _add(self, name: str, parent: int, rank: int) -> int:
        """A new track; siblings are drawn in order of rank."""
        self._count += 1
        descriptor = self._packet.track_descriptor
        descriptor.uuid = self._count
        descriptor.parent_uuid = parent
        descriptor.name = name
        descriptor.sibling_order_rank = rank
        descriptor.child_ordering = pb.TrackDescriptor.EXPLICIT
        self._pending.append(packet_bytes(self._packet))
        self._main[self._count] = name, parent, rank
        return self._count

    def _programs(self, raw: RawRun, records: Records) -> np.ndarray:
        """The track of each row of `records.tracks` that has anything to show; 0 for others."""
        tracks = records.tracks
        uuids = np.zeros(tracks.kept.size, np.int64)
        rows = np.flatnonzero((tracks.kept > 0) | (tracks.lost > 0))
        places: dict[str, int] = {}
        columns = (tracks.launch, tracks.program, tracks.unit, tracks.thread, tracks.core)
        for row, number, program, unit, thread, core in zip(
            rows.tolist(), *(column[rows].tolist() for column in columns), strict=True
        ):
            launch = raw.launches[number]
            kernel = raw.kernels[launch.kernel]
            place = place_name(kernel, thread, core)
            if place not in places:
                places[place] = self._add(place, self.process, FIRST_PLACE + len(places))
            name = program_name(kernel, launch, program, unit)
            rank = min(program * kernel.units + unit, MAX_RANK)
            uuids[row] = self._add(name, places[place], rank)
        return uuids
