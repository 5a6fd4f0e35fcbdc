"""Programs that wait for each other at a lock, of which one at a time goes on.

Without these waits a launch takes what its places need for the programs' work, at least what the
longest program needs for its own.
"""

from __future__ import annotations

import numpy as np

from proton.base.units import duration
from proton.viewer.explain.finding import LEAST_PART, Finding, Said
from proton.viewer.explain.rule import Rule
from proton.viewer.explain.subject import KernelView, Subject, per_launch


def find(subject: Subject) -> Said:
    """The lock of each kernel that its programs wait for longest."""
    for kernel in subject.kernels:
        waits = kernel.lock_waits
        if not waits.size:
            continue
        gain = kernel.time_ns * _idle(kernel)
        if gain >= LEAST_PART * kernel.time_ns:
            yield _finding(kernel, waits, gain)


def _idle(kernel: KernelView) -> float:
    """The part of launches that they would not take without waits."""
    programs, saved, times = kernel.programs, 0.0, 0.0
    for part in per_launch(programs.launch):
        slots = np.unique(np.stack([programs.place[part], programs.slot[part]]), axis=1).shape[1]
        # On the CPU waiting programs have a thread each, of which few have a core.
        places = slots if kernel.on_gpu else min(slots, kernel.subject.threads or slots)
        busy, start, dur = (c[part] for c in (kernel.busy_ns, programs.start_ns, programs.dur_ns))
        time = float((start + dur).max() - start.min())
        times += float(kernel.subject.launch_ns[programs.launch[part.start]])
        saved += max(0.0, time - max(float(busy.sum()) / places, float(busy.max())))
    return min(saved / max(times, 1.0), 1.0)


def _finding(kernel: KernelView, waits: np.ndarray, gain: float) -> Finding:
    subject, records = kernel.subject, kernel.records
    scope = records.scope[waits]
    sums = np.bincount(scope, subject.dur_ns[waits] * subject.weight[waits])
    worst = int(np.argmax(sums))
    own, lock = waits[scope == worst], subject.scopes[worst]
    part = subject.total(waits, subject.dur_ns[waits]) / max(kernel.unit_ns(), 1.0)
    held = _held_ns(kernel, worst)
    mean = float(np.average(subject.dur_ns[own], weights=subject.weight[own]))
    holds = f", which each holds for {duration(held)}" if held else ""
    return Finding(
        rule=RULE.name,
        kernel=kernel.label,
        sentence=f"programs wait {100 * part:.0f} % of their time for each other at a lock, "
        f"{duration(mean)} each time{holds}",
        gain_ns=gain,
        advice="do less while the lock is held, or leave partial results, which an atomic or "
        "another kernel combines",
        visits=int(own.size),
        error_ns=kernel.error_ns(own),
        numbers={"wait_ns": mean, "wait_percent": 100 * part} | ({"held_ns": held} if held else {}),
        slices=kernel.open(kernel.nearest(own, mean)),
        file=lock.file,
        line=lock.line,
    )  # fmt: skip


def _held_ns(kernel: KernelView, wait: int) -> float:
    """How long a lock is held in the median: from the end of a wait, the scope of which this is, to
    the unit's next release; 0 where none is on record."""
    subject, records = kernel.subject, kernel.records
    queue = subject.scopes[wait].queue
    is_release = np.array([s.queue == queue and s.kind == "issue" for s in subject.scopes], bool)
    rows = kernel.rows_where(is_release | (np.arange(is_release.size) == wait))
    rows = rows[np.lexsort((records.start_ns[rows], records.track[rows]))]
    first, then = rows[:-1], rows[1:]
    pairs = (
        (records.scope[first] == wait)
        & is_release[records.scope[then]]
        & (records.track[first] == records.track[then])
    )
    held = (records.start_ns[then] - records.end_ns[first])[pairs]
    return float(np.median(held)) if held.size else 0.0


RULE = Rule(name="locks", about="programs that wait for each other at a lock", find=find)
