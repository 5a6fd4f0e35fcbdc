"""Lines on a terminal of any width, and the standard streams as they may be."""

import contextlib
import errno
import io
import os
import shutil
import sys
from collections.abc import Iterable, Iterator, Sequence

from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from proton.base.text import printable

PICTURE_WIDTH, LEAST_PICTURE = 80, 40  # columns of a picture


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
        _drop()
        raise


def _drop() -> None:
    """Has what is written from now on go nowhere."""
    with contextlib.suppress(OSError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


@contextlib.contextmanager
def to_anybody() -> Iterator[None]:
    """What is written here may find that its reader has left."""
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError:
        _drop()


class _Console(Console):
    def on_broken_pipe(self) -> None:
        raise  # what is handled: rich would end the process with 1


def stdout() -> Console:
    """Standard output, as wide as the terminal, COLUMNS or else 80 columns."""
    return _Console(highlight=False, width=None if sys.stdout.isatty() else picture_width())


def picture_width(wanted: int = 0) -> int:
    """The columns that a picture of characters has: those that are wanted, else those of the
    terminal, 80 where none is; but 40 at least."""
    columns = wanted or shutil.get_terminal_size((PICTURE_WIDTH, 24)).columns
    return max(columns, LEAST_PICTURE)


def print_lines(console: Console, lines: Iterable[Sequence[tuple[str, str]]]) -> None:
    """Lines of pieces of text, each with the colour behind it, "" for none."""
    for line in lines:
        styles = ((text, f"black on {fill}" if fill else "") for text, fill in line)
        text = Text.assemble(*styles)
        text.rstrip()
        console.print(text, no_wrap=True, overflow="crop", crop=False)


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


def print_title(console: Console, title: str) -> None:
    """A line above others."""
    console.print(markup(title), style="bold", overflow="fold")


def print_warnings(console: Console, lines: Iterable[str]) -> None:
    """A line a warning."""
    for line in lines:
        console.print(f"warning: {markup(line)}", style="yellow", soft_wrap=True)
