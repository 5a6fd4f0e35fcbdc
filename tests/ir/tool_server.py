"""Runs `proton-opt` and `filecheck` for lit without starting Python and MLIR anew for each.

A server has everything imported and forks for each call, so each still is a process with its own
arguments, streams and exit status. `lit.cfg.py` names this file as the tool where a server runs:

    python tests/ir/tool_server.py SOCKET proton-opt --list
"""

import contextlib
import json
import os
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

STREAMS = (0, 1, 2)
CRASHED = 134  # the exit status of a process that aborted


def call(path: str, arguments: list[str]) -> int:
    """Has the server run a tool on this process's streams; its exit status."""
    request = {"arguments": arguments, "folder": os.getcwd(), "environment": dict(os.environ)}
    with socket.socket(socket.AF_UNIX) as server:
        server.connect(path)
        socket.send_fds(server, [b"\n"], STREAMS)
        server.sendall(json.dumps(request).encode())
        server.shutdown(socket.SHUT_WR)
        status = server.recv(1)
    return status[0] if status else CRASHED


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
    return {"proton-opt": opt.main, "filecheck": filecheck.main.main}


def answer(client: socket.socket, tools: dict[str, Callable[[], object]]) -> None:
    """Runs one call in this fork, and ends it."""
    _, files, _, _ = socket.recv_fds(client, 1, len(STREAMS))
    request = json.loads(b"".join(iter(lambda: client.recv(1 << 16), b"")))
    for file, stream in zip(files, STREAMS, strict=True):
        os.dup2(file, stream)
        os.close(file)
    sys.stdin = open(0, closefd=False)  # noqa: SIM115 - the old ones know what they were opened on
    sys.stdout, sys.stderr = open(1, "w", closefd=False), open(2, "w", 1, closefd=False)  # noqa: SIM115
    os.chdir(request["folder"])
    os.environ.clear()
    os.environ.update(request["environment"])
    sys.argv = request["arguments"]
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


if __name__ == "__main__":
    sys.exit(call(sys.argv[1], sys.argv[2:]))
