"""`triton._utils`: ways into nested tuples and lists, as paths of numbers."""

from collections.abc import Callable, Iterator
from functools import reduce
from typing import Any

Path = tuple[int, ...]


def get_iterable_path(nested: Any, path: Path) -> object:
    """What lies at a path."""
    return reduce(lambda inner, number: inner[number], path, nested)


def find_paths_if(nested: object, holds: Callable[[Path, object], bool]) -> list[Path]:
    """The paths of all leaves for which `holds(path, leaf)`, in order."""
    return [path for path, leaf in _leaves(nested, ()) if holds(path, leaf)]


def _leaves(nested: object, path: Path) -> Iterator[tuple[Path, object]]:
    if not isinstance(nested, list | tuple):
        yield path, nested
        return
    for number, inner in enumerate(nested):
        yield from _leaves(inner, (*path, number))
