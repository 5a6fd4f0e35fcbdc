"""`diff`, `check` and `measure` from a user's seat: output, files, exit status."""

import html
import json
import os
import re
import subprocess
import sys
import zipfile
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest
from sides import folder, raw_run
from synthetic import as_schema, random_run, run
from test_cli import call

from proton.base.progress import StepCounter
from proton.trace.archive import SCHEMA
from proton.viewer import Run
from proton.viewer.compare.measure import MeasuredProgram, MeasureError, gather
from tests import processes

ADD = ("add", "x: *fp32, BLOCK=1024")
BUDGETS = """
[[budget]]
kernel = "add"
scope = "load"
max_regression = "5%"
"""


@pytest.fixture
def viewer(monkeypatch, capsys):
    for name in ("GITHUB_ACTIONS", "GITHUB_STEP_SUMMARY"):
        monkeypatch.delenv(name, raising=False)
    return lambda *words: call(monkeypatch, capsys, *words)


@pytest.fixture
def budgets(tmp_path: Path) -> Path:
    path = tmp_path / "budgets.toml"
    path.write_text(BUDGETS)
    return path


@pytest.fixture
def sides(tmp_path: Path) -> dict[str, Path]:
    """Six processes of a baseline, of the same, of a slower one and of a noisy one, in turns."""
    times = {
        "base": [10_000] * 6,
        "same": [10_010] * 6,
        "slow": [11_000] * 6,
        "noisy": [8000, 13000] * 3,
    }
    return {
        name: folder(
            tmp_path / name,
            [raw_run({ADD: {"load": [ns + i]}}, 4 * i + k) for i, ns in enumerate(all_)],
        )
        for k, (name, all_) in enumerate(times.items())
    }


@pytest.mark.parametrize("name, status", [("same", 0), ("slow", 1), ("noisy", 3)])
def test_the_exit_status_of_check_is_its_answer(viewer, sides, budgets, name, status) -> None:
    words = ("check", sides[name], "--baseline", sides["base"], "--budget", budgets)
    found, out, err = viewer(*words)
    assert (found, err) == (status, "")
    assert out.startswith({0: "pass: ", 1: "regression: ", 3: "inconclusive: "}[status])
    assert "add/load p50" in out
    assert "6 processes against 6 measured in turns" in out
    found, out, _ = viewer(*words, "--json")
    assert json.loads(out)["exit_status"] == found == status


def test_a_run_counts_once(viewer, sides, budgets, tmp_path) -> None:
    """A file that is given twice, or lies there as a copy, is no second process."""
    file = sorted(Path(sides["base"]).glob("*.proton"))[0]
    copy = tmp_path / "copy.proton"
    copy.write_bytes(file.read_bytes())
    for again in (file, copy):
        status, out, err = viewer("check", sides["base"], again, "--budget", budgets)
        assert (status, out) == (2, "")
        assert "are the same run: of one process there is one run" in " ".join(err.split())


def test_check_leaves_what_ci_reads(viewer, sides, budgets, tmp_path, monkeypatch) -> None:
    summary = tmp_path / "summary.md"
    summary.write_text("before\n")
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))
    words = ("--junit", tmp_path / "a.xml", "--picture", tmp_path / "a.svg")
    status, out, _ = viewer(
        "check", sides["slow"], "--baseline", sides["base"], "--budget", budgets, *words
    )
    assert status == 1
    assert "::error file=add.py,line=1,title=add/load p50::+10.0 %25, allowed +5.0 %25" in out
    assert summary.read_text().startswith("before\n### proton-tile check: regression\n")
    assert "| regression | add/load p50 | 10 us | 11 us | +10.0 % |" in summary.read_text()
    suite = ElementTree.parse(tmp_path / "a.xml").getroot().find("testsuite")
    assert suite is not None
    assert (suite.get("tests"), suite.get("failures"), suite.get("errors")) == ("1", "1", "0")
    assert suite.find("testcase/failure") is not None
    picture = ElementTree.parse(tmp_path / "a.svg").getroot()
    dots = picture.findall(".//{http://www.w3.org/2000/svg}circle")
    assert len(dots) == 6 + 6 + 1  # each process, and the ratio


def test_the_page_has_both_timelines_on_one_scale(viewer, sides, budgets, tmp_path) -> None:
    page = tmp_path / "a.html"
    both = sides["base"], sides["slow"]
    for words in (
        ("diff", *both),
        ("check", both[1], "--baseline", both[0], "--budget", budgets),
    ):
        assert viewer(*words, "--picture", page)[0] in (0, 1)
        text = page.read_text()
        assert "<td class=number>+10.0 %" in text  # which does not break ahead of its unit
        frames = [html.unescape(f) for f in re.findall('<iframe srcdoc="([^"]*)"', text)]
        assert len(frames) == 2
        views = [json.loads(re.findall(r'"view": (\[[^]]*\])', frame)[0]) for frame in frames]
        assert views[0][1] - views[0][0] == views[1][1] - views[1][0]
        assert "the load of all units of a launch takes 11 us, took 10 us" in text
    assert viewer("check", both[1], "--budget", budgets, "--picture", tmp_path / "a.txt")[0] == 2


def test_diff_prints_each_format(viewer, sides, tmp_path) -> None:
    words = ("diff", sides["base"], sides["slow"])
    status, out, err = viewer(*words, "--picture", tmp_path / "a.svg")
    assert (status, err) == (0, "")
    assert "+10.0 %" in out
    assert "slower" in out
    ElementTree.parse(tmp_path / "a.svg")
    _, out, _ = viewer(*words, "--format", "markdown")
    assert out.splitlines()[1].startswith("| --- |")
    _, out, _ = viewer(*words, "--format", "json")
    change = next(change for change in json.loads(out)["changes"] if change["scope"] == "load")
    assert change["baseline"] == [10_000 + i for i in range(6)]
    assert change["ratio"]["value"] == pytest.approx(1.1, rel=1e-3)


def test_bad_usage_is_status_2(viewer, sides, budgets, tmp_path) -> None:
    (tmp_path / "empty").mkdir()
    bad = tmp_path / "bad.toml"
    bad.write_text("budget = 5")
    for words in (
        ("check", sides["base"]),
        ("check", sides["base"], "--budget", tmp_path / "none.toml"),
        ("check", sides["base"], "--budget", bad),
        ("check", sides["base"], "--budget", budgets),
        ("check", tmp_path / "empty", "--budget", budgets),
        ("diff", sides["base"]),
        ("diff", sides["base"], sides["slow"], "--stat", "p51"),
        ("diff", sides["base"], sides["slow"], "--reference", "nothing"),
    ):
        status, out, err = viewer(*words)
        assert (status, out) == (2, "")
        assert err


def runs_of_all_kinds(path: Path) -> list[Path]:
    """A run without launches, one of one slice, one with losses, one of an older schema and one
    with names that a terminal should not obey."""
    odd = ("\u00fcnn\u00f6tig \x1b[31m|<b>", "x: *fp32")
    kinds = {
        "empty": run([], []),
        "single": raw_run({ADD: {"load": [7]}}),
        "lost": random_run(21),
        "odd": raw_run({odd: {"l\u2028\u202eoad [x]": [7]}}),
        "twice": raw_run({("k", "x: i32"): {"s": [5]}, ("k", "x: i64"): {"s": [6]}}),
    }
    files = [Run(raw).save(path / f"{name}.proton") for name, raw in kinds.items()]
    old = path / "old.proton"
    with zipfile.ZipFile(files[1]) as whole, zipfile.ZipFile(old, "w") as archive:
        for name in whole.namelist():
            data = whole.read(name)
            if name == "run.json":
                document = json.loads(data)
                as_schema(document, 2)
                data = json.dumps(document).encode()
            archive.writestr(name, data)
    return [*files, old]


def test_every_kind_of_run_has_a_diff(viewer, tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    files = runs_of_all_kinds(tmp_path)
    for one, other in zip(files, [*files[1:], files[0]], strict=True):
        for shape in ("table", "markdown", "json"):
            picture = tmp_path / ("a.html" if shape == "json" else "a.svg")
            words = ("diff", one, other, "--format", shape, "--picture", picture)
            status, out, err = viewer(*words)
            assert status == 0, err
            assert ("records lost" in err) == ("lost.proton" in f"{one}{other}")
            assert "\x1b" not in out
            assert "\u202e" not in out
        ElementTree.parse(tmp_path / "a.svg")


def test_files_that_cannot_be_read_are_status_2(viewer, sides, budgets, tmp_path) -> None:
    whole = next(sides["base"].iterdir())
    cut = tmp_path / "cut.proton"
    cut.write_bytes(whole.read_bytes()[:200])
    new = tmp_path / "new.proton"
    with zipfile.ZipFile(whole) as old, zipfile.ZipFile(new, "w") as archive:
        for name in old.namelist():
            data = old.read(name)
            later = data.replace(b'"schema": %d' % SCHEMA, b'"schema": %d' % (SCHEMA + 1))
            archive.writestr(name, later)
    for bad in (cut, new, tmp_path / "none.proton"):
        for words in (("diff", bad, whole), ("check", bad, "--budget", budgets)):
            status, out, err = viewer(*words)
            assert (status, out) == (2, "")
            assert err.count("\n") == 1
            assert str(bad) in err


def test_a_plain_locale_and_a_closed_pipe_are_borne(sides, budgets, tmp_path) -> None:
    odd = Run(raw_run({("\u00fc", ""): {"\u4e16": [7]}})).save(tmp_path / "odd.proton")
    viewer = [sys.executable, "-m", "proton.viewer"]
    environment = {**os.environ, "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    done = subprocess.run(
        [*viewer, "diff", odd, odd], env=environment, capture_output=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"\\u4e16" in done.stdout
    # The answer is the same, whether the closed pipe is met at once or at the end.
    for side, status, options in (("same", 0, []), ("same", 0, ["--json"]), ("slow", 1, [])):
        report = tmp_path / f"{side}{len(options)}.xml"
        words = ["check", sides[side], "--baseline", sides["base"], "--budget", budgets]
        reader, writer = os.pipe()
        os.close(reader)
        done = processes.python(
            *viewer[1:],
            *(*words, "--junit", report, *options),
            stdout=writer,
            env={"PYTHONUNBUFFERED": "1" if options else ""},
        )
        os.close(writer)
        assert (done.returncode, done.stderr) == (status, "")
        assert report.stat().st_size


# measure


def test_measure_takes_turns_and_checks(viewer, sides, budgets, tmp_path, monkeypatch) -> None:
    """The program copies a run that lies in its folder: slower where the candidate runs."""
    out = tmp_path / "out"
    for name in ("base", "slow"):
        (tmp_path / f"{name}.log").touch()
        next(sides[name].iterdir()).rename(sides[name] / "this.run")
    program = tmp_path / "program.py"
    program.write_text(
        "import json, os, sys, time, zipfile\n"
        f"with open({str(tmp_path / 'order')!r}, 'a') as log:\n"
        "    log.write(os.path.basename(os.getcwd()) + ' ')\n"
        "with zipfile.ZipFile('this.run') as old, zipfile.ZipFile(sys.argv[1], 'w') as new:\n"
        "    for name in old.namelist():\n"
        "        data = old.read(name)\n"
        "        if name == 'run.json':\n"
        "            document = json.loads(data)\n"
        "            document['origin_unix_ns'] = time.time_ns()\n"
        "            data = json.dumps(document).encode()\n"
        "        new.writestr(name, data)\n"
    )
    monkeypatch.chdir(sides["slow"])
    words = ("--baseline-dir", sides["base"], "--", sys.executable, program, "{run}")
    status, text, err = viewer("measure", "-n", 5, "-o", out, "--budget", budgets, *words)
    assert status == 1
    assert "5 processes against 5 measured in turns" in text
    assert "5 rounds: regression" in err
    turns = (tmp_path / "order").read_text().split()
    assert turns == ["base", "slow", *(["base", "slow", "slow", "base"] * 3)[:10]]
    assert len(list((out / "baseline").iterdir())) == len(list((out / "candidate").iterdir())) == 5
    status, _, err = viewer("measure", "-n", 5, "-o", out, *words)
    assert status == 2
    assert "has runs already" in err


def test_an_interrupted_measurement_keeps_the_rounds_that_are_whole(
    viewer, sides, tmp_path, monkeypatch
) -> None:
    ran = list[Path]()
    whole = next(sides["base"].iterdir()).read_bytes()

    def runs(program: MeasuredProgram, file: Path) -> None:
        ran.append(file)
        if len(ran) == 9:  # the second program of the fourth round, behind the two warm-ups
            raise KeyboardInterrupt
        file.write_bytes(whole)

    monkeypatch.setattr(MeasuredProgram, "run", runs)
    monkeypatch.chdir(sides["slow"])
    words = ("measure", "-n", 5, "-o", tmp_path / "out", "--baseline-dir", sides["base"], "--", "x")
    status, _, err = viewer(*words)
    assert (status, "has 3 rounds" in err) == (130, True)
    for side in ("baseline", "candidate"):
        names = sorted(path.name for path in (tmp_path / "out" / side).iterdir())
        assert names == ["0000.proton", "0001.proton", "0002.proton"]


def test_progress_says_how_long_the_rest_takes(monkeypatch) -> None:
    now = 100.0
    monkeypatch.setattr("time.monotonic", lambda: now)
    said: list[str] = []
    progress = StepCounter("round", 8, said.append)
    for seconds in (1.0, 1.5, 0.1, 3.0, 100.0, 1.0, 1.0, 9.0):
        now += seconds
        progress.step()
    assert said == [
        "round 2 of 8, about 8 s left",  # 2.5 s for two
        "round 4 of 8, about 6 s left",
        "round 5 of 8, about 1 min 3 s left",
        "round 7 of 8, about 15 s left",
    ]


def test_a_program_that_fails_or_leaves_no_run_ends_the_measurement(tmp_path) -> None:
    def program(code: str) -> MeasuredProgram:
        return MeasuredProgram(words=[sys.executable, "-c", code, "{run}"], folder=tmp_path)

    with pytest.raises(MeasureError, match=r"exit status 3: .*why it failed"):
        program("import sys; print('why it failed', file=sys.stderr); sys.exit(3)").run(
            tmp_path / "a.proton"
        )
    with pytest.raises(MeasureError, match="it left no"):
        program("pass").run(tmp_path / "a.proton")
    with pytest.raises(MeasureError, match="nowhere: there is no such folder"):
        replace(program("pass"), folder=tmp_path / "nowhere").run(tmp_path / "a.proton")
    leaves = "import sys; open(sys.argv[1], 'w'); sys.exit(3)"
    with pytest.raises(MeasureError, match=r"exit status 3$"):
        program(leaves).run(tmp_path / "a.proton")
    assert not list(tmp_path.glob("*.proton"))  # which no statistics would count


def test_rounds_before_a_program_fails_are_kept(tmp_path) -> None:
    """It fails in its third run, and leaves that; the other side has run in that round."""
    code = """
import pathlib, sys
pathlib.Path(sys.argv[1]).write_text("a run")
sys.exit(sys.argv[2] == "bad" and "0002" in sys.argv[1])
"""
    programs = {
        name: MeasuredProgram(words=[sys.executable, "-c", code, "{run}", name], folder=tmp_path)
        for name in ("good", "bad")
    }
    said = list[str]()
    with pytest.raises(MeasureError, match="exit status 1"):
        gather(programs, tmp_path / "out", range(5), said.append)
    assert said[-1].endswith("out has 2 rounds")
    for name in programs:
        files = sorted(path.name for path in (tmp_path / "out" / name).iterdir())
        assert files == ["0000.proton", "0001.proton"]


def test_a_script_is_run_by_python_m_proton(tmp_path) -> None:
    words = MeasuredProgram(words=["a.py", "--size", "3"], folder=tmp_path).command(
        tmp_path / "r.proton"
    )
    assert words[1:] == ["-m", "proton", "--quiet", "--output", f"{tmp_path / 'r.proton'}",
                         "a.py", "--size", "3"]  # fmt: skip
