"""Back ends, as the runtime has them: one `Backend` object, and a `Launcher` for each kernel.

A back end is a folder of `proton/runtime` whose `backend.py` has it as `BACKEND`, and its compiler
a folder of `proton/backends`; the folders are the list of them. `register` adds one from elsewhere.
"""

import functools
import importlib
import importlib.util
import inspect
import pkgutil
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Protocol

from proton.backends.compiler import CompiledKernel, Compiler
from proton.base.errors import LaunchError, ProtonError
from proton.base.knobs import knobs
from proton.base.targets import Target
from proton.compiler import Request
from proton.language import types as ty
from proton.language.surroundings import Link
from proton.runtime.launch.arguments import Parameter
from proton.runtime.session.recording import Recorder, SessionState
from proton.trace.instrumentation import Instrumentation

HOST = "cpu"  # the back end whose arrays lie in the host's memory
# Launches a compiled kernel: on a grid, on a stream, with the values of its signature's types.
DirectLaunch = Callable[[tuple[int, int, int], int, tuple[object, ...]], None]


class KernelFunction(Protocol):
    """The part of a kernel function that a launcher needs (proton.runtime.launch.jit.JITFunction).

    `fast_path`, if a launcher sets it, is how the kernel is launched from then on: a function of
    the grid, the arguments and the options that calls `run_any` with what it does not expect.
    """

    __name__: str
    signature: inspect.Signature
    arg_names: list[str]
    params: list[Parameter]
    options: tuple[str, ...]
    watched: list[Link]
    fast_path: Callable[..., Any] | None
    pre_run_hooks: list[Callable[..., object]]

    def check_globals(self) -> None: ...
    def watch_globals(self, links: list[Link] | None = None) -> None: ...
    def links(self) -> list[Link]: ...
    def checks(self, options: dict[str, object]) -> tuple[bool, bool]: ...
    def home(self, values: Sequence[object]) -> "Backend": ...
    def launcher(self, backend: "Backend") -> "Launcher": ...
    def run_any(self, grid: object, args: tuple[object, ...], kwargs: dict[str, object]) -> Any: ...


class Launcher(ABC):
    """The launches of one kernel on one back end; it keeps the machine code that it has loaded.

    `values` are those of all parameters, in order; `options` the launch options that were given.
    """

    @abstractmethod
    def launch(
        self, grid: object, values: tuple[object, ...], options: dict[str, object]
    ) -> CompiledKernel:
        """Compiles and loads what is not there yet, and runs a grid."""

    @abstractmethod
    def compile(
        self,
        values: tuple[object, ...],
        options: dict[str, object],
        target: Target | None = None,
        records: Instrumentation | None = None,
    ) -> CompiledKernel:
        """The kernel for such arguments, without a launch; a dtype stands for an array of it.
        Without a target it is compiled for where it would run, with `records` as a session runs it
        that is asked for those."""

    def compiled(self) -> dict[object, CompiledKernel]:
        """The code that launches of this process have, by key."""
        return {}

    def forget(self) -> None:
        """Drops that code: the next launches look it up on disk, or compile."""
        raise NotImplementedError(f"{type(self).__name__} keeps the code that it has loaded")

    def loaded(self, values: tuple[object, ...], options: dict[str, object]) -> CompiledKernel:
        """The kernel that a launch of such arguments runs."""
        return self.compile(values, options)

    def request(
        self,
        values: tuple[object, ...],
        options: dict[str, object],
        target: Target | None = None,
        records: Instrumentation | None = None,
    ) -> Request | None:
        """What `compile` would ask the compiler for, so that several can be compiled at once; None
        where a back end does not say."""
        return None


class Timer(Protocol):
    """How long work takes on a kind of device."""

    def clear_cache(self) -> None:
        """Has later work begin with none of its data in the device's largest cache."""

    def mark(self) -> Any:
        """A point between what was asked for before and after."""

    def elapsed_ms(self, begin: Any, end: Any) -> float:
        """The time between two points; waits for the second."""

    def synchronize(self) -> None:
        """Waits for everything."""

    def release(self) -> None:
        """Gives back what the timer holds."""


class Backend(ABC):
    """One kind of device: how kernels are compiled for it and how they run there."""

    name: ClassVar[str]  # with which its targets begin, and of PROTON_BACKEND
    plug_in: ClassVar[str | None] = None  # in `triton.backends.backends`, where it has another name
    compiler: Compiler[Any, Any]
    options: ClassVar[tuple[str, ...]] = ()  # what a launch may ask for besides the grid

    @abstractmethod
    def is_there(self) -> bool:
        """True if this process has such a device."""

    @abstractmethod
    def owns(self, value: object) -> bool:
        """True if a value is an array in memory of such a device, or says that it is."""

    def element(self, array: object) -> ty.dtype:
        """The type of the elements of an array that it owns."""
        raise LaunchError(f"the elements of arrays of {self.name} have no type")

    def element_bytes(self, array: object) -> int:
        """The size of an element of an array that it owns."""
        return self.element(array).itemsize

    def layout(self, array: object) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """The shape of an array that it owns, and its strides in elements."""
        raise LaunchError(f"tensor descriptors are not supported on {self.name}")

    def target(self) -> Target:
        """The target of the current device."""
        raise LaunchError(f"the targets of {self.name} have no description")

    def properties(self, device: int | None = None) -> dict[str, object]:
        """Facts of a device, by default the current one: `name` and those that Triton has."""
        return {"name": self.name}

    def timer(self) -> Timer:
        """Measures on the current device."""
        raise LaunchError(f"{self.name} has no timer: pass do_bench= a function of your own")

    def current_device(self) -> int:
        """The number of the device that launches run on."""
        return 0

    def current_stream(self, device: int) -> int:
        """The stream of a device that launches go to; 0 where there are none."""
        return 0

    @abstractmethod
    def launcher(self, kernel: KernelFunction) -> Launcher:
        """A launcher of a kernel."""

    def direct(self, kernel: CompiledKernel) -> DirectLaunch:
        """A function that launches a kernel with the types and constants that it was compiled for:
        nothing is asked about arguments but where they are. A session records it; what records is
        compiled of `kernel.fn`."""
        raise LaunchError(f"{kernel.name}: launch {kernel.name}[grid](...), not its compiled code")

    def interpreter(self, kernel: KernelFunction) -> Any:
        """The launcher that runs a kernel as Python, for a debugger."""
        raise LaunchError(f"kernels are interpreted in the host's memory, not on {self.name}")

    def recorder(self, session: SessionState) -> Recorder | None:
        """The recorder of a session that begins; None where nothing is recorded."""
        return None


_registered: dict[str, Backend] = {}


def register(backend: Backend) -> None:
    """Adds a back end; it is asked before those that are there already."""
    backends()
    _registered[backend.name] = backend


def unregister(name: str) -> None:
    """Takes one away that was added."""
    del _registered[name]


@functools.cache
def _built_in() -> tuple[Backend, ...]:
    folder = importlib.import_module("proton.runtime").__path__
    names = [module.name for module in pkgutil.iter_modules(folder) if module.ispkg]
    homes = [f"proton.runtime.{name}.backend" for name in names]
    homes = [home for home in homes if importlib.util.find_spec(home) is not None]
    return tuple(importlib.import_module(home).BACKEND for home in homes)


def backends() -> list[Backend]:
    """All back ends; the host's is the last."""
    found = [*reversed(_registered.values()), *_built_in()]
    return sorted(found, key=lambda backend: backend.name == HOST)


def backend_named(name: str) -> Backend:
    """The back end of a name; raises ProtonError where there is none."""
    known = {backend.name: backend for backend in backends()}
    if name not in known:
        raise ProtonError(f"no back end is named {name!r}; there are {', '.join(sorted(known))}")
    return known[name]


def owner_of(value: object) -> Backend | None:
    """The back end in whose memory an array lies; None for what is no array."""
    return next((backend for backend in backends() if backend.owns(value)), None)


def default_backend() -> Backend:
    """Where kernels run whose arguments do not say it: PROTON_BACKEND, else the first device."""
    if (name := knobs.backend) is not None:
        try:
            return backend_named(name)
        except ProtonError as problem:
            raise ProtonError(f"PROTON_BACKEND={name!r}: {problem}") from None
    return next(backend for backend in backends() if backend.is_there())
