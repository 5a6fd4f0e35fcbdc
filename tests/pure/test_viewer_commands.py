"""Every command of `proton-tile` on every odd run, in this process."""

import importlib.util
import io
import json
import shutil
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import urlopen

import numpy as np
import pytest
from synthetic import Record, Written, gpu_run, kernel, pack_launch, random_run, run, scopes, ticks

from proton.base.errors import ProtonError
from proton.trace.model import Clock, RawRun, Scope
from proton.viewer import Run, cli
from proton.viewer.cli.app import app

RUN, OTHER, OUT = "RUN", "OTHER", "OUT"
SKIPPED = {"diff", "check", "history", "measure", "open", "samples"}  # have tests of their own
COMMANDS = (
    ("summary", RUN),
    ("list", RUN),
    ("launches", RUN),
    ("summary", RUN, "--format", "json"),
    ("list", RUN, "--format", "json"),
    ("stats", RUN),
    ("stats", RUN, "--tree"),
    ("metrics", RUN),
    ("-m", "time/us,count", RUN),
    (RUN,),
    ("timeline", RUN),
    ("timeline", RUN, "--scope", "slice|\u540d", "--sm", "0", "--warp", "0", "--launch", "0"),
    ("timeline", RUN, "-o", f"{OUT}.svg"),
    ("timeline", RUN, "-o", f"{OUT}.html"),
    ("flame", RUN),
    ("flame", RUN, "-o", f"{OUT}.svg"),
    ("hist", RUN),
    ("hist", RUN, "-o", f"{OUT}.svg"),
    ("heatmap", RUN),
    ("heatmap", RUN, "--by", "program", "-o", f"{OUT}.svg"),
    ("occupancy", RUN),
    ("occupancy", RUN, "--format", "json"),
    ("occupancy", RUN, "-o", f"{OUT}.svg"),
    ("analyze", RUN),
    ("explain", RUN),
    ("explain", RUN, "--json"),
    ("explain", RUN, "--against", OTHER),
    ("source", RUN),
    ("source", RUN, "--json"),
    ("source", RUN, "--by", "warp", "-o", f"{OUT}.html"),
    *((name, RUN, "--json") for name in ("summary", "list", "launches", "stats", "occupancy")),
    *((name, RUN, "--json") for name in ("timeline", "flame", "hist", "heatmap", "metrics")),
    ("analyze", RUN, "--launch", "0", "--program", "0", "--format", "json"),
    ("merge", RUN, OTHER, "-o", f"{OUT}.proton"),
    ("export", RUN, f"{OUT}.csv"),
    ("export", RUN, f"{OUT}.json"),
    ("export", RUN, f"{OUT}.speedscope.json"),
    ("export", RUN, f"{OUT}.tables", "--format", "json"),
)
if importlib.util.find_spec("matplotlib"):
    COMMANDS += (("timeline", RUN, "-o", f"{OUT}.png"), ("flame", RUN, "-o", f"{OUT}.png"))
if importlib.util.find_spec("pyarrow"):
    COMMANDS += (("export", RUN, f"{OUT}.parquet"),)
if importlib.util.find_spec("duckdb"):
    COMMANDS += (("sql", RUN), ("sql", RUN, "select count(*) from slices"))


def empty() -> RawRun:
    """A run of nothing."""
    none = Clock(ticks=np.zeros(0, np.uint64), host_ns=np.zeros(0, np.int64))
    return RawRun(name="empty", origin_ns=1, origin_unix_ns=1, clock=none)


def one_slice(table: tuple[Scope, ...], copies: int = 1) -> RawRun:
    """A run of one slice a kernel; several kernels have one name."""
    owner = kernel(name="Σ核 <b>&\x1b[31m", table=table)
    launches = [
        pack_launch(owner, (1, 1, 1), 4, [Written([[Record(ticks(5), ticks(9))]])])
        for _ in range(copies)
    ]
    for number, launch in enumerate(launches):
        launch.kernel = number
    return run([owner] * copies, launches)


def odd_runs() -> dict[str, Callable[[], RawRun]]:
    """What a command may be given, by what makes it."""
    unicode = (Scope(name="λ/名前 ]]></script>", path="λ/名前 ]]></script>", file="文.py", line=3),)
    return {
        "empty": empty,
        "one slice": lambda: one_slice(scopes(1)),
        "unicode, two kernels of one name": lambda: one_slice(unicode, 2),
        "losses, CPU": lambda: random_run(5, crossing=True),
        "losses, GPU": lambda: gpu_run(6, mixed=True),
    }


def call(monkeypatch: pytest.MonkeyPatch, *words: str) -> tuple[int, str, str]:
    """Exit status and both streams of one command, on streams that take ASCII alone, as those of
    LC_ALL=C do."""
    buffers = io.BytesIO(), io.BytesIO()
    out, err = (io.TextIOWrapper(buffer, "ascii", "backslashreplace") for buffer in buffers)
    monkeypatch.setattr(sys, "argv", ["proton-tile", *words])
    monkeypatch.setattr(sys, "stdout", out)
    monkeypatch.setattr(sys, "stderr", err)
    status: object = 0
    try:
        cli.main()
    except SystemExit as exit_:
        status = exit_.code or 0
    out.flush()
    err.flush()
    assert isinstance(status, int)
    return status, buffers[0].getvalue().decode(), buffers[1].getvalue().decode()


def filled(words: tuple[str, ...], file: Path, out: Path) -> list[str]:
    """The words of a command with the names of files."""
    names = {RUN: str(file), OTHER: str(file.with_name("other.proton"))}
    return [names.get(word) or word.replace(OUT, str(out)) for word in words]


def test_the_table_has_every_command(monkeypatch: pytest.MonkeyPatch) -> None:
    call(monkeypatch, "--version")  # has each command add itself
    names = {c.name or c.callback.__name__ for c in app.registered_commands if c.callback}
    assert names - SKIPPED - {"sql"} == {words[0] for words in COMMANDS} - {"-m", RUN, "sql"}


@pytest.mark.parametrize("name", odd_runs())
def test_every_command_stands_odd_runs(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At 60 columns nothing is wider or has a traceback, and losses are told."""
    file = Run(odd_runs()[name]()).save(tmp_path / "run.proton")
    another = odd_runs()[name]()
    another.origin_unix_ns += 1
    Run(another).save(tmp_path / "other.proton")
    lost = Run.load(file).totals.lost
    monkeypatch.setenv("COLUMNS", "60")
    for words in COMMANDS:
        status, out, err = call(monkeypatch, *filled(words, file, tmp_path / "out"))
        assert status == 0, (words, err)
        assert "\x1b" not in out + err, words
        if lost:
            assert "records lost" in out + err, words
        is_json = words[-1] in ("json", "--json")
        if is_json and words[0] != "export":
            json.loads(out)
        if not is_json and words[0] != "sql":
            assert "_ns" not in out, (words, "times have units")
            shown = [line for line in out.splitlines() if "warning" not in line]
            assert max(map(len, shown), default=0) <= 60 or "\\u" in out, words


def newer(file: Path) -> bytes:
    """The file as if a newer Proton had written it."""
    out = io.BytesIO()
    with zipfile.ZipFile(file) as old, zipfile.ZipFile(out, "w") as new:
        for name in old.namelist():
            data = old.read(name)
            if name == "run.json":
                data = json.dumps(json.loads(data) | {"schema": 99}).encode()
            new.writestr(name, data)
    return out.getvalue()


@pytest.mark.parametrize("how", ["truncated", "newer"])
def test_every_command_refuses_a_bad_file_in_one_line(
    how: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = Run(random_run(5)).save(tmp_path / "run.proton")
    whole, bad = file.read_bytes(), tmp_path / "bad.proton"
    bad.write_bytes(newer(file) if how == "newer" else whole[: len(whole) // 2])
    for words in COMMANDS:
        out = tmp_path / "none"
        status, said, err = call(monkeypatch, *filled(words, bad, out))
        assert (status, said, err.count("\n")) == (2, "", 1), words
        assert not list(tmp_path.glob("none*")), words


def test_every_command_ends_quietly_when_nobody_reads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Closed(io.RawIOBase):
        def writable(self) -> bool:
            return True

        def write(self, data: object) -> int:
            raise BrokenPipeError(32, "Broken pipe")

    file = Run(random_run(5)).save(tmp_path / "run.proton")
    for words in COMMANDS:
        filled_words = filled(words, file, tmp_path / "out")
        if any(OUT in word for word in words):
            continue
        err = io.StringIO()
        monkeypatch.setattr(sys, "argv", ["proton-tile", *filled_words])
        monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(io.BufferedWriter(Closed()), "utf-8"))
        monkeypatch.setattr(sys, "stderr", err)
        with pytest.raises(SystemExit):
            cli.main()
        assert "Traceback" not in err.getvalue(), words


def numbers(out: str) -> list[list[str]]:
    """The words of the lines of a table that have numbers."""
    return [line.split() for line in out.replace("|", " ").splitlines() if "." in line]


def test_hatchet_files_mean_what_they_mean_to_triton(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def frame(name: str, inner: list[object], metrics: object = None) -> dict[str, object]:
        shown = {"name": name, "type": "function"}
        return {"frame": shown, "metrics": metrics or {}, "children": inner}

    work = {"time (ns)": 2e6, "count": 4, "flops16": 4e9, "bytes": 1e6, "device_id": "0"}
    matmul = frame("matmul", [], work)
    add = frame("add", [], {"time (ns)": 5e5, "count": 1})
    file = tmp_path / "a.hatchet"
    file.write_text(json.dumps([frame("ROOT", [frame("/x/f.py:3@go", [matmul, add])]), {}]))
    words = ("-m", "time/ms,avg_time/us,tflop16/s,gbyte/s", "-f", "function_line", str(file))
    status, out, err = call(monkeypatch, *words)
    assert (status, err) == (0, "")
    rows = {words[-1]: words[:-1] for words in numbers(out)}
    assert rows["ROOT"] == rows["go@3"] == ["2.500", "500.000", "1.600", "0.400"]
    assert rows["matmul"] == ["2.000", "500.000", "2.000", "0.500"]
    assert "add" not in call(monkeypatch, str(file), "-e", "^add$")[1]
    # A threshold is a value of the first metric, by what a frame has with all inside.
    _, out, _ = call(monkeypatch, str(file), "-m", "Time/MS", "-t", "0.6", "--print_sorted")
    assert {words[-1]: words[0] for words in numbers(out)} == {
        "ROOT": "2.500",
        "/x/f.py:3@go": "2.500",
        "matmul": "2.000",
    }
    _, out, _ = call(monkeypatch, str(file), "-m", "time,time/%,count/%")
    rows = {words[-1]: words[:-1] for words in numbers(out)}
    assert rows["add"] == ["500000.000", "20.000", "20.000"]
    # The difference of averages is that, and not the average of a difference.
    more = frame("matmul", [], {**work, "time (ns)": 8e6, "count": 8})
    (tmp_path / "more.hatchet").write_text(
        json.dumps([frame("ROOT", [frame("/x/f.py:3@go", [more])]), {}])
    )
    words = ("-m", "avg_time/us,gbyte/s,time/s", "-diff", str(file), str(tmp_path / "more.hatchet"))
    rows = {words[-1]: words[:-1] for words in numbers(call(monkeypatch, *words)[1])}
    assert rows["matmul"] == ["500.000", "-0.375", "0.00600"]
    assert rows["add"] == ["-500.000", "-0.00050"]  # of bytes neither file says any
    assert "matmul" not in call(monkeypatch, str(file), "-d", "1")[1]
    shutil.copy(file, tmp_path / "b.hatchet")
    _, out, _ = call(monkeypatch, "-m", "count", "-diff", str(tmp_path / "b.hatchet"), str(file))
    assert [words[0] for words in numbers(out)] == ["0.000"] * 4
    status, _, err = call(monkeypatch, "-m", "tflops", str(file))
    assert (status, "did you mean tflop16/s?" in err) == (2, True)


@pytest.mark.parametrize("offline", [False, True])
def test_open_hands_the_trace_to_perfettos_page_and_nothing_else(
    offline: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = importlib.import_module("proton.viewer.cli.commands.open")
    monkeypatch.setattr(command, "PORT", 0)
    trace = Run(random_run(5)).save(tmp_path / command.TRACE)
    (tmp_path / "secret").write_text("private")
    ui = command.ui_folder() if offline else None
    server = command.serve(trace, ui)
    try:
        page, _, here = command.address_of(server).partition("#!/?url=")
        assert page == (f"{here.rpartition('/')[0]}/index.html" if offline else f"{command.UI}/")
        if not offline:
            monkeypatch.setattr(command, "PORT", server.server_address[1])
            with pytest.raises(ProtonError, match="is taken"):
                command.serve(trace, None)
        with urlopen(here) as answer:
            assert answer.read() == trace.read_bytes()
            assert answer.headers["Access-Control-Allow-Origin"] == command.UI
        assert server.fetched.wait(0 if offline else 10) is not offline
        for path in ("/../secret", "/%2e%2e/secret", "/secret"):
            with pytest.raises(HTTPError):
                urlopen(here.rpartition("/")[0] + path)
        if offline:
            with urlopen(page) as answer:
                assert b"Perfetto" in answer.read()
    finally:
        server.shutdown()
        server.server_close()


def test_what_is_missing_names_the_extra(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    file = Run(random_run(5)).save(tmp_path / "run.proton")
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    for words, extra in (
        (("timeline", RUN, "-o", f"{OUT}.png"), "plot"),
        (("export", RUN, f"{OUT}.parquet"), "parquet"),
        (("sql", RUN), "sql"),
    ):
        status, _, err = call(monkeypatch, *filled(words, file, tmp_path / "out"))
        assert (status, err.count("\n")) == (2, 1)
        assert f"pip install 'proton-tile[{extra}]'" in err
