"""Time by line of the source, against sums that are made by hand."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from faults import COPY_WAIT, DOT, FILE, TABLE, gpu, loop
from synthetic import Record, Written, kernel, pack_launch, run, ticks
from test_cli import call

from proton.base.locations import places, without_locations
from proton.trace.model import ROLES, RawRun, Scope
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
    raw.sources = {file: SOURCE}
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
    file = Run(nested("/gone/add.py")).save(tmp_path / "a.proton")
    status, out, err = viewer("source", file)
    assert (status, err) == (0, "")
    (line,) = [line for line in out.splitlines() if "scope('load')" in line]
    assert line.split()[:3] == ["5", "140", "ns"]
    assert max(map(len, out.splitlines())) <= 80
    page = tmp_path / "a.html"
    assert viewer("source", file, "--by", "unit", "--html", page)[0] == 0
    assert '"isSourceFirst": true' in page.read_text()
    assert viewer("source", file, "-o", page.with_suffix(".svg"))[0] == 2
    assert viewer("source", file, "--kernel", "^no")[0] == 2
    assert viewer("source", file, "--kernel", "^ad")[1] == out
    _, out, _ = viewer("source", file, "--json")
    assert {row["line"] for row in json.loads(out)} == {5, 6}
    status, _, err = viewer("source", file, "--by", "warps")
    assert (status, "did you mean warp?" in err) == (2, True)


def test_the_command_says_what_a_line_became(viewer, tmp_path) -> None:
    raw = nested("/src/add.py")
    code = TTIR.replace("k.py", "/src/add.py").replace(":7:2", ":6:2").replace(":3:1", ":5:1")
    raw.kernels[0] = replace(raw.kernels[0], code={"ttir": code})
    file = Run(raw).save(tmp_path / "a.proton")
    status, out, err = viewer("source", file, "--line", 5)
    assert (status, err) == (0, "")
    lines = out.splitlines()
    assert "     6          x = load(x)" in lines  # of the block
    assert '     3      %0 = "tt.print"() {text = " loc(#loc4)"} : () -> i32' in lines
    assert [line for line in lines if line.startswith("proton-tile timeline")]
    (found,) = json.loads(viewer("source", file, "--line", 6, "--json")[1])
    assert found["lines"] == [[6, "        x = load(x)"]]
    assert [number for number, _ in found["levels"]["ttir"]] == [3]
    _, out, _ = viewer("source", file, "--line", 5, "--level", "sass")
    assert "tt.print" not in out
    assert "the run has no sass of it" in out
    assert viewer("source", file, "--line", 99)[0] == 2
    status, _, err = viewer("source", file, "--line", 5, "--level", "sas")
    assert (status, "did you mean sass?" in err) == (2, True)


def test_a_line_is_of_the_kernels_that_have_it(viewer, tmp_path) -> None:
    raw = nested("/src/add.py")
    last = (Scope(name="last", path="last", file="/src/add.py", line=4),)
    raw.kernels.append(replace(raw.kernels[0], name="other", scopes=last, code={"ttir": TTIR}))
    records = [Record(ticks(200), ticks(300))]
    raw.launches.append(pack_launch(kernel(table=last, units=2), (1, 1, 1), 3,
                                    [Written([records, records])]))  # fmt: skip
    raw.launches[-1].kernel = 1
    file = Run(raw).save(tmp_path / "a b.proton")
    _, out, _ = viewer("source", file, "--line", 6)
    assert "other" not in out
    assert f"proton-tile timeline '{file}' --launch 0" in out
    _, out, _ = viewer("source", file, "--line", 4)
    assert "other, /src/add.py" in out
    assert "no code of it" in out  # its code is of another file


def test_slices_of_a_line_are_opened_on_their_sm(viewer, tmp_path) -> None:
    raw = gpu(loop(stages=2))
    raw.sources = {FILE: "\n" * 10 + "wait(a)\n"}
    file = Run(raw).save(tmp_path / "b.proton")
    _, out, _ = viewer("source", file, "--line", 11)
    opened = [line.split()[3:] for line in out.splitlines() if line.startswith("proton-tile")]
    assert len({tuple(words) for words in opened}) == len(opened) > 1
    for words in opened:
        status, shown, _ = viewer("timeline", file, *words)
        assert (status, "wait copy" in shown) == (0, True)


def test_time_by_role() -> None:
    raw = nested("a.py")
    raw.kernels[0].options[ROLES] = ["load", "compute"]
    by = Run(raw).lines("role")
    assert by.groupby("role", observed=True)["self_ns"].sum().to_dict() == {
        "load": 140, "compute": 140,
    }  # fmt: skip


def test_a_run_names_no_file_that_is_read(tmp_path: Path) -> None:
    secret = tmp_path / "secret.py"
    secret.write_text("a\nb\nc\nd\npassword\nf\n")
    raw = nested(str(secret))
    raw.sources = {}
    assert "password" not in json.dumps(Run(raw).source().data())


def test_sources_that_are_gone_show_scopes() -> None:
    raw = nested("gone.py")
    raw.sources = {}
    text = "\n".join(Run(raw).source().text(80))
    assert "outer/inner, hold" in text


def test_a_notebook_has_the_page() -> None:
    cell = Run(nested("a.py")).source()._repr_html_()
    assert cell.startswith("<iframe srcdoc=")
    assert 'height="720"' in cell  # in 700 pixels of width it is below the timeline
    assert "<script>" not in cell  # the page's own, escaped
    assert "sandbox" in cell


TTIR = """#loc = loc("k.py":3:1)
module {
  func.func @k(%arg0: i32 {tt.name = "a \\" loc(#loc1)"} loc("k.py":3:1)) {
    %0 = "tt.print"() {text = " loc(#loc4)"} : () -> i32 loc(#loc3)
    return loc(#loc)
  } loc(#loc)
} loc(#loc4)
#loc1 = loc("k.py":7:2)
#loc2 = loc("h.py":9:2)
#loc3 = loc("scope:load"(callsite(#loc2 at #loc1)))
#loc4 = loc(unknown)
"""
PLAIN = """module {
  func.func @k(%arg0: i32 {tt.name = "a \\" loc(#loc1)"}) {
    %0 = "tt.print"() {text = " loc(#loc4)"} : () -> i32
    return
  }
}
"""


def test_text_of_mlir_says_its_lines() -> None:
    """Strings that look like locations stay; calls have the callee's line and the caller's."""
    assert without_locations(TTIR) == PLAIN
    text, found = places("ttir", TTIR)
    assert text == PLAIN
    k, inlined = (("k.py", 3),), (("h.py", 9), ("k.py", 7))
    assert found == [(), k, inlined, k, k, (), ()]


@pytest.mark.parametrize(
    "text",
    [
        "a loc(#loc)\n#loc = loc(callsite(#loc at #loc1))\n#loc1 = loc(#loc)\n",
        f'a loc("f":{"9" * 5000}:1)\n',
        "a loc(((((",
        'a loc("f',
        "a loc(#loc99))) loc()\n",
    ],
)
def test_text_that_nobody_printed_has_places(text: str) -> None:
    """Files are trusted with nothing."""
    for level in ("ttir", "ptx", "sass"):
        shown, found = places(level, text)
        assert len(found) == shown.count("\n") + 1
    assert places("ptx", f".loc 1 {'9' * 5000} 2")[1] == [()]


def test_assembly_says_its_lines() -> None:
    ptx = '.visible .entry k()\n\t.loc\t1 5 2\n\tmov;\n\tadd;\n\t.loc 1 6 2\n}\n\t.file\t1 "k.py"'
    five, six = (("k.py", 5),), (("k.py", 6),)
    assert places("ptx", ptx)[1] == [(), five, five, five, six, (), ()]
    sass = 'k:\n\t//## File "k.py", line 5\n /*0*/ MOV ;\n.section\n'
    assert places("sass", sass)[1] == [(), five, five, (), ()]
