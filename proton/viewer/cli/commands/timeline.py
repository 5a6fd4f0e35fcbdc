"""`proton-tile timeline`."""

from pathlib import Path
from typing import Annotated

import typer

from proton.viewer.cli import drawing, terminal
from proton.viewer.cli.app import File, Json, app, as_json, warn
from proton.viewer.pictures.timeline import Timeline
from proton.viewer.pictures.timeline_text import draw_text

Out = Annotated[
    Path | None,
    typer.Option("--out", "-o", help="Write .html (a page to move in), .svg or .png instead."),
]


@app.command()
def timeline(
    file: File,
    out: Out = None,
    kernel: drawing.KernelName = "",
    launch: drawing.Launches = None,
    scope: drawing.ScopePath = "",
    sm: drawing.Sms = None,
    warp: drawing.Warps = None,
    start: drawing.From = None,
    end: drawing.To = None,
    rows: Annotated[int, typer.Option(min=0, help="Print so many rows; 0 for all.")] = 40,
    width: drawing.Width = 0,
    to_json: Json = False,
) -> None:
    """Draw what ran where and when: on the terminal, as a picture, or as a page for a browser.

    A row is a place (host thread, thread, SM, slot, warp) and, below it, what lies inside of it. A
    page (.html) pans, zooms, searches and shows details without a network; .png needs matplotlib
    (pip install 'proton-tile\\[plot]').

    [bold]Examples[/bold]

        proton-tile timeline add.proton

        proton-tile timeline add.proton -o add.html

        proton-tile timeline add.proton --kernel add --launch 3 --sm 0 --scope load -o load.svg
    """
    where = drawing.selection(kernel, launch, scope, sm, warp, start, end)
    chosen = None if out is None else drawing.picture_format(out, "where")
    run = drawing.load(file, where)
    if out is not None and chosen is not None:
        run.save(out, chosen.name, where=where)
    if to_json:
        print(as_json(Timeline(run, where).table()))
    if out is None and not to_json:
        lines = draw_text(Timeline(run, where), terminal.picture_width(width), rows)
        terminal.print_lines(terminal.stdout(), lines)
    warn(run)
