"""What was measured of configurations: what `do_bench` gave, the fastest, the times on disk."""

import math
from typing import Any

import numpy as np

from proton.base.words import shown
from proton.compiling import cache
from proton.runtime.tuning.configurations import Config


def rank(timing: Any) -> tuple[float, ...]:
    """The result of `do_bench`, as it is compared: one time, or several, of which the first
    decides."""
    return tuple(np.ravel(np.asarray(timing, np.float64)).tolist())


def check(timing: object) -> None:
    """Raises ValueError for what a `do_bench` of the program's returned, if it is no time."""
    try:
        times = rank(timing)
    except (TypeError, ValueError):
        times = ()
    if not times or any(map(math.isnan, times)):
        raise ValueError(
            f"autotune: do_bench returns a time in ms, or several, got {shown(timing)}"
        )


def best_of(timings: dict[Config, object]) -> Config:
    """The fastest."""
    return min(timings, key=lambda config: rank(timings[config]))


def stored(entry: str, configs: list[Config]) -> dict[Config, object] | None:
    """The times of all configurations on disk."""
    found = cache.load(entry)
    if found is None:
        return None
    timings = found[0]["timings"]
    return dict(zip(configs, timings, strict=True)) if len(timings) == len(configs) else None


def store(entry: str, timings: dict[Config, object]) -> None:
    """Puts them there."""
    cache.store(entry, {"timings": [list(rank(timing)) for timing in timings.values()]}, {})
