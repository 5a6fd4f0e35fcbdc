"""The interface of every kernel: `kernel[grid](...)`."""

import functools
from typing import Any

# What a launch is given: by position, and by name. Launchers find out what it is.
Values = tuple[object, ...]
Named = dict[str, object]


class KernelInterface:
    """A kernel, or something around one that is launched as a kernel is.

    A class of one's own needs `run`, which gets `grid=` and `warmup=` besides the arguments of the
    launch; it hands them on to the `run` of the kernel that it is around.
    """

    def run(self, *args: object, grid: object, warmup: bool = False, **kwargs: object) -> Any:
        """Launches on a grid, or compiles only (`warmup=True`)."""
        raise NotImplementedError(
            f"{type(self).__name__} has no run(*args, grid, warmup, **kwargs)"
        )

    def warmup(self, *args: object, grid: object = (1,), **kwargs: object) -> Any:
        """Compiles for these arguments without launching."""
        return self.run(*args, grid=grid, warmup=True, **kwargs)

    def __getitem__(self, grid: object) -> Any:
        return functools.partial(self.run, grid=grid, warmup=False)
