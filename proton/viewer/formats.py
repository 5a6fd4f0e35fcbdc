"""The formats that a run can be saved in.

A module of `proton.viewer.export` is a format: it has a `FORMAT`, which says its name, the suffixes
that pick it, and what writes it. Nothing else knows which formats there are.
"""

import importlib
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from proton.base.errors import ProtonError
from proton.base.packages import need
from proton.base.words import did_you_mean
from proton.trace.files import replacing
from proton.viewer import export
from proton.viewer.tables import Tables


@dataclass(frozen=True, kw_only=True)
class FileFormat:
    """One way to write a run: `write(tables, file, target, **options)`; `target` is the file's
    path, and `options` names what can be asked for.

    `about` is a line of help. Where writing needs a package, `package` names it, `extra` the extra
    that installs it, if one does, and `without` says what to do where it is missing. Modules of
    formats are imported for their suffixes alone, so what is slow to import belongs into `write`.
    """

    name: str
    suffixes: tuple[str, ...]
    about: str
    write: Callable[..., None]
    options: tuple[str, ...] = ()
    package: str = ""
    extra: str = ""
    without: str = ""


@cache
def formats() -> dict[str, FileFormat]:
    """All formats by name."""
    names = sorted(module.name for module in pkgutil.iter_modules(export.__path__))
    modules = (importlib.import_module(f"{export.__name__}.{name}") for name in names)
    return {module.FORMAT.name: module.FORMAT for module in modules}


def format_named(name: str) -> FileFormat:
    """The format of this name."""
    known = formats()
    if name not in known:
        hint = did_you_mean(name, known)
        raise ProtonError(f"format must be one of {', '.join(known)}, got {name!r}{hint}")
    return known[name]


def format_of(path: Path) -> FileFormat:
    """The format that a file name asks for: that of its longest suffix."""
    suffixes = {suffix: found for found in formats().values() for suffix in found.suffixes}
    for suffix in sorted(suffixes, key=len, reverse=True):
        if path.name.endswith(suffix):
            return suffixes[suffix]
    raise ProtonError(f"{path}: the suffix must be one of {', '.join(suffixes)}")


def check_packages(format: FileFormat) -> None:
    """Raises MissingPackage where a package is missing that writing the format needs."""
    if format.package:
        need(f"the format {format.name}", format.package, format.extra, format.without)


def save(tables: Tables, target: Path, format: FileFormat, **options: object) -> None:
    """Writes a run to a file, whole or not at all."""
    for name in options:
        if name not in format.options:
            known = ", ".join(format.options) or "none"
            raise ProtonError(f"options of the format {format.name} are {known}, got {name}")
    check_packages(format)
    with replacing(target) as file:
        format.write(tables, file, target, **options)
