"""How many slices each record stands for, with those of which nobody has records.

A ring buffer keeps the newest records of a unit. What it lost counts as what is left of loops:

    written   i0 i1 i2 i3 i4 i5 epilogue
    kept                  i4 i5 epilogue     i4 and i5 have a weight of 3, the epilogue of 1

Where one iteration of so many is recorded (`every`) a record of a loop stands for all of these.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from proton.trace.records import NONE
from proton.viewer.tables import Tables
from proton.viewer.tables.stats import own_values, right_inside


class Counted:
    """The records of a run."""

    def __init__(self, tables: Tables) -> None:
        self.tables = tables
        self.records = tables.records

    @cached_property
    def launch_of(self) -> np.ndarray:
        """The launch of each record."""
        return np.asarray(self.records.tracks.launch[self.records.track])

    @cached_property
    def weight(self) -> np.ndarray:
        """How many slices each record stands for, with those that nobody recorded."""
        return self.written * self.sampled

    @cached_property
    def sampled(self) -> np.ndarray:
        """How many slices each record stands for by `every`, with itself."""
        records = self.records
        found = np.ones(records.kind.size)
        of = np.array([launch.kernel for launch in self.tables.raw.launches], np.int64)
        for number, kernel in enumerate(self.tables.kernels):
            every = kernel.options.get("every", 1)
            if not isinstance(every, int) or every <= 1:
                continue
            rows = np.flatnonzero((of[self.launch_of] == number) & (records.iteration != NONE))
            for scope in np.unique(records.scope[rows]).tolist():
                own = rows[records.scope[rows] == scope]
                iteration = records.iteration[own]
                if (iteration % every == 0).all():  # issues and waits have all of them
                    # How many the last one stands for is not known: half of them in the mean.
                    found[own] *= np.where(iteration < iteration.max(), every, (every + 1) / 2)
        return found

    @cached_property
    def written(self) -> np.ndarray:
        """How many of the records that were written each one stands for."""
        records, tracks = self.records, self.records.tracks
        lost = np.maximum(tracks.written - tracks.kept, 0)
        if not lost.any():
            return np.ones(records.kind.size)
        count = tracks.row.size
        repeats = records.iteration != NONE
        inside = np.bincount(records.track[repeats], minlength=count)
        alone = np.bincount(records.track, minlength=count)
        factor = 1 + lost / np.maximum(np.where(inside > 0, inside, alone), 1)
        return np.where(repeats | (inside[records.track] == 0), factor[records.track], 1.0)

    def total(self, rows: np.ndarray, values: np.ndarray) -> float:
        """The sum of values of some records, with that of records which were lost."""
        return float((values * self.weight[rows]).sum())

    def own(self, rows: np.ndarray, values: np.ndarray, is_cut: bool = False) -> np.ndarray:
        """Values of slices, some rows of records, less those of the slices right inside them, with
        those that `every` left out; where it `is_cut`, of what units have records of."""
        records, scope = self.records, self.records.scope[rows]
        track, start, end = records.track[rows], records.start_ns[rows], records.end_ns[rows]
        lossy = is_cut & (records.tracks.written > records.tracks.kept)[track]
        if not lossy.any() and (self.sampled[rows] == 1).all():
            return own_values(track, start, end, values)
        inner, around = right_inside(track, start, end)
        has_inner = np.isin(scope, scope[around])
        oldest, unit = np.unique(track, return_index=True, return_inverse=True)[1:]
        since = np.where(has_inner, end, start)[oldest][unit.ravel()]
        left = np.clip(end - since, 0, None) / np.maximum(end - start, 1)
        left = np.where(lossy & (since > start), left, 1.0)
        known = np.where(has_inner, left, 1.0)
        each = values[inner] * left[inner] * self._counted_inside(rows[inner], rows[around])
        inside = np.bincount(around, each, rows.size)
        found = np.maximum(values * known - inside, 0.0)
        is_alone = (self.written[rows] == 1) & (known < 1)
        scaled = np.divide(found, known, out=values.astype(np.float64), where=known > 0)
        return np.where(is_alone, scaled, found)

    def _counted_inside(self, inner: np.ndarray, around: np.ndarray) -> np.ndarray:
        """How many slices, by `every`, each of some records stands for in the one around it: one,
        where both are of the same loop."""
        records = self.records
        pair = records.scope[inner].astype(np.int64) * len(records.scopes) + records.scope[around]
        number, of = np.unique(pair, return_inverse=True)
        is_other = records.iteration[inner] != records.iteration[around]
        in_own_loop = np.bincount(of.ravel(), is_other, number.size)[of.ravel()] > 0
        return np.where(in_own_loop, self.sampled[inner], 1.0)
