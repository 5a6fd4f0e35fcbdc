"""`proton-tile source`."""

from pathlib import Path
from typing import Annotated

import typer

from proton.base.errors import ProtonError
from proton.base.words import did_you_mean
from proton.trace.files import replacing
from proton.viewer.cli import terminal
from proton.viewer.cli.app import File, Json, app, as_json, warn
from proton.viewer.pictures.source import SourceView
from proton.viewer.run import Run
from proton.viewer.tables.source import PLACES


@app.command()
def source(
    file: File,
    by: Annotated[str, typer.Option(help=f"Time of each line by {', '.join(PLACES)}.")] = "",
    html: Annotated[Path | None, typer.Option(metavar="FILE", help="A page of it.")] = None,
    width: Annotated[int, typer.Option(min=0, help="Columns; the terminal's.")] = 0,
    to_json: Json = False,
) -> None:
    """Show the source of kernels with the time of each line: of its own, waiting, and visits.

    A slice is of the line at which its scope begins, or of what the compiler recorded (auto=...).
    In the page a line opens to its longest slices. Files are read from where they were.

    [bold]Examples[/bold]

        proton-tile source add.proton

        proton-tile source matmul.proton --by warp --html matmul.html
    """
    if by and by not in PLACES:
        rule = f"--by must be one of {', '.join(PLACES)}"
        raise ProtonError(f"{rule}, got {by}{did_you_mean(by, PLACES)}")
    run = Run.load(file)
    view = SourceView(run, by)
    if html is not None:
        with replacing(html) as target:
            target.write(view.page().encode())
    if to_json:
        print(as_json(view.table if view.parts is None else view.parts))
    elif html is None:
        console = terminal.stdout()
        for line in view.text(terminal.picture_width(width)):
            console.print(line, markup=False, highlight=False, soft_wrap=True)
    warn(run)
