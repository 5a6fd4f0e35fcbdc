"""Flights: asynchronous work from its issue to the wait that retires it.

The kernel leaves two slices, the issue and the wait, each of a queue; which belong together follows
from their order on a unit's track. A queue ends its work in the order in which it was issued, so a
wait that leaves the newest n pieces under way retires all others:

    issue 0, issue 1, wait {1}, issue 2, wait {1}, wait {0}
                      0                  1         2

Only what was issued before a wait counts, from the newest backwards, so a ring that lost its oldest
records gives the same answers for those that are there. A wait that retires one piece of work
(ONE) takes the oldest; where records were lost, the newest wait goes with the newest issue. Such
waits may be of other units than the issues: those of a unit that issued nothing take what the first
unit of its program issued that waits for nothing.

Arrivals of threads, at a barrier or at memory that other programs look at, are issues, too. A wait
that was under way when the last of them came is retired by that one. One that found its phase ended
is retired by none: nothing tells which of the arrivals before it was the last of the phase.

Units of a program that was killed may have lost records that nobody counted. A wait that ended
before the issue it would go with began tells so: the two are no flight.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from proton.trace.model import BARRIERS, LOCKS, ONE, Scope

ISSUE, WAIT = "issue", "wait"  # kinds of scopes
NO_TRACK = -1


@dataclass(frozen=True, kw_only=True)
class Flights:
    """A row a flight: the rows of its two records, in order of the issues. `alone` are issues that
    no wait on record retires."""

    issue: np.ndarray
    wait: np.ndarray
    alone: np.ndarray

    @cached_property
    def size(self) -> int:
        return int(self.issue.size)


@dataclass(frozen=True)
class _Queue:
    """The edges of one queue on one track, as rows of records in order."""

    issues: np.ndarray
    waits: np.ndarray
    before: np.ndarray  # of each wait: how many issues come before it
    pendings: np.ndarray
    lossy: bool


def pair_flights(
    *,
    scopes: tuple[Scope, ...],
    scope: np.ndarray,
    track: np.ndarray,
    program: np.ndarray,
    launch: np.ndarray,
    lossy: np.ndarray,
    start: np.ndarray,
    end: np.ndarray,
) -> Flights:
    """Pairs the issues and waits among records, given in the order of their tracks.

    `program` and `launch` are those of each track, and `lossy` whether the track lost records;
    `start` and `end` are in ticks of one clock for each program, of the launch if it has locks.
    """
    work = {s.queue: s.work for s in scopes if s.queue}
    issue, wait, alone = (list[np.ndarray]() for _ in range(3))
    for name in sorted(work):
        among = launch if work[name] == LOCKS else program
        for queues in _programs(_queues(name, scopes, scope, track, lossy), among):
            by_threads = work[name] in (BARRIERS, LOCKS)
            pairs = _handed(queues, start, end) if by_threads else _paired(queues)
            for begun, ended, left in pairs:
                issue.append(begun)
                wait.append(ended)
                alone.append(left)
    none = np.zeros(0, np.int64)
    issues, waits = (np.concatenate([*parts, none]) for parts in (issue, wait))
    lonely = np.unique(np.concatenate([*alone, issues]))
    possible = end[waits] >= start[issues]
    issues, waits = issues[possible], waits[possible]
    order = np.lexsort((waits, issues))
    return Flights(issue=issues[order], wait=waits[order], alone=np.setdiff1d(lonely, issues))


def _queues(
    name: str,
    scopes: tuple[Scope, ...],
    scope: np.ndarray,
    track: np.ndarray,
    lossy: np.ndarray,
) -> dict[int, _Queue]:
    """The queue of this name on each track that has it."""
    edges = (ISSUE, WAIT)
    kind = np.array([1 + edges.index(s.kind) if s.queue == name else 0 for s in scopes], np.int64)
    pendings = np.array([s.pendings for s in scopes], np.int64)
    rows = np.flatnonzero(kind[scope])
    heads = np.flatnonzero(np.diff(track[rows], prepend=NO_TRACK))
    found = {}
    for own in np.split(rows, heads[1:]) if rows.size else ():
        is_issue = kind[scope[own]] == 1
        waits = own[~is_issue]
        found[int(track[own[0]])] = _Queue(
            own[is_issue],
            waits,
            np.cumsum(is_issue)[~is_issue],
            pendings[scope[waits]],
            bool(lossy[track[own[0]]]),
        )
    return found


def _programs(queues: dict[int, _Queue], program: np.ndarray) -> list[list[_Queue]]:
    """The queues of each program, by unit."""
    found: dict[int, list[_Queue]] = {}
    for track, queue in sorted(queues.items()):
        found.setdefault(int(program[track]), []).append(queue)
    return list(found.values())


def _paired(queues: list[_Queue]) -> list[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """(issues, the waits that retire them, issues without a wait) of the units of a program."""
    producers = [queue for queue in queues if queue.issues.size and not queue.waits.size]
    found = []
    for queue in queues:
        if queue.issues.size and queue.waits.size:
            found.append(_own(queue))
        elif queue.waits.size and producers:
            other = producers[0]
            found.append(_one_by_one(other.issues, queue.waits, other.lossy or queue.lossy))
    none = np.zeros(0, np.int64)
    return found + [(none, none, queue.issues) for queue in producers]


def _own(queue: _Queue) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Of a unit that waits for its own work."""
    if (queue.pendings == ONE).all():
        return _one_by_one(queue.issues, queue.waits, queue.lossy)
    # How many of the issues each wait and those before it retire.
    retired = np.maximum.accumulate(np.maximum(queue.before - queue.pendings, 0))
    first = np.searchsorted(retired, np.arange(queue.issues.size), side="right")
    ended = first < queue.waits.size
    return queue.issues[ended], queue.waits[first[ended]], queue.issues[~ended]


def _handed(
    queues: list[_Queue], start: np.ndarray, end: np.ndarray
) -> list[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Arrivals in any unit, and the waits in any that they ended."""
    none = np.zeros(0, np.int64)
    arrivals = np.concatenate([none, *(queue.issues for queue in queues)])
    arrivals = arrivals[np.argsort(start[arrivals], kind="stable")]
    waits = np.concatenate([none, *(queue.waits for queue in queues)])
    last = np.searchsorted(start[arrivals], end[waits], side="right") - 1
    waits, last = waits[last >= 0], last[last >= 0]
    waited = end[arrivals[last]] > start[waits]
    return [(arrivals[last[waited]], waits[waited], arrivals)]


def _one_by_one(
    issues: np.ndarray, waits: np.ndarray, lossy: bool
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The oldest issue and the oldest wait; the newest where older ones are missing."""
    count = min(issues.size, waits.size)
    if not lossy:
        return issues[:count], waits[:count], issues[count:]
    first = issues.size - count
    return issues[first:], waits[waits.size - count :], issues[:first]
