"""Gathering samples: a program in fresh processes, baseline and candidate in turns.

What a scope takes differs from process to process (where its memory lies, what the machine does
meanwhile) far more than within one. In turns, and in each second round the other way round,
both sides meet the same machine.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from proton.base.errors import ProtonError
from proton.base.progress import StepCounter
from proton.base.text import printable
from proton.base.words import counted
from proton.viewer.compare.budget import Budgets
from proton.viewer.compare.check import Report, check
from proton.viewer.compare.samples import SUFFIX, Side

BASELINE, CANDIDATE = "baseline", "candidate"
RUN = "{run}"  # in a command: the file that it must write
GROWTH = 1.5  # of a sample from one look to the next
LAST_LINES = 20  # of a program that failed


class MeasureError(ProtonError):
    """A program that was to be measured failed, or left no run."""


@dataclass(frozen=True, kw_only=True)
class MeasuredProgram:
    """What is run: as it is where a word has {run}, else by `python -m proton`."""

    words: Sequence[str]
    folder: Path
    python: str = sys.executable

    def command(self, run: Path) -> list[str]:
        """The words of a process that leaves its run in a file."""
        if any(RUN in word for word in self.words):
            return [word.replace(RUN, str(run)) for word in self.words]
        return [self.python, "-m", "proton", "--quiet", "--output", str(run), *self.words]

    def run(self, run: Path) -> None:
        """Runs it to its end; raises MeasureError where that leaves no run. One of a program that
        failed is removed."""
        if not self.folder.is_dir():
            raise MeasureError(f"{self.folder}: there is no such folder")
        run.unlink(missing_ok=True)
        command = self.command(run)
        try:
            done = subprocess.run(
                command, cwd=self.folder, stdin=subprocess.DEVNULL, capture_output=True,
                text=True, errors="replace", check=False,
            )  # fmt: skip
        except OSError as error:
            raise MeasureError(f"{command[0]} cannot be run: {error.strerror}") from error
        if done.returncode or not run.exists():
            ended = f"exit status {done.returncode}" if done.returncode else f"it left no {run}"
            last = (done.stderr or done.stdout).splitlines()[-LAST_LINES:]
            text = printable(" | ".join(line.strip() for line in last if line.strip()))
            run.unlink(missing_ok=True)
            raise MeasureError(": ".join(filter(None, (" ".join(command), ended, text))))


def gather(
    programs: Mapping[str, MeasuredProgram],
    out: Path,
    rounds: Sequence[int],
    say: Callable[[str], None] = lambda text: None,
) -> None:
    """Runs each program once a round, and leaves the runs in a folder for each. Ctrl-C, or a
    program that fails, leaves the rounds that are whole."""
    for name in programs:
        (out / name).mkdir(parents=True, exist_ok=True)
    progress = StepCounter("round", len(rounds), say)
    for number in rounds:
        order = list(programs) if number % 2 == 0 else list(programs)[::-1]
        files = {name: (out / name / f"{number:04}{SUFFIX}").absolute() for name in order}
        try:
            for name in order:
                programs[name].run(files[name])
        except (KeyboardInterrupt, MeasureError):
            for file in files.values():
                file.unlink(missing_ok=True)
            say(f"stopped: {out} has {counted(number, 'round', 'rounds')}")
            raise
        progress.step()


def warm_up(programs: Mapping[str, MeasuredProgram], out: Path) -> None:
    """Runs each program once for nothing: kernels are in the cache of the disk after it."""
    for name, program in programs.items():
        folder = out / name
        folder.mkdir(parents=True, exist_ok=True)
        left = sorted(folder.glob(f"*{SUFFIX}"))
        if left:
            raise MeasureError(f"{folder} has runs already: name another folder, or remove them")
        run = (folder / f"warm-up{SUFFIX}").absolute()
        try:
            program.run(run)
        finally:
            run.unlink(missing_ok=True)


def sizes(least: int, most: int) -> list[int]:
    """How many rounds there are at each look, the last one at `most`."""
    found = [least]
    while found[-1] < most:
        found.append(min(most, max(found[-1] + 1, round(found[-1] * GROWTH))))
    return found


class Growing:
    """Both sides as their folders are when asked; each run is read once."""

    def __init__(self, candidate: Path, baseline: Path | None, *, warps: bool) -> None:
        self.folders, self.warps = (candidate, baseline), warps
        self._known: list[Side | None] = [None, None]

    def __call__(self) -> tuple[Side, Side | None]:
        for i, folder in enumerate(self.folders):
            if folder is not None:
                self._known[i] = Side.load([folder], warps=self.warps, known=self._known[i])
        candidate, baseline = self._known
        assert candidate is not None
        return candidate, baseline


def until_sure(
    budgets: Budgets,
    looks: Sequence[int],
    more: Callable[[range], None],
    sides: Callable[[], tuple[Side, Side | None]],
) -> Iterator[tuple[int, Report]]:
    """The check at each look, until one is conclusive, or no more of them would make it so. `more`
    measures further rounds."""
    begun = 0
    for rounds in looks:
        more(range(begun, rounds))
        begun = rounds
        candidate, baseline = sides()
        report = check(candidate, baseline, budgets, looks=len(looks))
        yield rounds, report
        if not report.is_open:
            return
