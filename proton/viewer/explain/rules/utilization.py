"""Kernels that use neither the tensor cores nor the memory for what these can do.

Counters of the hardware say so, or the work of slices and the chip's peaks (`bytes`, `flops16`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from proton.viewer.explain.finding import Finding, Said, Unrecorded
from proton.viewer.explain.rule import Rule
from proton.viewer.explain.subject import KernelView, Subject
from proton.viewer.tables import counters
from proton.viewer.tables.labels import variant_numbers
from proton.viewer.tables.rates import COLUMNS, PART, RATES

if TYPE_CHECKING:
    import pandas as pd

LOW, GOOD = 60.0, 80.0  # percent of a peak: what is little, and what kernels reach
LEAST_NS = 10_000.0  # of a launch: a shorter one is over before anything is busy
UNITS = ("tensor", "dram", "l2", "issue")  # counters that bound a kernel
ADVICE = "more programs or warps on an SM, or more independent work in each"


def find(subject: Subject) -> Said:
    """Kernels for which nothing of the chip is busy."""
    of_counters = counters.by_kernel(subject.tables.raw, subject.tables.launches)
    for kernel in subject.kernels:
        if float(np.median(kernel.launch_ns)) < LEAST_NS:
            continue
        own = of_counters[of_counters["kernel"] == kernel.kernel.name]
        means = zip(own["counter"], own["mean"], strict=True)
        used = {str(name): float(mean) for name, mean in means if name in UNITS}
        if not used:
            used = _rates(kernel)
        if not used:
            if kernel.on_gpu:
                yield Unrecorded(
                    rule=RULE.name, kernel=kernel.label, needs="how busy the chip is",
                    option='counters="tensor,dram,issue", or payload: scope(..., bytes=, flops16=)',
                )  # fmt: skip
            continue
        most = max(used.values())
        if most < LOW:
            yield _finding(kernel, used, most)


def _rates(kernel: KernelView) -> dict[str, float]:
    """Percents of peaks by the work that slices say."""
    fields = {f.name for scope in kernel.kernel.scopes for f in scope.payload}
    tables = kernel.subject.tables
    fields |= {name for slice_ in tables.raw.host for name in slice_.payload}
    if not fields & set(RATES):
        return {}
    for kind in ("launch", "scope"):
        own = _own(kernel, kind)
        if len(own):
            rates = [str(name) for name in own if name in COLUMNS[:-1]]
            return {", ".join(rates): float(own[PART].max())}
    return {}


def _own(kernel: KernelView, kind: str, *by: str) -> pd.DataFrame:
    """The rows of its rates that have a part of a peak."""
    tables = kernel.subject.tables
    table = tables.stats(("kernel", "variant", *by), "dur_ns", kind, rates=True)
    variant = variant_numbers(tables.kernels)[tables.kernels.index(kernel.kernel)]
    own = table[(table["kernel"] == kernel.kernel.name) & (table["variant"] == variant)]
    return own[own[PART].notna()] if PART in own else own.iloc[:0]


def _finding(kernel: KernelView, used: dict[str, float], most: float) -> Finding:
    own = _own(kernel, "scope", "scope")
    scopes = {str(row["scope"]): float(row[PART]) for row in own.to_dict("records")}
    return Finding(
        rule=RULE.name,
        kernel=kernel.label,
        sentence=sentence(used) + (f"; its scopes reach {_listed(scopes)}" if scopes else ""),
        gain_ns=kernel.time_ns * max(0.0, 1 - most / GOOD),
        advice=f"the findings on waits say what it waits for; without any, {ADVICE}",
        visits=len(kernel.launches),
        numbers={f"{scope}_percent": part for scope, part in scopes.items()} | numbers(used),
        slices=kernel.open_launch(kernel.typical_launch),
    )


def sentence(used: dict[str, float]) -> str:
    """What little a kernel uses, in percent of what there is."""
    return f"nothing of the chip is busy: of its peaks the kernel reaches {_listed(used)}"


def numbers(used: dict[str, float]) -> dict[str, float]:
    """The same as numbers of a finding."""
    return {
        f"{name.replace('/', '_per_').replace(', ', '_')}_percent": part
        for name, part in used.items()
    }


def _listed(parts: dict[str, float]) -> str:
    return ", ".join(f"{name} {part:.0f} %" for name, part in parts.items())


RULE = Rule(
    name="utilization",
    about="neither tensor cores nor memory are busy",
    find=find,
    behind=("copies", "dot-gaps", "exposed", "few-slots", "late-warp", "stalls", "waits"),
)
