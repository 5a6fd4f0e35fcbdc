"""`proton-tile merge`."""

from pathlib import Path
from typing import Annotated

import typer

from proton.base.errors import ProtonError
from proton.trace.merge import merge as merged
from proton.viewer.cli import terminal
from proton.viewer.cli.app import app, warn
from proton.viewer.formats import format_of
from proton.viewer.run import Run
from proton.viewer.tables.summary import alignment


@app.command()
def merge(
    files: Annotated[list[Path], typer.Argument(metavar="FILES", help="Two or more runs.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="The file to write, of any format.")],
) -> None:
    """Put the runs of several processes (ranks of a job) onto one time axis, in one run.

    Processes of one boot of a machine share its clock; others are aligned by their wall clocks.
    GPUs and threads are numbered anew, and a GPU's name begins with its file's. Of several GPUs it
    says how well their times agree.

    [bold]Example[/bold]

        proton-tile merge rank0.proton rank1.proton -o job.proton
    """
    if len(files) < 2:
        raise typer.BadParameter("needs at least two files", param_hint="'FILES'")
    format_of(out)
    runs = [Run.load(file) for file in files]
    seen: dict[int, Path] = {}
    for file, run in zip(files, runs, strict=True):
        other = seen.setdefault(run.raw.origin_unix_ns, file)
        if other is not file:
            raise ProtonError(f"{other} and {file} are the same run: give each process's once")
    names = [file.stem for file in files]
    if len(set(names)) < len(names):
        names = [str(file) for file in files]
    whole = Run(merged([run.raw for run in runs], names))
    whole.save(out)
    agreement = alignment(whole)
    if agreement:
        terminal.stdout().print(terminal.markup(agreement), overflow="fold")
    warn(whole)
