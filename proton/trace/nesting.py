"""Which slice lies in which: intervals on tracks, as a sequence of begins and ends.

Intervals on one track normally nest. Then one walk in time passes each begin and each end, and
the place of both in that walk (`begin_at`, `end_at`) says everything: order, depth, and how many
intervals lie inside. The rules where times are equal:

    ends come before begins               [0, 5] [5, 9]   are neighbours
    the longer one begins first           [0, 9] [0, 5]   the second is inside
    what was recorded later is outside    [0, 5] [0, 5]   a record is written when its slice ends
    an empty one lies after the begins    [5, 9] [5, 5]   the second is inside
"""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

AT_ONCE = 1 << 16  # intervals, more where a track has more
_MAX_KEY = 1 << 61


@dataclass(frozen=True, kw_only=True)
class Nesting:
    """Per interval: where in the walk it begins and ends, whether it is `crossed` (it overlaps
    another on its track without nesting), and how many lie `inside` it."""

    begin_at: np.ndarray
    end_at: np.ndarray
    crossed: np.ndarray
    inside: np.ndarray


def nest(track: np.ndarray, start: np.ndarray, end: np.ndarray) -> Nesting:
    """Nests intervals that are grouped by track (`track` never falls), in recorded order.

    Tracks have nothing to do with each other, so they are walked a few at a time: what is sorted
    then fits in a cache, and takes little memory.
    """
    if track.size <= AT_ONCE:
        return _nest(track, start, end)
    found = Nesting(
        begin_at=np.empty(track.size, np.int64),
        end_at=np.empty(track.size, np.int64),
        crossed=np.empty(track.size, bool),
        inside=np.empty(track.size, np.int64),
    )
    for rows in some_tracks(track):
        first, part = rows.start, _nest(track[rows], start[rows], end[rows])
        found.begin_at[rows] = part.begin_at + 2 * first
        found.end_at[rows] = part.end_at + 2 * first
        found.crossed[rows], found.inside[rows] = part.crossed, part.inside
    return found


def some_tracks(track: np.ndarray) -> Iterator[slice]:
    """Rows that are grouped by track in parts of some whole tracks each."""
    if not track.size:
        return
    heads = np.flatnonzero(np.diff(track, prepend=track[0] - 1))
    cuts = heads[np.searchsorted(heads, np.arange(0, track.size, AT_ONCE), side="right") - 1]
    for first, last in itertools.pairwise(np.unique(np.append(cuts, track.size)).tolist()):
        yield slice(first, last)


def levels(nesting: Nesting) -> list[tuple[np.ndarray, np.ndarray]]:
    """For each depth, from 1 on, the intervals that lie so deep, and those right around them.

    For intervals of which none is crossed. In the order of begins the one around an interval is
    the last before it that is one less deep.
    """
    by_begin = np.argsort(nesting.begin_at)
    depth = 2 * np.arange(by_begin.size) - nesting.begin_at[by_begin]
    found = []
    outer = np.flatnonzero(depth == 0)
    for level in range(1, int(depth.max(initial=0)) + 1):
        inner = np.flatnonzero(depth == level)
        around = outer[np.searchsorted(outer, inner) - 1]
        found.append((by_begin[inner], by_begin[around]))
        outer = inner
    return found


def apart(
    track: np.ndarray, start: np.ndarray, end: np.ndarray, nesting: Nesting
) -> tuple[np.ndarray, np.ndarray, Nesting]:
    """Intervals such that none is crossed: what overlaps without nesting is on tracks of its own.

    Of those the numbers, in order, the row of each interval, and how they nest. `nesting` is what
    `nest` says of the rows.
    """
    if not nesting.crossed.any():
        return track, np.arange(track.size), nesting
    lane = lanes(track, nesting)
    track = track * (lane.max() + 1) + lane
    order = np.argsort(track, kind="stable")
    return track[order], order, nest(track[order], start[order], end[order])


def cover_inner(
    values: np.ndarray, track: np.ndarray, start: np.ndarray, end: np.ndarray, nesting: Nesting
) -> np.ndarray:
    """The values, but that none is less than the sum of those right inside it."""
    found = values.copy()
    for rows in some_tracks(track):
        if not nesting.inside[rows].any():
            continue
        own = _part(nesting, rows)
        _, order, own = apart(track[rows], start[rows], end[rows], own)
        part = found[rows][order]
        for inner, around in reversed(levels(own)):
            inside = np.zeros_like(part)
            np.add.at(inside, around, part[inner])
            np.maximum(part, inside, out=part)
        found[rows.start + order] = part
    return found


def _part(nesting: Nesting, rows: slice) -> Nesting:
    """That of some whole tracks."""
    return Nesting(
        begin_at=nesting.begin_at[rows] - 2 * rows.start,
        end_at=nesting.end_at[rows] - 2 * rows.start,
        crossed=nesting.crossed[rows],
        inside=nesting.inside[rows],
    )


def _nest(track: np.ndarray, start: np.ndarray, end: np.ndarray) -> Nesting:
    """The same for all of these at once."""
    begin_key, end_key = _keys(track, start, end)
    latest_first = np.argsort(end_key, kind="stable")[::-1]
    by_begin = latest_first[np.argsort(begin_key[latest_first], kind="stable")]
    innermost_first = by_begin[::-1]
    by_end = innermost_first[np.argsort(end_key[innermost_first], kind="stable")]

    rank = np.arange(track.size)
    begin_at, end_at = np.empty_like(rank), np.empty_like(rank)
    begins, ends = begin_key[by_begin], end_key[by_end]
    begin_at[by_begin] = rank + np.searchsorted(ends, begins, side="right")
    end_at[by_end] = rank + np.searchsorted(begins, ends, side="left")
    crossed = _crossed(track, by_begin, by_end, begin_at, end_at)
    inside = (end_at - begin_at - 1) // 2
    if crossed.any():
        inside[crossed] = _count_inside(crossed, by_begin, by_end)
    return Nesting(begin_at=begin_at, end_at=end_at, crossed=crossed, inside=inside)


def lanes(track: np.ndarray, nesting: Nesting) -> np.ndarray:
    """For each interval the first lane of its track on which it crosses no other.

    All 0 where everything nests; else a loop over the intervals of the tracks that do not.
    """
    lane = np.zeros(track.size, np.int64)
    some = np.flatnonzero(nesting.crossed)
    some = some[np.argsort(nesting.begin_at[some])]
    first, others, current = list[int](), list[list[int]](), -1
    columns = (some, track[some], nesting.begin_at[some], nesting.end_at[some])
    for i, on, begin, end in zip(*(column.tolist() for column in columns), strict=True):
        if on != current:
            first, others, current = [], [], on
        while first and first[-1] < begin:
            first.pop()
        if not first or first[-1] > end:  # most are
            first.append(end)
        else:
            lane[i] = 1 + _first_free(others, begin, end)
    return lane


def _first_free(open_ends: list[list[int]], begin: int, end: int) -> int:
    """The first lane where [begin, end] nests; opens it there."""
    for number, ends in enumerate(open_ends):
        while ends and ends[-1] < begin:
            ends.pop()
        if not ends or ends[-1] > end:
            ends.append(end)
            return number
    open_ends.append([end])
    return len(open_ends) - 1


def _keys(track: np.ndarray, start: np.ndarray, end: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Times as one int64 line on which tracks follow each other without touching.

    Doubled, so that an empty interval can end half a tick after it began.
    """
    if not track.size:
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    heads = np.flatnonzero(np.diff(track, prepend=track[0] - 1))
    sizes = np.diff(np.append(heads, track.size))
    low = np.minimum.reduceat(start, heads)
    span = np.maximum.reduceat(end, heads) - low
    if float(span.astype(np.float64).sum()) + heads.size > _MAX_KEY:
        # sums of spans that large do not fit: the times' ranks, which nest alike, do
        times, rank = np.unique(np.concatenate([start, end]), return_inverse=True)
        start, end = rank[: track.size], rank[track.size :]
        low, span = np.zeros(heads.size, np.int64), np.full(heads.size, times.size)
    span = span.astype(np.int64) + 1
    shift = np.repeat(np.cumsum(span) - span, sizes)
    low = np.repeat(low, sizes)
    begin_key = 2 * ((start - low).astype(np.int64) + shift)
    end_key = 2 * ((end - low).astype(np.int64) + shift)
    return begin_key, end_key + (start == end)


def _crossed(
    track: np.ndarray,
    by_begin: np.ndarray,
    by_end: np.ndarray,
    begin_at: np.ndarray,
    end_at: np.ndarray,
) -> np.ndarray:
    """The intervals of tracks on which some interval does not end at the depth it began at."""
    rank = np.arange(track.size)
    depth, end_depth = np.empty_like(rank), np.empty_like(rank)
    depth[by_begin] = 2 * rank - begin_at[by_begin]  # begins before it, less ends before it
    end_depth[by_end] = end_at[by_end] - 2 * rank - 1
    wrong = depth != end_depth
    if not wrong.any():
        return wrong
    return np.isin(track, track[wrong])


def _count_inside(crossed: np.ndarray, by_begin: np.ndarray, by_end: np.ndarray) -> np.ndarray:
    """How many intervals lie inside each crossed one: those that begin after it and end before.

    Counted by merging: at each doubling of width, a left half counts its right half's smaller.
    """
    first = by_begin[crossed[by_begin]]
    end_rank = np.empty(crossed.size, np.int64)
    end_rank[by_end] = np.arange(by_end.size)
    size = 1 << max(first.size - 1, 0).bit_length()
    ends = np.full(size, crossed.size, np.int64)  # the padding ends last, so nothing counts it
    ends[: first.size] = end_rank[first]
    count = np.zeros(size, np.int64)
    width = 1
    while width < size:
        halves = ends.reshape(-1, 2, width)
        block = np.arange(halves.shape[0])[:, None] * (crossed.size + 1)
        right = np.sort(halves[:, 1], axis=1) + block
        found = np.searchsorted(right.ravel(), halves[:, 0] + block)
        count.reshape(-1, 2, width)[:, 0] += found - np.arange(halves.shape[0])[:, None] * width
        width *= 2
    inside = np.empty(crossed.size, np.int64)
    inside[first] = count[: first.size]
    return inside[crossed]
