"""Scopes that wait for asynchronous work which they issued themselves, where the compiler recorded
no copies and dots that would say more.

Dots go on while a loop waits for copies: an iteration that waits for nothing takes as long as they.
"""

from __future__ import annotations

import numpy as np

from proton.base.units import duration
from proton.viewer.explain.dots import iteration_and_dots
from proton.viewer.explain.finding import LEAST_PART, Finding, Said
from proton.viewer.explain.rule import Rule
from proton.viewer.explain.subject import KernelView, Subject


def find(subject: Subject) -> Said:
    """The scope of each kernel whose visits wait longest."""
    split = np.array([scope.waits for scope in subject.scopes], bool)
    paths = np.array([scope.path for scope in subject.scopes], object)
    for kernel in subject.kernels:
        if kernel.has("copies") and kernel.has("dots"):
            continue
        rows = kernel.rows_where(split)
        path = paths[subject.records.scope[rows]]
        for name in sorted(set(path.tolist())):
            own = rows[path == name]
            part = subject.total(own, subject.dur_ns[own]) / max(kernel.unit_ns(), 1.0)
            if part >= LEAST_PART:
                yield _finding(kernel, name, own, part)


def _finding(kernel: KernelView, path: str, rows: np.ndarray, part: float) -> Finding:
    subject, records = kernel.subject, kernel.records
    of_path = np.array([scope.path == path for scope in subject.scopes], bool)
    visits = records.visits.number[rows]
    whole = kernel.rows_where(of_path)
    whole = whole[np.isin(records.visits.number[whole], visits)]
    count = np.unique(visits).size
    waited, took = (float(subject.dur_ns[r].sum()) / count for r in (rows, whole))
    scope = subject.scopes[records.scope[rows[0]]]
    return Finding(
        rule=RULE.name,
        kernel=kernel.label,
        sentence=f"{path} waits {duration(waited)} of the {duration(took)} of each visit for work "
        "that goes on by itself",
        gain_ns=kernel.gain(part, _left(kernel, rows, part)),
        advice="issue it earlier: more num_stages, or other work between its issue and its use",
        record='auto="copies,dots" says what it waits for',
        visits=count,
        error_ns=kernel.error_ns(rows),
        numbers={"wait_ns": waited, "visit_ns": took, "wait_percent": 100 * part},
        slices=kernel.open(kernel.nearest(rows, float(subject.dur_ns[rows].mean()))),
        file=scope.file,
        line=scope.line,
    )


def _left(kernel: KernelView, rows: np.ndarray, part: float) -> float:
    """The part of the time that waits would still take, as dots do, of one that they take."""
    iteration, dots = iteration_and_dots(kernel, rows)
    if not dots:
        return 0.0
    records = kernel.records
    number = np.stack([records.track[rows], records.iteration[rows]])
    count = 1 + int((np.diff(number) != 0).any(0).sum())
    waited = max(float(kernel.subject.dur_ns[rows].sum()) / count, 1.0)
    gone = part * min(max(iteration - dots, 0.0), waited) / waited
    return (part - gone) / max(1 - gone, 0.01)


RULE = Rule(name="waits", about="scopes that wait for what they issued", find=find)
