"""A run on one screen of a terminal."""

import numpy as np
import pandas as pd
from rich import box
from rich.console import Console
from rich.table import Table

from proton.base.units import duration
from proton.viewer import Run, stats
from proton.viewer.cli.terminal import markup, print_warnings
from proton.viewer.tables.labels import kernel_labels, variant_numbers
from proton.viewer.tables.rows import CORRECTED, RAW
from proton.viewer.tables.summary import CUPTI, TORCH

RAW_MEAN = "raw mean"
COLUMNS = ("count", "total", "mean", "p99", "max", RAW_MEAN)  # the median is in `stats`
KEYS = ["kernel", "variant", "scope"]


def scopes(run: Run) -> pd.DataFrame:
    """One row per kernel, by its label, and scope: durations less the cost of recording, and the
    mean as measured. Kernels as they were first launched, each with its largest total first."""
    table = run.stats(KEYS, CORRECTED)
    measured = run.stats(KEYS, RAW).set_index(KEYS)["mean"]
    table[RAW_MEAN] = measured.reindex(pd.MultiIndex.from_frame(table[KEYS])).to_numpy()
    table = pd.concat([table, _without_scopes(run, table)], ignore_index=True)
    numbers = variant_numbers(run.kernels)
    keys_of = [(kernel.name, number) for kernel, number in zip(run.kernels, numbers, strict=True)]
    order = {key: place for place, key in enumerate(keys_of)}
    places = [order[key] for key in zip(table["kernel"], table["variant"], strict=True)]
    labels = kernel_labels(run.kernels)
    table["kernel"] = [labels[place] for place in places]
    return table.iloc[np.argsort(places, kind="stable")].reset_index(drop=True)


def _without_scopes(run: Run, scopes: pd.DataFrame) -> pd.DataFrame:
    """A row per kernel that has launches and no slices: its launches."""
    table = stats(run.frame, KEYS[:2], RAW, kind="launch")
    known = set(zip(scopes["kernel"], scopes["variant"], strict=True))
    keys = zip(table["kernel"], table["variant"], strict=True)
    alone = np.array([key not in known for key in keys], bool)
    found = table[alone]
    return found.assign(**{"scope": "launches", RAW_MEAN: found["mean"]})


def show(run: Run, console: Console, limit: int = 0) -> None:
    """Prints the table of scopes (the `limit` first if not 0), losses and optimized-out scopes."""
    rows = scopes(run)
    shown = rows.head(limit) if limit else rows
    if len(shown):
        console.print(_table(shown))
    if len(rows) > len(shown):
        console.print(f"and {len(rows) - len(shown)} more scopes: see proton-tile stats")
    totals = run.totals
    console.print(
        f"{totals.size}; "
        f"lost records: {totals.lost}; optimized-out scopes: {len(run.optimized_out)}",
        soft_wrap=True,
    )
    summary = run.summary()
    for name in (CUPTI, TORCH):
        if name in summary.facts:
            console.print(f"{name}: {summary.facts[name]}", soft_wrap=True)
    print_warnings(console, summary.warnings)


def _table(rows: pd.DataFrame) -> Table:
    """A section a kernel, a line a scope."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
    table.add_column("kernel, scope", overflow="fold")
    for name in COLUMNS:
        table.add_column(name, justify="right", no_wrap=True)
    for kernel, part in rows.groupby("kernel", observed=True, sort=False):
        table.add_row(markup(kernel), style="bold")
        for row in part.to_dict("records"):
            times = [duration(row[name]) for name in COLUMNS[1:]]
            table.add_row(f"  {markup(row['scope'])}", str(row["count"]), *times)
    return table
