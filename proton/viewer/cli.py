"""`proton-viewer`: read a `.proton` file in a terminal, or turn it into something else.

Exit status: 0 fine, 1 bad usage, 2 a file that cannot be read or written.
"""

import enum
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from proton.base.errors import ProtonError
from proton.base.words import did_you_mean
from proton.trace.model import Kernel
from proton.viewer import terminal
from proton.viewer.formats import Format, format_of
from proton.viewer.labels import kernel_labels
from proton.viewer.run import SIGNATURE, Run
from proton.viewer.stats import COLUMNS, GROUPS, check_groups
from proton.viewer.text import as_cells, printable

if TYPE_CHECKING:
    import pandas as pd

BAD_USAGE, BAD_FILE = 1, 2
TYPER_BAD_USAGE = 2  # what typer itself exits with
LIST_COLUMNS = ("scope", "kind", "payload", "source")
SUMMARY_SCOPES = 20
SUMMARY_COLUMNS = ["kernel", "variant", "scope", "count", "total", "self", "mean", "p99", "max"]

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
    launched = Counter(launch.kernel for launch in run.raw.launches)
    console = terminal.stdout()
    labels = kernel_labels(run.kernels)
    for number, (kernel, label) in enumerate(zip(run.kernels, labels, strict=True)):
        about = [kernel.target, kernel.strategy.value, f"launched {launched[number]} times"]
        if label != kernel.name:
            about.append(str(kernel.options.get(SIGNATURE, "")))
        terminal.print_title(console, f"{label}: {', '.join(filter(None, about))}")
        terminal.print_table(console, LIST_COLUMNS, _scope_rows(kernel))
    _warn(run)


@app.command()
def summary(file: File) -> None:
    """Say what was recorded, which scopes took the most time, and what is missing.

    Records that were lost, programs that did not finish and scopes that optimisation left
    without work are said in one line each.

    [bold]Example[/bold]

        proton-viewer summary add.proton
    """
    found = Run.load(file).summary()
    console = terminal.stdout()
    terminal.print_facts(console, found.facts)
    if len(found.scopes):
        shown = found.scopes[[name for name in SUMMARY_COLUMNS if name in found.scopes]]
        terminal.print_frame(console, shown.head(SUMMARY_SCOPES), COLUMNS)
    more = len(found.scopes) - SUMMARY_SCOPES
    if more > 0:
        console.print(f"and {more} more scopes: see proton-viewer stats")
    terminal.print_warnings(console, found.warnings)


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
    """Count, total, self, mean, std, min, percentiles and max of the slices, in ns, by group.

    total is the time of a group's outermost slices, self that of all its slices without what lies
    in slices inside them: no time is counted twice. A kernel's variants are apart.

    [bold]Examples[/bold]

        proton-viewer stats add.proton

        proton-viewer stats add.proton --by scope,program --sort p99 --limit 10

        proton-viewer stats add.proton --by kernel --metric dur_ns --format csv > kernels.csv
    """
    try:
        groups = check_groups([name.strip() for name in by.split(",")])
    except ProtonError as error:
        raise typer.BadParameter(printable(str(error)), param_hint="'--by'") from None
    if sort not in COLUMNS:
        rule = f"must be one of {', '.join(COLUMNS)}{did_you_mean(sort, COLUMNS)}"
        raise typer.BadParameter(rule, param_hint="'--sort'")
    run = Run.load(file)
    table = run.stats(groups, metric.value).sort_values(sort, ascending=False, kind="stable")
    _print(table.head(limit) if limit else table, format)
    _warn(run)


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
    csv has one row a slice; json has all tables of the run. A pipe or a device is written to, a
    file is replaced when the new one is whole.

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
    run = Run.load(file)
    run.save(out, chosen)
    _warn(run)


def main() -> None:
    """The entry point: errors become one line and an exit status."""
    terminal.open_streams()
    try:
        try:
            app()
        finally:
            terminal.close_streams()
    except SystemExit as exit_:
        sys.exit(BAD_USAGE if exit_.code == TYPER_BAD_USAGE else exit_.code)
    except (ProtonError, OSError) as error:
        print(f"proton-viewer: {printable(' '.join(str(error).split()))}", file=sys.stderr)
        sys.exit(BAD_FILE)


def _scope_rows(kernel: Kernel) -> Iterator[tuple[str, str, str, str]]:
    """What `list` says of each scope."""
    for scope in kernel.scopes:
        kind = "fused slice" if scope.fused else scope.kind
        payload = ", ".join(field.name for field in scope.payload)
        source = f"{scope.file}:{scope.line}" if scope.file else ""
        yield scope.path, kind, payload, source
    for path in kernel.emptied:
        yield path, "emptied", "", ""


def _warn(run: Run) -> None:
    """Says on standard error what the numbers lack."""
    for line in run.loss_warnings():
        print(f"proton-viewer: warning: {printable(line)}", file=sys.stderr)


def _print(table: "pd.DataFrame", shape: Shape) -> None:
    match shape:
        case Shape.TABLE:
            terminal.print_frame(terminal.stdout(), table, COLUMNS)
        case Shape.JSON:
            text = table.to_json(orient="records", double_precision=15)
            print(text.replace("\x7f", "\\u007f"))  # the one control character that it leaves
        case Shape.CSV:
            print(as_cells(table).to_csv(index=False), end="")


if __name__ == "__main__":
    main()
