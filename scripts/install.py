"""`python scripts/install.py LOCK`: installs what a lock names, then Proton itself, editable.

pip says much, and little of how far it is. This says which package of how many it is at, on one
line of a terminal, or a line for each large package where there is none. What pip said is shown
where it fails.
"""

import re
import subprocess
import sys
from pathlib import Path

PIP = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--require-virtualenv"]
# Compiled when they are imported: of the large packages most never are.
OPTIONS = ["--no-compile", "--no-deps", "--progress-bar", "off"]
WIDTH = 76
# "Collecting numpy==2.4.6 (from -r ...)", or "Processing /a/folder/numpy-2.4.6-....whl (from ...)"
PACKAGE = re.compile(r"(?:Collecting|Processing) (?:\S*/)?([\w.]+(?:-[a-z]\w*)*)(?:==|-)([\w.]+)")
LARGE = re.compile(r"\s+(?:Downloading|Using cached) .*\((\d+\.\d MB)\)")


class Progress:
    """Says what is being done, over what was said before where that is a terminal."""

    def __init__(self) -> None:
        self.terminal = sys.stdout.isatty()

    def say(self, text: str, worth_a_line: bool = True) -> None:
        """Shows a line; without a terminal only one that is worth it."""
        if self.terminal:
            print(f"\r{text[:WIDTH]:{WIDTH}}", end="", flush=True)
        elif worth_a_line:
            print(text, flush=True)

    def done(self) -> None:
        """Leaves the line."""
        if self.terminal:
            print(f"\r{'':{WIDTH}}\r", end="", flush=True)


def run(words: list[str], total: int, progress: Progress) -> None:
    """Runs pip; its output is shown where it fails, and its exit status is kept."""
    log: list[str] = []
    at, name = 0, ""
    command = [*PIP, *words]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as pip:
        assert pip.stdout is not None
        for line in pip.stdout:
            log.append(line)
            total -= line.startswith("Ignoring ")  # for other systems
            if found := PACKAGE.match(line):
                at, name = at + 1, f"{found[1]} {found[2]}"
                progress.say(f"    {at:2} of {total}  {name}", worth_a_line=False)
            elif found := LARGE.match(line):
                progress.say(f"    {at:2} of {total}  {name:32} {found[1]}")
            elif line.startswith("Installing collected"):
                progress.say(f"    unpacking {at} packages")
    progress.done()
    if pip.returncode:
        print("".join(log), end="")
        sys.exit(pip.returncode)


def main(lock: str) -> None:
    """Installs the lock's packages, then the project."""
    progress = Progress()
    total = len(re.findall(r"^[a-z]", Path(lock).read_text(), re.M))
    run(["install", *OPTIONS, "--require-hashes", "-r", lock], total, progress)
    run(["install", "--no-deps", "--no-build-isolation", "--quiet", "--editable", "."], 1, progress)


if __name__ == "__main__":
    main(*sys.argv[1:])
