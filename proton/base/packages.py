"""Packages that not everybody installs, and the extra that brings each.

Reading a run needs what every installation has. A compiler, a GPU and some formats need more.
"""

import importlib.util

from proton.base.errors import ProtonError

DISTRIBUTION = "proton-tile"


class MissingPackage(ProtonError, ImportError):
    """Something needs a package that is not installed; the text says what to install."""


def missing(what: str, package: str, extra: str = "", without: str = "") -> MissingPackage:
    """The error that says what needs the package, and how to get it."""
    install = f"'{DISTRIBUTION}[{extra}]'" if extra else package
    way_out = f"; {without}" if without else ""
    return MissingPackage(f"{what} needs the package {package}: pip install {install}{way_out}")


def need(what: str, package: str, extra: str = "", without: str = "") -> None:
    """Raises MissingPackage where the package is not installed."""
    if importlib.util.find_spec(package) is None:
        raise missing(what, package, extra, without)


def missing_compiler(package: str) -> MissingPackage:
    """The error where a package of the compiler is not installed."""
    return missing("compiling", package, "cpu", "'proton-tile[cuda]' compiles for GPUs, too")
