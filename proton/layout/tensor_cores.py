"""How a product is divided among warps, and which layouts its operands have then.

Each function gives what follows from a shape and a number of warps alone, so that the pass that
chooses an instruction and the lowering that emits it agree without a word between them.
"""

import functools
from collections.abc import Iterator
from dataclasses import dataclass
from math import prod

from proton.layout.linear import LinearLayout
from proton.layout.named import (
    dim,
    fit,
    mma_operand_a,
    mma_operand_b,
    mma_v2,
    standard,
    wgmma_accumulator,
    wgmma_operand_a,
)

GROUP_ROWS = 64  # of a product of one warp group
GROUP_WARPS = 4
MAX_N = 256  # columns of one `wgmma`
MMA_ROWS, MMA_COLUMNS = 16, 8
MMA_LEAST_COLUMNS = 2  # of those that a warp computes: a thread has two neighbours
K_BITS = 256  # of a row of the left operand in one instruction

Shape = tuple[int, int]


@dataclass(frozen=True)
class WarpGroupTiling:
    """A product of shape `shape` by `wgmma`: `groups[axis]` warp groups lie along each dimension;
    each makes tiles of 64 rows and `n` columns."""

    shape: Shape
    groups: Shape
    n: int

    @property
    def warps(self) -> Shape:
        """Warps along each dimension."""
        return GROUP_WARPS * self.groups[0], self.groups[1]

    @property
    def accumulator(self) -> LinearLayout:
        """The layout of the result: the registers of a tile, tiles down, then tiles across."""
        return wgmma_accumulator(self.shape, self.n, self.warps)

    def operand_a(self, k: int, bits: int) -> LinearLayout:
        """The layout of a left operand in registers: those of 16 rows, tiles down, then along k."""
        return wgmma_operand_a((self.shape[0], k), bits, self.warps)

    def read(self, axis: int, bits: int) -> Shape:
        """The part of an operand in memory that an instruction reads: of the left one (0), of the
        right one (1)."""
        k = K_BITS // bits
        return (GROUP_ROWS, k) if axis == 0 else (k, self.n)

    @property
    def tiles(self) -> list[tuple[int, int]]:
        """(row, column) of the tiles of the first group, in the order of registers."""
        down, across = GROUP_ROWS * self.groups[0], self.n * self.groups[1]
        rows, columns = range(0, self.shape[0], down), range(0, self.shape[1], across)
        return [(row, column) for column in columns for row in rows]


@functools.cache
def warp_group_tiling(
    shape: Shape, num_warps: int, most_columns: int = MAX_N
) -> WarpGroupTiling | None:
    """Warp groups along rows as far as there are rows, then along columns; None where a product is
    too small for them."""
    groups = num_warps // GROUP_WARPS
    if num_warps % GROUP_WARPS or shape[0] < GROUP_ROWS:
        return None
    down = min(groups, shape[0] // GROUP_ROWS)
    across = groups // down
    n = min(most_columns, shape[1] // across)
    return WarpGroupTiling(shape, (down, across), n) if n >= MMA_COLUMNS else None


@functools.cache
def group_tiling_of(layout: LinearLayout, most_columns: int = MAX_N) -> WarpGroupTiling | None:
    """The tiling whose results have a layout, by instructions of so many columns; None where it is
    of none."""
    found = _tilings(layout, most_columns)
    return next((tiling for tiling in found if tiling.accumulator == layout), None)


def _tilings(layout: LinearLayout, most_columns: int) -> Iterator[WarpGroupTiling]:
    """All tilings for as many warps, those that are taken by themselves first."""
    shape = layout.out_size("dim0"), layout.out_size("dim1")
    warps = layout.in_size("warp")
    usual = warp_group_tiling(shape, warps, most_columns)
    if usual is not None:
        yield usual
    if len(layout.outs) != 2 or warps % GROUP_WARPS or shape[0] < GROUP_ROWS:
        return
    groups = warps // GROUP_WARPS
    for down in (1 << bit for bit in range(groups.bit_length())):
        for n in range(MMA_COLUMNS, min(most_columns, shape[1]) + 1, MMA_COLUMNS):
            if not n & (n - 1):
                yield WarpGroupTiling(shape, (down, groups // down), n)


@dataclass(frozen=True)
class WarpTiling:
    """A product by `mma`, of 16 rows and 8 columns in a warp; `warps[axis]` lie along each axis. A
    product of several pairs of matrices has a third dimension, the first one. One `is_swapped` is
    computed transposed, as the product of its right and its left side."""

    shape: tuple[int, ...]
    warps: tuple[int, ...]
    is_swapped: bool = False

    @property
    def matrix(self) -> Shape:
        """Rows and columns of one product, as the instruction has them."""
        return self._as_computed(self.shape)

    def _as_computed(self, sizes: tuple[int, ...]) -> Shape:
        rows, columns = sizes[-2:]
        return (columns, rows) if self.is_swapped else (rows, columns)

    @property
    def batches(self) -> int:
        """How many products a warp computes, one after the other in registers."""
        return self.shape[0] // self.warps[0] if len(self.shape) == 3 else 1

    def _spread(self, tile: LinearLayout, spread_axis: int) -> LinearLayout:
        """The tile for all warps, those of neighbouring columns first; along dimensions that the
        tensor lacks warps hold copies."""
        warps = self._as_computed(self.warps)
        for axis in (1, 0):
            name = f"dim{axis}"
            make = LinearLayout.identity if axis == spread_axis else LinearLayout.zeros
            tile = tile * make(warps[axis], "warp", name)
        return tile

    def _placed(self, layout: LinearLayout) -> LinearLayout:
        """The layout of a side, or of the result, as the instruction has it, in the tensor: of each
        warp's products one behind the other."""
        rank = len(self.shape)
        names = [dim(rank - 2), dim(rank - 1)]
        if self.is_swapped:
            names.reverse()
        layout = layout.renamed({dim(axis): name for axis, name in enumerate(names)})
        if rank == 3:
            layout = layout * LinearLayout.identity(self.warps[0], "warp", dim(0))
            layout = layout * LinearLayout.identity(self.batches, "register", dim(0))
        return standard(layout, rank)

    @property
    def accumulator(self) -> LinearLayout:
        """The layout of the result: the registers of a tile, tiles down, then tiles across."""
        return self._placed(mma_v2(self.matrix, self._as_computed(self.warps)))

    def operand_a(self, k: int, bits: int) -> LinearLayout:
        """The layout of the left operand: the registers of a tile, tiles down, then along k."""
        return self._operand(int(self.is_swapped), k, bits)

    def operand_b(self, k: int, bits: int) -> LinearLayout:
        """The layout of the right operand: the registers of a tile, along k, then tiles across."""
        return self._operand(int(not self.is_swapped), k, bits)

    def _operand(self, side: int, k: int, bits: int) -> LinearLayout:
        """Of the instruction's left (0) or right (1) operand."""
        make, size = (mma_operand_a, mma_operand_b)[side], self.matrix[side]
        shape = (k, size) if side else (size, k)
        return self._placed(fit(self._spread(make(bits), side), shape))


@functools.cache
def mma_tiling_of(layout: LinearLayout) -> WarpTiling | None:
    """The tiling by `mma` whose results have a layout; None where it is of none."""
    if len(layout.outs) not in (2, 3):
        return None
    shape = tuple(size for _, size in layout.outs)
    for warps in _divisions(layout.in_size("warp"), len(shape)):
        for is_swapped in (False, True):
            tiling = WarpTiling(shape, warps, is_swapped)
            is_whole = len(shape) == 2 or shape[0] % warps[0] == 0
            if is_whole and tiling.accumulator == layout:
                return tiling
    return None


def _divisions(warps: int, rank: int) -> Iterator[tuple[int, ...]]:
    """How warps can lie along so many dimensions."""
    if rank == 1:
        yield (warps,)
        return
    for first in (1 << bit for bit in range(warps.bit_length())):
        for rest in _divisions(warps // first, rank - 1):
            yield (first, *rest)


@functools.cache
def warp_tiling(
    shape: tuple[int, ...], num_warps: int, reduced: int | None = None
) -> WarpTiling | None:
    """Warps where a warp would have most elements, of several products along these first; None
    where a product is smaller than one. One of fewer than 16 rows is computed transposed. Where
    results are reduced along a dimension, warps lie along the other one as long as there are tiles:
    each warp reduces what it has then, and exchanges nothing. (Operands of other dots do not say
    so, too: FBGEMM's backward passes of jagged attention took 1.05 to 1.17 of their time.)"""
    *batch, rows, columns = shape
    is_swapped = rows < MMA_ROWS
    if max(rows, columns) < MMA_ROWS or min(rows, columns) < MMA_LEAST_COLUMNS:
        return None
    least = [MMA_COLUMNS, MMA_ROWS] if is_swapped else [MMA_ROWS, MMA_COLUMNS]
    counts, along = [1, 1], [min(num_warps, size) for size in batch]
    while counts[0] * counts[1] * prod(along) < num_warps:
        rest = [rows // counts[0], columns // counts[1]]
        axis = int(rest[0] < rest[1] or (rest[0] <= least[0] and rest[1] > least[1]))
        if reduced is not None and rest[1 - reduced] > least[1 - reduced]:
            axis = 1 - reduced
        counts[axis] *= 2
    return WarpTiling(shape, (*along, *counts), is_swapped)
