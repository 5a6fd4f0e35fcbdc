"""Where programs ran, as places that one program after another uses: threads of the CPU, resident
slots of an SM.

A GPU does not say which of its places on an SM a program has, only which SM. So programs of one SM
are given slots in order of time, each the first that is free:

    time ->    a a a a a          slot 0:  a a a a a c c c
                 b b b                slot 1:    b b b d d d d
                       d d d d
                     c c c            c begins when b and a have ended, or takes a slot of its own

There are as many slots as programs were resident at once.
"""

import heapq
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from proton.trace.model import RawRun
from proton.trace.records import NONE, RecordTable
from proton.trace.wire import ProgramState
from proton.viewer.tables.labels import gpu_name, slot_name, sm_name, thread_name, warps_name


@dataclass(frozen=True, kw_only=True)
class Residency:
    """A row a program that began, in order of launch and program.

    `row` is its row in `records.programs`, `first` that of its first unit in `records.tracks`. Its
    interval holds those of all its records.
    """

    row: np.ndarray
    first: np.ndarray
    start_ns: np.ndarray
    end_ns: np.ndarray
    place: np.ndarray  # a number for each SM and each thread
    slot: np.ndarray

    def length(self, programs: np.ndarray) -> np.ndarray:
        """How long programs ran, rows of `records.programs` that began, in ns; of one that was
        killed, as far as its records tell."""
        at = np.searchsorted(self.row, programs)
        return np.asarray(self.end_ns[at] - self.start_ns[at])


def residency(records: RecordTable) -> Residency:
    """When each program ran, and in which slot of its SM or thread."""
    tracks = records.tracks
    row, first = np.unique(tracks.row, return_index=True)
    began = records.programs.state[row] != ProgramState.UNTOUCHED
    row, first = row[began], first[began]
    start, end = records.began_ns(first), records.ended_ns(first)
    if records.track.size:
        of = np.searchsorted(row, tracks.row[records.track])
        heads = np.flatnonzero(np.diff(of, prepend=-1))
        some = of[heads]
        start[some] = np.minimum(start[some], np.minimum.reduceat(records.start_ns, heads))
        end[some] = np.maximum(end[some], np.maximum.reduceat(records.end_ns, heads))
    end = np.maximum(start, end)
    place = _places(records, first)
    return Residency(
        row=row,
        first=first,
        start_ns=start,
        end_ns=end,
        place=place,
        slot=slots(place, start, end),
    )


def _places(records: RecordTable, first: np.ndarray) -> np.ndarray:
    """A number for each SM and each thread."""
    tracks = records.tracks
    on_gpu = tracks.device[first] != NONE
    within = np.where(on_gpu, tracks.sm[first], tracks.thread[first])
    pairs = np.stack([tracks.device[first], within])
    return np.unique(pairs, axis=1, return_inverse=True)[1].ravel()


def slots(place: np.ndarray, start: np.ndarray, end: np.ndarray) -> np.ndarray:
    """For each interval the first slot of its place that no interval before it still has."""
    slot = np.zeros(place.size, np.int64)
    order = np.lexsort((end, start, place))
    for group in np.split(order, np.flatnonzero(np.diff(place[order])) + 1):
        if group.size > 1 and (start[group[1:]] < np.maximum.accumulate(end[group])[:-1]).any():
            slot[group] = _first_free(start[group].tolist(), end[group].tolist())
    return slot


def _first_free(starts: list[int], ends: list[int]) -> list[int]:
    """The slots of intervals of one place, in order of their starts."""
    busy: list[tuple[int, int]] = []  # (end, slot)
    free: list[int] = []
    taken = []
    count = 0
    for start, end in zip(starts, ends, strict=True):
        while busy and busy[0][0] <= start:
            heapq.heappush(free, heapq.heappop(busy)[1])
        if free:
            number = heapq.heappop(free)
        else:
            number, count = count, count + 1
        heapq.heappush(busy, (end, number))
        taken.append(number)
    return taken


@dataclass(frozen=True)
class Place:
    """A row of a timeline: the names on the way to it, each with its rank among its siblings.

    Places that differ in `lane` alone have one name, and are drawn as one.
    """

    path: tuple[tuple[str, int], ...]
    lane: tuple[int, int] = (0, 0)


class Places:
    """The place of each program and of each of its units.

    A thread of the CPU is the place of programs and of their scopes. On a GPU a program's is a slot
    of an SM, and those of its units lie below that.
    """

    def __init__(self, raw: RawRun, records: RecordTable, found: Residency) -> None:
        self.residency = found
        self.all: list[Place] = []
        tracks = records.tracks
        # Of each unit: which row of `residency` its program is, NONE where that never began.
        program = np.full(records.programs.state.size, NONE)
        program[found.row] = np.arange(found.row.size)
        self.program_of_unit = program[tracks.row]
        self.of_unit = np.full(tracks.row.size, NONE)
        some = np.flatnonzero(self.program_of_unit != NONE)
        slot = found.slot[self.program_of_unit[some]]
        warps = np.array([kernel.unit_warps for kernel in raw.kernels], np.int64)
        kernel = np.array([launch.kernel for launch in raw.launches], np.int64)
        columns = (tracks.device, tracks.sm, tracks.thread, tracks.unit, tracks.warp)
        count = warps[kernel[tracks.launch[some]]]
        # Of a kernel without roles its number does not matter: units of all have one place.
        has_roles = np.array([bool(kernel.roles) for kernel in raw.kernels], bool)
        own = kernel[tracks.launch[some]]
        named = np.where(has_roles[own], own, NONE)
        keys = np.stack([*(column[some] for column in columns), slot, count, named])
        self.of_unit[some] = self._number(keys, lambda key: self._unit(raw, *key))
        gpu = np.flatnonzero(tracks.device[found.first] != NONE)
        first = found.first[gpu]
        keys = np.stack([tracks.device[first], tracks.sm[first], found.slot[gpu]])
        # Of programs of GPUs, which have a place of their own: rows of `residency`, and the places.
        self.programs = gpu
        self.of_program = self._number(keys, lambda key: self._slot(raw, *key))

    def _number(self, keys: np.ndarray, place_of: Callable[[list[int]], Place]) -> np.ndarray:
        """The place of each column of keys, new ones in `all`."""
        distinct, inverse = np.unique(keys, axis=1, return_inverse=True)
        first = len(self.all)
        self.all += [place_of(key) for key in distinct.T.tolist()]
        return first + inverse.ravel()

    def _slot(self, raw: RawRun, device: int, sm: int, slot: int) -> Place:
        return Place(((gpu_name(raw, device), device), (sm_name(sm), sm), (slot_name(slot), slot)))

    def _unit(
        self,
        raw: RawRun,
        device: int,
        sm: int,
        thread: int,
        unit: int,
        warp: int,
        slot: int,
        count: int,
        kernel: int,
    ) -> Place:
        role = "" if kernel == NONE else raw.kernels[kernel].roles[unit]
        if device == NONE:
            path = ((thread_name(thread), thread), *([(role, unit)] if role else []))
            return Place(path, (slot, unit))
        name = ": ".join(filter(None, (role, warps_name(warp, count))))
        return Place((*self._slot(raw, device, sm, slot).path, (name, warp)))
