"""The options of a monitor: those of a session, and what it may cost and keep."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from typing import Any

from proton.base.errors import ProfileError
from proton.trace.instrumentation import Check, Option, SessionOptions, option_of
from proton.trace.strategy import Strategy

# Options of a session that keep more the longer it goes on, or choose launches by themselves.
REFUSED = {
    "every_launch": "budget chooses which launches are recorded",
    "compare_run_time": "budget compares run times by itself",
    "activities": "CUPTI keeps all that a process does",
    "counters": "the sampler keeps all samples to its end",
    "pc_sampling": "a launch that is sampled is waited for",
}


def _check_budget(name: str, value: object) -> float:
    """A part of a kernel's time, as a number or as text such as `0.5%`."""
    number: object = value
    if isinstance(value, str):
        text = value.strip()
        try:
            number = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
        except ValueError:
            number = None
    if isinstance(number, bool) or not isinstance(number, int | float) or not 0 < number < 1:
        raise ProfileError(
            f'{name} is a part of a kernel\'s time, above 0 and below 1: "0.5%" or 0.005; got '
            f"{value!r}"
        )
    return float(number)


def _check_positive(name: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < math.inf:
        raise ProfileError(f"{name} must be a number above 0, got {value!r}")
    return float(value)


def _check_folder(name: str, value: object) -> str:
    text = str(value) if hasattr(value, "__fspath__") else value
    if not isinstance(text, str) or not text:
        raise ProfileError(f"{name} is the path of a folder, got {value!r}")
    return text


def _check_metrics(name: str, value: object) -> tuple[Any, ...]:
    if isinstance(value, str):
        return tuple(part.strip() for part in value.split(",") if part.strip())
    return tuple(value) if isinstance(value, Sequence) else (value,)


def _of_monitor(default: Any, help: str, check: Check, *, kw_only: bool = True) -> Any:
    return field(default=default, kw_only=kw_only, metadata={"option": Option(help, check)})


@dataclass(frozen=True)
class MonitorOptions(SessionOptions):
    """What a monitor is asked for. Raises ProfileError for a value that breaks its option's
    rule."""

    name: str = _of_monitor("monitor", "Of the runs.", lambda name, value: value)
    folder: str = _of_monitor("", "Folder of a monitor's runs.", _check_folder, kw_only=False)
    budget: float | str = _of_monitor(
        "0.5%",
        "What recording may cost, as a part of each kernel's time: which launches are recorded "
        "follows from what launches with records and without took.",
        _check_budget,
    )
    period_s: float = _of_monitor(
        60.0, "Seconds that percentiles are of, and a run.", _check_positive
    )
    folder_mb: float = _of_monitor(
        512.0,
        "Megabytes of all runs in the folder; the oldest are deleted, and no run is larger than "
        "an eighth.",
        _check_positive,
    )
    metrics: Sequence[Any] = _of_monitor(
        (),
        "Who is told: prometheus:PORT or prometheus:ADDRESS:PORT serves HTTP, prometheus joins "
        "the client's own registry, opentelemetry takes the global meter provider; needs "
        "pip install 'proton-tile[metrics]'. A function also takes a CollectorRegistry or a "
        "MeterProvider.",
        _check_metrics,
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        of = {of.name: of for of in fields(self)}
        for name, why in REFUSED.items():
            value, default = getattr(self, name), of[name].default
            if value != option_of(of[name]).check(name, default):
                raise ProfileError(f"a monitor takes no {name}={value!r}: {why}")
        if Strategy(self.strategy).moves:
            raise ProfileError(
                f"a monitor takes no strategy={self.strategy!r}, which keeps all records; give "
                "capacity=N, the newest records of a program or unit that a ring keeps"
            )
