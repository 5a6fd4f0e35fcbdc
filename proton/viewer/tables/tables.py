"""The run as tables, built when first asked for, and then kept: what every output is made of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from proton.base.words import counted
from proton.trace.model import FORKED, LOST_OPERATORS, UNFETCHED, UNFINISHED, Kernel, RawRun
from proton.trace.records import RecordTable, read
from proton.trace.wire import RecordKind
from proton.viewer.tables import (
    counters,
    critical,
    flights,
    pc_samples,
    placed,
    rows,
    source,
    waiting,
)
from proton.viewer.tables.columns import of_records
from proton.viewer.tables.places import Residency, residency
from proton.viewer.tables.rates import Peaks, peaks_of, with_work_of_scopes
from proton.viewer.tables.recording_cost import recording_cost
from proton.viewer.tables.rows import CORRECTED, RAW, SCOPE
from proton.viewer.tables.stats import Filter, check_groups, describe, stats

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, kw_only=True)
class Totals:
    """Sums over the whole run."""

    launches: int
    dropped_launches: int
    programs: int
    partial: int
    slices: int
    marks: int
    events: int
    flights: int
    written: int
    kept: int
    lost: int

    @property
    def size(self) -> str:
        """`3 launches, 12 programs, 1 slice`."""
        launches = counted(self.launches, "launch", "launches")
        return f"{launches}, {counted(self.programs, 'program')}, {counted(self.slices, 'slice')}"


class Tables:
    """The tables of a raw run."""

    def __init__(self, raw: RawRun) -> None:
        self.raw = raw

    @property
    def name(self) -> str:
        return self.raw.name

    @property
    def kernels(self) -> tuple[Kernel, ...]:
        return tuple(self.raw.kernels)

    @cached_property
    def records(self) -> RecordTable:
        """All records as numpy columns, decoded."""
        return read(self.raw)

    @cached_property
    def frame(self) -> pd.DataFrame:
        """One row a slice: host scopes, launches, and the scopes of kernels.

        -1 stands for none in `launch`, `program`, `core`, `device`, `sm`, `warp`, `unit` and
        `iteration`.
        """
        return rows.frame(self.raw, self.records)

    @cached_property
    def marks(self) -> pd.DataFrame:
        """One row a mark."""
        return rows.marks(self.raw, self.records)

    @cached_property
    def events(self) -> pd.DataFrame:
        """One row an event that started and ended; `unit` and `warp` are those of either edge."""
        return rows.events(self.raw, self.records)

    @cached_property
    def flights(self) -> pd.DataFrame:
        """One row a piece of asynchronous work, from its issue to the wait that retired it; see the
        option `auto`."""
        return flights.flights(self.raw, self.records)

    @cached_property
    def placed(self) -> pd.DataFrame:
        """One row a scope that the compiler placed (option `auto`): where, how many records, and
        what they cost."""
        return placed.placed(self.raw, self.records)

    @cached_property
    def losses(self) -> pd.DataFrame:
        """One row a launch, program and unit that lost records; `totals.lost` is their sum."""
        return rows.losses(self.raw, self.records)

    @cached_property
    def launches(self) -> pd.DataFrame:
        """One row a launch."""
        return rows.launches(self.raw, self.records)

    @cached_property
    def residency(self) -> Residency:
        """When each program ran, and in which slot of its SM or thread."""
        return residency(self.records)

    @cached_property
    def programs(self) -> pd.DataFrame:
        """One row a program that began: where and when, and in which of the places that programs
        had there at once (`slot`)."""
        return rows.programs(self.raw, self.records, self.residency)

    @cached_property
    def stalls(self) -> pd.DataFrame:
        """One row a wait of a kernel that the compiler recorded (option `auto`), by its sum."""
        return waiting.stalls(self.raw, self.records, self.residency)

    @cached_property
    def imbalance(self) -> pd.DataFrame:
        """One row a wait and unit: how much longer it waits there than the others do."""
        return waiting.imbalance(self.raw, self.records)

    @cached_property
    def overlap(self) -> pd.DataFrame:
        """One row a kernel with asynchronous copies: how much of their time products hide."""
        return waiting.overlap(self.raw, self.records)

    def recording_cost(self) -> list[dict[str, object]]:
        """What recording cost, an entry a kernel; with `compare_run_time` the run times with
        records and without."""
        return recording_cost(self.raw, self.records, self.residency)

    def critical_path(
        self, launch: int | None = None, program: int | None = None, *, whole: bool = False
    ) -> pd.DataFrame:
        """The chain of work, flights and barriers that a program's time is made of, a row a step:
        of a program of a launch, or of the program that took longest. A `whole` launch's goes on
        with the programs that were before the last one in its place."""
        ran = self.residency
        if whole:
            of = critical.last(self.records, ran, launch)
        else:
            of = critical.longest(self.records, ran, launch, program)
        return critical.critical_path(self.records, ran, of, whole)

    def lines(self, by: str = "") -> pd.DataFrame:
        """One row a kernel and line of its source, and role, warp, unit, launch or sm where `by`
        says so: visits, total, self and waiting time, and the share of all self time in percent."""
        return source.lines_of(self.raw, self.records, by)

    def slices_at(self, line: int, file: str = "") -> pd.DataFrame:
        """The rows of `frame` that are of a line of the source; `file` may be the end of its
        path."""
        own = source.is_at(self.records, line, file)
        return self.frame.iloc[len(self.frame) - own.size :][own]

    def pc_samples(self, by: str | Sequence[str] = "line") -> pd.DataFrame:
        """One row a kernel and line (or scope, instruction, reason, several of these): how many
        samples of program counters there are, and their share of the kernel's in percent (option
        `pc_sampling`)."""
        words = by.split(",") if isinstance(by, str) else by
        return pc_samples.grouped(self.pc_samples_of_all, [word.strip() for word in words])

    @cached_property
    def pc_samples_of_all(self) -> pd.DataFrame:
        """One row a kernel, instruction and reason; raises ProtonError where nothing disassembles
        the code."""
        return pc_samples.samples_of(self.raw)

    @cached_property
    def counters(self) -> pd.DataFrame:
        """One row a sample of a counter of a GPU's hardware (option `counters`)."""
        return counters.counters(self.raw)

    @cached_property
    def counter_stats(self) -> pd.DataFrame:
        """One row a GPU, kernel and counter: its mean and its largest sample while launches ran."""
        return counters.by_kernel(self.raw, self.launches)

    @cached_property
    def optimized_out(self) -> pd.DataFrame:
        """One row a scope in which optimisation left no work: kernel, variant, scope."""
        return rows.optimized_out(self.raw)

    @cached_property
    def totals(self) -> Totals:
        """Sums over the whole run."""
        launches, records = self.launches, self.records
        return Totals(
            launches=len(launches),
            dropped_launches=self.raw.dropped_launches,
            programs=int(launches["programs"].sum()),
            partial=int(launches["partial"].sum()),
            slices=records.count(RecordKind.SLICE),
            marks=records.count(RecordKind.MARK),
            events=records.events.start.size,
            flights=records.flights.size,
            written=int(launches["written"].sum()),
            kept=int(launches["kept"].sum()),
            lost=int(launches["lost"].sum()),
        )

    def shown_metric(self, metric: str) -> str:
        """What a metric is called: nothing is corrected where no cost of recording is known, as in
        traces of other tools."""
        records = self.records
        costs = records.slice_cost_ns.any() or records.edge_cost_ns.any()
        return RAW if metric == CORRECTED and not costs else metric

    def stats(
        self,
        by: str | Sequence[str] = ("kernel", "scope"),
        metric: str = "corrected_ns",
        kind: str | None = SCOPE,
        where: Filter | None = None,
        rates: bool | Peaks = False,
        *,
        pieces: bool = False,
    ) -> pd.DataFrame:
        """Statistics of visits, or of all their `pieces`; see `proton.viewer.stats`.

        With `rates` there are columns `gbytes/s`, `tflop/s`, `tflop16/s`, ... where payload values
        `bytes`, `flops`, `flops16`, ... say the work of slices, or metrics of host scopes that of
        the launches in them; and `%peak` where the peak of the device is known, or is given as in
        `rates={"gbytes/s": 80}`.
        """
        given = rates if isinstance(rates, Mapping) else {}
        peaks = None if rates is False else peaks_of(self.raw, given)
        if kind == SCOPE:
            columns = of_records(self.raw, self.records)
            return describe(columns, check_groups(by), metric, where, peaks, pieces=pieces)
        frame = self.frame if kind is None else rows.host_frame(self.raw, self.records)
        if peaks is not None:
            frame = with_work_of_scopes(frame, self.raw)
        return stats(frame, by, metric, kind, where, peaks, pieces=pieces)

    def loss_warnings(self) -> list[str]:
        """What of the run is missing, a line each; every number that is shown is to be read with
        them."""
        t, lines = self.totals, []
        if t.lost:
            where = f"in {len(self.losses)} of {self.records.tracks.kept.size} program units"
            lines.append(f"{t.lost} of {t.written} records lost, {where}")
        if t.partial:
            lines.append(f"{t.partial} of {t.programs} programs did not finish")
        untouched = int(self.launches["untouched"].sum())
        if untouched:
            lines.append(f"{untouched} of {t.programs} programs never began")
        lost = self.raw.machine.get(LOST_OPERATORS)
        if lost:
            lines.append(f"{lost} operators of torch were not recorded: they did not fit")
        return lines + pc_samples.losses(self.raw) + self._dropped_launches()

    def _dropped_launches(self) -> list[str]:
        """A line for each reason why launches left no records."""
        known = (self.raw.machine.get(name) for name in (FORKED, UNFINISHED, UNFETCHED))
        forked, unfinished, unfetched = (n if isinstance(n, int) else 0 for n in known)
        rest = self.totals.dropped_launches - forked - unfinished - unfetched
        room = "a larger PROTON_PROFILE_MEMORY or a smaller capacity makes room"
        reasons = {
            f"they did not fit; {room}": rest,
            "they were made by forked processes": forked,
            "they still ran when the session ended": unfinished,
            "an error of the GPU came before these were fetched": unfetched,
        }
        return [
            f"{counted(n, 'launch', 'launches')} left no records: {why}"
            for why, n in reasons.items()
            if n > 0
        ]
