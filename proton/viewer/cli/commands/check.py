"""`proton-tile check`."""

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from proton.viewer.cli.app import Json, app
from proton.viewer.cli.gate import JUnit, Picture, say, warn
from proton.viewer.compare import Budgets, Side
from proton.viewer.compare import check as hold
from proton.viewer.compare.budget import BudgetError, budgets_of, parse

Budget = Annotated[Path | None, typer.Option(metavar="FILE", help="The budgets, in TOML.")]
Losses = Annotated[bool, typer.Option("--allow-losses", help="Runs may lack records.")]
Partial = Annotated[bool, typer.Option("--allow-partial", help="Programs may be unfinished.")]


@app.command()
def check(
    runs: Annotated[
        list[Path], typer.Argument(metavar="RUN...", help="The candidate: runs, or folders.")
    ],
    budget: Budget = None,
    hold_to: Annotated[
        list[str] | None,
        typer.Option(
            "--hold",
            metavar="LIMITS",
            help='A budget: "kernel=matmul, scope=load, max_visits=8"; may be repeated.',
        ),
    ] = None,
    baseline: Annotated[
        list[Path] | None,
        typer.Option(metavar="BASE", help="The baseline: a run or a folder; may be repeated."),
    ] = None,
    allow_losses: Losses = False,
    allow_partial: Partial = False,
    json: Json = False,
    junit: JUnit = None,
    picture: Picture = None,
) -> None:
    """Hold runs against budgets. Exit status: 0 pass, 1 regression, 2 bad usage or a file that
    cannot be read, 3 inconclusive: more processes would tell.

    With a budget of 5 %, code that did not change fails in 1 % of checks at most (false_alarms in
    the file), and code that is 10 % slower passes in as many. Runs that lost records or did not
    finish fail. In a job of GitHub there are annotations and a summary of the step.

    [bold]Examples[/bold]

        proton-tile check runs/candidate --baseline runs/baseline --budget budgets.toml

        proton-tile check add.proton --hold "scope=load, max_visits=64" --hold max_spills=0

        proton-tile check runs/candidate --budget budgets.toml --junit gate.xml --picture gate.svg
    """
    given = [parse(text) for text in hold_to or ()]
    if budget is None and not given:
        raise BudgetError("there is nothing to hold runs to: give --budget FILE or --hold LIMITS")
    more = budgets_of({"budget": given}, "--hold").budgets if given else ()
    budgets = Budgets.load(budget) if budget is not None else Budgets(budgets=())
    budgets = replace(budgets, budgets=(*budgets.budgets, *more))
    budgets = replace(
        budgets,
        allow_losses=budgets.allow_losses or allow_losses,
        allow_partial=budgets.allow_partial or allow_partial,
    )
    warps = budgets.warps
    before = Side.load(baseline, warps=warps) if baseline else None
    candidate = Side.load(runs, warps=warps)
    report = hold(candidate, before, budgets)
    say(report, before, candidate, json=json, junit_to=junit, picture=picture)
    warn(candidate, *([before] if before else []))
    raise typer.Exit(report.status.value)
