"""The pytest plugin: budgets for kernels, scopes and warps as markers of tests.

    @pytest.mark.proton(scope="load", p90_ns=50_000, max_regression="5%")
    def test_add(proton_run):
        add[grid](x, y, out, n, BLOCK=1024)              # warms up, unrecorded
        with proton_run() as run:
            for _ in range(50):
                add[grid](x, y, out, n, BLOCK=1024)

A test that passes is run again, by itself, in fresh processes that leave their runs in files; those
are held against the marker, and against the test's runs in the folder of `--proton-baseline`.

Pytest loads this module in every session: it imports the rest where a test asks for it. Workers of
xdist share nothing: each test has folders of its own, and rows of the table travel with reports.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import re
import secrets
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from proton.viewer.compare import Budget, Budgets, Report, Side

MARKER, PROPERTY = "proton", "proton"
SAVED_IN = pytest.StashKey[list[str]]()  # of an item: the runs that its body made
PROCESSES, MOST = 10, 20
LIMITS = ("mean", "p1", "p50", "p90", "p99", "total", "self", "min")  # p90_ns=... and so on
SHARED = ("kernel", "scope", "warp", "where")  # by limits of time and of structure
COLUMNS = ("test", "status", "what", "before", "after", "change", "interval", "why")
SIDES = ("before", "change")  # of a baseline, where a test has one
NUMBERS = (*SIDES, "after", "value", "interval")
WIDTH = 160  # where there is no terminal
HYPOTHESIS = "hypothesispytest"  # a plugin whose import is 0.6 s of a process's 1.5
LONGEST_NAME = 80  # of a folder, before the digest that tells tests apart


def pytest_addoption(parser: pytest.Parser) -> None:
    """The options of a session."""
    group = parser.getgroup("proton", "timelines of kernels")
    add = group.addoption
    add("--proton-baseline", metavar="DIR", help="compare with the runs that are there")
    add(
        "--proton-update",
        action="store_true",
        help="measure the baseline: leave the runs of each test in --proton-baseline",
    )
    for name, default, when in (
        ("processes", PROCESSES, "at first"),
        ("most", MOST, "at most, while there is no answer"),
    ):
        help_ = f"fresh processes of each test {when} ({default})"
        add(f"--proton-{name}", metavar="N", type=int, default=default, help=help_)
    add("--proton-disable", action="store_true", help="run tests once, and hold them to nothing")
    add("--proton-sample", metavar="DIR", help="leave runs there, and hold them to nothing")


def pytest_configure(config: pytest.Config) -> None:
    """Declares the marker; refuses options that make no sense."""
    config.addinivalue_line(
        "markers",
        'proton(scope=..., kernel=..., warp=..., p90_ns=..., max_regression="5%", reference=...): '
        "what a test's kernels may take; see the documentation of proton's gate",
    )
    if config.getoption("--proton-update") and not config.getoption("--proton-baseline"):
        raise pytest.UsageError("--proton-update needs --proton-baseline DIR, to write to")
    least, most = (config.getoption(f"--proton-{name}") for name in ("processes", "most"))
    if least < 1 or most < 1:
        raise pytest.UsageError("--proton-processes and --proton-most must be 1 or more")


@pytest.fixture
def proton_run(request: pytest.FixtureRequest) -> Callable[..., object]:
    """`with proton_run() as run:` records launches, as `proton.profile` does; once in a test."""
    item, config = request.node, request.config
    item.stash[SAVED_IN] = saved = list[str]()

    @contextlib.contextmanager
    def record(name: str = "", **options: Any) -> Iterator[Any]:
        import proton

        if saved:
            raise RuntimeError("proton_run records once in a test: put all launches in one block")
        saved.append("")
        with proton.profile(name or item.name, **options) as run:
            yield run
        folder = config.getoption("--proton-sample")
        if folder:
            saved[0] = str(run.save(Path(folder) / f"{secrets.token_hex(8)}.proton"))

    return record


@pytest.hookimpl(trylast=True)
def pytest_runtest_call(item: pytest.Item) -> None:
    """Comes after the test's body, where that passed: measures it, and holds it to its markers."""
    config = item.config
    markers = list(item.iter_markers(MARKER))
    if not markers or config.getoption("--proton-sample") or config.getoption("--proton-disable"):
        return
    if not item.stash.get(SAVED_IN, None):
        pytest.fail(f"{item.nodeid} has the marker proton and recorded nothing: "
                    "launch inside `with proton_run():`", pytrace=False)  # fmt: skip
    _hold(item, _budgets(item, markers))


def _budgets(item: pytest.Item, markers: Sequence[pytest.Mark]) -> Budgets:
    """The rules of the markers."""
    from proton.viewer.compare import Budgets
    from proton.viewer.compare.budget import BudgetError

    try:
        rules = [rule for marker in markers for rule in _rules(marker)]
    except BudgetError as error:
        text = f"{item.nodeid}, marker proton: {error}"
        raise pytest.fail.Exception(text, pytrace=False) from None  # said once, without its cause
    return Budgets(budgets=rules)


def _rules(marker: pytest.Mark) -> list[Budget]:
    """One rule for each statistic that has a limit; `max_regression` is of the first of them."""
    from proton.viewer.compare.budget import BudgetError, budgets_of
    from proton.viewer.compare.structure import MEASURES

    if marker.args:
        raise BudgetError(f"arguments have names, got {marker.args!r}")
    values = dict(marker.kwargs)
    limits = {stat: values.pop(f"{stat}_ns") for stat in LIMITS if f"{stat}_ns" in values}
    stats = list(limits)
    structure = {k: values.pop(k) for k in (*MEASURES, "hidden_by", "per", "role") if k in values}
    tables = [{k: v for k, v in values.items() if k in SHARED} | structure] if structure else []
    if stats and "stat" not in values:
        values["stat"] = stats[0]
    if {"max_regression", "max_ns"} & set(values) or not (stats or structure):
        tables.append(values)
    rest = {k: v for k, v in values.items() if k not in ("max_regression", "max_ns", "stat")}
    tables += [{**rest, "stat": stat, "max_ns": limit} for stat, limit in limits.items()]
    return list(budgets_of({"budget": tables}, "values").budgets)


def _hold(item: pytest.Item, budgets: Budgets) -> None:
    """Measures the test; fails it where it breaks a rule, or where that cannot be told."""
    from proton.base.errors import ProtonError

    config = item.config
    folder = config.getoption("--proton-baseline")
    stored = Path(config.invocation_params.dir, folder, _slug(_nodeid(item))) if folder else None
    try:
        if config.getoption("--proton-update"):
            assert stored is not None
            _update(item, stored)
        else:
            _judge(item, budgets, stored)
    except ProtonError as error:
        raise pytest.fail.Exception(f"{item.nodeid}: {error}", pytrace=False) from None


def _update(item: pytest.Item, stored: Path) -> None:
    """Measures the test's baseline, which takes the place of the one before as a whole."""
    stored.parent.mkdir(parents=True, exist_ok=True)
    count = item.config.getoption("--proton-processes")
    fresh = Path(tempfile.mkdtemp(prefix=f".{stored.name[:20]}-", dir=stored.parent))
    try:
        _sample(item, fresh, count)
        shutil.rmtree(stored, ignore_errors=True)
        fresh.rename(stored)
    finally:
        shutil.rmtree(fresh, ignore_errors=True)
    _add_rows(item, [["updated", f"{count} processes", *[""] * 5]])


def _judge(item: pytest.Item, budgets: Budgets, stored: Path | None) -> None:
    """Measures until there is an answer."""
    from proton.viewer.compare import Status
    from proton.viewer.compare.measure import Growing, sizes, until_sure

    budgets, left = _with_baseline(item, budgets, stored)
    if not budgets.budgets:
        _add_rows(item, left)
        return
    least, most = (item.config.getoption(f"--proton-{name}") for name in ("processes", "most"))
    least = 1 if budgets.is_exact else least
    with tempfile.TemporaryDirectory(prefix="proton-") as name:
        folder = Path(name)
        sides = Growing(folder, stored, warps=budgets.warps)
        looks = until_sure(
            budgets,
            sizes(least, max(least, most)),
            lambda rounds: _sample(item, folder, len(rounds)),
            sides,
        )
        _, report = list(looks)[-1]
        _add_rows(item, [*_rows(report), *left])
        if report.status is not Status.PASS:
            pytest.fail(_text(report, sides()), pytrace=False)


def _with_baseline(
    item: pytest.Item, budgets: Budgets, stored: Path | None
) -> tuple[Budgets, list[list[str]]]:
    """The rules that can be held, and a row for each that has no baseline to compare with."""
    from dataclasses import replace

    if not any(rule.max_regression for rule in budgets.budgets):
        return budgets, []
    if stored is not None:
        if not stored.is_dir():
            pytest.fail(f"{stored} is not there: the test has no baseline; measure one with "
                        "--proton-update", pytrace=False)  # fmt: skip
        return budgets, []
    kept, left = [], []
    for rule in budgets.budgets:
        if rule.max_regression:
            left.append(["skipped", rule.title, *[""] * 4, "no --proton-baseline"])
        if rule.max_ns is not None or rule.structure:
            kept.append(replace(rule, max_regression=None))
    return replace(budgets, budgets=kept), left


def _sample(item: pytest.Item, folder: Path, count: int) -> None:
    """Runs the test so many times, each in a process of its own."""
    from proton.base.progress import StepCounter

    before = len(list(folder.iterdir()))
    progress = StepCounter(f"{item.name}: process", count, lambda text: _say(item, text))
    for number in range(count):
        with tempfile.TemporaryDirectory(prefix="proton-", ignore_cleanup_errors=True) as own:
            done = subprocess.run(
                _command(item, folder, Path(own)),
                cwd=item.config.invocation_params.dir,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                errors="replace",
                check=False,
            )
        if done.returncode or len(list(folder.iterdir())) != before + number + 1:
            text = (
                f"the test passes here, and in a process of its own it left no run:\n{done.stdout}"
            )
            pytest.fail(text, pytrace=False)
        progress.step()


def _say(item: pytest.Item, text: str) -> None:
    """Writes over the last line of a terminal; a worker of xdist has none."""
    reporter = item.config.pluginmanager.get_plugin("terminalreporter")
    capture = item.config.pluginmanager.get_plugin("capturemanager")
    if reporter is not None and reporter.isatty:
        with capture.global_and_fixture_disabled() if capture else contextlib.nullcontext():
            reporter.rewrite(f"proton: {text} ", erase=True)


def _command(item: pytest.Item, folder: Path, own: Path) -> list[str]:
    """Pytest, for one test and its run; `own` is for what else it writes.

    The ini file's `addopts` count there, too: none of them may choose other tests (`-m`, `--lf`),
    or write where this session does (`--basetemp`).
    """
    config = item.config
    _, _, inside = _nodeid(item).partition("::")
    words = [sys.executable, "-m", "pytest", f"{item.path}::{inside}", "-q", "--no-header"]
    words += ["-p", __name__, "--proton-sample", str(folder), "-m", "", "-k", ""]
    words += ["--rootdir", str(config.rootpath), "--basetemp", str(own / "tmp")]
    words += ["-c", str(config.inipath)] if config.inipath else []
    has_cache = config.pluginmanager.hasplugin("cacheprovider")
    words += ["-o", f"cache_dir={own / 'cache'}"] if has_cache else ["-p", "no:cacheprovider"]
    given = getattr(getattr(item, "obj", None), "is_hypothesis_test", False)
    if config.pluginmanager.hasplugin(HYPOTHESIS) and not given:
        words += ["-p", f"no:{HYPOTHESIS}"]
    return words + (["-n0"] if config.pluginmanager.hasplugin("xdist") else [])


def _nodeid(item: pytest.Item) -> str:
    """What the command line calls a test; with `--dist loadgroup` xdist adds its group."""
    names = {mark.args[0] if mark.args else mark.kwargs.get("name", "default")
             for mark in item.iter_markers("xdist_group")}  # fmt: skip
    return item.nodeid.removesuffix(f"@{'_'.join(sorted(map(str, names)))}")


def _slug(nodeid: str) -> str:
    """A folder's name for a test: readable, and its own."""
    words = re.sub(r"[^A-Za-z0-9._-]+", "-", nodeid).strip("-.")
    return f"{words[-LONGEST_NAME:]}-{hashlib.sha256(nodeid.encode()).hexdigest()[:8]}"


# What is shown


def _rows(report: Report) -> list[list[str]]:
    """A row a finding, for `COLUMNS` but the first."""
    from proton.viewer.compare.report import finding_table

    return finding_table(report, COLUMNS[1:])[1]


def _text(report: Report, sides: tuple[Side, Side | None]) -> str:
    """Why a test fails: the rules, and what changed besides."""
    from proton.viewer.compare import diff
    from proton.viewer.compare.report import NUMBERS, change_table, finding_table, headline

    text = f"{headline(report)}\n\n{_table(*finding_table(report), NUMBERS)}"
    if sides[1] is not None:
        text += f"\nall scopes:\n\n{_table(*change_table(diff(sides[1], sides[0])), NUMBERS)}"
    if report.is_open:
        text += "\nMore processes would tell: --proton-most. A kernel that is measured beside, as "
        text += "reference=, makes fewer do."
    return text


def _table(
    columns: Sequence[str],
    rows: Sequence[Sequence[str]],
    numbers: Sequence[str],
    width: int = WIDTH,
) -> str:
    from io import StringIO

    from rich.console import Console

    from proton.viewer.cli.table import print_table

    out = StringIO()
    print_table(Console(file=out, width=width, highlight=False), columns, rows, numbers)
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines() if line.strip()) + "\n"


def _add_rows(item: pytest.Item, rows: Sequence[Sequence[str]]) -> None:
    """Has rows travel with the test's report, also from a worker of xdist."""
    item.user_properties.append((PROPERTY, json.dumps([[item.name, *row] for row in rows])))


class _Table:
    """Collects the rows of all reports, and prints them."""

    def __init__(self) -> None:
        self.rows: list[list[str]] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call":
            for name, value in report.user_properties:
                self.rows += json.loads(str(value)) if name == PROPERTY else []

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        if self.rows:
            terminalreporter.write_sep("-", "proton")
            kept = [n for n, column in enumerate(COLUMNS)
                    if column not in SIDES or any(row[n] for row in self.rows)]  # fmt: skip
            columns = [COLUMNS[n] for n in kept]
            if "before" not in columns:
                columns = ["value" if column == "after" else column for column in columns]
            rows = [[row[n] for n in kept] for row in self.rows]
            writer = terminalreporter.config.get_terminal_writer()
            width = writer.fullwidth if terminalreporter.isatty else WIDTH
            terminalreporter.write(_table(columns, rows, NUMBERS, width))


def pytest_sessionstart(session: pytest.Session) -> None:
    """The table belongs to the session."""
    session.config.pluginmanager.register(_Table())
