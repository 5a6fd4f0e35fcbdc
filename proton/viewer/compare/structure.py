"""What budgets say of a timeline's structure, measured of one run: how much of a scope others hide,
the order of phases, numbers of visits, shares, imbalance, and what a kernel takes.

    key                of what                                            exact
    min_overlap        the part of a scope's time in which `hidden_by`
                       was under way in the same program
    order              units and iterations (or tiles) in which phases    yes
                       are not in this order
    min_visits,        visits of a scope in a launch                      yes
    max_visits
    max_share          the time of a scope as a part of its units'
    max_critical       the part of the critical path of a launch that
                       is in a scope, or under way by its name
    max_imbalance      the busiest warp (of a scope) or place over the
                       mean
    min_occupancy      threads of the programs that fit on an SM, as a    yes
                       part of the most
    max_registers,     of a thread; of a thread; of a program             yes
    max_spills,
    max_shared_bytes
    max_lost           records that the kernel's launches lost            yes

What is exact is the same in each run of the same code, so that one run answers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

import numpy as np

from proton.base.words import known_names
from proton.trace.chrome import UNKNOWN_GPU
from proton.trace.tiles import FIELD as TILE
from proton.trace.tiles import NO_TILE
from proton.viewer.explain.subject import KernelView, is_dot, per_launch
from proton.viewer.tables.critical import shares
from proton.viewer.tables.flights import ISSUE
from proton.viewer.tables.waiting import union

NOTHING = "have nothing of the kind on record"
LOST = "lost records of each launch"
DOTS = "dots"
WORK = ("copies", DOTS)  # asynchronous work that `hidden_by` may name, in flight or not


@dataclass(frozen=True, kw_only=True)
class Asked:
    """What a measure is of: patterns of scopes, or kinds of asynchronous work ("copies"), and a
    warp's number, or a role."""

    scope: str = ""
    hidden_by: str = ""
    order: tuple[str, ...] = ()
    per: str = ""  # of what phases are in order: TILE, else iterations
    warp: int | None = None
    role: str = ""  # a pattern; empty for all units


@dataclass(frozen=True, kw_only=True)
class Measure:
    """One of them: `of` gives its values, of which the worst counts; none where a run has nothing
    of the kind. `unit` is "" for counts, "%" for parts. One that `needs_all` records is of the
    launches that lost none. `lacks` says why a run does not tell; empty where it does."""

    title: str
    of: Callable[[KernelView, Asked], Sequence[float]]
    is_most: bool = True  # whether the limit is the most that is allowed
    is_exact: bool = True
    unit: str = ""
    needs_scope: bool = False
    needs_all: bool = False
    lacks: Callable[[KernelView, Asked], str] = lambda view, asked: ""

    def worst(self, view: KernelView, asked: Asked) -> float | str:
        """Of one kernel of a run; why that is not known where it is not."""
        if self.needs_all and (asked.scope or asked.order):
            view = view.whole
            if not view.launches.size:
                return LOST
        if lacks := self.lacks(view, asked):
            return lacks
        values = self.of(view, asked)
        return NOTHING if not len(values) else float(max(values) if self.is_most else min(values))

    def shown(self, value: float) -> str:
        """A value with its unit."""
        return f"{100 * value:.1f} %" if self.unit == "%" else f"{value:g}{self.unit}"


def _like(pattern: str, name: str) -> bool:
    """Whether it is the name, which may have brackets, or a pattern of it."""
    return pattern == name or fnmatchcase(name, pattern)


def unknown(view: KernelView, asked: Asked) -> str:
    """What is asked for that a kernel does not have, and what it has; empty where it has all."""
    kernel = view.kernel
    paths = [*(scope.path for scope in kernel.scopes), *kernel.optimized_out]
    work = [name for s in kernel.scopes if s.kind == "issue"
            for name in (s.queue, s.name.removeprefix(ISSUE))]  # fmt: skip
    warps = [str(warp) for warp in np.unique(view.records.tracks.warp[view.tracks]) if warp >= 0]
    for what, name, there in (
        ("scope", asked.scope, paths + work),
        *(("scope", phase, paths) for phase in asked.order),
        ("scope", asked.hidden_by, [*paths, *work, *WORK]),
        ("role", asked.role, kernel.roles),
        ("warp", "" if asked.warp is None else str(asked.warp), warps),
    ):
        if name and not any(_like(name, each) for each in there):
            known = list(dict.fromkeys(there))
            return f"no {what} is {name}; there is {known_names(name, known) or 'none'}"
    return ""


def _rows(view: KernelView, pattern: str, asked: Asked) -> np.ndarray:
    """The slices of the scopes that a pattern names, of the units that are meant."""
    named = np.array([_like(pattern, s.path) for s in view.subject.scopes], bool)
    rows = view.rows_where(named)
    return rows[_is_meant(view, view.records.track[rows], asked)]


def _is_meant(view: KernelView, track: np.ndarray, asked: Asked) -> np.ndarray:
    """Of units, by their tracks, whether they are of the warp or the role that is asked for."""
    tracks = view.records.tracks
    found = np.ones(track.size, bool)
    if asked.warp is not None:
        found &= tracks.warp[track] == asked.warp
    if asked.role:
        has = np.array([_like(asked.role, name) for name in view.kernel.roles], bool)
        found &= has[tracks.unit[track]] if has.size else False
    return found


def _intervals(view: KernelView, name: str, asked: Asked) -> tuple[np.ndarray, ...]:
    """(program, start, end) of the slices of scopes, and of flights of a kind of work or a name."""
    records, rows = view.records, _rows(view, name, asked)
    flights = records.flights
    if name == DOTS:  # those that a unit does itself, too
        dots = view.rows_where(np.array([is_dot(s) for s in view.subject.scopes], bool))
        dots = dots[_is_meant(view, records.track[dots], asked)]
        rows = np.union1d(rows, dots)
    of = [name in (s.work, s.queue) and s.kind == "issue" for s in view.subject.scopes]
    own = np.array(of, bool)[records.scope[flights.issue]] & np.isin(flights.issue, view.rows)
    own &= _is_meant(view, records.track[flights.issue], asked)
    issue, wait = flights.issue[own], flights.wait[own]
    program = records.tracks.row[records.track[np.append(rows, issue)]]
    start = records.start_ns[np.append(rows, issue)]
    return program, start, records.end_ns[np.append(rows, wait)]


def _overlap(view: KernelView, asked: Asked) -> Sequence[float]:
    """Sums over programs, which lie one behind another on one axis. What hides a role's, or a
    warp's, is of any unit."""
    both = [_intervals(view, asked.scope, asked), _intervals(view, asked.hidden_by, Asked())]
    if not all(each[0].size for each in both):
        return [0.0] if both[0][0].size else []
    low = min(int(each[1].min()) for each in both)
    span = max(int(each[2].max()) for each in both) - low + 1
    one, other = (
        union(*(time - low + program.astype(np.int64) * span for time in (start, end)))
        for program, start, end in both
    )
    before = np.append(0, np.cumsum(other[1] - other[0]))

    def covered(time: np.ndarray) -> np.ndarray:
        at = np.searchsorted(other[0], time, side="right")
        last = np.maximum(at - 1, 0)
        inside = np.minimum(time, other[1][last]) - other[0][last]
        return np.asarray(np.where(at > 0, before[last] + inside, 0))

    whole = float((one[1] - one[0]).sum())
    return [float((covered(one[1]) - covered(one[0])).sum()) / max(whole, 1.0)]


def _without_work(view: KernelView, asked: Asked) -> str:
    """That a run was not asked for the asynchronous work that is to hide a scope."""
    work = asked.hidden_by
    is_there = work not in WORK or view.has(work) or (work != DOTS and view.has("loads"))
    return "" if is_there else f'have no {work} on record (auto="{work}")'


def _disorder(view: KernelView, asked: Asked) -> Sequence[float]:
    """Phases begin in their order, by the first slice of each in a unit and iteration, or tile."""
    records, found = view.records, 0
    of = records.iteration
    if asked.per == TILE:
        if (tiles := records.tile) is None:
            return []
        of = tiles
    first: dict[tuple[int, ...], list[tuple[int, int]]] = {}
    is_any = False
    for place, name in enumerate(asked.order):
        rows = _rows(view, name, asked)
        is_any |= bool(rows.size)
        rows = rows[of[rows] != NO_TILE] if asked.per == TILE else rows
        run = np.zeros(rows.size, np.int64) if asked.per == TILE else _loop_runs(view, rows)
        keys = np.stack([records.track[rows], of[rows], run])
        order = np.lexsort((records.start_ns[rows], *keys[::-1]))
        keys = keys[:, order]
        heads = np.ones(order.size, bool)
        heads[1:] = (np.diff(keys) != 0).any(0)
        starts = records.start_ns[rows][order][heads]
        for key, start in zip(keys[:, heads].T.tolist(), starts.tolist(), strict=True):
            first.setdefault(tuple(key), []).append((place, start))
    for phases in first.values():
        times = [start for _, start in phases]
        found += times != sorted(times)
    return [float(found)] if is_any else []


def _loop_runs(view: KernelView, rows: np.ndarray) -> np.ndarray:
    """Of slices, how often the loop around their scope had begun again: its iterations then do."""
    records, found = view.records, np.zeros(rows.size, np.int64)
    order = np.lexsort((rows, records.scope[rows], records.track[rows]))
    scope, track, number = (column[rows][order] for column in (
        records.scope, records.track, records.iteration))  # fmt: skip
    is_head = np.ones(rows.size, bool)
    is_head[1:] = (np.diff(scope) != 0) | (np.diff(track) != 0)
    begins = np.append(False, np.diff(number) < 0)[: rows.size] & ~is_head
    count = np.cumsum(begins)
    found[order] = count - count[np.maximum.accumulate(np.where(is_head, np.arange(rows.size), 0))]
    return found


def _visits(view: KernelView, asked: Asked) -> Sequence[float]:
    """Of each launch."""
    rows = _rows(view, asked.scope, asked)
    records = view.records
    first = np.unique(records.visits.number[rows], return_index=True)[1]
    launch = records.tracks.launch[records.track[rows[first]]]
    return [float((launch == number).sum()) for number in view.launches.tolist()]


def _unvisited(view: KernelView, asked: Asked) -> str:
    """The option that left out visits: how many is not known."""
    options = view.kernel.options
    is_cut = (view.subject.weight[_rows(view, asked.scope, asked)] != 1).any()
    named = {"every": is_cut, "sample_programs": True, "sample_warps": asked.warp is None}
    found = [name for name, leaves_out in named.items() if leaves_out and name in options]
    return f"have some visits alone ({', '.join(found)})" if found else ""


def _share(view: KernelView, asked: Asked) -> Sequence[float]:
    rows = _rows(view, asked.scope, asked)
    tracks = view.tracks[_is_meant(view, view.tracks, asked)]
    time = view.unit_ns(tracks)
    return [view.subject.total(rows, view.subject.self_ns[rows]) / time] if time else []


def _critical(view: KernelView, asked: Asked) -> Sequence[float]:
    """Of the launch of median time: its path goes on with the programs that a tail waited for."""
    tables = view.subject.tables
    path = shares(tables.critical_path(int(view.typical_launch), whole=True))
    own = [_like(asked.scope, scope) for scope in path["scope"]]
    return [float(path["share"][own].sum()) / 100] if any(own) or len(path) else []


def _imbalance(view: KernelView, asked: Asked) -> Sequence[float]:
    """Of warps by the time of a scope, else of places by that of programs, a launch at a time."""
    if asked.scope:
        if view.kernel.units == 1 and not view.on_gpu:
            return []  # a program of a CPU has no warps
        rows = _rows(view, asked.scope, Asked(role=asked.role))
        unit = view.records.tracks.unit[view.records.track[rows]]
        busy = np.bincount(unit, view.subject.dur_ns[rows], view.kernel.units)
        busy = busy[_takes_part(view, unit)]
        return [float(busy.max() / busy.mean())] if busy.any() else []
    programs, found = view.programs, []
    for part in per_launch(programs.launch):
        places, of = np.unique(programs.place[part], return_inverse=True)
        busy = np.bincount(of.ravel(), programs.dur_ns[part], places.size)
        found.append(float(busy.max() / busy.mean()) if busy.any() else 1.0)
    return [float(np.median(found))] if found else []


def _takes_part(view: KernelView, unit: np.ndarray) -> np.ndarray:
    """The units of a kernel that record, of the roles that some of these units have."""
    units = np.unique(view.records.tracks.unit[view.tracks])
    roles = np.array(view.kernel.roles or ("",) * view.kernel.units, object)
    return units[np.isin(roles[units].astype(str), roles[unit].astype(str))]


def _occupancy(view: KernelView, asked: Asked) -> Sequence[float]:
    fit, chip = view.number("blocks_per_sm"), view.architecture
    return [fit * view.threads / chip.sm_threads] if fit and chip else []


def _unsaid(view: KernelView, asked: Asked) -> str:
    return "do not say what was lost" if view.kernel.target == UNKNOWN_GPU else ""


def _lost(view: KernelView, asked: Asked) -> Sequence[float]:
    tracks = view.records.tracks
    return [float(tracks.lost[np.isin(tracks.launch, view.launches)].sum())]


def _resource(name: str) -> Callable[[KernelView, Asked], Sequence[float]]:
    def of(view: KernelView, asked: Asked) -> Sequence[float]:
        value = view.number(name)
        return [] if value is None else [float(value)]

    return of


MEASURES: dict[str, Measure] = {
    "min_overlap": Measure(title="overlap", of=_overlap, is_most=False, is_exact=False, unit="%",
                           needs_scope=True, needs_all=True, lacks=_without_work),
    "order": Measure(title="out of order", of=_disorder, needs_all=True),
    "min_visits": Measure(title="fewest visits", of=_visits, is_most=False, needs_scope=True,
                          needs_all=True, lacks=_unvisited),
    "max_visits": Measure(title="most visits", of=_visits, needs_scope=True, needs_all=True,
                          lacks=_unvisited),
    "max_share": Measure(title="share", of=_share, is_exact=False, unit="%", needs_scope=True),
    "max_critical": Measure(title="part of the critical path", of=_critical, is_exact=False,
                            unit="%", needs_scope=True, needs_all=True),
    "max_imbalance": Measure(title="imbalance", of=_imbalance, is_exact=False, unit="x",
                             needs_all=True),
    "min_occupancy": Measure(title="occupancy", of=_occupancy, is_most=False, unit="%"),
    "max_registers": Measure(title="registers", of=_resource("registers")),
    "max_spills": Measure(title="spills", of=_resource("spills")),
    "max_shared_bytes": Measure(title="shared memory", of=_resource("shared"), unit=" bytes"),
    "max_lost": Measure(title="lost records", of=_lost, lacks=_unsaid),
}  # fmt: skip
