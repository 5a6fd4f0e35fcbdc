"""`proton-tile samples`."""

from typing import TYPE_CHECKING, Annotated

import typer

from proton.base.errors import ProtonError
from proton.viewer.cli import drawing, terminal
from proton.viewer.cli.app import File, Json, Shape, app, print_frame, warn
from proton.viewer.pictures.selection import matching
from proton.viewer.run import Run
from proton.viewer.tables.labels import kernel_labels
from proton.viewer.tables.pc_samples import FEWER, GROUPS

if TYPE_CHECKING:
    import pandas as pd

NUMBERS = ("offset", "samples", "share")


@app.command()
def samples(
    file: File,
    by: Annotated[
        str, typer.Option(help=f"Group by these, separated by commas: {', '.join(GROUPS)}.")
    ] = "line,reason,awaited",
    kernel: drawing.KernelName = "",
    limit: Annotated[int, typer.Option(min=0, help="Print so many rows; 0 for all.")] = 20,
    format: Annotated[Shape, typer.Option(help="How to print.")] = Shape.TABLE,
    to_json: Json = False,
) -> None:
    """List where warps were when they were sampled, and what they waited for (pc_sampling=1024).

    share is of the kernel's samples, in percent. Reasons are NVIDIA's: selected is a warp that
    issued, not_selected one that could have. awaited is the line that makes what an instruction
    waits for.

    [bold]Examples[/bold]

        proton-tile samples matmul.proton

        proton-tile samples matmul.proton --by scope,reason

        proton-tile samples matmul.proton --by instruction --format csv > instructions.csv
    """
    format = Shape.JSON if to_json else format
    run = Run.load(file)
    drawing.check_found("--kernel", kernel, kernel_labels(run.raw.kernels))
    table = run.pc_samples(by)
    if not len(table):
        sampled = [of.pc_samples for of in run.kernels if of.pc_samples is not None]
        hint = "a session with pc_sampling=1024 takes them"
        if sampled:
            hint = "launches ended before one was taken: sample more launches, or at fewer cycles"
        if any(of.overflows for of in sampled):
            hint = f"the GPU's buffer of samples was full: {FEWER}"
        raise ProtonError(f"{file} has no samples: {hint}")
    table = table[matching(kernel, [*table["kernel"]])]
    shown = table.head(limit) if limit else table
    print_frame(_readable(shown) if format is Shape.TABLE else shown, format, NUMBERS)
    if format is Shape.TABLE and len(shown) < len(table):
        terminal.stdout().print(f"and {len(table) - len(shown)} more: --limit 0")
    warn(run)


def _readable(table: "pd.DataFrame") -> "pd.DataFrame":
    """The kernel where there are several; a line as `file.py:14`."""
    found = table.assign(share=[f"{share:.1f}" for share in table["share"]])
    if len(table[["kernel", "variant"]].drop_duplicates()) < 2:
        found = found.drop(columns=["kernel", "variant"])
    if "line" in found:
        pairs = zip(found.pop("file"), found.pop("line"), strict=True)
        found.insert(0, "line", [f"{file.rpartition('/')[2]}:{line}" for file, line in pairs])
    return found
