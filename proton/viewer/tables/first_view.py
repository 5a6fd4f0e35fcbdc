"""What a timeline shows first: the first launches, large enough to see.

A compilation takes a thousand times as long as a launch, so a picture of a whole run often shows
nothing else. The view begins at the first launch that left records, and goes on as far as launches
fill a tenth of it:

    run    [  compile  ][a] [a] [a]    [  compile  ][b] [b]
    view                [a] [a] [a]
"""

from collections.abc import Iterable

from proton.viewer.tables.tables import Tables

FILLED = 10  # launches take at least one part of so many of the view
MARGIN = 20  # one part of so many, on either side
Interval = tuple[int, int]


def first_view(tables: Tables) -> Interval | None:
    """From when to when, in ns since the run's origin; None for a run without launches.

    Where no launch left records all of them count. So does what a GPU did from then on, as CUPTI
    saw it, and where there is no launch all of that.
    """
    launches = tables.launches
    recorded = launches[launches["strategy"] != "none"]
    shown = recorded if len(recorded) else launches
    starts, durations = shown["start_ns"].tolist(), shown["dur_ns"].tolist()
    found = [(start, start + length) for start, length in zip(starts, durations, strict=True)]
    origin, first = tables.raw.origin_ns, min(starts, default=None)
    seen = [(s.start - origin, s.end - origin) for s in tables.raw.host if s.device >= 0]
    found += [times for times in seen if first is None or times[0] >= first]
    return _with_margin(*_filled(found)) if found else None


def _filled(intervals: Iterable[Interval]) -> Interval:
    """From the first interval as far as they fill enough."""
    first, *rest = sorted(intervals)
    start, filled = first
    last, busy = filled, filled - start
    for begin, end in rest:
        busy += max(0, end - max(begin, last))
        last = max(last, end)
        if last - start <= FILLED * busy:
            filled = last
    return start, filled


def _with_margin(start: int, end: int) -> Interval:
    margin = max(1, (end - start) // MARGIN)
    return start - margin, end + margin
