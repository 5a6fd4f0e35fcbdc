"""What a session hands to its user: the tables of a run, and every way to save it."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, assert_never, cast

from proton.trace.model import FORKED, UNFINISHED, Kernel, RawRun
from proton.trace.wire import Kind, State
from proton.viewer import archive, chrome, tables
from proton.viewer.files import replacing
from proton.viewer.formats import PACKED, Format, check_packages, format_of
from proton.viewer.labels import gpu_name, kernel_labels
from proton.viewer.records import Records, read
from proton.viewer.stats import stats
from proton.viewer.text import as_cells

if TYPE_CHECKING:
    import pandas as pd

GZIP_LEVEL = 1  # level 6 packs to 3/4 of the size in 4 times the time (1 M slices: 0.8 s)
JSON_DIGITS = 15  # the most that pandas offers
# Of a GPU's kernel, in Kernel.options; those without instrumentation end in OFF.
RESOURCES = ("registers", "spills", "shared", "blocks_per_sm", "run_ns")
OFF = "_off"
SIGNATURE = "signature"  # in Kernel.options: the types and constants that it was compiled for


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
    written: int
    kept: int
    lost: int


@dataclass(frozen=True, kw_only=True)
class Summary:
    """What a reader should know first: facts, a table of the scopes, and warnings.

    A warning is one line about the run (losses, killed programs, emptied scopes, clocks), however
    many programs it concerns.
    """

    facts: dict[str, str]
    scopes: pd.DataFrame
    warnings: tuple[str, ...]


class Run:
    """A profiled run. Tables are built when first asked for, and then kept."""

    def __init__(self, raw: RawRun) -> None:
        self.raw = raw

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Run:
        """Reads a `.proton` file; raises TraceFormatError where it breaks the format."""
        run = cls(archive.load(Path(path)))
        run.records  # noqa: B018 - decodes now, so that a broken file is refused here
        return run

    def __repr__(self) -> str:
        t = self.totals
        lost = f", {t.lost} records lost" if t.lost else ""
        lost += f", {t.dropped_launches} launches dropped" if t.dropped_launches else ""
        size = f"{t.launches} launches, {t.programs} programs, {t.slices} slices"
        return f"<Run {self.name!r}: {size}{lost}>"

    @property
    def name(self) -> str:
        return self.raw.name

    @property
    def kernels(self) -> tuple[Kernel, ...]:
        return tuple(self.raw.kernels)

    @cached_property
    def records(self) -> Records:
        """All records as numpy columns, decoded."""
        return read(self.raw)

    @cached_property
    def frame(self) -> pd.DataFrame:
        """One row a slice: host scopes, launches, and the scopes of kernels.

        -1 stands for none in `launch`, `program`, `core`, `device`, `sm`, `warp`, `unit` and
        `iteration`.
        """
        return tables.frame(self.raw, self.records)

    @cached_property
    def marks(self) -> pd.DataFrame:
        """One row a mark."""
        return tables.marks(self.raw, self.records)

    @cached_property
    def events(self) -> pd.DataFrame:
        """One row an event that started and ended; `unit` and `warp` are those of either edge."""
        return tables.events(self.raw, self.records)

    @cached_property
    def losses(self) -> pd.DataFrame:
        """One row a launch, program and unit that lost records; `totals.lost` is their sum."""
        return tables.losses(self.raw, self.records)

    @cached_property
    def launches(self) -> pd.DataFrame:
        """One row a launch."""
        return tables.launches(self.raw, self.records)

    @cached_property
    def emptied(self) -> pd.DataFrame:
        """One row a scope in which optimisation left no work: kernel, variant, scope."""
        return tables.emptied(self.raw)

    @cached_property
    def totals(self) -> Totals:
        """Sums over the whole run."""
        launches, records = self.launches, self.records
        return Totals(
            launches=len(launches),
            dropped_launches=self.raw.dropped_launches,
            programs=int(launches["programs"].sum()),
            partial=int(launches["partial"].sum()),
            slices=records.count(Kind.SLICE),
            marks=records.count(Kind.MARK),
            events=records.events.start.size,
            written=int(launches["written"].sum()),
            kept=int(launches["kept"].sum()),
            lost=int(launches["lost"].sum()),
        )

    def stats(
        self, by: str | Sequence[str] = ("kernel", "scope"), metric: str = "corrected_ns"
    ) -> pd.DataFrame:
        """Statistics of the kernels' slices; see `proton.viewer.stats.stats`."""
        return stats(self.frame, by, metric)

    def summary(self) -> Summary:
        """What to know first about the run."""
        t = self.totals
        facts = {
            "run": self.name,
            "launches": str(t.launches),
            "programs": str(t.programs),
            "slices": str(t.slices),
            "marks": str(t.marks),
            **({"events": str(t.events)} if t.events else {}),
            "records": f"{t.written} written, {t.kept} kept",
            **self._gpu_facts(),
            **self._kernel_facts(),
            **{key: str(value) for key, value in self.raw.machine.items()},
        }
        return Summary(facts=facts, scopes=self.stats(), warnings=tuple(self._warnings()))

    def _gpu_facts(self) -> dict[str, str]:
        """A line a GPU: what ran on it, and how well its clocks are known."""
        gpu, tracks = self.records.gpu, self.records.tracks
        facts: dict[str, str] = {}
        if gpu is None:
            return facts
        began = self.records.programs.state[tracks.row] != State.UNTOUCHED
        for device in gpu.hosts:
            sms = tracks.sm[began & (tracks.device == device) & (tracks.sm >= 0)]
            clocks = [
                clock
                for number, clock in gpu.launches.items()
                if self.raw.launches[number].device == device
            ]
            rates = sorted(1 / clock.rate for clock in clocks if clock.measured)
            speed = f", {rates[len(rates) // 2]:.2f} GHz" if rates else ""
            error = max(clock.error_ns for clock in clocks)
            facts[gpu_name(self.raw, device)] = (
                f"{len(set(sms.tolist()))} SMs used{speed}; clocks of the SMs agree within "
                f"{error:.0f} ns, the timer with the host within "
                f"{gpu.host_error_ns(device):.0f} ns"
            )
        return facts

    def _kernel_facts(self) -> dict[str, str]:
        """A line a kernel that has variants, or of which the compiler left its resources."""
        facts: dict[str, str] = {}
        for kernel, label in zip(self.kernels, kernel_labels(self.kernels), strict=True):
            parts = []
            for name in RESOURCES:
                value, off = kernel.options.get(name), kernel.options.get(name + OFF)
                if isinstance(value, int):
                    parts.append(f"{name} {value}" + ("" if off is None else f" ({off})"))
            lines = [_sampling(kernel.options)]
            if parts:
                lines.insert(0, f"{', '.join(parts)} (in brackets: without instrumentation)")
            if label != kernel.name:
                lines.insert(0, str(kernel.options.get(SIGNATURE, "")))
            line = "; ".join(filter(None, lines))
            if line:
                facts[f"kernel {label}"] = line
        return facts

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
        return lines + self._dropped_launches()

    def _warnings(self) -> list[str]:
        lines = self.loss_warnings()
        alone = self.records.kind[self.records.events.alone]
        if alone.size:
            ends = int((alone == Kind.EVENT_END).sum())
            starts = alone.size - ends
            lines.append(f"{starts} starts and {ends} ends of events have no other half")
        lines += self._clock_warnings()
        labels = kernel_labels(self.kernels)
        for kernel, label in zip(self.kernels, labels, strict=True):
            fit, off = (kernel.options.get(f"blocks_per_sm{end}") for end in ("", OFF))
            if isinstance(fit, int) and isinstance(off, int) and fit != off:
                lines.append(f"{label}: {fit} programs fit on an SM, {off} without instrumentation")
        emptied = [
            f"{label}: {path}"
            for kernel, label in zip(self.kernels, labels, strict=True)
            for path in kernel.emptied
        ]
        if emptied:
            lines.append(f"scopes that optimisation left without work: {', '.join(emptied)}")
        return lines

    def _dropped_launches(self) -> list[str]:
        """A line for each reason why launches left no records."""
        known = (self.raw.machine.get(name) for name in (FORKED, UNFINISHED))
        forked, unfinished = (n if isinstance(n, int) else 0 for n in known)
        reasons = {
            "they did not fit": self.totals.dropped_launches - forked - unfinished,
            "they were made by forked processes": forked,
            "they still ran when the session ended": unfinished,
        }
        return [f"{n} launches left no records: {why}" for why, n in reasons.items() if n > 0]

    def _clock_warnings(self) -> list[str]:
        """Where times are not to be trusted."""
        records, lines = self.records, []
        wrapped = records.programs.launch[records.programs.wrapped]
        if wrapped.size:
            lines.append(
                f"{wrapped.size} programs of {self._names_of(wrapped.tolist())} ran for 2^32 "
                "cycles or more, which times from 32-bit clocks may miss: use 64-bit clocks"
            )
        launches = records.gpu.launches.items() if records.gpu is not None else ()
        unknown = [number for number, clock in launches if not clock.measured]
        if unknown:
            lines.append(
                f"{len(unknown)} launches of {self._names_of(unknown)} were too short to tell the "
                "rate of their clocks: error_ns is the length of the launch"
            )
        return lines

    def _names_of(self, launches: Sequence[int]) -> str:
        """The kernels of these launches."""
        names = (self.kernels[self.raw.launches[number].kernel].name for number in launches)
        return ", ".join(dict.fromkeys(names))

    def save(self, path: str | os.PathLike[str], format: Format | None = None) -> Path:
        """Writes the run, whole or not at all; without a format the suffix picks it.

        `.proton` keeps everything; `.pftrace`, `.perfetto-trace` and `.pftrace.gz` open in
        Perfetto; `.json` is Chrome's trace format; `.csv` is `frame`.
        """
        target = Path(path)
        chosen = format_of(target) if format is None else format
        check_packages(chosen)
        if chosen is Format.PROTON:
            archive.save(self.raw, target)
            return target
        with replacing(target) as file:
            match chosen:
                case Format.PERFETTO:
                    self._write_perfetto(file, packed=target.name.endswith(PACKED))
                case Format.CHROME:
                    tables = self.frame, self.marks, self.events
                    chrome.write(self.raw, *tables, self.loss_warnings(), file)
                case Format.CSV:
                    as_cells(self.frame).to_csv(file, index=False)
                case Format.JSON:
                    self._write_json(file)
                case _:
                    assert_never(chosen)
        return target

    def _write_perfetto(self, file: BinaryIO, packed: bool) -> None:
        from proton.viewer import perfetto  # costs 60 ms, for its schema

        if not packed:
            perfetto.write(self.raw, self.records, file)
            return
        with gzip.GzipFile("", "wb", GZIP_LEVEL, file, mtime=0) as stream:
            perfetto.write(self.raw, self.records, cast(BinaryIO, stream))

    def _write_json(self, file: BinaryIO) -> None:
        """The tables as one object, a list of rows each, and what they lack."""
        opening = b"{"
        for name in ("frame", "marks", "events", "losses", "launches", "emptied"):
            rows = getattr(self, name).to_json(orient="records", double_precision=JSON_DIGITS)
            file.write(opening + f'"{name}": {rows}'.encode())
            opening = b",\n"
        file.write(b',\n"warnings": ' + json.dumps(self.loss_warnings()).encode() + b"}\n")


def _sampling(options: dict[str, Any]) -> str:
    """What of a kernel was recorded, where that is not all."""
    parts = [
        f"one {what} of {options[name]}"
        for name, what in (("sample_programs", "program"), ("every", "iteration"))
        if isinstance(options.get(name), int) and options[name] > 1
    ]
    if options.get("sample_warps"):
        parts.append(f"warps {', '.join(map(str, options['sample_warps']))}")
    return f"only {', '.join(parts)}" if parts else ""
