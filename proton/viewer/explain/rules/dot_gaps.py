"""Time between dots in which nothing else is on record: issues, addresses, conversions."""

from __future__ import annotations

import numpy as np

from proton.base.units import duration
from proton.viewer.explain.dots import dot_gaps, samples_dots
from proton.viewer.explain.finding import LEAST_PART, Finding, Said, Unrecorded
from proton.viewer.explain.rule import Rule
from proton.viewer.explain.subject import Subject


def find(subject: Subject) -> Said:
    """Kernels whose tensor cores pause for what no scope names."""
    issues = np.array([s.kind == "issue" for s in subject.scopes], bool)
    for kernel in subject.kernels:
        if not kernel.on_gpu or not kernel.rows.size:
            continue
        if not kernel.has("dots"):
            yield Unrecorded(rule=RULE.name, kernel=kernel.label, needs="when dots run",
                             option='auto="dots"')  # fmt: skip
            continue
        if samples_dots(kernel):
            yield Unrecorded(rule=RULE.name, kernel=kernel.label, needs="all dots",
                             option="a session without every")  # fmt: skip
        found = dot_gaps(kernel)
        if found is None:
            continue
        left = found.gaps_ns - float(found.between[~issues].sum())
        part = left / max(found.time_ns, 1.0)
        if part < LEAST_PART:
            continue
        issued = float(found.between[issues].sum())
        each = left / max(found.pauses, 1.0)
        missing = [word for word in ("copies", "barriers") if not kernel.has(word)]
        yield Finding(
            rule=RULE.name,
            kernel=kernel.label,
            sentence=f"no dot runs for {duration(each)} between two of them, in no scope that "
            f"would say why: {100 * part:.0f} % of a program",
            gain_ns=kernel.gain(part),
            advice="issue the next dot before what depends on this one; addresses and masks out "
            "of the loop",
            record=f'auto="{",".join(["dots", *missing])}"' if missing else "scopes around the "
            "work between the dots",
            visits=found.visits,
            numbers={"gap_ns": each, "gap_percent": 100 * part,
                     "issue_percent": 100 * issued / max(found.time_ns, 1.0)},
            slices=kernel.open_launch(kernel.typical_launch),
        )  # fmt: skip


RULE = Rule(name="dot-gaps", about="pauses between dots that nothing explains", find=find)
