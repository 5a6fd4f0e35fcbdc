"""`proton-tile export`."""

from pathlib import Path
from typing import Annotated

import typer

from proton.base.errors import ProtonError
from proton.base.text import printable
from proton.viewer.cli.app import File, app, warn
from proton.viewer.formats import format_named, format_of, formats
from proton.viewer.run import Run


@app.command()
def export(
    file: File,
    out: Annotated[Path, typer.Argument(metavar="OUT", help="The file to write.")],
    format: Annotated[
        str | None,
        typer.Option(
            help=f"What to write, {', '.join(formats())}; the suffix of OUT says it otherwise."
        ),
    ] = None,
    counters: Annotated[
        bool, typer.Option("--counters", help="perfetto: payload values as counters, too.")
    ] = False,
    beside: Annotated[
        Path | None,
        typer.Option(help="chrome: a trace of torch.profiler, which takes the run in."),
    ] = None,
) -> None:
    """Turn a run into a trace or into tables.

    perfetto (.pftrace, .pftrace.gz) opens in ui.perfetto.dev; chrome (.json) in older tools;
    csv has one row a slice; json has all tables of the run. A pipe or a device is written to, a
    file is replaced when the new one is whole.

    [bold]Examples[/bold]

        proton-tile export add.proton add.pftrace

        proton-tile export add.proton tables.json --format json

        proton-tile export train.proton both.json --beside torch_trace.json
    """
    try:
        chosen = format_of(out) if format is None else format_named(format)
    except ProtonError as error:
        option = "'OUT'" if format is None else "'--format'"
        raise typer.BadParameter(printable(str(error)), param_hint=option) from None
    run = Run.load(file)
    asked = ({"counters": True} if counters else {}) | ({"beside": beside} if beside else {})
    run.save(out, chosen.name, **asked)
    warn(run)
