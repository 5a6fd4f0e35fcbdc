"""`proton-tile summary`."""

from typing import Annotated

import typer

from proton.viewer.cli import terminal
from proton.viewer.cli.app import File, Json, Shape, app, print_frame
from proton.viewer.documents import document, statistics
from proton.viewer.run import Run
from proton.viewer.tables.rows import CORRECTED, METRICS, RAW
from proton.viewer.tables.stats import COLUMNS, TIMES
from proton.viewer.tables.units import with_units

SCOPES = 20
SHOWN = ["kernel", "variant", "scope", "count", "total", "wall", "self", "share",
         "mean", "p99", "max"]  # fmt: skip


@app.command()
def summary(
    file: File,
    format: Annotated[Shape, typer.Option(help="How to print; csv: scopes.")] = Shape.TABLE,
    to_json: Json = False,
) -> None:
    """Say what was recorded, which kernels and scopes took the most time, and what is missing.

    Records that were lost, programs that did not finish and scopes that optimisation left
    without work are said in one line each.

    [bold]Example[/bold]

        proton-tile summary add.proton
    """
    format = Shape.JSON if to_json else format
    run = Run.load(file)
    found = run.summary()
    if format is Shape.JSON:
        fields = {
            "facts": found.facts,
            "hosts": statistics(found.hosts, RAW),
            "launches": statistics(found.kernels, RAW),
            "scopes": statistics(found.scopes, CORRECTED),
            "recording": run.recording_cost(),
            "warnings": found.warnings,
        }
        print(document("summary", fields))
        return
    if format is Shape.CSV:
        print_frame(found.scopes, format, COLUMNS)
        return
    console = terminal.stdout()
    terminal.print_facts(console, found.facts)
    for title, metric, table in found.tables:
        if len(table):
            # Launches lie in each other nowhere, so that their self time is the total.
            hidden = "self" if table is found.kernels else "share"
            shown = table[[n for n in SHOWN if n in table and n != hidden]].head(SCOPES)
            console.print()
            terminal.print_title(console, f"{title}, {METRICS[metric]}")
            print_frame(with_units(shown, TIMES), Shape.TABLE, (*COLUMNS, "wall"))
    more = len(found.scopes) - SCOPES
    if more > 0:
        console.print(f"and {more} more scopes: see proton-tile stats")
    terminal.print_warnings(console, found.warnings)
