"""What TMA copies at once, and how a block of a tensor lies in shared memory when it has.

A *tensor map* describes a tensor in global memory and the *box* of it that one copy takes. A box
has at most 256 elements along each dimension, and where its rows are swizzled, they are as long as
the swizzle. A block that is larger is copied in several boxes, one behind the other in memory.

In im2col mode the tensor is a batch of images, NWC to NDHWC, and a block has two dimensions: pixels
and channels. Pixels are those that a walk meets, W fastest, in the *bounding box* of each image.
Source: CUDA Driver API, `cuTensorMapEncodeTiled`, `cuTensorMapEncodeIm2col`; PTX ISA, "Tensors".
"""

import functools
import itertools
from dataclasses import dataclass
from math import prod
from typing import NotRequired, TypedDict

from proton.layout.encodings import nvmma_memory
from proton.layout.linear import LinearLayout
from proton.layout.matrix_memory import matrix_layout, matrix_memory
from proton.layout.named import SWIZZLES, dim, shared_row_major
from proton.layout.shared_view import SharedView

MAX_BOX = 256  # elements along a dimension
MAX_PIXELS = 1024  # of a box in im2col mode
IM2COL_RANKS = (3, 4, 5)
MAX_ELEMENT_STRIDE = 8  # of the walk
# By the number of dimensions that pixels have, the bits of each corner of the bounding box, which
# is signed, and of each offset, which is not.
CORNER_BITS = {1: 16, 2: 8, 3: 5}
TENSOR_MAP_BYTES = 128
TENSOR_MAP_ALIGNMENT = 128  # bytes, where the kernel makes one
ROW_BYTES = 16  # that addresses, strides and beginnings of rows are multiples of
ALIGNMENT = 128  # bytes, of a box in shared memory
_SWIZZLED_ROWS = 8  # of a swizzle's width, until it comes again


# Behind what lies outside of a tensor, where loads round fp32: "zero tf32".
TF32 = "tf32"


# What the host computes: a number, ["argument", n], [an operator, formula, formula], or the signed
# number that the low bits of one are, ["low", bits, formula].
Formula = int | list["str | Formula"]


class TensorMapPlan(TypedDict):
    """What a map that the host makes is made of. JSON, in a kernel's metadata."""

    base: int  # the number of the argument that is the tensor's address
    sizes: list[Formula]
    strides: list[Formula]  # in elements; of the last dimension 1
    element: str  # an MLIR type, "tf32" of fp32 that loads round
    bytes: int  # of an element
    box: list[int]
    swizzle: int  # bytes
    padding: str  # what is outside: "zero" or "nan"
    # In im2col mode, of each dimension of pixels: the lower corners of the bounding box, the upper
    # ones, and the steps of the walk.
    pixels: NotRequired[list[Formula]]


@dataclass(frozen=True)
class Box:
    """How blocks of a shape are copied: `sizes` elements at once, in rows that are swizzled over
    `swizzle` bytes (0: they are not); `layout` is that of a block in shared memory."""

    block: tuple[int, ...]
    element_bytes: int
    sizes: tuple[int, ...]
    swizzle: int
    layout: LinearLayout

    @property
    def bytes(self) -> int:
        """Of a block."""
        return prod(self.block) * self.element_bytes

    @property
    def alignment(self) -> int:
        """Bytes that a block begins at a multiple of in shared memory: a swizzle goes by
        addresses."""
        return max(ALIGNMENT, _SWIZZLED_ROWS * self.swizzle)

    @functools.cached_property
    def pieces(self) -> list[tuple[tuple[int, ...], int]]:
        """Of each copy of a block the indices where it begins, and the byte of memory."""
        places = self.layout.invert()
        starts = [range(0, size, step) for size, step in zip(self.block, self.sizes, strict=True)]
        found = []
        for start in itertools.product(*starts):
            place = places.apply(**{dim(axis): index for axis, index in enumerate(start)})
            found.append((start, place["offset"] * self.element_bytes))
        return found

    def pieces_in(self, view: SharedView) -> list[tuple[tuple[int, ...], int]] | None:
        """The pieces of a block that is a part of memory; None where a box is not one there."""
        own, other = (
            each.sliced([0] * len(self.sizes), self.sizes).places.ins
            for each in (SharedView.of(self.layout), view)
        )
        found = [(start, view.offset(start) * self.element_bytes) for start, _ in self.pieces]
        is_off = view.start or any(byte % self.alignment for _, byte in found)
        return None if own != other or is_off else found


@functools.cache
def box_in(
    block: tuple[int, ...], element_bytes: int, layout: LinearLayout, rows: int = MAX_BOX
) -> Box | None:
    """How TMA copies blocks of a shape to memory of a layout, at most so many rows at once; None
    where it cannot."""
    if block[-1] * element_bytes < ROW_BYTES:
        return None
    # A swizzle goes by addresses: rows that one leaves where they are have none.
    for swizzle in (0, *SWIZZLES):
        try:
            if nvmma_memory(block, element_bytes, swizzle, False) != layout:
                continue
        except ValueError:  # rows are shorter
            continue
        row = swizzle // element_bytes if swizzle else block[-1]
        if prod(block[:-1]) == 1:
            row = min(row, MAX_BOX)
        if row > MAX_BOX:
            return None
        sizes = (*(min(size, rows) for size in block[:-1]), row)
        box = Box(block, element_bytes, sizes, swizzle, layout)
        is_aligned = sizes == block or prod(sizes) * element_bytes % box.alignment == 0
        return box if is_aligned else None
    return None


def with_ones(layout: LinearLayout, block: tuple[int, ...]) -> LinearLayout:
    """The layout in memory of a block that has leading dimensions of one element more."""
    bases = layout.bases("offset")
    more = (0,) * (len(block) - len(bases[0]))
    outs = {dim(axis): size for axis, size in enumerate(block)}
    return LinearLayout.of({"offset": [(*more, *basis) for basis in bases]}, outs)


@functools.cache
def box_of(block: tuple[int, ...], element_bytes: int) -> Box | None:
    """How TMA copies blocks of a shape; None where it cannot. Matrices lie as `wgmma` reads them,
    if they are large enough for that, also where leading dimensions are one element."""
    if prod(block) * element_bytes < ALIGNMENT:
        return None
    if len(block) > 2 and prod(block[:-2]) == 1:
        matrix_box = box_of(block[-2:], element_bytes)
        if matrix_box is not None and matrix_box.swizzle:
            sizes, layout = (*block[:-2], *matrix_box.sizes), with_ones(matrix_box.layout, block)
            return Box(block, element_bytes, sizes, matrix_box.swizzle, layout)
    if len(block) == 2:
        matrix = matrix_layout((block[0], block[1]), element_bytes, (1, 0))
        found = None if matrix is None else matrix_memory(matrix, element_bytes)
        if matrix is not None and found is not None:
            row = found.swizzle // element_bytes
            box = min(block[0], MAX_BOX), row
            return Box(block, element_bytes, box, found.swizzle, matrix)
    sizes = tuple(min(size, MAX_BOX) for size in block)
    fastest_first = tuple(reversed(range(len(block))))
    layout = shared_row_major(sizes, fastest_first)
    for axis in fastest_first:
        layout = layout * LinearLayout.identity(block[axis] // sizes[axis], "offset", dim(axis))
    return Box(block, element_bytes, sizes, 0, layout)
