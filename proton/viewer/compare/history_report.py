"""Trends over runs as rows, sentences, JSON, and a page."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from html import escape

import numpy as np

from proton.base.text import printable
from proton.base.units import duration
from proton.base.words import counted
from proton.viewer.compare.check import percent
from proton.viewer.compare.history import Shift, Trend, are_too_few
from proton.viewer.compare.samples import COUNT, Process

COLUMNS = ("scope", "runs", "first", "last", "change", "trend")
NUMBERS = COLUMNS[1:5]
BARS = "▁▂▃▄▅▆▇█"
COMMIT_DIGITS = 12
WIDTH, HEIGHT, MARGIN, DOT, LETTERS = 720, 120, 8, 3, 11  # px of a plot
LEAST_DOT = 1  # px, where there are many
LEAST_SPAN = 0.1  # of the median: noise of equal code does not fill a plot
STYLE = """:root{color-scheme:light dark}body{font:14px system-ui,sans-serif;max-width:760px;
margin:2em auto;padding:0 1em}h2{font-size:1em;margin:1.5em 0 0}svg{width:100%;height:auto}
circle{fill:#1f6feb}text{fill:currentColor}line{stroke:#7a869a;stroke-width:2}
.edge{stroke-width:.5}.at{stroke:#e5484d;stroke-width:1}"""


def shown(value: float, stat: str) -> str:
    """A statistic with its unit."""
    return f"{value:g}" if stat == COUNT else duration(value)


def row(trend: Trend, stat: str, width: int) -> list[str]:
    """A row of the table; the trend has so many characters at most."""
    levels = trend.levels
    there = str(int((~np.isnan(trend.values)).sum()))
    change = percent(trend.change) if trend.shifts else ""
    return [trend.title, there, shown(levels[0], stat), shown(levels[-1], stat), change,
            bars(trend.values, width)]  # fmt: skip


def bars(values: np.ndarray, width: int) -> str:
    """The medians of as many parts as there is room for, from the least to the largest; a space
    where a scope was not there."""
    parts = np.array_split(values, min(width, values.size))
    means = np.array([np.nan if np.isnan(p).all() else np.nanmedian(p) for p in parts])
    low, high = float(np.nanmin(means)), float(np.nanmax(means))
    steps = np.nan_to_num((means - low) / max(high - low, 1e-9) * (len(BARS) - 1))
    found = [BARS[round(step)] for step in steps.tolist()]
    return "".join(" " if np.isnan(m) else bar for m, bar in zip(means, found, strict=True))


def sentence(trend: Trend, shift: Shift, stat: str, processes: Sequence[Process]) -> str:
    """A change in a line: with the commit that has it, and the last one measured that has not."""
    there = np.flatnonzero(~np.isnan(trend.values[: shift.at]))
    commit = processes[int(there[-1])].commit[:COMMIT_DIGITS]
    last = f"; {commit} was as before" if commit else ""
    change = f"{shown(shift.before, stat)} -> {shown(shift.after, stat)}"
    percents = percent(shift.after / shift.before)
    return f"{trend.title}: {change} ({percents}) since {label(shift.process)}{last}"


def label(process: Process) -> str:
    """A run: its commit, when it was, its file."""
    when = datetime.fromtimestamp(process.began_unix_ns / 1e9, UTC)
    commit = [process.commit[:COMMIT_DIGITS]] if process.commit else []
    return ", ".join([*commit, f"{when:%Y-%m-%d %H:%M} UTC", process.path])


def fields(trends: Sequence[Trend], stat: str, processes: Sequence[Process]) -> dict[str, object]:
    """The fields of the document."""
    return {
        "stat": stat,
        "runs": [
            {"path": p.path, "commit": p.commit, "began_unix_ns": p.began_unix_ns}
            for p in processes
        ],
        "trends": [
            {
                "kernel": trend.group.variant.kernel,
                "scope": trend.group.scope,
                "title": trend.title,
                "values": [None if np.isnan(v) else v for v in trend.values.tolist()],
                "changes": [
                    {"run": s.at, "commit": s.process.commit, "before": s.before, "after": s.after}
                    for s in trend.shifts
                ],
            }
            for trend in trends
        ],
    }


def headline(trends: list[Trend], processes: Sequence[Process]) -> str:
    """How many changes there are, in how many runs."""
    changes = sum(len(trend.shifts) for trend in trends)
    said = counted(changes, "change", "changes") if changes else "no change"
    commits = len({process.commit for process in processes} - {""})
    few = ": too few to show one" if not changes and are_too_few(trends) else ""
    runs = counted(len(processes), "run", "runs")
    return f"{said} in {runs} of {counted(commits, 'commit', 'commits')}{few}"


def page(trends: list[Trend], stat: str, processes: Sequence[Process], title: str) -> str:
    """A plot for each scope, which needs no script and no network."""
    body = [f"<h1>{_text(title)}</h1>", f"<p>{headline(trends, processes)}</p>"]
    for trend in trends:
        body += [f"<h2>{_text(trend.title)}, {stat}</h2>", _plot(trend, stat, processes)]
        body += [
            f"<div>{_text(sentence(trend, shift, stat, processes))}</div>" for shift in trend.shifts
        ]
    head = f'<!doctype html><meta charset="utf-8"><title>{_text(title)}</title>'
    return f"{head}<style>{STYLE}</style>{''.join(body)}\n"


def _plot(trend: Trend, stat: str, processes: Sequence[Process]) -> str:
    """A dot a run, on a scale whose ends are named; a line at the median of each part, and one at
    each change."""
    values = trend.values
    low, high = _scale(values)
    step = (WIDTH - 2 * MARGIN) / max(values.size - 1, 1)
    top, bottom = LETTERS + MARGIN, HEIGHT - LETTERS - MARGIN

    def x(at: float) -> float:
        return MARGIN + at * step

    def y(value: float) -> float:
        return bottom - (bottom - top) * (value - low) / (high - low)

    there = np.flatnonzero(~np.isnan(values)).tolist()
    edges = [there[0], *(shift.at for shift in trend.shifts), there[-1] + 1]
    parts = [_line(MARGIN, WIDTH - MARGIN, at, at, "edge") for at in (top, bottom)]
    radius = min(max(step / 2, LEAST_DOT), DOT)
    for at in there:
        value = float(values[at])
        said = _text(f"{shown(value, stat)}: {label(processes[at])}")
        parts.append(
            f'<circle cx="{x(at):.1f}" cy="{y(value):.1f}" r="{radius:.1f}">'
            f"<title>{said}</title></circle>"
        )
    parts += [
        _line(x(first), x(behind - 1), y(level), y(level))
        for first, behind, level in zip(edges, edges[1:], trend.levels, strict=False)
    ]
    parts += [_line(x(s.at - 0.5), x(s.at - 0.5), top, bottom, "at") for s in trend.shifts]
    first, last = (_day(processes[k]) for k in (0, -1))
    parts += [
        _label(MARGIN, LETTERS, shown(high, stat)),
        _label(MARGIN, HEIGHT - MARGIN / 2, f"{shown(low, stat)}, {first}"),
        _label(WIDTH - MARGIN, HEIGHT - MARGIN / 2, last, "end"),
    ]
    scale = f"{shown(low, stat)} to {shown(high, stat)}, {first} to {last}"
    return (
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{_text(scale)}">'
        f"{''.join(parts)}</svg>"
    )


def _scale(values: np.ndarray) -> tuple[float, float]:
    """The ends of a plot."""
    low, high = float(np.nanmin(values)), float(np.nanmax(values))
    more = max(LEAST_SPAN * float(np.nanmedian(values)) - (high - low), 0.0) / 2
    return low - more, high + more


def _day(process: Process) -> str:
    return f"{datetime.fromtimestamp(process.began_unix_ns / 1e9, UTC):%Y-%m-%d}"


def _label(x: float, y: float, text: str, anchor: str = "start") -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" font-size="{LETTERS}" text-anchor="{anchor}">'
        f"{_text(text)}</text>"
    )


def _line(x1: float, x2: float, y1: float, y2: float, kind: str = "level") -> str:
    return f'<line class="{kind}" x1="{x1:.1f}" x2="{x2:.1f}" y1="{y1:.1f}" y2="{y2:.1f}"/>'


def _text(text: str) -> str:
    return escape(printable(text))
