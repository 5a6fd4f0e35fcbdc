"""Runs the programs of a grid one after the other, each as the Python function that it is."""

import contextlib
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from proton.base.errors import BoundsError, ProtonError
from proton.interpreter.debugging import end_in_kernel, skip_machinery
from proton.interpreter.formats import format_of
from proton.interpreter.frame import Frame
from proton.interpreter.memory import LaunchMemory
from proton.interpreter.recorder import BlockRecorder, NoRecorder, ProgramRecorder
from proton.interpreter.rewrite import Rewritten, rewritten
from proton.interpreter.values import Value
from proton.language.function import DeviceFunction

Chosen = tuple[bool, bool, int]  # debug, sanitize_overflow, num_warps: 0 where it is not asked


class Interpreter:
    """Kernels as Python; what was made of a function is kept."""

    def __init__(self) -> None:
        self._rewritten: dict[DeviceFunction, Rewritten] = {}

    def rewritten(self, fn: DeviceFunction) -> Rewritten:
        """A function as Python."""
        if fn not in self._rewritten:
            self._rewritten[fn] = rewritten(fn)
        return self._rewritten[fn]


@dataclass
class Program:
    """The program that runs: where in the grid, and what it works on."""

    interpreter: Interpreter
    kernel: DeviceFunction
    grid: tuple[int, int, int]
    memory: LaunchMemory
    debug: bool = False
    sanitize_overflow: bool = True
    num_warps: int = 0
    recorder: ProgramRecorder = field(default_factory=NoRecorder)
    place: tuple[int, int, int] = (0, 0, 0)
    frame: Frame | None = None

    @property
    def chosen(self) -> Chosen:
        """What code depends on besides its source and types."""
        return self.debug, self.sanitize_overflow, self.num_warps

    @contextlib.contextmanager
    def inside(self, frame: Frame) -> Iterator[None]:
        """Runs a function of the kernel."""
        outer, self.frame = self.frame, frame
        try:
            yield
        finally:
            self.frame = outer

    def bounds_error(self, what: str) -> BoundsError:
        """The error of an access outside of an array, at the line that runs."""
        assert self.frame is not None
        g = self.frame.generator()
        return BoundsError(
            f"kernel {self.kernel.__name__}: {what}",
            g.span(),
            "mask it off, or see why the index is what it is: put breakpoint() before this line",
            g.call_trace(),
        )


class _Local(threading.local):
    """The program that a thread runs."""

    program: Program | None = None


_local = _Local()


def run_grid(program: Program, arguments: dict[str, object]) -> None:
    """Runs all programs; x counts fastest."""
    outer, _local.program = _local.program, program
    skip_machinery()
    recorder = program.recorder
    number = 0
    try:
        with np.errstate(all="ignore"):
            for z, y, x in np.ndindex(*reversed(program.grid)):
                program.place = (x, y, z)
                if isinstance(recorder, BlockRecorder):
                    recorder.begin()
                frame = Frame(program, program.kernel)
                with program.inside(frame):
                    frame.code.function(frame, *arguments.values())
                if isinstance(recorder, BlockRecorder):
                    recorder.finish(number, program.place)
                number += 1
    except ProtonError as error:
        end_in_kernel(error)
        raise
    finally:
        _local.program = outer


def _evaluate(text: str, *operands: object) -> object:
    """An expression of values, by the rules of the language."""
    program = _local.program
    if program is None or program.frame is None:
        raise RuntimeError("the kernel of this value has ended: take its .numpy()")
    return program.frame.evaluate(text, *operands)


Value.evaluate = staticmethod(_evaluate)

__all__ = ["Interpreter", "LaunchMemory", "Program", "Value", "format_of", "run_grid"]
