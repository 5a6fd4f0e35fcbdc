"""Visits: which slices are pieces of one run of a scope.

A scope that ran once may have left several slices: a compiler moves work apart, and begins some of
it in an earlier iteration. The scope table says which entries are pieces of one opening in the
source, and in which order they run (`Scope.visit`, `Scope.piece`). Pieces of one unit, opening and
iteration are a visit, as long as their order rises:

    piece        0  1  0  1  1  0  1
    iteration    0  0  1  1  0  0  0      a loop of two iterations, again and again
    visit        A  A  B  B  .  C  C      a piece whose first one was lost is a visit by itself

What a compiler took out of the loop has no iteration: ahead of the loop it belongs to the visit
that follows, behind the loop to the one before. Work begun ahead for an iteration that never came
belongs to the visit before. Every other slice is a visit by itself.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from proton.trace.model import Scope

NO_ITERATION, NO_PIECE = -1, -1


@dataclass(frozen=True, kw_only=True)
class Visits:
    """Of each slice the number of its visit, from 0 on, and whether that lacks pieces: those that
    a ring buffer lost."""

    number: np.ndarray
    cut: np.ndarray

    @staticmethod
    def of(number: np.ndarray, cut: np.ndarray) -> "Visits":
        """Those of rows of which some, with a negative number, are visits by themselves."""
        alone = number.max(initial=-1) + 1 + np.arange(number.size)
        return Visits(number=np.where(number < 0, alone, number), cut=cut)

    @cached_property
    def joined(self) -> np.ndarray:
        """Which slices are of visits that have several."""
        found: np.ndarray = np.bincount(self.number)[self.number] > 1
        return found

    @cached_property
    def is_split(self) -> bool:
        """Whether any visit has several pieces."""
        return bool(self.joined.any())


def group_visits(
    *,
    scopes: Sequence[Scope],
    scope: np.ndarray,
    track: np.ndarray,
    iteration: np.ndarray,
    start: np.ndarray,
    lossy: np.ndarray,
) -> Visits:
    """The visits of slices: rows of records, grouped by track.

    `lossy` says whether a track lost records.
    """
    of = np.array([entry.visit for entry in scopes] or [0], np.int64)[scope]
    piece = np.array([entry.piece for entry in scopes] or [0], np.int64)[scope]
    number, cut = np.arange(scope.size), np.zeros(scope.size, bool)
    rows = np.flatnonzero(of)
    if not rows.size:
        return Visits(number=number, cut=cut)
    opening = _codes(track[rows], of[rows])  # of each track
    number[rows] = _pieces_together(rows, opening, iteration[rows], start[rows], piece[rows])
    _join_loose(number, rows, opening, iteration[rows], start[rows], piece[rows])
    cut[rows] = _cut(number[rows], opening, start[rows], lossy[track[rows]])
    ahead = np.array([entry.ahead for entry in scopes], bool)[scope[rows]]
    last = rows[_last_that_came(number[rows], opening, start[rows], ahead)]
    number[rows], cut[rows] = number[last], cut[last]
    number = _codes(number)
    return Visits(number=number, cut=cut)


def _codes(*keys: np.ndarray) -> np.ndarray:
    """A number from 0 on for each combination of keys, in their order."""
    order = np.lexsort(keys[::-1])
    found = np.empty(order.size, np.int64)
    found[order] = np.cumsum(_changes(*(key[order] for key in keys))) - 1
    return found


def _changes(*keys: np.ndarray) -> np.ndarray:
    """The rows of which a key differs from that of the row before."""
    found = np.ones(keys[0].size, bool)
    found[1:] = np.logical_or.reduce([key[1:] != key[:-1] for key in keys])
    return found


def _pieces_together(
    rows: np.ndarray,
    opening: np.ndarray,
    iteration: np.ndarray,
    start: np.ndarray,
    piece: np.ndarray,
) -> np.ndarray:
    """Of each row the row of the first piece of its visit."""
    order = np.lexsort((start, iteration, opening))
    begins = _changes(opening[order], iteration[order])
    begins[1:] |= piece[order[1:]] <= piece[order[:-1]]
    found = np.empty(rows.size, np.int64)
    found[order] = rows[order][np.maximum.accumulate(np.where(begins, np.arange(rows.size), 0))]
    return found


def _join_loose(
    number: np.ndarray,
    rows: np.ndarray,
    opening: np.ndarray,
    iteration: np.ndarray,
    start: np.ndarray,
    piece: np.ndarray,
) -> None:
    """Gives pieces without an iteration the visit of a neighbour, where their opening has
    iterations."""
    in_loop = iteration != NO_ITERATION
    last = np.full(opening.max() + 1, NO_PIECE)  # that has an iteration
    np.maximum.at(last, opening[in_loop], piece[in_loop])
    loose = ~in_loop & (last[opening] != NO_PIECE)
    if not loose.any():
        return
    order = np.lexsort((start, opening))
    place, kept = np.arange(order.size), ~loose[order]
    before = np.maximum.accumulate(np.where(kept, place, -1))
    after = np.minimum.accumulate(np.where(kept, place, place.size)[::-1])[::-1]
    same = opening[order]
    has_before = (before >= 0) & (same[before] == same)
    inside = np.minimum(after, place.size - 1)
    has_after = (after < place.size) & (same[inside] == same)
    is_behind = piece[order] > last[same]
    takes_before = has_before & (is_behind | ~has_after)
    chosen = np.where(takes_before, before, np.where(has_after, inside, place))
    some = np.flatnonzero(~kept)
    number[rows[order[some]]] = number[rows[order[chosen[some]]]]


def _last_that_came(
    number: np.ndarray, opening: np.ndarray, start: np.ndarray, ahead: np.ndarray
) -> np.ndarray:
    """Of each row a row of its visit; where that has nothing but pieces ahead, the row that ran
    before in a visit of its opening that has more."""
    visit = _codes(number)
    came = np.zeros(visit.max() + 1, bool)
    came[visit[~ahead]] = True
    order = np.lexsort((start, opening))
    place, kept = np.arange(order.size), came[visit][order]
    before = np.maximum.accumulate(np.where(kept, place, -1))
    same = opening[order]
    moves = ~kept & (before >= 0) & (same[before] == same)
    found = np.empty(order.size, np.int64)
    found[order] = order[np.where(moves, before, place)]
    return found


def _cut(
    number: np.ndarray, opening: np.ndarray, start: np.ndarray, lossy: np.ndarray
) -> np.ndarray:
    """The rows of visits that may lack pieces, on tracks that lost records: those with fewer than
    others of their opening have, and that ended before any of these. Visits end in their order."""
    visit = _codes(number)
    count = np.bincount(visit)
    last = np.zeros(count.size, start.dtype)
    np.maximum.at(last, visit, start)
    of = np.zeros(count.size, np.int64)
    of[visit] = opening
    most = np.zeros(opening.max() + 1, np.int64)
    np.maximum.at(most, of, count)
    is_whole = count == most[of]
    first_whole = np.full(most.size, np.iinfo(start.dtype).max, start.dtype)
    np.minimum.at(first_whole, of[is_whole], last[is_whole])
    return lossy & (last < first_whole[of])[visit]
