"""`proton-tile source`."""

import json
import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from proton.base.errors import ProtonError
from proton.base.text import printable
from proton.base.words import did_you_mean
from proton.trace.files import replacing
from proton.viewer.cli import drawing, terminal
from proton.viewer.cli.app import File, Json, app, as_json, warn
from proton.viewer.pictures.source import LEVELS
from proton.viewer.pictures.source_page import SourcePage
from proton.viewer.run import Run
from proton.viewer.tables.labels import kernel_labels
from proton.viewer.tables.source import PLACES


@app.command()
def source(
    file: File,
    by: Annotated[str, typer.Option(help=f"Time of each line by {', '.join(PLACES)}.")] = "",
    kernel: drawing.KernelName = "",
    out: Annotated[
        Path | None, typer.Option("--out", "-o", "--html", help="Write a page (.html) instead.")
    ] = None,
    line: Annotated[
        int, typer.Option(min=0, help="Print what this line became: its code at each level.")
    ] = 0,
    level: Annotated[str, typer.Option(help=f"Of these only one: {', '.join(LEVELS)}.")] = "",
    width: Annotated[int, typer.Option(min=0, help="Columns; the terminal's.")] = 0,
    to_json: Json = False,
) -> None:
    """Show the source of kernels with the time of each line: of its own, waiting, and visits.

    A slice is of the line at which its scope begins, or of what the compiler recorded (auto=...).
    The page is the timeline with the source beside it: a click on a line goes to its slices and to
    the code that it became.

    [bold]Examples[/bold]

        proton-tile source add.proton

        proton-tile source matmul.proton --kernel matmul --by warp -o matmul.html

        proton-tile source matmul.proton --line 33 --level sass
    """
    if by and by not in PLACES:
        rule = f"--by must be one of {', '.join(PLACES)}"
        raise ProtonError(f"{rule}, got {by}{did_you_mean(by, PLACES)}")
    if level and level not in LEVELS:
        rule = f"--level must be one of {', '.join(LEVELS)}"
        raise ProtonError(f"{rule}, got {level}{did_you_mean(level, LEVELS)}")
    run = Run.load(file)
    drawing.check_found("--kernel", kernel, kernel_labels(run.raw.kernels))
    view = SourcePage(run, by, kernel=kernel)
    if out is not None:
        drawing.check_suffix(out, ".html")
        with replacing(out) as target:
            target.write(view.page().encode())
    if line:
        found = view.at(line)
        if not found:
            raise ProtonError(f"no kernel has a line {line}: proton-tile source {file} has them")
        for one in found if level else ():
            one["levels"] = {name: code for name, code in one["levels"].items() if name == level}
        print(
            json.dumps(found, indent=1)
            if to_json
            else "\n".join(_code(found, str(file), level or "code"))
        )
    elif to_json:
        print(as_json(view.table if view.parts is None else view.parts))
    elif out is None:
        console = terminal.stdout()
        for text in view.text(terminal.picture_width(width)):
            console.print(text, markup=False, highlight=False, soft_wrap=True)
    warn(run)


def _code(found: Sequence[dict[str, Any]], file: str, wanted: str) -> Iterator[str]:
    """What lines became, as text."""
    for one in found:
        yield printable(f"{one['kernel']}, {one['file']}")
        for name, lines in {"source": one["lines"], **one["levels"]}.items():
            yield from ("", name, *(f"{n:>6}  {printable(text)}" for n, text in lines))
        if not one["levels"]:
            yield from ("", f"the run has no {wanted} of it")
        yield ""
        of = f"proton-tile timeline {shlex.quote(file)}"
        yield from (printable(f"{of} {words}") for words in one["slices"])
