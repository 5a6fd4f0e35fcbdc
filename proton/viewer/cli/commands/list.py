"""`proton-tile list`."""

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from proton.base.symbols import shortened
from proton.base.words import counted
from proton.trace.model import Kernel
from proton.viewer.cli import terminal
from proton.viewer.cli.app import File, Json, Shape, app, print_frame, warn
from proton.viewer.cli.table import print_table
from proton.viewer.run import Run
from proton.viewer.tables.labels import SIGNATURE, kernel_labels

if TYPE_CHECKING:
    import pandas as pd

COLUMNS = ("scope", "kind", "payload", "source")
NO_SCOPE = ("", "", "", "")


@app.command("list")
def list_(
    file: File,
    format: Annotated[Shape, typer.Option(help="How to print.")] = Shape.TABLE,
    to_json: Json = False,
) -> None:
    """List the kernels of a run, their scopes, and where each scope stands in the source.

    [bold]Example[/bold]

        proton-tile list add.proton
    """
    format = Shape.JSON if to_json else format
    run = Run.load(file)
    if format is not Shape.TABLE:
        print_frame(_table(run), format, ())
        warn(run)
        return
    launched = Counter(launch.kernel for launch in run.raw.launches)
    console = terminal.stdout()
    labels = kernel_labels(run.kernels)
    if not labels:
        terminal.print_title(console, f"{run.name}: no kernels")
    for number, (kernel, label) in enumerate(zip(run.kernels, labels, strict=True)):
        about = [
            kernel.target,
            kernel.strategy_name,
            counted(launched[number], "launch", "launches"),
        ]
        if label != kernel.name:
            about.append(str(kernel.options.get(SIGNATURE, "")))
        terminal.print_title(console, f"{shortened(label)}: {', '.join(filter(None, about))}")
        if rows := [*_scope_rows(kernel)]:
            print_table(console, COLUMNS, rows)
    warn(run)


def _table(run: Run) -> "pd.DataFrame":
    """All of it as one table, a row a scope, and one without a scope for a kernel that has none."""
    import pandas as pd

    labels = kernel_labels(run.kernels)
    rows = [
        (label, kernel.target, *row)
        for kernel, label in zip(run.kernels, labels, strict=True)
        for row in [*_scope_rows(kernel)] or [NO_SCOPE]
    ]
    return pd.DataFrame(rows, columns=["kernel", "target", *COLUMNS])


def _scope_rows(kernel: Kernel) -> Iterator[tuple[str, str, str, str]]:
    """What `list` says of each scope."""
    for scope in kernel.scopes:
        kind = "fused slice" if scope.fused else scope.kind
        payload = ", ".join(field.name for field in scope.payload)
        source = f"{scope.file}:{scope.line}" if scope.file else ""
        yield scope.path, kind, payload, source
    for path in kernel.optimized_out:
        yield path, "optimized out", "", ""
