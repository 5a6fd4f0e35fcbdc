"""The types of Gluon: tensors with a layout, shared memory, descriptors of tensors for TMA."""

import ast
import re
from math import prod
from typing import Any

from proton.language import types as ty
from proton.language.gluon import layouts
from proton.language.gluon.layouts import DistributedLayout, SharedLayout, plain


class distributed_type(ty.block_type):
    """A block in a layout: the type of Gluon's tensors."""

    def __init__(self, element_ty: ty.dtype, shape: Any, layout: Any) -> None:
        layout, sizes = ty.unwrap(layout), tuple(plain(shape))
        if not isinstance(layout, DistributedLayout):
            raise TypeError("tensor layout must be a DistributedLayout")
        if layout.is_known and layout.rank != len(sizes):
            raise TypeError(
                f"tensor shape and layout rank mismatch: shape={list(sizes)}, layout={layout}, "
                f"shape rank={len(sizes)}, layout rank={layout.rank}"
            )
        super().__init__(ty.unwrap(element_ty), sizes)
        self.layout = layout
        self.name = f"<{list(sizes)}, {element_ty!s}, {layout}>"

    def with_element_ty(self, element_ty: ty.dtype) -> ty.dtype:
        return distributed_type(element_ty, self.shape, self.layout)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, distributed_type)
            and other.element_ty == self.element_ty
            and other.shape == self.shape
            and other.layout == self.layout
        )

    def __hash__(self) -> int:
        return hash(("distributed", self.element_ty, self.shape, self.layout))

    def mangle(self) -> str:
        return f"{super().mangle()}, {self.layout.mangle()}"


class shared_memory_descriptor_type(ty.dtype):
    """Shared memory: a part, or a view, of what was allocated in the shape `alloc_shape`. `memory`
    is how it lies there, which the front end follows."""

    def __init__(
        self, element_ty: Any, shape: Any, layout: Any, alloc_shape: Any, memory: object = None
    ) -> None:
        self.element_ty, self._shape = ty.unwrap(element_ty), tuple(plain(shape))
        self.layout, self.alloc_shape = ty.unwrap(layout), list(plain(alloc_shape))
        self.memory = memory
        self.kind, self.primitive_bitwidth = "memory", 0
        sizes = list(self._shape)
        said = f"{self.element_ty}, {sizes}, {self.layout}, {self.alloc_shape}"
        self.name = f"shared_memory_descriptor<{said}>"

    @property
    def scalar(self) -> ty.dtype:
        return self

    @property
    def shape(self) -> tuple[int, ...]:
        return self._shape

    @property
    def nbytes_per_cta(self) -> int:
        """Bytes of all elements."""
        return prod(self.shape) * int(self.element_ty.primitive_bitwidth) // 8

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, shared_memory_descriptor_type)
            and (other.element_ty, other.shape) == (self.element_ty, self.shape)
            and (other.layout, other.alloc_shape) == (self.layout, self.alloc_shape)
            and other.memory == self.memory
        )

    def __hash__(self) -> int:
        return hash(("memory", self.element_ty, self.shape, self.layout))

    def mangle(self) -> str:
        return f"{self.name}@{self.memory}"

    def __str__(self) -> str:
        return self.name


class layout_descriptor_type(ty.tensor_descriptor_type):
    """A tensor of which TMA copies blocks to memory of a layout."""

    def __init__(self, block: ty.block_type, layout: SharedLayout, padding: str = "zero") -> None:
        super().__init__(block, padding)
        self.layout = layout

    @property
    def nbytes_per_cta(self) -> int:
        """Bytes of a block."""
        return self.block_type.nbytes

    def __eq__(self, other: object) -> bool:
        return super().__eq__(other) and self.layout == getattr(other, "layout", None)

    def __hash__(self) -> int:
        return hash(("descriptor", self.block_type, self.padding, self.layout))

    def mangle(self) -> str:
        return f"{super().mangle()[:-1]}, {self.layout!r}>"


class im2col_descriptor_type(layout_descriptor_type):
    """A batch of images, of `rank` dimensions, of which TMA copies pixels and their channels."""

    def __init__(self, block: ty.block_type, layout: SharedLayout, padding: str, rank: int) -> None:
        super().__init__(block, layout, padding)
        self.rank = rank
        self.name = f"tensor_descriptor_im2col<{block!s}>"

    def parts(self) -> list[ty.dtype]:
        """Behind those of a tensor, along D, H and W each: the lower corners of the bounding box,
        the upper ones, and the steps."""
        return [*super().parts(), *[ty.int32] * (3 * (self.rank - 2))]

    def __eq__(self, other: object) -> bool:
        same = isinstance(other, im2col_descriptor_type)
        return same and super().__eq__(other) and other.rank == self.rank  # type: ignore[attr-defined]

    def __hash__(self) -> int:
        return hash(("im2col", self.block_type, self.padding, self.layout, self.rank))

    def mangle(self) -> str:
        found = super().mangle().replace("tensordesc", "tensordesc_im2col", 1)
        return found.replace("],", f"],input_rank={self.rank},", 1)


class warpgroup_mma_accumulator_type(ty.dtype):
    """The accumulator of an asynchronous dot."""

    def __init__(self, tensor_type: distributed_type) -> None:
        self.tensor_type = tensor_type
        self.name = f"warpgroup_mma_accumulator<{tensor_type}>"
        self.kind, self.primitive_bitwidth = "accumulator", 0

    @property
    def shape(self) -> tuple[int, ...]:
        return self.tensor_type.shape

    @property
    def settled(self) -> ty.dtype:
        return self.tensor_type

    def __eq__(self, other: object) -> bool:
        same = isinstance(other, warpgroup_mma_accumulator_type)
        return same and other.tensor_type == self.tensor_type  # type: ignore[attr-defined]

    def __hash__(self) -> int:
        return hash(("accumulator", self.tensor_type))

    def mangle(self) -> str:
        return f"accumulator<{self.tensor_type.mangle()}>"


_DESCRIBED = re.compile(
    r"tensordesc(_im2col)?<([a-z0-9]+)\[([0-9, ]+)\],\s*(?:input_rank=(\d+),\s*)?"
    rf"(?:{ty.LOADS},\s*)?(NVMMASharedLayout\(.*\))>"
)


def _read(text: str) -> ty.dtype | None:
    """A descriptor's type as it is written; None of other texts."""
    found = _DESCRIBED.fullmatch(text)
    if found is None or (found[1] is None) != (found[4] is None):
        return None
    call = ast.parse(found[6], mode="eval").body
    assert isinstance(call, ast.Call)
    names = {word.arg or "": ast.literal_eval(word.value) for word in call.keywords}
    layout = layouts.NVMMASharedLayout(*map(ast.literal_eval, call.args), **names)
    block = ty.block_type(ty.str_to_ty(found[2]), tuple(map(int, found[3].split(","))))
    known = block, layout, found[5] or "zero"
    if found[4] is not None:
        return im2col_descriptor_type(*known, int(found[4]))
    return layout_descriptor_type(*known)


ty.READERS.append(_read)
