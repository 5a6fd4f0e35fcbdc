"""Who is told a monitor's figures: Prometheus and OpenTelemetry, by their own clients."""

from typing import Protocol

from proton.base.errors import ProfileError
from proton.base.packages import need
from proton.monitoring.statistics import Figures

PROMETHEUS, OPENTELEMETRY = "prometheus", "opentelemetry"
EXTRA = "metrics"


class Exporter(Protocol):
    """Tells figures until it is closed."""

    def close(self) -> None: ...


def exporter_of(asked: object, figures: Figures) -> Exporter:
    """The exporter of a word of the option `metrics`, or for a client's own object. Raises
    ProfileError for another one, MissingPackage without the client."""
    word, *place = asked.split(":") if isinstance(asked, str) else [""]
    if word == PROMETHEUS or hasattr(asked, "collect"):
        need(f"metrics={asked!r}", "prometheus_client", EXTRA)
        from proton.monitoring.prometheus import PrometheusExporter

        return PrometheusExporter(figures, None if word else asked, *_address(asked, place))
    if (word == OPENTELEMETRY and not place) or hasattr(asked, "get_meter"):
        need(f"metrics={asked!r}", OPENTELEMETRY, EXTRA)
        from proton.monitoring.opentelemetry import OpenTelemetryExporter

        return OpenTelemetryExporter(figures, None if word else asked)
    raise ProfileError(
        "metrics takes prometheus, prometheus:PORT, prometheus:ADDRESS:PORT, opentelemetry, a "
        f"CollectorRegistry or a MeterProvider; got {asked!r}"
    )


def _address(asked: object, place: list[str]) -> tuple[str, int | None]:
    """The address and the port to serve, by default of this machine alone; no port where nothing is
    served."""
    if not place:
        return "", None
    *address, port = place
    if not port.isdecimal() or int(port) >= 1 << 16:
        raise ProfileError(f"metrics={asked!r}: a port is a number below 65536, got {port!r}")
    return ":".join(address).strip("[]") or "127.0.0.1", int(port)
