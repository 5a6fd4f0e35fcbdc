"""The parts of every launch: a grid, and a thread of the host."""

import operator
import threading
from collections.abc import Callable
from typing import Any

from proton.base.errors import LaunchError
from proton.base.words import did_you_mean, shown


def grid_sizes(grid: object) -> tuple[int, int, int]:
    """The grid as three sizes; raises LaunchError unless it is 1 to 3 integers."""
    if isinstance(grid, tuple | list):
        sizes = tuple(grid)
    elif hasattr(grid, "__index__"):
        sizes = (grid,)
    else:
        raise LaunchError(
            f"a grid is 1 to 3 integers, or a function that gives them, got {shown(grid)}"
        )
    if not 1 <= len(sizes) <= 3:
        raise LaunchError(f"a grid has 1 to 3 sizes, got {len(sizes)}: {shown(grid)}")
    numbers = []
    for axis, size in enumerate(sizes):
        try:
            number = operator.index(size)
        except TypeError:
            raise LaunchError(f"grid[{axis}] must be an integer, got {shown(size)}") from None
        if number < 0:
            raise LaunchError(f"grid[{axis}] must not be negative, got {shown(number)}")
        numbers.append(number)
    x, y, z = (*numbers, 1, 1)[:3]
    return x, y, z


class GridArguments(dict[str, Any]):
    """What a function that gives the grid of a kernel is called with."""

    def __init__(self, kernel: str, known: dict[str, Any]) -> None:
        super().__init__(known)
        self.kernel = kernel

    def __missing__(self, name: object) -> Any:
        guess = did_you_mean(name, self) or f"; there are {', '.join(self) or 'none'}"
        raise LaunchError(
            f"the grid of {self.kernel} asks for the argument {shown(name)}, which the "
            f"kernel does not have{guess}"
        )


def grid_of(function: Callable[..., object], arguments: GridArguments) -> object:
    """The grid that a function gives."""
    try:
        return function(arguments)
    except TypeError as problem:
        here = problem.__traceback__
        if here is not None and here.tb_next is not None:
            raise  # the function's own mistake
        raise LaunchError(
            f"the grid of {arguments.kernel} is a function that cannot be called with the "
            f"launch's arguments, one dict ({problem}): write `lambda meta: (...,)`"
        ) from None


def host_thread() -> int:
    """The ident of the calling thread."""
    return threading.get_ident()
