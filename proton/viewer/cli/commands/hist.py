"""`proton-tile hist`."""

from typing import Annotated

import typer

from proton.viewer.cli import drawing
from proton.viewer.cli.app import File, Json, app, warn
from proton.viewer.pictures import hist as picture


@app.command()
def hist(
    file: File,
    out: drawing.Out = None,
    kernel: drawing.KernelName = "",
    launch: drawing.Launches = None,
    scope: drawing.ScopePath = "",
    sm: drawing.Sms = None,
    warp: drawing.Warps = None,
    start: drawing.From = None,
    end: drawing.To = None,
    limit: Annotated[int, typer.Option(min=0, help="So many scopes; 0 for all.")] = 5,
    width: drawing.Width = 0,
    to_json: Json = False,
) -> None:
    """Draw how the durations of each scope are spread; what took most time in all comes first.

    Durations are without the cost of measuring. With -o a picture (.html, .svg, .png).

    [bold]Examples[/bold]

        proton-tile hist add.proton --limit 2

        proton-tile hist add.proton --scope load --warp 0 -o load.svg
    """
    where = drawing.selection(kernel, launch, scope, sm, warp, start, end)
    run = drawing.load(file, where)
    found = picture.histograms(run, where, limit)
    drawing.show(
        run,
        out,
        lambda: picture.draw(found, run.name),
        lambda size: picture.draw_text(found, run.name, size),
        width,
        (lambda: [one.numbers() for one in found]) if to_json else None,
    )
    warn(run)
