"""Rates of groups of slices: gbytes/s, tflop/s, and the part of what the device can do.

The work of a slice is in its payload: `bytes`, and `flops`, or `flops8`, `flops16`, `flops32` and
`flops64` by the width of the operands. A rate is the work of a group over the time in which any
slice of the group ran on the device:

    program 0  |== 6 GB ==|                   12 GB in 3 s: 4 gbytes/s
    program 1       |== 6 GB ==|
               0    1     2    3 s

All units of a program (warps) record its value, which counts once. Of several devices the times are
added up, so a rate is one of each.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from proton.base.errors import ProtonError
from proton.base.targets import GPUTarget
from proton.base.words import did_you_mean
from proton.trace.model import HostSlice, Launch, RawRun
from proton.trace.nesting import nest
from proton.trace.scope_path import SEPARATOR
from proton.viewer.tables.columns import Columns, Key
from proton.viewer.tables.rows import PAYLOAD

if TYPE_CHECKING:
    import pandas as pd

# Of each payload value: the column of its rate, and how many make one of it.
RATES = {
    "bytes": ("gbytes/s", 1e9),
    **{f"flops{width}": (f"tflop{width}/s", 1e12) for width in ("", "8", "16", "32", "64")},
}
PART = "%peak"
COLUMNS = (*(column for column, _ in RATES.values()), PART)
Peaks = Mapping[str, float]  # by column of a rate

# From NVIDIA's data sheets of each, as docs/viewer.md quotes them: without sparsity; 16 and 8 bits
# by tensor cores, 32 and 64 without. Of what a sheet does not say nothing is known.
_HOPPER = {"tflop8/s": 1979.0, "tflop16/s": 989.5, "tflop32/s": 67.0, "tflop64/s": 34.0}
_AMPERE = {"tflop8/s": 624.0, "tflop16/s": 312.0, "tflop32/s": 19.5, "tflop64/s": 9.7}
_KNOWN: dict[str, Peaks] = {  # by the name of the whole GPU: one of MIG has a longer one
    "NVIDIA H200": {"gbytes/s": 4800.0, **_HOPPER},
    "NVIDIA H200 NVL": {"gbytes/s": 4800.0, "tflop8/s": 1670.5, "tflop16/s": 835.5},
    "NVIDIA H100 80GB HBM3": {"gbytes/s": 3350.0, **_HOPPER},
    "NVIDIA H100 PCIe": {
        "gbytes/s": 2000.0,
        "tflop8/s": 1513.0,
        "tflop16/s": 756.5,
        "tflop32/s": 51.0,
        "tflop64/s": 26.0,
    },
    "NVIDIA A100-SXM4-80GB": {"gbytes/s": 2039.0, **_AMPERE},
    "NVIDIA A100 80GB PCIe": {"gbytes/s": 1935.0, **_AMPERE},
    "NVIDIA A100-SXM4-40GB": {"gbytes/s": 1555.0, **_AMPERE},
    "NVIDIA A100-PCIE-40GB": {"gbytes/s": 1555.0, **_AMPERE},
}


def parse_peaks(text: str) -> Peaks:
    """`gbytes/s=4800,tflop16/s=989` as numbers."""
    peaks = {}
    for item in filter(None, text.split(",")):
        name, _, value = (part.strip() for part in item.partition("="))
        if name not in COLUMNS[:-1]:
            known = ", ".join(COLUMNS[:-1])
            raise ProtonError(f"a peak is of {known}, got {name!r}{did_you_mean(name, COLUMNS)}")
        if not re.fullmatch(r"\d+(\.\d*)?([eE]\+?\d+)?", value) or not float(value):
            raise ProtonError(f"the peak of {name} is a number above 0, got {value!r}")
        peaks[name] = float(value)
    return peaks


def peaks_of(raw: RawRun, given: Peaks) -> dict[int, Peaks]:
    """What each device of a run can do at most, as far as that is known; `given` counts first."""
    found = {-1: given}
    for gpu in raw.gpus:
        model = gpu.name.rpartition(": ")[2]  # in a merged run the name of the file is before it
        known = _KNOWN.get(model, {})
        found[gpu.device] = {**known, **given}
    return found


def rates(
    columns: Columns, group: np.ndarray, count: int, peaks: Mapping[int, Peaks]
) -> dict[str, np.ndarray]:
    """The columns of rates, for groups 0 to `count`; -1 is none. One that no slice has work for is
    left out."""
    fields = {name: columns.key(f"{PAYLOAD}{name}") for name in columns.payload if name in RATES}
    if not fields or not count:
        return {}
    device = columns.key("device")
    seconds = _busy(columns, group, device, count) / 1e9
    seconds[seconds == 0] = np.nan
    share, some = _share(columns), group >= 0
    found, least = {}, {"bytes": np.zeros(count), "flops": np.zeros(count)}
    for name, (column, scale) in RATES.items():
        if name not in fields:
            continue
        key = fields[name]
        has = some & (key.codes >= 0)
        if not has.any():
            continue
        values = np.asarray(key.values, np.float64)[key.codes[has]] * share[has] / scale
        work = np.bincount(group[has], values, count)
        counted = np.bincount(group[has], minlength=count) > 0
        found[column] = np.where(counted, work / seconds, np.nan)
        top = np.array([peaks.get(int(d), {}).get(column, np.nan) for d in device.values])
        times = values / top[device.codes[has]]
        kind = "bytes" if name == "bytes" else "flops"
        least[kind] += np.where(counted, np.bincount(group[has], times, count), 0)
    part = 100 * np.fmax(least["bytes"], least["flops"]) / seconds
    if np.any(part > 0):
        found[PART] = np.where(part > 0, part, np.nan)
    return found


def _share(columns: Columns) -> np.ndarray:
    """Of each slice: one over the units of its program that record its scope."""
    unit = columns.key("unit")
    if len(unit.values) < 2:
        return np.ones(columns.start.size)
    scope = _combined([columns.key(name) for name in ("launch", "program", "scope")])
    pairs = np.unique(scope * len(unit.values) + unit.codes)
    units = np.bincount(pairs // len(unit.values))
    share: np.ndarray = 1 / units[scope]
    return share


def _combined(keys: Sequence[Key]) -> np.ndarray:
    """A code for each combination of codes."""
    part = np.zeros(keys[0].codes.size, np.int64)
    for key in keys:
        part = Key.of(part * max(len(key.values), 1) + key.codes).codes
    return part


def _busy(columns: Columns, group: np.ndarray, device: Key, count: int) -> np.ndarray:
    """Nanoseconds in which any slice of each group ran, added up over devices."""
    some = np.flatnonzero(group >= 0)
    place = group[some] * len(device.values) + device.codes[some]
    start, end = columns.start[some], columns.start[some] + columns.dur[some]
    order = np.lexsort((start, place))
    place, start, end = place[order], start[order], end[order]
    # The latest end so far of each place, by ranks: these stay small where times are added.
    ends, rank = np.unique(end, return_inverse=True)
    latest = ends[np.maximum.accumulate(place * ends.size + rank.ravel()) - place * ends.size]
    is_first = np.ones(place.size, bool)
    is_first[1:] = place[1:] != place[:-1]
    before = np.where(is_first, start, np.roll(latest, 1))
    own = np.maximum(end - np.maximum(start, before), 0)
    busy: np.ndarray = np.bincount(place // len(device.values), own, count)
    return busy


def with_work_of_scopes(frame: pd.DataFrame, raw: RawRun) -> pd.DataFrame:
    """The table of launches, with the work that host scopes around them say as their payload, in
    proportion to their time: what a scope says is of all that was launched in it. Launches of a GPU
    of which only the call was timed have none."""
    frame = frame.copy()
    rows = np.flatnonzero((frame["kind"] == "launch").to_numpy())
    number = frame["launch"].to_numpy()[rows]
    dur = np.zeros(len(raw.launches))
    dur[number] = frame["dur_ns"].to_numpy()[rows]
    work: list[dict[str, float]] = [{} for _ in raw.launches]
    starts = np.array([launch.host_start for launch in raw.launches], np.int64)
    order = np.argsort(starts, kind="stable")
    in_order = starts[order]
    with_tasks = _threads_with_tasks(raw)
    for scope in raw.host:
        given = {name: value for name, value in scope.payload.items() if name in RATES}
        if not given:
            continue
        first, last = np.searchsorted(in_order, (scope.start, scope.end + 1))
        among = order[first:last].tolist()
        inside = [n for n in among if raw.launches[n].thread == scope.thread]
        if scope.thread in with_tasks:
            inside = [n for n in inside if _is_asked_for_in(scope, raw.launches[n])]
        if not inside or not all(_is_timed(raw, raw.launches[n]) for n in inside):
            continue
        whole = dur[inside].sum() or 1.0
        for launch in inside:
            for name, value in given.items():
                part = float(value * dur[launch] / whole)
                work[launch][name] = work[launch].get(name, 0.0) + part
    payload: list[dict[str, float] | None] = list(frame["payload"])
    for row, launch in zip(rows.tolist(), number.tolist(), strict=True):
        payload[row] = work[launch] or None
    frame["payload"] = payload
    return frame


def _threads_with_tasks(raw: RawRun) -> set[int]:
    """The threads of which scopes overlap without nesting, as those of asyncio's tasks do."""
    scopes = sorted((s for s in raw.host if s.kind == "host"), key=lambda scope: scope.thread)
    thread = np.array([scope.thread for scope in scopes], np.int64)
    start, end = (
        np.array([getattr(scope, edge) for scope in scopes], np.int64) for edge in ("start", "end")
    )
    return set(thread[nest(thread, start, end).crossed].tolist())


def _is_asked_for_in(scope: HostSlice, launch: Launch) -> bool:
    """Whether a launch is of a scope, or of one inside, by their paths."""
    return f"{launch.path}{SEPARATOR}".startswith(f"{scope.path}{SEPARATOR}")


def _is_timed(raw: RawRun, launch: Launch) -> bool:
    """Whether the times of a launch are those of its kernel."""
    kernel = raw.kernels[launch.kernel]
    return not kernel.on_gpu or kernel.strategy is not None


def most(metric: str, device: Mapping[str, float]) -> float:
    """What a device does at most in a second, by its clocks; 0 where that is not known."""
    kilo = 1e3
    if metric == "bytes":  # at both edges of the clock
        return 2 * kilo * device.get("memory_clock_rate", 0.0) * device.get("bus_width", 0.0) / 8
    arch = int(device.get("arch", 0))
    if arch != 90:  # the chip of which operations in a cycle are known
        return 0.0
    chip = GPUTarget("cuda", arch).facts
    adds = {"flops8": 2 * chip.dot_per_cycle, "flops16": chip.dot_per_cycle,
            "flops32": chip.fp32_per_cycle}.get(metric, 0)  # fmt: skip
    return 2 * adds * kilo * device.get("clock_rate", 0.0) * device.get("num_sms", 0.0)
