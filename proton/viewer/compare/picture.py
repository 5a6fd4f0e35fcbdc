"""Two sides as a picture: what each process measured, and the ratio with its interval (SVG)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from xml.sax.saxutils import escape

import numpy as np

from proton.base.text import printable
from proton.viewer.compare.check import percent
from proton.viewer.compare.diff import Change
from proton.viewer.compare.report import interval, name
from proton.viewer.compare.samples import amount

# px
NAMES, TIMES, RATIOS, MARGIN = 260, 340, 260, 12
ROW, HEAD, FOOT = 44, 46, 30
DOT = 3
WIDTH = NAMES + TIMES + RATIOS + 4 * MARGIN

BEFORE, AFTER = "#7a869a", "#1f6feb"
COLOURS = {"slower": "#c9252d", "faster": "#1a7f37"}
OTHER = "#57606a"
_LEGEND = (
    ("candidate", 2 * MARGIN + NAMES, AFTER),
    ("baseline", 2 * MARGIN + NAMES + 70, BEFORE),
    ("candidate / baseline", 3 * MARGIN + NAMES + TIMES, OTHER),
)
LONGEST_NAME = 36  # characters
LEAST_REACH = math.log(1.1)  # of the axis of ratios to either side
MOST_REACH = math.log(4)
ROOM = 1.05  # beyond both


def svg(changes: Sequence[Change], title: str) -> str:
    """The picture. Times have an axis of their own in each row, from 0; ratios share one."""
    rows = [change for change in changes if change.before.size or change.after.size]
    height = HEAD + ROW * len(rows) + FOOT
    reach = _reach(rows)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" '
        f'viewBox="0 0 {WIDTH} {height}" font-family="sans-serif" font-size="12">',
        f"<title>{_text(title)}</title>",
        f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>',
        _label(MARGIN, 20, title, weight="bold"),
    ]
    has_baseline = any(change.before.size for change in rows)
    for text, x, colour in _LEGEND if has_baseline else _LEGEND[:1]:
        parts.append(_label(x, 38, text, colour=colour))
    for number, change in enumerate(rows):
        top = HEAD + ROW * number
        if number % 2 == 0:
            parts.append(f'<rect y="{top}" width="{WIDTH}" height="{ROW}" fill="#f6f8fa"/>')
        parts += [*_names(change, top), *_times(change, top), *_ratio(change, top, reach)]
    parts += [*(_axis(reach, height) if has_baseline else []), "</svg>"]
    return "\n".join(parts) + "\n"


def _names(change: Change, top: float) -> list[str]:
    shown = name(change)
    short = shown if len(shown) <= LONGEST_NAME else f"{shown[: LONGEST_NAME - 1]}\u2026"
    about = change.stat if change.is_alone else f"{change.stat}, {change.kind}"
    return [
        f"<g><title>{_text(shown)}</title>{_label(MARGIN, top + 18, short)}</g>",
        _label(MARGIN, top + 34, about, colour=COLOURS.get(change.kind, OTHER)),
    ]


def _times(change: Change, top: float) -> list[str]:
    """Both sides: a bar to the median, and a dot for each process."""
    left, most = 2 * MARGIN + NAMES, float(max(np.max(change.before, initial=0),
                                               np.max(change.after, initial=0)))  # fmt: skip
    scale = (TIMES - 80) / max(most, 1.0)
    parts = []
    for values, colour, y in ((change.before, BEFORE, top + 7), (change.after, AFTER, top + 24)):
        if not values.size:
            continue
        middle = float(np.median(values))
        parts.append(_bar(left, y, middle * scale, 13, colour, 0.25))
        parts += [
            f'<circle cx="{left + value * scale:.1f}" cy="{y + 6.5}" r="{DOT}" fill="{colour}" '
            f'fill-opacity="0.6"/>'
            for value in values.tolist()
        ]
        said = amount(middle, change.stat)
        parts.append(_label(left + TIMES - 70, y + 11, said, colour=colour))
    return parts


def _ratio(change: Change, top: float, reach: float) -> list[str]:
    """The estimate and its interval, cut at the ends of the axis."""
    if change.ratio is None:
        return []
    colour, y = COLOURS.get(change.kind, OTHER), top + ROW / 2
    ends = [_x(value, reach) for value in (change.ratio.low, change.ratio.high)]
    at = _x(change.ratio.value, reach)
    said = f"{percent(change.ratio.value)} ({interval(change.ratio)})"
    return [
        f"<g><title>{_text(said)}</title>"
        f'<line x1="{ends[0]:.1f}" x2="{ends[1]:.1f}" y1="{y}" y2="{y}" stroke="{colour}" '
        f'stroke-width="3"/>{_mark(at, y, change.ratio.value, reach, colour)}</g>',
        _label(min(at + 10, WIDTH - 72), y - 8, percent(change.ratio.value), colour=colour),
    ]


def _mark(x: float, y: float, ratio: float, reach: float, colour: str) -> str:
    """A dot; an arrow out of the picture where the ratio is beyond an end of the axis."""
    log = math.log(ratio) if 0 < ratio < math.inf else math.copysign(math.inf, ratio - 1)
    if abs(log) <= reach:
        return f'<circle cx="{x:.1f}" cy="{y}" r="5" fill="{colour}"/>'
    base = x - math.copysign(8, log)
    points = f"{x:.1f},{y} {base:.1f},{y - 5} {base:.1f},{y + 5}"
    return f'<polygon points="{points}" fill="{colour}"/>'


def _reach(changes: Sequence[Change]) -> float:
    """How far the axis of ratios goes to either side of 1, as a logarithm."""
    found = [change.ratio for change in changes if change.ratio is not None]
    ends = [abs(math.log(end)) for r in found for end in (r.low, r.value, r.high)
            if 0 < end < math.inf]  # fmt: skip
    return min(max([LEAST_REACH, *ends]), MOST_REACH) * ROOM


def _x(ratio: float, reach: float) -> float:
    """Where a ratio lies, at an end where it is beyond."""
    log = -reach if ratio <= 0 else math.log(ratio) if ratio < math.inf else reach
    place = (min(max(log, -reach), reach) / reach + 1) / 2
    return 3 * MARGIN + NAMES + TIMES + place * RATIOS


def _axis(reach: float, height: float) -> list[str]:
    """Lines at no change and at both ends."""
    parts = []
    for ratio in (math.exp(-reach / ROOM), 1.0, math.exp(reach / ROOM)):
        x, dash = _x(ratio, reach), "" if ratio == 1 else ' stroke-dasharray="2 3"'
        parts.append(
            f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{HEAD}" y2="{height - FOOT}" '
            f'stroke="{OTHER}" stroke-width="1"{dash}/>'
        )
        parts.append(_label(min(x - 16, WIDTH - 66), height - 12, percent(ratio), colour=OTHER))
    return parts


def _bar(x: float, y: float, width: float, height: float, colour: str, opacity: float) -> str:
    return (
        f'<rect x="{x}" y="{y}" width="{width:.1f}" height="{height}" fill="{colour}" '
        f'fill-opacity="{opacity}"/>'
    )


def _label(x: float, y: float, text: str, *, colour: str = "#1f2328", weight: str = "") -> str:
    bold = f' font-weight="{weight}"' if weight else ""
    return f'<text x="{x:.1f}" y="{y:.1f}" fill="{colour}"{bold}>{_text(text)}</text>'


def _text(text: str) -> str:
    return escape(printable(text))
