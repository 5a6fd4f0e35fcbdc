"""When no dot of a program was under way, and what the program did then.

dots      ====      ====      ====
program |------------------------------|
         head  gap       gap       tail
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from proton.viewer.explain.rules.utilization import GOOD
from proton.viewer.explain.subject import KernelView, is_dot


@dataclass(frozen=True, kw_only=True)
class DotGaps:
    """Of a kernel's programs with dots, in ns over all of them: what they took, from the start to
    the first dot (`head`), between dots (`gaps`), from the last to the end (`tail`), and with dots
    under way (`dots`).

    Where records were lost, the time ahead of the first dot that is left counts as that behind it.

    `between` and `behind` are the parts of gaps and tails by scope, in the scopes' own time, as a
    mean over the units that recorded it.
    """

    programs: int
    visits: int
    pauses: float  # between dots
    time_ns: float
    head_ns: float
    gaps_ns: float
    tail_ns: float
    dots_ns: float
    between: np.ndarray
    behind: np.ndarray


def samples_dots(kernel: KernelView) -> bool:
    """True where only some of the dots that a unit does itself are on record."""
    plain = kernel.rows_where(np.array([is_dot(s) for s in kernel.subject.scopes], bool))
    return bool((kernel.subject.sampled[plain] > 1).any())


def dot_gaps(kernel: KernelView) -> DotGaps | None:
    """Those of a kernel; None where dots are not on record, or not all."""
    subject, records = kernel.subject, kernel.records
    flights = records.flights
    work = np.array([s.work == "dots" for s in subject.scopes], bool)
    own = work[records.scope[flights.issue]] & np.isin(flights.issue, kernel.rows)
    issue, wait = flights.issue[own], flights.wait[own]
    plain = kernel.rows_where(np.array([is_dot(s) for s in subject.scopes], bool))
    first = np.append(issue, plain)
    if not first.size or samples_dots(kernel):
        return None
    program = records.tracks.row[records.track[first]]
    start = np.append(records.start_ns[issue], records.start_ns[plain])
    end = np.append(records.end_ns[wait], records.end_ns[plain])
    used, number = np.unique(program, return_inverse=True)
    axis = _Axis(kernel, used)
    begin, finish = axis.joined(number.ravel(), start, end)
    heads = np.searchsorted(begin, axis.begin, side="left")
    tails = np.searchsorted(begin, axis.end, side="left") - 1
    is_first = np.zeros(begin.size, bool)
    is_first[heads] = True
    gap_from, gap_to = finish[:-1][~is_first[1:]], begin[1:][~is_first[1:]]
    between, behind = (
        axis.own_time(*span) for span in ((gap_from, gap_to), (finish[tails], axis.end))
    )
    head = begin[heads] - axis.begin
    dots_ns, gaps_ns = float((finish - begin).sum()), float((gap_to - gap_from).sum())
    unseen = float(head[np.isin(used, kernel.lossy)].sum())
    scale = 1 + unseen / max(dots_ns + gaps_ns, 1.0)
    return DotGaps(
        programs=used.size,
        visits=first.size,
        pauses=scale * gap_from.size,
        time_ns=float((axis.end - axis.begin).sum()),
        head_ns=float(head.sum()) - unseen,
        gaps_ns=scale * gaps_ns,
        tail_ns=float((axis.end - finish[tails]).sum()),
        dots_ns=scale * dots_ns,
        between=scale * between,
        behind=behind,
    )


def iteration_and_dots(kernel: KernelView, rows: np.ndarray) -> tuple[float, float]:
    """What an iteration of the loop takes in which some slices lie, and what it would take at least
    for dots that go on by themselves, at the part of the chip's peak that kernels reach, ns; both 0
    where that is not known."""
    records = kernel.records
    scope = records.scopes[records.scope[rows[0]]]
    cycles = kernel.dot_cycles(scope.file, scope.line)
    number = np.stack([records.track[rows], records.iteration[rows]])
    first = np.append(True, (np.diff(number) != 0).any(0))  # of an iteration
    track, step = np.diff(number[:, first])
    apart = np.diff(records.start_ns[rows[first]])[(track == 0) & (step == 1)]
    if not cycles or not apart.size:
        return 0.0, 0.0
    return float(apart.mean()), cycles * kernel.cycle_ns * kernel.resident / (GOOD / 100)


class _Axis:
    """The programs one behind another on one axis, so that none overlaps the next."""

    def __init__(self, kernel: KernelView, programs: np.ndarray) -> None:
        self.kernel, self.programs = kernel, programs
        found = kernel.subject.tables.residency
        at = np.searchsorted(found.row, programs)
        start, length = found.start_ns[at], found.end_ns[at] - found.start_ns[at]
        self.begin = np.cumsum(length + 1) - length
        self.end = self.begin + length
        self.shift = self.begin - start

    def joined(
        self, number: np.ndarray, start: np.ndarray, end: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """When at least one of some intervals of programs is open."""
        low, high = self.begin[number], self.end[number]
        start = np.clip(start + self.shift[number], low, high)
        end = np.clip(end + self.shift[number], low, high)
        order = np.argsort(start, kind="stable")
        start, latest = start[order], np.maximum.accumulate(end[order])
        begins = np.ones(start.size, bool)
        begins[1:] = start[1:] > latest[:-1]
        return start[begins], latest[np.append(begins[1:], True)]

    def own_time(self, begin: np.ndarray, end: np.ndarray) -> np.ndarray:
        """What lies in some intervals on the axis of each scope's own time: sums over programs, of
        means over the units that recorded the scope."""
        kernel, records = self.kernel, self.kernel.records
        rows = kernel.rows[np.isin(records.tracks.row[records.track[kernel.rows]], self.programs)]
        track = records.track[rows]
        shift = self.shift[np.searchsorted(self.programs, records.tracks.row[track])]
        before = np.concatenate([[0], np.cumsum(end - begin)])

        def covered(time: np.ndarray) -> np.ndarray:
            at = np.searchsorted(begin, time, side="right")
            last = np.maximum(at - 1, 0)
            inside = np.minimum(time, end[last]) - begin[last]
            return np.asarray(np.where(at > 0, before[last] + inside, 0))

        if not begin.size or not rows.size:
            return np.zeros(len(records.scopes))
        inside = covered(records.end_ns[rows] + shift) - covered(records.start_ns[rows] + shift)
        own = kernel.subject.own(rows, inside) * kernel.subject.sampled[rows]
        scope = records.scope[rows]
        count = len(records.scopes)
        sums = np.bincount(scope, own, count)
        pairs = np.unique(scope.astype(np.int64) * records.tracks.row.size + track)
        units = np.bincount(pairs // records.tracks.row.size, minlength=count)
        return np.asarray(sums * self.programs.size / np.maximum(units, 1))
