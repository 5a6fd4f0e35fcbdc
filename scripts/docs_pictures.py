"""Makes every picture and every output in the docs anew: `make docs-pictures`.

    python scripts/docs_pictures.py [--browser chromium] [--work DIR] [--gpu-run FILE]

Runs the demo, and both versions of the tutorial in fresh processes, on this machine's CPU.
Pictures go to docs/pictures; what a command prints goes between a page's markers
`<!-- output: NAME -->` and `<!-- end -->`. Without a browser those of Perfetto and of the HTML
page stay as they are. With a run that was recorded on a GPU (by `python kernels/softmax.py
--device cuda --profile FILE.proton`, say) there are pictures of a GPU, too.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from browser import Browser

from proton.viewer import Run
from proton.viewer.cli.commands.open import address_of, expanding, serve, ui_folder

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
PICTURES = DOCS / "pictures"
VIEWER = (sys.executable, "-m", "proton.viewer")
ROUNDS = 10  # fresh processes a side
SIZE, TALL = (1400, 520), (1400, 760)  # px
# The line of the page's source that took most time.
LINE_IS_CHOSEN = """!!globalThis.timeline && (() => {
    const timed = timeline.source.data.listings[0].lines.filter(line => line && line.length > 3);
    timeline.choose(timed.sort((a, b) => b[4] - a[4])[0][0]);
    return true;
})()"""
PERFETTO_IS_IDLE = """
    document.querySelectorAll('.pf-track__title, .pf-track-title').length > 2
    && window.waitForPerfettoIdle(500).then(() => true)"""


def run(*words: str | Path, folder: Path) -> str:
    """What a command prints, with this checkout's Proton and 80 columns."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": "80"}
    command = [str(word) for word in words]
    print("   ", " ".join(command[1:]), flush=True)
    done = subprocess.run(
        command, cwd=folder, env=environment, check=True, stdout=subprocess.PIPE, text=True
    )
    return done.stdout


def viewer(*words: str | Path, folder: Path) -> str:
    """What a command of proton-tile prints."""
    return run(*VIEWER, *words, folder=folder)


def shortest(file: Path, kernel: str) -> str:
    """The number of the kernel's launch that took the least time: the least disturbed one."""
    launches = Run.load(file).launches
    return str(launches[launches["kernel"] == kernel]["dur_ns"].idxmin())


def fill(page: Path, outputs: dict[str, str]) -> None:
    """Puts outputs between a page's markers; each must have its place. Tables stay Markdown."""
    text = page.read_text()
    for name, output in outputs.items():
        lines = "\n".join(line.rstrip() for line in output.splitlines() if line.strip())
        shown = f"\n{lines}\n" if lines.startswith("|") else f"```\n{lines}\n```"
        begin, end = f"<!-- output: {name} -->", "<!-- end -->"
        before, found, rest = text.partition(begin)
        if not found or end not in rest:
            raise SystemExit(f"{page} has no place for the output {name}")
        text = f"{before}{begin}\n{shown}\n{end}{rest.partition(end)[2]}"
    page.write_text(text)


def demo(folder: Path) -> None:
    """A picture of each kind, of the demo's run."""
    run(sys.executable, "-m", "proton.demo", folder=folder)
    file = folder / "demo.proton"
    launch = shortest(file, "matmul_kernel")
    for command, options in (
        ("timeline", ("--launch", launch)),
        ("flame", ()),
        ("hist", ("--kernel", "softmax", "--scope", "load")),
        ("heatmap", ("--kernel", "matmul", "--launch", launch)),
        ("occupancy", ("--launch", launch)),
    ):
        viewer(command, file, *options, "-o", PICTURES / f"{command}.svg", folder=folder)
    viewer("timeline", file, "-o", folder / "demo.html", folder=folder)
    words = ("--kernel", "matmul", "-o", folder / "source.html")
    viewer("source", file, *words, folder=folder)


def tutorial(folder: Path) -> None:
    """Both versions of the tutorial: timelines, tables, and what changed."""
    outputs = {}
    for side in ("before", "after"):
        script = DOCS / "tutorial" / side
        file = folder / f"{side}.proton"
        run(sys.executable, "-m", "proton", "-q", "-o", file, "column_stats.py", folder=script)
        outputs[side] = viewer(file, folder=folder)
        options = ("--launch", shortest(file, "column_stats"))
        out = PICTURES / f"tutorial-{side}.svg"
        viewer("timeline", file, *options, "-o", out, folder=folder)
    words = ("-n", str(ROUNDS), "-o", folder / "runs", "--baseline-dir", "../before")
    viewer("measure", *words, "--", "column_stats.py", folder=DOCS / "tutorial" / "after")
    sides = (Path("runs", "baseline"), Path("runs", "candidate"))
    picture = ("--picture", PICTURES / "tutorial-diff.svg")
    printed = viewer("diff", *sides, *picture, "--format", "markdown", folder=folder)
    outputs["diff"] = printed[printed.index("|") :]  # without its heading
    fill(DOCS / "tutorial.md", outputs)


def gpu(run: Path, folder: Path, program: str) -> None:
    """An SM's part of the longest launch, and Perfetto as `proton-tile open` opens it."""
    launches = Run.load(run).launches
    longest = str(launches["dur_ns"].idxmax())
    options = ("--launch", longest, "--sm", "0")
    viewer("timeline", run, *options, "-o", PICTURES / "gpu-timeline.svg", folder=folder)
    viewer("heatmap", run, "--launch", longest, "-o", PICTURES / "gpu-heatmap.svg", folder=folder)
    if shutil.which(program):
        perfetto(Run.load(run), folder, program, "perfetto-gpu.png", expanding(Run.load(run)))


def pages(folder: Path, program: str) -> None:
    """What a browser shows: the demo in Perfetto, and its HTML page."""
    run = Run.load(folder / "demo.proton")
    calls = run.launches[run.launches["kernel"] == "matmul_kernel"]
    begin = run.raw.origin_ns + int(calls["start_ns"].min())
    end = run.raw.origin_ns + int((calls["start_ns"] + calls["dur_ns"]).max())
    perfetto(run, folder, program, "perfetto.png", f"&visStart={begin}&visEnd={end}")
    with Browser(program) as browser:
        browser.shoot((folder / "demo.html").as_uri(), PICTURES / "page.png", *SIZE)
        source = (folder / "source.html").as_uri()
        browser.shoot(source, PICTURES / "source.png", *TALL, LINE_IS_CHOSEN)


def perfetto(run: Run, folder: Path, program: str, name: str, view: str) -> None:
    """A picture of Perfetto with a run; `view` is added to its address."""
    run.save(folder / "run.pftrace")
    server = serve(folder / "run.pftrace", ui_folder())
    try:
        with Browser(program) as browser:
            address = f"{address_of(server)}&hideSidebar=true{view}"
            browser.shoot(address, PICTURES / name, *SIZE, PERFETTO_IS_IDLE)
    finally:
        server.shutdown()
        server.server_close()


def without_this_machine() -> None:
    """Takes the folder of this checkout out of what the pictures say of sources."""
    for file in PICTURES.glob("*.svg"):
        file.write_text(file.read_text().replace(f"{ROOT}/", ""))


def main(arguments: Sequence[str]) -> None:
    """Makes them all."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--browser", default="chromium", help="a Chromium; %(default)s")
    parser.add_argument("--gpu-run", type=Path, metavar="FILE", help="a .proton file of a GPU")
    parser.add_argument("--work", type=Path, help="keep the runs in this folder")
    options = parser.parse_args(arguments)
    PICTURES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(options.work or temporary).resolve()
        folder.mkdir(exist_ok=True)
        if options.gpu_run:
            gpu(options.gpu_run.resolve(), folder, options.browser)
        demo(folder)
        tutorial(folder)
        if shutil.which(options.browser):
            pages(folder, options.browser)
        else:
            print(f"no {options.browser}: perfetto.png and page.png are left as they were")
    without_this_machine()


if __name__ == "__main__":
    main(sys.argv[1:])
