"""The source of kernels with the time of each line, as text, and what a page shows beside its
timeline: the lines, and the code that they became.

line    self    wait  visits
  33  1.2 us  400 ns   1024  #####  x = tl.load(...)
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from proton.base.errors import ProtonError
from proton.base.locations import Place, places
from proton.base.nvidia_tools import disassemble_text
from proton.base.text import printable
from proton.base.units import duration
from proton.trace.model import Kernel
from proton.viewer.pictures.selection import matching
from proton.viewer.tables import Tables
from proton.viewer.tables.labels import kernel_labels, variant_numbers
from proton.viewer.tables.pc_samples import by_line, sampled_code
from proton.viewer.tables.source import depth_of, end_of_block, lines_of

if TYPE_CHECKING:
    import pandas as pd

AROUND = 2  # lines shown before and behind one with time
BAR = 5  # columns of a bar
SLICES = 3  # of a line, that are named
LEAST_SAMPLED = 1.0  # percent of a kernel's samples that a line of text says
GAP = "..."
LEVELS = ("ttir", "ttsir", "ttgir", "ptx", "sass", "samples")
MOST_CODE = 8  # kernels with most time, whose code a page has: to disassemble one takes 0.3 s
Level = tuple[str, str, list[tuple[Place, ...]]]  # name, text, and the places of each line


@dataclass(frozen=True, kw_only=True)
class SourceLine:
    """A line of a file, and its time, where it has some (`visits` is above 0), or samples."""

    number: int
    text: str
    end: int  # the last line of the block that it opens, else itself
    scope: str = ""
    visits: int = 0
    self_ns: float = 0.0
    wait_ns: float = 0.0
    share: float = 0.0
    parts: tuple[tuple[str, float], ...] = ()  # self time by warp, or what was asked for
    sampled: float = 0.0  # of the samples of program counters, percent
    stalls: str = ""  # what the most of these wait for


@dataclass(frozen=True, kw_only=True)
class Listing:
    """Lines of a kernel in one file; None stands for lines left out."""

    kernel: str
    file: str
    lines: list[SourceLine | None]

    @property
    def title(self) -> str:
        """Both names."""
        return f"{self.kernel}, {self.file or 'no source is known'}"


class SourceView:
    """The lines of a run's kernels."""

    def __init__(
        self, tables: Tables, by: str = "", kernel: str = "", rows: np.ndarray | None = None
    ) -> None:
        """`kernel`: a regex that is in the names of those that are shown; `rows`: the slices whose
        time counts, None for all."""
        self.tables, self.by, self.kernel = tables, by, kernel
        self.not_sampled = ""  # why samples that are there are not shown
        self.table = _of_kernels(kernel, self._with_samples(
            lines_of(tables.raw, tables.records, rows=rows)
        ))  # fmt: skip
        self.parts = _of_kernels(kernel, lines_of(tables.raw, tables.records, by)) if by else None
        kernels, labels = tables.raw.kernels, kernel_labels(tables.raw.kernels)
        names = [(kernel.name, number) for kernel, number
                 in zip(kernels, variant_numbers(kernels), strict=True)]  # fmt: skip
        self._labels = dict(zip(names, labels, strict=True))
        self._kernels: dict[str, Kernel] = dict(zip(labels, kernels, strict=True))

    def _with_samples(self, table: pd.DataFrame) -> pd.DataFrame:
        """Lines, and those that have samples alone."""
        if all(kernel.pc_samples is None for kernel in self.tables.raw.kernels):
            return table
        try:
            sampled = by_line(self.tables.pc_samples_of_all)
        except ProtonError as error:  # no disassembler
            self.not_sampled = str(error)
            return table
        keys = ["kernel", "variant", "file", "line"]
        found = table.astype({"kernel": str, "file": str, "scope": str}).merge(
            sampled, "outer", keys, suffixes=("", "_sampled")
        )
        found["scope"] = found["scope"].fillna(found.pop("scope_sampled"))
        found = found.fillna({"stalls": ""}).fillna(0)
        order = ["self_ns", "sampled"]
        return found.sort_values(order, ascending=False, kind="stable", ignore_index=True)

    def listings(self, code: Sequence[Place] = ()) -> Iterator[Listing]:
        """Those with time, the most first, with some lines around; also the places of `code`."""
        keys = ["kernel", "variant", "file"]
        for (kernel, variant, file), rows in self.table.groupby(keys, observed=True, sort=False):
            beside = {line for of, line in code if of == file}
            lines = self._lines(str(file), rows, beside)
            yield Listing(kernel=self._labels[str(kernel), variant], file=str(file), lines=lines)

    def _lines(self, file: str, rows: pd.DataFrame, beside: set[int]) -> list[SourceLine | None]:
        text = self.tables.raw.sources.get(file, "").splitlines()
        of = {int(row["line"]): row for row in rows.to_dict("records")}
        near = {n for line in {*of, *beside} for n in range(line - AROUND, line + AROUND + 1)}
        shown = sorted(n for n in near if n in of or 1 <= n <= len(text))
        found: list[SourceLine | None] = []
        for place, number in enumerate(shown):
            if place and number > shown[place - 1] + 1:
                found.append(None)
            content = text[number - 1] if 1 <= number <= len(text) else ""
            row = of.get(number)
            end = end_of_block(text, number)
            if row is None:
                found.append(SourceLine(number=number, text=content, end=end))
                continue
            found.append(
                SourceLine(
                    number=number, text=content or str(row["scope"]), end=end,
                    scope=str(row["scope"]),
                    visits=int(row["visits"]), self_ns=float(row["self_ns"]),
                    wait_ns=float(row["wait_ns"]), share=float(row["share"]),
                    parts=self._parts(row, number), sampled=float(row.get("sampled", 0)),
                    stalls=str(row.get("stalls", "")),
                )
            )  # fmt: skip
        return found

    def _parts(self, row: dict[object, object], line: int) -> tuple[tuple[str, float], ...]:
        if self.parts is None:
            return ()
        same = self.parts["line"] == line
        for key in ("kernel", "variant", "file"):
            same &= self.parts[key] == row[key]
        own = self.parts[same].sort_values(self.by)
        return tuple((f"{self.by} {n}", float(ns)) for n, ns in zip(own[self.by], own["self_ns"],
                                                                     strict=True))  # fmt: skip

    def text(self, width: int) -> Iterator[str]:
        """Lines of at most so many columns."""
        if not len(self.table):
            yield "no line has slices or samples"[:width]
        for listing in self.listings():
            lines = listing.lines
            has_wait = any(line is not None and line.wait_ns for line in lines)
            columns = 31 if has_wait else 22
            indent = _indent([line.text for line in lines if line is not None])
            yield from ("", printable(listing.title)[:width])
            yield f"{'line':>5}{'self':>9}{'wait' if has_wait else '':>{columns - 22}}{'visits':>8}"
            for line in lines:
                if line is None:
                    yield f"{GAP:>5}"
                    continue
                numbers = ""
                if line.visits:
                    bar = "#" * max(round(BAR * line.share / 100), 1)
                    wait = duration(line.wait_ns) if line.wait_ns else ""
                    wait = f"{wait:>{columns - 22}}"
                    numbers = f"{duration(line.self_ns):>9}{wait}{line.visits:>8} {bar}"
                shown = printable(line.text.expandtabs(4)[indent:])
                numbers = f"{line.number:>5}{numbers:<{columns - 4 + BAR}}"
                yield f"{numbers} {shown}"[:width].rstrip()
                for name, ns in line.parts:
                    yield f"{'':>5}{duration(ns):>9}  {name}"
                if line.sampled >= LEAST_SAMPLED:
                    told = f"{'':>5}{line.sampled:>7.1f} %  of samples: {printable(line.stalls)}"
                    yield told[:width].rstrip()
        if self.not_sampled:
            yield from ("", f"samples are not shown: {printable(self.not_sampled)}"[:width])

    def data(self) -> dict[str, object]:
        """What a page shows: listings, and of each kernel the levels of its code. A line of code
        names places by their number in `places`."""
        code = self._code()
        number: dict[Place, int] = {}
        levels = {
            kernel: [
                [name, _shown(text), [[number.setdefault(p, len(number)) for p in at] for at in of]]
                for name, text, of in found
            ]
            for kernel, found in code.items()
        }
        return {
            "listings": [
                {
                    "kernel": printable(listing.kernel), "file": printable(listing.file),
                    "lines": [_row(x) for x in listing.lines],
                }
                for listing in self.listings(list(number))
            ],
            "levels": {printable(kernel): found for kernel, found in levels.items()},
            "places": [[printable(file), line] for file, line in number],
        }  # fmt: skip

    def at(self, number: int) -> list[dict[str, Any]]:
        """What a line of the source became, an entry a kernel: the `lines` of the block that it
        opens, the longest of its `slices` as options of `timeline`, and of each of the `levels` the
        lines of code, [number, text]. A kernel that has none of the line is there only where all
        have none."""
        found: list[dict[str, Any]] = []
        for listing in self.listings([(file, number) for file in self.tables.raw.sources]):
            line = next((x for x in listing.lines if x is not None and x.number == number), None)
            if line is None:
                continue
            block = {(listing.file, n) for n in range(number, line.end + 1)}
            slices = self.tables.slices_at(number, listing.file)
            slices = slices[slices["kernel"] == self._kernels[listing.kernel].name]
            longest = slices.nlargest(SLICES, "dur_ns")[["launch", "sm", "start_ns", "dur_ns"]]
            found.append({
                "kernel": listing.kernel, "file": listing.file,
                "lines": [[x.number, x.text] for x in listing.lines
                          if x is not None and number <= x.number <= line.end],
                "slices": [
                    f"--launch {launch}{f' --sm {sm}' * (sm >= 0)} --start {start} "
                    f"--end {start + ns}"
                    for launch, sm, start, ns in longest.itertuples(index=False)
                ],
                "levels": {
                    name: lines for name, text, of in _levels(self._kernels[listing.kernel])
                    if (lines := [[n, code.expandtabs(4)] for n, (code, at) in
                                  enumerate(zip(text.split("\n"), of, strict=True), 1)
                                  if block & set(at)])
                },
            })  # fmt: skip
        return [one for one in found if one["slices"] or one["levels"]] or found

    def _code(self) -> dict[str, list[Level]]:
        """The levels of the kernels with most time."""
        names = self.table.groupby(["kernel", "variant"], observed=True)["self_ns"].sum()
        most = names.sort_values(ascending=False).index[:MOST_CODE]
        found = [self._labels[str(kernel), variant] for kernel, variant in most]
        with ThreadPoolExecutor() as several:  # each waits for a process
            return dict(zip(found, several.map(lambda k: _levels(self._kernels[k]), found),
                            strict=True))  # fmt: skip


def _levels(kernel: Kernel) -> list[Level]:
    """The levels of a kernel's code that its run has."""
    code = dict(kernel.code)
    if "cubin" in code:
        try:
            code["sass"] = disassemble_text(code.pop("cubin"))
        except ProtonError as error:  # no disassembler, or a broken file
            code["sass"] = str(error)
    levels = [(name, *places(name, code[name])) for name in LEVELS if name in code]
    if kernel.pc_samples is not None:
        try:
            levels.append((LEVELS[-1], *sampled_code(kernel.pc_samples)))
        except ProtonError as error:
            levels.append((LEVELS[-1], str(error), [()] * (1 + str(error).count("\n"))))
    return levels


def _shown(text: str) -> list[str]:
    return [printable(line.expandtabs(4)) for line in text.split("\n")]


def _row(line: SourceLine | None) -> list[object] | None:
    """A line as a page has it."""
    if line is None:
        return None
    text, scope = printable(line.text.expandtabs(4)), printable(line.scope)
    parts = [[printable(name), ns] for name, ns in line.parts]
    times = [line.visits, line.self_ns, line.wait_ns, line.share, scope, parts]
    times += [line.sampled, printable(line.stalls)]
    return [line.number, text, line.end, *(times if line.visits or line.sampled else [])]


def _of_kernels(kernel: str, table: pd.DataFrame) -> pd.DataFrame:
    return table[np.array(matching(kernel, [*table["kernel"]]), bool)]


def _indent(lines: Sequence[str]) -> int:
    """How many spaces all lines begin with that have text."""
    return min((depth_of(line) for line in lines if line.strip()), default=0)
