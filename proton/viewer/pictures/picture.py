"""A picture: boxes and lines of text at places in pixels, whatever it is of and however written."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from proton.base.symbols import within
from proton.base.text import printable
from proton.base.units import moment

FONT = 11  # pixels
LETTER = 0.62  # of the font's size: the width of a letter, about, that no common font exceeds
INK, FAINT, RULE = "#1f2937", "#6b7280", "#e5e7eb"
# Colours of scopes, apart from each other also for eyes that do not see red; black text reads on
# each. The order is that of scopes in their kernels, so two runs of a kernel look alike.
_BASE = (
    "#7cb5ec #f7a35c #90ce7a #e78ac3 #c5b0f5 #f2d06b #6fcfc4 #f28e8e "
    "#b8c4d9 #d0a97f #a3d9f0 #cfe08a"
).split()
# The same again, half as far from white, so that 24 scopes differ.
PALETTE = [
    *_BASE,
    *(f"#{bytes((v + 255) // 2 for v in bytes.fromhex(c[1:])).hex()}" for c in _BASE),
]
PROGRAM, LAUNCH, HOST, MARK = "#e3e8ef", "#cbd5e1", "#d9d3c7", "#111827"


@dataclass(frozen=True)
class Rectangle:
    """A filled rectangle; `title` is what a reader sees who points at it."""

    x: float
    y: float
    width: float
    height: float
    fill: str
    title: str = ""


@dataclass(frozen=True)
class Label:
    """A line of text whose baseline is at y; `anchor` is "start", "middle" or "end"."""

    x: float
    y: float
    text: str
    anchor: str = "start"
    size: int = FONT
    fill: str = INK


@dataclass
class Picture:
    """What is drawn, in this order: boxes, then labels. A page shows the legend, of colours and
    what they mean, and can stretch what lies right of `left`. Colours may be those of a scale from
    light to dark, which a dark page has from dark to light."""

    width: int
    height: int
    left: int | None = None
    legend: list[tuple[str, str]] = field(default_factory=list)
    is_scale: bool = False
    boxes: list[Rectangle] = field(default_factory=list)
    labels: list[Label] = field(default_factory=list)

    def write(self, x: float, y: float, text: str, *, width: float = 0, **style: object) -> None:
        """Adds a line of text, cut to a width where one is given; none where nothing fits."""
        shown = printable(text)
        if width:
            shown = fitting(shown, width)
        if shown:
            self.labels.append(Label(x, y, shown, **style))  # type: ignore[arg-type]


def fitting(text: str, width: float, size: int = FONT) -> str:
    """As much of a text as has room, with an ellipsis where it is cut."""
    room = int(width / (LETTER * size))
    text = within(text, room)
    if len(text) <= room:
        return text
    return f"{text[: room - 1]}…" if room >= 3 else ""


def colour(number: int) -> str:
    """The colour of the scope of this number."""
    return PALETTE[number % len(PALETTE)]


def shade(part: float) -> str:
    """From white, for 0, to dark blue, for 1."""
    stops = ((247, 251, 255), (107, 174, 214), (8, 48, 107))
    at = min(max(part, 0.0), 1.0) * (len(stops) - 1)
    low = min(int(at), len(stops) - 2)
    mixed = (a + (at - low) * (b - a) for a, b in zip(stops[low], stops[low + 1], strict=True))
    return "#" + "".join(f"{round(value):02x}" for value in mixed)


def ticks(low: float, high: float, most: int) -> list[float]:
    """Round numbers from low to high, no more than so many."""
    step = (high - low) / max(most, 1)
    power = 10.0 ** np.floor(np.log10(step)) if step > 0 else 1.0
    size = next(power * k for k in (1, 2, 5, 10) if power * k >= step * 0.999)
    first = np.ceil(low / size) * size
    return np.arange(first, high + size * 1e-6, size).tolist()


def time_axis(
    picture: Picture, span: tuple[int, int], *, left: float, top: float, bottom: float
) -> None:
    """Lines at round times since the run's origin, with what they are above."""
    scale = (picture.width - left) / (span[1] - span[0])
    times = ticks(*span, max(int((picture.width - left) / 110), 1))
    step = times[1] - times[0] if len(times) > 1 else 1.0
    for at in times:
        x = left + (at - span[0]) * scale
        picture.boxes.append(Rectangle(x, top, 1, bottom - top, RULE))
        anchor = "start" if x + 90 < picture.width else "end"
        picture.write(x + 3 if anchor == "start" else x - 3, top + FONT, moment(at, step),
                      anchor=anchor, fill=FAINT)  # fmt: skip
