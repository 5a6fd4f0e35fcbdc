"""What a timeline shows first: one launch that stands for the work.

A compilation takes a thousand times as long as a launch, and the first launch is a cold one, on a
CPU with the compilation in it. So the view is the launch of median time of the kernel whose
launches take most time, each counted as that one, of those that left records:

    run    [  compile  ][a ][a] [a]    [  compile  ][b][b]
    view                    [a]
"""

import numpy as np

from proton.viewer.tables.tables import Tables

MARGIN = 20  # one part of so many, on either side
Interval = tuple[int, int]


def typical(times: np.ndarray) -> int:
    """Which of these times is the median, of two in the middle the shorter; of equal ones the
    first."""
    return int(np.argsort(times, kind="stable")[(times.size - 1) // 2])


def first_launch(tables: Tables) -> int | None:
    """The number of the launch that a timeline shows first; None for a run without launches.

    Where no launch left records all of them count.
    """
    launches = tables.launches
    recorded = launches[launches["strategy"] != "none"]
    shown = recorded if len(recorded) else launches
    if not len(shown):
        return None
    best, most = None, -1
    for _, own in shown.groupby(["kernel", "variant"], sort=False):
        times = own["dur_ns"].to_numpy()
        middle = typical(times)
        if (time := int(times[middle]) * times.size) > most:
            best, most = int(own.index[middle]), time
    return best


def first_view(tables: Tables) -> Interval | None:
    """From when to when, in ns since the run's origin: that launch, where there is none all that
    GPUs did, as CUPTI saw it. None for a run with neither."""
    number = first_launch(tables)
    if number is not None:
        launch = tables.launches.loc[number]
        return _with_margin(int(launch["start_ns"]), int(launch["start_ns"] + launch["dur_ns"]))
    origin = tables.raw.origin_ns
    seen = [(s.start - origin, s.end - origin) for s in tables.raw.host if s.device >= 0]
    if not seen:
        return None
    starts, ends = zip(*seen, strict=True)
    return _with_margin(min(starts), max(ends))


def _with_margin(start: int, end: int) -> Interval:
    margin = max(1, (end - start) // MARGIN)
    return start - margin, end + margin
