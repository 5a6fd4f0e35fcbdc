"""A monitor's figures as instruments of metrics: one list for whoever is told."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from proton.monitoring.sketch import RELATIVE_ERROR
from proton.monitoring.statistics import HOST, KERNEL, SCOPE, Percentiles, Snapshot

Labels = Mapping[str, str]


@dataclass(frozen=True)
class Instrument:
    """`kind` is "counter", "gauge" or "summary"; points are values, of a summary durations in ns.
    The name has dots, and no unit."""

    name: str
    kind: str
    unit: str
    help: str
    labels: tuple[str, ...] = ()


_ERROR = f"Quantiles are of the last period, off by {RELATIVE_ERROR:.0%} at most."
LAUNCHES = Instrument("kernel.launches", "counter", "", "Launches.", ("kernel",))
RECORDED = Instrument(
    "kernel.launches.recorded", "counter", "", "Launches whose records were kept.", ("kernel",)
)
EVERY = Instrument(
    "kernel.recorded.every", "gauge", "", "One launch of so many is recorded; 0: none yet.",
    ("kernel",),
)  # fmt: skip
COST = Instrument(
    "kernel.recording.cost", "gauge", "ratio",
    "The part of the kernel's time that recording takes, estimated.", ("kernel",),
)  # fmt: skip
BUDGET = Instrument("recording.budget", "gauge", "ratio", "What recording may take.")
DURATIONS = {
    KERNEL: Instrument(
        "kernel.duration", "summary", "seconds", f"Launches without records, a sample. {_ERROR}",
        ("kernel",),
    ),
    SCOPE: Instrument(
        "scope.duration", "summary", "seconds", f"Visits of scopes in kernels, a sample. {_ERROR}",
        ("kernel", "scope"),
    ),
    HOST: Instrument(
        "host.scope.duration", "summary", "seconds", f"Scopes of the host. {_ERROR}", ("scope",)
    ),
}  # fmt: skip
DROPPED = Instrument(
    "launches.dropped", "counter", "", "Launches to be recorded that left no records."
)
WRITTEN = Instrument("files.written", "counter", "bytes", "Of runs.")
LOST = Instrument("files.lost", "counter", "", "Runs that could not be written.")


def instruments(
    snapshot: Snapshot,
) -> Iterator[tuple[Instrument, list[tuple[Labels, float | Percentiles]]]]:
    """All of them with their points."""
    kernels = snapshot.kernels.items()
    yield LAUNCHES, [({"kernel": name}, of.launches) for name, of in kernels]
    yield RECORDED, [({"kernel": name}, of.recorded) for name, of in kernels]
    yield EVERY, [({"kernel": name}, of.every) for name, of in kernels]
    yield COST, [({"kernel": name}, of.cost) for name, of in kernels]
    yield BUDGET, [({}, snapshot.budget)]
    for kind, instrument in DURATIONS.items():
        points: list[tuple[Labels, float | Percentiles]] = []
        for (own, kernel, scope), found in snapshot.durations.items():
            if own == kind:
                said = {"kernel": kernel, "scope": scope}
                points.append(({name: said[name] for name in instrument.labels}, found))
        yield instrument, points
    yield DROPPED, [({}, snapshot.dropped)]
    yield WRITTEN, [({}, snapshot.bytes_written)]
    yield LOST, [({}, snapshot.files_lost)]
