"""How a product is divided among warps, and which layouts its operands have then.

Each function gives what follows from a shape and a number of warps alone, so that the pass that
chooses an instruction and the lowering that emits it agree without a word between them.
"""

import functools
from collections.abc import Iterator
from dataclasses import dataclass

from proton.layout.linear import LinearLayout
from proton.layout.named import (
    fit,
    mma_operand_a,
    mma_operand_b,
    mma_v2,
    wgmma_accumulator,
    wgmma_operand_a,
)

GROUP_ROWS = 64  # of a product of one warp group
GROUP_WARPS = 4
MAX_N = 256  # columns of one `wgmma`
MMA_ROWS, MMA_COLUMNS = 16, 8
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
    """A product by `mma`, of 16 rows and 8 columns in a warp; `warps[axis]` along each axis."""

    shape: Shape
    warps: Shape

    def _spread(self, tile: LinearLayout, spread_axis: int) -> LinearLayout:
        """The tile for all warps, those of neighbouring columns first; along dimensions that the
        tensor lacks warps hold copies."""
        for axis in (1, 0):
            name = f"dim{axis}"
            make = LinearLayout.identity if axis == spread_axis else LinearLayout.zeros
            tile = tile * make(self.warps[axis], "warp", name)
        return tile

    @property
    def accumulator(self) -> LinearLayout:
        """The layout of the result: the registers of a tile, tiles down, then tiles across."""
        return mma_v2(self.shape, self.warps)

    def operand_a(self, k: int, bits: int) -> LinearLayout:
        """The layout of the left operand: the registers of a tile, tiles down, then along k."""
        return fit(self._spread(mma_operand_a(bits), 0), (self.shape[0], k))

    def operand_b(self, k: int, bits: int) -> LinearLayout:
        """The layout of the right operand: the registers of a tile, along k, then tiles across."""
        return fit(self._spread(mma_operand_b(bits), 1), (k, self.shape[1]))


@functools.cache
def mma_tiling_of(layout: LinearLayout) -> WarpTiling | None:
    """The tiling by `mma` whose results have a layout; None where it is of none."""
    if len(layout.outs) != 2:
        return None
    shape, warps = (layout.out_size("dim0"), layout.out_size("dim1")), layout.in_size("warp")
    for down in (1 << bit for bit in range(warps.bit_length())):
        tiling = WarpTiling(shape, (down, warps // down))
        if tiling.accumulator == layout:
            return tiling
    return None


@functools.cache
def warp_tiling(shape: Shape, num_warps: int, reduced: int | None = None) -> WarpTiling | None:
    """Warps where a warp would have most elements; None where a product is smaller than one. Where
    results are reduced along a dimension, warps lie along the other one as long as there are tiles:
    each warp reduces what it has then, and exchanges nothing. (Operands of other dots do not say
    so, too: FBGEMM's backward passes of jagged attention took 1.05 to 1.17 of their time.)"""
    if shape[0] < MMA_ROWS or shape[1] < MMA_COLUMNS:
        return None
    tile, counts = (MMA_ROWS, MMA_COLUMNS), [1, 1]
    while counts[0] * counts[1] < num_warps:
        rest = [shape[axis] // counts[axis] for axis in range(2)]
        axis = int(rest[0] < rest[1] or (rest[0] <= tile[0] and rest[1] > tile[1]))
        if reduced is not None and rest[1 - reduced] > tile[1 - reduced]:
            axis = 1 - reduced
        counts[axis] *= 2
    return WarpTiling(shape, (counts[0], counts[1]))
