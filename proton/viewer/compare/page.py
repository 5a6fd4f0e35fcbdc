"""Both sides as one page: the table, the picture, the timelines with their findings side by side,
and what differs between these."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from proton.base import markup
from proton.viewer.compare.against import against
from proton.viewer.compare.diff import Change
from proton.viewer.compare.picture import svg
from proton.viewer.compare.report import NUMBERS
from proton.viewer.compare.samples import Process, Side
from proton.viewer.pictures.notebook import framed
from proton.viewer.pictures.page import to_page
from proton.viewer.pictures.timeline import Timeline
from proton.viewer.run import Run
from proton.viewer.tables.first_view import first_launch, typical

COLOURED = ("slower", "regression", "faster", "pass")
MARGIN = 20  # one part of so many of a launch, on either side
HEAD = '<!doctype html><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
STYLE = """:root{color-scheme:light dark}
body{margin:0;padding:10px 16px;font:13px system-ui,-apple-system,"Segoe UI",sans-serif}
h1{font-size:1.2em}h2{font-size:1em;margin:1.2em 0 .4em}
table{border-collapse:collapse}td,th{padding:1px 12px 1px 0;text-align:left;font-weight:normal}
th{opacity:.65}.slower,.regression{color:#dc2626}.faster,.pass{color:#16a34a}
.number{white-space:nowrap}.wide{overflow-x:auto}svg{background:#fff;max-width:100%;height:auto}
@media(prefers-color-scheme:dark){svg{filter:invert(.93) hue-rotate(180deg)}}
.sides{display:grid;grid-template-columns:1fr 1fr;gap:12px}
@media(max-width:900px){.sides{grid-template-columns:1fr}}
"""


@dataclass(frozen=True)
class ComparisonView:
    """What there is to show of two sides."""

    title: str
    heading: str
    table: tuple[Sequence[str], Sequence[Sequence[str]]]
    changes: Sequence[Change]
    baseline: Side | None
    candidate: Side

    def picture(self) -> str:
        return svg(self.changes, self.title)

    def page(self) -> str:
        """All of an HTML file, which needs no network."""
        after = _typical(self.candidate)
        before = None if self.baseline is None else _typical(self.baseline)
        title = markup.text(self.title)
        parts = [f"<h1>{title}</h1><div>{markup.text(self.heading)}</div>"]
        parts.append(f'<div class="wide">{_table(*self.table)}</div>')
        if self.changes:
            parts.append(f"<h2>Processes</h2>{self.picture()}")
        parts.append(_timelines(before, after))
        if after is not None and before is not None and (found := against(after, before)):
            lines = "".join(f"<li>{markup.text(row['sentence'])}</li>" for row in found)
            parts.append(f"<h2>What differs between these two</h2><ul>{lines}</ul>")
        return f"{HEAD}<title>{title}</title><style>{STYLE}</style>{''.join(parts)}\n"


def _table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Rows in which words like "slower" are coloured."""
    head = "".join(f"<th>{markup.text(name)}" for name in columns)
    body = "".join("<tr>" + "".join(map(_cell, row, columns)) for row in rows)
    return f"<table><tr>{head}{body}</table>"


def _cell(text: str, column: str) -> str:
    if column in NUMBERS:  # which do not end a line before their unit
        return f"<td class=number>{markup.text(text)}"
    return f"<td{f' class={text}' if text in COLOURED else ''}>{markup.text(text)}"


def _typical(side: Side) -> Run | None:
    """The run whose launches take the median time; None where there are sums alone."""
    timed = [process for process in side.processes if process.is_run]
    if not timed:
        return None
    return timed[typical(np.array([_launches(process) for process in timed]))].run()


def _launches(process: Process) -> float:
    return sum(row["total"] for group, row in process.rows.items() if not group.scope)


def _timelines(*sides: Run | None) -> str:
    """Those of the median launches, which begin at the same place and have one scale."""
    launches = {}
    for name, run in zip(("baseline", "candidate"), sides, strict=True):
        if run is not None and (number := first_launch(run)) is not None:
            start, length = run.launches.loc[number, ["start_ns", "dur_ns"]]
            launches[name] = run, number, int(start), int(length)
    longest = max((length for *_, length in launches.values()), default=0)
    shown = ""
    for name, (run, number, start, _) in launches.items():
        margin = max(longest // MARGIN, 1)
        page = to_page(Timeline(run), view=(start - margin, start + longest + margin))
        about = f"{name}: launch {number} of {run.name}"
        shown += f"<div><div>{markup.text(about)}</div>{framed(page)}</div>"
    return f'<h2>Timelines</h2><div class="sides">{shown}</div>' if shown else ""
