"""`proton.set_allocator`, as Triton has it: who allocates memory that kernels need for themselves.

A kernel for a GPU needs such memory for the tensor maps that it makes: those of descriptors that
the host cannot compute of the kernel's arguments (docs/tensor-cores.md). Without an allocator
Proton takes it (proton/runtime/nvidia/global_scratch.py). What a session records into is the
session's own.
"""

from collections.abc import Callable

from proton.base.errors import LaunchError
from proton.base.words import shown

Allocator = Callable[[int, int, int | None], object]


class NullAllocator:
    """No allocator: what Triton's programs set to take theirs away."""


_allocators: list[Allocator] = []  # the one that was set, if any


def set_allocator(allocator: Allocator | NullAllocator | None) -> None:
    """Has launches take memory that a kernel needs for itself from `allocator`, a function of its
    bytes, its alignment in bytes, and the stream of the launch (its address), for each launch anew.
    What it gives has a method `data_ptr`, as torch's tensors have, and may go when the launch has
    been queued, as far as the work of that stream is concerned. None, or a `NullAllocator`: Proton
    takes it. Raises LaunchError for anything that cannot be called."""
    if isinstance(allocator, NullAllocator):
        allocator = None
    if allocator is not None and not callable(allocator):
        raise LaunchError(
            f"set_allocator takes a function of size, alignment and stream, got {shown(allocator)}"
        )
    _allocators[:] = [] if allocator is None else [allocator]


def current_allocator() -> Allocator | None:
    """The one that was set."""
    return _allocators[0] if _allocators else None
