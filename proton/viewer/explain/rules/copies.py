"""Copies that are not hidden: a pipelined loop waits in each iteration for the data of its dots.

A copy takes `L` from its issue to its end. In a loop whose iteration takes `C` without that wait,
`s` copies ahead hide it as long as `s * C` is no less than `L`; else an iteration takes `L / s`.
So `L / C` iterations ahead would hide it, each of which takes a stage of shared memory. `C` is
without what recording takes. No iteration takes less than its dots, which are seen to take as long
as something waits for them. The estimate holds while copies take no longer as more of them are
under way: where the memory is busy already (the counter `dram`), there is no finding.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from proton.base.units import duration
from proton.trace.records import NONE
from proton.viewer.explain.finding import LEAST_PART, Finding, Said, Unrecorded
from proton.viewer.explain.rule import Rule
from proton.viewer.explain.subject import KernelView, Subject
from proton.viewer.tables import counters

BUSY_DRAM = 80.0  # percent of its peak, from which more copies ahead bring nothing
LEAST_AHEAD = 0.25  # of an iteration; copies issued later than that are not ahead
KIB = 1024


@dataclass(frozen=True, kw_only=True)
class _Loop:
    """Means of a loop's iterations: what one takes, what it waits for copies, and what its records
    and its dots take; how many iterations copies are ahead, and what one takes."""

    iteration_ns: float
    wait_ns: float
    record_ns: float
    dot_ns: float
    ahead: int
    copy_ns: float
    part: float  # of the time of the waiting units
    waits: np.ndarray

    @property
    def work_ns(self) -> float:
        """An iteration without the wait, and without records."""
        return max(self.iteration_ns - self.wait_ns - self.record_ns, 1.0)

    def iteration_with(self, ahead: int) -> float:
        """What an iteration would take with so many copies ahead."""
        return max(self.work_ns, self.dot_ns, self.copy_ns / max(ahead, 1))


def find(subject: Subject) -> Said:
    """Loops that wait for their copies, by kernel."""
    for kernel in subject.kernels:
        if not kernel.on_gpu or not kernel.rows.size:
            continue
        if not kernel.has("copies") and not kernel.has("loads"):
            needs = "when copies are issued, and who waits for them"
            yield Unrecorded(
                rule=RULE.name, kernel=kernel.label, needs=needs, option='auto="copies"'
            )
            continue
        loop = _loop(kernel)
        if loop is not None and loop.part >= LEAST_PART and not _is_memory_busy(kernel):
            yield _finding(kernel, loop)


def _loop(kernel: KernelView) -> _Loop | None:
    """Its loop with copies, from those flights whose wait stands in a loop."""
    subject, records = kernel.subject, kernel.records
    flights = records.flights
    loads = np.array([s.work == "copies" and s.queue != "stores" for s in subject.scopes], bool)
    waits = kernel.rows_where(loads & subject.scope_is_wait)
    track = records.track[waits]
    # The first wait of a loop is for the pipeline to fill, whatever its depth.
    later = (np.diff(track, prepend=NONE) == 0) & (records.iteration[waits] != 0)
    waits, track = waits[later], track[later]
    if not waits.size:
        return None
    # An iteration may wait several times, as for keys and then for values.
    same = track[1:] == track[:-1]
    number = records.iteration[waits]
    again = same & (number[1:] == number[:-1]) & (number[1:] != NONE)
    each = waits.size / (waits.size - int(again.sum()))
    apart = (records.start_ns[waits][1:] - records.start_ns[waits][:-1])[same]
    if apart.size < 2:
        return None
    waited = np.maximum(subject.dur_ns[waits] - kernel.cost_ns(waits), 0.0)
    own = np.isin(flights.wait, waits)
    issue, wait = flights.issue[own], flights.wait[own]
    if not issue.size:
        return None
    iteration = each * float(apart.mean())
    issued, begun = records.start_ns[issue], records.start_ns[wait]
    early = float(np.mean(begun - issued)) >= LEAST_AHEAD * iteration
    units = np.unique(track)
    rows = kernel.rows[records.iteration[kernel.rows] != NONE]
    rows = rows[np.isin(records.track[rows], units)]
    return _Loop(
        iteration_ns=iteration,
        wait_ns=each * float(waited.mean()),
        record_ns=float(kernel.record_ns(rows).sum()) / max(kernel.iterations(rows), 1.0),
        dot_ns=_dot_ns(kernel, units),
        ahead=max(round(_ahead(kernel, waits, issue, wait) / each), 1) if early else 0,
        copy_ns=float(np.mean(records.end_ns[wait] - issued)),
        part=subject.total(waits, waited) / max(kernel.unit_ns(units), 1.0),
        waits=waits,
    )


def _dot_ns(kernel: KernelView, units: np.ndarray) -> float:
    """What the dots of an iteration take: each as long as those for which something waited longer
    than they went on before. 0 where nothing did."""
    subject, records, flights = kernel.subject, kernel.records, kernel.records.flights
    dots = np.array([scope.work == "dots" for scope in subject.scopes], bool)
    own = dots[records.scope[flights.issue]] & np.isin(records.track[flights.issue], units)
    issue, wait = flights.issue[own], flights.wait[own]
    span = records.end_ns[wait] - records.start_ns[issue]
    bound = 2 * subject.dur_ns[wait] > span
    each = issue.size / max(kernel.iterations(np.sort(issue)), 1.0)
    return each * float(np.median(span[bound])) if bound.any() else 0.0


def _ahead(kernel: KernelView, waits: np.ndarray, issue: np.ndarray, wait: np.ndarray) -> int:
    """How many waits of a unit, in the median, end from the issue of a copy to the end of the wait
    for it."""
    records = kernel.records
    track, end = records.track[waits].astype(np.int64), records.end_ns[waits]
    zero, span = int(end.min()), int(end.max() - end.min()) + 2
    keys = track * span + (end - zero)
    of = records.track[wait].astype(np.int64) * span
    since = np.clip(records.start_ns[issue] - zero, 0, span - 1)
    before = np.searchsorted(keys, of + since, side="right")
    at = np.searchsorted(waits, wait)
    return max(int(np.median(at - np.minimum(before, at) + 1)), 1)


def _is_memory_busy(kernel: KernelView) -> bool:
    """Whether the DRAM's counter says that more copies would only wait for each other."""
    table = counters.by_kernel(kernel.subject.tables.raw, kernel.subject.tables.launches)
    own = table[(table["kernel"] == kernel.kernel.name) & (table["counter"] == "dram")]
    return bool((own["mean"] >= BUSY_DRAM).any())


def _finding(kernel: KernelView, loop: _Loop) -> Finding:
    wanted = math.ceil(loop.copy_ns / loop.work_ns)
    given = kernel.number("num_stages")
    stages = max(given if given else loop.ahead + 1, 1)
    ahead, advice, memory = _advice(kernel, stages, max(wanted, loop.ahead + 1) - loop.ahead, loop)
    saved = min(max(0.0, loop.work_ns + loop.wait_ns - loop.iteration_with(ahead)), loop.wait_ns)
    gone = loop.part * saved / max(loop.wait_ns, 1.0)  # of the time; `left` is of what remains
    left = (loop.part - gone) / max(1 - gone, 0.01)
    issued = f"issued {loop.ahead} iteration{'s' * (loop.ahead != 1)} ahead"
    issued = issued if loop.ahead else "issued in the iteration that needs them"
    row = kernel.nearest(loop.waits, loop.wait_ns)
    scope = kernel.subject.scopes[kernel.records.scope[row]]
    return Finding(
        rule=RULE.name,
        kernel=kernel.label,
        sentence=f"each iteration waits {duration(loop.wait_ns)} of {duration(loop.iteration_ns)} "
        f"for copies: they are {issued} and take as long as the work of "
        f"{loop.copy_ns / loop.work_ns:.1f} iterations, {duration(loop.work_ns)} each",
        gain_ns=kernel.gain(loop.part, left),
        advice=advice,
        visits=loop.waits.size,
        error_ns=kernel.error_ns(loop.waits),
        numbers={
            "wait_ns": loop.wait_ns, "iteration_ns": loop.iteration_ns, "copy_ns": loop.copy_ns,
            "ahead": loop.ahead, "wait_percent": 100 * loop.part, **memory,
        },
        slices=kernel.open(row),
        file=scope.file,
        line=scope.line,
    )  # fmt: skip


def _advice(
    kernel: KernelView, stages: int, more: int, loop: _Loop
) -> tuple[int, str, dict[str, float]]:
    """How many copies ahead to have, the words for it, and the shared memory that it takes."""
    shared, chip = kernel.number("shared"), kernel.architecture
    if kernel.has_roles:
        return loop.ahead + more, "more buffers between the groups of warps", {}
    # A copy that is not ahead may have a buffer beside that of the dot, so that the memory of a
    # stage is not known.
    if not shared or chip is None or not loop.ahead:
        return loop.ahead + more, f"num_stages={stages + more}", {"num_stages": stages + more}
    each = shared / stages
    fitting = int(chip.shared_bytes // each)
    limit = chip.shared_bytes
    if fitting <= stages:
        text = (
            f"smaller blocks, and then more stages: {shared // KIB} of {limit // KIB} KB of shared "
            f"memory are taken, a stage takes {each / KIB:.0f}"
        )
        return loop.ahead + more, text, {"shared_bytes": shared, "limit_bytes": limit}
    better = min(stages + more, fitting)
    taken = better * each
    text = f"num_stages={better} (shared memory: {taken / KIB:.0f} of {limit // KIB} KB)"
    return (
        loop.ahead + better - stages,
        text,
        {"shared_bytes": taken, "limit_bytes": limit, "num_stages": better},
    )


RULE = Rule(name="copies", about="waits for copies that a deeper pipeline would hide", find=find)
