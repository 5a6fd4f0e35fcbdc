"""Times with their units."""

import math

UNITS = (("ns", 1.0), ("us", 1e3), ("ms", 1e6), ("s", 1e9))
THOUSAND = 1000.0


def duration(ns: float, digits: int = 3) -> str:
    """A time in the unit that suits it, by so many digits (3 or more): `950 ns`, `1.25 us`."""
    largest = THOUSAND - 0.5 * 10.0 ** (3 - digits)  # what is more is written as 1000
    unit, size = next(((u, s) for u, s in UNITS if abs(ns) < largest * s), UNITS[-1])
    value = ns / size
    return f"{value:.{digits}g} {unit}" if abs(value) < largest else f"{value:.0f} {unit}"


def moment(ns: float, step: float) -> str:
    """A time since the run's origin, as `start_ns` and `--start` count, with as many digits as tell
    it from one a step later: `813.2341 ms` and a step of 100 ns."""
    unit, size = next(((u, s) for u, s in reversed(UNITS) if abs(ns) >= s), UNITS[0])
    digits = max(0, math.ceil(math.log10(size / max(step, 1.0)) - 1e-9))
    return f"{ns / size:.{digits}f} {unit}"
