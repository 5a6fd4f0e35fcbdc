"""Python in processes of their own, without starting it for each: a server that has imported what
scripts import forks for every one.

A call is as `subprocess.run([sys.executable, *arguments], ...)`: the fork has its own arguments,
environment, folder, streams and `__main__`, ends as the interpreter does (threads, `atexit`, exit
status, signals), and what ends it ends nothing else. What it has not is a fresh `sys.modules`: what
is about imports starts Python.
"""

import array
import atexit
import ctypes
import functools
import gc
import io
import os
import runpy
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import types
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import IO, Any, NoReturn

import pytest

ROOT = Path(__file__).parents[1]
_STREAMS = ("<stdin>", "<stdout>", "<stderr>")
_OLD = (sys.stdin, sys.stdout, sys.stderr)
CLOSED = -1  # a stream that the process does not have
_NO_FLUSH = 120  # the interpreter's exit status where what is left cannot be written
_PR_SET_PDEATHSIG = 1  # of Linux
_WORD = 8  # bytes of a number in an answer


class Timeout(Exception):
    """A process did not end in its time."""


def python(
    *arguments: str | Path,
    cwd: str | Path = ROOT,
    env: Mapping[str, str] | None = None,
    timeout: float = 120,
    stdout: int | None = None,
    stderr: int | None = None,
    stdin: int | None = None,
) -> "subprocess.CompletedProcess[str]":
    """What Python leaves that is started with arguments: `script.py ...`, `-m module ...` or
    `-c code ...`, behind any `-W action`. The environment is this process's and what `env` has.
    Streams are descriptors or CLOSED; what is written to others is returned. Raises Timeout."""
    words = [os.fspath(argument) for argument in arguments]
    given = (stdin, stdout, stderr)
    closed = "".join(str(number) for number, stream in enumerate(given) if stream == CLOSED)
    request = _pack(closed, os.fspath(cwd), words, {**os.environ, **(env or {})})
    with socket.socket(socket.AF_UNIX) as server:
        with open(os.devnull) as nothing, _file() as out, _file() as err:
            server.connect(_server())
            own = [stream.fileno() for stream in (nothing, out, err)]
            passed = [o if g in (None, CLOSED) else g for g, o in zip(given, own, strict=True)]
            files = array.array("i", [number for number in passed if number is not None])
            server.sendmsg([b"\n"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, files)])
            server.sendall(request)
            server.shutdown(socket.SHUT_WR)
            pid = _number(server)
            server.settimeout(timeout)
            try:
                status = os.waitstatus_to_exitcode(_number(server))
            except TimeoutError:
                os.kill(pid, signal.SIGKILL)
                raise Timeout(f"{words} did not end in {timeout} s") from None
            streams = [_text(stream) for stream in (out, err)]
    return subprocess.CompletedProcess([sys.executable, *words], status, *streams)


def _file() -> IO[bytes]:
    return tempfile.TemporaryFile()


def _text(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode()


def _number(server: socket.socket) -> int:
    """A number that the server sends."""
    found = b""
    while len(found) < _WORD:
        more = server.recv(_WORD - len(found))
        assert more, "the server of processes ended"
        found += more
    return int.from_bytes(found, "little")


def _pack(closed: str, folder: str, arguments: list[str], environment: Mapping[str, str]) -> bytes:
    """A request as bytes; none of its strings has a NUL, since no process could be given one."""
    variables = [f"{name}={value}" for name, value in environment.items()]
    text = "\0".join([closed, folder, str(len(arguments)), *arguments, *variables])
    return text.encode(errors="surrogateescape")


def _unpack(request: bytes) -> tuple[str, str, list[str], dict[str, str]]:
    """(the numbers of closed streams, folder, arguments, environment) of a request."""
    closed, folder, count, *rest = request.decode(errors="surrogateescape").split("\0")
    arguments, variables = rest[: int(count)], rest[int(count) :]
    return closed, folder, arguments, dict(variable.split("=", 1) for variable in variables)


@functools.cache
def _server() -> str:
    """The socket of a server, which ends when this process does."""
    folder = tempfile.mkdtemp(prefix="proton-processes-")
    path = os.path.join(folder, "s")  # a socket's name has 107 letters
    code = f"from tests.processes import serve; serve({path!r})"
    # Threads of numpy's would not be in the forks.
    search = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
    environment = {**os.environ, "PYTHONPATH": search, "OPENBLAS_NUM_THREADS": "1"}
    server = subprocess.Popen(
        [sys.executable, "-c", code], cwd=ROOT, env=environment, stdout=subprocess.PIPE
    )
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    atexit.register(server.terminate)
    assert server.stdout is not None
    assert server.stdout.readline() == b"ready\n", "the server of processes did not start"
    return path


# In the server


def serve(path: str) -> None:
    """Forks for each call, until the process that started this one ends."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
    _prepare()
    found = [entry for entry in sys.path if entry not in ("", str(ROOT))]
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for those who wait
    assert threading.active_count() == 1, "threads would not be in the forks"
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(path)
        server.listen(64)
        print("ready", flush=True)
        while True:
            client, _ = server.accept()
            with client:
                if os.fork() == 0:
                    server.close()
                    _answer(client, found)


def _prepare() -> None:
    """Imports what scripts import, and compiles a kernel, so that the forks have all of it."""
    import numpy
    import pandas  # noqa: F401
    import typer.core  # noqa: F401

    import proton.viewer  # noqa: F401
    from kernels.vector_add import add_kernel
    from proton.base.knobs import knobs

    with knobs.scope(always_compile=True):
        # An array, and so for the CPU: forks could not use the driver of a GPU once it has begun.
        x = numpy.zeros(1, numpy.float32)
        add_kernel.warmup(x, x, x, 1, BLOCK=16, grid=(1,))
    gc.collect()
    gc.freeze()  # a collection in a fork would write to, and so copy, all of this


def _answer(client: socket.socket, search: list[str]) -> NoReturn:
    """Forks again for what is asked, says how that ends, and ends."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    _, files, _, _ = socket.recv_fds(client, 1, len(_STREAMS))
    request = b"".join(iter(lambda: client.recv(1 << 16), b""))
    pid = os.fork()
    if pid == 0:
        client.close()
        for stream, file in enumerate(files):
            os.dup2(file, stream)
            os.close(file)
        _run(*_unpack(request), search)
    client.sendall(pid.to_bytes(_WORD, "little"))
    _, status = os.waitpid(pid, 0)
    client.sendall(status.to_bytes(_WORD, "little"))
    os._exit(0)


def _run(
    closed: str,
    folder: str,
    arguments: list[str],
    environment: dict[str, str],
    search: list[str],
) -> Any:
    """Does what the interpreter does with its arguments, and ends the process."""
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    _open_streams(closed)
    while arguments[0] == "-W":
        sys.warnoptions.append(arguments[1])
        warnings._processoptions([arguments[1]])  # type: ignore[attr-defined]
        del arguments[:2]
    paths = [path for path in environment.get("PYTHONPATH", "").split(os.pathsep) if path]
    sys.path[:] = [folder, *paths, *search]
    sys.modules["__main__"] = main = types.ModuleType("__main__")
    main.__dict__["__builtins__"] = __builtins__
    status = _status(functools.partial(_main, arguments, main))
    status = _status(threading._shutdown) or status  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    status = _flush() or status
    ctypes.CDLL(None).fflush(None)
    if status < 0:
        signal.signal(-status, signal.SIG_DFL)
        os.kill(os.getpid(), -status)
    os._exit(status)


def _open_streams(closed: str) -> None:
    """The standard streams anew: the old ones know what they were opened on."""
    for number in map(int, closed):
        os.close(number)
    # The server has the locale of all that it forks.
    unbuffered = bool(os.environ.get("PYTHONUNBUFFERED"))
    streams: list[Any] = []
    for number, name in enumerate(_STREAMS):
        if str(number) in closed:
            streams.append(None)
            continue
        raw = open(number, "wb" if number else "rb", 0, closefd=False)  # noqa: SIM115
        raw.name = name
        old = _OLD[number]
        buffer = (
            raw
            if unbuffered and number
            else io.BufferedWriter(raw)
            if number
            else io.BufferedReader(raw)
        )
        streams.append(
            io.TextIOWrapper(
                buffer,
                old.encoding,
                old.errors,
                line_buffering=not unbuffered and (name == "<stderr>" or raw.isatty()),
                write_through=unbuffered,
            )
        )
        streams[-1].mode = "w" if number else "r"
    sys.stdin, sys.stdout, sys.stderr = sys.__stdin__, sys.__stdout__, sys.__stderr__ = streams


def _flush() -> int:
    """The interpreter's last act: 0, or its exit status where the streams take no more."""
    status = 0
    for stream in (sys.stdout, sys.stderr):
        if stream is None or stream.closed:
            continue
        try:
            stream.flush()
        except Exception as error:
            status = _NO_FLUSH
            if stream is sys.stdout and sys.stderr is not None:
                print(f"Exception ignored in: {stream!r}", file=sys.stderr)
                print(f"{type(error).__name__}: {error}", file=sys.stderr)
    return status


def _main(arguments: list[str], main: types.ModuleType) -> None:
    match arguments:
        case ["-m", module, *rest]:
            sys.argv = ["-m", *rest]
            for name in (module, f"{module}.__main__"):
                if not hasattr(sys.modules.get(name), "__path__"):
                    sys.modules.pop(name, None)
            runpy._run_module_as_main(module)  # type: ignore[attr-defined]
        case ["-c", code, *rest]:
            sys.argv = ["-c", *rest]
            exec(code, main.__dict__)
        case [script, *rest]:
            sys.argv = [script, *rest]
            sys.path[0] = os.path.dirname(os.path.realpath(script))
            main.__file__ = path = os.path.abspath(script)
            exec(compile(Path(path).read_bytes(), path, "exec"), main.__dict__)


def _status(call: Callable[[], object]) -> int:
    """The exit status of a call, whose exception is shown as the interpreter shows it; of one that
    a signal ends its number, negative."""
    try:
        call()
        return 0
    except SystemExit as exit_:
        if isinstance(exit_.code, str):
            print(exit_.code, file=sys.stderr)
        return exit_.code & 0xFF if isinstance(exit_.code, int) else int(exit_.code is not None)
    except BaseException as error:
        trace = error.__traceback__
        while trace is not None and trace.tb_frame.f_code.co_filename == __file__:
            trace = trace.tb_next
        sys.excepthook(type(error), error.with_traceback(trace), trace)
        return -signal.SIGINT if isinstance(error, KeyboardInterrupt) else 1


def proton_tile(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *words: object
) -> tuple[int, str, str]:
    """Exit status, standard output and standard error of one command."""
    from proton.viewer import cli

    monkeypatch.setattr(sys, "argv", ["proton-tile", *map(str, words)])
    status: object = 0
    try:
        cli.main()
    except SystemExit as exit_:
        status = exit_.code or 0
    assert isinstance(status, int)
    return status, *capsys.readouterr()
