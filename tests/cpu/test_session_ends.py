"""Launches at the edge of a session (in threads, in forked processes, at the end of a process):
each is in the run, or counted in it, or said to be lost."""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import proton
import proton.language as tl
from proton.runtime.session import recording, session
from tests import processes

LONG = 100_000_000  # turns, a tenth of a second and more
HEAD = """
import atexit, os, sys, threading, time
import numpy as np
import proton, proton.language as tl

@proton.jit
def work(x):
    with proton.scope("work"):
        tl.store(x, 1.0)

x = np.zeros(1, np.float32)
work[(1,)](x)
"""


@proton.jit
def turn(x, n):
    with proton.scope("turn"):
        v = tl.load(x)
        for _i in range(n):
            v = v * 1664525 + 1
            v = v ^ (v >> 13)
        tl.store(x, v)


def launch(n: int) -> None:
    turn[(1,)](np.ones(1, np.int32), n)


def launching(n: int) -> threading.Thread:
    """A thread that is inside of a launch."""
    current = session.current()
    assert current is not None
    before = current.begun
    thread = threading.Thread(target=launch, args=(n,))
    thread.start()
    while current.begun == before:
        time.sleep(0.001)
    return thread


def counted(run: Any) -> tuple[int, int]:
    return run.totals.launches, run.totals.dropped_launches


def test_the_end_waits_for_launches_of_other_threads() -> None:
    launch(1)
    with proton.profile() as run:
        launch(1)
        threads = [launching(LONG) for _ in range(2)]
    assert counted(run) == (3, 0)
    assert run.totals.partial == 0
    for thread in threads:
        thread.join()
    launch(1)
    assert counted(run) == (3, 0)


def test_an_interrupt_ends_the_wait_and_the_launch_is_counted(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(recording, "PATIENCE_S", 0.01)
    proton.start()
    launch(1)
    thread = launching(10 * LONG)
    threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT)).start()
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may have it ignored
    try:
        run = proton.finalize()
    finally:
        signal.signal(signal.SIGINT, before)
    assert thread.is_alive()
    assert counted(run) == (1, 1)
    assert "1 launch left no records: they still ran when the session ended" in str(run.summary())
    assert "waits for 1 launch in other threads" in capsys.readouterr().err
    with proton.profile() as second:  # it is no part of this one either
        launch(1)
    assert counted(second) == (1, 0)
    thread.join()


def test_a_signals_handler_may_end_the_session_within_a_launch() -> None:
    """It runs in the thread that launches, which it cannot wait for."""
    proton.start()
    recorder = session.recorder_of("cpu")
    recorded = recorder.begin(kernel_with_records(), (1, 1, 1))
    run = proton.finalize()
    recorder.end(recorded)
    assert counted(run) == (1, 1)


def kernel_with_records() -> Any:
    kernel = turn[(1,)](np.ones(1, np.int32), 1)
    assert kernel.metadata["profile"] is not None
    return kernel


def test_launches_of_forked_processes_are_counted(tmp_path: Path) -> None:
    script = (
        HEAD
        + """
def fork(count):
    pid = os.fork()
    if not pid:
        for _ in range(count):
            work[(1,)](x)
        if count == 3:
            fork(5)
            try:
                proton.finalize()
            except proton.ProfileError as problem:
                print(problem)
            with proton.profile("own") as run:
                work[(1,)](x)
            print(run.name, run.totals.launches)
        sys.stdout.flush()
        os._exit(0)
    os.waitpid(pid, 0)

with proton.profile("forks") as run:
    work[(1,)](x)
    fork(3)
    fork(4)
    leaves = os.fork()
    if leaves:
        os.waitpid(leaves, 0)
if not leaves:
    os._exit(0)
fork(7)
print(run.totals.launches, run.totals.dropped_launches)
print(run.summary().warnings)
run.save(sys.argv[1])
print(proton.Run.load(sys.argv[1]).summary().warnings == run.summary().warnings)
"""
    )
    done = python(tmp_path, script, "forks.proton")
    assert (done.returncode, done.stderr) == (0, "")
    refused, own, totals, warning, loaded = done.stdout.splitlines()
    assert refused.startswith("session 'forks' is that of the process that forked this one")
    assert own == "own 1"
    assert totals == "1 12"
    assert "12 launches left no records: they were made by forked processes" in warning
    assert loaded == "True"


def python(folder: Path, script: str, *arguments: str, **variables: str) -> Any:
    path = folder / "script.py"
    path.write_text(script)
    return processes.python(path, *arguments, cwd=folder, env=variables)


def test_a_session_that_is_never_ended_says_so(tmp_path: Path) -> None:
    script = (
        HEAD
        + """
proton.start("open")
work[(1,)](x)
if os.fork() == 0:
    sys.exit()  # the child ends as its parent does, and has nothing to say
os.wait()
work[(1,)](x)
"""
    )
    done = python(tmp_path, script)
    assert done.returncode == 0
    assert done.stderr == (
        "proton: session 'open' was never ended: the records of 2 launches are lost; call "
        "proton.finalize(), and save the run that it gives\n"
    )
    assert python(tmp_path, script + "proton.finalize()").stderr == ""
    assert python(tmp_path, script, PROTON_PROFILE_DISABLE="1").stderr == ""


# python -m proton


def profiled(folder: Path, script: str, *options: str, name: str = "script") -> tuple[Any, Any]:
    """(the process, the run that it left)"""
    path = folder / f"{name}.py"
    path.write_text(HEAD + script)
    done = processes.python("-m", "proton", *options, path.name, cwd=folder)
    return done, proton.Run.load(folder / f"{name}.proton")


def test_the_name_of_a_program_never_steers_the_terminal(tmp_path: Path) -> None:
    done, run = profiled(tmp_path, "", name="a\x1b]0;owned\x07[red]")
    assert (done.returncode, run.totals.launches) == (0, 1)
    assert f"wrote {tmp_path}/a\\x1b]0;owned\\x07[red].proton\n" in done.stderr
    assert "\x1b" not in done.stdout + done.stderr


LATE = """
def late(count, delay=0.3):
    time.sleep(delay)
    for _ in range(count):
        work[(1,)](x)

os.chdir(sys.argv[0] and "/")
threading.Thread(target=late, args=(2,)).start()
from concurrent.futures import ThreadPoolExecutor
pool = ThreadPoolExecutor(2)
pool.submit(late, 4)
atexit.register(late, 8, 0)
threading.Thread(target=late, args=(100, 60), daemon=True).start()
if os.fork() == 0:
    work[(1,)](x)
    sys.exit()
os.wait()
raise {ends}
"""


@pytest.mark.parametrize(
    ("ends", "status"), [("SystemExit(3)", 3), ("KeyError('why')", 1), ("SystemExit", 0)]
)
def test_all_of_a_program_is_in_its_run(tmp_path: Path, ends: str, status: int) -> None:
    """Its threads, what it does at its end, wherever it went; a child adds nothing but a count."""
    done, run = profiled(tmp_path, LATE.format(ends=ends))
    assert done.returncode == status, done.stderr
    assert counted(run) == (1 + 2 + 4 + 8, 1 + 8), "a child that is left to end does so, too"
    assert done.stderr.count(f"wrote {tmp_path / 'script.proton'}") == 1
    assert "9 launches left no records: they were made by forked processes" in done.stderr
    assert ("KeyError" in done.stderr) == ("KeyError" in ends)


def test_a_run_that_cannot_be_saved_at_the_end_is_a_failure(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    path = tmp_path / "script.py"
    path.write_text(HEAD + "print('printed')\nimport shutil\nshutil.rmtree('out')\n")
    done = processes.python("-m", "proton", "-o", "out/run.proton", path, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (1, "printed\n")
    missing = f"{tmp_path / 'out' / 'run.proton'}: No such file or directory"
    assert f"the run was not saved: {missing}\n" in done.stderr


def test_a_process_that_has_loaded_nothing_else_shows_its_run(tmp_path: Path) -> None:
    """It is a new one: those of `processes` have modules that others imported."""
    program = tmp_path / "prog.py"
    program.write_text(HEAD)
    command = [sys.executable, "-m", "proton", str(program)]
    environment = {**os.environ, "PYTHONPATH": str(processes.ROOT)}
    found = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert found.returncode == 0
    assert "1 launch" in found.stderr
    assert "Traceback" not in found.stderr


def test_a_run_without_launches_says_that_none_was_recorded(tmp_path: Path) -> None:
    """They may have been made: `--every-launch` leaves out the first ones."""
    for every, count in (("3", 1), ("4", 0)):
        done, run = profiled(tmp_path, "work[(1,)](x)\n" * 2, "--every-launch", every)
        assert (done.returncode, run.totals.launches) == (0, count), done.stderr
        said = "no launch of a kernel of Proton was recorded\n"
        assert (said in done.stderr) == (count == 0), done.stderr
