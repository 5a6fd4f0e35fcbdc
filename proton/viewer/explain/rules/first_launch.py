"""A first launch that takes longer than the others: cold caches, pages that nobody had touched."""

from __future__ import annotations

import numpy as np

from proton.base.units import duration
from proton.viewer.explain.finding import Finding, Said
from proton.viewer.explain.rule import Rule
from proton.viewer.explain.subject import Subject

LEAST_LAUNCHES = 4
SLOWER = 1.5  # times the median of the others, and more than any other


def find(subject: Subject) -> Said:
    """Kernels whose first launch stands out."""
    for kernel in subject.kernels:
        first, others = float(kernel.launch_ns[0]), kernel.launch_ns[1:]
        if others.size + 1 < LEAST_LAUNCHES:
            continue
        typical = float(np.median(others))
        if first < SLOWER * max(typical, 1.0) or first <= others.max():
            continue
        yield Finding(
            rule=RULE.name,
            kernel=kernel.label,
            sentence=f"the first launch takes {duration(first)}, the others {duration(typical)}: "
            "caches were cold, or its memory had not been touched",
            gain_ns=first - typical,
            advice="launch once before you measure; statistics of launches without the first "
            "(every_launch leaves it out)",
            visits=others.size + 1,
            numbers={"first_ns": first, "others_ns": typical},
            slices=kernel.open_launch(int(kernel.launches[0])),
        )


RULE = Rule(name="first-launch", about="a first launch that is slower", find=find)
