"""`proton-tile history`."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from proton.base.errors import ProtonError
from proton.base.text import printable
from proton.base.words import did_you_mean
from proton.viewer.cli import terminal
from proton.viewer.cli.app import Json, app
from proton.viewer.cli.gate import write
from proton.viewer.cli.table import print_table
from proton.viewer.compare.history import Trend
from proton.viewer.compare.history import history as trends_of
from proton.viewer.compare.history_report import (
    COLUMNS,
    NUMBERS,
    fields,
    headline,
    page,
    row,
    sentence,
)
from proton.viewer.compare.samples import STATS, Process, Side, in_order
from proton.viewer.compare.samples import SUFFIX as RUN
from proton.viewer.compare.store import SUFFIX, files_in, need_parquet, runs_of, save
from proton.viewer.documents import document

BAD = 2  # the exit status of files that cannot be read
MOST_BARS = 24  # characters of a trend


@app.command()
def history(
    runs: Annotated[
        Path,
        typer.Argument(
            metavar="DIR|FILE", help="A folder of runs, also in folders inside; a run; a store."
        ),
    ],
    store: Annotated[
        Path | None,
        typer.Option(metavar="FILE.parquet", help="Add the runs to those of FILE; show all."),
    ] = None,
    stat: Annotated[str, typer.Option(help=f"Of what: {', '.join(STATS)}.")] = "p50",
    limit: Annotated[int, typer.Option(min=0, help="So many scopes; 0 for all.")] = 20,
    html: Annotated[Path | None, typer.Option(metavar="FILE", help="A page of all.")] = None,
    to_json: Json = False,
) -> None:
    """Show how the times of scopes changed over many runs, and with which commits. Files of a
    folder that cannot be read are left out and named; the exit status is 2 then.

    Runs say their commit (PROTON_COMMIT, else that of the program's repository), and come in
    order of time. Of runs of equal code 1 % show a change by chance. A store has the statistics of
    runs, which are read once and may be deleted then; any tool for Parquet reads it
    (pip install 'proton-tile\\[parquet]').

    [bold]Examples[/bold]

        proton-tile history runs/ --stat p90 --html history.html

        proton-tile history runs/ --store history.parquet

        proton-tile sql history.parquet "select began, commit, p50 from history"
    """
    if stat not in STATS:
        rule = f"--stat must be one of {', '.join(STATS)}"
        raise ProtonError(f"{rule}, got {stat}{did_you_mean(stat, STATS)}")
    left_out: list[str] = []
    side = _side(runs, store, left_out)
    trends = trends_of(side, stat)
    if html is not None:
        write(html, page(trends, stat, side.processes, str(store or runs)).encode())
    if to_json:
        print(document("history", fields(trends, stat, side.processes)))
    else:
        _print(trends, stat, limit, side.processes)
    for error in left_out:
        print(f"proton-tile: left out: {printable(error)}", file=sys.stderr)
    if left_out:
        raise typer.Exit(BAD)


def _print(trends: list[Trend], stat: str, limit: int, runs: Sequence[Process]) -> None:
    shown = trends[:limit] if limit else trends
    console = terminal.stdout()
    print_table(console, COLUMNS, [row(trend, stat, MOST_BARS) for trend in shown], NUMBERS)
    if len(shown) < len(trends):
        console.print(f"and {len(trends) - len(shown)} more: --limit 0")
    terminal.print_title(console, headline(trends, runs))
    changes = [sentence(t, shift, stat, runs) for t in trends for shift in t.shifts]
    for line in changes:
        console.print(terminal.markup(line), soft_wrap=True)


def _side(runs: Path, store: Path | None, left_out: list[str]) -> Side:
    """The runs, and with a store those that it has; it has all of them then. Errors of files in a
    folder are added to `left_out`, as long as any can be read."""
    if store is not None and store.suffix != SUFFIX:
        raise ProtonError(f"{store}: a store of runs is a {SUFFIX} file")
    if not runs.exists():
        raise ProtonError(f"{runs}: there is no such folder or file")
    is_folder = runs.is_dir()
    files = files_in(runs) if is_folder else [runs]
    if not files:
        raise ProtonError(f"{runs}: no {RUN} files are in it")
    if store is not None:
        need_parquet()
        files += [store] if store.exists() and store not in files else []
    found = runs_of(files, left_out if is_folder else None)
    if not found and left_out:
        raise ProtonError(left_out[0])
    if store is None:
        return Side(processes=in_order(found.values()))
    side = Side(processes=in_order(found.values()))
    save(found, store)
    return side
