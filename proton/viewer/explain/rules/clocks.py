"""SM clocks that dropped from launch to launch: power or heat, not the kernel."""

from __future__ import annotations

import numpy as np

from proton.viewer.explain.finding import Finding, Said
from proton.viewer.explain.rule import Rule
from proton.viewer.explain.subject import Subject

LEAST_LAUNCHES = 4
DROP = 0.03  # of the highest clock


def find(subject: Subject) -> Said:
    """GPUs whose clock fell while the run went on."""
    gpu = subject.records.gpu
    if gpu is None:
        return
    for device in gpu.hosts:
        own = [n for n, clock in gpu.launches.items()
               if clock.measured and subject.tables.raw.launches[n].device == device]  # fmt: skip
        if len(own) < LEAST_LAUNCHES:
            continue
        own.sort(key=lambda n: gpu.launches[n].start_ns)
        ghz = np.array([1 / gpu.launches[n].rate for n in own])
        high = float(np.quantile(ghz, 0.9))
        lost = float((subject.launch_ns[own] * np.maximum(1 - ghz / high, 0.0)).sum())
        low = float(np.median(ghz[-(-len(own) // 2) :]))
        if low > (1 - DROP) * high:
            continue
        yield Finding(
            rule=RULE.name,
            sentence=f"the SM clock of GPU {device} fell from {high:.2f} to {low:.2f} GHz during "
            f"the run: launches slow down by {100 * (high / low - 1):.0f} % with unchanged code",
            gain_ns=lost,
            advice="compare cycles, not ns (metric='cycles'); pauses between launches, or locked "
            "clocks (nvidia-smi -lgc), while you measure",
            visits=len(own),
            numbers={"high_ghz": high, "low_ghz": low},
            slices=subject.kernels[0].open_launch(own[int(np.argmin(ghz))]),
        )


RULE = Rule(name="clocks", about="SM clocks that dropped", find=find)
