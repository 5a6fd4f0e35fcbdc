"""`proton-tile history`."""

from pathlib import Path
from typing import Annotated

import typer

from proton.base.errors import ProtonError
from proton.base.words import counted, did_you_mean
from proton.viewer.cli import terminal
from proton.viewer.cli.app import Json, app
from proton.viewer.cli.gate import write
from proton.viewer.cli.table import print_table
from proton.viewer.compare.history import are_too_few
from proton.viewer.compare.history import history as trends_of
from proton.viewer.compare.history_report import COLUMNS, NUMBERS, fields, page, row, sentence
from proton.viewer.compare.samples import STATS, SUFFIX, Side, runs_in
from proton.viewer.documents import document

MOST_BARS = 24  # characters of a trend


@app.command()
def history(
    folder: Annotated[
        Path, typer.Argument(metavar="DIR", help="Runs, in folders inside of it, too.")
    ],
    stat: Annotated[str, typer.Option(help=f"Of what: {', '.join(STATS)}.")] = "p50",
    limit: Annotated[int, typer.Option(min=0, help="So many scopes; 0 for all.")] = 20,
    html: Annotated[Path | None, typer.Option(metavar="FILE", help="A page of all.")] = None,
    to_json: Json = False,
) -> None:
    """Show how the times of scopes changed over many runs, and with which commits.

    Runs say their commit (PROTON_COMMIT, else that of the program's repository), and come in
    order of time. Of runs of equal code 1 % show a change by chance.

    [bold]Examples[/bold]

        proton-tile history runs/

        proton-tile history runs/ --stat p90 --html history.html
    """
    if stat not in STATS:
        rule = f"--stat must be one of {', '.join(STATS)}"
        raise ProtonError(f"{rule}, got {stat}{did_you_mean(stat, STATS)}")
    if not folder.is_dir():
        raise ProtonError(f"{folder} is no folder: history reads the runs in one")
    files = runs_in(folder.rglob("*"))
    if not files:
        raise ProtonError(f"{folder}: no {SUFFIX} files are in it")
    side = Side.load(files)
    trends = trends_of(side, stat)
    if html is not None:
        write(html, page(trends, stat, side.processes, str(folder)).encode())
    if to_json:
        print(document("history", fields(trends, stat, side.processes)))
        return
    shown = trends[:limit] if limit else trends
    console = terminal.stdout()
    print_table(console, COLUMNS, [row(trend, stat, MOST_BARS) for trend in shown], NUMBERS)
    if len(shown) < len(trends):
        console.print(f"and {len(trends) - len(shown)} more: --limit 0")
    changes = [sentence(trend, shift, stat) for trend in trends for shift in trend.shifts]
    commits = len({process.commit for process in side.processes} - {""})
    said = counted(len(changes), "change", "changes") if changes else "no change"
    runs = counted(len(side.processes), "run", "runs")
    few = ": too few to show one" if not changes and are_too_few(trends) else ""
    title = f"{said} in {runs} of {counted(commits, 'commit', 'commits')}{few}"
    terminal.print_title(console, title)
    for line in changes:
        console.print(terminal.markup(line), soft_wrap=True)
