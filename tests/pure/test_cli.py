"""`proton-tile` from a user's seat: its output, its errors, its exit status."""

import csv
import io
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from synthetic import gpu_run, random_run

from proton.viewer import Run
from proton.viewer.pictures import flame
from proton.viewer.tables.stats import Filter
from tests import processes
from tests.processes import proton_tile as call


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    raw = random_run(21)
    raw.machine["boot"] = "0f1e2d3c"
    raw.kernels[0] = type(raw.kernels[0])(
        **{**vars(raw.kernels[0]), "optimized_out": ("gone [x]",)}
    )
    return Run(raw).save(tmp_path / "run.proton")


@pytest.fixture
def viewer(monkeypatch, capsys):
    return lambda *words: call(monkeypatch, capsys, *words)


def test_summary_says_what_is_there_and_what_is_missing(viewer, saved) -> None:
    status, out, err = viewer("summary", saved)
    whole = Run.load(saved)
    assert (status, err) == (0, "")
    assert "test run" in out
    for path in whole.stats()["scope"]:
        assert path in out
    assert f"warning: {whole.totals.lost} of {whole.totals.written} records lost" in out
    assert "optimized-out scopes: add: gone [x]" in out
    assert "0f1e2d3c" not in out, "which boot it was is for merging"


def test_summary_of_a_gpu_says_its_name_sms_clocks_and_resources(viewer, tmp_path) -> None:
    raw = gpu_run(21)
    options = {"registers": 40, "registers_off": 32, "blocks_per_sm": 6, "blocks_per_sm_off": 8}
    raw.kernels[0] = type(raw.kernels[0])(**{**vars(raw.kernels[0]), "options": options})
    status, out, err = viewer("summary", Run(raw).save(tmp_path / "run.proton"))
    assert (status, err) == (0, "")
    assert "GPU 0 (NVIDIA H200)  4 SMs used" in out
    assert "the timer with the host within 40 ns" in out
    assert "registers 40 (32), blocks_per_sm 6 (8)" in out
    assert "warning: attend: 6 programs fit on an SM, 8 without instrumentation" in out


def test_list_names_every_scope(viewer, saved) -> None:
    status, out, _ = viewer("list", saved)
    assert status == 0
    for kernel in Run.load(saved).kernels:
        for scope in kernel.scopes:
            assert scope.path in out
    assert "gone [x]" in out


def test_stats_prints_the_table_in_each_format(viewer, saved) -> None:
    table = (
        Run.load(saved)
        .stats(["scope", "program"], "dur_ns")
        .sort_values("p99", ascending=False, kind="stable")
    )
    options = ("--by", "scope,program", "--metric", "dur_ns", "--sort", "p99", "--limit", 3)
    _, out, _ = viewer("stats", saved, *options, "--format", "json")
    assert [row["p99"] for row in json.loads(out)["rows"]] == pytest.approx(
        table["p99"].tolist()[:3]
    )
    _, out, _ = viewer("stats", saved, *options, "--format", "csv")
    rows = list(csv.DictReader(io.StringIO(out)))
    assert [int(row["count"]) for row in rows] == table["count"].tolist()[:3]
    status, out, _ = viewer("stats", saved, *options)
    assert status == 0
    assert table["scope"].iloc[0] in out


def test_export_writes_what_save_writes(viewer, saved, tmp_path) -> None:
    whole = Run.load(saved)
    for name in ("a.pftrace", "a.pftrace.gz", "a.json", "a.csv"):
        status, out, err = viewer("export", saved, tmp_path / name)
        assert (status, out) == (0, "")
        assert f"warning: {whole.totals.lost} of {whole.totals.written} records lost" in err
        exported = (tmp_path / name).read_bytes()
        assert exported == whole.save(tmp_path / f"again-{name}").read_bytes()
    assert viewer("export", saved, tmp_path / "tables.json", "--format", "json")[0] == 0
    tables = json.loads((tmp_path / "tables.json").read_text())
    assert [row["start_ns"] for row in tables["frame"]] == whole.frame["start_ns"].tolist()
    assert [row["payload"] for row in tables["marks"]] == whole.marks["payload"].tolist()


def test_json_has_what_is_drawn(viewer, saved) -> None:
    def of(*words: str) -> Any:
        status, out, _ = viewer(words[0], saved, *words[1:], "--json")
        assert status == 0
        return json.loads(out)

    whole = Run.load(saved)
    table = whole.stats()
    root = flame.flame(whole, Filter())
    assert (of("flame")["total_ns"], of("flame")["wall_ns"]) == (round(root.time), root.wall)
    counts = {one["name"]: sum(one["count"]) for one in of("hist", "--limit", "0")}
    assert sorted(counts.values()) == sorted(table["count"])
    rows = of("timeline", "--kernel", "add")
    scopes = [row["dur_ns"] for row in rows if row["kind"] == "scope"]
    frame = whole.frame[(whole.frame["kind"] == "scope") & (whole.frame["kernel"] == "add")]
    assert sorted(scopes) == sorted(frame["dur_ns"])
    heat = of("heatmap")
    assert len(heat["rows"]) == len(heat["units"])
    assert of("stats") == json.loads(viewer("stats", saved, "--format", "json")[1])


def test_help_has_the_lines_of_the_terminal_and_not_those_of_the_source(
    viewer, monkeypatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    _, out, _ = viewer("stats", "--help")
    paragraph = "total is the time of a group's outermost slices, self that of all its slices "
    assert f"{paragraph}without what lies in slices inside them" in out
    assert "\n     proton-tile stats add.proton " in out


def test_help_teaches_by_examples(viewer) -> None:
    for command in ("list", "summary", "stats", "export"):
        status, out, _ = viewer(command, "--help")
        assert status == 0
        assert f"proton-tile {command} add.proton" in out


def test_a_bad_file_is_one_line_and_status_2(viewer, saved, tmp_path) -> None:
    bad = tmp_path / "bad.proton"
    bad.write_bytes(saved.read_bytes()[:100])
    for words in (("summary", bad), ("list", tmp_path / "none.proton"), ("stats", tmp_path)):
        status, out, err = viewer(*words)
        assert (status, out) == (2, "")
        assert err.startswith("proton-tile: ")
        assert err.count("\n") == 1
    status, _, err = viewer("export", saved, tmp_path / "no folder" / "a.csv")
    assert status == 2
    assert err.count("\n") == 1


def test_bad_usage_is_status_2(viewer, saved, tmp_path) -> None:
    for words in (
        ("stats", saved, "--by", "colour"),
        ("stats", saved, "--sort", "colour"),
        ("stats", saved, "--format", "xml"),
        ("export", saved, tmp_path / "a.xyz"),
        ("export", saved),
        ("dance",),
    ):
        status, out, err = viewer(*words)
        assert (status, out) == (2, "")
        assert err


@pytest.mark.parametrize(
    "words", [("stats", "--format", "csv"), ("list",), ("summary",)], ids=lambda words: words[0]
)
def test_a_reader_that_left_sees_no_traceback(saved, words) -> None:
    """Whether what is written meets the closed pipe at once, or when the rest is flushed."""
    for buffered in ("", "1"):
        reader, writer = os.pipe()
        os.close(reader)
        command = ["-m", "proton.viewer.cli", words[0], saved, *words[1:]]
        done = processes.python(*command, stdout=writer, env={"PYTHONUNBUFFERED": buffered})
        os.close(writer)
        assert done.returncode == 1
        said = [line for line in done.stderr.splitlines() if "records lost" not in line]
        assert said == []


def test_launches_lists_each_launch_with_its_variant_and_grid(viewer, saved) -> None:
    whole = Run.load(saved)
    status, out, _ = viewer("launches", saved, "--format", "csv")
    rows = list(csv.DictReader(io.StringIO(out)))
    assert status == 0
    assert [row["kernel"] for row in rows] == whole.launches["kernel"].tolist()
    assert [row["grid"] for row in rows] == [str(grid) for grid in whole.launches["grid"]]
    assert [int(row["dur_ns"]) for row in rows] == whole.launches["dur_ns"].tolist()
    _, out, _ = viewer("launches", saved, "--kernel", "matmul", "--limit", "1")
    assert "matmul" in out
    assert "add" not in out


def test_stats_takes_filters_and_shows_a_tree(viewer, saved) -> None:
    whole = Run.load(saved)
    status, out, _ = viewer("stats", saved, "-i", "matmul/", "--by", "payload.none,scope")
    assert status == 0
    assert "matmul" not in out
    assert "nothing that is shown has none" in out
    status, out, _ = viewer("stats", saved, "-i", "^matmul/", "-e", "slice 1", "--format", "csv")
    rows = list(csv.DictReader(io.StringIO(out)))
    assert {row["kernel"] for row in rows} == {"matmul"}
    assert not [row for row in rows if "slice 1" in row["scope"]]
    _, out, _ = viewer("stats", saved, "--tree", "--format", "csv", "--metric", "dur_ns")
    rows = list(csv.DictReader(io.StringIO(out)))
    kernels = whole.stats("kernel", "dur_ns").set_index("kernel")["total"].to_dict()
    found = {row["scope"]: int(float(row["total"])) for row in rows if row["scope"] in kernels}
    assert found == kernels
    status, _, err = viewer("stats", saved, "-i", "(")
    assert status == 2
    assert "is no regular expression" in err


def test_a_table_of_many_rows_has_all_of_them(viewer, saved) -> None:
    status, out, _ = viewer("stats", saved, "--by", "launch,program,unit,iteration,scope")
    count = len(Run.load(saved).stats(["launch", "program", "unit", "iteration", "scope"]))
    assert status == 0
    assert count > 200
    assert out.count("iteration ") == count
    assert out.split()[:3] == ["total", "self", "share"]


def test_the_viewer_is_a_module_too(saved) -> None:
    command = [sys.executable, "-m", "proton.viewer", "summary", str(saved)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "test run" in done.stdout


def test_a_file_that_is_not_there_is_no_unknown_command(viewer, saved, tmp_path) -> None:
    for words in (("none.proton",), ("some/where",), ("stats", tmp_path / "none")):
        status, out, err = viewer(*words)
        assert (status, out, err.count("\n")) == (2, "", 1)
        assert "cannot be read: No such file or directory" in err
    status, _, err = viewer("check", saved, "--budget", "none.toml")
    assert (status, err) == (2, "proton-tile: none.toml: No such file or directory\n")
    assert "Did you mean" in viewer("sumary")[2]
