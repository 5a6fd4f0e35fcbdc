"""Scopes that are so short that recording them takes a good part of the time.

Records that a ring buffer lost had their cost, too: those that are there stand for all that were
written. What a record keeps the kernel from doing at once is not seen in a run; launches without
records (`compare_run_time`) tell all that recording costs.
"""

from __future__ import annotations

import numpy as np

from proton.base.units import duration
from proton.viewer.explain.finding import Finding, Said
from proton.viewer.explain.rule import Rule
from proton.viewer.explain.subject import Subject

LEAST = 0.1  # of the time of the units
SHORT = 10.0  # a scope is short whose slices take less than so many times what one costs


def find(subject: Subject) -> Said:
    """Kernels whose short scopes cost too much."""
    records = subject.records
    for kernel in subject.kernels:
        ran = kernel.programs
        some = np.isin(ran.row, records.tracks.row[kernel.tracks])  # by sample_programs not all
        part_of = float(ran.dur_ns[some].sum()) / max(float(ran.dur_ns.sum()), 1.0)
        units = kernel.unit_ns() / max(part_of, 1e-9)
        short: list[tuple[float, int, float]] = []  # cost, scope, time
        for scope, rows in kernel.scope_rows.items():
            each = kernel.record_ns(rows)
            own = float(np.median(subject.self_ns[rows]))  # another process may stretch a few
            if own < SHORT * float(each.mean()):
                short.append((float((each * subject.written[rows]).sum()), scope, own))
        cost = sum(part for part, _, _ in short)
        measured = kernel.recording_part
        # A part of the units' time, which is one of what launches take while programs run.
        part = min(cost / max(units, 1.0), 1.0) * kernel.ran_ns / max(kernel.time_ns, 1.0)
        part = part if measured is None else measured
        if not short or part < LEAST:
            continue
        scope, own = max(short)[1:]
        rows, entry = kernel.scope_rows[scope], subject.scopes[scope]
        price = float(kernel.record_ns(rows).mean())
        least = "at least " if kernel.on_gpu and measured is None else ""
        count, every = (round(float(subject.written[r].sum())) for r in (
            rows, np.concatenate([kernel.scope_rows[s] for _, s, _ in short])))  # fmt: skip
        about = "about " if (subject.written[rows] > 1).any() else ""  # of what was lost
        all_short = f" ({every} with other short scopes)" if every > count else ""
        yield Finding(
            rule=RULE.name,
            kernel=kernel.label,
            sentence=f"recording takes {least}{100 * part:.0f} % of the time: {entry.path} itself "
            f"is {_duration(own)} long, its record costs {duration(price)}, and there are "
            f"{about}{count}{all_short}",
            gain_ns=kernel.time_ns * part,
            advice=(f'leave "{entry.work}" out of auto=' if entry.work else
                    f"leave {entry.name} out, draw it wider")
            + ", or record one iteration of some (every=16)",
            record="compare_run_time=True times the kernel without records" if least else "",
            visits=int(np.unique(records.visits.number[rows]).size),
            error_ns=kernel.error_ns(rows),
            numbers={"cost_percent": 100 * part, "own_ns": own, "record_ns": price,
                     "slices": int(sum(kernel.scope_rows[s].size for _, s, _ in short))},
            slices=kernel.open(int(rows[0])),
            file=entry.file,
            line=entry.line,
        )  # fmt: skip


def _duration(ns: float) -> str:
    """Of less than a clock tells nothing but that is true."""
    return duration(ns) if ns >= 1 else "less than 1 ns"


RULE = Rule(name="fine-scopes", about="scopes too short for what a record costs", find=find)
