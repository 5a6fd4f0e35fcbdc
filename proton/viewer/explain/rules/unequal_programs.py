"""Launches that wait for few programs which take longer than the others.

What a program takes is the median of its launches, without its waits at locks: what an operating
system takes from one launch is not the kernel's. How long places are idle is that of such programs,
each on the place that is free first.
"""

from __future__ import annotations

import heapq

import numpy as np

from proton.base.units import duration
from proton.base.words import counted
from proton.viewer.explain.balance import Balance, balance
from proton.viewer.explain.finding import LEAST_PART, Finding, Said
from proton.viewer.explain.rule import Rule
from proton.viewer.explain.subject import KernelView, Subject
from proton.viewer.tables.first_view import typical

LEAST = 0.15  # of a launch
NAMED = 3  # programs
LONG = 1.3  # a program is long that takes so many times the median
MATTERS = 0.25  # of the longest: what takes less is not the one that is waited for


def find(subject: Subject) -> Said:
    """The long programs of each kernel."""
    for kernel in subject.kernels:
        found = balance(kernel)
        if (found.programs > 1).any():
            said = _finding(kernel, found)
            if said is not None:
                yield said


def _finding(kernel: KernelView, found: Balance) -> Finding | None:
    programs = kernel.programs
    places = int((found.places * found.most).max())
    if not kernel.on_gpu:  # another thread may have come too late for all of them
        places = max(places, kernel.subject.threads)
    times = kernel.subject.launch_ns[found.launch].astype(np.float64)
    unequal: list[tuple[float, float, np.ndarray]] = []  # lost time, idle part, launches
    for some in found.by_size():
        _, dur = _lengths(kernel, found.launch[some])
        if dur.size >= 2 and dur.max() >= LONG * np.median(dur):
            part = idle(dur, places)
            cost = part * float(found.span_ns[some].sum())
            unequal += [(cost, part, some)] if part >= LEAST else []
    lost = sum(each for each, _, _ in unequal) / max(float(times.sum()), 1.0)
    if lost < LEAST_PART:
        return None
    _, part, some = max(unequal, key=lambda each: each[0])
    part *= float(np.median(found.span_ns[some] / np.maximum(times[some], 1)))
    launch = int(found.launch[some[typical(times[some])]])
    own = np.flatnonzero(programs.launch == launch)
    number, length = _lengths(kernel, found.launch[some])
    dur = length[np.searchsorted(number, programs.number[own])]
    order = own[np.argsort(-dur, kind="stable")]
    longest, median = float(dur.max()), float(np.median(dur))
    long = int((dur >= max(LONG * median, MATTERS * longest)).sum())
    where = "SM" if kernel.on_gpu else "thread"
    names = ", ".join(map(str, sorted(programs.number[order[: min(long, NAMED)]].tolist())))
    names += f" and {long - NAMED} more" if long > NAMED else ""
    scope, share = _largest(kernel, int(programs.row[order[0]]))
    inside = f", {100 * share:.0f} % of it in {scope}" if scope else ""
    return Finding(
        rule=RULE.name,
        kernel=kernel.label,
        sentence=f"programs are unequal: the longest takes {duration(longest)}{inside}, the median "
        f"{duration(median)}; for {100 * part:.0f} % of a launch places have no work left",
        gain_ns=kernel.time_ns * lost,
        advice=f"launch the long {'program' if long == 1 else 'programs'} ({names}) first, split "
        "them, or let persistent programs "
        f"take tiles from a counter, so that each {where} gets equal work",
        visits=int(sum(found.programs[each].sum() for _, _, each in unequal)),
        error_ns=kernel.error_ns(kernel.rows) if kernel.rows.size else 0.0,
        numbers={"longest_ns": longest, "median_ns": median, "idle_percent": 100 * part,
                 "places": places},
        slices=kernel.open_launch(launch),
        record="" if kernel.rows.size else f"scopes in {counted(1, 'kernel')}, to see where",
    )  # fmt: skip


def idle(lengths: np.ndarray, places: int) -> float:
    """The part of a launch in which places have nothing left of programs of these lengths, beyond
    what equal programs would leave: each goes to the place that is free first."""
    free = [0] * min(places, lengths.size)
    for length in lengths.tolist():
        heapq.heapreplace(free, free[0] + length)
    whole = max(max(free), 1)
    equal = max(-(-lengths.size // places) * float(lengths.mean()), lengths.sum() / places)
    return max(0.0, 1 - equal / whole)


def _lengths(kernel: KernelView, launches: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The programs of some launches by number, and what each takes, in the median of these."""
    programs = kernel.programs
    own = np.flatnonzero(np.isin(programs.launch, launches))
    busy = kernel.busy_ns
    order = own[np.lexsort((busy[own], programs.number[own]))]
    number, first, count = np.unique(programs.number[order], return_index=True, return_counts=True)
    return number, np.asarray(busy[order][first + count // 2])


def _largest(kernel: KernelView, program: int) -> tuple[str, float]:
    """The scope with most time of its own in a program, and its part of the units' time there."""
    subject, records = kernel.subject, kernel.records
    rows = kernel.rows[records.tracks.row[records.track[kernel.rows]] == program]
    if not rows.size:
        return "", 0.0
    sums = np.bincount(records.scope[rows], subject.self_ns[rows] * subject.weight[rows])
    worst = int(np.argmax(sums))
    whole = kernel.unit_ns(np.unique(records.track[rows]))
    return subject.scopes[worst].path, float(sums[worst]) / max(whole, float(sums.sum()), 1.0)


RULE = Rule(name="unequal-programs", about="launches that wait for few long programs", find=find)
