"""The RUN lines of a file of `lit/`, as lit runs them, but in this process: a start of Python for
each tool takes longer than what the tools do.

Of a shell's syntax there is what the files have: pipes, `not`, `<`, `>`, `2>` and `2>&1`.
"""

import contextlib
import io
import re
import shlex
import sys
from collections.abc import Callable
from pathlib import Path

import filecheck.main

from proton.tools import opt

TOOLS: dict[str, Callable[[], object]] = {
    "proton-opt": opt.main,
    "filecheck": filecheck.main.main,
}


def run(file: Path, temporary: Path) -> tuple[bool, str]:
    """Whether each line of a file passes, and what the first that fails says."""
    lines = run_lines(file.read_text())
    assert lines, f"{file} has no RUN line"
    for line in lines:
        text = line.replace("%s", str(file)).replace("%t", str(temporary))
        passed, output = _run_line(text)
        if not passed:
            return False, f"{text}\n{output}"
    return True, ""


def run_lines(text: str) -> list[str]:
    """What stands behind RUN, as one line where it goes on behind a backslash."""
    joined = re.sub(r"\\\n\s*//\s*RUN:", " ", text)
    return re.findall(r"^\s*//\s*RUN:\s*(.*?)\s*$", joined, re.M)


def _run_line(text: str) -> tuple[bool, str]:
    words = shlex.shlex(text, posix=True, punctuation_chars="|<>&")
    words.whitespace_split = True
    words.commenters = ""
    commands: list[list[str]] = [[]]
    for word in words:
        if word == "|":
            commands.append([])
        else:
            commands[-1].append(word)
    passed, given, said = True, "", ""
    for command in commands:
        is_right, given, errors = _run_command(command, given)
        passed &= is_right
        said += errors
    return passed, given + said


def _run_command(words: list[str], given: str) -> tuple[bool, str, str]:
    """Whether a command ends as it is to, and what it says on both streams that go on."""
    out = io.StringIO()
    err: io.StringIO = io.StringIO()
    files: dict[int, str] = {}
    arguments: list[str] = []
    rest = iter(words)
    for word in rest:
        if word == "<":
            given = Path(next(rest)).read_text()
        elif word == ">":
            number = int(arguments.pop()) if arguments[-1:] == ["2"] else 1
            files[number] = next(rest)
        elif word == ">&":
            assert (arguments.pop(), next(rest)) == ("2", "1"), words
            err = out
        else:
            arguments.append(word)
    fails = arguments[0] == "not"
    status = _status(arguments[fails:], given, out, err)
    found = {1: out.getvalue(), 2: "" if err is out else err.getvalue()}
    for number, file in files.items():
        Path(file).write_text(found[number])
        found[number] = ""
    return (status != 0) == fails, found[1], found[2]


def _status(arguments: list[str], given: str, out: io.StringIO, err: io.StringIO) -> int:
    """The exit status of a tool that reads `given`."""
    before = sys.argv, sys.stdin
    sys.argv, sys.stdin = arguments, io.StringIO(given)
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            TOOLS[arguments[0]]()
            return 0
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    finally:
        sys.argv, sys.stdin = before
