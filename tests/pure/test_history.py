"""Trends over stored runs: changes are found where they are, and seldom where none is."""

import json
import subprocess
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from sides import folder, raw_run
from test_cli import call
from test_documents import SCHEMAS, faults

from proton.base.knobs import knobs
from proton.runtime.session.described import _commit, machine_facts
from proton.trace.model import RawRun
from proton.viewer.compare.history import ERROR, _cuts
from proton.viewer.compare.history_report import bars

ADD, COPY = ("add", "x: *fp32"), ("copy", "")


def test_series_without_a_change_are_seldom_cut() -> None:
    draws, error, count = np.random.default_rng(1), 0.05, 400
    cut = 0
    for _ in range(count):
        n = int(draws.integers(4, 40))
        values = np.exp(draws.standard_t(3, n) * 0.05)
        cut += bool(_cuts(values, np.arange(1, n), error))
    assert cut / count <= error + 3 * np.sqrt(error * (1 - error) / count)


def test_a_change_of_ten_percent_is_found_at_its_run() -> None:
    draws, exact, count = np.random.default_rng(2), 0, 40
    for _ in range(count):
        before, middle, behind = draws.integers(12, 25, 3).tolist()
        levels = np.repeat([100.0, 110.0, 99.0], [before, middle, behind])
        values = levels * np.exp(draws.normal(0, 0.01, levels.size))
        cuts = _cuts(values, np.arange(1, values.size), ERROR)
        assert {before, before + middle} <= set(cuts)
        exact += len(cuts) == 2
    assert exact >= 0.9 * count  # each part may be cut by chance
    assert _cuts(np.full(30, 7.0), np.arange(1, 30), ERROR) == []
    assert _cuts(np.arange(7.0), np.arange(1, 7), 1.0) == []  # too few for two parts


def stored(path: Path, changed: int = 14, runs: int = 24) -> Path:
    """Runs of eight commits, three of each; from one run on `load` is slower and a constant is
    another. In the folder of the last commit `new` begins."""
    draws = np.random.default_rng(3)
    made: list[RawRun] = []
    for number in range(runs):
        ns = 1000 if number < changed else 1250
        add = ADD if number < changed else ("add", "x: *fp32, BLOCK=7")
        scopes = {"load": [round(ns * draws.normal(1, 0.01)), ns], "store": [400 + number % 3]}
        kernels = {add: scopes, COPY: {"all": [900]}}
        new = {("new", ""): {"x": [5]}} if number >= runs - 3 else {}
        raw = raw_run({**kernels, **new}, number)
        raw.machine["commit"] = f"{number // 3:x}" * 40
        made.append(raw)
    folder(path / "a", made[: runs // 2])
    folder(path / "b", made[runs // 2 :])
    return path


def test_the_command_names_the_commit(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    runs = stored(tmp_path / "runs", changed=15)
    page = tmp_path / "page.html"
    status, out, _ = call(monkeypatch, capsys, "history", runs, "--json", "--html", page)
    assert status == 0
    document = json.loads(out)
    assert not list(faults(document, SCHEMAS))
    assert [len(document["runs"]), document["stat"]] == [24, "p50"]
    trends = {trend["title"]: trend for trend in document["trends"]}
    (change,) = trends["add/load"]["changes"]
    assert (change["run"], change["commit"]) == (15, "5" * 40)
    assert change["after"] / change["before"] == pytest.approx(1.25, rel=0.02)
    assert [trends[name]["changes"] for name in ("add/store", "copy/all", "new/x")] == [[]] * 3
    assert trends["new/x"]["values"][:21] == [None] * 21
    assert document["trends"][0]["changes"]  # what changed comes first
    text = page.read_text()
    plots = [ElementTree.fromstring(f"<svg{part.partition('</svg>')[0]}</svg>")
             for part in text.split("<svg")[1:]]  # fmt: skip
    assert [len(plot.findall("circle")) for plot in plots] == [
        sum(value is not None for value in trend["values"]) for trend in document["trends"]
    ]
    status, out, _ = call(monkeypatch, capsys, "history", runs)
    assert "in 24 runs of 8 commits" in out
    assert "add/load: 998 ns -> 1.25 us (+25.3 %)" in out
    assert "since 555555555555, " in out


def test_runs_of_one_commit_are_not_cut_apart(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """The change is in the mid of a commit: it is said of the next one, or of that one."""
    runs = stored(tmp_path / "runs", changed=13)
    document = json.loads(call(monkeypatch, capsys, "history", runs, "--json")[1])
    shifts = [c["run"] for trend in document["trends"] for c in trend["changes"]]
    assert shifts
    assert all(at % 3 == 0 for at in shifts)


def test_what_is_no_history_is_an_error(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert "no .proton files" in call(monkeypatch, capsys, "history", tmp_path)[2]
    assert "is no folder" in call(monkeypatch, capsys, "history", tmp_path / "none")[2]
    folder(tmp_path / "runs", [raw_run({ADD: {"load": [5]}})])
    assert "got p5" in call(monkeypatch, capsys, "history", tmp_path, "--stat", "p5")[2]
    status, out, _ = call(monkeypatch, capsys, "history", tmp_path)
    assert status == 0
    assert "no change in 1 run of 0 commits: too few to show one" in out


def test_bars_have_a_place_for_what_is_missing() -> None:
    assert bars(np.array([np.nan, 1.0, 2.0, 8.0]), 9) == " ▁▂█"
    assert bars(np.full(100, 3.0), 5) == "▁" * 5


def test_a_run_says_its_commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As git does: on a branch, packed, detached, in a worktree, and where there is none."""

    def git(*words: str, at: Path = tmp_path) -> str:
        who = ("-c", "user.name=a", "-c", "user.email=a@b")
        done = subprocess.run(["git", *who, *words], cwd=at, check=True, capture_output=True)
        return done.stdout.decode().strip()

    main: Any = type("Main", (), {"__file__": str(tmp_path / "inner" / "script.py")})
    monkeypatch.setitem(__import__("sys").modules, "__main__", main)
    monkeypatch.chdir(tmp_path)
    git("init", "-q", "-b", "topic/one")
    assert _commit() == ""  # no commit yet
    git("commit", "-q", "--allow-empty", "-m", "one")
    first = git("rev-parse", "HEAD")
    assert _commit() == first
    git("pack-refs", "--all")
    assert _commit() == first
    git("worktree", "add", "-q", "-b", "other", str(tmp_path / "tree"))
    git("commit", "-q", "--allow-empty", "-m", "two", at=tmp_path / "tree")
    assert _commit() == first
    main.__file__ = str(tmp_path / "tree" / "script.py")
    assert _commit() == git("rev-parse", "HEAD", at=tmp_path / "tree") != first
    git("checkout", "-q", "--detach", first, at=tmp_path / "tree")
    assert _commit() == machine_facts()["commit"] == first
    with knobs.scope(commit="abc"):
        assert machine_facts()["commit"] == "abc"
