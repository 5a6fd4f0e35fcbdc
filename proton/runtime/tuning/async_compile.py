"""`AsyncCompileMode`: kernels that `warmup` asks for are compiled by an executor's threads.

with proton.AsyncCompileMode(ThreadPoolExecutor(2)):
    futures = [kernel.warmup(..., BLOCK=block) for block in (64, 128)]
"""

from collections.abc import Callable
from concurrent.futures import Executor, Future, as_completed
from contextvars import ContextVar
from typing import Any

from proton.backends.compiler import CompiledKernel
from proton.base.errors import ProtonError
from proton.base.progress import StepCounter, to_terminal
from proton.base.tracebacks import boundary
from proton.compiler import Request

_active: ContextVar["AsyncCompileMode | None"] = ContextVar("async_compile_mode", default=None)


class FutureKernel:
    """A kernel that is being compiled; its attributes wait for it."""

    def __init__(self, future: "Future[CompiledKernel]") -> None:
        self.future = future

    @boundary
    def result(self, ignore_errors: bool = False) -> CompiledKernel | None:
        """The kernel, once it is there; None for an error that is ignored."""
        if ignore_errors and self.future.exception() is not None:
            return None
        return self.future.result()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.future.result(), name)

    def __getitem__(self, grid: object) -> Any:
        return self.future.result()[grid]


class AsyncCompileMode:
    """Has `executor` compile what `warmup` is asked for inside a `with` block, of this thread. The
    end of the block waits, and raises the first error unless they are ignored."""

    def __init__(self, executor: Executor, *, ignore_errors: bool = False) -> None:
        self.executor, self.ignore_errors = executor, ignore_errors
        self.futures: list[Future[CompiledKernel]] = []
        self._kernels: dict[str, FutureKernel] = {}  # by their keys in the disk cache

    def submit(
        self,
        compile_: Callable[[], CompiledKernel],
        request: Callable[[], Request | None],
        under_way: dict[object, Any],
    ) -> FutureKernel:
        """Has a kernel compiled, unless the mode was asked for the same before; `request` gives
        what it is compiled from. Until it is there `under_way` has it."""
        try:
            found = request()
            key = None if found is None else found.key
        except ProtonError:  # it is raised again by the compilation
            key = None
        if key is not None and key in self._kernels:
            return self._kernels[key]
        future = self.executor.submit(compile_)
        self.futures.append(future)
        kernel = FutureKernel(future)
        if key is not None:
            self._kernels[key] = under_way[key] = kernel
            future.add_done_callback(lambda _: under_way.pop(key, None))
        return kernel

    def __enter__(self) -> "AsyncCompileMode":
        if _active.get() is not None:
            raise RuntimeError("AsyncCompileMode is active already")
        self._token = _active.set(self)
        return self

    @boundary
    def __exit__(self, kind: object, value: object, trace: object) -> None:
        _active.reset(self._token)
        progress = StepCounter("compiled", len(self.futures), to_terminal)
        for future in as_completed(self.futures):
            if kind is None and not self.ignore_errors:
                future.result()
            progress.step()


def active_mode() -> AsyncCompileMode | None:
    """The mode that is on in this thread."""
    return _active.get()
