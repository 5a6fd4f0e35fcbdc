"""A monitor's figures for OpenTelemetry."""

from collections.abc import Callable, Iterator
from typing import Any

from opentelemetry import metrics

from proton.monitoring.instruments import (
    BUDGET,
    COST,
    DROPPED,
    DURATIONS,
    EVERY,
    LAUNCHES,
    LOST,
    RECORDED,
    WRITTEN,
    Instrument,
    instruments,
)
from proton.monitoring.statistics import Figures, Percentiles

NS = 1e-9
UNITS = {"": "1", "ratio": "1", "seconds": "s", "bytes": "By"}  # as UCUM has them
Observe = Callable[[metrics.CallbackOptions], Iterator[metrics.Observation]]


class OpenTelemetryExporter:
    """Observable instruments of a meter provider: one that is given, or the global one. A duration
    is a gauge of quantiles, by the attribute `quantile`, and two counters, `.count` and `.sum`."""

    def __init__(self, figures: Figures, provider: Any) -> None:
        self.figures = figures
        self.is_closed = False
        meter = (provider or metrics.get_meter_provider()).get_meter("proton")
        for instrument in (LAUNCHES, RECORDED, EVERY, COST, BUDGET, DROPPED, WRITTEN, LOST):
            self._register(meter, instrument, instrument.kind == "counter")
        for instrument in DURATIONS.values():
            self._register(meter, instrument, False)
            self._register(meter, instrument, True, "count")
            self._register(meter, instrument, True, "sum")

    def _register(
        self, meter: metrics.Meter, of: Instrument, is_counter: bool, part: str = ""
    ) -> None:
        register = meter.create_observable_counter if is_counter else meter.create_observable_gauge
        name = ".".join(["proton", of.name, *([part] if part else [])])
        unit = "1" if part == "count" else UNITS[of.unit]
        register(name, [self._observe(of, part)], unit, of.help)

    def _observe(self, of: Instrument, part: str) -> Observe:
        def observe(_: metrics.CallbackOptions) -> Iterator[metrics.Observation]:
            snapshot = None if self.is_closed else self.figures()
            for instrument, points in [] if snapshot is None else instruments(snapshot):
                if instrument is of:
                    for labels, value in points:
                        yield from _observations(dict(labels), value, part)

        return observe

    def close(self) -> None:
        """Instruments cannot be taken back: they observe nothing from now on."""
        self.is_closed = True


def _observations(
    labels: dict[str, str], value: float | Percentiles, part: str
) -> Iterator[metrics.Observation]:
    if not isinstance(value, Percentiles):
        yield metrics.Observation(value, labels)
    elif part:
        yield metrics.Observation(value.count if part == "count" else value.total_ns * NS, labels)
    else:
        for quantile, ns in value.quantiles.items():
            yield metrics.Observation(ns * NS, {**labels, "quantile": f"{quantile:g}"})
