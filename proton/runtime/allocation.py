"""Memory that kernels need for themselves: who allocates it.

`proton.set_allocator(f)` says so, as in Triton: `f(size, alignment, stream)` gives an array of so
many bytes. Kernels that need none never call it.
"""

from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

from proton.base.errors import LaunchError
from proton.base.words import shown

Allocator = Callable[[int, int, int | None], Any]
_allocator: ContextVar[Allocator | None] = ContextVar("allocator", default=None)


def set_allocator(allocator: Allocator | None) -> None:
    """Makes `allocator(size, alignment, stream)` give kernels launched in this context the memory
    that they need on a GPU; None takes it away."""
    if allocator is not None and not callable(allocator):
        raise LaunchError(
            f"set_allocator takes a function of size, alignment and stream, got {shown(allocator)}"
        )
    _allocator.set(allocator)


def current_allocator() -> Allocator | None:
    """The function that `set_allocator` was given last."""
    return _allocator.get()
