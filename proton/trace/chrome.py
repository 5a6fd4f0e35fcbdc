"""Chrome traces of Triton's Proton, and those that this project writes, as runs.

    {"traceEvents": [{"ph": "X", "name": "load", "ts": 1.25, "dur": 0.5, "pid": ..., "tid": ...}]}

Times are microseconds. Which of three kinds of trace it is, an event says by its place:

- of scopes in kernels by Triton: pid `add Core3 CTA17`, once with the unit behind it, tid
  `warp 2 (line 0)`. Times are cycles, and count as ns. A launch ends where a CTA comes again.
  Events of the categories `async` and `flow` lie across scopes: they are left out, and counted.
- of kernels by Triton: the category `kernel`, on streams; host scopes have the category `scope`,
  and are on threads. `args.call_stack` has the scopes around a kernel.
- ours: programs are events of the category `program` with their launch, on a thread, or on a slot
  of an SM, whose warps are threads of the trace beside it.

What a trace does not have is not in the run: payload, losses, what recording cost, flights.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from proton.base.symbols import demangled
from proton.trace.errors import TraceFormatError
from proton.trace.model import UNCALLED, HostSlice, RawRun
from proton.trace.packing import NO_GRID, PackedLaunch, PackedProgram, PackedSlice, packed_run
from proton.trace.scope_path import ScopePath

SUFFIX = ".chrome_trace"
ROOT = "ROOT"  # of Triton's call stacks
UNKNOWN_GPU = "gpu:unknown"  # the target of kernels of which a trace says no more
TIMES = "times in kernels"  # in RawRun.machine
CYCLES = "cycles, which count as ns"
_CTA = re.compile(r"(.*) Core(\d+) CTA(\d+)(?: \[.*\])?")
_ASYNCHRONOUS = ("async", "flow")
_WARP = re.compile(r"warps? (\d+)")
_STREAM = re.compile(r"(CPU Thread|GPU Stream|Graph: Stream) (\d+)")
_PROGRAM = re.compile(r"(.*) \(([\d, ]+)\)")
_SM = re.compile(r"(?:.* )?SM (\d+)")
_FIRST = 64  # bytes that tell a JSON object


def is_chrome(path: Path) -> bool:
    """Whether a file can be one: a JSON object."""
    if path.suffix == SUFFIX:
        return True
    with path.open("rb") as file:
        return file.read(_FIRST).lstrip().startswith(b"{")


def load(path: Path) -> RawRun:
    """Reads a trace as a run; raises TraceFormatError where it is none of the kinds."""
    try:
        documents = list(_documents(path.read_text("utf-8")))
        events = [event for found in documents for event in found["traceEvents"]]
        reader = _Reader(events)
        launches = reader.launches()
    except OSError as error:
        raise TraceFormatError(f"{path}: cannot be read: {error.strerror}") from error
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        why = f"no {error}" if isinstance(error, KeyError) else str(error)
        raise TraceFormatError(f"{path}: is no Chrome trace: {why}") from None
    if not launches and not reader.host:
        raise TraceFormatError(
            f"{path}: has no kernel and no scope: a trace of Triton's Proton has events of the "
            "category kernel, or of warps (warp 0) of CTAs (add Core0 CTA0)"
        )
    other = documents[0].get("otherData", {})
    facts = {str(k): str(v) for k, v in other.items() if k not in ("name", "warnings")}
    return packed_run(
        str(other.get("name", path.name)), launches, reader.host, path.stat().st_mtime_ns,
        facts | reader.facts,
    )  # fmt: skip


def _documents(text: str) -> Iterator[dict[str, Any]]:
    """The JSON objects of a file: Triton wrote one a stream, behind each other."""
    decoder, at = json.JSONDecoder(), 0
    while at < len(text.rstrip()):
        found, at = decoder.raw_decode(text, at + len(text[at:]) - len(text[at:].lstrip()))
        yield found


def _ns(microseconds: float) -> int:
    return round(float(microseconds) * 1000)


@dataclass
class _Reader:
    """The events of a trace, sorted out."""

    events: list[dict[str, Any]]
    host: list[HostSlice] = field(default_factory=list)
    facts: dict[str, str] = field(default_factory=dict)

    def launches(self) -> list[PackedLaunch]:
        """The launches; host scopes are in `host` behind it."""
        slices = [event for event in self.events if event.get("ph") == "X"]
        names = _names(self.events)
        if any(_CTA.fullmatch(str(event.get("pid"))) for event in slices):
            self.facts[TIMES] = CYCLES
            scopes = [event for event in slices if not _is_asynchronous(event)]
            if left := len(slices) - len(scopes):
                self.facts["asynchronous events"] = f"{left} left out"
            return list(_of_ctas(scopes))
        if any(event.get("cat") == "kernel" for event in slices):
            return self._of_streams(slices, names)
        return self._of_ours(slices, names)

    def _of_streams(
        self, slices: list[dict[str, Any]], names: dict[tuple[Any, Any], str]
    ) -> list[PackedLaunch]:
        """Kernels without scopes inside, and host scopes."""
        found = []
        for event in slices:
            lane = _STREAM.fullmatch(names.get(_place(event), ""))
            stack = [str(name) for name in event.get("args", {}).get("call_stack", ())]
            start, end = _times(event)
            outer = ScopePath.of(stack[stack[:1] == [ROOT] : -1])
            if event.get("cat") == "kernel":
                name = demangled(str(event["name"]))
                launch = PackedLaunch(kernel=name, target=UNKNOWN_GPU, start=start, end=end,
                                      path=outer, thread=UNCALLED, grid=NO_GRID)  # fmt: skip
                found.append(launch)
            elif lane is not None and lane[1] == "CPU Thread":
                name = str(event["name"])
                metrics = event.get("args", {}).get("metrics", {})
                payload = {str(k): v for k, v in metrics.items() if isinstance(v, int | float)}
                path = ScopePath.of((outer, name))
                self.host.append(HostSlice(name=name, path=path, thread=int(lane[2]), start=start,
                                           end=end, payload=payload))  # fmt: skip
        return found

    def _of_ours(
        self, slices: list[dict[str, Any]], names: dict[tuple[Any, Any], str]
    ) -> list[PackedLaunch]:
        """Launches with their programs, whose scopes lie in the same place at the same time."""
        launches: dict[int, PackedLaunch] = {}
        programs: dict[tuple[str, str], list[tuple[int, PackedProgram]]] = {}
        rest: list[dict[str, Any]] = []
        processes = {pid: name for (pid, tid), name in names.items() if tid is None}
        for event in slices:
            if event.get("cat") is None and "launch" in event.get("args", {}):
                launches[int(event["args"]["launch"])] = _launch(event)
        for event in slices:
            place = processes.get(event["pid"], ""), names.get(_place(event), "")
            if event.get("cat") == "program":
                launch = launches[int(event["args"]["launch"])]
                program = _program(event, place, launch)
                programs.setdefault(place, []).append((program.start, program))
            elif event.get("cat") is None and "launch" not in event.get("args", {}):
                rest.append(event)
        for found in programs.values():
            found.sort(key=lambda item: item[0])
        for event in rest:
            process, thread = processes.get(event["pid"], ""), names.get(_place(event), "")
            warp = _WARP.search(thread)
            slot = " ".join(thread.split()[:2]) if warp else thread  # slot 0 role: warp 3
            around = programs.get((process, slot))
            start, end = _times(event)
            if around is None:
                self._host_scope(event, thread, start, end)
                continue
            at = bisect_right(around, start, key=lambda item: item[0]) - 1
            iteration = int(event.get("args", {}).get("iteration", -1))
            work = PackedSlice(str(event["name"]), start, end, iteration)
            around[max(at, 0)][1].units.setdefault(int(warp[1]) if warp else 0, []).append(work)
        self.host = _nested(self.host)
        calls = {int(e["id"]): _ns(e["ts"]) for e in self.events
                 if (e.get("ph"), e.get("cat")) == ("s", "call")}  # fmt: skip
        for number, launch in launches.items():
            called = calls.get(number, launch.start)
            launch.path = launch.path or _path_at(self.host, called)
        return [launches[number] for number in sorted(launches)]

    def _host_scope(self, event: dict[str, Any], thread: str, start: int, end: int) -> None:
        digits = re.search(r"\d+$", thread)
        name = str(event["name"])
        self.host.append(HostSlice(name=name, path=name, start=start, end=end,
                                   thread=int(digits[0]) if digits else 0))  # fmt: skip


def _names(events: Iterable[dict[str, Any]]) -> dict[tuple[Any, Any], str]:
    """What the metadata calls threads, by pid and tid, and processes, by pid and None."""
    found: dict[tuple[Any, Any], str] = {}
    for event in events:
        if event.get("ph") == "M" and event.get("name") in ("process_name", "thread_name"):
            tid = event.get("tid") if event["name"] == "thread_name" else None
            found[event.get("pid"), tid] = str(event["args"]["name"])
    return found


def _place(event: dict[str, Any]) -> tuple[Any, Any]:
    return event.get("pid"), event.get("tid")


def _times(event: dict[str, Any]) -> tuple[int, int]:
    start = _ns(event["ts"])
    return start, start + max(_ns(event["dur"]), 0)


def _is_asynchronous(event: dict[str, Any]) -> bool:
    """Whether an event in a kernel is none of its scopes, which have its name as category."""
    cta = _CTA.fullmatch(str(event.get("pid")))
    return event.get("cat") in _ASYNCHRONOUS and cta is not None and cta[1] != event["cat"]


def _of_ctas(slices: list[dict[str, Any]]) -> Iterator[PackedLaunch]:
    """Events come launch by launch, and of a launch CTA by CTA and warp by warp."""
    launch: PackedLaunch | None = None
    last = ("", -1)
    for event in slices:
        cta, warp = _CTA.fullmatch(str(event.get("pid"))), _WARP.match(str(event.get("tid")))
        if cta is None or warp is None:
            continue
        kernel, sm, number = cta[1], int(cta[2]), int(cta[3])
        here = cta[0], int(warp[1])
        is_again = launch is not None and number in launch.programs and (
            here[0] != last[0] or here[1] < last[1]
        )  # fmt: skip
        if launch is None or launch.kernel != kernel or is_again:
            if launch is not None:
                yield launch
            stack = [str(name) for name in event.get("args", {}).get("call_stack", ())]
            path = ScopePath.of(name for name in stack if name not in (ROOT, kernel))
            launch = PackedLaunch(kernel=kernel, target=UNKNOWN_GPU, path=path, thread=UNCALLED)
        program = launch.programs.setdefault(number, PackedProgram(place=sm))
        start, end = _times(event)
        program.units.setdefault(here[1], []).append(PackedSlice(str(event["name"]), start, end))
        last = here
    if launch is not None:
        yield launch


def _launch(event: dict[str, Any]) -> PackedLaunch:
    """A launch of ours; of a kernel of Triton's, which our traces have as we read it, no call is
    known."""
    (start, end), args = _times(event), event["args"]
    target = str(args["target"])
    return PackedLaunch(
        kernel=str(event["name"]), target=target, start=start, end=end,
        grid=_grid(str(args["grid"])), signature=str(args.get("signature", "")),
        path=str(args.get("scope", "")), thread=UNCALLED if target == UNKNOWN_GPU else 0,
    )  # fmt: skip


def _program(event: dict[str, Any], place: tuple[str, str], launch: PackedLaunch) -> PackedProgram:
    """A program of ours, in its launch: its coordinates stand in its name, x first."""
    named = _PROGRAM.fullmatch(str(event["name"]))
    if named is None:
        raise ValueError(f"a program is called {event['name']!r}")
    x, y, z = [*map(int, named[2].split(",")), 0, 0][:3]
    number = x + launch.grid[0] * (y + launch.grid[1] * z)
    sm, thread = _SM.fullmatch(place[0]), re.search(r"\d+$", place[1])
    where = int(sm[1]) if sm else int(thread[0]) if thread else 0
    start, end = _times(event)
    found = launch.programs[number] = PackedProgram(place=where, start=start, end=end)
    return found


def _grid(text: str) -> tuple[int, int, int]:
    x, y, z = (int(number) for number in text.strip("()").split(","))
    return x, y, z


def _nested(host: list[HostSlice]) -> list[HostSlice]:
    """Host scopes with paths, by what lies in what on a thread."""
    found: list[HostSlice] = []
    opened: dict[int, list[HostSlice]] = {}
    for slice_ in sorted(host, key=lambda s: (s.start, -s.end)):
        outer = opened.setdefault(slice_.thread, [])
        while outer and outer[-1].end < slice_.end:
            outer.pop()
        path = ScopePath.of((outer[-1].path if outer else "", slice_.name))
        outer.append(HostSlice(name=slice_.name, path=path, thread=slice_.thread,
                               start=slice_.start, end=slice_.end))  # fmt: skip
        found.append(outer[-1])
    return found


def _path_at(host: list[HostSlice], time: int) -> str:
    """The innermost host scope around a moment."""
    around = [slice_ for slice_ in host if slice_.start <= time <= slice_.end]
    return max(around, key=lambda s: (s.start, -s.end)).path if around else ""
