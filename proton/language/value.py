"""A value of a kernel that is not known while compiling."""

from typing import Any

from proton.language.types import block_type, dtype


class tensor:
    """A scalar or block in the IR: `handle` is its SSA value, `type` its type."""

    __slots__ = ("handle", "type")

    def __init__(self, handle: Any, type: dtype) -> None:
        self.handle, self.type = handle, type

    @property
    def dtype(self) -> dtype:
        """The element type."""
        return self.type.scalar

    @property
    def shape(self) -> tuple[int, ...]:
        """The static shape; () for a scalar."""
        return self.type.shape

    @property
    def numel(self) -> int:
        """Number of elements."""
        count = 1
        for size in self.shape:
            count *= size
        return count

    def is_block(self) -> bool:
        return isinstance(self.type, block_type)

    def __repr__(self) -> str:
        return f"tensor({self.type})"

    def __str__(self) -> str:
        """What Triton calls it, which `tl.static_print` shows: int32[constexpr[8]]."""
        return f"{self.dtype!s}[{', '.join(f'constexpr[{size}]' for size in self.shape)}]"

    def __format__(self, spec: str) -> str:
        """In messages it has its short name."""
        return format(repr(self), spec)
