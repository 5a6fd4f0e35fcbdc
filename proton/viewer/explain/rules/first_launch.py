"""A first launch that takes longer than the others: cold caches, pages that nobody had touched,
threads that had to start."""

from __future__ import annotations

import numpy as np

from proton.base.units import duration
from proton.viewer.explain.finding import Finding, Said
from proton.viewer.explain.rule import Rule
from proton.viewer.explain.subject import Subject


def find(subject: Subject) -> Said:
    """Kernels whose first launch stands out."""
    for kernel in subject.kernels:
        if not kernel.slow_starts:
            continue
        slow = list(kernel.slow_starts)
        others = np.concatenate(list(kernel.slow_starts.values()))
        first = float(np.median(kernel.launch_ns[slow]))
        typical = float(np.median(kernel.launch_ns[others]))
        of_each = f" of {len(slow)} processes" if len(slow) > 1 else ""
        yield Finding(
            rule=RULE.name,
            kernel=kernel.label,
            sentence=f"the first launch{of_each} takes {duration(first)}, the others "
            f"{duration(typical)}: cold caches, memory that had not been touched, or threads that "
            "started",
            gain_ns=kernel.start_ns,
            happens_once=True,
            advice="launch once before you measure; statistics of launches without the first "
            "(every_launch leaves it out)",
            visits=len(slow) + others.size,
            numbers={"first_ns": first, "others_ns": typical},
            slices=kernel.open_launch(int(kernel.launches[slow[0]])),
        )


RULE = Rule(name="first-launch", about="a first launch that is slower", find=find)
