"""A run on one screen of a terminal."""

import pandas as pd
from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from proton.viewer import Run

UNITS = (("s", 1e9), ("ms", 1e6), ("us", 1e3))
COLUMNS = ("count", "total", "mean", "p50", "p99", "corrected")


def duration(ns: float) -> str:
    """Nanoseconds in a unit that suits them."""
    for unit, size in UNITS:
        if ns >= size:
            return f"{ns / size:.3g} {unit}" if ns < 999.5 * size else f"{ns / size:.0f} {unit}"
    return f"{ns:.3g} ns"


def scopes(run: Run) -> pd.DataFrame:
    """One row a kernel and scope: durations as measured, and `corrected`, the mean less the cost
    of measuring. Kernels as they were first launched, each with its largest total first."""
    table = run.stats(metric="dur_ns")
    corrected = run.stats(metric="corrected_ns").set_index(["kernel", "scope"])["mean"]
    keys = pd.MultiIndex.from_frame(table[["kernel", "scope"]])
    table["corrected"] = corrected.reindex(keys).to_numpy()
    order = {kernel.name: number for number, kernel in enumerate(run.kernels)}
    places = table["kernel"].map(order).astype(int)
    return table.loc[places.sort_values(kind="stable").index].reset_index(drop=True)


def show(run: Run, console: Console, limit: int = 0) -> None:
    """Prints the table of scopes (the `limit` first if not 0), losses and emptied scopes."""
    rows = scopes(run)
    shown = rows.head(limit) if limit else rows
    if len(shown):
        console.print(_table(shown))
    if len(rows) > len(shown):
        console.print(f"and {len(rows) - len(shown)} more scopes: see proton-viewer stats")
    totals = run.totals
    console.print(
        f"{totals.launches} launches, {totals.programs} programs, {totals.slices} slices; "
        f"lost records: {totals.lost}; emptied scopes: {len(run.emptied)}",
        soft_wrap=True,
    )
    for line in run.summary().warnings:
        console.print(f"warning: {escape(line)}", style="yellow", soft_wrap=True)


def _table(rows: pd.DataFrame) -> Table:
    """A section a kernel, a line a scope."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
    table.add_column("kernel, scope", overflow="fold")
    for name in COLUMNS:
        table.add_column(name, justify="right", no_wrap=True)
    for kernel, part in rows.groupby("kernel", observed=True, sort=False):
        table.add_row(escape(str(kernel)), style="bold")
        for row in part.itertuples(index=False):
            times = [duration(getattr(row, name)) for name in COLUMNS[1:]]
            table.add_row(f"  {escape(row.scope)}", str(row.count), *times)
    return table
