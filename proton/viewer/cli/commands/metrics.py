"""`proton-tile metrics`: what Triton's proton-viewer prints, with its options."""

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import typer

from proton.base.symbols import shortened
from proton.base.text import printable
from proton.viewer.cli import terminal
from proton.viewer.cli.app import Json, app, warn
from proton.viewer.cli.table import print_table
from proton.viewer.pictures.selection import matching
from proton.viewer.run import Run
from proton.viewer.tables.metrics import (
    FORMATS,
    MetricNode,
    Values,
    checked_metrics,
    diff,
    formatted,
    is_hatchet,
    known_metrics,
    of_hatchet,
    of_run,
)

DEEPEST = 100
DECIMALS = 3
Row = tuple[int, str, list[float]]  # how deep a frame lies, its name and its metrics


@dataclass(frozen=True)
class _Shown:
    """What is shown of each frame."""

    values: Values
    metrics: list[str]
    least: float  # of the first metric; 0 for all
    format: str


@app.command()
def metrics(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A .proton or a .hatchet file.")],
    metric: Annotated[
        str, typer.Option("--metrics", "-m", help="Metrics, separated by commas: time/ms,count.")
    ] = "",
    list_: Annotated[bool, typer.Option("--list", "-l", help="List the metrics.")] = False,
    include: Annotated[
        str, typer.Option("--include", "-i", help="Frames with this regex, around and inside.")
    ] = "",
    exclude: Annotated[
        str, typer.Option("--exclude", "-e", help="No frames with this regex, nor what is inside.")
    ] = "",
    threshold: Annotated[
        float,
        typer.Option("--threshold", "-t", help="Only frames whose first metric is that much."),
    ] = 0.0,
    depth: Annotated[int, typer.Option("--depth", "-d", min=1, help="So many levels.")] = DEEPEST,
    format: Annotated[
        str, typer.Option("--format", "-f", help=f"How frames are called: {', '.join(FORMATS)}.")
    ] = "full",
    print_sorted: Annotated[
        bool,
        typer.Option("--print-sorted", "--print_sorted", help="A list, the largest first, too."),
    ] = False,
    other: Annotated[
        Path | None, typer.Option("--diff-profile", "-diff", help="Less those of this file.")
    ] = None,
    to_json: Json = False,
) -> None:
    """Print a tree of scopes with metrics, as Triton's proton-viewer does; its files open, too.

    This is what runs when options of Triton's proton-viewer come without a command. Times of a
    frame include what is inside of it.

    [bold]Examples[/bold]

        proton-tile -m time/ms,count add.proton

        proton-tile -m avg_time/us -i matmul -d 3 --print-sorted torch.hatchet
    """
    if format not in FORMATS:
        raise typer.BadParameter(f"must be one of {', '.join(FORMATS)}", param_hint="'--format'")
    root = _read(file)
    if list_:
        _print_names(known_metrics(root), to_json)
        return
    if other is not None:
        root = diff(_read(other), root)
    chosen = [name.strip() for name in metric.split(",") if name.strip()]
    chosen = (
        chosen or [n for n in ("time/ms", *known_metrics(root)) if n in known_metrics(root)][:1]
    )
    chosen = checked_metrics(root, chosen)
    kept = _filtered(root, include, exclude) or MetricNode(root.name)
    shown = _Shown(Values(root), chosen, threshold, format)
    rows = [row for row in _rows(kept, shown) if row[0] < depth]
    if to_json:
        print(json.dumps([_entry(row, chosen) for row in rows]))
    else:
        _print_tree(rows, chosen, print_sorted)


def _print_names(names: Sequence[str], to_json: bool) -> None:
    shown = json.dumps(names) if to_json else "\n".join(map(printable, names))
    terminal.stdout().file.write(f"{shown}\n")


def _entry(row: Row, metrics: list[str]) -> dict[str, object]:
    level, name, values = row
    there = (None if math.isnan(value) else value for value in values)
    return {"level": level, "name": name, **dict(zip(metrics, there, strict=True))}


def _print_tree(rows: list[Row], chosen: list[str], print_sorted: bool) -> None:
    """The tree, and below it the list where that is asked for."""
    _print([(" " * 2 * level + shortened(name), values) for level, name, values in rows], chosen)
    if print_sorted:
        largest = (
            sorted(rows, key=lambda row: (math.isnan(row[2][0]), -row[2][0])) if chosen else rows
        )
        terminal.print_title(terminal.stdout(), f"sorted by {', '.join(chosen[:1])}")
        _print([(shortened(name), values) for _, name, values in largest], chosen)


def _read(file: Path) -> MetricNode:
    if is_hatchet(file):
        return of_hatchet(file)
    run = Run.load(file)
    warn(run)
    return of_run(run)


def _filtered(node: MetricNode, include: str, exclude: str) -> MetricNode | None:
    """The tree without what is excluded, and of the rest what is included, with what is around and
    inside."""
    if exclude and any(matching(exclude, [node.name])):
        return None
    is_included = any(matching(include, [node.name]))
    inside = [_filtered(inner, "" if is_included else include, exclude) for inner in node.inner]
    kept = [inner for inner in inside if inner is not None]
    return replace(node, inner=kept) if kept or is_included else None


def _rows(node: MetricNode, shown: _Shown, level: int = 0) -> list[Row]:
    """A row a frame: how deep it lies, its name and its metrics. One whose first metric is less
    than the threshold is there if one inside of it is not."""
    inner = [row for child in node.inner for row in _rows(child, shown, level + 1)]
    values = [shown.values.of(node, name) for name in shown.metrics]
    is_small = shown.least and values and not values[0] >= shown.least
    if is_small and not inner:
        return []
    return [(level, formatted(node.name, shown.format), values), *inner]


def _decimals(column: Sequence[float]) -> int:
    """Three, as Triton has; more where nothing but zeros would be left."""
    largest = max((abs(value) for value in column if not math.isnan(value)), default=0.0)
    small = 0 < largest < 1 and math.isfinite(largest)
    return DECIMALS - 1 - math.floor(math.log10(largest)) if small else DECIMALS


def _print(rows: list[tuple[str, list[float]]], metrics: list[str]) -> None:
    columns = zip(*(numbers for _, numbers in rows), strict=True)
    decimals = [_decimals(column) for column in columns]
    values = (
        [*("" if math.isnan(v) else f"{v:z.{n}f}" for v, n in zip(numbers, decimals, strict=True)),
         name]
        for name, numbers in rows
    )  # fmt: skip
    print_table(terminal.stdout(), [*metrics, "scope"], values, metrics)
