"""The tracks of a Perfetto trace: the places where programs ran, below one process.

Host threads, threads that ran programs, and GPUs are its children. The launches of a GPU are on its
own track, above those of its SMs, because a trace opens with the children of its process in view.
"""

from collections.abc import Callable

import numpy as np
from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as pb

from proton.trace.model import HostSlice
from proton.viewer.export.perfetto.protobuf import tag, varint_bytes
from proton.viewer.tables import Tables
from proton.viewer.tables.labels import (
    COMPILATIONS,
    EVENTS,
    gpu_name,
    host_thread_names,
    stream_name,
)
from proton.viewer.tables.places import Place, Places

SEQUENCE = 1  # the one packet sequence that everything is on
PROCESS_ID = 1  # a RawRun does not know its process id, and a trace needs one
MAX_RANK = (1 << 31) - 1  # sibling_order_rank is an int32
# Ranks below the process: host threads, then the threads that ran programs, then GPUs.
HOST, THREADS, GPUS = 0, 1, 1 << 20
HARDWARE, STREAMS = -(1 << 21), -(1 << 20)  # below a GPU, before its SMs
_PACKET = tag(pb.Trace, "packet")


def packet_bytes(packet: pb.TracePacket) -> bytes:
    """The packet as a trace holds it."""
    body = packet.SerializeToString()
    return _PACKET + varint_bytes(len(body)) + body


class TrackTree:
    """Gives out track uuids; `descriptors` has the packets of those not yet written."""

    def __init__(self, tables: Tables) -> None:
        self._pending: list[bytes] = []
        self._count = 0
        self._packet = pb.TracePacket(trusted_packet_sequence_id=SEQUENCE)
        self._main: dict[int, tuple[str, int, int]] = {}
        self._lanes: dict[tuple[int, int], int] = {}
        self._first: dict[tuple[str, int, int], int] = {}
        self._inner: dict[tuple[int, str], int] = {}
        self._raw = tables.raw
        self._host_threads = host_thread_names(tables.raw)
        self.process = self._process(tables.name)
        self.places = Places(tables.raw, tables.records, tables.residency)
        uuids = np.array([0, *map(self._place, self.places.all)], np.int64)
        self.unit_tracks = uuids[self.places.of_unit + 1]
        self.slot_tracks = uuids[self.places.of_program + 1]

    def descriptors(self) -> bytes:
        """The packets of the tracks made since the last call."""
        pending = b"".join(self._pending)
        self._pending.clear()
        return pending

    def host_track(self, thread: int) -> int:
        """The track of a host thread."""
        name = self._host_threads[thread]
        return self._shared(name, self.process, HOST, about=f"thread ident {thread}")

    def launch_track(self, device: int) -> int:
        """The track of a GPU's launches."""
        return self._shared(gpu_name(self._raw, device), self.process, GPUS + 2 * device)

    def slice_track(self, slice_: HostSlice) -> int:
        """The track of a slice that is of no program: of a host thread, or of a GPU's stream.
        Compilations have one of their own below their thread's."""
        if slice_.device < 0:
            host = self.host_track(slice_.thread)
            return self._shared(COMPILATIONS, host, 0) if slice_.kind == "compile" else host
        gpu = self.launch_track(slice_.device)
        return self._shared(stream_name(slice_.thread), gpu, STREAMS + slice_.thread)

    def event_tracks(self, tracks: np.ndarray) -> np.ndarray:
        """The tracks of the events that these units started, each beside its unit's."""
        return self._of_units(tracks, lambda unit: self._beside(unit, EVENTS))

    def flight_tracks(self, tracks: np.ndarray, queue: str) -> np.ndarray:
        """The tracks of what these units issued to a queue, each beside its unit's."""
        return self._of_units(tracks, lambda unit: self._beside(unit, queue))

    def counter_tracks(self, tracks: np.ndarray, name: str) -> np.ndarray:
        """The counters of this name of these units: one for each place, below its track, of those
        that are drawn as one the first."""

        def counter(unit: int) -> int:
            first = self._first.setdefault(self._main[unit], unit)
            return self._shared(name, first, 0, is_counter=True)

        return self._of_units(tracks, counter)

    def hardware_track(self, device: int, name: str, unit: str) -> int:
        """The track of a counter of a GPU's hardware, above its streams and SMs."""
        gpu = self.launch_track(device)
        return self._shared(name, gpu, HARDWARE, is_counter=True, unit=unit)

    def _of_units(self, tracks: np.ndarray, track_of: Callable[[int], int]) -> np.ndarray:
        units, number = np.unique(self.unit_tracks[tracks], return_inverse=True)
        return np.array([track_of(unit) for unit in units.tolist()], np.int64)[number]

    def _beside(self, unit: int, what: str) -> int:
        name, parent, rank = self._main[unit]
        return self._shared(f"{name} {what}", parent, rank + 1)

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

    def _place(self, place: Place) -> int:
        """The track of a place. Ranks below the first leave room for events behind each."""
        parent, above = self.process, THREADS if len(place.path) == 1 else GPUS
        for name, rank in place.path[:-1]:
            parent, above = self._shared(name, parent, above + 2 * rank), 0
        name, rank = place.path[-1]
        if any(place.lane):
            return self._add(name, parent, above + 2 * rank)
        return self._shared(name, parent, above + 2 * rank)

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

    def _add(
        self,
        name: str,
        parent: int,
        rank: int,
        is_counter: bool = False,
        about: str = "",
        unit: str = "",
    ) -> int:
        """A new track; siblings are drawn in order of rank."""
        self._count += 1
        descriptor = self._packet.track_descriptor
        if is_counter:
            descriptor.counter.SetInParent()
            descriptor.counter.ClearField("unit_name")
            if unit:
                descriptor.counter.unit_name = unit
        else:
            descriptor.ClearField("counter")
        descriptor.uuid = self._count
        descriptor.parent_uuid = parent
        descriptor.name = name
        descriptor.description = about
        descriptor.sibling_order_rank = min(rank, MAX_RANK)
        descriptor.child_ordering = pb.TrackDescriptor.EXPLICIT
        self._pending.append(packet_bytes(self._packet))
        self._main[self._count] = name, parent, rank
        return self._count

    def _shared(
        self,
        name: str,
        parent: int,
        rank: int,
        is_counter: bool = False,
        about: str = "",
        unit: str = "",
    ) -> int:
        """The track of this name below the parent, new where there is none."""
        key = parent, name
        if key not in self._inner:
            self._inner[key] = self._add(name, parent, rank, is_counter, about, unit)
        return self._inner[key]
