"""Which operator asked for a launch, a kernel or a copy: the innermost one that was under way on
the thread that asked, when it did."""

import bisect
from collections.abc import Sequence

from proton.trace.model import OPERATOR, HostSlice, RawRun

NO_ONE = -1


class _Thread:
    """The operators of one thread, in order of time."""

    def __init__(self) -> None:
        self.rows: list[int] = []
        self.starts: list[int] = []
        self.ends: list[int] = []
        self.outer: list[int] = []  # the place here of the one around, or NO_ONE

    def add(self, row: int, slice_: HostSlice) -> None:
        """The next operator; of two that begin at once the longer comes first."""
        around = len(self.rows) - 1
        while around != NO_ONE and self.ends[around] < slice_.end:
            around = self.outer[around]
        self.rows.append(row)
        self.starts.append(slice_.start)
        self.ends.append(slice_.end)
        self.outer.append(around)

    def at(self, moment: int) -> int:
        """The row of the innermost one at a moment."""
        place = bisect.bisect_right(self.starts, moment) - 1
        while place != NO_ONE and self.ends[place] < moment:
            place = self.outer[place]
        return NO_ONE if place == NO_ONE else self.rows[place]


class Operators:
    """The operators of a run, by the threads that they ran on."""

    def __init__(self, raw: RawRun) -> None:
        self._threads: dict[int, _Thread] = {}
        rows = [row for row, slice_ in enumerate(raw.host) if slice_.kind == OPERATOR]
        for row in sorted(rows, key=lambda row: (raw.host[row].start, -raw.host[row].end)):
            self._threads.setdefault(raw.host[row].thread, _Thread()).add(row, raw.host[row])

    def at(self, thread: int, moment: int) -> int:
        """The innermost operator of a thread at a moment, a row of `RawRun.host`; or NO_ONE."""
        return self._threads[thread].at(moment) if thread in self._threads else NO_ONE

    def of_slices(self, host: Sequence[HostSlice]) -> list[int]:
        """Who asked for each slice: for what a GPU did, as far as it is known."""
        return [self.at(s.issuer, s.issued) if s.issued else NO_ONE for s in host]

    def of_launches(self, raw: RawRun) -> list[int]:
        """Who asked for each launch."""
        return [self.at(launch.thread, launch.host_start) for launch in raw.launches]
