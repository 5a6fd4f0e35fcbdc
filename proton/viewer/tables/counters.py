"""What counters of a GPU's hardware said (option `counters`): over time, and while launches ran.

The mean over a launch weighs each sample by how much of it the launch covers, so that a launch
which is shorter than a sample has that sample's value.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from proton.trace.model import CounterSamples, RawRun

if TYPE_CHECKING:
    import pandas as pd

NUMBERS = ("mean", "max")


def counters(raw: RawRun) -> pd.DataFrame:
    """One row a sample of a counter, by GPU, counter and time."""
    import pandas as pd

    columns: dict[str, list[np.ndarray]] = {}
    for samples in raw.counters:
        count = len(samples.values)
        for place, (name, unit) in enumerate(zip(samples.names, samples.units, strict=True)):
            of = {
                "device": np.full(count, samples.device),
                "counter": np.full(count, name, object),
                "start_ns": samples.start_ns - raw.origin_ns,
                "dur_ns": samples.end_ns - samples.start_ns,
                "value": samples.values[:, place],
                "unit": np.full(count, unit, object),
                "error_ns": np.full(count, samples.error_ns),
            }
            for column, values in of.items():
                columns.setdefault(column, []).append(values)
    names = ("device", "counter", "start_ns", "dur_ns", "value", "unit", "error_ns")
    return pd.DataFrame(
        {name: np.concatenate(columns[name]) if columns else np.zeros(0) for name in names}
    )


def by_kernel(raw: RawRun, launches: pd.DataFrame) -> pd.DataFrame:
    """One row a kernel and counter: the mean over the time of its launches, and the largest sample
    that a launch met. Launches of which only the call's times are known are left out."""
    import pandas as pd

    found = []
    timed = launches[launches["clock"] == "gpu"]
    for samples in raw.counters:
        own = timed[timed["device"] == samples.device]
        for kernel, rows in own.groupby("kernel", sort=False):
            start = rows["start_ns"].to_numpy() + raw.origin_ns
            weights = _overlaps(samples, start, start + rows["dur_ns"].to_numpy())
            covered = weights.sum()
            if not covered:
                continue
            means = weights @ samples.values / covered
            most = samples.values[weights > 0].max(axis=0)
            for name, mean, largest, unit in zip(
                samples.names, means.tolist(), most.tolist(), samples.units, strict=True
            ):
                found.append((samples.device, kernel, name, mean, largest, unit))
    return pd.DataFrame(found, columns=["device", "kernel", "counter", *NUMBERS, "unit"])


def _overlaps(samples: CounterSamples, start: np.ndarray, end: np.ndarray) -> np.ndarray:
    """How many ns of each sample these launches cover, all together."""
    ends = np.maximum.accumulate(samples.end_ns)
    first = np.searchsorted(ends, start, "right")
    last = np.searchsorted(samples.start_ns, end, "left")
    found = np.zeros(len(samples.values))
    for low, high, begin, finish in zip(first, last, start, end, strict=True):
        part = slice(low, high)
        inside = np.minimum(samples.end_ns[part], finish) - np.maximum(
            samples.start_ns[part], begin
        )
        found[part] += np.maximum(inside, 0)
    return found


def facts(raw: RawRun) -> dict[str, str]:
    """A line a GPU that was sampled."""
    lines = {}
    for samples in raw.counters:
        values = samples.values
        if not len(values):
            lines[f"counters of GPU {samples.device}"] = "no samples"
            continue
        length = float(np.median(samples.end_ns - samples.start_ns))
        told = [
            f"{name} {mean:.1f} {unit}, at most {most:.1f}"
            for name, unit, mean, most in zip(
                samples.names, samples.units, values.mean(axis=0), values.max(axis=0), strict=True
            )
        ]
        lines[f"counters of GPU {samples.device}"] = (
            f"{'; '.join(told)}; {len(values)} samples of {length:.0f} ns, on the axis within "
            f"{samples.error_ns:.0f} ns"
        )
    return lines
