"""`proton.set_allocator`, as Triton has it: who allocates memory that kernels need for themselves.

Triton's kernels need such memory on a GPU for the tensor maps of descriptors that they make. The
host makes those here, of the kernel's arguments (docs/decisions.md, 81): so no kernel needs any,
and no allocator is ever called. What a session records into is the session's own.
"""

from collections.abc import Callable

from proton.base.errors import LaunchError
from proton.base.words import shown


def set_allocator(allocator: Callable[[int, int, int | None], object] | None) -> None:
    """Does nothing but check that `allocator` is a function (of size, alignment and stream), or
    None: it is there for programs that are written for Triton. Kernels need no memory of their own,
    so there is nothing to ask it for."""
    if allocator is not None and not callable(allocator):
        raise LaunchError(
            f"set_allocator takes a function of size, alignment and stream, got {shown(allocator)}"
        )
