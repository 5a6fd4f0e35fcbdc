"""`proton-viewer summary`."""

from proton.viewer.cli import terminal
from proton.viewer.cli.app import File, app
from proton.viewer.run import Run
from proton.viewer.tables.stats import COLUMNS

SCOPES = 20
SHOWN = ["kernel", "variant", "scope", "count", "total", "self", "mean", "p99", "max"]


@app.command()
def summary(file: File) -> None:
    """Say what was recorded, which kernels and scopes took the most time, and what is missing.

    Records that were lost, programs that did not finish and scopes that optimisation left
    without work are said in one line each.

    [bold]Example[/bold]

        proton-viewer summary add.proton
    """
    found = Run.load(file).summary()
    console = terminal.stdout()
    terminal.print_facts(console, found.facts)
    if len(found.kernels):
        terminal.print_title(console, "launches")
        shown = found.kernels[[name for name in SHOWN if name in found.kernels]]
        terminal.print_frame(console, shown.head(SCOPES), COLUMNS)
    if len(found.scopes):
        terminal.print_title(console, "scopes")
        shown = found.scopes[[name for name in SHOWN if name in found.scopes]]
        terminal.print_frame(console, shown.head(SCOPES), COLUMNS)
    more = len(found.scopes) - SCOPES
    if more > 0:
        console.print(f"and {more} more scopes: see proton-viewer stats")
    terminal.print_warnings(console, found.warnings)
