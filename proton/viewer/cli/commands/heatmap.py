"""`proton-tile heatmap`."""

from typing import Annotated

import typer

from proton.viewer.cli import drawing
from proton.viewer.cli.app import File, Json, app, warn
from proton.viewer.pictures import heatmap as picture
from proton.viewer.pictures.picture import Picture
from proton.viewer.pictures.text import Line


@app.command()
def heatmap(
    file: File,
    out: drawing.Out = None,
    by: Annotated[
        picture.By | None,
        typer.Option(help="What a row is; SMs where a GPU ran it, else programs."),
    ] = None,
    kernel: drawing.KernelName = "",
    launch: drawing.Launches = None,
    scope: drawing.ScopePath = "",
    sm: drawing.Sms = None,
    warp: drawing.Warps = None,
    start: drawing.From = None,
    end: drawing.To = None,
    width: drawing.Width = 0,
    to_json: Json = False,
) -> None:
    """Draw how many warps (programs, on the CPU) are in scopes at once, by SM or program, over
    time.

    With -o a picture (.html, .svg, .png).

    [bold]Examples[/bold]

        proton-tile heatmap add.proton

        proton-tile heatmap add.proton --by program --scope load --launch 3 -o load.svg
    """
    where = drawing.selection(kernel, launch, scope, sm, warp, start, end)
    run = drawing.load(file, where)

    def lines(size: int) -> list[Line]:
        columns = size - picture.LABEL
        return picture.draw_text(picture.heat(run, by, where, picture.TEXT_ROWS, columns), size)

    def drawn() -> Picture:
        return picture.draw(picture.heat(run, by, where, picture.ROWS, picture.COLUMNS))

    def numbers() -> object:
        return picture.heat(run, by, where, picture.ROWS, picture.COLUMNS).numbers()

    drawing.show(run, out, drawn, lines, width, numbers if to_json else None)
    warn(run)
