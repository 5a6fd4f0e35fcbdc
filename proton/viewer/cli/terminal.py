"""Tables and lines on a terminal of any width, and the standard streams as they may be.

A table never loses a column: where it is too wide, names are folded, and where that is not enough
each row becomes a block of lines.
"""

import contextlib
import errno
import io
import os
import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Literal

from rich import box
from rich.cells import cell_len
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from proton.base.text import printable

if TYPE_CHECKING:
    import pandas as pd

PIPE_WIDTH = 100_000  # a pipe has no width that a table must be cut to
LEAST_NAME = 12  # columns of a folded name; less is not readable
GAP = 2  # columns between two of a table
MANY_ROWS = 200  # beyond which a table is lines of text
WHOLE_FROM = 1000.0  # ns from which tenths say nothing


class _Closed(io.TextIOBase):
    """Standard output that the caller has closed."""

    def write(self, text: str) -> int:
        raise OSError(errno.EBADF, "standard output is closed")


def open_streams() -> None:
    """Makes standard output one that takes any text, or says that it is closed."""
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115 - open until the process ends
    if sys.stdout is None:
        sys.stdout = _Closed()
    elif isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")


def close_streams() -> None:
    """Writes what is left; where that fails, Python does not try again at its end."""
    try:
        sys.stdout.flush()
    except OSError:
        with contextlib.suppress(OSError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise


def stdout() -> Console:
    """Standard output."""
    return Console(highlight=False, width=None if sys.stdout.isatty() else PIPE_WIDTH)


def markup(value: object) -> str:
    """A value as text of a table."""
    return escape(printable(str(value)))


def print_facts(console: Console, facts: dict[str, str]) -> None:
    """A name and a value a line."""
    table = Table.grid(padding=(0, 2))
    table.add_column(overflow="fold")
    table.add_column(overflow="fold")
    for name, value in facts.items():
        table.add_row(markup(name), markup(value))
    console.print(table)


def print_frame(console: Console, frame: "pd.DataFrame", numbers: Sequence[str]) -> None:
    """A table; the columns `numbers` are never folded."""
    print_table(console, list(frame.columns), frame.itertuples(index=False), numbers)


def print_table(
    console: Console,
    columns: Sequence[str],
    values: Iterable[Iterable[object]],
    numbers: Sequence[str] = (),
) -> None:
    """Rows of values below the names of their columns."""
    rows = [[_cell(value) for value in row] for row in values]
    names = [name for name in columns if name not in numbers]
    if len(rows) > MANY_ROWS:
        _print_plain(console, columns, rows, numbers)
        return
    table, needed = Table(box=box.SIMPLE_HEAD, pad_edge=False), 0
    for position, name in enumerate(columns):
        is_number = name in numbers
        width = max(map(cell_len, (name, *(row[position] for row in rows))))
        width = width if is_number else min(width, LEAST_NAME)
        needed += width + GAP
        justify: Literal["left", "right"] = "right" if is_number else "left"
        table.add_column(name, justify=justify, no_wrap=is_number, overflow="fold", min_width=width)
    for row in rows:
        table.add_row(*map(escape, row))
    if needed <= console.width:
        console.print(table)
        return
    for row in rows:
        _print_block(console, dict(zip(columns, row, strict=True)), names)


def _print_plain(
    console: Console, columns: Sequence[str], rows: list[list[str]], numbers: Sequence[str]
) -> None:
    """The table as lines of any length, for rich takes a millisecond a row."""
    table = [list(columns), *rows]
    widths = [max(map(cell_len, column)) for column in zip(*table, strict=True)]
    for row in table:
        cells = []
        for name, value, width in zip(columns, row, widths, strict=True):
            gap = " " * (width - cell_len(value))
            cells.append(gap + value if name in numbers else value + gap)
        console.file.write((" " * GAP).join(cells).rstrip() + "\n")


def _print_block(console: Console, row: dict[str, str], names: Sequence[str]) -> None:
    """A row as lines: what it is of, then its numbers."""
    title = ", ".join(f"{name} {row[name]}" for name in names if row[name])
    print_title(console, title)
    line = ""
    for name, value in row.items():
        if name in names:
            continue
        piece = f"  {name} {value}"
        if line and len(line) + len(piece) > console.width:
            console.print(escape(line), overflow="fold")
            line = ""
        line += piece
    if line:
        console.print(escape(line), overflow="fold")


def print_title(console: Console, title: str) -> None:
    """A line above others."""
    console.print(markup(title), style="bold", overflow="fold")


def print_warnings(console: Console, lines: Iterable[str]) -> None:
    """A line a warning."""
    for line in lines:
        console.print(f"warning: {markup(line)}", style="yellow", soft_wrap=True)


def _cell(value: Any) -> str:
    """Numbers without a meaningless tail."""
    if isinstance(value, float):
        return f"{value:.0f}" if abs(value) >= WHOLE_FROM else f"{value:.1f}"
    return printable(str(value))
