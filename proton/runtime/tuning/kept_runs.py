"""Short profiles of the best configuration and of the runner-up, so that
`proton-tile explain BEST --against SECOND` says why the one won."""

import re
from collections.abc import Callable, Mapping
from pathlib import Path

from proton.runtime.session import open_sessions
from proton.trace import archive
from proton.trace.files import replacing

RANKS = ("best", "second")
LONGEST_STEM = 120  # characters of a file's name
LAUNCHES = 5  # of each: as many as statistics ask for
AUTO = ("copies", "dots", "barriers")  # what units wait for


def stem(kernel: str, key: tuple[object, ...]) -> str:
    """What the files of a choice are called: the kernel and the values of the key."""
    parts = [kernel, *(re.sub(r"[^\w.]+", "_", str(value)) for value in key)]
    return "-".join(parts)[:LONGEST_STEM]


def record(path: Path, call: Callable[[], None]) -> Path:
    """Launches, and writes the run, without the first launch, to a file."""
    with open_sessions.recorded_aside(path.stem, AUTO) as found:
        for _ in range(1 + LAUNCHES):
            call()
    del found[0].launches[:1]
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as file:
        archive.write(found[0], file, str(path))
    return path


def command(files: Mapping[str, Path]) -> str:
    """What compares them."""
    best, *others = files.values()
    return " ".join(["proton-tile explain", str(best), *(f"--against {other}" for other in others)])
