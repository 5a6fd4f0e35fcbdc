"""`proton-tile diff`."""

import enum
from pathlib import Path
from typing import Annotated

import typer

from proton.base.errors import ProtonError
from proton.base.text import printable
from proton.viewer.cli import terminal
from proton.viewer.cli.app import Json, app, print_warnings
from proton.viewer.cli.gate import Picture, draw, warn
from proton.viewer.cli.table import print_table
from proton.viewer.compare.diff import ERROR
from proton.viewer.compare.diff import diff as compare
from proton.viewer.compare.page import ComparisonView
from proton.viewer.compare.report import (
    NUMBERS,
    change_table,
    changes_json,
    markdown,
)
from proton.viewer.compare.samples import LAUNCHES, STATS, Side
from proton.viewer.documents import document


class ComparisonShape(enum.Enum):
    """How a comparison is printed."""

    TABLE = "table"
    MARKDOWN = "markdown"
    JSON = "json"


OF_LAUNCHES = (
    "One run a side: the intervals are of its launches, and say nothing of other processes. "
    "proton-tile measure gathers runs of several."
)


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
    picture: Picture = None,
    format: Annotated[ComparisonShape, typer.Option(help="How to print.")] = ComparisonShape.TABLE,
    to_json: Json = False,
) -> None:
    """Compare two runs, or two folders of runs, scope by scope.

    A folder has the runs of several fresh processes (proton-tile measure makes such). The
    interval of each ratio is that of processes; of one run a side it is that of launches, which
    says nothing of what another process would measure. All intervals hold together with 99 %.

    [bold]Examples[/bold]

        proton-tile diff before.proton after.proton

        proton-tile diff runs/baseline runs/candidate --stat p90 --picture diff.html

        proton-tile diff before.proton after.proton --format markdown
    """
    format = ComparisonShape.JSON if to_json else format
    sides = [Side.load([path], warps=warps) for path in (baseline, candidate)]
    try:
        changes = compare(*sides, stat=stat, error=ERROR, reference=reference)
    except ProtonError as error:
        raise typer.BadParameter(printable(str(error))) from None
    columns, rows = change_table(changes)
    by_launches = any(change.unit == LAUNCHES for change in changes)
    match format:
        case ComparisonShape.TABLE:
            console = terminal.stdout()
            print_table(console, columns, rows, NUMBERS)
            if by_launches:
                console.print(OF_LAUNCHES)
        case ComparisonShape.MARKDOWN:
            print(markdown(columns, rows))
            if by_launches:
                print(f"\n{OF_LAUNCHES}")
        case ComparisonShape.JSON:
            print(document("diff", {"stat": stat, "changes": changes_json(changes)}))
    about = OF_LAUNCHES if by_launches else ""
    title = f"{baseline} and {candidate}"
    draw(picture, ComparisonView(title, about, (columns, rows), changes, *sides))
    warn(*sides)
    unlike = dict.fromkeys(
        f"{change.title}: {change.unlike}" for change in changes if change.unlike
    )
    print_warnings(unlike)
