"""Matrices in shared memory as tensor cores read them: which layout, and how they are addressed.

`wgmma` reads an operand through a *matrix descriptor*, 64 bits that say where the operand begins
and how its 8-row groups follow each other. A matrix is *K-major* where the dimension that is
summed over lies side by side, and *MN-major* where the other one does; only elements of 16 bits may
be either. All of this is of the PTX ISA, "Asynchronous Warpgroup Level Matrix Shared Memory
Layout" and "Matrix Descriptor Format".
"""

import functools
from dataclasses import dataclass

from proton.base.chips.chip import WARP_SIZE
from proton.layout.linear import LinearLayout, log2
from proton.layout.named import (
    CHUNK_BYTES,
    SWIZZLES,
    blocked,
    dim,
    shared_nvmma,
)

ROWS = 8  # after which a swizzle repeats
UNIT = 16  # bytes in which a descriptor counts
ALIGNMENT = 1024  # bytes, of the widest swizzle: 8 rows of 128
LONG_BYTES = 8  # of the elements that `wgmma` does not take
_MODES = {128: 1, 64: 2, 32: 3}


@functools.cache
def matrix_layout(
    shape: tuple[int, int], element_bytes: int, order: tuple[int, int]
) -> LinearLayout | None:
    """The widest swizzle that rows along `order[0]` have room for; None where they are shorter
    than 32 bytes."""
    row = shape[order[0]] * element_bytes
    if shape[order[1]] < ROWS:
        return None
    for swizzle in SWIZZLES:
        if row >= swizzle:
            return shared_nvmma(shape, element_bytes, swizzle, order)
    return None


@functools.cache
def transposing_layout(
    shape: tuple[int, int], element_bytes: int, fast: int, num_warps: int
) -> LinearLayout:
    """In which threads carry a matrix from memory with rows along dimension `fast` to one with rows
    along the other: each has squares of 4 x 4, a row or column of which is read, or written, at
    once: a word of bytes, or 16 bytes. Of the grids of lanes this one takes the fewest wavefronts
    of swizzled memory: of those that are served together, all or a quarter of a warp, four lie
    along the other dimension."""
    lanes, warps, left = [4, 4], [1, 1], num_warps
    lanes[fast] = WARP_SIZE // 4
    for axis in (fast, 1 - fast):
        warps[axis] = min(left, max(1, shape[axis] // (4 * lanes[axis])))
        left //= warps[axis]
    warps[1 - fast] *= left
    found = blocked(shape, (4, 4), lanes, warps, (fast, 1 - fast))
    if element_bytes == 1:
        return found
    bases = found.bases("lane")
    ins = dict(found.ins) | {"lane": (*bases[3:], *bases[:3])}
    return LinearLayout.of(ins, dict(found.outs))


@dataclass(frozen=True)
class MatrixMemory:
    """A swizzled matrix: rows run along dimension `order[0]`, and `places` maps an index to its
    offset, in elements. Without a swizzle (0) it is made of *core matrices*, 8 rows of 16 bytes,
    which in what an instruction reads lie `steps[axis]` bytes apart along a dimension."""

    places: LinearLayout
    element_bytes: int
    order: tuple[int, int]
    swizzle: int
    steps: tuple[int, int] = (0, 0)

    def offset(self, row: int, column: int) -> int:
        """Bytes from the beginning to an element."""
        place = self.places.apply(dim0=row, dim1=column)
        return place["offset"] * self.element_bytes

    @property
    def alignment(self) -> int:
        """Bytes that it begins at a multiple of: a swizzle goes by addresses."""
        return max(UNIT, ROWS * self.swizzle)

    def descriptor(self, k_axis: int) -> int:
        """The bits of a descriptor but for the address: the strides, and the swizzle.

        The stride byte offset is that of groups of 8 rows. The leading byte offset is that of
        blocks of columns, where a MN-major operand reaches over several; K-major ones do not.
        """
        if not self.swizzle:
            along, across = self.steps[k_axis], self.steps[1 - k_axis]
            return _field(along) << 16 | _field(across) << 32
        slow = self.order[1]
        stride = ROWS * self.swizzle
        leading = UNIT
        if self.order[0] != k_axis:
            leading = self.places.in_size(dim(slow)) * self.swizzle
        low = _field(leading) << 16
        return low | _field(stride) << 32 | _MODES[self.swizzle] << 62


def _field(offset: int) -> int:
    """Bytes as 14 bits of a descriptor hold them."""
    return (offset // UNIT) & 0x3FFF


@functools.cache
def matrix_memory(layout: LinearLayout, element_bytes: int) -> MatrixMemory | None:
    """What a layout of shared memory is as a swizzled matrix; None where it is none."""
    if len(layout.outs) != 2:
        return None
    shape = layout.out_size("dim0"), layout.out_size("dim1")
    for order in ((1, 0), (0, 1)):
        for swizzle in SWIZZLES:
            if shape[order[0]] * element_bytes < swizzle or shape[order[1]] < ROWS:
                continue
            if shared_nvmma(shape, element_bytes, swizzle, order) == layout:
                return MatrixMemory(layout.invert(), element_bytes, order, swizzle)
    return None


def core_matrices(
    places: LinearLayout, element_bytes: int, tile: tuple[int, int] | None
) -> MatrixMemory | None:
    """A matrix of core matrices, which in each `tile`, what an instruction reads, by default all of
    it, are evenly apart along both dimensions; None where it is none."""
    shape = places.in_size("dim0"), places.in_size("dim1")
    for order in ((1, 0), (0, 1)):
        core, first = [0, 0], 1
        for axis, size in zip(order, (CHUNK_BYTES // element_bytes, ROWS), strict=True):
            core[axis] = size
            own = places.bases(dim(axis))[: log2(size)]
            if own != tuple((first << bit,) for bit in range(log2(size))):
                break
            first *= size
        else:
            read = [min(own) for own in zip(shape, tile or shape, strict=True)]
            down, across = (_step(places, n, core[n], read[n], first) for n in (0, 1))
            if down is not None and across is not None:
                steps = down * element_bytes, across * element_bytes
                return MatrixMemory(places, element_bytes, order, 0, steps)
    return None


def _step(places: LinearLayout, axis: int, core: int, size: int, whole: int) -> int | None:
    """How far apart core matrices lie along a dimension, of which an instruction reads `size`
    elements; `whole` elements are one of them. None where they are not evenly apart."""
    own = [basis[0] for basis in places.bases(dim(axis))[log2(core) : log2(max(core, size))]]
    step = own[0] if own else whole
    return step if own == [step << bit for bit in range(len(own))] else None
