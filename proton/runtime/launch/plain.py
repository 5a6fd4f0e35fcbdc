"""What a back end begins with: a launcher that looks at each argument and asks the compiler, and a
recorder of the times of launches. A back end that wants less time per launch, or records within
kernels, has its own.
"""

import time
from abc import abstractmethod
from collections.abc import Iterator, Sequence

import numpy as np

from proton.backends.compiler import CompiledKernel
from proton.base.targets import Target
from proton.compiler import compile_function
from proton.runtime.backend import Backend, KernelFunction, Launcher
from proton.runtime.launch.arguments import (
    Argument,
    Constant,
    Parameter,
    TupleKey,
    refused,
    signature_of,
)
from proton.runtime.launch.grid import grid_sizes, host_thread
from proton.runtime.session import session as sessions
from proton.runtime.session.recording import Recorded, Recorder, SessionState
from proton.trace.instrumentation import Instrumentation
from proton.trace.model import Launch

Key = str | Constant | TupleKey


class PlainLauncher(Launcher):
    """The launches of one kernel. A subclass says how a grid runs; its `Backend` has `element` and
    `target`, and its compiler `chosen`."""

    def __init__(self, backend: Backend, kernel: KernelFunction) -> None:
        self.backend, self.kernel = backend, kernel
        self._kernels: dict[object, CompiledKernel] = {}

    @abstractmethod
    def run(
        self, kernel: CompiledKernel, grid: tuple[int, int, int], arguments: list[object]
    ) -> None:
        """Runs a grid; `arguments` are the arrays and numbers that the code takes, in order."""

    def launch(
        self, grid: object, values: tuple[object, ...], options: dict[str, object]
    ) -> CompiledKernel:
        self.kernel.check_globals()
        keys = [self._key(p, v) for p, v in zip(self.kernel.params, values, strict=True)]
        kernel = self._compiled(keys, options, self.backend.target())
        leaves = [leaf for pair in zip(keys, values, strict=True) for leaf in _leaves(*pair)]
        passed = [value for key, value in leaves if isinstance(key, str)]
        sizes, begin = grid_sizes(grid), time.perf_counter_ns()
        self.run(kernel, sizes, passed)
        recorder: LaunchTimes | None = sessions.recorder_of(self.backend.name)
        if recorder is not None:
            recorder.keep(kernel, sizes, begin)
        return kernel

    def compile(
        self,
        values: tuple[object, ...],
        options: dict[str, object],
        target: Target | None = None,
        records: Instrumentation | None = None,
    ) -> CompiledKernel:
        """The kernel; it records nothing, as its launches do."""
        self.kernel.check_globals()
        pairs = zip(self.kernel.params, values, strict=True)
        keys = [parameter.stand_in(v) or self._key(parameter, v) for parameter, v in pairs]
        return self._compiled(keys, options, target or self.backend.target())

    def compiled(self) -> dict[object, CompiledKernel]:
        return dict(self._kernels)

    def forget(self) -> None:
        self._kernels.clear()

    def _key(self, parameter: Parameter, value: object) -> Key:
        """What the code is compiled for in the place of an argument."""
        if isinstance(value, tuple) and parameter.is_tuple(value):
            pairs = zip(parameter.elements(value), value, strict=True)
            return TupleKey(type(value), tuple(self._key(*pair) for pair in pairs))
        scalar = parameter.scalar(value)
        if scalar is not None:
            return scalar[0]
        if not self.backend.owns(value):
            raise refused(parameter.name, value)
        return parameter.pointer(self.backend.element(value))

    def _compiled(
        self, keys: Sequence[Key], options: dict[str, object], target: Target
    ) -> CompiledKernel:
        chosen = self.backend.compiler.chosen(target, options)
        key = *keys, chosen
        if key not in self._kernels:
            links = self.kernel.links()
            signature = signature_of(self.kernel.arg_names, map(Argument.of, keys))
            self._kernels[key] = compile_function(
                self.backend.compiler,
                self.kernel,  # type: ignore[arg-type]  # a DeviceFunction, and more
                signature,
                chosen,
            )
            self.kernel.watch_globals(links)
        return self._kernels[key]


def _leaves(key: Key, value: object) -> Iterator[tuple[Key, object]]:
    """An argument, or all elements of a tuple, with what each is compiled for."""
    if isinstance(key, TupleKey) and isinstance(value, tuple):
        for pair in zip(key.elements, value, strict=True):
            yield from _leaves(*pair)
    else:
        yield key, value


class LaunchTimes(Recorder):
    """The launches of one session on one back end, by the host's clock, without records."""

    def __init__(self, session: SessionState, **machine: object) -> None:
        """`machine` are facts of the device for display."""
        self.session, self.machine = session, machine
        self.launches: list[Launch] = []

    def keep(self, kernel: CompiledKernel, grid: tuple[int, int, int], begin: int) -> None:
        """A launch that has ended, and began at `begin` (`time.perf_counter_ns()`)."""
        end, session = time.perf_counter_ns(), self.session
        with session.lock:
            if session.begins():
                launch = Launch(
                    kernel=session.kernel_number(kernel, session.instrumentation),
                    grid=grid,
                    capacity=0,
                    host_start=begin,
                    host_end=end,
                    buffer=np.zeros(0, np.uint8),
                    path=session.host.path(),
                    thread=host_thread(),
                )
                self.launches.append(launch)

    def disown(self) -> None:
        self.launches = []

    def finish(self) -> Recorded:
        return Recorded(self.launches, machine=dict(self.machine))
