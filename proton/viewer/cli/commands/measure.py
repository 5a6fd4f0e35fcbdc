"""`proton-tile measure`."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from proton.base.text import printable
from proton.viewer.cli.app import Json, app
from proton.viewer.cli.gate import JUnit, Picture, say
from proton.viewer.compare import Budgets, Report, Side
from proton.viewer.compare.measure import (
    BASELINE,
    CANDIDATE,
    Growing,
    MeasuredProgram,
    gather,
    sizes,
    until_sure,
    warm_up,
)

Command = Annotated[
    list[str],
    typer.Argument(
        metavar="COMMAND...",
        help="What python -m proton takes (SCRIPT ARGS, -m MODULE ARGS, options of it before "
        "them), or any command with {run} where the file of its run stands.",
    ),
]


INTERRUPTED = 130  # the exit status of a process that Ctrl-C ends


def _say(text: str) -> None:
    print(printable(f"proton-tile: {text}"), file=sys.stderr, flush=True)


@app.command(context_settings={"allow_interspersed_args": False})
def measure(
    command: Command,
    out: Annotated[Path, typer.Option("--out", "-o", help="The folder for the runs.")],
    number: Annotated[
        int, typer.Option("-n", min=1, help="Processes of each side; with --budget at first.")
    ] = 10,
    baseline_dir: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Run the baseline there, in turns with the candidate."),
    ] = None,
    baseline_python: Annotated[
        str, typer.Option(metavar="PYTHON", help="The interpreter of the baseline.")
    ] = "",
    baseline: Annotated[
        Path | None, typer.Option(metavar="BASE", help="Compare with runs measured before.")
    ] = None,
    budget: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Check, and measure more while that is inconclusive."),
    ] = None,
    most: Annotated[int, typer.Option(min=1, help="Processes of each side, with --budget.")] = 40,
    json: Json = False,
    junit: JUnit = None,
    picture: Picture = None,
) -> None:
    """Run a program in fresh processes, baseline and candidate in turns, and keep their runs.

    With a budget it is `check` at the end, with its exit status, and measures until that can tell:
    the rate of false alarms is that of all looks together. Each side runs once before, for
    nothing, so that compiled kernels are in the cache of the disk. Ctrl-C keeps whole rounds.

    [bold]Examples[/bold]

        proton-tile measure -n 10 -o runs -- bench.py --size 4096

        proton-tile measure -o runs --baseline-dir ../main --budget budgets.toml -- bench.py

        proton-tile measure -n 10 -o runs -- ./run-kernels --profile {run}
    """
    here = Path.cwd()
    programs = {CANDIDATE: MeasuredProgram(words=command, folder=here)}
    if baseline_dir or baseline_python:
        before = MeasuredProgram(
            words=command,
            folder=baseline_dir or here,
            python=baseline_python or sys.executable,
        )
        programs = {BASELINE: before, **programs}
    try:
        warm_up(programs, out)
        if budget is None:
            gather(programs, out, range(number), _say)
            return
        stored = out / BASELINE if BASELINE in programs else baseline
        looks = sizes(number, max(number, most))
        report, sides = _gate(programs, out, Budgets.load(budget), looks, stored)
    except KeyboardInterrupt:
        raise typer.Exit(INTERRUPTED) from None
    say(report, sides[1], sides[0], json=json, junit_to=junit, picture=picture)
    raise typer.Exit(report.status.value)


def _gate(
    programs: dict[str, MeasuredProgram],
    out: Path,
    budgets: Budgets,
    looks: list[int],
    stored: Path | None,
) -> tuple[Report, tuple[Side, Side | None]]:
    """Measures until the check can tell."""
    sides = Growing(out / CANDIDATE, stored, warps=budgets.warps)

    def more(rounds: range) -> None:
        gather(programs, out, rounds, _say)

    for rounds, report in until_sure(budgets, looks, more, sides):
        _say(f"{rounds} rounds: {report.status.word}")
    return report, sides()
