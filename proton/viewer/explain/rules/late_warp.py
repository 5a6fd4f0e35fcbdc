"""A barrier at which one warp (a unit) comes later than all others, again and again.

A meeting is one slice of the barrier in each unit of a program: the k-th from the newest, so that
lost records of old meetings do no harm. The others wait from when the last but one came. Of `n`
units that share what the last one has more to do, each takes an `n`-th of it: that is not gained.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from proton.base.units import duration
from proton.trace.records import NONE
from proton.viewer.explain.finding import LEAST_PART, Finding, Said, Unrecorded
from proton.viewer.explain.rule import Rule
from proton.viewer.explain.subject import KernelView, Subject

LEAST_MEETINGS = 4
MOST_OFTEN = 0.6  # of the meetings at which a unit must be the last to be the one


@dataclass(frozen=True, kw_only=True)
class Meetings:
    """Meetings of a barrier: the slices that began first and last, how much later than the last but
    one the last did (`late_ns`), and how many units met."""

    first: np.ndarray  # rows of records
    last: np.ndarray
    late_ns: np.ndarray
    program: np.ndarray
    units: np.ndarray


def find(subject: Subject) -> Said:
    """The late unit of each kernel's barriers."""
    for kernel in subject.kernels:
        if not kernel.on_gpu or kernel.kernel.units < 2 or not kernel.rows.size:
            continue
        if not kernel.has("barriers"):
            yield Unrecorded(rule=RULE.name, kernel=kernel.label,
                             needs="when each warp comes to a barrier",
                             option='auto="barriers"')  # fmt: skip
            continue
        if "sample_warps" in kernel.kernel.options:
            yield Unrecorded(rule=RULE.name, kernel=kernel.label,
                             needs="when each warp comes to a barrier",
                             option="a session without sample_warps")  # fmt: skip
            continue
        barriers = np.array([scope.is_meeting for scope in subject.scopes], bool)
        rows = kernel.rows_where(barriers)
        found = [
            each
            for scope in np.unique(subject.records.scope[rows]).tolist()
            if (each := _of_barrier(kernel, scope)) is not None
        ]
        yield from found


def meetings(kernel: KernelView, scope: int) -> Meetings:
    """Those of a barrier at which several units of a program met."""
    records, rows = kernel.records, kernel.scope_rows[scope]
    track = records.track[rows]
    heads = np.flatnonzero(np.diff(track, prepend=NONE))
    sizes = np.diff(np.append(heads, track.size))
    back = np.repeat(heads + sizes, sizes) - np.arange(track.size)
    program = records.tracks.row[track]
    start = records.start_ns[rows]
    order = np.lexsort((start, back, program))
    rows, start, back, program = rows[order], start[order], back[order], program[order]
    begins = np.ones(rows.size, bool)
    begins[1:] = (back[1:] != back[:-1]) | (program[1:] != program[:-1])
    heads = np.flatnonzero(begins)
    ends = np.append(heads[1:], rows.size) - 1
    # The others were still there when the last came; else it was another meeting.
    met = (ends > heads) & (records.end_ns[rows[ends - 1]] >= records.start_ns[rows[ends]])
    first, last = heads[met], ends[met]
    return Meetings(
        first=rows[first],
        last=rows[last],
        late_ns=start[last] - start[last - 1],
        program=program[last],
        units=last - first + 1,
    )


def _of_barrier(kernel: KernelView, scope: int) -> Finding | None:
    """What there is to say of one barrier."""
    subject, records = kernel.subject, kernel.records
    found = meetings(kernel, scope)
    if found.last.size < LEAST_MEETINGS:
        return None
    unit = records.tracks.unit[records.track[found.last]]
    counts = np.bincount(unit)
    late = int(np.argmax(counts))
    own = unit == late
    often = counts[late] / unit.size
    programs = np.unique(found.program)
    time = float(subject.tables.residency.length(programs).sum())
    part = subject.total(found.last[own], found.late_ns[own]) / max(time, 1.0)
    if often < MOST_OFTEN or part < LEAST_PART:
        return None
    barrier, cause = subject.scopes[scope], _cause(kernel, late)
    mean = float(found.late_ns[own].mean())
    shared = part / float(found.units[own].mean())
    warp = int(records.tracks.warp[records.track[found.last[own][0]]])
    because, place = "", (barrier.file, barrier.line)
    if cause is not None:
        path, more = cause
        at = next(s for s in subject.scopes if s.path == path)
        place = (at.file, at.line) if at.file else place
        because = f"; its {path} takes {duration(more)} a program longer than the others'"
    return Finding(
        rule=RULE.name,
        kernel=kernel.label,
        sentence=f"warp {warp} is the last at {barrier.path} in {100 * often:.0f} % of "
        f"{found.last.size} meetings, by {duration(mean)} in the mean{because}",
        gain_ns=kernel.gain(part, shared),
        advice=f"share the work of warp {warp} among the warps of the program",
        visits=int(found.last.size),
        error_ns=kernel.error_ns(found.last),
        numbers={"late_ns": mean, "late_percent": 100 * part, "last_percent": 100 * often,
                 "warp": warp, "unit": late},
        slices=kernel.open(found.first[own][np.argmin(np.abs(found.late_ns[own] - mean))]),
        file=place[0],
        line=place[1],
    )  # fmt: skip


def _cause(kernel: KernelView, unit: int) -> tuple[str, float] | None:
    """The scope in which a unit spends more time of its own than the others do, and how much more
    in a program; None where nothing but waits is on record."""
    subject, records = kernel.subject, kernel.records
    rows = kernel.rows_where(~subject.scope_is_wait)
    if not rows.size:
        return None
    units = records.tracks.unit[records.track[rows]]
    scope = records.scope[rows]
    shape = kernel.kernel.units, len(subject.scopes)
    key = units * shape[1] + scope
    sums = np.bincount(
        key, subject.self_ns[rows] * subject.weight[rows], shape[0] * shape[1]
    ).reshape(shape)
    more = sums[unit] - np.median(np.delete(sums, unit, axis=0), axis=0)
    worst = int(np.argmax(more))
    programs = np.unique(records.tracks.row[records.track[rows]]).size
    return (subject.scopes[worst].path, float(more[worst]) / programs) if more[worst] > 0 else None


RULE = Rule(name="late-warp", about="barriers at which one warp comes last", find=find)
