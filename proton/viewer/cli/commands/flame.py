"""`proton-tile flame`."""

from proton.viewer.cli import drawing
from proton.viewer.cli.app import File, Json, app, warn
from proton.viewer.cli.commands.stats import End, Exclude, Include, Start, check_included
from proton.viewer.pictures import flame as picture
from proton.viewer.run import Run
from proton.viewer.tables.stats import Filter


@app.command()
def flame(
    file: File,
    out: drawing.Out = None,
    include: Include = "",
    exclude: Exclude = "",
    start: Start = None,
    end: End = None,
    width: drawing.Width = 0,
    to_json: Json = False,
) -> None:
    """Draw how wall time is divided: over host scopes, the kernels that they launch, and the scopes
    of those.

    A scope of a kernel has the part of its launches' time that it is of its units' time. Shares are
    of the time from the first begin to the last end; a GPU works beside the host. With -o a flame
    graph (.html, .svg, .png).

    [bold]Examples[/bold]

        proton-tile flame add.proton

        proton-tile flame add.proton --include matmul/ -o matmul.svg
    """
    drawing.check_times(start, end)
    where = Filter(include=include, exclude=exclude, start_ns=start, end_ns=end)
    run = Run.load(file)
    root = picture.flame(run, where)
    if not root.inner:
        check_included(run, include)
    drawing.show(
        run,
        out,
        lambda: picture.draw(root),
        lambda size: picture.draw_text(root, size),
        width,
        root.numbers if to_json else None,
    )
    warn(run)
