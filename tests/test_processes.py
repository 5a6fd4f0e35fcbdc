"""Forks of a server (processes.py) end, and say what they do, as processes of Python's own do."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests import processes
from tests.tables import check_rows

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


def test_what_does_not_end_is_ended() -> None:
    with pytest.raises(processes.Timeout, match=r"did not end in 0\.1 s"):
        processes.python("-c", "import time; time.sleep(60)", timeout=0.1)


def test_a_fork_that_dies_leaves_the_others() -> None:
    code = "import os; os.kill(os.getpid(), {})"
    assert processes.python("-c", code.format(int(signal.SIGKILL))).returncode == -signal.SIGKILL
    assert processes.python("-c", "print(1)").stdout == "1\n"
