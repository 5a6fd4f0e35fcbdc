"""`python -m proton.demo`, and `python -m proton` on scripts that end well and badly."""

import os
import re
import sys
from pathlib import Path
from subprocess import CompletedProcess, run

import pytest
from typer.testing import CliRunner

import proton
from proton import Run
from proton.__main__ import app
from proton.runtime.session import session
from tests import processes
from tests.perfetto_equality import assert_trace_equals_tables

ROOT = Path(__file__).parents[2]
LAUNCH = """
import sys
import numpy as np
from kernels.vector_add import vector_add
x = np.ones(100, np.float32)
vector_add(x, x)
print(__name__, sys.argv[1:])
"""


def python(folder: Path, *arguments: str | Path, **variables: str) -> CompletedProcess[str]:
    return processes.python(*arguments, cwd=folder, env=variables)


def refused(folder: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str]) -> str:
    """What `python -m proton` says of bad usage: all lines as one, without the frame. It runs in
    this process, since nothing else does."""
    monkeypatch.chdir(folder)
    done = CliRunner().invoke(app, arguments, env={"TERMINAL_WIDTH": "200"})
    assert done.exit_code == 2
    assert done.stdout == ""
    assert session.current() is None
    return " ".join(done.stderr.replace("│", " ").split())


def script(folder: Path, text: str) -> Path:
    path = folder / "work.py"
    path.write_text(LAUNCH + text)
    return path


def launches(path: Path) -> int:
    return proton.Run.load(path).totals.launches


def test_the_demo_runs_four_kernels_and_writes_a_trace(tmp_path: Path) -> None:
    done = python(tmp_path, "-m", "proton.demo")
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("PASS") == 4
    assert "lost records: 0" in done.stdout
    assert (tmp_path / "demo.pftrace").stat().st_size > 0
    run = proton.Run.load(tmp_path / "demo.proton")
    names = {kernel.name for kernel in run.kernels}
    assert names == {"add_kernel", "softmax_kernel", "layer_norm_kernel", "matmul_kernel"}
    for name in names:
        assert name in done.stdout
    hosts = set(run.frame.loc[run.frame["kind"] == "host", "scope"])
    assert {"vector add", "softmax/first launch", "matmul/check"} <= hosts


def test_a_script_runs_as_it_would_alone(tmp_path: Path) -> None:
    """... and the run's reader is named, where another package has the name that it had before."""
    (tmp_path / "beside").mkdir()
    (tmp_path / "beside" / "helper.py").write_text("VALUE = 42")
    path = script(tmp_path / "beside", "import helper; print(helper.VALUE)")
    other = tmp_path / "proton-viewer"
    other.write_text("#!/bin/python3\nfrom triton.profiler.viewer import main\nmain()\n")
    other.chmod(0o755)
    search = f"{tmp_path}:{os.environ['PATH']}"
    done = python(tmp_path, "-m", "proton", path, "--name", "x", "-m", PATH=search)
    assert done.returncode == 0, done.stderr
    assert f"proton-viewer on PATH is triton.profiler.viewer's ({other})" in done.stderr
    assert done.stdout == "__main__ ['--name', 'x', '-m']\n42\n"
    assert "add_kernel" in done.stderr
    assert launches(tmp_path / "work.proton") == 1


def test_options_reach_the_session(tmp_path: Path) -> None:
    path = script(tmp_path, "")
    options = "--strategy flush --capacity 2 --placement program --name mine -o a.proton -q"
    done = python(tmp_path, "-m", "proton", *options.split(), path)
    assert (done.returncode, done.stderr) == (0, "")
    run = proton.Run.load(tmp_path / "a.proton")
    assert run.name == "mine"
    assert run.kernels[0].strategy.value == "flush"
    assert run.kernels[0].options["placement"] == "program"
    assert run.totals.slices == 3


def test_all_options_of_a_session_can_be_given(tmp_path: Path) -> None:
    """The script prints what its session was started with."""
    options = "--every 3 --granularity warp_2 --clock-bits 64 --buffer global"
    options += " --sample-warps 0,4 --sample-programs 16 --compare-run-time -q"
    text = (
        "from proton.runtime.session import session\n"
        "found = session.current()\n"
        "print(found.instrumentation, found.options.compare_run_time)"
    )
    done = python(tmp_path, "-m", "proton", *options.split(), script(tmp_path, text))
    assert (done.returncode, done.stderr) == (0, "")
    *_, key = done.stdout.splitlines()
    for part in (
        "every=3",
        "granularity='warp_2'",
        "clock_bits=64",
        "buffer='global'",
        "sample_warps=(0, 4)",
        "sample_programs=16",
    ):
        assert part in key
    assert key.endswith(" True")


@pytest.mark.parametrize(
    "options, message",
    [
        ("--sample-warps 0;4", "numbers of warps are written as 0,4"),
        ("--sample-warps 99", "sample_warps must be numbers of warps from 0 to 31"),
        ("--granularity lane", "'lane' is not one of 'warp', 'warp_2'"),
        ("--buffer shared --strategy flush", "has no buffer in shared memory"),
        ("--clock-bits 48", "clock_bits must be one of"),
    ],
)
def test_options_that_there_are_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: str, message: str
) -> None:
    path = script(tmp_path, "")
    assert message in refused(tmp_path, monkeypatch, [*options.split(), str(path)])
    assert not (tmp_path / "work.proton").exists()


def test_the_suffix_picks_the_format(tmp_path: Path) -> None:
    done = python(tmp_path, "-m", "proton", "-o", "a.csv", script(tmp_path, ""))
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "a.csv").read_text().startswith("kind,kernel,")


def test_a_script_that_changes_its_folder_writes_where_it_was_started(tmp_path: Path) -> None:
    away = tmp_path / "away"
    away.mkdir()
    path = script(tmp_path, f"import os; os.chdir({str(away)!r})")
    for options in ([], ["-o", "a.csv"]):
        done = python(tmp_path, "-m", "proton", *options, path)
        assert done.returncode == 0, done.stderr
    assert launches(tmp_path / "work.proton") == 1
    assert (tmp_path / "a.csv").exists()
    assert not list(away.iterdir())


def test_a_module(tmp_path: Path) -> None:
    (tmp_path / "package").mkdir()
    script(tmp_path / "package", "")
    done = python(tmp_path, "-m", "proton", "-m", "package.work", "--flag")
    assert done.returncode == 0, done.stderr
    assert done.stdout == "__main__ ['--flag']\n"
    assert launches(tmp_path / "work.proton") == 1


def test_a_failing_script_keeps_its_traceback_and_its_run(tmp_path: Path) -> None:
    path = script(tmp_path, "def f(): raise KeyError('lost')\nf()")
    done = python(tmp_path, "-m", "proton", path)
    alone = python(tmp_path, path)
    assert done.returncode == alone.returncode == 1
    assert done.stderr.startswith(alone.stderr)
    assert launches(tmp_path / "work.proton") == 1


@pytest.mark.parametrize(
    "statement, status", [("sys.exit(7)", 7), ("sys.exit()", 0), ("sys.exit('why')", 1)]
)
def test_the_exit_status_is_kept(tmp_path: Path, statement: str, status: int) -> None:
    done = python(tmp_path, "-m", "proton", script(tmp_path, statement))
    assert done.returncode == status
    assert ("why" in done.stderr) == ("why" in statement)
    assert launches(tmp_path / "work.proton") == 1


@pytest.mark.parametrize(
    ("before", "after", "own"),
    [
        ("with proton.profile('mine', clock_bits=64) as run:", "", 1),
        ("proton.start('mine')\nif 1:", "run = proton.finalize()", 1),
        ("proton.start('mine')\nif 1:", "", None),  # left open: the end of the program ends it
    ],
)
def test_sessions_of_a_script_are_parts_of_its_run(
    tmp_path: Path, before: str, after: str, own: int | None
) -> None:
    says = "" if own is None else "assert len(run.launches) == 1, run\nassert run.name == 'mine'"
    text = (
        "import numpy as np, proton, proton.language as tl\n"
        "@proton.jit\n"
        "def fill(out, BLOCK: tl.constexpr):\n"
        "    tl.store(out + tl.arange(0, BLOCK), 1)\n"
        "out = np.zeros(64, np.int32)\n"
        "fill[(1,)](out, BLOCK=32)\n"
        f"{before}\n"
        "    with proton.scope('step'):\n"
        "        fill[(1,)](out, BLOCK=64)\n"
        f"{after}\n{says}\n"
        "with proton.scope('later'):\n"
        "    fill[(1,)](out, BLOCK=32)\n"
    )
    (tmp_path / "own.py").write_text(text)
    done = python(tmp_path, "-m", "proton", str(tmp_path / "own.py"))
    assert done.returncode == 0, done.stderr
    assert "lost;" not in done.stderr
    whole = Run.load(tmp_path / "own.proton")
    assert whole.name == "own"
    assert whole.launches["scope"].tolist() == ["", "step", "later"]
    assert whole.launches["variant"].tolist() == [1, 2, 1]
    assert (whole.launches["dur_ns"] > 0).all()
    host = whole.frame[whole.frame["kind"] == "host"]
    assert set(host["name"]) == {"step", "later"}
    compiled = whole.frame[whole.frame["kind"] == "compile"]
    assert compiled["scope"].tolist()[:2] == ["compile fill", "step/compile fill"]


def test_a_script_that_ends_no_session_of_its_own_fails_as_it_would_alone(tmp_path: Path) -> None:
    path = script(tmp_path, "import proton\nproton.finalize()")
    done = python(tmp_path, "-m", "proton", path)
    assert done.returncode == 1
    assert "no session is running; call proton.start first" in done.stderr
    assert launches(tmp_path / "work.proton") == 1


def test_a_script_without_scopes_shows_its_kernels(tmp_path: Path) -> None:
    text = (
        "import numpy as np, proton, proton.language as tl\n"
        "@proton.jit\n"
        "def fill(out, BLOCK: tl.constexpr):\n"
        "    tl.store(out + tl.program_id(0) * BLOCK + tl.arange(0, BLOCK), 1)\n"
        "out = np.zeros(1024, np.int32)\n"
        "for block in (256, 512, 256):\n"
        "    fill[(1024 // block,)](out, BLOCK=block)\n"
    )
    (tmp_path / "plain.py").write_text(text)
    done = python(tmp_path, "-m", "proton", str(tmp_path / "plain.py"))
    assert done.returncode == 0, done.stderr
    assert "fill #1" in done.stderr
    assert "3 launches, 10 programs, 0 slices" in done.stderr
    whole = Run.load(tmp_path / "plain.proton")
    assert whole.launches["grid"].tolist() == [(4, 1, 1), (2, 1, 1), (4, 1, 1)]
    assert whole.launches["variant"].tolist() == [1, 2, 1]
    options = [kernel.options["signature"] for kernel in whole.kernels]
    assert [text.rsplit(", ", 1)[1] for text in options] == ["BLOCK=256", "BLOCK=512"]
    kernels = whole.summary().kernels
    counts = zip(kernels["variant"], kernels["count"], strict=True)
    assert dict(counts) == {1: 2, 2: 1}
    assert_trace_equals_tables(whole, tmp_path / "plain.pftrace")


def test_what_is_measured_imports_no_tables(tmp_path: Path) -> None:
    """A quiet run that is kept as it is leaves its file where there is no pandas."""
    (tmp_path / "pandas.py").write_text("raise AssertionError('a third of a second')\n")
    path = os.pathsep.join([str(tmp_path), str(ROOT)])
    command = [sys.executable, "-m", "proton", "-q", "-o", "run.proton", script(tmp_path, "")]
    environment = {**os.environ, "PYTHONPATH": path}
    done = run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert launches(tmp_path / "run.proton") == 1


def test_a_disabled_profiler_only_runs_the_script(tmp_path: Path) -> None:
    path = script(tmp_path, "")
    done = python(tmp_path, "-m", "proton", path, PROTON_PROFILE_DISABLE="1")
    assert done.returncode == 0, done.stderr
    assert "nothing was recorded" in done.stderr
    assert not (tmp_path / "work.proton").exists()


@pytest.mark.parametrize(
    "arguments, complaint",
    [
        (["--nme", "x", "work.py"], "No such option: --nme"),
        (["-o", "a.txt", "work.py"], "the suffix must be one of"),
        (["-o", "nowhere/a.proton", "work.py"], "is not a folder"),
        (["-o", "folder.proton", "work.py"], "folder.proton is a folder"),
        (["--strategy", "all", "work.py"], "'all' is not one of"),
        (["--capacity", "99999999999", "work.py"], "capacity must lie in"),
        (["-m", "absent.module"], "there is no module absent.module"),
        ([], "Missing argument 'SCRIPT'"),
    ],
)
def test_bad_usage_is_refused_before_anything_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], complaint: str
) -> None:
    script(tmp_path, "")
    (tmp_path / "folder.proton").mkdir()
    assert complaint in refused(tmp_path, monkeypatch, arguments)


@pytest.mark.parametrize("output", ["old.proton", "new.proton"])
def test_what_may_not_be_written_is_refused_before_anything_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, output: str
) -> None:
    script(tmp_path, "")
    (tmp_path / "old.proton").touch()
    target = tmp_path / output if output == "old.proton" else tmp_path
    real = os.access  # the system allows root all
    monkeypatch.setattr(os, "access", lambda path, mode: Path(path) != target and real(path, mode))
    complaint = refused(tmp_path, monkeypatch, ["-o", output, "work.py"])
    assert f"{output} may not be written" in complaint


def test_bad_usage_is_an_exit_status(tmp_path: Path) -> None:
    done = python(tmp_path, "-m", "proton", "absent.py")
    assert (done.returncode, done.stdout) == (2, "")
    assert "there is no file absent.py" in done.stderr


def test_help_has_examples() -> None:
    done = python(ROOT, "-m", "proton", "--help")
    assert done.returncode == 0
    assert "python -m proton train.py" in done.stdout
    assert "pip install 'proton-tile[cupti]'" in re.sub(r"[\s│]+", " ", done.stdout)
