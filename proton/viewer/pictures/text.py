"""Pictures out of characters: lines of pieces, each with the colour behind it.

Everything is ASCII but for names, and no colour is needed to read it.
"""

from __future__ import annotations

from collections.abc import Sequence

from rich.cells import cell_len, set_cell_size

from proton.base.symbols import within
from proton.base.text import printable
from proton.base.units import moment

Piece = tuple[str, str]  # text, and a colour such as "#90ce7a", "" for none
Line = list[Piece]
LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
LEAST_WIDTH = 40
SHADES = " .:-=+*#%@"


def fitted(text: str, width: int) -> str:
    """The text in so many columns, cut or filled up."""
    shown = within(printable(text), width)
    if cell_len(shown) > width and width > 4:
        shown = set_cell_size(shown, width - 2) + ".."
    return set_cell_size(shown, max(width, 0))


def beginning(text: str, width: int) -> str:
    """The text in at most so many columns."""
    return fitted(text, width).rstrip()


def bar(part: float, width: int, fill: str = "#") -> str:
    """A bar of a part of the width; of what is more than nothing at least a dot."""
    count = round(min(max(part, 0.0), 1.0) * width)
    return fill * count if count or part <= 0 else "."


def shade(part: float) -> str:
    """A character for a part of 1; nothing at all is blank."""
    if part <= 0:
        return SHADES[0]
    return SHADES[1 + min(int(part * (len(SHADES) - 1)), len(SHADES) - 2)]


def axis(span: tuple[int, int], width: int) -> str:
    """A line of so many columns: when the span begins at the left, when it ends at the right."""
    start, end = (moment(at, (span[1] - span[0]) / 100) for at in span)
    return f"{start}{end:>{max(width - len(start), len(end) + 1)}}"


def letters(names: Sequence[str]) -> dict[str, str]:
    """A letter for each of so many names; the others share a mark."""
    return {name: LETTERS[n] if n < len(LETTERS) else "?" for n, name in enumerate(names)}
