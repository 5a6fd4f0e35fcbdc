"""What differs between two runs of a kernel: what it was compiled for, its resources, its waits,
and the time of its launches and scopes. `explain --against` says so."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

import numpy as np

from proton.base.symbols import shortened
from proton.base.units import duration
from proton.trace.model import TUNED_NS
from proton.viewer.compare.matching import arguments, match
from proton.viewer.compare.samples import Group, Side, Variant
from proton.viewer.explain.subject import KernelView, Subject
from proton.viewer.run import Run
from proton.viewer.tables.labels import SIGNATURE

RESOURCES = {
    "num_stages": "",
    "num_warps": "",
    "registers": "",
    "spills": "",
    "shared": " bytes",
    "blocks_per_sm": " programs an SM",
}
LEAST = 0.02  # of a time: less is not said
LEAST_NS = 1.0  # nor is what reads as nothing
Value = str | float | None
Difference = dict[str, Value]  # kernel, what, before, after, sentence


def against(run: Run, other: Run) -> list[Difference]:
    """What of `run` is not as in `other`, kernel by kernel: rows of kernel, what, before (of
    `other`), after, and a sentence."""
    one, before = _kernels(run), _kernels(other)
    pairs = match([Group(v, "") for v in before], [Group(v, "") for v in one])
    found: list[Difference] = []
    for variant, view in one.items():
        if variant in pairs:
            found += _of_kernel(view, before[pairs[variant]])
        else:
            found.append(_said(view.label, "kernel", None, None, "is in this run alone"))
    left = [view for variant, view in before.items() if variant not in pairs.values()]
    return found + [
        _said(view.label, "kernel", None, None, "is in the other run alone") for view in left
    ]


def _kernels(run: Run) -> dict[Variant, KernelView]:
    """The kernels that were launched, by what tells them apart in any process."""
    views = {id(view.kernel): view for view in Subject(run).kernels}
    variants = Side.variants(run.kernels)
    return {v: views[id(k)] for v, k in zip(variants, run.kernels, strict=True) if id(k) in views}


def _of_kernel(view: KernelView, was: KernelView) -> Iterator[Difference]:
    label = view.label
    new, old = (arguments(str(v.kernel.options.get(SIGNATURE, ""))) for v in (view, was))
    for name in dict.fromkeys((*old, *new)):
        if old.get(name) != new.get(name):
            text = f"{name} is {new.get(name, 'none')}, was {old.get(name, 'none')}"
            yield _said(label, name, old.get(name), new.get(name), text)
    for name, unit in RESOURCES.items():
        old_, new_ = was.number(name), view.number(name)
        if old_ != new_:
            text = f"{name}: {_or_none(new_)}{unit}, was {_or_none(old_)}"
            yield _said(label, name, old_, new_, text)
    old_, new_ = (prod(v.subject.tables.raw.launches[v.typical_launch].grid) for v in (was, view))
    if old_ != new_:
        yield _said(label, "programs", old_, new_, f"a launch has {new_} programs, had {old_}")
    old_, new_ = was.number(TUNED_NS), view.number(TUNED_NS)
    if old_ and new_:
        text = f"tuning measured {duration(new_)} a launch, without records, and {duration(old_)}"
        yield _said(label, TUNED_NS, old_, new_, f"{text} ({100 * (new_ / old_ - 1):+.0f} %)")
    a, b = (_waited(v) for v in (was, view))
    if abs(a - b) >= 100 * LEAST:
        yield _said(
            label,
            "wait_percent",
            a,
            b,
            f"waits (but for dots) take {b:.0f} % of the time, took {a:.0f}",
        )
    yield from _times(view, was)


def _times(view: KernelView, was: KernelView) -> Iterator[Difference]:
    """The median launch, and the time of each scope a launch; the largest change first."""
    a, b = (float(np.median(v.launch_ns)) for v in (was, view))
    rows = [("launch_ns", "a launch takes", a, b)]
    mine, theirs = _scopes(view), _scopes(was)
    rows += [
        (
            f"{path}_ns",
            f"the {path} of all units of a launch takes",
            theirs.get(path, 0.0),
            mine.get(path, 0.0),
        )
        for path in {**theirs, **mine}
    ]
    rows[1:] = sorted(rows[1:], key=lambda row: -abs(row[3] - row[2]))
    for what, said, before, after in rows:
        if abs(after - before) >= max(LEAST * max(before, after), LEAST_NS):
            change = f" ({100 * (after / before - 1):+.0f} %)" if before else ""
            yield _said(view.label, what, before, after,
                        f"{said} {duration(after)}, took {duration(before)}{change}")  # fmt: skip


def _scopes(view: KernelView) -> dict[str, float]:
    """The time of its own of each scope in a launch."""
    subject = view.subject
    found: dict[str, float] = {}
    for scope, rows in view.scope_rows.items():
        path = subject.scopes[scope].path
        found[path] = found.get(path, 0.0) + subject.total(rows, subject.self_ns[rows])
    return {path: ns / view.launches.size for path, ns in found.items()}


def _waited(view: KernelView) -> float:
    """The part of the time of its units in which they wait for other than dots, in percent."""
    subject = view.subject
    dots = np.array([scope.work == "dots" for scope in subject.scopes], bool)
    rows = view.rows_where(subject.scope_is_wait & ~dots)
    return 100 * subject.total(rows, subject.self_ns[rows]) / max(view.unit_ns(), 1.0)


def _or_none(value: int | None) -> str:
    return "not known" if value is None else str(value)


def _said(kernel: str, what: str, before: Value, after: Value, sentence: str) -> Difference:
    return {"kernel": kernel, "what": what, "before": before, "after": after,
            "sentence": f"{shortened(kernel)}: {sentence}"}  # fmt: skip
