"""Short profiles of the best configuration and of the runner-up, so that
`proton-tile explain BEST --against SECOND` says why the one won."""

import hashlib
import re
from collections.abc import Callable, Mapping
from pathlib import Path

from proton.base.errors import ProtonError
from proton.runtime.session import open_sessions
from proton.trace import archive

RANKS = ("best", "second")
LONGEST_STEM = 120  # characters of a file's name
DIGITS = 8  # of a digest
LAUNCHES = 5  # of each: as many as statistics ask for
AUTO = ("copies", "dots", "barriers")  # what units wait for


def stem(kernel: str, key: tuple[object, ...]) -> str:
    """What the files of a choice are called: the kernel and the values of the key. What is left out
    of a long one, or not told apart, a digest of the key stands for."""
    texts = [str(value) for value in key]
    parts = [re.sub(r"[^\w.]+", "_", text) for text in texts]
    name = "-".join([kernel, *parts])
    if parts == texts and len(name) <= LONGEST_STEM:
        return name
    digest = hashlib.sha256(repr(key).encode()).hexdigest()[:DIGITS]
    return f"{name[: LONGEST_STEM - DIGITS - 1]}-{digest}"


def check(folder: Path) -> None:
    """Makes the folder, before anything is measured; raises ProtonError where that fails."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        raise ProtonError(
            f"no profiles can be kept in {folder} (runs=, or PROTON_AUTOTUNING_RUNS): "
            f"{problem.strerror}"
        ) from None


def record(path: Path, call: Callable[[], None]) -> Path:
    """Launches, and writes the run, without the first launch, to a file."""
    with open_sessions.recorded_aside(path.stem, AUTO) as found:
        for _ in range(1 + LAUNCHES):
            call()
    del found[0].launches[:1]
    archive.save(found[0], path)
    return path


def command(files: Mapping[str, Path]) -> str:
    """What compares them."""
    best, *others = files.values()
    return " ".join(["proton-tile explain", str(best), *(f"--against {other}" for other in others)])
