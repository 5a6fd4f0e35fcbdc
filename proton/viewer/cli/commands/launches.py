"""`proton-tile launches`."""

from typing import Annotated

import typer

from proton.base.errors import ProtonError
from proton.base.symbols import shortened
from proton.base.words import known_names
from proton.viewer.cli.app import File, Json, Shape, app, print_frame, warn
from proton.viewer.run import Run
from proton.viewer.tables.units import readable

SHOWN = ("kernel", "variant", "grid", "device", "scope", "start_ns", "dur_ns", "programs", "lost")
NUMBERS = ("start", "dur", "programs", "lost")


@app.command()
def launches(
    file: File,
    kernel: Annotated[str, typer.Option(help="Only launches of the kernel of this name.")] = "",
    limit: Annotated[int, typer.Option(min=0, help="Print so many rows; 0 for all.")] = 0,
    format: Annotated[Shape, typer.Option(help="How to print.")] = Shape.TABLE,
    to_json: Json = False,
) -> None:
    """List the launches in order: kernel, variant, grid, times, programs and losses.

    Times of a GPU are its own where its programs left them, else those of the host's call. json
    and csv have all columns, and times in ns.

    [bold]Examples[/bold]

        proton-tile launches add.proton --limit 20

        proton-tile launches add.proton --kernel add --format csv > launches.csv
    """
    format = Shape.JSON if to_json else format
    run = Run.load(file)
    table = run.launches.rename_axis("launch").reset_index()
    if kernel:
        there = [str(name) for name in table["kernel"].unique()]
        named = [name for name in there if kernel in (name, shortened(name))]
        if there and not named:
            known = known_names(kernel, map(shortened, there))
            raise ProtonError(f"no launch is of --kernel {kernel}: there is {known}")
        table = table[table["kernel"].isin(named)]
    shown = ["launch", *SHOWN] if format is Shape.TABLE else list(table.columns)
    table = table[shown].head(limit) if limit else table[shown]
    table = table.assign(grid=[str(grid) if any(grid) else "" for grid in table["grid"]])
    print_frame(readable(table) if format is Shape.TABLE else table, format, NUMBERS)
    warn(run)
