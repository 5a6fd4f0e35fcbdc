"""Trends over stored runs: changes are found where they are, and seldom where none is."""

import importlib.util
import json
import shutil
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
from proton.viewer import Run
from proton.viewer.compare.history import ERROR, _cuts, history
from proton.viewer.compare.history_report import bars
from proton.viewer.compare.samples import Group, Process, Side, Variant
from proton.viewer.compare.store import NOTE

ADD, COPY = ("add", "x: *fp32"), ("copy", "")


def test_series_without_a_change_are_seldom_cut() -> None:
    draws, error, count = np.random.default_rng(1), 0.05, 400
    cut = 0
    for _ in range(count):
        n = int(draws.integers(4, 40))
        values = np.exp(draws.standard_t(3, n) * 0.05)
        cut += bool(_cuts(values, error))
    assert cut / count <= error + 3 * np.sqrt(error * (1 - error) / count)


def test_long_series_without_a_change_are_seldom_cut() -> None:
    draws, count = np.random.default_rng(4), 30
    series = np.exp(draws.normal(0, 0.03, (count, 300)))
    assert sum(bool(_cuts(values, 0.05)) for values in series) <= 0.15 * count
    series[:, 170:] *= 1.04
    found = [_cuts(values, ERROR) for values in series]
    assert all(any(abs(cut - 170) <= 20 for cut in cuts) for cuts in found)


def test_runs_that_were_measured_together_are_one_value() -> None:
    """Jobs of CI are on other machines, whose speeds differ by more than the runs of one job."""
    draws, count, each = np.random.default_rng(6), 60, 5
    wrong = 0
    for _ in range(count):
        jobs = int(draws.integers(10, 30))
        speeds = np.repeat(np.exp(draws.normal(0, 0.05, jobs)), each)
        times = (1e4 * speeds * np.exp(draws.normal(0, 0.01, jobs * each))).tolist()
        group = Group(Variant("add", ""), "load")
        processes = [
            Process(path=f"{n}", began_unix_ns=n, machine={}, missing=(), lost=False, partial=False,
                    targets={}, rows={group: {"p50": ns, "self": ns}}, batches={},
                    commit=str(n // each))
            for n, ns in enumerate(times)
        ]  # fmt: skip
        (trend,) = history(Side(processes=processes), "p50")
        assert trend.measurements == jobs
        wrong += bool(trend.shifts)
    assert wrong <= 0.05 * count


def test_a_change_of_ten_percent_is_found_at_its_run() -> None:
    draws, exact, count = np.random.default_rng(2), 0, 40
    for _ in range(count):
        before, middle, behind = draws.integers(12, 25, 3).tolist()
        levels = np.repeat([100.0, 110.0, 99.0], [before, middle, behind])
        values = levels * np.exp(draws.normal(0, 0.01, levels.size))
        cuts = _cuts(values, ERROR)
        assert {before, before + middle} <= set(cuts)
        exact += len(cuts) == 2
    assert exact >= 0.9 * count  # each part may be cut by chance
    assert _cuts(np.full(30, 7.0), ERROR) == []
    assert _cuts(np.arange(7.0), 1.0) == []  # too few for two parts


def stored(path: Path, changed: int = 29, runs: int = 48) -> Path:
    """Runs of 24 commits, two of each; from one run on `load` is slower and a constant is another.
    In the last commit `new` begins."""
    draws = np.random.default_rng(3)
    made: list[RawRun] = []
    for number in range(runs):
        ns = 1000 if number < changed else 1250
        add = ADD if number < changed else ("add", "x: *fp32, BLOCK=7")
        scopes = {"load": [round(ns * draws.normal(1, 0.01)), ns], "store": [400 + number % 3]}
        kernels = {add: scopes, COPY: {"all": [900]}}
        new = {("new", ""): {"x": [5]}} if number >= runs - 2 else {}
        raw = raw_run({**kernels, **new}, number)
        raw.machine["commit"] = f"{number // 2:02x}" * 20
        made.append(raw)
    folder(path / "a", made[: runs // 2])
    folder(path / "b", made[runs // 2 :])
    return path


def test_the_command_names_the_commit(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    runs = stored(tmp_path / "runs", changed=30)
    page = tmp_path / "page.html"
    status, out, _ = call(monkeypatch, capsys, "history", runs, "--json", "--html", page)
    assert status == 0
    document = json.loads(out)
    assert not list(faults(document, SCHEMAS))
    assert [len(document["runs"]), document["stat"]] == [48, "p50"]
    trends = {trend["title"]: trend for trend in document["trends"]}
    (change,) = trends["add/load"]["changes"]
    assert (change["run"], change["commit"]) == (30, "0f" * 20)
    assert change["after"] / change["before"] == pytest.approx(1.25, rel=0.02)
    assert [trends[name]["changes"] for name in ("add/store", "copy/all", "new/x")] == [[]] * 3
    assert trends["new/x"]["values"][:46] == [None] * 46
    assert document["trends"][0]["changes"]  # what changed comes first
    text = page.read_text()
    plots = [ElementTree.fromstring(f"<svg{part.partition('</svg>')[0]}</svg>")
             for part in text.split("<svg")[1:]]  # fmt: skip
    assert "1 change in 48 runs of 24 commits" in text
    assert [len(plot.findall("circle")) for plot in plots] == [
        sum(value is not None for value in trend["values"]) for trend in document["trends"]
    ]
    status, out, _ = call(monkeypatch, capsys, "history", runs)
    assert "in 48 runs of 24 commits" in out
    assert "add/load: 999 ns -> 1.25 us (+25.2 %)" in out
    assert "since 0f0f0f0f0f0f, " in out
    assert "; 0e0e0e0e0e0e was as before" in out


def test_a_store_has_what_the_runs_have(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Runs are added in any order and read once; copies are the same run; they may be gone."""
    pytest.importorskip("pyarrow")
    runs, store = stored(tmp_path / "runs"), tmp_path / "history.parquet"
    Run(raw_run({}, 99)).save(runs / "b" / "empty.proton")
    opened: list[Path] = []
    load = Run.load
    monkeypatch.setattr(Run, "load", lambda path: opened.append(path) or load(path))

    def shown(*words: object) -> dict[str, Any]:
        opened.clear()
        status, out, err = call(monkeypatch, capsys, "history", *words, "--json")
        assert status == 0, err
        document: dict[str, Any] = json.loads(out)
        assert not list(faults(document, SCHEMAS))
        return document

    wanted = shown(runs, "--stat", "p90")
    assert wanted["trends"][0]["changes"]
    assert len(shown(runs / "b", "--store", store)["runs"]) == len(opened) == 25
    shutil.copy(runs / "b" / "0003.proton", runs / "a" / "copy.proton")
    shown(runs, "--store", store)
    assert len(opened) == 24
    shutil.rmtree(runs / "b")
    (runs / "a" / "copy.proton").unlink()
    assert shown(store, "--stat", "p90") == shown(runs, "--store", store, "--stat", "p90")
    assert shown(store, "--stat", "p90") == wanted
    assert not opened

    # Of several stores in a folder a run that is in both counts once; no other Parquet file counts.
    more = tmp_path / "stores"
    more.mkdir()
    store.rename(more / store.name)
    shown(runs / "a" / "0002.proton", "--store", more / "other.parquet")
    load(runs / "a" / "0002.proton").save(more / "slices.parquet")
    assert shown(more, "--stat", "p90") == wanted
    assert not opened


def test_a_store_is_for_sql(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    pytest.importorskip("pyarrow")
    pytest.importorskip("duckdb")
    runs, store = stored(tmp_path / "runs"), tmp_path / "history.parquet"
    tree = [{"frame": {"name": "ROOT"}, "metrics": {}, "children": [
        {"frame": {"name": "copy"}, "metrics": {"time (ns)": 2e6, "count": 4}, "children": []}
    ]}, {}]  # fmt: skip
    (runs / "a.hatchet").write_text(json.dumps(tree))
    words = ("history", runs, "--store", store, "--json", "--stat")
    document = json.loads(call(monkeypatch, capsys, *words, "mean")[1])
    (load,) = (trend for trend in document["trends"] if trend["title"] == "add/load")
    query = """select epoch_ns(began) as began, commit, mean, lost from history
        where kernel = 'add' and scope = 'load' order by began"""
    found = json.loads(call(monkeypatch, capsys, "sql", store, query, "--json")[1])
    there = [n for n, value in enumerate(load["values"]) if value is not None]
    assert len(there) == 48
    for row, number in zip(found, there, strict=True):
        run = document["runs"][number]
        assert row == {"began": run["began_unix_ns"], "commit": run["commit"],
                       "mean": load["values"][number], "lost": False}  # fmt: skip
    query = "select mean, p50 from history where path like '%.hatchet'"
    found = json.loads(call(monkeypatch, capsys, "sql", store, query, "--json")[1])
    assert found == [{"mean": 5e5, "p50": None}]
    # Of sums there is no median, also from a store.
    assert "has sums alone: choose" in call(monkeypatch, capsys, *words, "p50")[2]
    slices = Run.load(runs / "a" / "0000.proton").save(tmp_path / "slices.parquet")
    query = "select count(*) as n from slices where scope = 'load'"
    assert json.loads(call(monkeypatch, capsys, "sql", slices, query, "--json")[1]) == [{"n": 2}]
    escape = f"select * from '{store}'"
    assert "disabled" in call(monkeypatch, capsys, "sql", store, escape)[2]
    assert "No files found" in call(monkeypatch, capsys, "sql", tmp_path / "x.parquet")[2]


def test_what_is_no_store_is_an_error(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    runs, bad = folder(tmp_path / "runs", [raw_run({ADD: {"load": [5]}})]), tmp_path / "a.parquet"
    bad.write_bytes(b"none")
    assert "is no Parquet file" in call(monkeypatch, capsys, "history", bad)[2]
    Run.load(runs / "0000.proton").save(bad)
    said = bad.read_bytes()
    for words in ((bad,), (runs, "--store", bad)):
        assert "is no store of runs" in call(monkeypatch, capsys, "history", *words)[2]
    assert bad.read_bytes() == said
    newer = parquet.read_table(bad).replace_schema_metadata({NOTE: "99"})
    parquet.write_table(newer, bad)
    assert "of another version" in call(monkeypatch, capsys, "history", bad)[2]
    status, _, err = call(monkeypatch, capsys, "history", runs, "--store", tmp_path / "a.csv")
    assert (status, "is a .parquet file" in err) == (2, True)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    for words in ((runs, "--store", tmp_path / "b.parquet"), (bad,)):
        assert "'proton-tile[parquet]'" in call(monkeypatch, capsys, "history", *words)[2]
    assert call(monkeypatch, capsys, "history", runs)[0] == 0


def test_runs_of_one_commit_are_not_cut_apart(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """The change is in the mid of a commit: it is said of the next one, or of that one."""
    runs = stored(tmp_path / "runs", changed=29)
    document = json.loads(call(monkeypatch, capsys, "history", runs, "--json")[1])
    shifts = [c["run"] for trend in document["trends"] for c in trend["changes"]]
    assert shifts
    assert all(at % 2 == 0 for at in shifts)


def test_what_is_no_history_is_an_error(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert "no .proton files" in call(monkeypatch, capsys, "history", tmp_path)[2]
    assert "no such folder" in call(monkeypatch, capsys, "history", tmp_path / "none")[2]
    folder(tmp_path / "runs", [raw_run({ADD: {"load": [5]}})])
    assert "got p5" in call(monkeypatch, capsys, "history", tmp_path, "--stat", "p5")[2]
    status, out, _ = call(monkeypatch, capsys, "history", tmp_path)
    assert status == 0
    assert "no change in 1 run of 0 commits: too few to show one" in out


@pytest.mark.parametrize("with_store", [False, True])
def test_files_that_cannot_be_read_are_left_out_and_named(
    with_store: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:  # fmt: skip
    runs = folder(tmp_path / "runs", [raw_run({ADD: {"load": [5]}}, n) for n in range(3)])
    bad = [runs / "0001.proton", runs / "bad.chrome_trace", runs / "bad.hatchet"]
    for file in bad:
        file.write_bytes(b"{}")
    words: tuple[object, ...] = ("--html", tmp_path / "page.html")
    if with_store:
        pytest.importorskip("pyarrow")
        words += ("--store", tmp_path / "history.parquet")
    for more in ((), ("--json",)):
        status, out, err = call(monkeypatch, capsys, "history", runs, *words, *more)
        assert status == 2
        assert [line.split(": ")[2] for line in err.splitlines()] == list(map(str, bad))
        assert all(line.startswith("proton-tile: left out: ") for line in err.splitlines())
        assert (tmp_path / "page.html").exists()
        assert "in 2 runs" in out or len(json.loads(out)["runs"]) == 2
    status, out, err = call(monkeypatch, capsys, "history", bad[0])
    assert (status, out, str(bad[0]) in err) == (2, "", True)
    for number in (0, 2):
        (runs / f"000{number}.proton").unlink()
    if not with_store:
        status, out, err = call(monkeypatch, capsys, "history", runs)
        assert (status, out, str(bad[0]) in err) == (2, "", True)


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
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()  # the end of a session failed there
    assert _commit() == first
    main.__file__ = "script.py"
    assert _commit() == ""
