"""What the commands of `proton-tile` share: the application, arguments, and how tables print."""

import enum
import sys
from collections.abc import Iterable, Sequence
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from proton.base.text import printable
from proton.viewer.cli import table as text
from proton.viewer.cli import terminal
from proton.viewer.run import Run
from proton.viewer.tables.cells import as_cells

if TYPE_CHECKING:
    import pandas as pd

app = typer.Typer(
    name="proton-tile",
    help="Read what a profiled run recorded (a .proton file, from run.save('add.proton')).\n\n"
    "Start with: proton-tile summary add.proton",
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)
# What comes before a command, or in its place.
APP_OPTIONS = ("-h", "--help", "--version", "--install-completion", "--show-completion")
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
File = Annotated[
    Path, typer.Argument(metavar="FILE", help="A .proton file, or a .chrome_trace of Triton.")
]


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"proton-tile {metadata.version('proton-tile')}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", help="Say which.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    """Options of the application itself."""


class Shape(enum.Enum):
    """How a table is printed."""

    TABLE = "table"
    JSON = "json"
    CSV = "csv"


def warn(run: Run) -> None:
    """Says on standard error what the numbers lack."""
    print_warnings(run.loss_warnings())


def print_warnings(lines: Iterable[str]) -> None:
    """Lines on standard error."""
    for line in lines:
        print(f"proton-tile: warning: {printable(line)}", file=sys.stderr)


def as_json(table: "pd.DataFrame") -> str:
    """A table as a list of rows."""
    text: str = table.to_json(orient="records", double_precision=15)
    return text.replace("\x7f", "\\u007f")  # the one control character that it leaves


def print_frame(table: "pd.DataFrame", shape: Shape, numbers: Sequence[str]) -> None:
    """Prints a table; on a terminal the columns `numbers` are never folded."""
    match shape:
        case Shape.TABLE:
            text.print_frame(terminal.stdout(), table, numbers)
        case Shape.JSON:
            print(as_json(table))
        case Shape.CSV:
            print(as_cells(table).to_csv(index=False), end="")
