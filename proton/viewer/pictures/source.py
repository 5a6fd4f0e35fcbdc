"""The source of kernels with the time of each line: as text, and as a page or a cell of a notebook.

line    self    wait  visits
  33  1.2 us  400 ns   1024  #####  x = tl.load(...)
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from proton.base import markup
from proton.base.text import printable
from proton.base.units import duration
from proton.viewer.pictures.selection import matching
from proton.viewer.tables import Tables
from proton.viewer.tables.source import lines_of

if TYPE_CHECKING:
    import pandas as pd

AROUND = 2  # lines shown before and behind one with time
BAR = 5  # columns of a bar
SLICES = 5  # of a line, that the page names
GAP = "..."
STYLE = """
:root{color-scheme:light dark}
.source{font:13px/1.45 ui-monospace,monospace;max-width:110em}
.source table{border-collapse:collapse}
.source td,.source th{padding:0 .7em;text-align:right;white-space:pre;vertical-align:top}
.source td:last-child,.source th:last-child{text-align:left}
.source tr.timed{background:linear-gradient(to right,rgba(217,119,6,.38) var(--part),
 rgba(217,119,6,.08) var(--part))}
.source details div{opacity:.75;white-space:pre-wrap}
.source summary{cursor:pointer;list-style:none}
.source summary::before{content:"\\25b8";position:absolute;margin-left:-.9em}
"""


@dataclass(frozen=True, kw_only=True)
class SourceLine:
    """A line of a file, and its time, where it has some (`visits` is above 0)."""

    number: int
    text: str
    scope: str = ""
    visits: int = 0
    self_ns: float = 0.0
    wait_ns: float = 0.0
    share: float = 0.0
    parts: tuple[tuple[str, float], ...] = ()  # self time by warp, or what was asked for
    slices: tuple[str, ...] = field(default=())


class SourceView:
    """The lines of a run's kernels; in a notebook it shows itself."""

    def __init__(self, tables: Tables, by: str = "", text: str = "", kernel: str = "") -> None:
        """`kernel`: a regex that is in the names of those that are shown."""
        self.tables, self.by = tables, by
        self.table = _of_kernels(kernel, lines_of(tables.raw, tables.records))
        self.parts = _of_kernels(kernel, lines_of(tables.raw, tables.records, by)) if by else None
        self._given = text.splitlines()

    def kernels(self) -> Iterator[tuple[str, list[SourceLine | None]]]:
        """`kernel, file` and its lines; None stands for lines left out."""
        keys = ["kernel", "variant", "file"]
        for (kernel, variant, file), rows in self.table.groupby(keys, observed=True, sort=False):
            several = self.table.loc[self.table["kernel"] == kernel, "variant"].nunique() > 1
            name = f"{kernel} #{variant}" if several else str(kernel)
            found = self._lines(str(file), rows)
            yield f"{name}, {file or 'no source is known'}", found

    def _lines(self, file: str, rows: pd.DataFrame) -> list[SourceLine | None]:
        text = self._given or _read(file)
        of = {int(row["line"]): row for row in rows.to_dict("records")}
        shown = sorted({n for line in of for n in range(line - AROUND, line + AROUND + 1)
                        if n in of or 1 <= n <= len(text)})  # fmt: skip
        found: list[SourceLine | None] = []
        for place, number in enumerate(shown):
            if place and number > shown[place - 1] + 1:
                found.append(None)
            content = text[number - 1] if 1 <= number <= len(text) else ""
            row = of.get(number)
            if row is None:
                found.append(SourceLine(number=number, text=content))
                continue
            found.append(
                SourceLine(
                    number=number, text=content or str(row["scope"]), scope=str(row["scope"]),
                    visits=int(row["visits"]), self_ns=float(row["self_ns"]),
                    wait_ns=float(row["wait_ns"]), share=float(row["share"]),
                    parts=self._parts(row, number), slices=self._slices(number, file),
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

    def _slices(self, line: int, file: str) -> tuple[str, ...]:
        """The longest slices of a line, as commands that show them."""
        own = self.tables.slices_at(line, file).nlargest(SLICES, "dur_ns")
        return tuple(
            f"{duration(float(dur))}: --launch {launch} --start {start} --end {start + dur}"
            for dur, launch, start in zip(own["dur_ns"], own["launch"], own["start_ns"],
                                          strict=True)
        )  # fmt: skip

    def text(self, width: int) -> Iterator[str]:
        """Lines of at most so many columns."""
        for title, lines in self.kernels():
            has_wait = any(line is not None and line.wait_ns for line in lines)
            columns = 31 if has_wait else 22
            indent = _indent([line.text for line in lines if line is not None])
            yield from ("", printable(title)[:width])
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

    def _repr_html_(self) -> str:
        """The lines as a table, whose timed ones open to their longest slices."""
        parts = [f"<style>{STYLE}</style><div class=source>"]
        for title, lines in self.kernels():
            head = "<tr><th>line<th>self<th>wait<th>visits<th>source</tr>"
            body = "".join(map(_row, lines))
            parts.append(f"<h3>{markup.text(title)}</h3><table>{head}{body}</table>")
        return "".join([*parts, "</div>"])

    def page(self) -> str:
        """All of an HTML file."""
        name = markup.text(self.tables.name)
        begin = '<!doctype html><meta charset="utf-8"><meta name="viewport" content="width=device'
        return f'{begin}-width"><title>{name}</title><body>{self._repr_html_()}</body>\n'


def _of_kernels(kernel: str, table: pd.DataFrame) -> pd.DataFrame:
    return table[np.array(matching(kernel, [*table["kernel"]]), bool)]


def _row(line: SourceLine | None) -> str:
    if line is None:
        return f"<tr><td>{GAP}<td><td><td><td></tr>"
    text = markup.text(line.text.expandtabs(4))
    if not line.visits:
        return f"<tr><td>{line.number}<td><td><td><td>{text}</tr>"
    parts = [f"{name}: {duration(ns)}" for name, ns in line.parts]
    inside = "".join(f"<div>{markup.text(one)}</div>" for one in (line.scope, *parts, *line.slices))
    wait = duration(line.wait_ns) if line.wait_ns else ""
    return (
        f'<tr class=timed style="--part:{line.share:.1f}%"><td>{line.number}'
        f"<td>{duration(line.self_ns)}<td>{wait}<td>{line.visits}"
        f"<td><details><summary>{text}</summary>{inside}</details></tr>"
    )


def _indent(lines: Sequence[str]) -> int:
    """How many spaces all lines begin with that have text."""
    texts = [line.expandtabs(4) for line in lines if line.strip()]
    return min((len(text) - len(text.lstrip()) for text in texts), default=0)


def _read(file: str) -> list[str]:
    """The lines of a Python file; none where it is not there. A run may name any file."""
    try:
        is_python = file.endswith(".py")
        return Path(file).read_text("utf-8", "replace").splitlines() if is_python else []
    except OSError:
        return []
