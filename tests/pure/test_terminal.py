"""`proton-tile` on terminals of all widths, on streams of all kinds, with names of all kinds."""

import contextlib
import csv
import dataclasses
import io
import itertools
import json
import os
import pty
import random
import re
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from rich.cells import cell_len
from synthetic import Record, Written, kernel, pack_launch, random_run, run, scopes, ticks

from proton.base.text import printable
from proton.base.units import duration
from proton.trace.model import HostSlice, RawRun, Scope
from proton.viewer import Run, TraceFormatError, cli
from proton.viewer.tables.cells import as_cells, cell
from proton.viewer.tables.stats import COLUMNS, TIMES
from tests import processes

VIEWER = ("-m", "proton.viewer.cli")
HOSTILE = "\x1b]0;owned\x07\x1b[2J\x9b31m\x7f\b\0\r\n\t\u202egnp.exe\u2066\u200b\u2028[red]"
RAW = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069]")
STYLE = re.compile("\x1b\\[[0-9;]*m")  # rich's own, on a terminal


def hostile_run() -> RawRun:
    """A run all of whose names are hostile, with losses."""
    table = tuple(
        dataclasses.replace(scope, name=HOSTILE, path=HOSTILE, file=HOSTILE)
        for scope in scopes(2, slots=2)
    )
    table = (
        table[0],
        dataclasses.replace(
            table[1],
            payload=tuple(
                dataclasses.replace(f, name=f"{HOSTILE}{n}") for n, f in enumerate(table[1].payload)
            ),
        ),
    )
    owner = kernel(name=f"={HOSTILE}", table=table, slots=2, optimized_out=(f"@{HOSTILE}",))
    records = [Record(ticks(i), ticks(i + 1), i % 2, payload=(1, 2.0)) for i in range(9)]
    launch = pack_launch(owner, (1, 1, 1), 4, [Written([records])])
    host = HostSlice(name="=1+1", path="=1+1", thread=1, start=launch.host_start,
                     end=launch.host_end, payload={f"={HOSTILE}": 1})  # fmt: skip
    raw = run([owner, dataclasses.replace(owner, options={"signature": HOSTILE})], [launch], [host])
    raw.name, raw.machine = HOSTILE, {HOSTILE: HOSTILE}
    return raw


@pytest.fixture
def hostile(tmp_path: Path) -> Path:
    return Run(hostile_run()).save(tmp_path / "run.proton")


def on_terminal(width: int, *words: object) -> str:
    """What a command writes to a terminal of that many columns, both streams."""
    ours, theirs = pty.openpty()
    parts: list[bytes] = []
    reader = threading.Thread(target=read_all, args=(ours, parts))
    reader.start()
    environment = {"COLUMNS": str(width), "TERM": "xterm-256color"}
    done = processes.python(
        *VIEWER, *map(str, words), env=environment, stdin=theirs, stdout=theirs, stderr=theirs
    )
    os.close(theirs)
    reader.join()
    os.close(ours)
    assert done.returncode == 0
    return STYLE.sub("", b"".join(parts).decode().replace("\r\n", "\n"))


def read_all(terminal: int, parts: list[bytes]) -> None:
    """What is written to a terminal, until it has nobody left."""
    with contextlib.suppress(OSError):
        while part := os.read(terminal, 1 << 16):
            parts.append(part)


@dataclasses.dataclass
class Done:
    """What a command left: its streams are files without a width."""

    returncode: int
    stdout: str
    stderr: str


def in_pipes(*words: object, encoding: str = "utf-8") -> Done:
    streams = [io.TextIOWrapper(io.BytesIO(), encoding, write_through=True) for _ in range(2)]
    streams[1].reconfigure(errors="backslashreplace")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["proton-tile", *map(str, words)])
        patch.setattr(sys, "stdout", streams[0])
        patch.setattr(sys, "stderr", streams[1])
        with pytest.raises(SystemExit) as caught:
            cli.main()
    texts = [stream.buffer.getvalue().decode() for stream in streams]  # type: ignore[attr-defined]
    return Done(int(caught.value.code or 0), *texts)


def squeezed(text: str) -> str:
    """The text without what folding adds."""
    return re.sub(r"[\s│┃|]", "", text)


@pytest.mark.parametrize("width", [60, 80, 160])
def test_no_column_is_lost_at_any_width(tmp_path: Path, width: int) -> None:
    raw = random_run(21)
    long = dataclasses.replace(raw.kernels[0].scopes[0], path="a_long_path/" * 6 + "end")
    raw.kernels[0] = dataclasses.replace(raw.kernels[0], scopes=(long, *raw.kernels[0].scopes[1:]))
    whole = Run(raw)
    path = whole.save(tmp_path / "run.proton")
    shown = on_terminal(width, "stats", path, "--metric", "dur_ns")
    assert all(len(line) <= width for line in shown.splitlines() if "warning" not in line)
    table = whole.stats(metric="dur_ns")
    assert all(name in shown for name in ("kernel", "scope", *COLUMNS))
    if width > 80:  # in columns, where what folds is beside other cells
        return
    one_line = squeezed(shown)
    for row in table.to_dict("records"):
        shown_as = {name: squeezed(duration(row[name])) for name in TIMES}
        shown_as |= {"share": f"{row['share']:.1f}%", "count": str(row["count"])}
        names = squeezed(f"kernel{row['kernel']},scope{row['scope']}")
        rest = one_line[one_line.index(names) + len(names) :]
        for name in COLUMNS:  # some beside the names, the rest below
            _, found, rest = rest.partition(shown_as[name])
            assert found
    for command in ("summary", "list"):
        shown = on_terminal(width, command, path)
        for name in ("end", *(owner.name for owner in raw.kernels)):
            assert name in shown or name in squeezed(shown)


@pytest.mark.parametrize("width", [None, 60, 200])
def test_a_pipe_has_80_columns_or_as_many_as_it_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, width: int | None
) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    if width:
        monkeypatch.setenv("COLUMNS", str(width))
    raw = random_run(21)
    path = "".join(random.choices("abc本", k=300))
    scope: Scope = dataclasses.replace(raw.kernels[0].scopes[0], path=path)
    raw.kernels[0] = dataclasses.replace(raw.kernels[0], scopes=(scope, *raw.kernels[0].scopes[1:]))
    file = Run(raw).save(tmp_path / "run.proton")
    for command in ("stats", "summary", "list", "launches"):
        shown = in_pipes(command, file).stdout
        lines = [line for line in shown.splitlines() if "warning" not in line]
        assert max(map(cell_len, lines)) <= (width or 80)
        if width != 200 and command == "stats":  # else other columns are beside what is folded
            assert path in squeezed(shown)


@pytest.mark.parametrize(
    "words", [["summary"], ["list"], ["stats"], ["stats", "--format", "csv"],
              ["stats", "--by", "name", "--format", "json"], ["export"],
              *(["sql", "select * from slices", "--format", format]
                for format in ("table", "csv", "json"))], ids=" ".join
)  # fmt: skip
def test_names_never_steer_the_terminal(hostile: Path, words: list[str]) -> None:
    if words[0] == "export":  # columns of tables have names of payload values
        words = [words[0], str(hostile.with_suffix(".csv"))]
    done = in_pipes(words[0], hostile, *words[1:])
    assert done.returncode == 0
    text = done.stdout + done.stderr
    if words[0] == "export":
        text += hostile.with_suffix(".csv").read_text()
    assert "owned" in text
    assert not RAW.search(text)


def test_errors_never_steer_the_terminal(tmp_path: Path) -> None:
    raw = hostile_run()
    raw.kernels[0] = dataclasses.replace(raw.kernels[0], units=0)
    path = tmp_path / f"{HOSTILE.replace(chr(0), '')}.proton"
    done = in_pipes("list", path)
    assert done.returncode == 2
    assert not RAW.search(done.stderr)
    saved = Run(raw).save(tmp_path / "bad.proton")
    done = in_pipes("list", saved)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "units must lie in" in done.stderr
    assert not RAW.search(done.stderr)
    with pytest.raises(TraceFormatError) as caught:
        Run.load(saved)
    assert str(caught.value).isprintable()


def test_printable_text_is_left_alone() -> None:
    for text in ("load + store", "Bücher 本 🙂", "a\\x1b", "=1+1", ""):
        assert printable(text) == text
    assert printable("a\x1b\u202eb\ud800\n") == "a\\x1b\\u202eb\\ud800\\n"


@pytest.mark.parametrize("start", "=+-@\t\r")
def test_a_spreadsheet_gets_no_formula(tmp_path: Path, start: str) -> None:
    raw = run([kernel(name=f"{start}cmd|' /C calc'!A0", table=scopes(1))], [])
    raw.launches = [pack_launch(raw.kernels[0], (1, 1, 1), 1,
                                [Written([[Record(ticks(0), ticks(-1 + 3))]])])]  # fmt: skip
    raw.host = [HostSlice(name=f"{start}1+1", path=f"{start}1+1", thread=1,
                          start=raw.origin_ns - 500, end=raw.origin_ns)]  # fmt: skip
    whole = Run(raw)
    saved = whole.save(tmp_path / "run.proton")
    with open(whole.save(tmp_path / "run.csv"), newline="") as file:
        rows = list(csv.DictReader(file))
    stats = in_pipes("stats", saved, "--format", "csv").stdout
    rows += csv.DictReader(io.StringIO(stats))
    cells = [value for row in rows for value in row.values()]
    texts = [value for value in cells if not re.fullmatch(r"-?\d+(\.\d+)?", value)]
    assert any("calc" in value for value in texts)
    assert not [value for value in texts if value[:1] in ("=", "+", "-", "@", "\t", "\r")]
    assert rows[0]["start_ns"] == "-500"  # a number is none
    assert as_cells(whole.frame)["start_ns"].tolist() == whole.frame["start_ns"].tolist()
    assert cell("load") == "load"
    for query in (f'select 1 as "{start}1"', f'select 1 as "{start}1" where false'):
        head = in_pipes("sql", saved, query, "--format", "csv").stdout
        assert head.startswith(f"{cell(start + '1')}\n")


def test_columns_of_one_row_or_none_never_steer_the_terminal(hostile: Path) -> None:
    """Each form of a table has the names of its columns in a place of its own."""
    names = [f"\x1b[2J{n}\x9b" + n * "name" for n in range(12)]
    for count in (1, 2, 12):
        for rows in ("", " where false"):
            columns = ", ".join(f'{n} as "{name}"' for n, name in enumerate(names[:count]))
            done = in_pipes("sql", hostile, f"select {columns}{rows}")
            assert (done.returncode, RAW.findall(done.stdout)) == (0, [])
            assert done.stdout.count("\\x1b[2J") == count


@pytest.mark.parametrize("path", ["/dev/zero", "/dev/null", "fifo", "."])
def test_what_is_no_file_is_refused_at_once(tmp_path: Path, path: str) -> None:
    os.mkfifo(tmp_path / "fifo")
    for command in ("list", "summary", "stats"):
        done = in_pipes(command, tmp_path / path)
        assert (done.returncode, done.stderr.count("\n")) == (2, 1)
        assert "cannot be read" in done.stderr


@pytest.mark.parametrize("command", ["list", "summary", "stats"])
def test_standard_output_may_be_ascii(tmp_path: Path, command: str) -> None:
    raw = random_run(21)
    raw.kernels[0] = dataclasses.replace(raw.kernels[0], name="Größe 本")
    path = Run(raw).save(tmp_path / "run.proton")
    assert "Größe 本" in in_pipes(command, path).stdout
    done = in_pipes(command, path, encoding="ascii")
    assert done.returncode == 0
    assert "Gr\\xf6\\xdfe \\u672c" in done.stdout


@pytest.mark.parametrize(
    "words, closed, status, reason",
    [
        ("list {}", ["stdout"], 2, "standard output is closed"),
        ("stats {}", [], 2, "proton-tile: No space left"),  # its stdout is /dev/full
        ("export {} /dev/full --format csv", [], 2, "proton-tile: /dev/full: No space left"),
        ("summary {}", ["stderr"], 0, ""),
        ("export {} a.csv", ["stdout", "stderr"], 0, ""),
    ],
)
def test_standard_streams_may_be_closed_or_full(
    tmp_path: Path, words: str, closed: list[str], status: int, reason: str
) -> None:
    path = Run(random_run(21)).save(tmp_path / "run.proton")
    with open("/dev/full", "w") as full:
        streams = {"stdout": full.fileno()} if words.startswith("stats") else {}
        streams |= dict.fromkeys(closed, processes.CLOSED)
        done = processes.python(
            *VIEWER,
            *words.format(path).split(),
            cwd=tmp_path,
            env={"PYTHONPATH": str(Path(__file__).parents[2])},
            **streams,
        )
    lines = [line for line in done.stderr.splitlines() if "warning" not in line]
    assert (done.returncode, len(lines)) == (status, int(bool(reason))), done.stderr
    assert reason in "".join(lines)
    assert (tmp_path / "a.csv").exists() == ("a.csv" in words)


def test_without_the_package_perfetto_the_other_formats_work(tmp_path: Path) -> None:
    path = Run(random_run(4)).save(tmp_path / "run.proton")
    code = "import sys; sys.modules['perfetto'] = None; from proton.viewer.cli import main; main()"

    words = ["-c", code, "export", str(path)]
    done = subprocess.run(  # that imports all of it anew
        [sys.executable, *words, str(tmp_path / "a.pftrace")],
        capture_output=True,
        text=True,
        check=False,
    )
    lines = [line for line in done.stderr.splitlines() if "warning" not in line]
    assert (done.returncode, len(lines)) == (2, 1)
    assert "needs the package perfetto" in lines[0]
    assert "pip install perfetto" in lines[0]
    for name in ("a.json", "a.csv"):
        assert processes.python(*words, tmp_path / name).returncode == 0
    assert {p.name for p in tmp_path.iterdir()} == {"run.proton", "a.json", "a.csv"}


def test_every_command_that_shows_numbers_says_what_is_lost(tmp_path: Path) -> None:
    raw = random_run(21)
    raw.dropped_launches = 7
    path = Run(raw).save(tmp_path / "run.proton")
    lost = Run(raw).totals.lost
    assert lost
    for words in (
        ["stats", path],
        ["stats", path, "--format", "csv"],
        ["stats", path, "--format", "json"],
        ["summary", path],
        ["list", path],
        ["export", path, tmp_path / "a.csv"],
    ):
        done = in_pipes(*words)
        shown = done.stdout if words[0] == "summary" else done.stderr
        assert f"warning: {lost} of " in shown
        assert "warning: 7 launches left no records" in shown


def test_levels_with_nothing_in_view_take_no_lines(tmp_path: Path) -> None:
    """Deep nesting long before the first launch, such as a framework's, leaves no empty rows."""
    raw = random_run(6)
    early = raw.launches[0].host_start - 10**6
    thread = raw.launches[0].thread
    for depth in range(9):
        start, end = early + depth, early + 100 - depth
        nested = HostSlice(name="o", path="o", thread=thread, start=start, end=end, kind="operator")
        raw.host.append(nested)
    file = Run(raw).save(tmp_path / "run.proton")

    def height(*words: str) -> int:
        """The lines of the host's thread: behind its label, those without one."""
        lines = in_pipes("timeline", file, "--rows", "0", *words).stdout.splitlines()
        first = next(n for n, line in enumerate(lines) if line.startswith("host thread"))
        return 1 + sum(1 for _ in itertools.takewhile(lambda s: s[:1] in " ", lines[first + 1 :]))

    assert height() == 1  # one launch is in view
    assert height("--start", "-10000000") == 9


def test_list_counts_the_launches_of_each_variant(tmp_path: Path) -> None:
    owner = kernel(name="add")
    owners = [
        dataclasses.replace(owner, options={"signature": f"n: i32, BLOCK={size}"})
        for size in (256, 1024)
    ]
    launches = []
    for number in (0, 1, 0):
        launch = pack_launch(owner, (1, 1, 1), 1, [Written([[]])])
        launch.kernel = number
        launches.append(launch)
    path = Run(run([*owners, kernel(name="mul")], launches)).save(tmp_path / "run.proton")
    lines = in_pipes("list", path).stdout.splitlines()
    for name, times, size in (("add #1", "2 launches", 256), ("add #2", "1 launch", 1024)):
        (line,) = (line for line in lines if name in line)
        assert f"{times}, n: i32, BLOCK={size}" in line
    assert any("mul" in line and "0 launches" in line for line in lines)


def test_misspelled_options_name_the_right_one(tmp_path: Path) -> None:
    path = Run(random_run(4)).save(tmp_path / "run.proton")
    for option, hint in (("--by=kernle", "did you mean kernel?"), ("--sort=totl", "total?")):
        done = in_pipes("stats", path, option)
        assert done.returncode == 2
        assert hint in " ".join(done.stderr.replace("│", " ").split())


def test_files_for_other_tools_say_what_is_lost(tmp_path: Path) -> None:
    whole = Run(random_run(21))
    trace = json.loads(whole.save(tmp_path / "run.json").read_text())
    tables = json.loads(whole.save(tmp_path / "tables.json", "json").read_text())
    assert trace["otherData"]["warnings"] == tables["warnings"] == whole.loss_warnings() != []
    flat = json.loads(whole.save(tmp_path / "run.speedscope.json").read_text())
    assert flat["name"] == "; ".join([whole.name, *whole.loss_warnings()])


def test_a_run_of_nothing_has_tables_of_nothing(tmp_path: Path) -> None:
    for number, kernels in enumerate(([], [kernel(table=())])):
        path = Run(run(kernels, [])).save(tmp_path / f"{number}.proton")
        for command in ("list", "summary", "stats"):
            assert (in_pipes(command, path).returncode, in_pipes(command, path).stderr) == (0, "")
