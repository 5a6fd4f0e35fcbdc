"""Functions that programs have called around launches: `knobs.runtime.launch_enter_hook` and
`launch_exit_hook`; and around the loading of their machine code.

The former get the launch's facts as a `LazyDict`: `.get()` gives the name of the kernel, and what
the kernel's own `launch_metadata(grid, metadata, args)` says, which is computed only then.
"""

from collections.abc import Callable
from typing import Any

from proton.backends.compiler import CompiledKernel
from proton.base.knobs import knobs

_HOOKS = knobs.runtime.hooks()


class LazyDict:
    """A dict of which parts are computed when it is asked for."""

    def __init__(self, data: dict[str, Any]) -> None:
        self.data = data
        self.extras: list[tuple[Callable[..., dict[str, object]], tuple[object, ...]]] = []

    def add(self, function: Callable[..., dict[str, object]], args: tuple[object, ...]) -> None:
        """Has `get` add what a function gives."""
        self.extras.append((function, args))

    def get(self) -> dict[str, object]:
        """All of it."""
        while self.extras:
            function, args = self.extras.pop()
            self.data = self.data | function(*args)
        return self.data


def around_launches() -> bool:
    """True if a program wants to hear of launches."""
    return bool(_HOOKS["launch_enter_hook"] or _HOOKS["launch_exit_hook"])


def hooked(
    launch: Callable[[], CompiledKernel],
    kernel: CompiledKernel,
    metadata: Callable[..., dict[str, Any]] | None,
    grid: object,
    stream: int,
    arguments: dict[str, object],
) -> CompiledKernel:
    """Launches, with the hooks before and after."""
    facts = LazyDict({"name": kernel.name, "function": None, "stream": stream})
    if metadata is not None:
        facts.add(metadata, (grid, kernel.metadata, arguments))
    if knobs.runtime.launch_enter_hook:
        knobs.runtime.launch_enter_hook(facts)
    launched = launch()
    if knobs.runtime.launch_exit_hook:
        knobs.runtime.launch_exit_hook(facts)
    return launched


def loaded(kernel: CompiledKernel, load: Callable[[], object]) -> Any:
    """What `load` gives, the function of a kernel, with the hooks of loading before and after."""
    before, after = knobs.runtime.kernel_load_start_hook, knobs.runtime.kernel_load_end_hook
    if before:
        before(None, None, kernel.name, kernel.metadata, kernel.hash)
    function = load()
    if after:
        after(None, function, kernel.name, kernel.metadata, kernel.hash)
    return function
