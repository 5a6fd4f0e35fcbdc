"""Forks of a server (processes.py) end, and say what they do, as processes of Python's own do."""

import contextlib
import os
import pty
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import processes
from tests.tables import check_rows

ROOT = Path(__file__).parents[1]
SCRIPTS = {
    "argument": "import sys; print(sys.argv, __name__, __file__, sys.path[0])",
    "status": "import sys; sys.exit(7)",
    "large status": "import sys; sys.exit(256 + 3)",
    "text": "import sys; print('out'); sys.exit('why')",
    "error": "def f():\n    raise KeyError('lost')\nf()",
    "syntax": "def f(:",
    "end": "import atexit; atexit.register(print, 'end'); print('begin')",
    "thread": "import threading, time\ndef late():\n    time.sleep(0.05)\n    print(end)\n"
    "threading.Thread(target=late).start()\nend = 'late'",
    "death": "import os, signal; os.kill(os.getpid(), signal.SIGSEGV)",
    "interrupt": "import os, signal; os.kill(os.getpid(), signal.SIGINT)\nfor _ in range(10**9): 0",
    "library of C": "import ctypes; ctypes.CDLL(None).puts(b'printed')",
    "warning": "import warnings; warnings.warn('this'); warnings.warn('old', DeprecationWarning)",
    "folder": "import os; print(os.getcwd(), os.environ.get('OWN'), 'GONE' in os.environ)",
    "fork": "import os, sys\nif os.fork() == 0:\n    sys.exit(5)\n"
    "print(os.waitstatus_to_exitcode(os.wait()[1]))",
    "input": "import sys; print(sys.stdin.read())",
}


def check(folder: Path, arguments: list[str], environment: dict[str, str]) -> None:
    command = [sys.executable, *arguments]
    variables = {**os.environ, **environment}
    own = subprocess.run(
        command, cwd=folder, env=variables, capture_output=True, text=True, check=False,
        stdin=subprocess.DEVNULL,
    )  # fmt: skip
    fork = processes.python(*arguments, cwd=folder, env=environment)
    assert fork.returncode == own.returncode
    assert fork.stdout == own.stdout
    assert fork.stderr == own.stderr


def test_forks_are_as_processes_of_their_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    processes.python("-c", "")  # the server starts
    monkeypatch.setenv("SET_LATER", "1")
    for name, text in SCRIPTS.items():
        (tmp_path / f"{name.replace(' ', '_')}.py").write_text(text)
    files = sorted(file.name for file in tmp_path.iterdir())
    rows = [(tmp_path, [file, "-x", "y"], {"OWN": "1"}) for file in files]
    rows.append((tmp_path, ["-W", "error", "warning.py"], {}))
    rows.append((tmp_path, ["-m", "status"], {}))
    rows.append((tmp_path.parent, ["-m", f"{tmp_path.name}.argument", "a"], {}))
    rows.append((tmp_path, ["-m", "error"], {"PYTHONPATH": str(tmp_path)}))
    rows.append((tmp_path, ["-c", "import sys, os; print(sys.argv, os.environ['SET_LATER'])"], {}))
    check_rows(check, rows)


def check_streams(words: list[str], streams: dict[str, str], unbuffered: str) -> None:
    """Of what Python finds on its streams, and does when they take nothing: status and stderr."""
    ends = []
    for start in (started, processes.python):
        with contextlib.ExitStack() as stack:
            opened = {name: stack.enter_context(stream(of)) for name, of in streams.items()}
            done = start(*words, env={"PYTHONUNBUFFERED": unbuffered}, **opened)
            ends.append((done.returncode, done.stderr or "", done.stdout or ""))
    assert ends[0] == ends[1]


def started(*words: str, env: dict[str, str], **streams: int) -> "subprocess.CompletedProcess[str]":
    """A process of Python's own, whose closed streams its parent does not have, either."""
    numbers = {"stdin": 0, "stdout": 1, "stderr": 2}
    gone = [numbers[name] for name, of in streams.items() if of == processes.CLOSED]
    given = {name: of for name, of in streams.items() if of != processes.CLOSED}
    for name in ("stdout", "stderr"):
        given.setdefault(name, subprocess.PIPE)
    return subprocess.run(
        [sys.executable, *words], env={**os.environ, **env}, text=True, check=False, cwd=ROOT,
        preexec_fn=lambda: [os.close(number) for number in gone] and None,
        **{"stdin": subprocess.DEVNULL, **given},
    )  # fmt: skip


@contextlib.contextmanager
def stream(kind: str) -> Iterator[int]:
    """A descriptor: a full disk, a pipe whose reader has left, a terminal; or none."""
    if kind == "closed":
        yield processes.CLOSED
        return
    if kind == "terminal":
        other, number = pty.openpty()
    elif kind == "left":
        other, number = os.pipe()
        os.close(other)
        other = os.open(os.devnull, os.O_RDONLY)
    else:
        other, number = os.open(os.devnull, os.O_RDONLY), os.open("/dev/full", os.O_RDWR)
    try:
        yield number
    finally:
        os.close(number)
        os.close(other)


LOOK = (
    "import sys; print([s and (s.name, s.mode, s.encoding, s.errors, s.isatty(), s.line_buffering,"
    " s.write_through) for s in (sys.stdin, sys.stdout, sys.stderr)], file={})"
)


def test_streams_are_as_those_of_processes_of_their_own() -> None:
    rows: list[tuple[list[str], dict[str, str], str]] = []
    for unbuffered in ("", "1"):
        rows.append((["-c", LOOK.format("sys.stderr")], {}, unbuffered))
        rows += [
            (["-c", LOOK.format("sys.stderr")], {"stdin": kind, "stdout": kind}, unbuffered)
            for kind in ("closed", "full", "left", "terminal")
        ]
        rows += [(["-c", "print(1)"], {"stdout": kind}, unbuffered) for kind in ("full", "left")]
    rows.append((["-c", LOOK.format("sys.stdout")], {"stderr": "closed"}, ""))
    rows.append((["-c", LOOK.format("sys.stdout")], {"stderr": "full"}, ""))
    check_rows(check_streams, rows)


def test_what_does_not_end_is_ended() -> None:
    with pytest.raises(processes.Timeout, match=r"did not end in 0\.1 s"):
        processes.python("-c", "import time; time.sleep(60)", timeout=0.1)


def test_a_fork_that_dies_leaves_the_others() -> None:
    code = "import os; os.kill(os.getpid(), {})"
    assert processes.python("-c", code.format(int(signal.SIGKILL))).returncode == -signal.SIGKILL
    assert processes.python("-c", "print(1)").stdout == "1\n"
