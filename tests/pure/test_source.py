"""Time by line of the source, against sums that are made by hand."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from faults import COPY_WAIT, DOT, TABLE, gpu, loop
from synthetic import Record, Written, kernel, pack_launch, run, ticks
from test_cli import call

from proton.trace.model import RawRun, Scope
from proton.viewer import Run

SOURCE = "import proton\n\n\ndef add(x):\n    with scope('load'):\n        x = load(x)\n"


def nested(file: str) -> RawRun:
    """Two units: 100 ns of an outer scope around 30 of an inner one, and 40 ns of waiting."""
    table = (
        Scope(name="outer", path="outer", file=file, line=5),
        Scope(name="inner", path="outer/inner", file=file, line=6),
        Scope(name="hold", path="hold", file=file, line=6, visit=1, piece=1, waits=True),
    )
    records = [Record(ticks(10), ticks(40), 1), Record(ticks(0), ticks(100), 0),
               Record(ticks(100), ticks(140), 2)]  # fmt: skip
    owner = kernel(table=table, units=2)
    raw = run([owner], [pack_launch(owner, (1, 1, 1), 3, [Written([records, records])])])
    raw.clock = replace(raw.clock, slice_cost_ns=0.0, edge_cost_ns=0.0)
    return raw


def test_each_line_has_its_time() -> None:
    table = Run(nested("a.py")).lines().set_index("line")
    assert table.loc[5, ["total_ns", "self_ns", "wait_ns", "visits"]].tolist() == [200, 140, 0, 2]
    assert table.loc[6, ["total_ns", "self_ns", "wait_ns", "visits"]].tolist() == [140, 140, 80, 4]
    assert table.loc[6, "scope"] == "outer/inner, hold"
    assert table["share"].tolist() == [50, 50]
    by = Run(nested("a.py")).lines("unit")
    assert by.groupby("unit")["self_ns"].sum().tolist() == [140, 140]


def test_lines_know_their_slices() -> None:
    whole = Run(gpu(loop(stages=2)))
    table = whole.lines().set_index("line")
    for line in (TABLE[COPY_WAIT].line, TABLE[DOT].line):
        slices = whole.slices_at(line, "matmul.py")
        assert slices["visit"].nunique() == table.loc[line, "visits"]
        assert slices["corrected_ns"].sum() == table.loc[line, "total_ns"]
    assert len(whole.slices_at(11, "other.py")) == 0


@pytest.fixture
def viewer(monkeypatch, capsys):
    return lambda *words: call(monkeypatch, capsys, *words)


def test_the_command_shows_the_file_beside_its_time(viewer, tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    source = tmp_path / "add.py"
    source.write_text(SOURCE)
    file = Run(nested(str(source))).save(tmp_path / "a.proton")
    status, out, err = viewer("source", file)
    assert (status, err) == (0, "")
    (line,) = [line for line in out.splitlines() if "scope('load')" in line]
    assert line.split()[:3] == ["5", "140", "ns"]
    assert max(map(len, out.splitlines())) <= 80
    page = tmp_path / "a.html"
    assert viewer("source", file, "--by", "unit", "--html", page)[0] == 0
    text = page.read_text()
    assert text.count("class=timed") == 2
    assert "unit 1: 70 ns" in text
    assert "scope(&#x27;load&#x27;)" in text
    assert viewer("source", file, "-o", page.with_suffix(".svg"))[0] == 2
    assert viewer("source", file, "--kernel", "^no")[0] == 2
    assert viewer("source", file, "--kernel", "^ad")[1] == out
    _, out, _ = viewer("source", file, "--json")
    assert {row["line"] for row in json.loads(out)} == {5, 6}
    status, _, err = viewer("source", file, "--by", "warps")
    assert (status, "did you mean warp?" in err) == (2, True)


def test_a_run_names_no_other_files_than_python(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("a\nb\nc\nd\npassword\nf\n")
    assert "password" not in Run(nested(str(secret))).source().page()


def test_sources_that_are_gone_show_scopes() -> None:
    text = "\n".join(Run(nested("gone.py")).source().text(80))
    assert "outer/inner, hold" in text
