"""How `check` and `measure` say what they found: on a terminal, in files, and to GitHub."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from proton.base.knobs import knobs
from proton.base.text import printable
from proton.trace.files import replacing
from proton.viewer.cli import terminal
from proton.viewer.cli.table import print_table
from proton.viewer.compare import Report, Side
from proton.viewer.compare.page import ComparisonView
from proton.viewer.compare.report import (
    NUMBERS,
    finding_table,
    github_commands,
    headline,
    junit,
    report_json,
    report_markdown,
)

TITLE = "proton-tile check"
JUnit = Annotated[Path | None, typer.Option("--junit", metavar="FILE", help="JUnit's XML.")]


def _drawable(out: Path | None) -> Path | None:
    """A file that can be drawn, which is known before anything is measured."""
    if out is not None and out.suffix not in (".svg", ".html"):
        raise typer.BadParameter(f"{printable(str(out))}: the suffix must be .svg or .html")
    return out


Picture = Annotated[
    Path | None,
    typer.Option(
        callback=_drawable,
        metavar="FILE.svg|FILE.html",
        help="Both sides as a picture, or as a page with their timelines and findings.",
    ),
]


def say(
    report: Report,
    baseline: Side | None,
    candidate: Side,
    *,
    json: bool,
    junit_to: Path | None,
    picture: Path | None,
) -> None:
    """Writes the report wherever it is asked for, and prints it. The answer is the exit status,
    which is the same where nobody reads to the end."""
    if junit_to is not None:
        write(junit_to, junit(report, TITLE))
    table = finding_table(report)
    draw(
        picture,
        ComparisonView(TITLE, headline(report), table, report.changes, baseline, candidate),
    )
    if knobs.github_step_summary is not None:
        with open(knobs.github_step_summary, "a", encoding="utf-8") as file:
            file.write(report_markdown(report, TITLE))
    with terminal.to_anybody():
        _print(report, json)


def draw(out: Path | None, comparison: ComparisonView) -> None:
    """Writes both sides as a picture, or as a page, where a file is named."""
    if out is None:
        return
    found = comparison.page() if out.suffix == ".html" else comparison.picture()
    write(out, found.encode())


def _print(report: Report, json: bool) -> None:
    if json:
        print(report_json(report))
        return
    console = terminal.stdout()
    terminal.print_title(console, headline(report))
    columns, rows = finding_table(report)
    if rows:
        print_table(console, columns, rows, NUMBERS)
    if knobs.github_actions:
        for line in github_commands(report):
            print(printable(line))


def warn(*sides: Side) -> None:
    """Says on standard error what the runs of sides lack."""
    for process in (process for side in sides for process in side.processes):
        for line in process.missing:
            text = f"proton-tile: warning: {process.path}: {line}"
            print(printable(text), file=sys.stderr)


def write(path: Path, data: bytes) -> None:
    """Writes a file, whole or not at all."""
    with replacing(path) as file:
        file.write(data)
