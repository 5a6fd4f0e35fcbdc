"""What recording cost: of each kernel what a record takes, how much that is of the time of its
units, and what it is with records and without, where both are known."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from proton.trace.model import Kernel, RawRun
from proton.trace.records import RecordTable
from proton.viewer.tables.labels import kernel_labels
from proton.viewer.tables.places import Residency

# In Kernel.options; those of the code without records end in OFF. The last is a median run time,
# by the option compare_run_time.
RESOURCES = ("registers", "spills", "shared", "blocks_per_sm", "run_ns")
OFF = "_off"


def recording_cost(raw: RawRun, records: RecordTable, ran: Residency) -> list[dict[str, object]]:
    """An entry a kernel that left records: `slice_cost_ns` is what a slice takes of the one around
    it, `edge_cost_ns` of its own, `percent` what all records took of the time of their units;
    `recorded` and `plain` are resources and run times of both versions of the code."""
    tracks, found = records.tracks, []
    of = np.array([launch.kernel for launch in raw.launches], np.int64)
    some = np.flatnonzero(tracks.kept > 0)
    owner = of[tracks.launch[some]]
    labels = kernel_labels(raw.kernels)
    for number, (kernel, label) in enumerate(zip(raw.kernels, labels, strict=True)):
        own = some[owner == number]
        if not own.size:
            continue
        time = float(ran.length(tracks.row[own]).sum())
        cost = float((tracks.kept[own] * records.slice_cost_ns[own]).sum())
        both = [
            {name: kernel.options[name + end] for name in RESOURCES if name + end in kernel.options}
            for end in ("", OFF)
        ]
        found.append(
            {
                "kernel": label,
                "records": int(tracks.kept[own].sum()),
                "slice_cost_ns": float(records.slice_cost_ns[own].mean()),
                "edge_cost_ns": float(records.edge_cost_ns[own].mean()),
                "percent": 100 * cost / max(time, 1.0),
                "recorded": both[0],
                "plain": both[1],
            }
        )
    return found


def leaves_out(kernel: Kernel) -> list[str]:
    """The options by which some of its launches are not on record."""
    noted = {"every_launch": "every_launch", "budget": "a budget",
             "run_ns" + OFF: "compare_run_time"}  # fmt: skip
    words = [word for name, word in noted.items() if name in kernel.options]
    return words + ["pc_sampling"] * (kernel.pc_samples is not None)


def not_on_record(kernels: Sequence[Kernel]) -> str:
    """The same of a run, in words; empty where all launches are on record."""
    options = dict.fromkeys(option for kernel in kernels for option in leaves_out(kernel))
    return f"without launches that {', '.join(options)} left out" if options else ""
