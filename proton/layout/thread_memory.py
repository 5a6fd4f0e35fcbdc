"""Matrices in shared memory that threads write and read: the swizzle that costs them least.

Which chunk of 16 bytes of a row is moved where is free where no hardware but threads reads it. In
the swizzle of `wgmma` bit i of a row's number flips bit i of its chunk's: rows keep apart where
lanes read a chunk each. Lanes that read two chunks of four rows, as those of a right operand of 32
bits do, meet in a bank there, and do not where the lowest bit of the row flips the second bit of
the chunk:

    lanes add               banks, bits flipped in order       bits flipped in another order
    columns 1, 2, 4         1, 2, 4                            1, 2, 4
    rows 1, 2               4, 8: two lanes a bank             8, 16

So those that the swizzle flips are tried with any bits of the row, and rows along either dimension,
against what each access of the threads takes of shared memory's time.
"""

import functools
import itertools
from collections.abc import Iterator

from proton.base.chips.chip import ACCESS_BYTES
from proton.layout.banks import ROW_BYTES, extend, flat, wavefronts
from proton.layout.linear import LinearLayout
from proton.layout.matrix_access import MOST, matrix_access
from proton.layout.matrix_memory import matrix_layout
from proton.layout.named import dim

Order = tuple[int, int]


@functools.cache
def thread_memory(
    shape: tuple[int, int],
    element_bytes: int,
    orders: tuple[Order, ...],
    accesses: tuple[LinearLayout, ...],
) -> LinearLayout | None:
    """The layout of a matrix that threads access in these layouts: rows run along `order[0]`. Of
    equal ones the first, which is `matrix_layout` of the first order; None where rows are shorter
    than 32 bytes in all orders."""
    best: LinearLayout | None = None
    least = 0, 0
    for order in orders:
        for layout in _swizzles(shape, element_bytes, order):
            offsets = layout.invert()
            each = [access_cost(a.compose(offsets), element_bytes) for a in accesses]
            cost = sum(taken for taken, _ in each), sum(count for _, count in each)
            if best is None or cost < least:
                best, least = layout, cost
            if cost[0] <= sum(_bytes(access, element_bytes) for access in accesses) // ROW_BYTES:
                return best
    return best


def _bytes(access: LinearLayout, element_bytes: int) -> int:
    """What the lanes of a warp take in all."""
    return element_bytes << len(extend([], [*flat(access, "register"), *flat(access, "lane")]))


def _swizzles(shape: tuple[int, int], element_bytes: int, order: Order) -> Iterator[LinearLayout]:
    """The swizzle of `wgmma`, and those in which the bits of a row's number flip other bits."""
    first = matrix_layout(shape, element_bytes, order)
    if first is None:
        return
    fast, slow = (first.out_names.index(dim(axis)) for axis in order)
    bases = first.bases("offset")
    rows = [number for number, basis in enumerate(bases) if basis[slow]]
    flips = [bases[number][fast] for number in rows if bases[number][fast]]
    usual = tuple(number for number in rows if bases[number][fast])
    for chosen in dict.fromkeys([usual, *itertools.permutations(rows, len(flips))]):
        flipped = dict.fromkeys(rows, 0) | dict(zip(chosen, flips, strict=True))
        moved = [list(basis) for basis in bases]
        for number, flip in flipped.items():
            moved[number][fast] = flip
        yield LinearLayout.of({"offset": moved}, dict(first.outs))


def access_cost(
    places: LinearLayout, element_bytes: int, vector: int | None = None, has_matrices: bool = True
) -> tuple[int, int]:
    """(wavefronts of shared memory that a warp's accesses to offsets take, the accesses of a
    thread), by matrices where they lie so. An access takes `vector` elements; by default as many
    as it can."""
    matrices = matrix_access(places, element_bytes) if has_matrices else None
    if matrices is not None:
        lanes = flat(matrices.rows, "lane")
        each = wavefronts(lanes, ACCESS_BYTES, element_bytes) * matrices.matrices // MOST
        return matrices.instructions * each, matrices.instructions
    if vector is None:
        vector = contiguous(places, element_bytes)
    count = (1 << len(extend([], flat(places, "register")))) // vector
    return count * wavefronts(flat(places, "lane"), vector * element_bytes, element_bytes), count


def contiguous(places: LinearLayout, element_bytes: int) -> int:
    """How many consecutive offsets one access may take, 16 bytes at most."""
    others = [b[0] for name, bases in places.ins if name != "register" for b in bases]
    registers = {b[0] for b in places.bases("register")}
    count = 1
    while (
        count * element_bytes < ACCESS_BYTES
        and count in registers
        and not any(other & count for other in others)
        and all(r == count or not r & count for r in registers)
    ):
        count *= 2
    return count
