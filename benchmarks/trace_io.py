"""How fast records are read and traces written.

    python benchmarks/trace_io.py [--slices 1000000]

Times are the best of three. The synthetic run has 64 slices a program, in pairs of an outer and
an inner one, numbered by iteration unless the row says otherwise.
"""

import argparse
import functools
import gzip
import io
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO, cast

import numpy as np
from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as pb
from perfetto.trace_builder.proto_builder import TraceProtoBuilder
from rich.console import Console
from rich.table import Table

from proton.trace import wire
from proton.trace.model import Clock, Kernel, Launch, RawRun, Scope, Strategy
from proton.viewer import Run, perfetto
from proton.viewer.decode import decode

CAPACITY = 64
REPEATS = 3
BUILDER_SLICES = 100_000


def synthetic(slices: int, iterations: bool) -> RawRun:
    """One launch of slices / 64 programs, each an outer slice around an inner one, 32 times."""
    programs = slices // CAPACITY
    scopes = (Scope(name="inner", path="outer/inner"), Scope(name="outer", path="outer"))
    kernel = Kernel(name="bench", key="", target="cpu", strategy=Strategy.CIRCULAR, scopes=scopes)
    block = wire.block_bytes(1, CAPACITY, 0)
    buffer = np.zeros(programs * block, np.uint8)
    header = np.ndarray((programs,), wire.HEADER, buffer, strides=(block,))
    header["magic"], header["version"] = wire.MAGIC, wire.VERSION
    header["state"] = wire.State.FINISHED
    header["program_x"] = np.arange(programs)
    header["units"], header["capacity"] = 1, CAPACITY
    header["clock_bits"] = 64
    header["thread"] = np.arange(programs) % 4
    table = np.ndarray((programs,), "<u8", buffer, wire.table_offset(), (block,))
    table[:] = CAPACITY
    size = wire.record_bytes(0)
    shape, strides = (programs, CAPACITY // 2, 2), (block, 2 * size, size)
    offset = wire.segments_offset(1)
    record = np.ndarray(shape, wire.record_dtype(0), buffer, offset, strides)
    random = np.random.default_rng(1)
    gap = random.integers(50, 2000, (programs, CAPACITY // 2, 4)).astype(np.uint64)
    edges = np.cumsum(gap.reshape(programs, -1), axis=1).reshape(gap.shape)
    edges += (np.arange(programs, dtype=np.uint64) // 4 * 100_000)[:, None, None]
    record["start"] = edges[..., [1, 0]]
    record["end"] = edges[..., [2, 3]]
    record["tag"] = [0, 1]
    turn = np.arange(CAPACITY // 2)[:, None] if iterations else wire.NO_ITERATION
    record["iteration"] = turn
    return RawRun(
        name="bench",
        origin_ns=1_000_000_000,
        origin_unix_ns=1_700_000_000_000_000_000,
        clock=Clock(
            ticks=np.array([0, 1 << 40], np.uint64),
            host_ns=np.array([1_000_000_000, 1_000_000_000 + (1 << 40) // 2]),
            slice_cost_ns=5.0,
        ),
        kernels=[kernel],
        launches=[
            Launch(
                kernel=0,
                grid=(programs, 1, 1),
                capacity=CAPACITY,
                host_start=1_000_000_000,
                host_end=2_000_000_000,
                buffer=buffer,
            )
        ],
    )


def best(action: Callable[[], object]) -> float:
    """Seconds of the fastest of a few runs."""
    times = []
    for _ in range(REPEATS):
        begin = time.perf_counter()
        action()
        times.append(time.perf_counter() - begin)
    return min(times)


def built(run: Run, slices: int) -> bytes:
    """The first slices of the run, written with the package's own builder."""
    builder = TraceProtoBuilder()
    columns = (run.frame[name][1 : slices + 1].tolist() for name in ("name", "start_ns", "dur_ns"))
    for name, start, duration in zip(*columns, strict=True):
        for kind, ts in ((1, start), (2, start + duration)):
            packet = builder.add_packet()
            packet.timestamp = ts
            packet.trusted_packet_sequence_id = 1
            packet.track_event.type = pb.TrackEvent.Type.Name(kind)
            packet.track_event.track_uuid = 1
            if kind == 1:
                packet.track_event.name = name
    return builder.serialize()


def written(run: Run, level: int | None) -> bytes:
    """The Perfetto trace of a run whose records are decoded, nested and converted anew."""
    fresh = Run(run.raw)
    out = io.BytesIO()
    if level is None:
        perfetto.write(fresh.raw, fresh.records, out)
    else:
        with gzip.GzipFile("", "wb", level, out, mtime=0) as stream:
            perfetto.write(fresh.raw, fresh.records, cast(BinaryIO, stream))
    return out.getvalue()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--slices", type=int, default=1_000_000)
    slices = parser.parse_args().slices // CAPACITY * CAPACITY
    table = Table("what", "M/s", "bytes/slice", "x builder")

    plain = Run(synthetic(slices, iterations=False))
    launch, kernel = plain.raw.launches[0], plain.raw.kernels[0]
    seconds = best(lambda: decode(kernel, launch))
    table.add_row("decode, records", f"{slices / seconds / 1e6:.1f}", "", "")
    stride = wire.block_bytes(1, CAPACITY, 0)
    shape = (slices // CAPACITY,)
    counts = np.ndarray(shape, "<u8", launch.buffer, wire.table_offset(), (stride,))
    counts += 40
    seconds = best(lambda: decode(kernel, launch))
    table.add_row("decode, wrapped rings", f"{slices / seconds / 1e6:.1f}", "", "")
    counts -= 40

    part = min(slices, BUILDER_SLICES)
    plain.frame  # noqa: B018 - built outside of what is timed
    reference = part / best(lambda: built(plain, part))
    size = len(built(plain, part)) / part
    table.add_row("TraceProtoBuilder", f"{reference / 1e6:.2f}", f"{size:.1f}", "1.0")
    for label, run in (("no iteration", plain), ("iteration", Run(synthetic(slices, True)))):
        for packed, level in ((".pftrace", None), (".pftrace.gz", 1)):
            rate = slices / best(functools.partial(written, run, level))
            size = len(written(run, level)) / slices
            name = f"{packed}, {label}"
            table.add_row(name, f"{rate / 1e6:.2f}", f"{size:.1f}", f"{rate / reference:.1f}")

    with tempfile.TemporaryDirectory() as folder:
        for suffix in (".json", ".proton"):
            path = Path(folder) / f"trace{suffix}"
            begin = time.perf_counter()
            plain.save(path)
            rate = slices / (time.perf_counter() - begin)
            size = path.stat().st_size / slices
            table.add_row(suffix, f"{rate / 1e6:.2f}", f"{size:.1f}", "")
        begin = time.perf_counter()
        Run.load(path)
        table.add_row("Run.load", f"{slices / (time.perf_counter() - begin) / 1e6:.2f}", "", "")
    Console().print(table)


if __name__ == "__main__":
    main()
