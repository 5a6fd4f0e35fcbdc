"""Work between dots that no dot of the program hides, such as a softmax.

With two warp groups that alternate, or the next dot issued before the work, an iteration takes the
longer of both and not their sum.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from proton.base.units import duration
from proton.viewer.explain.dots import DotGaps, dot_gaps
from proton.viewer.explain.finding import LEAST_PART, Finding, Said
from proton.viewer.explain.rule import Rule
from proton.viewer.explain.subject import KernelView, Subject


def find(subject: Subject) -> Said:
    """Scopes of the user's that stand between dots."""
    for kernel in subject.kernels:
        found = dot_gaps(kernel) if kernel.on_gpu and kernel.has("dots") else None
        if found is not None:
            yield from _findings(kernel, found)


def _findings(kernel: KernelView, found: DotGaps) -> Iterator[Finding]:
    subject = kernel.subject
    own = np.array([not s.work and not s.waits for s in subject.scopes], bool)
    parts = np.where(own, found.between, 0.0) / max(found.time_ns, 1.0)
    for scope in np.argsort(-parts, kind="stable").tolist():
        part = float(parts[scope])
        if part < LEAST_PART:
            return
        entry, rows = subject.scopes[scope], kernel.scope_rows[scope]
        saved = min(part, found.dots_ns / found.time_ns)
        each = found.between[scope] / found.programs
        yield Finding(
            rule=RULE.name,
            kernel=kernel.label,
            sentence=f"{entry.path} is exposed: for {duration(each)} of the "
            f"{duration(found.time_ns / found.programs)} of a program it runs while no dot does "
            f"({100 * part:.0f} %)",
            gain_ns=kernel.gain(saved),
            advice=f"overlap {entry.name} with dots: two warp groups that alternate (num_warps=8),"
            " or issue the next dot before it",
            visits=int(rows.size),
            error_ns=kernel.error_ns(rows),
            numbers={"exposed_ns": each, "exposed_percent": 100 * part,
                     "dots_percent": 100 * found.dots_ns / found.time_ns},
            slices=kernel.open(kernel.nearest(rows, float(subject.dur_ns[rows].mean()))),
            file=entry.file,
            line=entry.line,
        )  # fmt: skip


RULE = Rule(name="exposed", about="work between dots that no dot hides", find=find)
