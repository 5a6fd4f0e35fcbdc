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
from proton.viewer.compare.picture import svg
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
Picture = Annotated[Path | None, typer.Option(metavar="FILE.svg", help="Both sides as a picture.")]


def say(report: Report, *, json: bool, junit_to: Path | None, picture: Path | None) -> None:
    """Writes the report wherever it is asked for, and prints it. The answer is the exit status,
    which is the same where nobody reads to the end."""
    if junit_to is not None:
        write(junit_to, junit(report, TITLE))
    if picture is not None:
        write(picture, svg(report.changes, TITLE).encode())
    if knobs.github_step_summary is not None:
        with open(knobs.github_step_summary, "a", encoding="utf-8") as file:
            file.write(report_markdown(report, TITLE))
    with terminal.to_anybody():
        _print(report, json)


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
