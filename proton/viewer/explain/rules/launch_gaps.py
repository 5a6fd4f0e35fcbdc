"""Launches that follow each other with pauses: the host is slower than the kernels.

A pause is one of the device (of the thread, on the CPU): what other scopes of the host launch, or
others' kernels of which CUPTI knows, is none. What the CPU's recorder took of it is not the host's.
Where only some launches are on record, the others ran in these pauses, and nothing is found.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from proton.base.symbols import shortened
from proton.base.units import duration
from proton.trace.model import RECORDER_MEAN_NS, RECORDER_NS, Launch
from proton.viewer.explain.finding import Finding, Said, SliceToOpen, Unrecorded
from proton.viewer.explain.rule import Rule
from proton.viewer.explain.subject import KernelView, Subject
from proton.viewer.tables.recording_cost import leaves_out

LEAST = 0.2  # of the time of a series
LEAST_LAUNCHES = 5
MOST_NAMES = 3
MOST = 100.0  # times a launch: a longer pause is work of its own


def find(subject: Subject) -> Said:
    """Series of launches, on one device and in one scope of the host, that pause."""
    raw, starts, durations = subject.tables.raw, subject.launch_start, subject.launch_ns
    idle = _idle(subject)
    owner = {n: kernel for kernel in subject.kernels for n in kernel.launches.tolist()}
    for series in _series(subject):
        if series.size < LEAST_LAUNCHES:
            continue
        kernels = list(dict.fromkeys(owner[n] for n in series.tolist()))
        pauses = idle[series[1:]]
        recording, mean = np.array([_recorder_ns(owner[n]) for n in series[1:].tolist()]).T
        gaps = np.maximum(pauses - recording, 0)
        # Medians of few launches may be those of different ones; means are of all.
        typical = max(0.0, min(float(np.median(gaps)), float((pauses - mean).mean())))
        length = float(np.median(durations[series]))
        if typical < LEAST * (typical + length) or typical > MOST * max(length, 1.0):
            continue
        calls = [raw.launches[n].host_end - raw.launches[n].host_start for n in series.tolist()
                 if raw.launches[n].is_called]  # fmt: skip
        call = {"call_ns": float(np.median(calls))} if calls else {}
        if leaves := [
            (kernel, option) for kernel in kernels for option in leaves_out(kernel.kernel)
        ]:
            yield from (Unrecorded(rule=RULE.name, kernel=view.label, needs="pauses of the host",
                                   option=f"a session without {option}")
                        for view, option in leaves)  # fmt: skip
            continue
        names = [kernel.label for kernel in kernels]
        on_gpu = raw.kernels[raw.launches[int(series[0])].kernel].on_gpu
        middle = int(series[1:][np.argsort(gaps, kind="stable")[gaps.size // 2]])
        shown = [*map(shortened, names[:MOST_NAMES]), *["..."] * (len(names) > MOST_NAMES)]
        whose = f" of {', '.join(shown)}" if len(names) > 1 else ""
        own = {RECORDER_NS: float(np.median(recording))} if recording.any() else {}
        beside = f", without {duration(own[RECORDER_NS])} of recording" if own else ""
        of = f"a call takes {duration(call['call_ns'])}; " if on_gpu and call else ""
        yield Finding(
            rule=RULE.name,
            kernel=names[0] if len(names) == 1 else "",
            sentence=f"{series.size} launches{whose} take {duration(length)} each, with "
            f"pauses of {duration(typical)} between them{beside}: "
            f"{of}the host is what they wait for",
            gain_ns=typical * gaps.size,
            between_launches=True,
            advice=("a CUDA graph of the launches, fewer and larger launches, or less work in "
                    "Python between them") if on_gpu else
            "fewer and larger launches: let one grid do the work of several",
            visits=int(series.size),
            numbers={"pause_ns": typical, "launch_ns": length, **call, **own,
                     "pause_percent": 100 * typical / (typical + length)},
            slices=(SliceToOpen(launch=middle, start_ns=int(starts[middle] - idle[middle]),
                                dur_ns=int(idle[middle] + durations[middle])),),
        )  # fmt: skip


def _recorder_ns(kernel: KernelView) -> tuple[float, float]:
    """What the session takes of each of its pauses, in the median and the mean; 0 where that was
    not measured."""
    found = (kernel.kernel.options.get(name) for name in (RECORDER_NS, RECORDER_MEAN_NS))
    median, mean = (float(ns) if isinstance(ns, int) else 0.0 for ns in found)
    return median, mean


def _series(subject: Subject) -> Iterator[np.ndarray]:
    """The launches of each device and scope of the host, in order of time."""
    groups: dict[tuple[object, ...], list[int]] = {}
    for number, launch in enumerate(subject.tables.raw.launches):
        groups.setdefault((*_place(subject, launch), launch.path), []).append(number)
    for group in groups.values():
        found = np.array(group, np.int64)
        yield found[np.argsort(subject.launch_start[found], kind="stable")]


def _place(subject: Subject, launch: Launch) -> tuple[str, int]:
    on_gpu = subject.tables.raw.kernels[launch.kernel].on_gpu
    return ("gpu", launch.device) if on_gpu else ("thread", launch.thread)


def _idle(subject: Subject) -> np.ndarray:
    """How long nothing ran in the place of each launch before it began; 0 where something did."""
    raw, found = subject.tables.raw, np.zeros(len(subject.tables.raw.launches))
    places: dict[tuple[str, int], list[int]] = {}
    for number, launch in enumerate(raw.launches):
        places.setdefault(_place(subject, launch), []).append(number)
    kernels = [s for s in raw.host if s.kind == "kernel"]
    for place, numbers in places.items():
        own = np.array(numbers, np.int64)
        others = [s for s in kernels if place == ("gpu", s.device)]
        start, end = subject.launch_start[own], subject.launch_start[own] + subject.launch_ns[own]
        start = np.append(start, [s.start - raw.origin_ns for s in others]).astype(np.int64)
        end = np.append(end, [s.end - raw.origin_ns for s in others]).astype(np.int64)
        order = np.argsort(start, kind="stable")
        before = np.append(start[order[0]], np.maximum.accumulate(end[order])[:-1])
        pauses = start[order] > before
        # Of what runs without a pause the first launch comes behind the one before it.
        is_launch = order < own.size
        part, first = np.unique(np.cumsum(pauses)[is_launch], return_index=True)
        gaps = np.append(0, (start[order] - before)[pauses])
        found[own[order[is_launch][first]]] = gaps[part]
    return found


RULE = Rule(name="launch-gaps", about="pauses between launches", find=find)
