"""A view of a tensor in shared memory: where each of its elements lies.

    whole                     the inverse of a layout: index -> offset
    rows 32 to 63 of it       the same for the rows' low bits; 32 rows' offset is flipped in

With `places` of an index, by exclusive or, and `start`:

    offset(index) = start ^ places(index)

Memory with *paddings* leaves room behind each interval of so many offsets; that is added last.
"""

import functools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod

from proton.layout.linear import LinearLayout, log2
from proton.layout.matrix_memory import MatrixMemory, core_matrices, matrix_memory
from proton.layout.named import SWIZZLES, dim, shared_nvmma

Paddings = tuple[tuple[int, int], ...]  # (interval, padding), in elements


@dataclass(frozen=True)
class SharedView:
    """`places` maps an index to an offset, in elements; `size` are the offsets of the whole tensor
    that this is a view of, paddings left out."""

    places: LinearLayout
    size: int
    start: int = 0
    paddings: Paddings = ()

    @staticmethod
    def of(layout: LinearLayout, paddings: Paddings = ()) -> "SharedView":
        """All of a tensor in memory, whose layout maps offsets to indices."""
        return SharedView(layout.invert(), 1 << layout.total_in_bits, 0, paddings)

    @functools.cached_property
    def shape(self) -> tuple[int, ...]:
        """The sizes of the view."""
        return tuple(self.places.in_size(dim(axis)) for axis in range(len(self.places.ins)))

    @property
    def layout(self) -> LinearLayout | None:
        """Offset to index, where this is all of a tensor without paddings."""
        is_whole = not self.start and not self.paddings and prod(self.shape) == self.size
        return self.places.invert() if is_whole else None

    @property
    def _span(self) -> int:
        """The bits that an offset may have."""
        found = 0
        for column in self.places.columns:
            found |= column
        return found

    @property
    def is_foldable(self) -> bool:
        """True if `start` may be added to the address instead."""
        return not self.start & self._span

    @property
    def last(self) -> int:
        """No element has an offset beyond it."""
        return self.start | self._span

    def padded(self, offset: int) -> int:
        """An offset in memory, with the room that is left before it."""
        return offset + sum(offset // interval * padding for interval, padding in self.paddings)

    def offset(self, index: Sequence[int]) -> int:
        """Where an element lies."""
        found = self.places.apply(**{dim(axis): i for axis, i in enumerate(index)})["offset"]
        return self.padded(found ^ self.start)

    def folded(self) -> "SharedView":
        """The view as one that begins at its `start`."""
        return replace(self, start=0)

    def sliced(self, starts: Sequence[int], shape: Sequence[int]) -> "SharedView":
        """The part of these sizes from an index on, which is a multiple of them."""
        first = self.places.apply(**{dim(axis): i for axis, i in enumerate(starts)})["offset"]
        ins = {
            dim(axis): self.places.bases(dim(axis))[: log2(size)] for axis, size in enumerate(shape)
        }
        places = LinearLayout.of(ins, dict(self.places.outs))
        return replace(self, places=places, start=self.start ^ first)

    def permuted(self, order: Sequence[int]) -> "SharedView":
        """Dimension i is dimension order[i] of this one."""
        ins = {dim(n): self.places.bases(dim(axis)) for n, axis in enumerate(order)}
        return replace(self, places=LinearLayout.of(ins, dict(self.places.outs)))

    def reshaped(self, shape: Sequence[int]) -> "SharedView":
        """The same row-major index in other dimensions."""
        rank = len(self.shape)
        bits = [basis for axis in reversed(range(rank)) for basis in self.places.bases(dim(axis))]
        ins: dict[str, list[tuple[int, ...]]] = {}
        for axis in reversed(range(len(shape))):
            count = log2(shape[axis])
            ins[dim(axis)], bits = bits[:count], bits[count:]
        ordered = {dim(axis): ins[dim(axis)] for axis in range(len(shape))}
        return replace(self, places=LinearLayout.of(ordered, dict(self.places.outs)))

    def of_threads(self, threads: LinearLayout) -> LinearLayout:
        """The offset, but for `start`, of what each register of each thread holds, given which
        element that is."""
        return threads.compose(self.places)


@functools.cache
def matrix_of(
    view: SharedView, element_bytes: int, tile: tuple[int, int] | None = None
) -> MatrixMemory | None:
    """The swizzled matrix that a view is, or is a part of, from rows on that begin a swizzle; or
    the one of core matrices, of which an instruction reads a `tile`. None where it is none."""
    if view.paddings or len(view.shape) != 2:
        return None
    whole = None if view.layout is None else matrix_memory(view.layout, element_bytes)
    if whole is not None:
        return whole
    if view.is_foldable:
        cores = core_matrices(view.places, element_bytes, tile)
        if cores is not None:
            return cores
    if view.layout is not None:
        return None
    for order in ((1, 0), (0, 1)):
        for swizzle in SWIZZLES:
            found = _part_of_matrix(view, element_bytes, swizzle, order)
            if found is not None:
                return found
    return None


def _part_of_matrix(
    view: SharedView, element_bytes: int, swizzle: int, order: tuple[int, int]
) -> MatrixMemory | None:
    fast, slow = order
    width = swizzle // element_bytes
    shape = list(view.shape)
    bases = view.places.bases(dim(fast))
    # Of a matrix of several blocks of columns the second one says how many rows there are.
    columns = max(width, shape[fast])
    rows = bases[log2(width)][0] // width if shape[fast] > width else view.size // columns
    if rows < max(8, shape[slow]) or rows & (rows - 1):
        return None
    whole = [0, 0]
    whole[fast], whole[slow] = columns, rows
    layout = shared_nvmma(whole, element_bytes, swizzle, order)
    part = SharedView.of(layout).sliced([0, 0], shape)
    if part.places.ins != view.places.ins:
        return None
    return MatrixMemory(layout.invert(), element_bytes, order, swizzle)
