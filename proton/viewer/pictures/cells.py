"""Slices on a grid of rows and columns of time: how much of each column each slice has."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

INSTANT = 1e-3  # ns that an instant counts, so that it is seen where nothing else is


@dataclass(frozen=True, kw_only=True)
class Cells:
    """A row a slice and a column that it is in. Rows whose slices do not overlap have no more of
    them than slices and cells of the grid together."""

    index: np.ndarray  # of the slice
    column: np.ndarray
    ns: np.ndarray


def cells(start: np.ndarray, end: np.ndarray, span: tuple[int, int], columns: int) -> Cells:
    """Cuts slices at the edges of columns; what is outside of the span is not there."""
    width = (span[1] - span[0]) / columns
    from_ = np.clip(start, *span).astype(np.float64) - span[0]
    to = np.clip(end, *span).astype(np.float64) - span[0]
    within = np.flatnonzero((end >= span[0]) & (start <= span[1]))
    from_, to = from_[within], to[within]
    first = np.minimum((from_ / width).astype(np.int64), columns - 1)
    last = np.maximum(np.minimum(np.ceil(to / width).astype(np.int64) - 1, columns - 1), first)
    count = last - first + 1
    index = np.repeat(np.arange(within.size), count)
    column = np.arange(index.size) - np.repeat(np.cumsum(count) - count - first, count)
    ns = np.minimum(to[index], (column + 1) * width) - np.maximum(from_[index], column * width)
    return Cells(index=within[index], column=column, ns=np.maximum(ns, INSTANT))


def most(cell: np.ndarray, what: np.ndarray, ns: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The distinct cells, and in each what has the most time."""
    base = int(what.max(initial=0)) + 1
    pair, inverse = np.unique(cell * base + what, return_inverse=True)
    time = np.bincount(inverse.ravel(), ns, minlength=pair.size)
    order = np.lexsort((time, pair // base))
    last = order[np.flatnonzero(np.diff(pair[order] // base, append=-1))]
    return pair[last] // base, pair[last] % base
