"""What a timeline shows first: one launch that stands for the work.

A compilation takes a thousand times as long as a launch, and the first launch is a cold one, on a
CPU with the compilation in it. So the view is the launch of median time of the kernel whose
launches take most time, each counted as that one, of those that left records, and of several GPUs
on the one whose tracks are above:

    run    [  compile  ][a ][a] [a]    [  compile  ][b][b]
    view                    [a]

Where an iteration of its loop would be too narrow to be seen, the view is some iterations around
the one of median time.
"""

import numpy as np

from proton.trace.wire import RecordKind
from proton.viewer.tables.tables import Tables

MARGIN = 20  # one part of so many, on either side
LEAST = 40  # of a view's time an iteration is this part, else it is narrower than a name
AROUND = 5  # iterations on either side of one
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
            above = own[own["device"] == own["device"].min()]
            best, most = int(above.index[typical(above["dur_ns"].to_numpy())]), time
    return best


def first_view(tables: Tables) -> Interval | None:
    """From when to when, in ns since the run's origin: that launch, where there is none all that
    GPUs did, as CUPTI saw it. None for a run with neither."""
    number = first_launch(tables)
    if number is not None:
        launch = tables.launches.loc[number]
        start, end = int(launch["start_ns"]), int(launch["start_ns"] + launch["dur_ns"])
        found = median_iteration(tables, number)
        if found is None or (found[1] - found[0]) * LEAST >= end - start:
            return _with_margin(start, end)
        around = AROUND * (found[1] - found[0])
        return max(found[0] - around, start), min(found[1] + around, end)
    origin = tables.raw.origin_ns
    seen = [(s.start - origin, s.end - origin) for s in tables.raw.host if s.device >= 0]
    if not seen:
        return None
    starts, ends = zip(*seen, strict=True)
    return _with_margin(min(starts), max(ends))


def median_iteration(tables: Tables, number: int) -> Interval | None:
    """From when to when an iteration of a launch takes place, of median length: from one slice of
    the scope that has most to the next, in the same loop of the same unit. None where there is no
    loop, or no two of its iterations are there."""
    records = tables.records
    is_of = (records.tracks.launch == number)[records.track]
    rows = np.flatnonzero(is_of & (records.iteration >= 0) & (records.kind == RecordKind.SLICE))
    if not rows.size:
        return None
    rows = rows[records.scope[rows] == np.bincount(records.scope[rows]).argmax()]
    rows = rows[np.lexsort((records.start_ns[rows], records.track[rows]))]
    track, iteration = records.track[rows], records.iteration[rows]
    follows = (track[1:] == track[:-1]) & (iteration[1:] == iteration[:-1] + 1)
    starts = records.start_ns[rows[:-1][follows]], records.start_ns[rows[1:][follows]]
    if not starts[0].size:
        return None
    middle = typical(starts[1] - starts[0])
    return int(starts[0][middle]), int(starts[1][middle])


def _with_margin(start: int, end: int) -> Interval:
    margin = max(1, (end - start) // MARGIN)
    return start - margin, end + margin
