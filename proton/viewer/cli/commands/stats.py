"""`proton-tile stats`."""

import enum
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from proton.base.errors import ProtonError
from proton.base.text import printable
from proton.base.words import did_you_mean
from proton.viewer.cli import terminal
from proton.viewer.cli.app import File, Json, Shape, app, print_frame, warn
from proton.viewer.cli.drawing import check_found, check_times
from proton.viewer.documents import document, statistics
from proton.viewer.run import Run
from proton.viewer.tables.rates import COLUMNS as RATE_COLUMNS
from proton.viewer.tables.rates import PART, RATES, parse_peaks
from proton.viewer.tables.rows import CORRECTED, METRICS, PAYLOAD, RAW
from proton.viewer.tables.stats import (
    COLUMNS,
    GROUPS,
    OF_PIECES,
    TIMES,
    CountedKind,
    Filter,
    check_groups,
)
from proton.viewer.tables.tree import tree as as_tree
from proton.viewer.tables.units import with_units

if TYPE_CHECKING:
    import pandas as pd

T = TypeVar("T")
R = TypeVar("R")
SORTED = (*COLUMNS, *OF_PIECES, *RATE_COLUMNS)
KERNEL_SCOPE = ["kernel", "scope"]


class Metric(enum.Enum):
    """What statistics are of."""

    CORRECTED = CORRECTED
    DURATION = RAW
    CYCLES = "cycles"


# Options: what is shown, then what picks slices and groups.
By = Annotated[
    str,
    typer.Option(help=f"Group by these, separated by commas: {', '.join(GROUPS)}, payload.NAME."),
]
Time = Annotated[
    Metric, typer.Option(help="Time with (dur_ns) or without the cost of measuring, or cycles.")
]
Sort = Annotated[str, typer.Option(help=f"Largest first by this: {', '.join(SORTED)}.")]
Limit = Annotated[int, typer.Option(min=0, help="Print so many rows; 0 for all.")]
Counted = Annotated[
    CountedKind, typer.Option(help="Scopes of kernels, launches, host scopes, or what CUPTI saw.")
]
Peak = Annotated[
    str, typer.Option(help="What the device can do, for %peak: gbytes/s=4800,tflop16/s=989.")
]
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
Pieces = Annotated[
    bool, typer.Option("--pieces", help="Count each slice, where a run of a scope is several.")
]


@app.command()
def stats(
    file: File,
    by: By = "kernel,scope",
    metric: Time = Metric.CORRECTED,
    sort: Sort = "total",
    limit: Limit = 0,
    include: Include = "",
    exclude: Exclude = "",
    start: Start = None,
    end: End = None,
    threshold: Threshold = 0.0,
    tree: Tree = False,
    kind: Counted = CountedKind.SCOPE,
    peak: Peak = "",
    pieces: Pieces = False,
    format: Annotated[Shape, typer.Option(help="How to print.")] = Shape.TABLE,
    to_json: Json = False,
) -> None:
    """Count, total, self, share, mean, std, min, percentiles and max of runs of scopes, by group,
    in ns. A run of a scope may be several slices, and takes what they take together: pieces is
    their number, span the time from first to last, wait that of those that only wait.

    total is the time of a group's outermost slices, self that of all its slices without what lies
    in slices inside them: no time is counted twice. share is self's part of that of all groups, in
    percent. A kernel's variants are apart.

    Payload values bytes, flops, flops8, flops16, flops32 and flops64 give rates: gbytes/s, tflop/s,
    tflop16/s, ..., and %peak of the device's, where that is known or --peak says it. Of launches
    they are the metrics of the host scopes around them.

    [bold]Examples[/bold]

        proton-tile stats add.proton

        proton-tile stats add.proton --by scope,program --sort p99 --limit 10

        proton-tile stats add.proton --by payload.k --include matmul/load

        proton-tile stats add.proton --by scope --sort gbytes/s --peak gbytes/s=80

        proton-tile stats add.proton --by kernel --metric dur_ns --format csv > kernels.csv
    """
    format = Shape.JSON if to_json else format
    groups = _checked("--by", check_groups, by)
    peaks = _checked("--peak", parse_peaks, peak)
    _check(sort, kind, tree)
    check_times(start, end)
    where = Filter(
        include=include, exclude=exclude, start_ns=start, end_ns=end, threshold=threshold
    )
    run = Run.load(file)
    counted = partial(run.stats, metric=metric.value, kind=kind.value, where=where, rates=peaks)
    keys = [KERNEL_SCOPE, ["kernel"]] if tree else [groups]
    tables = [counted(by=each, pieces=pieces) for each in keys]
    table = as_tree(*tables) if tree else tables[0]
    shown = _sorted(table, sort, tree)
    if not len(shown):
        check_included(run, include)
    _print(run, keys[0], shown.head(limit) if limit else shown, format, metric, kind)
    warn(run)


def _print(
    run: Run,
    groups: list[str],
    table: "pd.DataFrame",
    format: Shape,
    metric: Metric,
    kind: CountedKind,
) -> None:
    """The table; for people with units, and with what its durations are."""
    match format:
        case Shape.JSON:
            found = {"run": run.name, "by": groups, **statistics(table, metric.value)}
            print(document("stats", {**found, "recording": run.recording_cost()}))
        case Shape.CSV:
            print_frame(table, format, SORTED)
        case Shape.TABLE:
            print_frame(_readable(table, metric), format, SORTED)
            if len(table):
                terminal.stdout().print(f"durations {METRICS[run.shown_metric(metric.value)]}")
            elif named := [name for name in groups if name.startswith(PAYLOAD)]:
                names = printable(", ".join(name.removeprefix(PAYLOAD) for name in named))
                terminal.print_title(terminal.stdout(), f"nothing that is shown has {names}")
            elif kind.value not in (there := list(run.frame["kind"].unique())):
                rule = f"nothing of the kind {kind.value} is on record"
                known = f": there is --kind {', '.join(there)}" if there else ""
                terminal.print_title(terminal.stdout(), rule + known)


def check_included(run: Run, include: str) -> None:
    """Raises ProtonError where --include found nothing, and says what it could have found."""
    names = [f"{k.name}/{scope.path}" for k in run.kernels for scope in k.scopes]
    check_found("--include", include, names)


def _sorted(table: "pd.DataFrame", sort: str, tree: bool) -> "pd.DataFrame":
    """Largest first; a tree as it is. A usage error where the run has no such column."""
    if sort not in table:
        raise typer.BadParameter(_without(sort), param_hint="'--sort'")
    return table if tree else table.sort_values(sort, ascending=False, kind="stable")


def _check(sort: str, kind: CountedKind, tree: bool) -> None:
    """Raises a usage error where options do not go together."""
    if sort not in SORTED:
        rule = f"must be one of {', '.join(SORTED)}{did_you_mean(sort, SORTED)}"
        raise typer.BadParameter(rule, param_hint="'--sort'")
    if tree and kind is not CountedKind.SCOPE:
        raise typer.BadParameter("is of scopes in kernels", param_hint="'--tree'")


def _checked(option: str, parse: Callable[[T], R], value: T) -> R:
    """What an option's value means; a usage error where it means nothing."""
    try:
        return parse(value)
    except ProtonError as error:
        raise typer.BadParameter(printable(str(error)), param_hint=f"'{option}'") from None


def _without(sort: str) -> str:
    """What a run lacks that has no such column."""
    if sort == PART:
        return "no rate has a known peak: --peak gbytes/s=80 says one"
    name = next(name for name, (column, _) in RATES.items() if column == sort)
    return f"no slice that is shown has {name} in its payload"


def _readable(table: "pd.DataFrame", metric: Metric) -> "pd.DataFrame":
    """Times and shares with units, rates by three digits; nothing where there is none."""
    texts = {
        name: [f"{value:.3g}" if value == value else "" for value in table[name]]
        for name in RATE_COLUMNS
        if name in table
    }
    if OF_PIECES[0] in table:
        texts[OF_PIECES[0]] = [f"{value:.3g}" for value in table[OF_PIECES[0]]]
    times = () if metric is Metric.CYCLES else TIMES
    return with_units(table.assign(**texts), (*times, *OF_PIECES[1:]))
