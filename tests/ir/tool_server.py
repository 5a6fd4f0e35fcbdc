"""Runs `proton-opt` and `filecheck` for lit without starting Python and MLIR anew for each.

A server has everything imported and forks for each call, so each still is a process with its own
arguments, streams and exit status. `lit.cfg.py` names `tool_client.py` as the tool where a server
runs.
"""

import contextlib
import gc
import os
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from tests.ir.tool_client import STREAMS, unpack


@contextlib.contextmanager
def running(path: Path) -> Iterator[None]:
    """A server that listens at a socket of this name inside the `with` block."""
    code = f"from tests.ir.tool_server import serve; serve({str(path)!r})"
    root = Path(__file__).parents[2]
    with subprocess.Popen([sys.executable, "-c", code], cwd=root, stdout=subprocess.PIPE) as server:
        try:
            assert server.stdout is not None
            assert server.stdout.readline() == b"ready\n", "the server did not start"
            yield
        finally:
            server.terminate()


def serve(path: str) -> None:
    """Answers calls until it is terminated."""
    tools = load_tools()
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(path)
        server.listen(64)
        print("ready", flush=True)
        while True:
            client, _ = server.accept()
            with client:
                if os.fork() == 0:
                    server.close()
                    answer(client, tools)
            forget_ended()


def forget_ended() -> None:
    """Lets forks go that have ended; their callers have the exit status."""
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG) != (0, 0):
            pass


def load_tools() -> dict[str, Callable[[], object]]:
    """Imports what the tools need, so that the forks have it."""
    import filecheck.main

    from proton.tools import opt

    opt.register_all_passes()
    gc.collect()
    gc.freeze()  # a collection in a fork would write to, and so copy, all of this
    return {"proton-opt": opt.main, "filecheck": filecheck.main.main}


def answer(client: socket.socket, tools: dict[str, Callable[[], object]]) -> None:
    """Runs one call in this fork, and ends it."""
    _, files, _, _ = socket.recv_fds(client, 1, len(STREAMS))
    folder, arguments, environment = unpack(b"".join(iter(lambda: client.recv(1 << 16), b"")))
    for file, stream in zip(files, STREAMS, strict=True):
        os.dup2(file, stream)
        os.close(file)
    sys.stdin = open(0, closefd=False)  # noqa: SIM115 - the old ones know what they were opened on
    sys.stdout, sys.stderr = open(1, "w", closefd=False), open(2, "w", 1, closefd=False)  # noqa: SIM115
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    sys.argv = arguments
    status = status_of(tools[sys.argv[0]])
    client.sendall(bytes([status]))
    os._exit(0)


def status_of(tool: Callable[[], object]) -> int:
    """Runs a tool as the interpreter would: its exit status, its traceback on standard error."""
    try:
        tool()
        code: object = 0
    except SystemExit as exit_:
        code = exit_.code
    except BaseException:
        sys.excepthook(*sys.exc_info())
        code = 1
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        code = 120  # as the interpreter says it
    sys.stderr.flush()
    if isinstance(code, str):
        print(code, file=sys.stderr, flush=True)
    return code & 0xFF if isinstance(code, int) else int(code is not None)
