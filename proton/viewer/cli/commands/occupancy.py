"""`proton-tile occupancy`."""

from typing import Annotated

import typer

from proton.viewer.cli import drawing, terminal
from proton.viewer.cli.app import File, Json, Shape, app, print_frame, warn
from proton.viewer.pictures import heatmap as picture
from proton.viewer.pictures.picture import Picture
from proton.viewer.pictures.resident import resident
from proton.viewer.pictures.text import Line
from proton.viewer.run import Run
from proton.viewer.tables.occupancy import occupancy as table_of
from proton.viewer.tables.units import numbers, readable


@app.command()
def occupancy(
    file: File,
    out: drawing.Out = None,
    launch: drawing.Launches = None,
    limit: Annotated[int, typer.Option(min=0, help="So many launches; 0 for all.")] = 20,
    width: drawing.Width = 0,
    format: Annotated[Shape, typer.Option(help="How to print.")] = Shape.TABLE,
    to_json: Json = False,
) -> None:
    """Say how well launches fill their SMs (threads, on the CPU), and draw their resident programs.

    most and mean: programs of an SM at once. waves: programs over places times most. tail: the part
    of the launch, in percent, after the first place has run dry. imbalance: the busiest place over
    the mean. The longest launches come first, and the first of them is drawn, unless others are
    named. With -o a picture (.html, .svg, .png).

    [bold]Examples[/bold]

        proton-tile occupancy add.proton

        proton-tile occupancy add.proton --launch 3 -o resident.svg
    """
    format = Shape.JSON if to_json else format
    run = Run.load(file)
    drawing.check_launches(run, launch or ())
    table = table_of(run).sort_values("dur_ns", ascending=False, kind="stable")
    table = table[table["launch"].isin(launch)] if launch else table
    if out is None or format is not Shape.TABLE:
        shown = table.head(limit) if limit else table
        print_frame(readable(shown) if format is Shape.TABLE else shown, format, numbers(shown))

    def lines(size: int) -> list[Line]:
        found = resident(run, launch or (), picture.TEXT_ROWS, size - picture.LABEL)
        return picture.draw_text(found, size)

    def drawn() -> Picture:
        return picture.draw(resident(run, launch or (), picture.ROWS, picture.COLUMNS))

    if out is not None:
        drawing.show(run, out, drawn, lines, width)
    elif format is Shape.TABLE:
        terminal.print_lines(terminal.stdout(), lines(terminal.picture_width(width)))
    warn(run)
