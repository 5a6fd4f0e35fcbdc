"""Has the server of `tool_server.py` run a tool on this process's streams.

    python -I -S tests/ir/tool_client.py SOCKET proton-opt --list

lit starts this hundreds of times: of the standard library it imports only what starts at once.
"""

import array
import os
import sys
from _socket import AF_UNIX, SCM_RIGHTS, SHUT_WR, SOL_SOCKET, socket  # `socket` alone takes 10 ms

STREAMS = (0, 1, 2)
CRASHED = 134  # the exit status of a process that aborted


def pack(folder: str, arguments: list[str], environment: dict[str, str]) -> bytes:
    """A request as bytes; none of its strings has a NUL, since no process could be given one."""
    variables = [f"{name}={value}" for name, value in environment.items()]
    return "\0".join([folder, str(len(arguments)), *arguments, *variables]).encode(
        errors="surrogateescape"
    )


def unpack(request: bytes) -> tuple[str, list[str], dict[str, str]]:
    """(folder, arguments, environment) of a request."""
    folder, count, *rest = request.decode(errors="surrogateescape").split("\0")
    arguments, variables = rest[: int(count)], rest[int(count) :]
    return folder, arguments, dict(variable.split("=", 1) for variable in variables)


def call(path: str, arguments: list[str]) -> int:
    """The exit status of a tool that the server at `path` runs."""
    server = socket(AF_UNIX)
    server.connect(path)
    server.sendmsg([b"\n"], [(SOL_SOCKET, SCM_RIGHTS, array.array("i", STREAMS))])
    server.sendall(pack(os.getcwd(), arguments, dict(os.environ)))
    server.shutdown(SHUT_WR)
    status = server.recv(1)
    server.close()
    return status[0] if status else CRASHED


if __name__ == "__main__":
    sys.exit(call(sys.argv[1], sys.argv[2:]))
