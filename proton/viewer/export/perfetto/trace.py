"""The run as a Perfetto trace: packets of stream.py, tracks as tracks.py has them, and on those
what batches.py makes of the tables.

The UI opens with all of a trace in view, less what lies before the data sources of its recorder had
started and after they were disabled. So the trace says that they were on during the first launches;
the message that is meant for the first view, `UiState`, nobody reads.

Times are the run's `perf_counter_ns`, so ts = origin_ns + start_ns; the
run's instant says what the wall clock was then.
"""

import json
from typing import BinaryIO

from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as pb

from proton.viewer.export.perfetto.batches import Batches, Interned
from proton.viewer.export.perfetto.colours import SEEDS
from proton.viewer.export.perfetto.counters import counters, hardware
from proton.viewer.export.perfetto.stream import Packer, Stream
from proton.viewer.export.perfetto.tracks import SEQUENCE, TrackTree, packet_bytes
from proton.viewer.tables import Tables
from proton.viewer.tables.first_view import first_view


def write(tables: Tables, file: BinaryIO, *, deflate: bool, with_counters: bool) -> None:
    """Writes the trace to a binary file."""
    tree, interned = TrackTree(tables), Interned()
    batches = Batches(tables, tree, interned).all()
    values = [hardware(tables.raw, tree)]
    if with_counters:
        values.append(counters(tables.records, tree))
    run, category = interned.names.id(tables.name), interned.categories.id("run")
    packer = Packer(file, deflate)
    packer.write(_head(tables, interned))
    packer.write(_first_view(tables))
    packer.write(tree.descriptors())
    stream = Stream(packer, tree, tables.raw.origin_ns)
    for batch in batches:
        stream.write(batch)
    for of in values:
        stream.write_counters(of)
    packer.write(_summary(tables, tree, stream.last, run, category))
    packer.flush()


def _head(tables: Tables, interned: Interned) -> bytes:
    """The first packet: interned strings."""
    packet = pb.TracePacket(
        trusted_packet_sequence_id=SEQUENCE,
        first_packet_on_sequence=True,
        sequence_flags=pb.TracePacket.SEQ_INCREMENTAL_STATE_CLEARED
        | pb.TracePacket.SEQ_NEEDS_INCREMENTAL_STATE,
    )
    data = packet.interned_data
    for string, iid in interned.names.ids.items():
        data.event_names.add(iid=iid, name=string)
    for string, iid in interned.notes.ids.items():
        data.debug_annotation_names.add(iid=iid, name=string)
    for string, iid in interned.categories.ids.items():
        data.event_categories.add(iid=iid, name=string)
    for string, iid in interned.texts.ids.items():
        data.debug_annotation_string_values.add(iid=iid, str=string.encode())
    for (name, line), iid in interned.sources.ids.items():
        data.source_locations.add(iid=iid, file_name=name, line_number=line)
    for iid, seed in enumerate(SEEDS, 1):
        data.correlation_id_str.add(iid=iid, str=seed.encode())
    return packet_bytes(packet)


def _first_view(tables: Tables) -> bytes:
    """The packets that tell the UI what to show first."""
    view = first_view(tables)
    if view is None:
        return b""
    start, end = (pb.TracePacket(timestamp=max(0, tables.raw.origin_ns + ns)) for ns in view)
    start.service_event.all_data_sources_started = True
    end.service_event.tracing_disabled = True
    return packet_bytes(start) + packet_bytes(end)


def _summary(tables: Tables, tree: TrackTree, last: int, name: int, category: int) -> bytes:
    """One instant on the process's track that carries the run's metadata and totals."""
    raw, totals = tables.raw, tables.totals
    packet = pb.TracePacket(trusted_packet_sequence_id=SEQUENCE)
    packet.timestamp = max([last, raw.origin_ns, *(launch.host_end for launch in raw.launches)])
    event = packet.track_event
    event.type = pb.TrackEvent.TYPE_INSTANT
    event.track_uuid = tree.process
    event.name_iid = name
    event.category_iids.append(category)
    for key in ("written", "kept", "lost"):
        event.debug_annotations.add(name=f"records_{key}", int_value=getattr(totals, key))
    event.debug_annotations.add(name="origin_ns", int_value=raw.origin_ns)
    event.debug_annotations.add(name="origin_unix_ns", int_value=raw.origin_unix_ns)
    event.debug_annotations.add(name="dropped_launches", int_value=raw.dropped_launches)
    for key, value in raw.machine.items():
        text = value if isinstance(value, str) else json.dumps(value)
        event.debug_annotations.add(name=key, string_value=text)
    return packet_bytes(packet)
