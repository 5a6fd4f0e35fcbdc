"""What rules look at: the launches of each kernel, their programs, units and slices, as columns.

Every rule says what it costs as a part of the time of a kernel's launches. A part of the time of
units is one of launches, too, as long as units run side by side. Where an SM holds several
programs at once, it idles only while all of them wait: of a part `w` that each waits, about
`w ** r` with `r` programs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from proton.base.chips.chip import Chip
from proton.base.targets import WARP_SIZE, GPUTarget
from proton.trace.chrome import UNKNOWN_GPU
from proton.trace.flights import WAIT
from proton.trace.merge import THREADS, process_of
from proton.trace.model import LOCKS, Kernel, Scope
from proton.trace.records import NONE
from proton.trace.wire import RecordKind
from proton.viewer.explain.counted import Counted
from proton.viewer.explain.finding import SliceToOpen
from proton.viewer.tables.first_view import typical
from proton.viewer.tables.labels import kernel_labels
from proton.viewer.tables.recording_cost import OFF
from proton.viewer.tables.rows import launch_times

SLOW_START = 1.5  # times the slowest of the others: a first launch that stands for itself


@dataclass(frozen=True, kw_only=True)
class ProgramTimes:
    """The programs of a kernel that began: a row each, in order of launches."""

    launch: np.ndarray
    row: np.ndarray  # in `records.programs`
    number: np.ndarray  # the program's id
    place: np.ndarray  # the SM, or the thread on the CPU
    slot: np.ndarray
    start_ns: np.ndarray
    dur_ns: np.ndarray


# Of a slice in a short loop of a GPU (docs/gpu-results.md). What is measured when a session begins
# is less where the work of a loop hides it.
LEAST_CYCLES = 12


def is_dot(scope: Scope) -> bool:
    """Whether slices of a scope are dots that their unit does itself."""
    return scope.work == "dots" and scope.kind == "slice"


class Subject(Counted):
    """A run, as rules see it."""

    @cached_property
    def scopes(self) -> Sequence[Scope]:
        """Those of all kernels, one after another."""
        return self.records.scopes

    @cached_property
    def launch_start(self) -> np.ndarray:
        """When launches began, ns since the run's origin."""
        return launch_times(self.tables.raw, self.records)[0]

    @cached_property
    def launch_ns(self) -> np.ndarray:
        """What launches took: on a GPU from their first program's start to the last's end."""
        return launch_times(self.tables.raw, self.records)[1]

    @cached_property
    def slices(self) -> np.ndarray:
        """The rows of records that are slices."""
        return np.flatnonzero(self.records.kind == RecordKind.SLICE)

    @cached_property
    def dur_ns(self) -> np.ndarray:
        """Of each record what it took, as measured."""
        return self.records.end_ns - self.records.start_ns

    @cached_property
    def scope_is_wait(self) -> np.ndarray:
        """Of each scope whether it is nothing but a wait."""
        return np.array([s.kind == WAIT or s.waits for s in self.scopes], bool)

    @cached_property
    def self_ns(self) -> np.ndarray:
        """Of each record what it took, less what the slices inside it took; 0 for marks. Where
        those were lost, one that stands for others has what is left, another as much in all of its
        time as in what is left."""
        records, rows = self.records, self.slices
        found = np.zeros(records.kind.size, np.int64)
        found[rows] = self.own(rows, records.corrected_ns[rows], is_cut=True)
        return found

    @cached_property
    def kernels(self) -> list[KernelView]:
        """Each kernel that was launched."""
        labels = kernel_labels(self.tables.kernels)
        of = np.array([launch.kernel for launch in self.tables.raw.launches], np.int64)
        return [
            KernelView(self, kernel, label, np.flatnonzero(of == number))
            for number, (kernel, label) in enumerate(zip(self.tables.kernels, labels, strict=True))
            if (of == number).any()
        ]

    @cached_property
    def time_ns(self) -> float:
        """Of all launches together, as far as they repeat."""
        return sum(kernel.time_ns for kernel in self.kernels)

    @property
    def threads(self) -> int:
        """How many threads of the CPU launches may use; 0 where the run does not say."""
        threads = self.tables.raw.machine.get("threads")
        return threads if isinstance(threads, int) else 0

    def places_of(self, device: int) -> int:
        """How many SMs of a device (threads of a process on the CPU) any launch used."""
        programs = self.tables.programs
        own = programs[programs["device"] == device]
        if device != NONE:
            return int(own["sm"].nunique())
        used = own["thread"].drop_duplicates()
        return int(used.groupby(used // THREADS).size().max()) if len(used) else 0


class KernelView:
    """The launches of one kernel variant."""

    def __init__(self, subject: Subject, kernel: Kernel, label: str, launches: np.ndarray) -> None:
        self.subject, self.kernel, self.label, self.launches = subject, kernel, label, launches
        self.records = subject.records

    @cached_property
    def whole(self) -> KernelView:
        """Its launches that lost no records; itself where all are."""
        tracks = self.records.tracks
        kept = np.setdiff1d(self.launches, tracks.launch[tracks.lost > 0])
        is_all = kept.size == self.launches.size
        return self if is_all else KernelView(self.subject, self.kernel, self.label, kept)

    @cached_property
    def on_gpu(self) -> bool:
        """Whether a GPU ran it, so that its programs have warps, and SMs."""
        return self.kernel.on_gpu

    @property
    def has_roles(self) -> bool:
        """Whether its groups of warps do different things."""
        return len(set(self.kernel.roles)) > 1

    @cached_property
    def launch_ns(self) -> np.ndarray:
        """What each launch took."""
        return np.asarray(self.subject.launch_ns[self.launches], np.float64)

    @cached_property
    def slow_starts(self) -> dict[int, np.ndarray]:
        """The first launches of processes that stand out, by their places among the launches, and
        the places of the others of their process and grid."""
        raw, found = self.subject.tables.raw, dict[int, np.ndarray]()
        own = [raw.launches[n] for n in self.launches.tolist()]
        process = [process_of(raw, launch) for launch in own]
        for first in sorted(map(process.index, set(process))):
            same = [n for n, launch in enumerate(own)
                    if process[n] == process[first] and launch.grid == own[first].grid]  # fmt: skip
            others = np.array(same[1:], np.int64)
            longest = max(self.launch_ns[others].max(initial=1.0), 1.0)
            if others.size > 2 and self.launch_ns[first] > SLOW_START * longest:
                found[first] = others
        return found

    @cached_property
    def start_ns(self) -> float:
        """What the first launches took beyond the others of their grids, where they stand out."""
        return float(sum(self.launch_ns[first] - np.median(self.launch_ns[others])
                         for first, others in self.slow_starts.items()))  # fmt: skip

    @property
    def time_ns(self) -> float:
        """Of all its launches, as far as they repeat."""
        return float(self.launch_ns.sum()) - self.start_ns

    @cached_property
    def ran_ns(self) -> float:
        """The part of `time_ns` in which any program ran: less on a CPU, where the call takes some,
        and other threads come late."""
        programs, found = self.programs, 0.0
        for part in per_launch(programs.launch):
            start, dur = programs.start_ns[part], programs.dur_ns[part]
            found += _busy(np.zeros(dur.size, np.int64), start, dur)
        return min(found, self.time_ns)

    @cached_property
    def typical_launch(self) -> int:
        """The launch whose time is the median."""
        return int(self.launches[typical(self.launch_ns)])

    @cached_property
    def _is_own(self) -> np.ndarray:
        found = np.zeros(len(self.subject.tables.raw.launches), bool)
        found[self.launches] = True
        return found

    @cached_property
    def rows(self) -> np.ndarray:
        """Its slices, as rows of records, grouped by track, oldest first."""
        slices = self.subject.slices
        if self._is_own.all():
            return slices
        return slices[self._is_own[self.subject.launch_of[slices]]]

    @cached_property
    def tracks(self) -> np.ndarray:
        """Its units with records, as rows of `records.tracks`."""
        tracks = self.records.tracks
        return np.flatnonzero(self._is_own[tracks.launch] & (tracks.kept > 0))

    @cached_property
    def lossy(self) -> np.ndarray:
        """Its programs that lost records, as rows of `records.programs`."""
        tracks = self.records.tracks
        return np.unique(tracks.row[self._is_own[tracks.launch] & (tracks.written > tracks.kept)])

    @cached_property
    def scope_rows(self) -> dict[int, np.ndarray]:
        """Its slices by scope: rows of records in their order."""
        scope = self.records.scope[self.rows]
        order = np.argsort(scope, kind="stable")
        found, first = np.unique(scope[order], return_index=True)
        parts = np.split(self.rows[order], first[1:]) if first.size else []
        return dict(zip(found.tolist(), parts, strict=True))

    def rows_where(self, chosen: np.ndarray) -> np.ndarray:
        """Its slices of the scopes for which a column of scopes is true."""
        parts = [rows for scope, rows in self.scope_rows.items() if chosen[scope]]
        return np.sort(np.concatenate([np.zeros(0, np.int64), *parts]))

    def has(self, word: str) -> bool:
        """Whether the compiler recorded this kind of work (option `auto`)."""
        asked = self.kernel.options.get("auto", ())
        is_asked = isinstance(asked, list | tuple) and word in asked
        return is_asked or any(scope.work == word for scope in self.kernel.scopes)

    def number(self, name: str) -> int | None:
        """A resource of the kernel, without instrumentation where that is known."""
        for key in (name + OFF, name):
            value = self.kernel.options.get(key)
            if isinstance(value, int) and not isinstance(value, bool):
                return value
        return self.warps if name == "num_warps" and self.on_gpu else None

    def dot_cycles(self, file: str, line: int) -> float:
        """The cycles of an SM that dots of an iteration of the loop around a line take, if they go
        on by themselves; 0 where none do."""
        loops = self.kernel.options.get("dot_loops", [])
        assert isinstance(loops, list)
        around = [(last - first, cycles) for name, first, last, cycles in loops
                  if name == file and first <= line <= last]  # fmt: skip
        return float(min(around)[1]) if around else 0.0

    @property
    def warps(self) -> int:
        """Of a program on a GPU."""
        return self.kernel.units * self.kernel.unit_warps

    @property
    def threads(self) -> int:
        """Of a program."""
        return self.warps * WARP_SIZE

    @property
    def architecture(self) -> Chip | None:
        """What is known of its GPU; None on the CPU, and of one that a trace does not name."""
        is_known = self.on_gpu and self.kernel.target != UNKNOWN_GPU
        return GPUTarget.parse(self.kernel.target).facts if is_known else None

    @cached_property
    def programs(self) -> ProgramTimes:
        """When and where its programs ran."""
        found, tracks = self.subject.tables.residency, self.records.tracks
        launch = tracks.launch[found.first]
        own = self._is_own[launch]
        first = found.first[own]
        place = np.where(tracks.device[first] == NONE, tracks.thread[first], tracks.sm[first])
        return ProgramTimes(
            launch=launch[own],
            row=found.row[own],
            number=tracks.program[first],
            place=place,
            slot=found.slot[own],
            start_ns=found.start_ns[own],
            dur_ns=found.end_ns[own] - found.start_ns[own],
        )

    @cached_property
    def lock_waits(self) -> np.ndarray:
        """The waits for another program, which held a lock, as rows of records."""
        is_lock = np.array([scope.work == LOCKS for scope in self.subject.scopes], bool)
        if not is_lock.any():
            return np.zeros(0, np.int64)
        wait = self.records.flights.wait
        wait = wait[is_lock[self.records.scope[wait]]]
        return np.unique(wait[self._is_own[self.subject.launch_of[wait]]])

    @cached_property
    def busy_ns(self) -> np.ndarray:
        """Of each of its programs what it took, without what its units waited at locks."""
        programs, records = self.programs, self.records
        waits, size = self.lock_waits, int(programs.row.max(initial=0)) + 1
        of = records.tracks.row[records.track[waits]]
        units = np.bincount(records.tracks.row[self.tracks], minlength=size)
        lost = np.bincount(of, self.subject.dur_ns[waits], minlength=size) / np.maximum(units, 1)
        return np.asarray(programs.dur_ns - lost[programs.row])

    def unit_ns(self, tracks: np.ndarray | None = None) -> float:
        """What the programs of these units took; of all units that recorded where none is named."""
        some = self.tracks if tracks is None else tracks
        rows = self.records.tracks.row[some]
        return float(self.subject.tables.residency.length(rows).sum())

    @cached_property
    def resident(self) -> float:
        """How many programs a place has at once, in the mean over the time in which it has any."""
        programs = self.programs
        if not self.on_gpu or not programs.row.size:
            return 1.0
        lengths: list[float] = []
        for part in per_launch(programs.launch):
            busy = _busy(programs.place[part], programs.start_ns[part], programs.dur_ns[part])
            lengths.append(float(programs.dur_ns[part].sum()) / max(busy, 1.0))
        return max(1.0, float(np.median(lengths)))

    def gain(self, before: float, after: float = 0.0) -> float:
        """What launches gain where each program waits a part `after` of its time, not `before`."""
        idle, left = (min(max(part, 0.0), 0.99) ** self.resident for part in (before, after))
        return self.time_ns * max(0.0, 1 - (1 - idle) / (1 - left))

    @cached_property
    def cycle_ns(self) -> float:
        """How long a cycle of an SM is, in the median of its launches; 1 where no clock says."""
        gpu = self.records.gpu
        found = [gpu.launches[n].rate for n in self.launches.tolist() if gpu and n in gpu.launches]
        return float(np.median(found)) if found else 1.0

    @property
    def recording_part(self) -> float | None:
        """Which part of its time recording takes, where launches without it were timed, too."""
        both = [self.kernel.options.get(name) for name in ("run_ns", "run_ns" + OFF)]
        recorded, plain = (float(one) if isinstance(one, int) else 0.0 for one in both)
        return max(1 - plain / recorded, 0.0) if recorded and plain else None

    def record_ns(self, rows: np.ndarray) -> np.ndarray:
        """What each of these slices costs the kernel, at least."""
        costs = self.records.slice_cost_ns[self.records.track[rows]]
        return np.maximum(costs, LEAST_CYCLES * self.cycle_ns if self.on_gpu else 0.0)

    def cost_ns(self, rows: np.ndarray) -> np.ndarray:
        """What recording adds to the duration of each of these slices."""
        return np.asarray(self.records.edge_cost_ns[self.records.track[rows]])

    def iterations(self, rows: np.ndarray, weight: np.ndarray | None = None) -> float:
        """How many iterations of units there are some slices of, grouped by track, or how many
        their weights stand for: as many as the scope has that most of a unit have. A loop that is
        run again, as for the next tile, begins at 0 again."""
        records = self.records
        track, scope = records.track[rows].astype(np.int64), records.scope[rows]
        order = np.lexsort((scope, track))  # and as they were
        keys = np.stack([track[order], scope[order]])
        is_scope = np.append(True, (np.diff(keys) != 0).any(0))[: order.size]
        number = records.iteration[rows][order]
        is_new = is_scope | np.append(True, np.diff(number) != 0)[: order.size]
        of_scope = np.cumsum(is_scope) - 1
        each = is_new * (1.0 if weight is None else weight[order])
        counts = np.bincount(of_scope, each) if order.size else np.zeros(0)
        unit = keys[0, is_scope]
        heads = np.flatnonzero(np.diff(unit, prepend=NONE))
        return float(np.maximum.reduceat(counts, heads).sum()) if heads.size else 0.0

    def error_ns(self, rows: np.ndarray) -> float:
        """How far times of these slices may be off."""
        return float(self.records.error_ns[rows].max(initial=0.0))

    def open(self, *rows: int) -> tuple[SliceToOpen, ...]:
        """Slices, by rows of records."""
        records, tracks = self.records, self.records.tracks
        return tuple(
            SliceToOpen(
                launch=int(tracks.launch[records.track[row]]),
                scope=records.scopes[records.scope[row]].path,
                sm=int(tracks.sm[records.track[row]]),
                unit=int(tracks.unit[records.track[row]]),
                program=int(tracks.program[records.track[row]]),
                start_ns=int(records.start_ns[row]),
                dur_ns=int(self.subject.dur_ns[row]),
            )
            for row in rows
        )

    def open_launch(self, launch: int) -> tuple[SliceToOpen, ...]:
        """A launch."""
        start, dur = (int(c[launch]) for c in (self.subject.launch_start, self.subject.launch_ns))
        return (SliceToOpen(launch=launch, start_ns=start, dur_ns=dur),)

    def nearest(self, rows: np.ndarray, value: float) -> int:
        """Of these slices the one that took about so long."""
        return int(rows[np.argmin(np.abs(self.subject.dur_ns[rows] - value))])


def per_launch(launch: np.ndarray) -> Iterator[slice]:
    """Rows that are grouped by launch, a launch at a time."""
    edges = np.flatnonzero(np.diff(launch, prepend=-1, append=-1))
    for first, last in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True):
        yield slice(first, last)


def _busy(place: np.ndarray, start: np.ndarray, dur: np.ndarray) -> float:
    """How long places had at least one of these intervals, added up."""
    order = np.lexsort((start, place))
    place, start, end = place[order], start[order], (start + dur)[order]
    # Places one behind another, so that none overlaps the next.
    span = int(end.max()) - int(start.min()) + 1
    shift = np.unique(place, return_inverse=True)[1].ravel() * span - int(start.min())
    start, end = start + shift, end + shift
    latest = np.maximum.accumulate(end)
    before = np.append(start[0], latest[:-1])
    return float(np.maximum(latest - np.maximum(start, before), 0).sum())
