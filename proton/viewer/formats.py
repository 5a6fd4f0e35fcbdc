"""The formats a run can be saved in, and the suffixes that pick them."""

import enum
import importlib.util
from pathlib import Path

from proton.base.errors import ProtonError


class Format(enum.Enum):
    """`JSON` is the run's tables; `CHROME` a trace, which has its suffix by age."""

    PROTON = "proton"
    PERFETTO = "perfetto"
    CHROME = "chrome"
    CSV = "csv"
    JSON = "json"


PACKED = ".gz"
SUFFIXES = {
    ".proton": Format.PROTON,
    ".pftrace": Format.PERFETTO,
    ".pftrace.gz": Format.PERFETTO,
    ".perfetto-trace": Format.PERFETTO,
    ".json": Format.CHROME,
    ".csv": Format.CSV,
}


def check_packages(format: Format) -> None:
    """Raises ProtonError where a package is missing that writing the format needs."""
    if format is Format.PERFETTO and importlib.util.find_spec("perfetto") is None:
        raise ProtonError(
            "a Perfetto trace needs the package perfetto: pip install perfetto; Chrome's .json "
            "needs no package, and Perfetto opens it, too"
        )


def format_of(path: Path) -> Format:
    """The format that a file name asks for."""
    for suffix, found in SUFFIXES.items():
        if path.name.endswith(suffix):
            return found
    raise ProtonError(f"{path}: the suffix must be one of {', '.join(SUFFIXES)}")
