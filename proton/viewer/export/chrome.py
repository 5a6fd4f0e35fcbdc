"""The run as Chrome trace-event JSON, for chrome://tracing and tools that read nothing newer.

The format has two levels, processes and threads: the host and each SM is a process of the trace,
and a place there (a host thread, a thread that ran programs, a slot of an SM, a warp in it) a
thread. No two places share a thread id, for to some readers a tid is one thread whatever its pid.

A slice is one complete event ("X") with microseconds to three decimals, which is exact; a program
is one of the category "program" around its scopes. The host's part of a GPU's launch is an event of
the category "call", and a flow leads from it to the launch; so does one from each operator of torch
to what it asked a GPU for. An event of a kernel is asynchronous:
its start ("b") and its end ("e") are where they were recorded. A counter of a GPU's hardware ("C")
has the value of each sample from its begin.

A trace of torch.profiler takes the run in: its events stay, and the run's are on its axis.
"""

import gzip
import json
import math
import os
from collections.abc import Iterator, Mapping
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np

from proton.base.errors import ProtonError
from proton.base.progress import StepCounter, to_terminal
from proton.trace.nesting import lanes
from proton.trace.operators import NO_ONE, Operators
from proton.trace.records import NONE
from proton.trace.wire import RecordKind
from proton.viewer.formats import FileFormat
from proton.viewer.tables import Tables
from proton.viewer.tables.labels import (
    gpu_name,
    host_thread_names,
    launch_facts,
    program_name,
    stream_name,
)
from proton.viewer.tables.places import Place, Places

if TYPE_CHECKING:
    import pandas as pd

BLOCK_LINES = 4096
HOST, LAUNCHES = "host", "launches"
NO_ARGS: Mapping[str, int] = {}
Thread = tuple[int, int]  # pid and tid


def write(
    tables: Tables, file: BinaryIO, target: Path, beside: str | os.PathLike[str] | None = None
) -> None:
    """Writes the trace, an event a line; into what is in the file `beside`, of torch.profiler."""
    raw, warnings = tables.raw, tables.loss_warnings()
    about = {"name": raw.name, **raw.machine, **({"warnings": warnings} if warnings else {})}
    header: dict[str, object] = {"displayTimeUnit": "ns", "otherData": about}
    lines: list[str] = []
    writer = _Writer(tables)
    if beside is not None:
        theirs, base, used = _of_torch(Path(beside))
        lines = [json.dumps(event) for event in theirs.pop("traceEvents")]
        header |= theirs
        writer = _Writer(tables, raw.origin_unix_ns - base, used + 1)
    file.write(json.dumps(header).encode()[:-1] + b', "traceEvents": [\n')
    first, progress = True, StepCounter("slice", len(tables.frame), to_terminal)
    for line in writer.events():
        lines.append(line)
        if len(lines) >= BLOCK_LINES:
            file.write((("" if first else ",\n") + ",\n".join(lines)).encode())
            progress.step(len(lines))
            lines, first = [], False
    lines += writer.names
    if lines:
        file.write((("" if first else ",\n") + ",\n".join(lines)).encode())
    file.write(b"\n]}\n")


def _of_torch(path: Path) -> tuple[dict[str, Any], int, int]:
    """A trace of torch.profiler, the wall clock in ns that its times count from, and the largest
    number of a process or a thread."""
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
            found = json.load(file)
        base, events = int(found["baseTimeNanoseconds"]), found["traceEvents"]
        numbers = [event.get(key) for event in events for key in ("pid", "tid")]
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as problem:
        raise ProtonError(
            f"{path} is no trace of torch.profiler with baseTimeNanoseconds (of torch 2.4 and "
            f"later, export_chrome_trace): {problem}"
        ) from None
    return found, base, max((n for n in numbers if isinstance(n, int)), default=0)


class _Writer:
    """Events as lines of JSON, and the names of the processes and threads they used. `shift_ns` is
    added to their times; processes and threads have numbers from `first` on."""

    def __init__(self, tables: Tables, shift_ns: int = 0, first: int = 1) -> None:
        self.tables, self.raw, self.records = tables, tables.raw, tables.records
        self.places = Places(tables.raw, tables.records, tables.residency)
        self._host_threads = host_thread_names(tables.raw)
        self.names: list[str] = []
        self._shift = shift_ns
        self._numbers = count(first)  # of processes and threads alike: 0 is nobody's in a trace
        self._pids: dict[str, int] = {}
        self._threads: dict[tuple[object, ...], Thread] = {}
        self._quoted: dict[str, str] = {}

    def events(self) -> Iterator[str]:
        """All of them, the host's first."""
        frame, kinds = self.tables.frame, self.records.kind
        host = frame[frame["program"] == NONE]
        slices = np.flatnonzero(kinds == RecordKind.SLICE)
        marks = np.flatnonzero(kinds == RecordKind.MARK)
        yield from self._host(host)
        yield from self._programs()
        yield from self._slices(frame[frame["program"] != NONE], slices)
        yield from self._marks(self.tables.marks, marks)
        found, flights = self.records.events, self.records.flights
        yield from self._asynchronous("event", self.tables.events, found.start, found.end)
        yield from self._asynchronous("flight", self.tables.flights, flights.issue, flights.wait)
        yield from self._counters()

    def _counters(self) -> Iterator[str]:
        """What counters of GPUs' hardware said, from the begin of each sample."""
        for samples in self.raw.counters:
            gpu = gpu_name(self.raw, samples.device)
            pid, tid = self._thread((gpu,), gpu, LAUNCHES)
            starts = (samples.start_ns - self.raw.origin_ns).tolist()
            for place, (name, unit) in enumerate(zip(samples.names, samples.units, strict=True)):
                head = f'{{"ph":"C","name":{self._quote(f"{name}, {unit}")},"pid":{pid},"tid":{tid}'
                for start, value in zip(starts, samples.values[:, place].tolist(), strict=True):
                    yield f'{head},"ts":{self._at(start)}{_args(NONE, {name: value})}}}'

    def _host(self, frame: "pd.DataFrame") -> Iterator[str]:
        """Host scopes and launches."""
        clocks = self.tables.launches["clock"].tolist()
        more = _rows(frame, "launch", "thread", "device", "dur_ns")
        for name, start, _, payload, launch, thread, device, duration in more:
            timed = launch != NONE and clocks[launch] == "gpu"
            if timed:
                gpu = gpu_name(self.raw, device)
                place = self._thread((gpu,), gpu, LAUNCHES)
            elif device != NONE and launch == NONE:
                gpu, stream = gpu_name(self.raw, device), stream_name(thread)
                place = self._thread((gpu, stream), gpu, stream)
            else:
                place = self._host_thread(thread)
            args = dict(payload or {})
            if launch != NONE:
                entry = self.raw.launches[launch]
                args = {"launch": launch, **launch_facts(self.raw.kernels[entry.kernel], entry)}
            yield f"{self._slice(name, place, start, duration)}{_args(NONE, args)}}}"
            if timed and self.raw.launches[launch].is_called:
                yield from self._call(launch, name, place, start)
        yield from self._asked()

    def _asked(self) -> Iterator[str]:
        """A flow from each operator to each thing that it asked a GPU for."""
        host, origin = self.raw.host, self.raw.origin_ns
        for row, asker in enumerate(Operators(self.raw).of_slices(host)):
            if asker == NO_ONE:
                continue
            flow = f'"name":"asked for","cat":"operator","id":{row}'
            gpu, stream = gpu_name(self.raw, host[row].device), stream_name(host[row].thread)
            pid, tid = self._host_thread(host[asker].thread)
            at = self._at(max(host[asker].start, host[row].issued) - origin)
            yield f'{{"ph":"s",{flow},"pid":{pid},"tid":{tid},"ts":{at}}}'
            pid, tid = self._thread((gpu, stream), gpu, stream)
            at = self._at(host[row].start - origin)
            yield f'{{"ph":"f","bp":"e",{flow},"pid":{pid},"tid":{tid},"ts":{at}}}'

    def _programs(self) -> Iterator[str]:
        """A slice a program: on the CPU around the records of each of its units."""
        found, places, tracks = self.places.residency, self.places, self.records.tracks
        gpu = np.zeros(found.row.size + 1, bool)
        gpu[places.programs] = gpu[-1] = True
        units = np.flatnonzero(~gpu[places.program_of_unit])
        rows = np.append(places.program_of_unit[units], places.programs)
        on = np.append(places.of_unit[units], places.of_program)
        first = found.first[rows]
        columns = (on, found.start_ns[rows], found.end_ns[rows])
        numbers = (tracks.launch[first], tracks.program[first])
        for place, start, end, launch, program in zip(
            *(column.tolist() for column in (*columns, *numbers)), strict=True
        ):
            entry = self.raw.launches[launch]
            name = program_name(self.raw.kernels[entry.kernel], entry.grid, program)
            head = self._slice(name, self._place(self.places.all[place]), start, end - start)
            yield f'{head},"cat":"program","args":{{"launch":{launch}}}}}'

    def _slices(self, frame: "pd.DataFrame", rows: np.ndarray) -> Iterator[str]:
        """The slices of kernels; those that overlap without nesting are on threads of their own."""
        records = self.records
        lane = lanes(records.track, records.nesting)[rows].tolist()
        units = self.places.of_unit[records.track[rows]].tolist()
        more = zip(_rows(frame, "dur_ns"), units, lane, strict=True)
        for (name, start, iteration, payload, duration), unit, number in more:
            thread = self._place(self.places.all[unit], number)
            yield f"{self._slice(name, thread, start, duration)}{_args(iteration, payload)}}}"

    def _marks(self, marks: "pd.DataFrame", rows: np.ndarray) -> Iterator[str]:
        units = self.places.of_unit[self.records.track[rows]].tolist()
        for (name, start, iteration, payload), unit in zip(_rows(marks), units, strict=True):
            pid, tid = self._place(self.places.all[unit])
            head = f'{{"ph":"i","s":"t","name":{self._quote(name)},"pid":{pid},"tid":{tid}'
            yield f'{head},"ts":{self._at(start)}{_args(iteration, payload)}}}'

    def _asynchronous(
        self, kind: str, events: "pd.DataFrame", starts_: np.ndarray, ends_: np.ndarray
    ) -> Iterator[str]:
        """The starts and ends of events, or of asynchronous work, with the rows of their
        records."""
        track, place = self.records.track, self.places.of_unit
        starts, ends = (place[track[edge]].tolist() for edge in (starts_, ends_))
        columns = (events[name].tolist() for name in ("name", "start_ns", "dur_ns"))
        rows = enumerate(zip(*columns, starts, ends, strict=True))
        for number, (name, start, duration, first, last) in rows:
            head = f'"cat":"{kind}","id":{number},"name":{self._quote(name)}'
            for phase, unit, now in (("b", first, start), ("e", last, start + duration)):
                pid, tid = self._place(self.places.all[unit])
                at = f'"pid":{pid},"tid":{tid},"ts":{self._at(now)}'
                yield f'{{"ph":"{phase}",{head},{at}}}'

    def _call(self, number: int, name: str, own: Thread, start: int) -> Iterator[str]:
        """The host's part of a GPU's launch, and the flow from it to the GPU's."""
        launch, origin = self.raw.launches[number], self.raw.origin_ns
        called = self._at(launch.host_start - origin)
        duration = microseconds(launch.host_end - launch.host_start)
        host_pid, host_tid = self._host_thread(launch.thread)
        place = f'"pid":{host_pid},"tid":{host_tid},"ts":{called}'
        yield f'{{"ph":"X","name":{self._quote(name)},"cat":"call",{place},"dur":{duration}}}'
        flow = f'"name":"launch","cat":"call","id":{number}'
        yield f'{{"ph":"s",{flow},{place}}}'
        at = f'"pid":{own[0]},"tid":{own[1]},"ts":{self._at(start)}'
        yield f'{{"ph":"f","bp":"e",{flow},{at}}}'

    def _slice(self, name: str, thread: Thread, start: int, duration: int) -> str:
        """A complete event, but for its end."""
        place = f'"pid":{thread[0]},"tid":{thread[1]}'
        times = f'"ts":{self._at(start)},"dur":{microseconds(duration)}'
        return f'{{"ph":"X","name":{self._quote(name)},{place},{times}'

    def _at(self, ns: int) -> str:
        return microseconds(ns + self._shift)

    def _quote(self, name: str) -> str:
        return self._quoted.setdefault(name, json.dumps(name))

    def _host_thread(self, thread: int) -> Thread:
        name = self._host_threads[thread]
        return self._thread((HOST, name), HOST, name, {"ident": thread})

    def _place(self, place: Place, lane: int = 0) -> Thread:
        """The thread of a place: below its SM's process, or the host's."""
        names = [name for name, _ in place.path]
        if len(names) == 1:
            return self._thread((place, lane), HOST, names[0])
        return self._thread((place, lane), " ".join(names[:2]), " ".join(names[2:]))

    def _thread(
        self, key: tuple[object, ...], process: str, name: str, more: Mapping[str, int] = NO_ARGS
    ) -> Thread:
        """The pid and tid of what has this key, both named on first use."""
        if key not in self._threads:
            if process not in self._pids:
                self._pids[process] = next(self._numbers)
                self.names.append(_name("process_name", self._pids[process], 0, process))
            pid, tid = self._pids[process], next(self._numbers)
            self.names.append(_name("thread_name", pid, tid, name, more))
            self._threads[key] = pid, tid
        return self._threads[key]


def microseconds(ns: int) -> str:
    """Whole nanoseconds as microseconds, exactly."""
    sign = "-" if ns < 0 else ""
    return f"{sign}{abs(ns) // 1000}.{abs(ns) % 1000:03d}"


def _rows(table: "pd.DataFrame", *more: str) -> Iterator[tuple[Any, ...]]:
    names = ("name", "start_ns", "iteration", "payload", *more)
    return zip(*(table[name].tolist() for name in names), strict=True)


def _args(iteration: int, payload: dict[str, object] | None) -> str:
    args: dict[str, object] = {} if iteration == NONE else {"iteration": iteration}
    args.update(payload or {})
    # JSON has no word for a NaN or an infinity, so they are written as text
    legal = {
        key: str(value) if isinstance(value, float) and not math.isfinite(value) else value
        for key, value in args.items()
    }
    return f',"args":{json.dumps(legal, allow_nan=False)}' if legal else ""


def _name(kind: str, pid: int, tid: int, name: str, more: Mapping[str, int] = NO_ARGS) -> str:
    event = {"ph": "M", "name": kind, "pid": pid, "tid": tid, "args": {"name": name, **more}}
    return json.dumps(event)


FORMAT = FileFormat(
    name="chrome",
    suffixes=(".json",),
    about="Chrome's trace events, for older tools",
    write=write,
    options=("beside",),
)
