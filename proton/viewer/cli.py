"""`proton-viewer`: read a `.proton` file in a terminal, or turn it into something else.

Exit status: 0 fine, 1 bad usage, 2 a file that cannot be read or written.
"""

import enum
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from proton.base.errors import ProtonError
from proton.viewer.formats import Format, format_of
from proton.viewer.run import Run
from proton.viewer.stats import COLUMNS, GROUPS

if TYPE_CHECKING:
    import pandas as pd

BAD_USAGE, BAD_FILE = 1, 2
TYPER_BAD_USAGE = 2  # what typer itself exits with
SUMMARY_SCOPES = 20
SUMMARY_COLUMNS = ["kernel", "scope", "count", "total", "mean", "p99"]
PIPE_WIDTH = 240

app = typer.Typer(
    name="proton-viewer",
    help="Read what a profiled run recorded (a .proton file, from run.save('add.proton')).\n\n"
    "Start with: proton-viewer summary add.proton",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)
File = Annotated[Path, typer.Argument(metavar="FILE", help="A .proton file.")]


class Shape(enum.Enum):
    """How a table is printed."""

    TABLE = "table"
    JSON = "json"
    CSV = "csv"


class Metric(enum.Enum):
    """What statistics are of."""

    CORRECTED = "corrected_ns"
    DURATION = "dur_ns"
    CYCLES = "cycles"


class Target(enum.Enum):
    """What `export` writes."""

    PERFETTO = "perfetto"
    CHROME = "chrome"
    CSV = "csv"
    JSON = "json"


@app.command("list")
def list_(file: File) -> None:
    """List the kernels of a run, their scopes, and where each scope stands in the source.

    [bold]Example[/bold]

        proton-viewer list add.proton
    """
    run = Run.load(file)
    launched = run.launches["kernel"].value_counts()
    table = Table("kernel", "scope", "kind", "payload", "source")
    for kernel in run.kernels:
        times = int(launched.get(kernel.name, 0))
        header = f"{kernel.target}, {kernel.strategy.value}, launched {times} times"
        table.add_row(escape(kernel.name), "", "kernel", "", escape(header), style="bold")
        for scope in kernel.scopes:
            kind = "fused slice" if scope.fused else scope.kind
            payload = ", ".join(field.name for field in scope.payload)
            source = f"{scope.file}:{scope.line}" if scope.file else ""
            table.add_row("", escape(scope.path), kind, escape(payload), escape(source))
        for path in kernel.emptied:
            table.add_row("", escape(path), "emptied", "", "")
    _console().print(table)


@app.command()
def summary(file: File) -> None:
    """Say what was recorded, which scopes took the most time, and what is missing.

    Records that were lost, programs that did not finish and scopes that optimisation left
    without work are said in one line each.

    [bold]Example[/bold]

        proton-viewer summary add.proton
    """
    found = Run.load(file).summary()
    console = _console()
    facts = Table.grid(padding=(0, 2))
    for name, value in found.facts.items():
        facts.add_row(escape(name), escape(value))
    console.print(facts)
    if len(found.scopes):
        console.print(_rich(found.scopes[SUMMARY_COLUMNS].head(SUMMARY_SCOPES)))
    more = len(found.scopes) - SUMMARY_SCOPES
    if more > 0:
        console.print(f"and {more} more scopes: see proton-viewer stats")
    for line in found.warnings:
        console.print(f"warning: {escape(line)}", style="yellow", soft_wrap=True)


@app.command()
def stats(
    file: File,
    by: Annotated[
        str, typer.Option(help=f"Group by these, separated by commas: {', '.join(GROUPS)}.")
    ] = "kernel,scope",
    metric: Annotated[
        Metric, typer.Option(help="Time with (dur_ns) or without the cost of measuring, or cycles.")
    ] = Metric.CORRECTED,
    sort: Annotated[
        str, typer.Option(help=f"Largest first by this: {', '.join(COLUMNS)}.")
    ] = "total",
    limit: Annotated[int, typer.Option(min=0, help="Print so many rows; 0 for all.")] = 0,
    format: Annotated[Shape, typer.Option(help="How to print.")] = Shape.TABLE,
) -> None:
    """Count, total, mean, std, min, percentiles and max of the slices, in ns, by group.

    [bold]Examples[/bold]

        proton-viewer stats add.proton

        proton-viewer stats add.proton --by scope,program --sort p99 --limit 10

        proton-viewer stats add.proton --by kernel --metric dur_ns --format csv > kernels.csv
    """
    groups = [name.strip() for name in by.split(",")]
    if not set(groups) <= set(GROUPS) or len(set(groups)) < len(groups):
        raise typer.BadParameter(f"must be some of {', '.join(GROUPS)}", param_hint="'--by'")
    if sort not in COLUMNS:
        raise typer.BadParameter(f"must be one of {', '.join(COLUMNS)}", param_hint="'--sort'")
    table = Run.load(file).stats(groups, metric.value)
    table = table.sort_values(sort, ascending=False, kind="stable")
    _print(table.head(limit) if limit else table, format)


@app.command()
def export(
    file: File,
    out: Annotated[Path, typer.Argument(metavar="OUT", help="The file to write.")],
    format: Annotated[
        Target | None, typer.Option(help="What to write; the suffix of OUT says it otherwise.")
    ] = None,
) -> None:
    """Turn a run into a trace or into tables.

    perfetto (.pftrace, .pftrace.gz) opens in ui.perfetto.dev; chrome (.json) in older tools;
    csv has one row a slice; json has all tables of the run.

    [bold]Examples[/bold]

        proton-viewer export add.proton add.pftrace

        proton-viewer export add.proton tables.json --format json
    """
    if format is None:
        try:
            chosen = format_of(out)
        except ProtonError as error:
            raise typer.BadParameter(str(error), param_hint="'OUT'") from error
    else:
        chosen = Format(format.value)
    Run.load(file).save(out, chosen)


def main() -> None:
    """The entry point: errors become one line and an exit status."""
    try:
        app()
    except SystemExit as exit_:
        sys.exit(BAD_USAGE if exit_.code == TYPER_BAD_USAGE else exit_.code)
    except (ProtonError, OSError) as error:
        print(f"proton-viewer: {' '.join(str(error).split())}", file=sys.stderr)
        sys.exit(BAD_FILE)


def _console() -> Console:
    """Standard output; a pipe has no width that a table must be cut to."""
    return Console(highlight=False, width=None if sys.stdout.isatty() else PIPE_WIDTH)


def _print(table: "pd.DataFrame", shape: Shape) -> None:
    match shape:
        case Shape.TABLE:
            _console().print(_rich(table))
        case Shape.JSON:
            print(table.to_json(orient="records", double_precision=15))
        case Shape.CSV:
            print(table.to_csv(index=False), end="")


def _rich(table: "pd.DataFrame") -> Table:
    """Numbers to the right, times without a meaningless tail."""
    shown = Table()
    for name in table.columns:
        number = name in COLUMNS
        shown.add_column(name, justify="right" if number else "left", no_wrap=number)
    for row in table.itertuples(index=False):
        shown.add_row(*(f"{v:.1f}" if isinstance(v, float) else escape(str(v)) for v in row))
    return shown


if __name__ == "__main__":
    main()
