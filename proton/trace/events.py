"""Which start of an event belongs to which end: a queue for each event, in order of time.

The k-th start goes with the k-th end, within a unit where it has both. Units that have one half
each (a warp that starts a copy and one that waits for it) are paired across their program. Rings
lose the oldest records, so where there are losses the newest pair is counted from.

    S1 S2 E1 E2        S1-E1, S2-E2
    lost S2 E1 E2      S2-E2; E1 has no start
"""

from dataclasses import dataclass

import numpy as np

from proton.trace.wire import RecordKind


@dataclass(frozen=True, kw_only=True)
class Pairs:
    """Rows of records: those of the pairs, and those that found no other half."""

    start: np.ndarray
    end: np.ndarray
    alone: np.ndarray


def pair(
    *,
    kind: np.ndarray,
    scope: np.ndarray,
    ticks: np.ndarray,
    track: np.ndarray,
    program: np.ndarray,
    lossy: np.ndarray,
) -> Pairs:
    """Pairs the events among records, given in the order of their tracks.

    `program` is that of each track, and `lossy` whether the track lost records.
    """
    rows = np.flatnonzero(kind >= RecordKind.EVENT_START)
    is_end = kind[rows] == RecordKind.EVENT_END
    group = _groups(scope[rows], track[rows], program, is_end)
    back = np.zeros(group.max(initial=-1) + 1, bool)
    np.logical_or.at(back, group, lossy[track[rows]])
    order = np.lexsort((is_end, ticks[rows], group))
    rows, group, is_end = rows[order], group[order], is_end[order]
    walk = _walk(group, back)  # where the queue runs from the newest: ends come first
    rows, closes = rows[walk], (is_end ^ back[group])[walk]
    opened, closed, alone = _queue(group, closes)
    first, second = rows[opened], rows[closed]
    swapped = back[group[opened]]
    start, end = np.where(swapped, second, first), np.where(swapped, first, second)
    shown = np.argsort(start)
    return Pairs(start=start[shown], end=end[shown], alone=np.sort(rows[alone]))


def _groups(
    scope: np.ndarray, track: np.ndarray, program: np.ndarray, is_end: np.ndarray
) -> np.ndarray:
    """The number of the queue of each edge."""
    own, number = np.unique(np.stack([track, scope]), axis=1, return_inverse=True)
    number = number.ravel()
    ends = np.bincount(number, is_end, own.shape[1])
    both = (ends > 0) & (ends < np.bincount(number, minlength=own.shape[1]))
    key = np.stack([both, np.where(both, own[0], program[own[0]]), own[1]])
    return np.unique(key, axis=1, return_inverse=True)[1].ravel()[number]


def _walk(group: np.ndarray, back: np.ndarray) -> np.ndarray:
    """The places of a walk by groups, in those that are marked from their last to their first."""
    place = np.arange(group.size)
    first, last = np.searchsorted(group, group), np.searchsorted(group, group, "right") - 1
    return np.where(back[group], first + last - place, place)


def _queue(group: np.ndarray, closes: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(what opens a pair, what closes it, the rest), in a walk by groups.

    What closes where nothing is open takes the count of the open to a new minimum below 0.
    """
    step = np.where(closes, -1, 1)
    apart = -group * (2 * group.size + 1)  # no group reaches down to the next
    count = np.cumsum(step)
    before = np.searchsorted(group, group)
    count = count - (count[before] - step[before]) + apart
    lowest = np.minimum.accumulate(np.minimum(count, apart))
    previous = np.minimum(np.append(0, lowest[:-1])[: group.size], apart)
    stray = closes & (count < previous)
    openers, closers = np.flatnonzero(~closes), np.flatnonzero(closes & ~stray)
    pairs = np.bincount(group[closers], minlength=group.max(initial=-1) + 1)
    paired = _rank(group[openers]) < pairs[group[openers]]
    alone = np.append(openers[~paired], np.flatnonzero(stray))
    return openers[paired], closers, alone


def _rank(group: np.ndarray) -> np.ndarray:
    """How many of its group come before each."""
    return np.arange(group.size) - np.searchsorted(group, group)
