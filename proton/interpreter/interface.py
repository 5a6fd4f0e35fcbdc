"""What steps of an interpreted kernel ask of the program that runs them (program.py), which imports
them."""

from collections.abc import Callable
from typing import Protocol

import numpy as np

from proton.base.errors import BoundsError
from proton.interpreter.formats import Array
from proton.interpreter.recorder import ProgramRecorder

Places = tuple[np.ndarray, ...]  # an index of a block: an array for each dimension


class RunningMemory(Protocol):
    """The arrays of the launch (memory.py)."""

    def load(
        self, program: "RunningProgram", pointer: Array, mask: Array, dtype: np.dtype
    ) -> np.ndarray: ...

    def store(
        self, program: "RunningProgram", pointer: Array, mask: Array, value: Array
    ) -> None: ...

    def update(
        self,
        program: "RunningProgram",
        pointer: Array,
        mask: Array,
        change: Callable[[Array, Places], Array],
        dtype: np.dtype,
    ) -> np.ndarray: ...


class RunningProgram(Protocol):
    """The program that runs: where in the grid, and what it works on."""

    debug: bool
    place: tuple[int, int, int]

    @property
    def memory(self) -> RunningMemory: ...

    @property
    def recorder(self) -> ProgramRecorder: ...

    def bounds_error(self, what: str) -> BoundsError: ...
