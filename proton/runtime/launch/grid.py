"""The parts of every launch: a grid, and a thread of the host."""

import operator
import threading

from proton.base.errors import LaunchError
from proton.base.words import shown


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


def host_thread() -> int:
    """The ident of the calling thread."""
    return threading.get_ident()
