"""What to know first about a run: facts, the scopes that took the most time, and warnings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from proton.base import markup
from proton.base.text import printable
from proton.base.units import duration
from proton.trace.model import BOOT, OPERATOR, WALL_CLOCKED
from proton.trace.operators import NO_ONE, Operators
from proton.trace.scope_path import ScopePath
from proton.trace.wire import ProgramState, RecordKind
from proton.viewer.tables import counters
from proton.viewer.tables.labels import SIGNATURE, gpu_name, kernel_labels
from proton.viewer.tables.placed import cost_line
from proton.viewer.tables.recording_cost import OFF, RESOURCES, not_on_record
from proton.viewer.tables.rows import CORRECTED, LAUNCH, METRICS, RAW
from proton.viewer.tables.stats import TIMES, Filter
from proton.viewer.tables.tables import Tables
from proton.viewer.tables.units import with_units
from proton.viewer.tables.waiting import union

if TYPE_CHECKING:
    import pandas as pd

CUPTI, TORCH = "seen by CUPTI", "torch"  # facts of what is no kernel of Proton's
ROWS = 20  # of a table in a notebook
LONG_PAUSE = 0.5  # of the wall: shares of it then say little of what launches take


@dataclass(frozen=True, kw_only=True)
class Summary:
    """What a reader should know first: facts, a table of the scopes, and warnings.

    A warning is one line about the run (losses, killed programs, optimized-out scopes, clocks),
    however many programs it concerns.
    """

    facts: dict[str, str]
    hosts: pd.DataFrame  # statistics of host scopes, by path; `wall` is the percentage of the wall
    kernels: pd.DataFrame  # ... and of launches, by kernel and variant
    scopes: pd.DataFrame
    warnings: tuple[str, ...]
    times: str = CORRECTED  # what the times of scopes are

    @property
    def tables(self) -> tuple[tuple[str, str, pd.DataFrame], ...]:
        """From the host down: a title, what the times are, and the statistics."""
        return (("host scopes", RAW, self.hosts), ("launches", RAW, self.kernels),
                ("scopes", self.times, self.scopes))  # fmt: skip

    def _repr_html_(self) -> str:
        """The summary in a notebook."""
        tables = (
            f"<div><b>{title}, {METRICS[metric]}</b></div>{_html(table)}"
            for title, metric, table in self.tables
            if len(table)
        )
        return f"{markup.warnings(self.warnings)}{''.join(tables)}{markup.facts(self.facts)}"


def summary(run: Tables) -> Summary:
    """What to know first about the run."""
    t = run.totals
    wall = max(wall_ns(run, Filter()), 1.0)
    facts = {
        "run": run.name,
        "launches": str(t.launches),
        "programs": str(t.programs),
        "slices": str(t.slices),
        "marks": str(t.marks),
        **({"events": str(t.events)} if t.events else {}),
        **({"flights": str(t.flights)} if t.flights else {}),
        **({"wall": missing} if (missing := not_on_record(run.kernels)) else {}),
        **_long_pause(run, wall),
        **_placed(run),
        **_activities(run),
        "records": f"{t.written} written, {t.kept} kept",
        **_gpu_facts(run),
        **counters.facts(run.raw),
        **_kernel_facts(run),
        **{key: str(value) for key, value in run.raw.machine.items() if key != BOOT},
    }
    hosts, kernels = (
        table.assign(wall=100 * table["total"] / wall)
        for table in (run.stats(("scope",), RAW, "host"), run.stats(("kernel",), RAW, LAUNCH))
    )
    return Summary(
        facts=facts, hosts=hosts, kernels=kernels, scopes=run.stats(),
        warnings=tuple(_warnings(run)), times=run.shown_metric(CORRECTED),
    )  # fmt: skip


def wall_ns(tables: Tables, where: Filter) -> float:
    """From the first begin of a host scope or a launch to the last end, of those chosen by time."""
    launches, host = tables.launches, [s for s in tables.raw.host if s.kind == "host"]
    start = np.append(launches["start_ns"], [s.start - tables.raw.origin_ns for s in host])
    length = np.append(launches["dur_ns"], [s.end - s.start for s in host])
    chosen = where.begins(start)
    if not chosen.any():
        return 0.0
    return float((start + length)[chosen].max() - start[chosen].min())


def _long_pause(run: Tables, wall: float) -> dict[str, str]:
    """The longest time between two launches, where that is most of the wall."""
    begin = run.launches["start_ns"].to_numpy()
    starts, ends = union(begin, begin + run.launches["dur_ns"].to_numpy())
    gaps = starts[1:] - ends[:-1]
    if not gaps.size or gaps.max() < LONG_PAUSE * wall:
        return {}
    after = int(np.flatnonzero(begin == starts[1 + gaps.argmax()])[0])
    return {"longest pause": f"{duration(gaps.max())} of {duration(wall)}, before launch {after}"}


def _placed(run: Tables) -> dict[str, str]:
    """What the compiler recorded by itself."""
    is_any = any(scope.work for kernel in run.kernels for scope in kernel.scopes)
    return {"placed by the compiler": cost_line(run.placed)} if is_any else {}


def _activities(run: Tables) -> dict[str, str]:
    """How much CUPTI saw, by kind, and how much torch told."""
    kinds = Counter(slice_.kind for slice_ in run.raw.host if slice_.device >= 0)
    seen = {CUPTI: ", ".join(f"{n} {k}" for k, n in kinds.items())} if kinds else {}
    names = Counter(slice_.name for slice_ in run.raw.host if slice_.kind == OPERATOR)
    calls = f"{names.total()} calls of {len(names)} operators and ranges"
    if names and kinds:
        asked = sum(row != NO_ONE for row in Operators(run.raw).of_slices(run.raw.host))
        calls += f", which asked for {asked} of {kinds.total()} kernels, copies and fills"
    return seen | ({TORCH: calls} if names else {})


def _html(table: pd.DataFrame) -> str:
    """The first rows, with names that are harmless."""
    shown = with_units(table.head(ROWS), TIMES)
    for name in ("kernel", "scope"):
        if name in shown:
            shown = shown.assign(**{name: [printable(ScopePath(n).shown) for n in shown[name]]})
    return str(shown.to_html(index=False, border=0))


def _gpu_facts(run: Tables) -> dict[str, str]:
    """A line a GPU: what ran on it, and how well its clocks are known."""
    gpu, tracks = run.records.gpu, run.records.tracks
    facts: dict[str, str] = {}
    if gpu is None:
        return facts
    began = run.records.programs.state[tracks.row] != ProgramState.UNTOUCHED
    for device in gpu.hosts:
        sms = tracks.sm[began & (tracks.device == device) & (tracks.sm >= 0)]
        clocks = [
            clock
            for number, clock in gpu.launches.items()
            if run.raw.launches[number].device == device
        ]
        rates = sorted(1 / clock.rate for clock in clocks if clock.measured)
        speed = f", {rates[len(rates) // 2]:.2f} GHz" if rates else ""
        error = max(clock.error_ns for clock in clocks)
        facts[gpu_name(run.raw, device)] = (
            f"{len(set(sms.tolist()))} SMs used{speed}; clocks of the SMs agree within "
            f"{error:.0f} ns, the timer with the host within "
            f"{gpu.host_error_ns(device):.0f} ns"
        )
    agreement = alignment(run)
    return facts | ({"GPUs on one axis": agreement} if agreement else {})


def alignment(run: Tables) -> str:
    """How well the clocks of several GPUs agree; nothing of one."""
    gpu = run.records.gpu
    if gpu is None or len(gpu.hosts) < 2:
        return ""
    line = f"times of two GPUs agree within {gpu.alignment_ns():.0f} ns"
    unknown = run.raw.machine.get(WALL_CLOCKED)
    return f"{line}; but for {unknown}: by wall clocks, whose error is unknown" if unknown else line


def _kernel_facts(run: Tables) -> dict[str, str]:
    """A line a kernel that has variants, or of which the compiler left its resources."""
    facts: dict[str, str] = {}
    for kernel, label in zip(run.kernels, kernel_labels(run.kernels), strict=True):
        parts = []
        for name in RESOURCES:
            value, off = kernel.options.get(name), kernel.options.get(name + OFF)
            if isinstance(value, int):
                parts.append(f"{name} {value}" + ("" if off is None else f" ({off})"))
        lines = [_sampling(kernel.options)]
        if parts:
            lines.insert(0, f"{', '.join(parts)} (in brackets: without instrumentation)")
        if label != kernel.name:
            lines.insert(0, str(kernel.options.get(SIGNATURE, "")))
        line = "; ".join(filter(None, lines))
        if line:
            facts[f"kernel {label}"] = line
    return facts


def _warnings(run: Tables) -> list[str]:
    lines = run.loss_warnings()
    alone = run.records.kind[run.records.events.alone]
    if alone.size:
        ends = int((alone == RecordKind.EVENT_END).sum())
        starts = alone.size - ends
        lines.append(f"{starts} starts and {ends} ends of events have no other half")
    lines += _clock_warnings(run)
    labels = kernel_labels(run.kernels)
    for kernel, label in zip(run.kernels, labels, strict=True):
        fit, off = (kernel.options.get(f"blocks_per_sm{end}") for end in ("", OFF))
        if isinstance(fit, int) and isinstance(off, int) and fit != off:
            lines.append(f"{label}: {fit} programs fit on an SM, {off} without instrumentation")
    optimized_out = [
        f"{label}: {path}"
        for kernel, label in zip(run.kernels, labels, strict=True)
        for path in kernel.optimized_out
    ]
    if optimized_out:
        lines.append(f"optimized-out scopes: {', '.join(optimized_out)}")
    return lines


def _clock_warnings(run: Tables) -> list[str]:
    """Where times are not to be trusted."""
    records, lines = run.records, []
    wrapped = records.programs.launch[records.programs.wrapped]
    if wrapped.size:
        lines.append(
            f"{wrapped.size} programs of {_names_of(run, wrapped.tolist())} ran for 2^32 "
            "cycles or more, which times from 32-bit clocks may miss: use 64-bit clocks"
        )
    launches = records.gpu.launches.items() if records.gpu is not None else ()
    unknown = [number for number, clock in launches if not clock.measured]
    if unknown:
        lines.append(
            f"{len(unknown)} launches of {_names_of(run, unknown)} were too short to tell the "
            "rate of their clocks: error_ns is the length of the launch"
        )
    return lines


def _names_of(run: Tables, launches: Sequence[int]) -> str:
    """The kernels of these launches."""
    names = (run.kernels[run.raw.launches[number].kernel].name for number in launches)
    return ", ".join(dict.fromkeys(names))


def _sampling(options: dict[str, Any]) -> str:
    """What of a kernel was recorded, where that is not all."""
    parts = [
        f"one {what} of {options[name]}"
        for name, what in (("sample_programs", "program"), ("every", "iteration"))
        if isinstance(options.get(name), int) and options[name] > 1
    ]
    if options.get("sample_warps"):
        parts.append(f"warps {', '.join(map(str, options['sample_warps']))}")
    return f"only {', '.join(parts)}" if parts else ""
