"""What a program does behind its last dot, while no other program uses the tensor cores."""

from __future__ import annotations

import numpy as np

from proton.base.units import duration
from proton.viewer.explain.dots import dot_gaps
from proton.viewer.explain.finding import Finding, Said
from proton.viewer.explain.rule import Rule
from proton.viewer.explain.subject import Subject

LEAST = 0.1  # of a program


def find(subject: Subject) -> Said:
    """Kernels of several waves whose programs end with a long epilogue."""
    for kernel in subject.kernels:
        found = dot_gaps(kernel) if kernel.on_gpu and kernel.has("dots") else None
        if found is None or found.tail_ns < LEAST * found.time_ns:
            continue
        places = np.unique(kernel.programs.place).size * kernel.resident
        if kernel.programs.row.size / len(kernel.launches) < 1.5 * places:
            continue
        part = found.tail_ns / found.time_ns
        scope = int(np.argmax(found.behind))
        entry = subject.scopes[scope] if found.behind[scope] > 0 else None
        rows = kernel.scope_rows.get(scope, kernel.rows[:0])
        yield Finding(
            rule=RULE.name,
            kernel=kernel.label,
            sentence=f"behind its last dot a program goes on for "
            f"{duration(found.tail_ns / found.programs)} of "
            f"{duration(found.time_ns / found.programs)} ({100 * part:.0f} %)"
            + (f", most of it in {entry.path}" if entry else ""),
            gain_ns=kernel.gain(min(part, found.dots_ns / found.time_ns)),
            advice="persistent programs that load and multiply the next tile meanwhile "
            "(flatten=True), or two programs on an SM",
            record="" if entry else "a scope around the epilogue, to see what takes its time",
            visits=found.programs,
            error_ns=kernel.error_ns(rows),
            numbers={"epilogue_ns": found.tail_ns / found.programs, "epilogue_percent": 100 * part},
            slices=kernel.open(int(rows[0])) if rows.size else
            kernel.open_launch(kernel.typical_launch),
            file=entry.file if entry else "",
            line=entry.line if entry else 0,
        )  # fmt: skip


RULE = Rule(name="epilogue", about="work behind the last dot that nothing hides", find=find)
