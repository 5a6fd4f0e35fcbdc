"""Short profiles of the best configuration and of the runner-up, so that
`proton-tile explain BEST --against SECOND` says why the one won."""

import hashlib
import re
import shlex
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

from proton.base.errors import ProtonError
from proton.runtime.session import open_sessions
from proton.trace import archive
from proton.trace.model import TUNED_NS

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


def record(path: Path, call: Callable[[], None], kernel: str, tuned_ns: float) -> Path:
    """Launches, and writes the run, without the first launch, to a file. It has what the kernel
    took while it was tuned: records cost one configuration more than another."""
    with open_sessions.recorded_aside(path.stem, AUTO) as found:
        for _ in range(1 + LAUNCHES):
            call()
    raw = found[0]
    del raw.launches[:1]
    raw.kernels = [replace(each, options={**each.options, TUNED_NS: round(tuned_ns)})
                   if each.name == kernel else each for each in raw.kernels]  # fmt: skip
    archive.save(raw, path)
    return path


def command(files: Mapping[str, Path]) -> str:
    """What compares them."""
    best, *others = files.values()
    against = (f"--against {shlex.quote(str(other))}" for other in others)
    return " ".join(["proton-tile explain", shlex.quote(str(best)), *against])
