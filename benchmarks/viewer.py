"""What the viewer takes for a million slices, held against its bars.

    python benchmarks/viewer.py [--slices 1000000] [--browser chromium] [--json FILE]

Each command is a fresh process that reads a `.proton` file: its wall time, its CPU time and the
most memory that it had. `cpu` is one launch of a CPU, `gpus` is of two GPUs, with 1,323 tracks of
warps. PNG needs matplotlib (extra `plot`). With a Chromium the page is opened and driven: zoomed by
the wheel, panned by the mouse, hovered over and searched; times are of the page's answer.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

ROOT = Path(__file__).resolve().parent.parent
MEGABYTES = 1000  # the bar of memory
GPUS = 2
PATIENCE = 60.0  # s for a page to be ready
SIZE = {"width": 1400, "height": 700, "deviceScaleFactor": 1, "mobile": False}
CHOSEN = (300, 300)  # where the mouse zooms: at the first slices
FROM, TO = 900, 600  # where it drags, and hovers in the end
CTRL = 2


@dataclass(frozen=True, kw_only=True)
class Case:
    """A command, and the bar of its time."""

    name: str
    run: str
    words: tuple[str, ...]
    bar: float | None = None
    megabytes: int = MEGABYTES


@dataclass(frozen=True, kw_only=True)
class Row:
    """What one thing took."""

    name: str
    seconds: float
    cpu: float | None = None
    megabytes: int | None = None
    bar: float | None = None
    megabytes_bar: int | None = None
    failed: str = ""


def cases(folder: Path) -> list[Case]:
    """The commands, on either run."""
    found = []
    for run in ("cpu", "gpus"):
        file = str(folder / f"{run}.proton")

        def case(
            name: str, *words: str, run: str = run, file: str = file, **bars: Any
        ) -> Case:  # fmt: skip
            words = tuple(str(folder / run) + w[1:] if w.startswith("@") else w for w in words)
            return Case(name=name, run=run, words=(name.split()[0], file, *words), **bars)

        found += [
            case("summary", bar=2, megabytes=400),
            case("stats", bar=3),
            case("explain", bar=5),
            case("source", bar=5),
            case("stats --by program", "--by", "program", bar=3),
            case("diff", file, bar=8),
            case("timeline, PNG", "-o", "@.png", bar=5),
            case("timeline, page", "-o", "@.html", bar=4),
            case("heatmap"),
            case("flame"),
        ]
    return [Case(**asdict(c) | {"words": (c.words[0].strip(","), *c.words[1:])}) for c in found]


def taken(case: Case) -> Row:
    """Runs a command in a process of its own, whose memory is its own as well."""
    command = [sys.executable, "-m", "proton.viewer", *case.words]
    with tempfile.TemporaryFile() as said:
        began = time.perf_counter()
        process = subprocess.Popen(
            command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=said
        )
        _, status, used = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - began
        process.returncode = os.waitstatus_to_exitcode(status)
        said.seek(0)
        failed = said.read().decode() if process.returncode else ""
    return Row(
        name=f"{case.name} ({case.run})",
        seconds=seconds,
        cpu=used.ru_utime + used.ru_stime,
        megabytes=round(used.ru_maxrss * 1024 / 1e6),
        bar=case.bar,
        megabytes_bar=case.megabytes,
        failed=failed.strip().splitlines()[-1] if failed else "",
    )


def make(folder: Path, slices: int) -> None:
    """Leaves both runs in a folder."""
    import trace_io

    from proton.viewer import Run

    Run(trace_io.synthetic(slices, iterations=True)).save(folder / "cpu.proton")
    Run(trace_io.of_gpus(GPUS, slices)).save(folder / "gpus.proton")


class Page:
    """A timeline page in a browser."""

    def __init__(self, browser: Any, file: Path) -> None:
        self.browser = browser
        page = browser.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = browser.call("Target.attachToTarget", targetId=page, flatten=True)[
            "sessionId"
        ]
        self.call("Emulation.setDeviceMetricsOverride", **SIZE)
        self.call("Page.navigate", url=file.as_uri())
        self.until("!!globalThis.timeline")

    def call(self, method: str, **parameters: Any) -> Any:
        """A command to the page."""
        return self.browser.call(method, self.session, **parameters)

    def asked(self, expression: str) -> Any:
        """What an expression is there."""
        answer = self.call(
            "Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True
        )
        if "exceptionDetails" in answer:
            raise RuntimeError(f"{expression}: {answer['exceptionDetails']['text']}")
        return answer["result"].get("value")

    def until(self, expression: str) -> None:
        """Waits for it to hold, as a person does."""
        late = time.monotonic() + PATIENCE
        while not self.asked(expression):
            if time.monotonic() > late:
                raise RuntimeError(f"{expression} did not come to hold")
            time.sleep(0.01)

    def mouse(self, kind: str, x: int, y: int, **more: Any) -> None:
        """An event of the mouse."""
        self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, **more)


WIDTH = "(timeline.view.to - timeline.view.from)"


def zoom(page: Page) -> None:
    """By the wheel, from the launch to a hundredth."""
    page.asked("document.getElementById('launch').click()")
    page.asked(f"globalThis.was = {WIDTH}")
    while page.asked(f"{WIDTH} > was / 100"):
        page.mouse("mouseWheel", *CHOSEN, deltaX=0, deltaY=-600, modifiers=CTRL)


def pan(page: Page) -> None:
    """By the mouse, to later times."""
    page.asked("globalThis.was = timeline.view.from")
    y = CHOSEN[1]
    page.mouse("mousePressed", FROM, y, button="left", buttons=1, clickCount=1)
    for x in range(FROM, TO, -50):
        page.mouse("mouseMoved", x, y, button="left", buttons=1)
    page.mouse("mouseReleased", TO, y, button="left", clickCount=1)
    page.until("timeline.view.from > was")


def hover(page: Page) -> None:
    """Over rows, until one tells of its slice."""
    for y in range(60, SIZE["height"], 8):
        page.mouse("mouseMoved", TO, y)
        page.asked("new Promise(done => requestAnimationFrame(done))")
        if page.asked("tip.innerText != '' && getComputedStyle(tip).display != 'none'"):
            return
    raise RuntimeError("no slice under the mouse tells of itself")


def search(page: Page, name: str) -> None:
    """For a name that there is."""
    page.asked("document.getElementById('search').focus()")
    page.call("Input.insertText", text=name)
    page.until("timeline.hits() > 0")


def driven(program: str, file: Path, name: str) -> Iterator[Row]:
    """What a person waits for in the page."""
    sys.path.insert(0, str(ROOT / "scripts"))
    from browser import Browser

    began = time.perf_counter()
    with Browser(program) as browser:
        browser.call("Browser.getVersion")
        started = time.perf_counter()
        page = Page(browser, file)
        opened = time.perf_counter()
        yield Row(name=f"Chromium starts ({name})", seconds=started - began)
        yield Row(name=f"page opens ({name})", seconds=opened - started, bar=3)
        one = "(()=>{const a=performance.now(); timeline.draw(); return performance.now()-a})()"
        yield Row(name=f"page draws ({name})", seconds=page.asked(one) / 1000)
        wanted = {"cpu": "inner", "gpus": "compute"}[name]
        for what in (zoom, pan, hover, lambda page: search(page, wanted)):
            begin = time.perf_counter()
            what(page)
            said = getattr(what, "__name__", "")
            label = said if said in ("zoom", "pan", "hover") else "search"
            yield Row(name=f"page, {label} ({name})", seconds=time.perf_counter() - begin)


def is_met(row: Row) -> bool | None:
    """Whether a row keeps to its bars; None of one that has none."""
    if row.failed:
        return False
    bars = [(row.seconds, row.bar), (row.megabytes, row.megabytes_bar)]
    held = [value <= bar for value, bar in bars if value is not None and bar is not None]
    return all(held) if held else None


def shown(rows: list[Row]) -> Table:
    """The table."""
    table = Table("what", "wall s", "CPU s", "bar s", "MB", "bar MB", "met")
    for row in rows:
        told = row.failed or {True: "yes", False: "NO", None: ""}[is_met(row)]
        table.add_row(
            row.name, f"{row.seconds:.2f}", "" if row.cpu is None else f"{row.cpu:.2f}",
            *("" if n is None else f"{n:g}" for n in (row.bar, row.megabytes, row.megabytes_bar)),
            told,
        )  # fmt: skip
    return table


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--slices", type=int, default=1_000_000)
    parser.add_argument("--browser", help="a Chromium, which opens the pages")
    parser.add_argument("--json", type=Path, help="write the rows, too")
    parser.add_argument("--make", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.make:
        make(options.make, options.slices)
        return
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        # Not here: what a process has when it starts another one counts as that one's memory.
        again = [sys.executable, __file__, "--make", name, "--slices", str(options.slices)]
        subprocess.run(again, check=True, cwd=ROOT)
        rows = [taken(case) for case in cases(folder)]
        if options.browser:
            for run in ("cpu", "gpus"):
                rows += driven(options.browser, folder / f"{run}.html", run)
    print(f"{options.slices} slices, load average {os.getloadavg()[0]:.1f}")
    Console(width=110).print(shown(rows))
    if options.json:
        options.json.write_text(json.dumps([asdict(row) for row in rows], indent=1))


if __name__ == "__main__":
    main()
