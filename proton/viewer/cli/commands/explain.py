"""`proton-tile explain`."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from proton.base.errors import ProtonError
from proton.viewer.cli import terminal
from proton.viewer.cli.app import Json, app, print_warnings, warn
from proton.viewer.cli.table import folded
from proton.viewer.compare.against import against
from proton.viewer.documents import document
from proton.viewer.explain.explanation import Explanation, title, unrecorded
from proton.viewer.explain.sums import explain_sums
from proton.viewer.run import Run
from proton.viewer.tables.metrics import is_hatchet, read_hatchet

INDENT = "   "


@app.command()
def explain(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE", help="A .proton file, or a .chrome_trace or .hatchet of Triton."
        ),
    ],
    other: Annotated[
        Path | None,
        typer.Option("--against", metavar="OTHER", help="Say what differs from this run."),
    ] = None,
    limit: Annotated[int, typer.Option(min=0, help="So many findings; 0 for all.")] = 10,
    to_json: Json = False,
) -> None:
    """Say what costs time, what that rests on, and what to try.

    Findings come in order of the time at stake. What rules need and the run does not have stands
    at the end, with the option that records it. A Hatchet file of Triton's Proton has sums of
    launches: how busy they keep the chip, and which are short.

    [bold]Examples[/bold]

        proton-tile explain matmul.proton

        proton-tile explain best.proton --against second.proton
    """
    if file.is_file() and is_hatchet(file):
        if other is not None:
            raise ProtonError("--against needs runs; of Hatchet files diff says what differs")
        found = explain_sums(read_hatchet(file))
        _tell(found, file, limit, to_json, [])
        print_warnings(found.warnings)
        return
    run = Run.load(file)
    if other is not None:
        was = Run.load(other)
        lines = against(run, was)
        if to_json:
            print(document("against", {"differences": lines}))
        elif lines:
            _print([(str(line["sentence"]), []) for line in lines])
        else:
            terminal.print_title(terminal.stdout(), "nothing differs")
        warn(run)
        warn(was)
        return
    _tell(run.findings, file, limit, to_json, run.recording_cost())
    warn(run)


def _tell(
    found: Explanation, file: Path, limit: int, to_json: bool, recording: Sequence[object]
) -> None:
    if to_json:
        print(document("explain", {**found.to_json(), "recording": recording}))
    else:
        _say(found, str(file), limit)


def _say(found: Explanation, file: str, limit: int) -> None:
    said = list(found.lines(file))
    shown = said[:limit] if limit else said
    console = terminal.stdout()
    if not said:
        terminal.print_title(console, found.nothing)
    _print(shown)
    if len(shown) < len(said):
        console.print(f"and {len(said) - len(shown)} more: --limit 0")
    _below("where the time went", [title(kernel, found) for kernel in found.kernels])
    _below("not recorded", unrecorded(found))


def _print(findings: Sequence[tuple[str, Sequence[str]]]) -> None:
    """A number and a sentence, and lines below it."""
    console = terminal.stdout()
    for number, (sentence, below) in enumerate(findings, 1):
        mark = f"{number}. "
        for n, line in enumerate(folded(sentence, console.width - len(mark))):
            terminal.print_title(console, f"{mark if not n else ' ' * len(mark)}{line}")
        for text in below:
            lines = folded(text, console.width - 2 * len(INDENT))
            for n, line in enumerate(lines):
                console.print(terminal.markup(f"{INDENT * (1 + bool(n))}{line}"))


def _below(heading: str, lines: list[str]) -> None:
    if lines:
        console = terminal.stdout()
        terminal.print_title(console, f"{heading}:")
        for text in lines:
            for n, line in enumerate(folded(text, console.width - 2 * len(INDENT))):
                console.print(terminal.markup(f"{INDENT * (1 + bool(n))}{line}"))
