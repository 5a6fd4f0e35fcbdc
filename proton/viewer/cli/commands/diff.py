"""`proton-viewer diff`."""

import enum
import sys
from pathlib import Path
from typing import Annotated

import typer

from proton.base.errors import ProtonError
from proton.base.text import printable
from proton.trace.files import replacing
from proton.viewer.cli import terminal
from proton.viewer.cli.app import app
from proton.viewer.compare.diff import ERROR
from proton.viewer.compare.diff import diff as compare
from proton.viewer.compare.picture import svg
from proton.viewer.compare.report import (
    CHANGE_COLUMNS,
    CHANGE_NUMBERS,
    as_json,
    change_rows,
    changes_json,
    markdown,
)
from proton.viewer.compare.samples import STATS, Side


class Shape(enum.Enum):
    """How a comparison is printed."""

    TABLE = "table"
    MARKDOWN = "markdown"
    JSON = "json"


def warn(side: Side) -> None:
    """Says on standard error what the runs of a side lack."""
    for process in side.processes:
        for line in process.missing:
            text = f"proton-viewer: warning: {process.path}: {line}"
            print(printable(text), file=sys.stderr)


def write_picture(path: Path, text: str) -> None:
    """Writes an SVG, whole or not at all."""
    with replacing(path) as file:
        file.write(text.encode())


@app.command()
def diff(
    baseline: Annotated[
        Path, typer.Argument(metavar="A", help="The baseline: a run, or a folder of runs.")
    ],
    candidate: Annotated[
        Path, typer.Argument(metavar="B", help="What is compared: a run, or a folder of runs.")
    ],
    stat: Annotated[str, typer.Option(help=f"What is compared: {', '.join(STATS)}.")] = "p50",
    warps: Annotated[bool, typer.Option("--warps", help="Each warp by itself, too.")] = False,
    reference: Annotated[
        str, typer.Option(help="KERNEL or KERNEL/SCOPE, measured beside, to divide by.")
    ] = "",
    picture: Annotated[
        Path | None, typer.Option(metavar="FILE.svg", help="Both sides as a picture.")
    ] = None,
    format: Annotated[Shape, typer.Option(help="How to print.")] = Shape.TABLE,
) -> None:
    """Compare two runs, or two folders of runs, scope by scope.

    A folder has the runs of several fresh processes (proton-viewer measure makes such). The
    interval of each ratio is that of processes; of one run a side it is that of launches, which
    says nothing of what another process would measure. All intervals hold together with 99 %.

    [bold]Examples[/bold]

        proton-viewer diff before.proton after.proton

        proton-viewer diff runs/baseline runs/candidate --stat p90 --picture diff.svg

        proton-viewer diff before.proton after.proton --format markdown
    """
    sides = [Side.load([path], warps=warps) for path in (baseline, candidate)]
    try:
        changes = compare(*sides, stat=stat, error=ERROR, reference=reference)
    except ProtonError as error:
        raise typer.BadParameter(printable(str(error))) from None
    rows = change_rows(changes)
    match format:
        case Shape.TABLE:
            console = terminal.stdout()
            terminal.print_table(console, CHANGE_COLUMNS, rows, CHANGE_NUMBERS)
        case Shape.MARKDOWN:
            print(markdown(CHANGE_COLUMNS, rows))
        case Shape.JSON:
            print(as_json(changes_json(changes)))
    if picture is not None:
        write_picture(picture, svg(changes, f"{baseline} and {candidate}"))
    for side in sides:
        warn(side)
