"""One side of a comparison: the runs of several fresh processes, as a number a scope and process.

A run is read, reduced to the statistics of its scopes and launches, and let go.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from proton.base.errors import ProtonError
from proton.base.symbols import shortened
from proton.base.targets import CPUTarget
from proton.base.units import duration
from proton.trace.archive import SUFFIX as SUFFIX
from proton.trace.chrome import SUFFIX as CHROME
from proton.trace.chrome import UNKNOWN_GPU
from proton.trace.model import CLOCK_STEP, COMMIT, Kernel
from proton.trace.records import NONE
from proton.viewer.explain.subject import Subject
from proton.viewer.run import Run
from proton.viewer.tables.labels import SIGNATURE, variant_numbers
from proton.viewer.tables.metrics import HATCHET, HATCHET_MSGPACK, TIME, of_hatchet
from proton.viewer.tables.rows import LAUNCH

if TYPE_CHECKING:
    import pandas as pd

COUNT = "count"  # the statistic that is no time
STATS = (COUNT, "total", "self", "mean", "min", "p1", "p50", "p90", "p99", "max")
SUMS = STATS[:3]  # those of all visits, where the others are of some as well
SAMPLES = ("every", "sample_programs", "sample_warps")  # options that leave out visits
LOSSES = "lost records"  # of some visits none is left
AVERAGED = STATS[:4]  # those that a clock's steps do not show in, as ends meet them at random
_TREES = (HATCHET, HATCHET_MSGPACK)
_MEASURED = (COMMIT, CLOCK_STEP)  # facts of a run that are none of its machine
SUFFIXES = (SUFFIX, CHROME, *_TREES)
BATCHES = 50  # of launches, where those of one process are compared: more tell nothing more
PROCESSES, LAUNCHES = "processes", "launches"  # what a comparison is of
LEAST_NS = 1.0  # times are whole ns: what is shorter counts as this, so that it has a ratio
ALL_WARPS = -2  # -1 is that of the CPU, which has none
DIGITS = 4  # of times


def amount(value: float, stat: str) -> str:
    """A value of a statistic with its unit: a time, or a count."""
    return f"{value:g}" if stat == COUNT else duration(value, DIGITS)


class Variant(NamedTuple):
    """A kernel as it was compiled: its name, and the types and constants."""

    kernel: str
    signature: str


class Group(NamedTuple):
    """What is compared: a scope of a kernel, or its launches where `scope` is empty."""

    variant: Variant
    scope: str
    warp: int = ALL_WARPS

    def __str__(self) -> str:
        place = "" if self.warp == ALL_WARPS else f", warp {self.warp}"
        return f"{self.variant.kernel}{'/' if self.scope else ''}{self.scope}{place}"

    @property
    def shown(self) -> str:
        """It in tables and sentences: with a long name of its kernel in its short form."""
        variant = self.variant._replace(kernel=shortened(self.variant.kernel))
        return str(self._replace(variant=variant))

    def is_called(self, name: str) -> bool:
        """Whether it has this name."""
        return name in (str(self), self.shown)


Row = dict[str, float]


@dataclass(frozen=True, kw_only=True)
class Process:
    """What one process measured; `batches` has the same of some launches at a time."""

    path: str
    began_unix_ns: int
    machine: dict[str, object]
    missing: tuple[str, ...]  # what the run lacks, a line each
    lost: bool
    partial: bool
    targets: dict[Variant, str]
    rows: dict[Group, Row]
    batches: dict[Group, list[Row]]
    # Of a scope, and of a kernel's scopes together, the options that left out some of its visits.
    sampled: dict[Group, str] = field(default_factory=dict)
    commit: str = ""  # empty where it is not known
    step_ns: float = 0.0  # of the clock; 0 where it is fine, or not known
    held: Run | None = field(default=None, compare=False, repr=False)  # else its file is read

    @property
    def is_run(self) -> bool:
        """Whether there is more than sums."""
        return self.held is not None or Path(self.path).suffix not in _TREES

    def run(self) -> Run:
        """The whole of it; raises ProtonError where there are sums alone."""
        if not self.is_run:
            raise ProtonError(
                f"{self.path}: a Hatchet file has sums of launches: limits of structure need a "
                'run, or a trace of Triton\'s Proton (data="trace")'
            )
        return Run.load(Path(self.path)) if self.held is None else self.held


@dataclass(frozen=True, kw_only=True)
class Side:
    """The processes of one side, in order of time."""

    processes: Sequence[Process]
    sources: dict[Group, tuple[str, int]] = field(default_factory=dict)  # file and line of a scope

    @staticmethod
    def load(paths: Iterable[Path], *, warps: bool = False, known: Side | None = None) -> Side:
        """Reads runs, and those of folders, but not those that are `known`; with `warps` each warp
        is apart, too."""
        files = _files(paths)
        sources = dict(known.sources) if known else {}
        have = {process.path: process for process in known.processes} if known else {}
        alone = len(files) == 1
        found = [have.get(str(file)) or read(file, warps, alone, sources) for file in files]
        return Side(processes=in_order(found), sources=sources)

    @staticmethod
    def of(runs: Sequence[Run], *, warps: bool = False) -> Side:
        """That of runs in memory."""
        sources: dict[Group, tuple[str, int]] = {}
        found = [
            replace(_process(run, run.name, warps, len(runs) == 1, sources), held=run)
            for run in runs
        ]
        return Side(processes=sorted(found, key=lambda p: p.began_unix_ns), sources=sources)

    @staticmethod
    def variants(kernels: Sequence[Kernel]) -> list[Variant]:
        """What kernels are told apart by in any process: two of one name and signature by order."""
        seen: dict[Variant, int] = {}
        found = []
        for kernel in kernels:
            variant = Variant(kernel.name, str(kernel.options.get(SIGNATURE, "")))
            seen[variant] = seen.get(variant, 0) + 1
            again = f" ({seen[variant]})" if seen[variant] > 1 else ""
            found.append(Variant(kernel.name, variant.signature + again))
        return found

    def facts(self, variant: Variant) -> dict[str, str]:
        """What is known of where a kernel ran, `target` among it; empty where it did not."""
        process = next((p for p in self.processes if variant in p.targets), None)
        if process is None:
            return {}
        facts = {name: str(value) for name, value in process.machine.items()}
        return {**facts, "target": process.targets[variant]}

    @property
    def groups(self) -> list[Group]:
        """All that any process measured, in the order of the first that has it."""
        return list(dict.fromkeys(group for process in self.processes for group in process.rows))

    def values(self, group: Group, stat: str) -> np.ndarray:
        """The statistic in each process; NaN where a process has no such scope."""
        rows = [process.rows.get(group) for process in self.processes]
        for process, row in zip(self.processes, rows, strict=True):
            if row is not None and stat not in row:
                known = ", ".join(row)
                raise ProtonError(f"{process.path}: has sums alone: choose {known}, not {stat}")
        found = np.array([row[stat] if row else np.nan for row in rows])
        return np.maximum(found, LEAST_NS)

    def step_ns(self, group: Group) -> float:
        """The longest step of the clocks that its times are read from."""
        on_cpu = (p for p in self.processes if p.targets.get(group.variant) == str(CPUTarget()))
        return max((process.step_ns for process in on_cpu), default=0.0)

    def sampled(self, group: Group, stat: str) -> str:
        """The options that left out visits of which a statistic is a sum, and `LOSSES` where some
        were lost; empty where all are there."""
        if stat not in SUMS or not group.scope:
            return ""
        # Its own time depends on what is recorded inside of it, too.
        key = Group(group.variant, "" if stat == "self" else group.scope)
        words = [process.sampled[key] for process in self.processes if key in process.sampled]
        words += [LOSSES for process in self.processes if process.lost]
        return ", ".join(dict.fromkeys(words))

    def totals(self, group: Group) -> np.ndarray:
        """The time of its own in each process; NaN where a process has no such scope."""
        return self.values(group, "self")

    def of_unit(self, unit: str, group: Group, stat: str) -> np.ndarray:
        """The statistic in each process, or in each batch of launches of the only one."""
        if unit == PROCESSES:
            return self.values(group, stat)
        rows = self.processes[0].batches.get(group, [])
        return np.maximum([row[stat] for row in rows], LEAST_NS)


def in_turns(one: Side, other: Side) -> bool:
    """Whether the sides were measured in turns on one machine: the i-th process of each before
    the next of either."""
    times = [[process.began_unix_ns for process in side.processes] for side in (one, other)]
    machines = [process.machine for side in (one, other) for process in side.processes]
    if len(times[0]) != len(times[1]) or any(machine != machines[0] for machine in machines):
        return False
    rounds = list(zip(*times, strict=True))
    return all(max(this) < min(next_) for this, next_ in itertools.pairwise(rounds))


def in_order(processes: Iterable[Process]) -> list[Process]:
    """Processes by time; raises ProtonError where two are the same."""
    found = sorted(processes, key=lambda process: process.began_unix_ns)
    for one, next_ in itertools.pairwise(found):
        is_known = not {Path(one.path).suffix, Path(next_.path).suffix} & {CHROME, *_TREES}
        if one.began_unix_ns == next_.began_unix_ns and is_known:
            raise ProtonError(
                f"{one.path} and {next_.path} are the same run: of one process there is one "
                "run, and several of them would look as if a measurement had been repeated"
            )
    return found


def read(file: Path, warps: bool, alone: bool, sources: dict[Group, tuple[str, int]]) -> Process:
    """A run; of a tree of Triton's Proton the kernels, of which it has sums."""
    if file.suffix not in _TREES:
        return _process(Run.load(file), str(file), warps, alone, sources)
    times: dict[str, Row] = {}
    for node in of_hatchet(file).all():
        if node.is_kernel:
            row = times.setdefault(node.name, {COUNT: 0.0, "total": 0.0})
            row[COUNT] += node.metrics[COUNT]
            row["total"] += node.metrics[TIME]
    variants = {name: Variant(name, "") for name in times}
    return Process(
        path=str(file), began_unix_ns=file.stat().st_mtime_ns, machine={}, missing=(),
        lost=False, partial=False, targets=dict.fromkeys(variants.values(), UNKNOWN_GPU),
        rows={Group(variants[name], ""): row | {"self": row["total"],
                                                "mean": row["total"] / row[COUNT]}
              for name, row in times.items()},
        batches={},
    )  # fmt: skip


def runs_in(paths: Iterable[Path]) -> list[Path]:
    """Those that are runs, by their suffixes, in order."""
    return sorted(path for path in paths if path.suffix in SUFFIXES)


def _files(paths: Iterable[Path]) -> list[Path]:
    """The files, and those of folders."""
    files: list[Path] = []
    for path in paths:
        inside = runs_in(path.iterdir()) if path.is_dir() else [path]
        if not inside:
            raise ProtonError(f"{path}: the folder has no {SUFFIX} files")
        files += inside
    return files


def _process(
    run: Run, path: str, warps: bool, alone: bool, sources: dict[Group, tuple[str, int]]
) -> Process:
    """A run as the numbers that are compared."""
    variants = Side.variants(run.kernels)
    totals = run.totals
    for variant, kernel in zip(variants, run.kernels, strict=True):
        for scope in kernel.scopes:
            sources.setdefault(Group(variant, scope.path), (scope.file, scope.line))
    unfinished = totals.programs - int(run.launches["finished"].sum())
    with_records = run.launches["strategy"] != "none"
    unfinished -= int(run.launches["programs"][~with_records].sum())
    return Process(
        path=path,
        began_unix_ns=run.raw.origin_unix_ns,
        machine={name: fact for name, fact in run.raw.machine.items() if name not in _MEASURED},
        commit=str(run.raw.machine.get(COMMIT, "")),
        step_ns=float(str(run.raw.machine.get(CLOCK_STEP, 0))),
        missing=tuple(run.loss_warnings()),
        lost=bool(totals.lost or totals.dropped_launches),
        partial=unfinished > 0,
        targets={v: kernel.target for v, kernel in zip(variants, run.kernels, strict=True)},
        sampled=_sampled(run, variants),
        rows=_rows(run, variants, warps),
        batches=_batches(run, variants, warps) if alone else {},
    )


def _sampled(run: Run, variants: Sequence[Variant]) -> dict[Group, str]:
    """The options that left out visits, of each scope that lacks some; of a kernel all of them."""
    found = dict[Group, str]()
    of = dict(zip(map(id, run.kernels), variants, strict=True))
    if not any(name in kernel.options for kernel in run.kernels for name in SAMPLES):
        return found
    subject = Subject(run)
    for view in subject.kernels:
        options, variant = view.kernel.options, of[id(view.kernel)]
        for scope, rows in view.scope_rows.items():
            is_cut = {"every": (subject.sampled[rows] != 1).any()}
            words = [f"{name}={options[name]}" for name in SAMPLES
                     if name in options and is_cut.get(name, True)]  # fmt: skip
            if words:
                found[Group(variant, subject.scopes[scope].path)] = ", ".join(words)
                found.setdefault(Group(variant, ""), ", ".join(words))
    return found


def _tables(run: Run, warps: bool, *more: str) -> list[pd.DataFrame]:
    """Statistics of scopes, of each warp's where asked and there are any, and of launches."""
    keys = ["kernel", "variant", *more]
    tables = [run.stats([*keys, "scope"])]
    if warps:
        table = run.stats([*keys, "scope", "warp"])
        tables.append(table[table["warp"] != NONE])
    return [*tables, run.stats(keys, "dur_ns", LAUNCH)]


def _rows(run: Run, variants: Sequence[Variant], warps: bool) -> dict[Group, Row]:
    number = _by_number(run, variants)
    return {
        _group(row, number): {stat: float(row[stat]) for stat in STATS}
        for table in _tables(run, warps)
        for row in table.to_dict("records")
    }


def _batches(run: Run, variants: Sequence[Variant], warps: bool) -> dict[Group, list[Row]]:
    """The medians of launches that follow each other."""
    number = _by_number(run, variants)
    found: dict[Group, list[dict[str, float]]] = {}
    for table in _tables(run, warps, "launch"):
        for row in table.sort_values("launch").to_dict("records"):
            found.setdefault(_group(row, number), []).append({s: float(row[s]) for s in STATS})
    return {group: _medians(rows) for group, rows in found.items()}


def _medians(rows: list[Row]) -> list[Row]:
    values = np.array([[row[stat] for stat in STATS] for row in rows])
    parts = np.array_split(values, min(BATCHES, len(rows)))
    return [dict(zip(STATS, np.median(part, axis=0).tolist(), strict=True)) for part in parts]


def _by_number(run: Run, variants: Sequence[Variant]) -> dict[tuple[str, int], Variant]:
    numbers = variant_numbers(run.kernels)
    return {
        (kernel.name, number): variant
        for kernel, number, variant in zip(run.kernels, numbers, variants, strict=True)
    }


def _group(row: dict[object, object], number: dict[tuple[str, int], Variant]) -> Group:
    variant = number[str(row["kernel"]), int(str(row["variant"]))]
    return Group(variant, str(row.get("scope", "")), int(str(row.get("warp", ALL_WARPS))))
