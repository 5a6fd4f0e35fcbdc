"""Tables of any width that lose no column and no part of a name:

kernel  scope  count     p50         wide: a line a row; long names are folded
add     load      12  1.2 us

  count    p50                       stacked: the numbers of a row are below its names
kernel add, scope load
     12  1.2us

kernel add, scope load               blocks: numbers have their names, too
  count 12  p50 1.2 us
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rich.cells import cell_len, chop_cells
from rich.console import Console
from rich.text import Text

from proton.base.text import printable
from proton.trace.scope_path import ScopePath

if TYPE_CHECKING:
    import pandas as pd

LEAST_NAME, MOST_LINES = 20, 2  # columns and lines of a folded name: others are not readable
MOST_LAST = 4  # lines of what stands last, where sentences do
GAP = 2  # columns between two of a table
INDENT = "  "
WHOLE_FROM = 1000.0  # from which tenths say nothing
MISSING = ("nan", "<NA>", "None", "NaT")
OF_NAMES = ("kernel", "scope")  # columns that have long names in their short forms
UNIT = re.compile(r"(?<=\d) (?=\S)")  # before a unit
Line = tuple[str, bool]  # and whether it is bold


def print_frame(console: Console, frame: pd.DataFrame, numbers: Sequence[str]) -> None:
    """A table; the columns `numbers` are never folded."""
    print_table(console, list(frame.columns), frame.itertuples(index=False), numbers)


def print_table(
    console: Console,
    columns: Sequence[str],
    values: Iterable[Iterable[object]],
    numbers: Sequence[str] = (),
) -> None:
    """Rows of values below the names of their columns."""
    shown = [_name if name in OF_NAMES else _cell for name in columns]
    rows = [[cell(value) for cell, value in zip(shown, row, strict=True)] for row in values]
    names = [printable(name) for name in columns]
    table = _Table(names, rows, [name in numbers for name in columns], console.width)
    lines = table.wide() if rows else table.names()
    if lines is None:
        lines = table.stacked()
    if lines is None:
        lines = table.blocks()
    for text, is_bold in lines:
        if is_bold and console.is_terminal:
            console.print(Text(text, style="bold"), no_wrap=True, crop=False)
        else:  # rich takes a millisecond a line
            console.file.write(f"{text.rstrip()}\n")


@dataclass(frozen=True)
class _Table:
    """Cells as they are shown; `width` is what a line may have."""

    columns: Sequence[str]
    rows: list[list[str]]
    is_number: Sequence[bool]
    width: int

    def names(self) -> list[Line]:
        """Of a table without rows: the names of its columns, in as many lines as they take."""
        head = (" " * GAP).join(self.columns)
        return [(part.strip(), True) for part in folded(head, self.width)]

    def wide(self) -> list[Line] | None:
        """A line a row, or more where names are folded; None where that is too wide."""
        table = [list(self.columns), *self.rows]
        widths = [max(map(cell_len, column)) for column in zip(*table, strict=True)]
        if not self._fold(widths):
            return None
        lines: list[Line] = []
        for number, row in enumerate(table):
            cells = [folded(cell, width) for cell, width in zip(row, widths, strict=True)]
            *before, last = (len(cell) for cell in cells)
            if max(before, default=0) > MOST_LINES or last > MOST_LAST:
                return None
            for part in range(max(map(len, cells), default=0)):
                parts = [cell[part] if part < len(cell) else "" for cell in cells]
                lines.append(((" " * GAP).join(self._aligned(parts, widths)), number == 0))
        return lines

    def _fold(self, widths: list[int]) -> bool:
        """Makes columns of names narrower until a line fits; says whether one does."""
        names = [place for place, number in enumerate(self.is_number) if not number]
        over = sum(widths) + GAP * (len(widths) - 1) - self.width
        while over > 0:
            widest = max(names, key=lambda place: widths[place], default=None)
            if widest is None or widths[widest] <= LEAST_NAME:
                return False
            widths[widest] -= 1
            over -= 1
        return True

    def _aligned(self, cells: Sequence[str], widths: Sequence[int]) -> list[str]:
        found = []
        for cell, width, is_number in zip(cells, widths, self.is_number, strict=True):
            gap = " " * (width - cell_len(cell))
            found.append(gap + cell if is_number else cell + gap)
        return found

    def stacked(self) -> list[Line] | None:
        """A line of names, and one of numbers in columns. Of those that do not fit, the first stand
        with the names; None where that were more than half of them."""
        places = [place for place, number in enumerate(self.is_number) if number]
        for moved in range(len(places) // 2 + 1):
            lines = self._stacked(places[moved:])
            if lines is not None:
                return lines
        return None

    def _stacked(self, places: Sequence[int]) -> list[Line] | None:
        """With these numbers in columns; None where they do not fit."""
        table = [[UNIT.sub("", row[place]) for place in places] for row in self.rows]
        table.insert(0, [self.columns[place] for place in places])
        widths = [max(map(cell_len, column)) for column in zip(*table, strict=True)]
        room = self.width - len(INDENT) - sum(widths)
        gap = min(GAP, room // max(len(places) - 1, 1))
        if not places or gap < 1:
            return None
        head, *numbers = [
            INDENT + (" " * gap).join(self._padded(cells, widths)).rstrip() for cells in table
        ]
        lines: list[Line] = [(head, True)]
        for row, text in zip(self.rows, numbers, strict=True):
            lines += [*self._title(row, places), *([(text, False)] if text else [])]
        return lines

    def _padded(self, cells: Sequence[str], widths: Sequence[int]) -> list[str]:
        return [" " * (w - cell_len(c)) + c for c, w in zip(cells, widths, strict=True)]

    def blocks(self) -> list[Line]:
        """A row as lines: what it is of, then its numbers, each with its name."""
        places = [place for place, number in enumerate(self.is_number) if number]
        lines: list[Line] = []
        for row in self.rows:
            lines += self._title(row, places)
            text = ""
            for place in places:
                piece = f"{INDENT}{self.columns[place]} {row[place]}" if row[place] else ""
                if text and cell_len(text) + cell_len(piece) > self.width:
                    lines.append((text, False))
                    text = ""
                text += piece
            if text:
                lines.append((text, False))
        return lines

    def _title(self, row: Sequence[str], apart: Sequence[int]) -> list[Line]:
        """What there is of a row, but for the numbers `apart`, in lines."""
        cells = enumerate(zip(self.columns, row, strict=True))
        there = [words for place, words in cells if words[1] and place not in apart]
        pieces = [" ".join(words).strip() for words in there]
        lines: list[str] = []
        for piece in pieces:
            if lines and cell_len(f"{lines[-1]}, {piece},") <= self.width:
                lines[-1] += f", {piece}"
            else:
                lines += [piece]
        ended = [f"{line}," for line in lines[:-1]] + lines[-1:]
        return [(part, True) for line in ended for part in folded(line, self.width)]


def folded(text: str, width: int) -> list[str]:
    """The text in lines of so many columns, cut at spaces where there are some."""
    lines = []
    while cell_len(text) > width:
        line = chop_cells(text, width)[0]
        space = line.rfind(" ")
        if space > 0 and text[len(line)] != " " and line[:space].strip():
            line = line[:space]
        lines.append(line)
        text = text[len(line) :].removeprefix(" ")
    return [*lines, text]


def _name(value: object) -> str:
    return _cell(ScopePath(value).shown if isinstance(value, str) else value)


def _cell(value: object) -> str:
    """Numbers without a meaningless tail, and nothing for what is missing."""
    if isinstance(value, float) and value == value:
        return f"{value:.0f}" if abs(value) >= WHOLE_FROM else f"{value:.1f}"
    text = printable(str(value))
    return "" if text in MISSING and not isinstance(value, str) else text
