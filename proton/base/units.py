"""Times with their units."""

UNITS = (("ns", 1.0), ("us", 1e3), ("ms", 1e6), ("s", 1e9))
THOUSAND = 1000.0


def duration(ns: float, digits: int = 3) -> str:
    """A time in the unit that suits it, by so many digits (3 or more): `950 ns`, `1.25 us`."""
    largest = THOUSAND - 0.5 * 10.0 ** (3 - digits)  # what is more is written as 1000
    unit, size = next(((u, s) for u, s in UNITS if abs(ns) < largest * s), UNITS[-1])
    value = ns / size
    return f"{value:.{digits}g} {unit}" if abs(value) < largest else f"{value:.0f} {unit}"
