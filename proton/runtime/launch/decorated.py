"""Kernels with something around them that completes the arguments of their launches."""

import functools
from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any, Self

from proton.base.errors import NotAKernel
from proton.base.tracebacks import boundary
from proton.base.words import shown
from proton.compiler import Request
from proton.runtime.launch.interface import KernelInterface, Named, Values
from proton.runtime.launch.jit import JITFunction


class Decorated(KernelInterface, ABC):
    """A kernel, launched as `kernel[grid](...)`, that asks another one, `fn`, which may be such a
    kernel itself. `kernel` is the innermost one, `base_fn` its Python function; where there is
    none an object with `run` and `fn` is asked, and `kernel` is None."""

    def __init__(self, fn: Any, by: str) -> None:
        self.fn, self.kernel = fn, _innermost(fn, by)
        self.takes_grid = hasattr(type(fn), "__getitem__")
        self.base_fn = self.kernel.fn if self.kernel else _last_function(fn)
        self.arg_names = self.kernel.arg_names if self.kernel else getattr(fn, "arg_names", [])
        self.__name__ = getattr(self.base_fn, "__name__", type(fn).__name__)
        self.__doc__, self.__wrapped__ = self.base_fn.__doc__, fn
        self.__module__ = getattr(self.base_fn, "__module__", type(fn).__module__)

    def __getitem__(self, grid: object) -> Any:
        if type(self).run is not Decorated.run:  # a class derived from this one has its own
            return super().__getitem__(grid)
        return functools.partial(self.launch, grid)

    @boundary
    def run(self, *args: object, grid: object, warmup: bool = False, **kwargs: object) -> Any:
        """Launches on a grid, as `kernel[grid](...)` does."""
        return self.warmup(*args, **kwargs) if warmup else self.launch(grid, *args, **kwargs)

    def _launch_inner(self, grid: object, args: Values, kwargs: Named) -> Any:
        """Launches what it is around. An object of another class may have no more than `run`."""
        if self.takes_grid:
            return self.fn[grid](*args, **kwargs)
        return self.fn.run(*args, grid=grid, warmup=False, **kwargs)

    def _warm_inner(self, args: Values, kwargs: Named) -> Any:
        """Compiles what it is around."""
        if hasattr(self.fn, "warmup"):
            return self.fn.warmup(*args, **kwargs)
        return self.fn.run(*args, grid=(1,), warmup=True, **kwargs)

    def _inner_request(self, args: Values, kwargs: Named) -> Request | None:
        """What that would ask the compiler for; None where it does not say."""
        request = getattr(self.fn, "request", None)
        return None if request is None else request(*args, **kwargs)

    @abstractmethod
    def launch(self, grid: object, /, *args: object, **kwargs: object) -> Any:
        """Completes the arguments, and launches."""

    @abstractmethod
    def warmup(self, /, *args: object, **kwargs: object) -> Any:
        """Compiles for these arguments without launching; see `JITFunction.warmup`."""

    @abstractmethod
    def request(self, /, *args: object, **kwargs: object) -> Request | None:
        """What a launch would ask the compiler for."""

    def named(self, args: tuple[object, ...], kwargs: dict[str, object]) -> dict[str, object]:
        """All arguments and options that were given, by name."""
        # torch traces this in graphs, and 2.9 takes any value of `strict` for True.
        return dict(zip(self.arg_names, args)) | kwargs  # noqa: B905

    def __deepcopy__(self, memo: object) -> Self:
        """The same one, as of the kernel."""
        return self

    def __call__(self, *args: object, **kwargs: object) -> Any:
        raise RuntimeError(f"{self.__name__} is a kernel: call it as {self.__name__}[grid](...)")

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self.fn!r}>"


def _innermost(fn: object, by: str) -> JITFunction | None:
    """The kernel that everything is around. What is around one may be an object of any class, with
    the next one as `fn`; None where the first of them can run and no kernel is in it."""
    chain = list(_chain(fn))
    if chain and isinstance(chain[-1], JITFunction):
        return chain[-1]
    if len(chain) > 1 and callable(getattr(fn, "run", None)):
        return None
    raise NotAKernel(f"{by} decorates a kernel, got {shown(fn)}: put it above @proton.jit")


def _chain(fn: object) -> Iterator[object]:
    """An object, its `fn`, and so on, up to a kernel."""
    seen = list[object]()
    while fn is not None and all(fn is not other for other in seen):
        yield fn
        seen.append(fn)
        fn = None if isinstance(fn, JITFunction) else getattr(fn, "fn", None)


def _last_function(fn: object) -> Any:
    return list(_chain(fn))[-1]
