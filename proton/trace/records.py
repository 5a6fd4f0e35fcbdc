"""All records of a run in one set of columns, in nanoseconds since its origin."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from proton.trace.check import check_kernel, require
from proton.trace.clock import MAX_NS, ClockLine, check_clock, fit
from proton.trace.decode import Decoded, decode
from proton.trace.events import Pairs, pair
from proton.trace.flights import Flights, pair_flights
from proton.trace.gpu_clock import GPUTimes, check_gpus, gpu_times
from proton.trace.model import LOCKS, RawRun, Scope
from proton.trace.nesting import Nesting, cover_inner, nest
from proton.trace.tiles import find_tiles
from proton.trace.visits import Visits, group_visits
from proton.trace.wire import NO_HARDWARE_ID, NO_ITERATION, ProgramState, RecordKind

NONE = -1  # no iteration, core, SM, program, ...
NARROW_CYCLES = 1 << 32  # what a clock of 32 bits can tell apart


@dataclass(frozen=True, kw_only=True)
class Programs:
    """A row per program of a launch.

    `wrapped` says that it ran longer than its records' clocks can tell.
    """

    launch: np.ndarray
    state: np.ndarray
    wrapped: np.ndarray


@dataclass(frozen=True, kw_only=True)
class Tracks:
    """A row a unit of a program: where it ran, and what became of its records.

    `row` is the program's in Programs. `core` is -1 on a GPU, `device`, `sm` and `warp` elsewhere.
    """

    launch: np.ndarray
    program: np.ndarray
    row: np.ndarray
    unit: np.ndarray
    thread: np.ndarray
    core: np.ndarray
    device: np.ndarray
    sm: np.ndarray
    warp: np.ndarray
    began: np.ndarray  # ticks
    ended: np.ndarray  # ticks; those of `began` where the program was killed
    written: np.ndarray
    kept: np.ndarray
    lost: np.ndarray


@dataclass(frozen=True, kw_only=True)
class RecordTable:
    """A row per record, of whatever kind, grouped by track (a row of `tracks`), oldest first.

    `scope` is a row of `scopes`, the scope tables of all kernels one after another;
    `iteration` is -1 outside loops; `payload` holds raw 8-byte values. Ticks of a GPU's programs
    are cycles of their SMs.
    """

    scopes: tuple[Scope, ...]
    programs: Programs
    tracks: Tracks
    track: np.ndarray
    scope: np.ndarray
    kind: np.ndarray  # a wire Kind
    iteration: np.ndarray
    start_ticks: np.ndarray
    end_ticks: np.ndarray
    payload: np.ndarray
    clock: ClockLine | None  # of the CPU; None when there is nothing to convert
    gpu: GPUTimes | None  # of the GPUs; None when no program of theirs began
    slice_cost_ns: np.ndarray  # a row per track
    edge_cost_ns: np.ndarray

    @cached_property
    def start_ns(self) -> np.ndarray:
        return self._ns(self.start_ticks, self.track)

    @cached_property
    def end_ns(self) -> np.ndarray:
        return self._ns(self.end_ticks, self.track)

    @cached_property
    def error_ns(self) -> np.ndarray:
        if self.gpu is None:
            return self._cpu_error(self.start_ticks)
        tracks = self.tracks
        error = self.gpu.error_ns[tracks.row[self.track]]
        cpu = np.flatnonzero(tracks.device[self.track] == NONE)
        error[cpu] = self._cpu_error(self.start_ticks[cpu])
        return error

    @cached_property
    def nesting(self) -> Nesting:
        return nest(self.track, self.start_ticks, self.end_ticks)

    @cached_property
    def events(self) -> Pairs:
        """The starts and ends of events, paired."""
        return pair(
            kind=self.kind,
            scope=self.scope,
            ticks=self.start_ticks,
            track=self.track,
            program=self.tracks.row,
            lossy=self.tracks.lost > 0,
        )

    @cached_property
    def flights(self) -> Flights:
        """Asynchronous work from its issue to the wait that retires it."""
        has_locks = any(scope.work == LOCKS for scope in self.scopes)
        ticks = self.start_ticks, self.end_ticks
        start, end = (self.start_ns, self.end_ns) if has_locks else ticks
        return pair_flights(
            scopes=self.scopes,
            scope=self.scope,
            track=self.track,
            program=self.tracks.row,
            launch=self.tracks.launch,
            lossy=self.tracks.lost > 0,
            start=start,
            end=end,
        )

    @cached_property
    def tile(self) -> np.ndarray | None:
        """The tile of each record (tiles.py)."""
        return find_tiles(
            scopes=self.scopes, scope=self.scope, payload=self.payload, nesting=self.nesting
        )

    @cached_property
    def visits(self) -> Visits:
        """Which slices are pieces of one run of their scope; a row per record."""
        return group_visits(
            scopes=self.scopes,
            scope=self.scope,
            track=self.track,
            iteration=self.iteration,
            start=self.start_ticks,
            lossy=self.tracks.lost > 0,
        )

    def count(self, kind: RecordKind) -> int:
        """How many records are of this kind."""
        return int((self.kind == kind).sum())

    @cached_property
    def overhead_ns(self) -> np.ndarray:
        """What measuring added to each slice: its own edges, and each record inside it."""
        track = self.track
        return self.edge_cost_ns[track] + self.slice_cost_ns[track] * self.nesting.inside

    @cached_property
    def corrected_ns(self) -> np.ndarray:
        """How long each slice took without that, but no less than the slices inside it together.

        What measuring costs is a mean of its calibration, and a slice may have cost less: an outer
        one would then lose more than is inside of it.
        """
        duration = self.end_ns - self.start_ns
        own = np.maximum(np.rint(duration - self.overhead_ns).astype(np.int64), 0)
        return cover_inner(own, self.track, self.start_ticks, self.end_ticks, self.nesting)

    def began_ns(self, tracks: np.ndarray) -> np.ndarray:
        """When the programs of these tracks began."""
        return self._ns(self.tracks.began[tracks], tracks)

    def ended_ns(self, tracks: np.ndarray) -> np.ndarray:
        """When the programs of these tracks ended, as far as they got."""
        return self._ns(self.tracks.ended[tracks], tracks)

    def _ns(self, ticks: np.ndarray, track: np.ndarray) -> np.ndarray:
        if self.gpu is None:
            return self._cpu_ns(ticks)
        time = self.gpu.ns(ticks, self.tracks.row[track])
        cpu = np.flatnonzero(self.tracks.device[track] == NONE)
        time[cpu] = self._cpu_ns(ticks[cpu])
        return time

    def _cpu_ns(self, ticks: np.ndarray) -> np.ndarray:
        return np.zeros(ticks.size, np.int64) if self.clock is None else self.clock.ns(ticks)

    def _cpu_error(self, ticks: np.ndarray) -> np.ndarray:
        return np.zeros(ticks.size) if self.clock is None else self.clock.error(ticks)


def read(raw: RawRun) -> RecordTable:
    """Decodes every launch of the run; raises TraceFormatError where one is broken."""
    _check(raw)
    decoded = []
    for number, launch in enumerate(raw.launches):
        where = f"launch {number}"
        known = 0 <= launch.kernel < len(raw.kernels)
        require(known, where, f"kernel must be < {len(raw.kernels)}", launch.kernel)
        kernel = raw.kernels[launch.kernel]
        decoded.append(decode(kernel, launch, f"{where} ({kernel.name})"))
    programs = np.cumsum([0, *(d.state.size for d in decoded)])
    tracks = _tracks(raw, decoded, programs)
    on_gpus = {i: d for i, d in enumerate(decoded) if raw.kernels[raw.launches[i].kernel].on_gpu}
    gpu = gpu_times(raw, on_gpus, programs)
    slice_cost, edge_cost = _costs(raw, tracks, gpu)
    iteration = _join([d.iteration for d in decoded], np.uint32).astype(np.int64)
    first_scope = np.cumsum([0] + [len(kernel.scopes) for kernel in raw.kernels])
    state = _join([d.state for d in decoded], np.int8)
    timed = bool((state[tracks.row] != ProgramState.UNTOUCHED)[tracks.device == NONE].any())
    return RecordTable(
        scopes=tuple(scope for kernel in raw.kernels for scope in kernel.scopes),
        programs=Programs(
            launch=np.repeat(np.arange(len(decoded)), [d.state.size for d in decoded]),
            state=state,
            wrapped=_join(
                [
                    _wrapped(d, raw.kernels[launch.kernel].clock_bits)
                    for d, launch in zip(decoded, raw.launches, strict=True)
                ],
                bool,
            ),
        ),
        tracks=tracks,
        track=np.repeat(np.arange(tracks.kept.size), tracks.kept),
        scope=_join(
            [
                d.scope + np.int32(first_scope[launch.kernel])
                for d, launch in zip(decoded, raw.launches, strict=True)
            ],
            np.int32,
        ),
        kind=_join([d.kind for d in decoded], np.uint8),
        iteration=np.where(iteration == NO_ITERATION, NONE, iteration),
        start_ticks=_join([d.start for d in decoded], np.uint64),
        end_ticks=_join([d.end for d in decoded], np.uint64),
        payload=_payload(raw, decoded),
        clock=fit(raw.clock, raw.origin_ns) if timed else None,
        gpu=gpu,
        slice_cost_ns=slice_cost,
        edge_cost_ns=edge_cost,
    )


def _check(raw: RawRun) -> None:
    """What concerns the run as a whole."""
    check_clock(raw.clock)
    check_gpus(raw.gpus)
    for number, kernel in enumerate(raw.kernels):
        check_kernel(kernel, f"kernel {number} ({kernel.name})")
    for name in ("origin_ns", "origin_unix_ns"):
        value = getattr(raw, name)
        require(0 <= value < MAX_NS, "run", f"{name} must be a time in ns", value)
    times = [(f"host scope {s.path}", s.start, s.end) for s in raw.host]
    times += [(f"launch {i}", x.host_start, x.host_end) for i, x in enumerate(raw.launches)]
    for where, start, end in times:
        rule = "start and end must be times in ns, in order"
        require(0 <= start <= end < MAX_NS, where, rule, f"{start}, {end}")


def _join(columns: Sequence[np.ndarray], dtype: type) -> np.ndarray:
    return np.concatenate([*columns, np.zeros(0, dtype)])


def _wrapped(d: Decoded, clock_bits: int) -> np.ndarray:
    """The finished programs that ran longer than clocks of so many bits can tell."""
    if clock_bits == 64:
        return np.zeros(d.state.size, bool)
    return (d.state == ProgramState.FINISHED) & (d.clock_end - d.clock_start >= NARROW_CYCLES)


def _ended(d: Decoded) -> np.ndarray:
    """The last clock that each program left."""
    return np.where(d.state == ProgramState.FINISHED, d.clock_end, d.clock_start)


def _costs(raw: RawRun, tracks: Tracks, gpu: GPUTimes | None) -> tuple[np.ndarray, np.ndarray]:
    """What a record costs the slice around it, and its own, in ns on each track."""
    slice_cost = np.full(tracks.kept.size, raw.clock.slice_cost_ns)
    edge_cost = np.full(tracks.kept.size, raw.clock.edge_cost_ns)
    if gpu is None:
        return slice_cost, edge_cost
    for clock in raw.gpus:
        rows = np.flatnonzero(tracks.device == clock.device)
        slope = gpu.slope[tracks.row[rows]]
        slice_cost[rows] = clock.slice_cost_cycles * slope
        edge_cost[rows] = clock.edge_cost_cycles * slope
    return slice_cost, edge_cost


def _tracks(raw: RawRun, decoded: Sequence[Decoded], programs: np.ndarray) -> Tracks:
    """`programs`: how many there are before each launch."""
    kernels = [raw.kernels[launch.kernel] for launch in raw.launches]
    units = [kernel.units for kernel in kernels]
    numbers = [np.arange(d.written.size) for d in decoded]
    written = _join([d.written for d in decoded], np.int64)
    kept = _join([d.kept for d in decoded], np.int64)
    storing = [kernel.strategy is None or kernel.strategy.stores for kernel in kernels]
    sizes = [d.written.size for d in decoded]

    def per_track(columns: list[np.ndarray], dtype: type) -> np.ndarray:
        return _join([c.repeat(u) for c, u in zip(columns, units, strict=True)], dtype)

    hardware = per_track([d.hardware for d in decoded], np.int64)
    hardware[hardware == NO_HARDWARE_ID] = NONE
    device = np.repeat(launch_devices(raw), sizes)
    gpu = device != NONE
    launch = np.repeat(np.arange(len(decoded)), sizes)
    program = _join([n // u for n, u in zip(numbers, units, strict=True)], np.int64)
    unit = _join([n % u for n, u in zip(numbers, units, strict=True)], np.int64)
    return Tracks(
        launch=launch,
        program=program,
        row=programs[launch] + program,
        unit=unit,
        thread=per_track([d.thread for d in decoded], np.int64),
        core=np.where(gpu, NONE, hardware),
        device=device,
        sm=np.where(gpu, hardware, NONE),
        warp=np.where(gpu, unit * np.repeat([k.unit_warps for k in kernels], sizes), NONE),
        began=per_track([d.clock_start for d in decoded], np.uint64),
        ended=per_track([_ended(d) for d in decoded], np.uint64),
        written=written,
        kept=kept,
        lost=np.where(np.repeat(storing, sizes).astype(bool), written - kept, 0),
    )


def _payload(raw: RawRun, decoded: Sequence[Decoded]) -> np.ndarray:
    """Payloads of all launches, as wide as those of any kernel, launched or not."""
    width = max((kernel.payload_slots for kernel in raw.kernels), default=0)
    payload = np.zeros((sum(d.start.size for d in decoded), width), np.uint64)
    row = 0
    for d in decoded:
        payload[row : row + d.start.size, : d.payload.shape[1]] = d.payload
        row += d.start.size
    return payload


def launch_devices(raw: RawRun) -> np.ndarray:
    """The GPU of each launch; -1 for the CPU's."""
    devices = [x.device if raw.kernels[x.kernel].on_gpu else NONE for x in raw.launches]
    return np.array(devices, np.int64)


def count_states(programs: Programs, launches: int) -> np.ndarray:
    """launches x states: how many programs of each launch are in each State."""
    cell = programs.launch * len(ProgramState) + programs.state
    return np.bincount(cell, minlength=launches * len(ProgramState)).reshape(
        launches, len(ProgramState)
    )
