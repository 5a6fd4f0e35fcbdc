"""`proton-tile analyze`."""

import json
from typing import Annotated

import typer

from proton.viewer.cli import terminal
from proton.viewer.cli.app import File, Json, Shape, app, as_json, print_frame, warn
from proton.viewer.cli.drawing import check_launches
from proton.viewer.run import Run
from proton.viewer.tables.critical import shares
from proton.viewer.tables.occupancy import occupancy
from proton.viewer.tables.rows import METRICS, RAW
from proton.viewer.tables.units import numbers, readable

PARTS = ("waits", "overlap", "imbalance", "critical path", "tail")
OF_TIMES = ("waits", "imbalance")  # whose means are of times as measured
WAITS = ("copies", "dots", "barriers")


@app.command()
def analyze(
    file: File,
    launch: Annotated[int | None, typer.Option(help="Whose critical path; the longest's.")] = None,
    program: Annotated[int | None, typer.Option(help="Likewise, the program.")] = None,
    whole: Annotated[
        bool,
        typer.Option("--whole", help="The critical path of a launch: of a place's programs."),
    ] = False,
    limit: Annotated[int, typer.Option(min=0, help="So many rows of each table; 0 for all.")] = 10,
    format: Annotated[Shape, typer.Option(help="How to print.")] = Shape.TABLE,
    to_json: Json = False,
) -> None:
    """Say what kernels wait for: waits by cause, how much of the copies products hide, who waits
    more than others, the critical path of a program, and the tails of launches.

    It needs what the compiler records with auto="copies,dots,barriers"; scopes of the source make
    the critical path finer.

    [bold]Examples[/bold]

        proton-tile analyze matmul.proton

        proton-tile analyze matmul.proton --launch 3 --program 17
    """
    format = Shape.JSON if to_json else format
    run = Run.load(file)
    check_launches(run, () if launch is None else (launch,))
    path = shares(run.critical_path(launch, program, whole=whole))
    tails = occupancy(run).sort_values("dur_ns", ascending=False, kind="stable")
    tables = dict(zip(PARTS, (run.stalls, run.overlap, run.imbalance, path, tails), strict=True))
    asked = f"launch {launch}" if launch is not None else ""
    asked += f"{', ' * bool(asked)}program {program}" if program is not None else ""
    shown = {title: table.head(limit) if limit else table for title, table in tables.items()}
    if format is Shape.JSON:
        texts = [f"{json.dumps(title)}: {as_json(table)}" for title, table in shown.items()]
        print("{" + ",\n".join(texts) + "}")
    else:
        for title, table in shown.items():
            measured = f"{title}, {METRICS[RAW]}" if title in OF_TIMES else title
            said = measured if len(table) else f"{title}: none, {_why(run, title, asked)}"
            terminal.stdout().print(said, style="bold", markup=False, highlight=False)
            if len(table):
                print_frame(readable(table), format, numbers(table))
    warn(run)


def _why(run: Run, title: str, asked: str) -> str:
    """Why a table is empty; `asked` is the launch and program whose critical path is meant."""
    if not run.raw.launches:
        return "as the run has no launches"
    words = {"waits": WAITS, "imbalance": WAITS, "overlap": ("copies", "dots")}.get(title)
    if title == "critical path" and asked and run.totals.slices:
        return f"as no slices of {asked} are on record"
    if words is None:
        return "as no kernel of it recorded scopes"
    if not any(kernel.on_gpu for kernel in run.kernels):
        return "as a program of a CPU waits for no copies and no other warps"
    there = {scope.work for kernel in run.kernels for scope in kernel.scopes}
    missing = [word for word in words if word not in there]
    if missing:
        return f'as nothing of the kind is on record: auto="{",".join(missing)}" records it'
    return f"as no launch had {' or '.join(words)}"
