"""Accesses to shared memory by 8 x 8 matrices: `ldmatrix` and `stmatrix`.

A matrix is eight rows of 16 bytes, each anywhere in memory. Lane t of a warp has the 4-byte word
t % 4 of row t / 4, or, transposed, elements 2 (t % 4) and the next one of column t / 4 (16-bit
elements only). One instruction moves one, two or four matrices, a word of each thread for each,
and takes the addresses of their rows from the lanes: row l % 8 of matrix l / 8 from lane l (PTX
ISA, "ldmatrix" and "stmatrix").

Whether a tensor may be moved so is a division: where its elements lie, as a layout from places to
offsets, is the words of a row times a layout of the rows.
"""

import functools
from dataclasses import dataclass

from proton.base.chips.chip import WARP_SIZE
from proton.layout.linear import Basis, LinearLayout, NotDivisible, log2

WORD_BYTES, ROW_BYTES = 4, 16
TRANSPOSED_BYTES = 2  # of elements that may be transposed on the way
MOST = 4  # matrices of one instruction


@dataclass(frozen=True)
class MatrixAccess:
    """`rows` has for each instruction ("register") and lane the offset of the row, in elements,
    that the lane is responsible for. The words of a thread are in the order of its registers, of
    which bit i is bit `order[i]` of the tensor's: `matrices` of them for the first instruction, and
    so on."""

    rows: LinearLayout
    matrices: int
    is_transposed: bool
    order: tuple[int, ...]

    @property
    def instructions(self) -> int:
        return self.rows.in_size("register")

    @property
    def registers(self) -> list[int]:
        """The tensor's registers in the order of words."""
        count = 1 << len(self.order)
        bits = list(enumerate(self.order))
        return [sum((n >> bit & 1) << own for bit, own in bits) for n in range(count)]


@functools.lru_cache(256)  # of a kernel's; few layouts are those of another one
def matrix_access(places: LinearLayout, element_bytes: int) -> MatrixAccess | None:
    """How what lies at `places` (of registers, lanes and warps; the one output are offsets) is
    moved by matrices; None where it is not."""
    if WORD_BYTES % element_bytes or not all(any(b) for b in places.bases("register")):
        return None
    return _straight(places, element_bytes) or _transposed(places, element_bytes)


def _straight(places: LinearLayout, element_bytes: int) -> MatrixAccess | None:
    """Lanes that differ in bits 0 and 1 have words of one row. Registers of a word come first,
    whichever they are."""
    count = WORD_BYTES // element_bytes
    word = LinearLayout.identity(count, "register", "offset")
    row = word * LinearLayout.identity(ROW_BYTES // WORD_BYTES, "lane", "offset")
    bases = places.bases("register")
    inside = [bases.index(basis) for basis in word.bases("register") if basis in bases]
    order = (*inside, *(bit for bit in range(len(bases)) if bit not in inside))
    moved = dict(places.ins) | {"register": tuple(bases[bit] for bit in order)}
    if not _divides(LinearLayout.of(moved, dict(places.outs)), row):
        return None
    left = tuple(bases[bit] for bit in order[log2(count) :])
    return _access(places, places.bases("lane")[2:], left, order, is_transposed=False)


def _transposed(places: LinearLayout, element_bytes: int) -> MatrixAccess | None:
    """Lanes that differ in bits 2 to 4 have elements of one row."""
    lanes, registers = places.bases("lane"), places.bases("register")
    if element_bytes != TRANSPOSED_BYTES or not registers:
        return None
    turned = LinearLayout.of(dict(places.ins) | {"lane": lanes[2:] + lanes[:2]}, dict(places.outs))
    if not _divides(turned, LinearLayout.identity(ROW_BYTES // 2, "lane", "offset")):
        return None
    order = tuple(range(len(registers)))
    return _access(places, (registers[0], *lanes[:2]), registers[1:], order, is_transposed=True)


def _divides(places: LinearLayout, tile: LinearLayout) -> bool:
    try:
        places.divide_left(tile)
    except NotDivisible:
        return False
    return True


def _access(
    places: LinearLayout,
    rows: tuple[Basis, ...],
    left: tuple[Basis, ...],
    order: tuple[int, ...],
    *,
    is_transposed: bool,
) -> MatrixAccess:
    """`rows`: what the bits of a row's number add; `left`: what those of a word's number do."""
    matrices = min(MOST, 1 << len(left))
    chosen = log2(matrices)
    lanes = [*rows, *left[:chosen]]
    lanes += [(0,)] * (log2(WARP_SIZE) - len(lanes))  # of lanes whose addresses nobody reads
    ins = dict(places.ins) | {"register": left[chosen:], "lane": lanes}
    return MatrixAccess(LinearLayout.of(ins, dict(places.outs)), matrices, is_transposed, order)
