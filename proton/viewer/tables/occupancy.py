"""How well launches fill their SMs (or threads): residency, waves, tail and imbalance."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from proton.trace.records import NONE
from proton.viewer.tables.labels import kernel_labels
from proton.viewer.tables.tables import Tables

if TYPE_CHECKING:
    import pandas as pd

COLUMNS = ("kernel", "launch", "programs", "places", "most", "mean", "waves", "tail", "imbalance",
           "dur_ns")  # fmt: skip


def occupancy(tables: Tables) -> pd.DataFrame:
    """One row a launch of which programs left their times.

    `places` are the SMs (threads, on the CPU) that it used; `most` the most programs that one had
    at once, and `mean` how many it had in the mean while the launch ran. `waves` are its programs
    over places x most. `tail` is the part of the launch, in percent, from when the first place had
    no program left until the end; `imbalance` the longest time that a place was busy over the mean.
    """
    import pandas as pd

    programs = tables.programs
    labels = kernel_labels(tables.raw.kernels)
    rows = []
    launch = programs["launch"].to_numpy()
    edges = np.flatnonzero(np.diff(launch, prepend=-1, append=-1))
    starts, ends = programs["start_ns"].to_numpy(), programs["dur_ns"].to_numpy()
    ends = starts + ends
    place = np.where(programs["device"] == NONE, programs["thread"], programs["sm"])
    for first, last in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True):
        part = slice(first, last)
        number = int(launch[first])
        label = labels[tables.raw.launches[number].kernel]
        rows.append((label, number, *_of(place[part], starts[part], ends[part])))
    return pd.DataFrame(rows, columns=list(COLUMNS))


def _of(place: np.ndarray, start: np.ndarray, end: np.ndarray) -> tuple[float, ...]:
    """The numbers of one launch."""
    used, of = np.unique(place, return_inverse=True)
    of, length = of.ravel(), max(int(end.max() - start.min()), 1)
    most = max(int(at_once(start[of == k], end[of == k]).max()) for k in range(used.size))
    most = max(most, 1)  # of those that took no time none is open
    last = np.full(used.size, np.iinfo(np.int64).min)
    np.maximum.at(last, of, end)
    busy = np.array([_union(start[of == k], end[of == k]) for k in range(used.size)], np.float64)
    return (
        place.size,
        used.size,
        most,
        float((end - start).sum()) / length / used.size,
        place.size / (used.size * most),
        100.0 * float(end.max() - last.min()) / length,
        float(busy.max() / busy.mean()) if busy.any() else 1.0,
        length,
    )


def at_once(start: np.ndarray, end: np.ndarray) -> np.ndarray:
    """How many intervals are open from each of their ends on, in order of time. What ends when
    another begins is closed before."""
    times = np.concatenate([start, end])
    change = np.repeat([1, -1], [start.size, end.size])
    order = np.lexsort((change, times))
    return np.cumsum(change[order])


def _union(start: np.ndarray, end: np.ndarray) -> int:
    """How long at least one interval was open."""
    order = np.argsort(start, kind="stable")
    start, end = start[order], np.maximum.accumulate(end[order])
    before = np.append(start[0], end[:-1])
    return int(np.maximum(end - np.maximum(start, before), 0).sum())
