"""A monitor's figures for Prometheus."""

from collections.abc import Iterator
from typing import Any

from prometheus_client import REGISTRY, CollectorRegistry, start_http_server
from prometheus_client.core import Metric

from proton.base.errors import ProfileError, reason
from proton.monitoring.instruments import instruments
from proton.monitoring.statistics import Figures, Percentiles

NS = 1e-9


class PrometheusExporter:
    """A collector of a registry: one that is given, the client's own, or one that is served at a
    port (0: any; `port` says which)."""

    def __init__(self, figures: Figures, registry: Any, address: str, port: int | None) -> None:
        self.figures = figures
        self.registry = registry or (REGISTRY if port is None else CollectorRegistry())
        self.server: Any = None
        if port is not None:
            try:
                self.server, self.thread = start_http_server(port, address, self.registry)
            except OSError as error:
                raise ProfileError(f"Prometheus at {address}:{port}: {reason(error)}") from None
        self.registry.register(self)

    @property
    def port(self) -> int:
        return int(self.server.server_port)

    def describe(self) -> list[Metric]:
        """None: names are known once there are figures."""
        return []

    def collect(self) -> Iterator[Metric]:
        """The figures of the last period, if one has ended."""
        snapshot = self.figures()
        if snapshot is None:
            return
        for instrument, points in instruments(snapshot):
            name = "_".join(["proton", *instrument.name.split("."), *instrument.unit.split()])
            metric = Metric(name, instrument.help, instrument.kind)
            end = "_total" if instrument.kind == "counter" else ""
            for labels, value in points:
                if isinstance(value, Percentiles):
                    for part, ns in value.quantiles.items():
                        metric.add_sample(name, {**labels, "quantile": f"{part:g}"}, ns * NS)
                    metric.add_sample(f"{name}_count", dict(labels), value.count)
                    metric.add_sample(f"{name}_sum", dict(labels), value.total_ns * NS)
                else:
                    metric.add_sample(name + end, dict(labels), value)
            yield metric

    def close(self) -> None:
        self.registry.unregister(self)
        if self.server is not None:
            self.server.shutdown()
            self.server.server_close()
            self.thread.join()
