"""What of a run lies in the times while a session was active: its windows.

A launch is in a window where it begins; a slice of the host is cut at the window's ends.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from proton.trace.model import HostSlice, Launch, RawRun

Window = tuple[float, float]  # from and to, in perf_counter_ns; may be infinite


def union(windows: Iterable[Window]) -> list[Window]:
    """The same times as windows that do not overlap, in order."""
    found: list[Window] = []
    for start, end in sorted(windows):
        if found and start <= found[-1][1]:
            found[-1] = found[-1][0], max(end, found[-1][1])
        else:
            found.append((start, end))
    return found


def without(windows: Iterable[Window], gap: Window) -> list[Window]:
    """The windows less a time in between."""
    first, last = gap
    parts = [
        part
        for start, end in windows
        for part in ((start, min(end, first)), (max(start, last), end))
        if part[0] < part[1]
    ]
    return union(parts)


def within(raw: RawRun, windows: Sequence[Window]) -> RawRun:
    """The part of a run that lies in windows; its time zero is not before the first of them."""
    if not windows:
        windows = [(raw.origin_ns, raw.origin_ns)]
    kept = [
        launch
        for launch in raw.launches
        if any(start <= launch.host_start < end for start, end in windows)
    ]
    host = [part for slice_ in raw.host for part in _parts(slice_, windows)]
    later = max(int(max(windows[0][0], raw.origin_ns)) - raw.origin_ns, 0)
    raw = replace(
        raw,
        origin_ns=raw.origin_ns + later,
        origin_unix_ns=raw.origin_unix_ns + later,
        host=host,
    )
    return raw if len(kept) == len(raw.launches) else with_launches(raw, kept)


def _parts(slice_: HostSlice, windows: Sequence[Window]) -> list[HostSlice]:
    """What of a slice lies in each window; all of what a GPU did where it began in one."""
    if slice_.device >= 0:
        return [slice_] if any(a <= slice_.start < b for a, b in windows) else []
    found = []
    for start, end in windows:
        if start <= slice_.start < end and slice_.end <= end:
            return [slice_]
        if slice_.end >= start and slice_.start < end:
            first, last = int(max(slice_.start, start)), int(min(slice_.end, end))
            found.append(replace(slice_, start=first, end=last))
    return found


def with_launches(raw: RawRun, launches: Sequence[Launch]) -> RawRun:
    """A run with these launches, and of its kernels those that they are of."""
    used = sorted({launch.kernel for launch in launches})
    number = {old: new for new, old in enumerate(used)}
    return replace(
        raw,
        kernels=[raw.kernels[kernel] for kernel in used],
        launches=[replace(launch, kernel=number[launch.kernel]) for launch in launches],
    )
