"""`proton-viewer stats`."""

import enum
from typing import Annotated

import typer

from proton.base.errors import ProtonError
from proton.base.text import printable
from proton.base.words import did_you_mean
from proton.viewer.cli.app import File, Shape, app, print_frame, warn
from proton.viewer.run import Run
from proton.viewer.tables.stats import COLUMNS, GROUPS, Filter, check_groups
from proton.viewer.tables.tree import tree as as_tree

KERNEL_SCOPE = ["kernel", "scope"]


class Metric(enum.Enum):
    """What statistics are of."""

    CORRECTED = "corrected_ns"
    DURATION = "dur_ns"
    CYCLES = "cycles"


# Options that pick slices and groups.
Include = Annotated[
    str, typer.Option("--include", "-i", help="Only slices with this regex in kernel/scope.")
]
Exclude = Annotated[
    str, typer.Option("--exclude", "-e", help="Only slices without this regex there.")
]
Start = Annotated[
    int | None, typer.Option(help="Only slices that begin at this time or later (start_ns).")
]
End = Annotated[int | None, typer.Option(help="Only slices that begin before.")]
Threshold = Annotated[
    float,
    typer.Option("--threshold", "-t", min=0, max=1, help="Only groups of this part of all."),
]
Tree = Annotated[
    bool, typer.Option("--tree", help="Scopes inside of each other, below their kernels.")
]


@app.command()
def stats(
    file: File,
    by: Annotated[
        str,
        typer.Option(
            help=f"Group by these, separated by commas: {', '.join(GROUPS)}, payload.NAME."
        ),
    ] = "kernel,scope",
    metric: Annotated[
        Metric, typer.Option(help="Time with (dur_ns) or without the cost of measuring, or cycles.")
    ] = Metric.CORRECTED,
    sort: Annotated[
        str, typer.Option(help=f"Largest first by this: {', '.join(COLUMNS)}.")
    ] = "total",
    limit: Annotated[int, typer.Option(min=0, help="Print so many rows; 0 for all.")] = 0,
    include: Include = "",
    exclude: Exclude = "",
    start: Start = None,
    end: End = None,
    threshold: Threshold = 0.0,
    tree: Tree = False,
    format: Annotated[Shape, typer.Option(help="How to print.")] = Shape.TABLE,
) -> None:
    """Count, total, self, share, mean, std, min, percentiles and max of slices, in ns, by group.

    total is the time of a group's outermost slices, self that of all its slices without what lies
    in slices inside them: no time is counted twice. share is self's part of that of all groups, in
    percent. A kernel's variants are apart.

    [bold]Examples[/bold]

        proton-viewer stats add.proton

        proton-viewer stats add.proton --by scope,program --sort p99 --limit 10

        proton-viewer stats add.proton --by payload.k --include matmul/load

        proton-viewer stats add.proton --tree --threshold 0.01

        proton-viewer stats add.proton --by kernel --metric dur_ns --format csv > kernels.csv
    """
    try:
        groups = check_groups([name.strip() for name in by.split(",")])
    except ProtonError as error:
        raise typer.BadParameter(printable(str(error)), param_hint="'--by'") from None
    if sort not in COLUMNS:
        rule = f"must be one of {', '.join(COLUMNS)}{did_you_mean(sort, COLUMNS)}"
        raise typer.BadParameter(rule, param_hint="'--sort'")
    where = Filter(
        include=include, exclude=exclude, start_ns=start, end_ns=end, threshold=threshold
    )
    run = Run.load(file)
    if tree:
        tables = (run.stats(keys, metric.value, where=where) for keys in (KERNEL_SCOPE, ["kernel"]))
        table = as_tree(*tables)
    else:
        table = run.stats(groups, metric.value, where=where)
        table = table.sort_values(sort, ascending=False, kind="stable")
    print_frame(table.head(limit) if limit else table, format, COLUMNS)
    warn(run)
