"""How fast records are read and traces written.

    python benchmarks/trace_io.py [--slices 1000000]
    PYTHONPATH=. python benchmarks/trace_io.py --gpus 4 --slices 10000000

Times are the best of three. The synthetic run has 64 slices a program, in pairs of an outer and
an inner one, numbered by iteration unless the row says otherwise.

With --gpus it is a run of so many GPUs: launches of 132 programs of 4 warps with 32-bit clocks. It
is decoded and written once, and opened by Perfetto's own trace processor, which counts the slices.
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
from proton.trace.decode import decode
from proton.trace.model import Clock, GPUClock, Kernel, Launch, RawRun, Scope, Strategy
from proton.viewer import Run
from proton.viewer.export.perfetto import trace

CAPACITY = 64
REPEATS = 3
BUILDER_SLICES = 100_000


def synthetic(slices: int, iterations: bool) -> RawRun:
    """One launch of slices / 64 programs, each an outer slice around an inner one, 32 times."""
    programs = slices // CAPACITY
    scopes = (Scope(name="inner", path="outer/inner"), Scope(name="outer", path="outer"))
    kernel = Kernel(name="bench", key="", target="cpu", strategy=Strategy.CIRCULAR, scopes=scopes)
    layout = wire.Block(1, CAPACITY, wire.RecordSchema())
    block = layout.bytes
    buffer = np.zeros(programs * block, np.uint8)
    header = layout.headers(buffer)
    header["magic"], header["version"] = wire.MAGIC, wire.VERSION
    header["state"] = wire.ProgramState.FINISHED
    header["program_x"] = np.arange(programs)
    header["units"], header["capacity"] = 1, CAPACITY
    header["clock_bits"] = 64
    header["thread"] = np.arange(programs) % 4
    layout.tables(buffer)[:] = CAPACITY
    size = layout.schema.bytes
    shape, strides = (programs, CAPACITY // 2, 2), (block, 2 * size, size)
    record = np.ndarray(shape, layout.schema.dtype, buffer, layout.segments, strides)
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


def of_gpus(gpus: int, slices: int) -> RawRun:
    """Launches of 132 programs of 4 warps, each of 128 slices in a row, on each GPU in turn."""
    programs, warps, capacity = 132, 4, 128
    scopes = (Scope(name="load", path="load"), Scope(name="compute", path="compute"))
    kernel = Kernel(
        name="bench",
        key="",
        target="cuda:90",
        strategy=Strategy.CIRCULAR,
        scopes=scopes,
        units=warps,
        clock_bits=32,
    )
    layout = wire.Block(warps, capacity, wire.RecordSchema(0, 32))
    block = layout.bytes
    timer, random = 1_800_000_000_000_000_000, np.random.default_rng(1)
    launches = []
    for number in range(-(-slices // (programs * warps * capacity))):
        buffer = np.zeros(programs * block, np.uint8)
        gap = random.integers(20, 2000, (programs, warps, capacity)).astype(np.uint64)
        begin = (1 << 40) + number * 2_000_000
        end = begin + np.cumsum(gap, axis=2)
        header = layout.headers(buffer)
        header["magic"], header["version"] = wire.MAGIC, wire.VERSION
        header["state"] = wire.ProgramState.FINISHED
        header["program_x"] = header["hardware"] = np.arange(programs)
        header["units"], header["capacity"], header["clock_bits"] = warps, capacity, 32
        header["clock_start"], header["clock_end"] = begin, end.max(axis=(1, 2))
        for edge in ("start", "end"):
            header[f"timer_{edge}"] = timer + header[f"clock_{edge}"] // 2 // 32 * 32
        layout.tables(buffer)[:] = capacity
        size, first = layout.schema.bytes, layout.segments
        strides = (block, capacity * size, size)
        record = np.ndarray(end.shape, layout.schema.dtype, buffer, first, strides)
        record["start"], record["end"] = (end - gap).astype("<u4"), end.astype("<u4")
        record["tag"], record["iteration"] = np.arange(capacity) % 2, np.arange(capacity) // 2
        launches.append(
            Launch(
                kernel=0,
                grid=(programs, 1, 1),
                capacity=capacity,
                host_start=1_000_000_000 + number * 1000,
                host_end=1_000_000_000 + number * 1000,
                buffer=buffer,
                device=number % gpus,
            )
        )
    none = Clock(ticks=np.zeros(0, np.uint64), host_ns=np.zeros(0, np.int64))
    ends = [timer + (1 << 39), timer + (1 << 39) + (1 << 34)]
    clocks = [
        GPUClock(
            device=device,
            name="NVIDIA Nothing",
            timer_ns=np.array(ends),
            host_ns=np.array([1_000_000_000, 1_000_000_000 + (1 << 34)]),
        )
        for device in range(gpus)
    ]
    return RawRun(
        name="bench",
        origin_ns=1_000_000_000,
        origin_unix_ns=1_700_000_000_000_000_000,
        clock=none,
        gpus=clocks,
        kernels=[kernel],
        launches=launches,
    )


def many(gpus: int, slices: int) -> Table:
    """A run of GPUs, from its buffers to an open trace."""
    from tests.trace_processor import TraceProcessor

    table = Table("what", "seconds")
    run = Run(of_gpus(gpus, slices))
    begin = time.perf_counter()

    def step(name: str) -> None:
        nonlocal begin
        table.add_row(name, f"{time.perf_counter() - begin:.1f}")
        begin = time.perf_counter()

    kept = int(run.totals.slices)
    step(f"decode {kept} slices of {gpus} GPUs")
    with tempfile.TemporaryDirectory() as folder:
        for suffix in (".proton", ".pftrace"):
            path = Path(folder) / f"trace{suffix}"
            run.save(path)
            step(f"write {suffix}, {path.stat().st_size / kept:.1f} bytes per slice")
        with TraceProcessor(path) as processor:
            query = "select count(*) as n from slice where name in ('load', 'compute')"
            (row,) = processor.query(query)
            complaints = processor.complaints()
        step(f"open in the trace processor: {row['n']} slices, {len(complaints)} complaints")
        if row["n"] != kept or complaints:
            raise SystemExit(f"the trace has {row['n']} of {kept} slices, {complaints}")
    return table


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
        trace.write(fresh, out, deflate=True, with_counters=False)
    else:
        with gzip.GzipFile("", "wb", level, out, mtime=0) as stream:
            trace.write(fresh, cast(BinaryIO, stream), deflate=False, with_counters=False)
    return out.getvalue()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--slices", type=int, default=1_000_000)
    parser.add_argument("--gpus", type=int, default=0, help="a run of so many GPUs")
    options = parser.parse_args()
    if options.gpus:
        Console().print(many(options.gpus, options.slices))
        return
    slices = options.slices // CAPACITY * CAPACITY
    table = Table("what", "M/s", "bytes/slice", "x builder")

    plain = Run(synthetic(slices, iterations=False))
    launch, kernel = plain.raw.launches[0], plain.raw.kernels[0]
    seconds = best(lambda: decode(kernel, launch))
    table.add_row("decode, records", f"{slices / seconds / 1e6:.1f}", "", "")
    counts = kernel.block(CAPACITY).tables(launch.buffer)
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
