"""The run as Chrome trace-event JSON, for chrome://tracing and tools that read nothing newer.

The format has two levels, processes and threads: what ran programs (a thread, an SM) becomes a
process of the trace, and a program (on an SM: a warp of one) a thread in it. A slice is one
complete event ("X") with microseconds to three decimals, which is exact. The host's part of a
GPU's launch is an event of the category "call", and a flow leads from it to the launch. An event of
a kernel is asynchronous: its start ("b") and its end ("e") are where they were recorded.
"""

import json
import math
from collections.abc import Iterator
from itertools import chain, count
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from proton.trace.model import RawRun
from proton.trace.records import NONE
from proton.viewer.formats import Format
from proton.viewer.tables import Tables
from proton.viewer.tables.labels import (
    LAUNCHES,
    gpu_name,
    program_name,
    sm_name,
    thread_name,
    unit_name,
)

if TYPE_CHECKING:
    import pandas as pd

BLOCK_LINES = 4096


def write(tables: Tables, file: BinaryIO, target: Path) -> None:
    """Writes the trace, an event a line."""
    raw, warnings = tables.raw, tables.loss_warnings()
    about = {"name": raw.name, **raw.machine, **({"warnings": warnings} if warnings else {})}
    header = {"displayTimeUnit": "ns", "otherData": about}
    file.write(json.dumps(header).encode()[:-1] + b', "traceEvents": [\n')
    writer = _Writer(raw)
    lines: list[str] = []
    first = True
    slices = writer.events(tables.frame, tables.marks)
    for line in chain(slices, writer.asynchronous(tables.events)):
        lines.append(line)
        if len(lines) == BLOCK_LINES:
            file.write((("" if first else ",\n") + ",\n".join(lines)).encode())
            lines, first = [], False
    lines += writer.names
    if lines:
        file.write((("" if first else ",\n") + ",\n".join(lines)).encode())
    file.write(b"\n]}\n")


class _Writer:
    """Events as lines of JSON, and the names of the processes and threads they used."""

    def __init__(self, raw: RawRun) -> None:
        self.raw = raw
        self.names: list[str] = []
        self._numbers = count(1)  # of processes and threads alike: 0 is nobody's in a trace
        self._places: dict[str, int] = {}
        self._tids: dict[tuple[str, str], int] = {}
        self._quoted: dict[str, str] = {}
        devices = {launch.device for launch in raw.launches}
        self._gpus = {device: gpu_name(raw, device) for device in devices}

    def events(self, frame: "pd.DataFrame", marks: "pd.DataFrame") -> Iterator[str]:
        for row in _rows(frame, "dur_ns"):
            *place, name, start, iteration, payload, duration = row
            pid, tid = self._thread(*place)
            head = f'{{"ph":"X","name":{self._quote(name)},"pid":{pid},"tid":{tid}'
            times = f'"ts":{microseconds(start)},"dur":{microseconds(duration)}'
            yield f"{head},{times}{_args(iteration, payload)}}}"
            launch, program, _, _, device, _ = place
            if program == NONE and device != NONE:
                yield from self._call(launch, name, pid, tid, start)
        for row in _rows(marks):
            *place, name, start, iteration, payload = row
            pid, tid = self._thread(*place)
            head = f'{{"ph":"i","s":"t","name":{self._quote(name)},"pid":{pid},"tid":{tid}'
            yield f'{head},"ts":{microseconds(start)}{_args(iteration, payload)}}}'

    def asynchronous(self, events: "pd.DataFrame") -> Iterator[str]:
        """The starts and ends of events."""
        columns = ("launch", "program", "start_unit", "end_unit", "thread", "device", "sm")
        names = (*columns, "name", "start_ns", "dur_ns")
        rows = zip(*(events[name].tolist() for name in names), strict=True)
        for number, row in enumerate(rows):
            launch, program, start_unit, end_unit, *place, name, start, duration = row
            head = f'"cat":"event","id":{number},"name":{self._quote(name)}'
            for phase, unit, now in (("b", start_unit, start), ("e", end_unit, start + duration)):
                pid, tid = self._thread(launch, program, unit, *place)
                at = f'"pid":{pid},"tid":{tid},"ts":{microseconds(now)}'
                yield f'{{"ph":"{phase}",{head},{at}}}'

    def _call(self, number: int, name: str, pid: int, tid: int, start: int) -> Iterator[str]:
        """The host's part of a GPU's launch, and the flow from it to the GPU's."""
        launch, origin = self.raw.launches[number], self.raw.origin_ns
        called = microseconds(launch.host_start - origin)
        duration = microseconds(launch.host_end - launch.host_start)
        host_pid, host_tid = self._place("host", f"host {thread_name(launch.thread)}")
        place = f'"pid":{host_pid},"tid":{host_tid},"ts":{called}'
        yield f'{{"ph":"X","name":{self._quote(name)},"cat":"call",{place},"dur":{duration}}}'
        flow = f'"name":"launch","cat":"call","id":{number}'
        yield f'{{"ph":"s",{flow},{place}}}'
        at = f'"pid":{pid},"tid":{tid},"ts":{microseconds(start)}'
        yield f'{{"ph":"f","bp":"e",{flow},{at}}}'

    def _quote(self, name: str) -> str:
        return self._quoted.setdefault(name, json.dumps(name))

    def _thread(
        self, launch: int, program: int, unit: int, thread: int, device: int, sm: int
    ) -> tuple[int, int]:
        """The pid and tid of an event, naming both on first use."""
        if program == NONE:
            if device != NONE:
                return self._place(self._gpus[device], LAUNCHES)
            return self._place("host", f"host {thread_name(thread)}")
        entry = self.raw.launches[launch]
        kernel = self.raw.kernels[entry.kernel]
        name, own = program_name(kernel, entry, program), unit_name(kernel, unit)
        name = f"{name} {own}" if own else name
        place = thread_name(thread)
        if device != NONE:
            place = f"{self._gpus[device]} {sm_name(sm)}"
        return self._place(place, name)

    def _place(self, place: str, name: str) -> tuple[int, int]:
        """The pid of a place, and the tid of what has this name there."""
        if place not in self._places:
            self._places[place] = next(self._numbers)
            self.names.append(_name("process_name", self._places[place], 0, place))
        pid = self._places[place]
        if (place, name) not in self._tids:
            self._tids[place, name] = next(self._numbers)
            self.names.append(_name("thread_name", pid, self._tids[place, name], name))
        return pid, self._tids[place, name]


def microseconds(ns: int) -> str:
    """Whole nanoseconds as microseconds, exactly."""
    sign = "-" if ns < 0 else ""
    return f"{sign}{abs(ns) // 1000}.{abs(ns) % 1000:03d}"


def _rows(table: "pd.DataFrame", *more: str) -> Iterator[tuple[Any, ...]]:
    place = ("launch", "program", "unit", "thread", "device", "sm")
    names = (*place, "name", "start_ns", "iteration", "payload", *more)
    return zip(*(table[name].tolist() for name in names), strict=True)


def _args(iteration: int, payload: dict[str, Any] | None) -> str:
    args = {} if iteration == NONE else {"iteration": iteration}
    args.update(payload or {})
    # JSON has no word for a NaN or an infinity, so they are written as text
    legal = {key: value if math.isfinite(value) else str(value) for key, value in args.items()}
    return f',"args":{json.dumps(legal, allow_nan=False)}' if legal else ""


def _name(kind: str, pid: int, tid: int, name: str) -> str:
    event = {"ph": "M", "name": kind, "pid": pid, "tid": tid, "args": {"name": name}}
    return json.dumps(event)


FORMAT = Format(
    name="chrome",
    suffixes=(".json",),
    about="Chrome's trace events, for older tools",
    write=write,
)
