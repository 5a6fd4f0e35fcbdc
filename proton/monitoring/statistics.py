"""What a monitor knows of launches: statistics that grow with the kernels and scopes that there
are, and not with what they do."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np

from proton.monitoring.sketch import QuantileSketch
from proton.runtime.session.launch_budget import KernelBudget, LaunchBudget
from proton.trace.model import RawRun
from proton.trace.records import read
from proton.viewer.tables.columns import of_records
from proton.viewer.tables.rows import CORRECTED
from proton.viewer.tables.stats import visits

QUANTILES = (0.5, 0.9, 0.99)
MOST_SERIES = 4096  # kernels and scopes with percentiles of their own; others are one of each kind
OTHERS = "(others)"
Series = tuple[str, str, str]  # kind (KERNEL, SCOPE or HOST), kernel, scope
KERNEL, SCOPE, HOST = "kernel", "scope", "host"


@dataclass(frozen=True)
class Percentiles:
    """Durations, in ns: how many there were and their sum since the monitor began, and quantiles of
    the last period, none where it had none."""

    count: int
    total_ns: float
    quantiles: Mapping[float, float]


@dataclass(frozen=True)
class KernelFigures:
    """The launches of a kernel since the monitor began, those of them that were recorded, one of
    how many is now (0: none yet), and which part of its time recording takes, about."""

    launches: int
    recorded: int
    every: int
    cost: float


@dataclass(frozen=True)
class Snapshot:
    """What a monitor knew at the end of a period; `unix_s` is when that was. Counts are since it
    began."""

    unix_s: float
    budget: float
    kernels: Mapping[str, KernelFigures]
    durations: Mapping[Series, Percentiles]
    dropped: int  # launches that were to be recorded, and had no room, or whose records are broken
    bytes_written: int
    files_written: int
    files_lost: int


Figures = Callable[[], Snapshot | None]  # the last ones


@dataclass
class _Durations:
    count: int = 0
    total_ns: float = 0.0
    sketch: QuantileSketch = field(default_factory=QuantileSketch)

    def add(self, values: np.ndarray) -> None:
        self.count += values.size
        self.total_ns += float(values.sum())
        self.sketch.add(values)

    def publish(self) -> Percentiles:
        """What is known; the next period begins."""
        sketch, self.sketch = self.sketch, QuantileSketch()
        quantiles = {part: sketch.quantile(part) for part in QUANTILES if sketch.count}
        return Percentiles(self.count, self.total_ns, quantiles)


class MonitorStatistics:
    """All durations of a monitor, by series."""

    def __init__(self) -> None:
        self.series: dict[Series, _Durations] = {}
        self.recorded: Counter[str] = Counter()  # launches, by kernel

    def add(self, raw: RawRun) -> None:
        """Adds a part of a run. Raises TraceFormatError where its records are broken."""
        for series, values in durations(raw):
            self.add_times(series, values)
        self.recorded.update(raw.kernels[launch.kernel].name for launch in raw.launches)

    def add_times(self, series: Series, values: np.ndarray) -> None:
        """Adds durations of one series, ns."""
        if series not in self.series and len(self.series) >= MOST_SERIES:
            kind, kernel, scope = series
            series = kind, kernel and OTHERS, scope and OTHERS
        self.series.setdefault(series, _Durations()).add(values.astype(np.float64))

    def publish(self) -> dict[Series, Percentiles]:
        """All series; the next period begins."""
        return {series: found.publish() for series, found in self.series.items()}

    def figures(self, budget: LaunchBudget) -> dict[str, KernelFigures]:
        """Of each kernel, of all sizes."""
        by_name: dict[str, list[KernelBudget]] = {name: [] for name in list(budget.gates)}
        for kernel in list(budget.kernels.values()):
            by_name[kernel.kernel].append(kernel)
        return {
            name: self._figures(name, budget.gates[name].launches, of)
            for name, of in by_name.items()
        }

    def _figures(self, name: str, launches: int, of: list[KernelBudget]) -> KernelFigures:
        time = sum(kernel.plain_ns * kernel.launches for kernel in of)
        cost = sum(kernel.share * kernel.plain_ns * kernel.launches for kernel in of)
        return KernelFigures(
            launches=launches,
            recorded=self.recorded[name],
            every=min((kernel.every for kernel in of if kernel.every), default=0),
            cost=cost / time if time else 0.0,
        )


def durations(raw: RawRun) -> Iterator[tuple[Series, np.ndarray]]:
    """The durations of visits of each scope of kernels, without what recording took of them, and of
    each scope of the host; ns."""
    if any(launch.buffer.size for launch in raw.launches):
        columns = of_records(raw, read(raw))
        for (kernel, scope), values in visits(columns, ("kernel", "scope"), CORRECTED):
            yield (SCOPE, str(kernel), str(scope)), values
    host: dict[str, list[int]] = {}
    for slice_ in raw.host:
        if slice_.kind == HOST and slice_.end > slice_.start:  # not a mark
            host.setdefault(slice_.path, []).append(slice_.end - slice_.start)
    for path, times in host.items():
        yield (HOST, "", path), np.array(times)
