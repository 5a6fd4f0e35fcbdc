"""`proton-tile source`."""

from pathlib import Path
from typing import Annotated

import typer

from proton.base.errors import ProtonError
from proton.base.words import did_you_mean
from proton.trace.files import replacing
from proton.viewer.cli import drawing, terminal
from proton.viewer.cli.app import File, Json, app, as_json, warn
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
    """
    if by and by not in PLACES:
        rule = f"--by must be one of {', '.join(PLACES)}"
        raise ProtonError(f"{rule}, got {by}{did_you_mean(by, PLACES)}")
    run = Run.load(file)
    drawing.check_found("--kernel", kernel, kernel_labels(run.raw.kernels))
    view = SourcePage(run, by, kernel=kernel)
    if out is not None:
        drawing.check_suffix(out, ".html")
        with replacing(out) as target:
            target.write(view.page().encode())
    if to_json:
        print(as_json(view.table if view.parts is None else view.parts))
    elif out is None:
        console = terminal.stdout()
        for line in view.text(terminal.picture_width(width)):
            console.print(line, markup=False, highlight=False, soft_wrap=True)
    warn(run)
