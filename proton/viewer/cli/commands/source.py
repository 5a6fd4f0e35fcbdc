"""`proton-tile source`."""

from pathlib import Path
from typing import Annotated

import typer

from proton.base.errors import ProtonError
from proton.base.words import did_you_mean
from proton.trace.files import replacing
from proton.viewer.cli import drawing, terminal
from proton.viewer.cli.app import File, Json, app, as_json, warn
from proton.viewer.pictures.source import SourceView
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
    In the page a line opens to its longest slices. Files are read from where they were.

    [bold]Examples[/bold]

        proton-tile source add.proton

        proton-tile source matmul.proton --kernel matmul --by warp -o matmul.html
    """
    if by and by not in PLACES:
        rule = f"--by must be one of {', '.join(PLACES)}"
        raise ProtonError(f"{rule}, got {by}{did_you_mean(by, PLACES)}")
    run = Run.load(file)
    drawing.check_found("--kernel", kernel, kernel_labels(run.raw.kernels))
    view = SourceView(run, by, kernel=kernel)
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
