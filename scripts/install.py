"""`python scripts/install.py LOCK`: installs what a lock names, then Proton itself, editable.

pip does one thing at a time, most of which is work: it looks through lists of files, and unpacks.
So one runs for each core, with a share of the lock. pip says much, and little of how far it is.
This says which package of how many it is at, on one line of a terminal, or a line for each large
package where there is none. What pip said is shown where it fails.
"""

import os
import re
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

PIP = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--require-virtualenv"]
# Compiled when they are imported: of the large packages most never are.
OPTIONS = ["--no-compile", "--no-deps", "--progress-bar", "off"]
MOST = 4  # of pip at a time
WIDTH = 76
# "Collecting numpy==2.4.6 (from -r ...)", or "Processing /a/folder/numpy-2.4.6-....whl (from ...)"
PACKAGE = re.compile(r"(?:Collecting|Processing) (?:\S*/)?([\w.]+(?:-[a-z]\w*)*)(?:==|-)([\w.]+)")
LARGE = re.compile(r"\s+(?:Downloading|Using cached) .*\((\d+\.\d MB)\)")


class Progress:
    """Says what is being done, over what was said before where that is a terminal."""

    def __init__(self, total: int) -> None:
        self.terminal = sys.stdout.isatty()
        self.at, self.total = 0, total
        self.lock = threading.Lock()

    def count(self, packages: int, of: int = 0) -> None:
        """So many more are being installed, and are to be installed."""
        with self.lock:
            self.at, self.total = self.at + packages, self.total + of

    def say(self, text: str, worth_a_line: bool = True) -> None:
        """Shows a line; without a terminal only one that is worth it."""
        with self.lock:
            text = f"    {self.at:2} of {self.total}  {text}"
            if self.terminal:
                print(f"\r{text[:WIDTH]:{WIDTH}}", end="", flush=True)
            elif worth_a_line:
                print(text, flush=True)

    def done(self) -> None:
        """Leaves the line."""
        if self.terminal:
            print(f"\r{'':{WIDTH}}\r", end="", flush=True)


class Pip(threading.Thread):
    """A pip at work, its output, and in the end its exit status."""

    def __init__(self, words: list[str], progress: Progress) -> None:
        super().__init__()
        self.progress, self.log = progress, list[str]()
        self.process = subprocess.Popen(
            [*PIP, *words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        self.start()

    def run(self) -> None:
        """Says what is at work."""
        assert self.process.stdout is not None
        name = ""
        for line in self.process.stdout:
            self.log.append(line)
            if line.startswith("Ignoring "):  # for other systems
                self.progress.count(0, of=-1)
            elif found := PACKAGE.match(line):
                name = f"{found[1]} {found[2]}"
                self.progress.count(1)
                self.progress.say(name, worth_a_line=False)
            elif found := LARGE.match(line):
                self.progress.say(f"{name:32} {found[1]}")
            elif line.startswith("Installing collected"):
                self.progress.say("unpacking", worth_a_line=False)
        self.process.wait()


def run(commands: list[list[str]], progress: Progress) -> None:
    """Runs pip with each command's words at once; the output and exit status of one that fails are
    shown and kept."""
    pips = [Pip(words, progress) for words in commands]
    for pip in pips:
        pip.join()
    progress.done()
    for pip in pips:
        if pip.process.returncode:
            print("".join(pip.log), end="")
            sys.exit(pip.process.returncode)


def packages_of(lock: str) -> list[str]:
    """What a lock says of each package: its version, and hashes of its files."""
    return re.findall(r"^[a-z].*\n(?:[ #].*\n)*", lock, re.M)


def main(lock: str) -> None:
    """Installs the lock's packages, then the project."""
    packages = packages_of(Path(lock).read_text())
    progress = Progress(len(packages))
    shares = min(os.cpu_count() or 1, MOST)
    with tempfile.TemporaryDirectory() as folder:
        commands = []
        for share in range(shares):
            path = Path(folder, f"{share}.lock")
            path.write_text("".join(packages[share::shares]))
            commands.append(["install", *OPTIONS, "--require-hashes", "-r", str(path)])
        run(commands, progress)
    run([["install", "--no-deps", "--no-build-isolation", "--quiet", "--editable", "."]], progress)


if __name__ == "__main__":
    main(*sys.argv[1:])
